//! The pictures without zoom of the front page, the gallery and the chapters: profiles of the chapters, without the
//! names that give a chapter away.

use std::collections::btree_map::{BTreeMap, Entry};

use course::measurement::chapter_file::Still;
use course::report::capture::{self, Capture, Files};
use course::report::gallery;
use statistics::profile::ProfileKind::{self, Await, Cpu};

use crate::chapters::Workshop;
use terminal::exit::CliError;

/// A profile of a chapter, under a name that does not reveal the chapter.
struct Unnamed {
    file: &'static str,
    chapter: u32,
    variant: &'static str,
    kind: ProfileKind,
    /// Beginnings of the names of boxes that a line leads to: those that are too narrow for the label that decides.
    pointed: &'static [&'static str],
    /// Other names for the services' routes and functions.
    renamed: &'static [(&'static str, &'static str)],
}

const fn unnamed(
    file: &'static str,
    chapter: u32,
    variant: &'static str,
    kind: ProfileKind,
) -> Unnamed {
    Unnamed {
        file,
        chapter,
        variant,
        kind,
        pointed: &[],
        renamed: &[],
    }
}

/// The service of captures 5, 9 and 10.
const THUMBNAILS: &[(&str, &str)] = &[
    ("GET /data", "GET /thumbnail"),
    ("app::data", "app::thumbnail"),
    ("app::Pool::run", "app::Workers::run"),
    ("app::Work::run", "app::Image::scale"),
    ("app::Work::timed", "app::Image::scale"),
    ("app::compute", "app::resize"),
];

/// The pictures of the front page and the gallery. Their functions have names there that appear in no chapter.
const PICTURES: [Unnamed; 14] = [
    unnamed("front-cpu", 1, "problem", Cpu),
    unnamed("front-await", 1, "problem", Await),
    unnamed("01", 1, "problem", Cpu),
    Unnamed {
        pointed: &["app::Rates::today"],
        renamed: &[
            ("POST /order", "PUT /booking"),
            ("app::order", "app::book"),
            ("app::Pricing::price", "app::Rates::today"),
        ],
        ..unnamed("02", 9, "problem", Await)
    },
    Unnamed {
        renamed: &[
            ("app::routes", "app::handlers"),
            ("app::page", "app::ranking"),
        ],
        ..unnamed("03", 3, "problem", Cpu)
    },
    Unnamed {
        renamed: &[
            ("GET /read", "GET /invoice"),
            ("app::read", "app::invoice"),
            ("app::Database::call", "app::Ledger::fetch"),
        ],
        ..unnamed("04", 1, "solution", Await)
    },
    Unnamed {
        renamed: THUMBNAILS,
        ..unnamed("05", 5, "problem", Cpu)
    },
    Unnamed {
        pointed: &["tokio: RwLock::write", "app::History::load"],
        renamed: &[
            ("GET /read", "GET /quote"),
            ("POST /subscribe", "POST /alert"),
            ("app::routes", "app::handlers"),
            ("app::Directory::read", "app::Quotes::last"),
            ("app::Directory::subscribe", "app::Quotes::watch"),
            ("app::subscribe", "app::alert"),
            ("app::Database::call", "app::History::load"),
        ],
        ..unnamed("06", 2, "problem", Await)
    },
    Unnamed {
        renamed: &[("app::io", "app::convert")],
        ..unnamed("07", 4, "problem", Cpu)
    },
    Unnamed {
        renamed: &[
            ("app::check", "app::tag"),
            ("app::Texts::any_begins", "app::Tags::find"),
            ("app::scan", "app::Tags::find"),
            ("app::Scans::count", "app::Tags::find"),
        ],
        ..unnamed("08", 6, "problem", Cpu)
    },
    Unnamed {
        renamed: THUMBNAILS,
        ..unnamed("09", 5, "solution", Await)
    },
    Unnamed {
        renamed: THUMBNAILS,
        ..unnamed("10", 5, "solution", Cpu)
    },
    Unnamed {
        renamed: &[
            ("app::check", "app::lookup"),
            ("app::Texts::any_begins", "app::Dictionary::find"),
            ("app::Replica::read", "app::Dictionary::find"),
        ],
        ..unnamed("11", 7, "problem", Cpu)
    },
    Unnamed {
        pointed: &["(ready)"],
        renamed: &[
            ("GET /ping", "GET /alive"),
            ("GET /summarize", "GET /digest"),
            ("app::ping", "app::alive"),
            ("app::summarize", "app::digest"),
            ("app::Bodies::fetch", "app::Feed::open"),
            ("app::Body::part", "app::Feed::next"),
            ("app::Database::call", "app::Store::ping"),
            ("(ready: woken and not yet polled)", "(ready)"),
        ],
        ..unnamed("12", 8, "problem", Await)
    },
];

/// A picture of the gallery's folder.
struct Picture {
    file: String,
    chapter: u32,
    still: Still,
    renamed: &'static [(&'static str, &'static str)],
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
        let drawn = gallery::draw(capture, variant, *kind, &pointed, picture.renamed)
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
    for one in &PICTURES {
        pictures.push(Picture {
            file: one.file.to_owned(),
            chapter: one.chapter,
            still: Still {
                variant: one.variant.to_owned(),
                kind: one.kind,
                pointed: one.pointed.iter().map(ToString::to_string).collect(),
            },
            renamed: one.renamed,
            has_list: true,
        });
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
                renamed: &[],
                has_list: false,
            });
        }
    }
    Ok(pictures)
}
