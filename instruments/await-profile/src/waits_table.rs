//! Well-known waits in stacks.

use ecosystem::{Wait, WaitRow, wait_in, waits};

use crate::frame::Frame;
use crate::frame_kind::FrameKind;

/// Returns the first row of the table that fits frames inside the reader's last one, and its outermost such frame.
pub(crate) fn row_of(stack: &[Frame]) -> Option<(&'static WaitRow, usize)> {
    let own = stack.iter().rposition(|frame| frame.kind == FrameKind::Own);
    let inside = own.map_or(0, |own| own + 1);
    let paths: Vec<&str> = stack[inside..]
        .iter()
        .map(|frame| frame.path.as_str())
        .collect();
    wait_in(&paths).map(|(row, at)| (row, inside + at))
}

/// Returns the well-known wait at the end of this stack.
pub(crate) fn wait_of(stack: &[Frame]) -> Option<Wait> {
    let leaf = stack.last()?;
    if leaf.kind == FrameKind::Remark {
        let is_it = |row: &&WaitRow| row.wait.what == leaf.path;
        return waits().iter().find(is_it).map(|row| row.wait);
    }
    row_of(stack).map(|(row, _)| row.wait)
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
