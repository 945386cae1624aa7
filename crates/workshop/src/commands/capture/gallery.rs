//! The pictures that stand still, of the front page, the gallery and the chapters: profiles of the
//! chapters, without the names that give a chapter away.

use std::collections::btree_map::{BTreeMap, Entry};

use course::report::capture::{self, Capture, Files};
use course::report::gallery;
use engine::profile::ProfileKind::{self, Await, Cpu};

use crate::chapters::Workshop;
use terminal::exit::CliError;

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

/// Chapter, variant and kind of the profiles that the chapters' pages show, and the boxes that a line
/// leads to.
const STILLS: [(u32, &str, ProfileKind, &[&str]); 22] = [
    (1, "problem", Cpu, &["worker thread"]),
    (1, "problem", Await, &["tokio: Mutex::lock"]),
    (1, "solution", Await, &[]),
    (
        2,
        "problem",
        Await,
        &["tokio: RwLock::write", "app::Database::call"],
    ),
    (2, "problem", Cpu, &["worker thread"]),
    (2, "solution", Await, &[]),
    (3, "problem", Cpu, &["String::clone", "drop of a String"]),
    (3, "problem", Await, &["(running)"]),
    (3, "solution", Cpu, &[]),
    (4, "problem", Cpu, &["rustls_native_certs"]),
    (4, "problem", Await, &[]),
    (5, "problem", Cpu, &["app::compute"]),
    (5, "problem", Await, &["(running)"]),
    (5, "solution", Await, &["tokio: Semaphore::acquire_owned"]),
    (6, "problem", Cpu, &["idle"]),
    (7, "problem", Cpu, &["memcmp"]),
    (8, "problem", Cpu, &["idle"]),
    (8, "problem", Await, &[]),
    (8, "solution", Await, &[]),
    (9, "problem", Await, &["app::Pricing::price"]),
    (9, "problem", Cpu, &["worker thread"]),
    (9, "solution", Await, &["app::Pricing::price"]),
];

/// Draws the pictures again from the chapters' records, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let mut captures: BTreeMap<u32, Capture> = BTreeMap::new();
    let mut files = Files::new();
    let unnamed = PICTURES
        .map(|(file, chapter, variant, kind)| (file.to_owned(), chapter, variant, kind, &[][..]));
    let stills = STILLS.map(|(chapter, variant, kind, pointed)| {
        let file = format!("chapter{chapter}.{variant}.{}", kind.key());
        (file, chapter, variant, kind, pointed)
    });
    for (file, chapter, variant, kind, pointed) in unnamed.into_iter().chain(stills) {
        let capture = match captures.entry(chapter) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                unread.insert(Capture::read(&workshop.captures(chapter)).map_err(CliError::bad)?)
            }
        };
        let drawn = gallery::draw(capture, variant, kind, pointed).map_err(CliError::bad)?;
        let Some((svg, list)) = drawn else {
            return Err(CliError::bad(format!(
                "the gallery shows a profile that chapter {chapter} has no more: {variant}, {}",
                kind.key()
            )));
        };
        files.insert(format!("{file}.svg"), svg);
        // What the pages of a chapter say of theirs is beside the picture.
        if !file.starts_with("chapter") {
            files.insert(format!("{file}.md"), list);
        }
    }
    let folder = workshop.root().join("flamegraphs/gallery");
    if verify {
        capture::compare(&folder, &files)
    } else {
        capture::write_all(&folder, &files)
    }
    .map_err(CliError::bad)
}
