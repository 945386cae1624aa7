//! The pictures without zoom of the front page, the gallery and the chapters: profiles of the chapters, without the
//! names that give a chapter away.

use std::collections::btree_map::{BTreeMap, Entry};

use course::measurement::chapter_file::Still;
use course::report::capture::{self, Capture, Files};
use course::report::gallery;
use serde::Deserialize;

use crate::chapters::Workshop;
use terminal::exit::CliError;

/// The pictures of the front page and the gallery.
const LISTED: &str = include_str!("gallery.toml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Gallery {
    services: Vec<Service>,
}

/// Profiles of a chapter's service, under names that do not reveal it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Service {
    chapter: u32,
    /// The profiles by file.
    pictures: BTreeMap<String, Still>,
    /// Other names for its routes and functions.
    #[serde(default)]
    renamed: BTreeMap<String, String>,
}

/// A picture of the gallery's folder.
struct Picture {
    file: String,
    chapter: u32,
    still: Still,
    renamed: BTreeMap<String, String>,
    /// A list of its boxes stands beside it: the pages of a chapter say themselves what theirs show.
    has_list: bool,
}

/// Draws the pictures again from the chapters' records, or compares them with those that are there.
pub(super) fn derive(workshop: &Workshop, verify: bool) -> Result<(), CliError> {
    let mut captures: BTreeMap<u32, Capture> = BTreeMap::new();
    let mut files = Files::new();
    for picture in pictures(workshop)? {
        let Picture { file, chapter, .. } = &picture;
        let Still {
            variant,
            kind,
            pointed,
        } = &picture.still;
        let capture = match captures.entry(*chapter) {
            Entry::Occupied(read) => read.into_mut(),
            Entry::Vacant(unread) => {
                unread.insert(Capture::read(&workshop.captures(*chapter)).map_err(CliError::bad)?)
            }
        };
        let pointed: Vec<&str> = pointed.iter().map(String::as_str).collect();
        let drawn = gallery::draw(capture, variant, *kind, &pointed, &picture.renamed)
            .map_err(CliError::bad)?;
        let Some((svg, list)) = drawn else {
            return Err(CliError::bad(format!(
                "chapter {chapter} has no {} profile of its {variant}: record it again, or take the picture out of \
                 its chapter.toml or the gallery",
                kind.key()
            )));
        };
        files.insert(format!("{file}.svg"), svg);
        if picture.has_list {
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

/// Lists the pictures of the gallery and those of the chapters' pages.
fn pictures(workshop: &Workshop) -> Result<Vec<Picture>, CliError> {
    let mut pictures = Vec::new();
    let listed: Gallery =
        toml::from_str(LISTED).map_err(|error| CliError::bad(format!("gallery.toml: {error}")))?;
    for service in listed.services {
        for (file, still) in service.pictures {
            pictures.push(Picture {
                file,
                chapter: service.chapter,
                still,
                renamed: service.renamed.clone(),
                has_list: true,
            });
        }
    }
    for chapter in workshop.chapters()? {
        for still in chapter.file()?.stills {
            pictures.push(Picture {
                file: format!(
                    "chapter{}.{}.{}",
                    chapter.number,
                    still.variant,
                    still.kind.key()
                ),
                chapter: chapter.number,
                still,
                renamed: BTreeMap::new(),
                has_list: false,
            });
        }
    }
    Ok(pictures)
}
