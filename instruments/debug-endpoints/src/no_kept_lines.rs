//! Replacement for `kept_lines` on systems where stacks are not taken.

use diagnosis::evidence::Kept;

pub(crate) fn begin() {}

pub(crate) fn of((): ()) -> Vec<Kept> {
    Vec::new()
}
