//! Well-known waits in stacks.

use ecosystem::{Wait, WaitRow, is_within, waits};

use crate::frame::Frame;
use crate::frame_kind::FrameKind;

/// Position of the outermost of the frames that belongs to such a wait.
fn find(row: &WaitRow, frames: &[Frame]) -> Option<usize> {
    for place in &row.places {
        if let Some(at) = outermost(place, frames) {
            return Some(at);
        }
    }
    None
}

/// Position of the first frame of `place`, if the others lie further inwards.
fn outermost(place: &[&str], frames: &[Frame]) -> Option<usize> {
    let mut first = None;
    let mut from = 0;
    for path in place {
        let is_there = |frame: &Frame| is_within(&frame.path, std::iter::once(*path));
        let at = from + frames[from..].iter().position(is_there)?;
        first = first.or(Some(at));
        from = at + 1;
    }
    first
}

/// The first row of the table that frames inside the reader's last one fit, and the outermost of them that does.
pub(crate) fn row_of(stack: &[Frame]) -> Option<(&'static WaitRow, usize)> {
    let own = stack.iter().rposition(|frame| frame.kind == FrameKind::Own);
    let inside = own.map_or(0, |own| own + 1);
    for row in waits() {
        if let Some(at) = find(row, &stack[inside..]) {
            return Some((row, inside + at));
        }
    }
    None
}

/// The well-known wait at the end of this stack.
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
