//! Well-known waits in stacks.

use ecosystem::{Wait, WaitRow, wait_in, waits};

use crate::frame::Frame;
use crate::frame_kind::FrameKind;

/// Returns the first row of the table that fits frames inside the reader's last one, and its outermost such frame.
pub(crate) fn row_of(stack: &[Frame]) -> Option<(&'static WaitRow, usize)> {
    let inside = match stack.iter().rposition(|frame| frame.kind == FrameKind::Own) {
        Some(own) => own + 1,
        None => 0,
    };
    let frames = stack[inside..].iter();
    let paths: Vec<&str> = frames.map(|frame| frame.path.as_str()).collect();
    let (row, at) = wait_in(&paths)?;
    Some((row, inside + at))
}

/// Returns the well-known wait at the end of this stack.
pub(crate) fn wait_of(stack: &[Frame]) -> Option<Wait> {
    let leaf = stack.last()?;
    if leaf.kind == FrameKind::Remark {
        let row = waits().iter().find(|row| row.wait.what == leaf.path)?;
        return Some(row.wait);
    }
    let (row, _) = row_of(stack)?;
    Some(row.wait)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_row_of_the_table_hides_another() {
        for row in waits() {
            for place in &row.places {
                let frame = |path: &&str| Frame::text(path, FrameKind::Library);
                let stack: Vec<_> = place.iter().map(frame).collect();
                assert_eq!(wait_of(&stack), Some(row.wait), "{place:?}");
            }
            if row.is_frame() {
                let shown = Frame::text(row.wait.what, FrameKind::Remark);
                assert_eq!(wait_of(&[shown]).unwrap().kind, row.wait.kind);
            }
        }
    }
}
