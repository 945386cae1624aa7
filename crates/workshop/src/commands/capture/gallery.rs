//! The pictures of the front page and of the gallery: profiles of the chapters, without the names that
//! give a chapter away.

use std::collections::btree_map::{BTreeMap, Entry};

use duel::profile::ProfileKind::{self, Await, Cpu};
use report::capture::{self, Capture, Files};
use report::gallery;

use crate::chapters::Workshop;
use duel::cli::exit::CliError;

/// File, chapter, variant and kind of the profile that it shows.
const PICTURES: [(&str, u32, &str, ProfileKind); 14] = [
    ("front-cpu", 1, "problem", Cpu),
    ("front-await", 1, "problem", Await),
    ("01", 1, "problem", Cpu),
    ("02", 9, "problem", Await),
    ("03", 3, "problem", Cpu),
    ("04", 1, "solution", Await),
    ("05", 5, "problem", Cpu),
    ("06", 2, "problem", Await),
    ("07", 4, "problem", Cpu),
    ("08", 6, "problem", Cpu),
    ("09", 5, "solution", Await),
    ("10", 5, "solution", Cpu),
    ("11", 7, "problem", Cpu),
    ("12", 8, "problem", Await),
];

/// Draws the pictures again from the chapters' records, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let mut captures: BTreeMap<u32, Capture> = BTreeMap::new();
    let mut files = Files::new();
    for (file, chapter, variant, kind) in PICTURES {
        let capture = match captures.entry(chapter) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                unread.insert(Capture::read(&workshop.captures(chapter)).map_err(CliError::bad)?)
            }
        };
        let drawn = gallery::draw(capture, variant, kind).map_err(CliError::bad)?;
        let Some((svg, list)) = drawn else {
            return Err(CliError::bad(format!(
                "the gallery shows a profile that chapter {chapter} has no more: {variant}, {}",
                kind.key()
            )));
        };
        files.insert(format!("{file}.svg"), svg);
        files.insert(format!("{file}.md"), list);
    }
    let folder = workshop.root().join("flamegraphs/gallery");
    if verify {
        capture::compare(&folder, &files)
    } else {
        capture::write_all(&folder, &files)
    }
    .map_err(CliError::bad)
}
