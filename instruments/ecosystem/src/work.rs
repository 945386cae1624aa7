//! Names the computing of library functions, with advice.

use std::sync::LazyLock;

use crate::tables::{name, rows};

/// Computing of a library that a service calls: its usual cause, and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// Part of the names of its functions.
    pub part: &'static str,
    /// True if it can be done once, or elsewhere.
    pub is_avoidable: bool,
    /// The usual cause, as a sentence.
    pub cause: &'static str,
    /// Remedy, as a sentence.
    pub fix: &'static str,
}

static WORK: LazyLock<Vec<Work>> = LazyLock::new(|| {
    let mut all = Vec::new();
    for row in rows("Work") {
        if let [part, kind, cause, fix] = row[..] {
            all.push(Work {
                part: name(part),
                is_avoidable: kind == "avoidable",
                cause,
                fix,
            });
        }
    }
    all
});

/// Returns the first row of the table that fits one of these functions.
pub fn work_of<'a>(functions: impl Iterator<Item = &'a str>) -> Option<&'static Work> {
    let mut found = None;
    for function in functions {
        if let Some(at) = WORK.iter().position(|work| function.contains(work.part)) {
            found = Some(found.map_or(at, |before: usize| before.min(at)));
        }
    }
    Some(&WORK[found?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_fits_counts() {
        let of = |functions: &[&str]| work_of(functions.iter().copied()).map(|work| work.part);
        assert_eq!(WORK.len(), rows("Work").len());
        assert_eq!(
            of(&["bcrypt::hash", "core::clone::Clone::clone"]),
            Some("bcrypt")
        );
        assert_eq!(of(&["core::clone::Clone::clone"]), Some("clone::Clone"));
        assert_eq!(of(&["shop::rank"]), None);
    }
}
