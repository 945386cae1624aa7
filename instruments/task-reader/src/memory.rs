//! Memory of another process, read in pages and kept.
//!
//! What to read is only known once pointers were followed, and following them takes longer than the process may stand
//! still. So the walk runs on **copies**: a first walk reads pages as it meets them, while the process runs. Then the
//! process stands still for as long as it takes to copy those pages anew, and a second walk reads the copies alone. A page
//! that it lacks is noted, for the next attempt.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

use diagnosis::threads::Piece;

use crate::Error;
use crate::process::Process;

/// Bytes of a page.
const PAGE: u64 = Piece::BLOCK as u64;

/// Most pages that are kept: 256 MiB, and 24 MiB of the calling process, which pays for them.
const MOST_PAGES: usize = 1 << 18;
const MOST_PAGES_OF_THIS: usize = 24 << 10;

/// Most pages of one value that are asked for at once.
const MOST_PAGES_ASKED: usize = 256;

/// Most pages of the program itself that are kept: 16 MiB.
const MOST_CONSTANTS: usize = 1 << 14;

/// Most pages that are read by one call.
const MOST_PAGES_A_CALL: usize = 1 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A page that is not yet kept is read from the process.
    Live,
    /// Only kept pages are read.
    Copied,
}

/// Pages of a process's memory.
pub(crate) struct Memory {
    file: File,
    mode: Cell<Mode>,
    pages: RefCell<Pages>,
    /// Pages of the program itself.
    constants: RefCell<Pages>,
    missing: RefCell<BTreeSet<u64>>,
    most_pages: usize,
    is_full: Cell<bool>,
}

impl Memory {
    pub(crate) fn of(process: Process) -> Result<Self, Error> {
        let file = File::open(process.path("mem")).map_err(|reason| process.error(reason))?;
        Ok(Self {
            file,
            mode: Cell::new(Mode::Live),
            pages: RefCell::default(),
            constants: RefCell::default(),
            missing: RefCell::default(),
            most_pages: if process.is_this() {
                MOST_PAGES_OF_THIS
            } else {
                MOST_PAGES
            },
            is_full: Cell::new(false),
        })
    }

    /// Returns what to copy: all pages that the walks so far have asked for. They are forgotten here, since both would be
    /// twice the memory.
    pub(crate) fn wanted(&self) -> Vec<Piece> {
        let mut pages: Vec<u64> = self.pages.take().into_keys().collect();
        pages.extend(self.missing.take());
        pages.sort_unstable();
        pages.dedup();
        pages.truncate(self.most_pages);
        let mut pieces = Vec::new();
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            for run in run.chunks(MOST_PAGES_A_CALL) {
                let start = run.first().and_then(|first| first.checked_mul(PAGE));
                pieces.extend(start.map(|start| Piece::new(start, run.len())));
            }
        }
        pieces
    }

    /// Makes walks read these copies alone from now on.
    pub(crate) fn replace(&self, copied: Vec<Piece>) {
        let mut pages = Pages::new();
        for piece in copied {
            for (number, block) in (piece.address() / PAGE..).zip(piece.blocks()) {
                pages.insert(number, block.map(Into::into));
            }
        }
        self.pages.replace(pages);
        self.mode.set(Mode::Copied);
    }

    /// Returns whether the last walk asked for pages that were not copied.
    pub(crate) fn has_missing(&self) -> bool {
        !self.missing.borrow().is_empty()
    }

    /// Returns whether there was more to read than is kept.
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.get()
    }

    /// Returns whether half of what may be kept is.
    pub(crate) fn is_half_full(&self) -> bool {
        self.pages.borrow().len() >= self.most_pages / 2
    }

    /// Returns the number of kept bytes.
    pub(crate) fn kept(&self) -> usize {
        self.pages.borrow().len() * page_bytes()
    }

    /// Returns the unsigned number of `size` bytes at `address`: 1, 2, 4, 8 or 16.
    pub(crate) fn number(&self, address: u64, size: u64) -> Option<u128> {
        let size = usize::try_from(size).ok().filter(|size| *size <= 16)?;
        let mut bytes = [0_u8; 16];
        self.read(address, bytes.get_mut(..size)?)?;
        Some(u128::from_le_bytes(bytes))
    }

    /// Asks for the memory of a range, and returns whether all of it is known.
    pub(crate) fn ask(&self, range: &Range<u64>) -> bool {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let mut is_known = true;
        for page in pages.take(MOST_PAGES_ASKED) {
            is_known &= self.with_page(page, |_| Some(())).is_some();
        }
        is_known && self.mode.get() == Mode::Copied
    }

    /// Returns the byte at `address`, if its page is kept: what is not kept is not asked for.
    pub(crate) fn kept_byte(&self, address: u64) -> Option<u8> {
        let pages = self.pages.borrow();
        let page = pages.get(&(address / PAGE))?.as_ref()?;
        page.get(usize::try_from(address % PAGE).ok()?).copied()
    }

    /// Returns a part of the program itself, which does not change: of its code and its constants.
    pub(crate) fn constant_byte(&self, address: u64) -> Option<u8> {
        let number = address / PAGE;
        let mut constants = self.constants.borrow_mut();
        if constants.len() >= MOST_CONSTANTS {
            constants.clear();
        }
        let page = constants
            .entry(number)
            .or_insert_with(|| page(&self.file, number));
        let byte = usize::try_from(address % PAGE).ok()?;
        page.as_ref()?.get(byte).copied()
    }

    /// Returns the eight bytes at `address` as an address.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        self.number(address, 8)
            .and_then(|number| u64::try_from(number).ok())
    }

    fn read(&self, address: u64, to: &mut [u8]) -> Option<()> {
        let (mut at, mut rest) = (address, to);
        while !rest.is_empty() {
            let from = usize::try_from(at % PAGE).ok()?;
            let (now, later) = rest.split_at_mut(rest.len().min(page_bytes() - from));
            self.with_page(at / PAGE, |page| {
                now.copy_from_slice(page.get(from..from + now.len())?);
                Some(())
            })?;
            at = at.checked_add(u64::try_from(now.len()).ok()?)?;
            rest = later;
        }
        Some(())
    }

    /// Hands a page to `read`, if it is kept or can be read now.
    fn with_page(&self, number: u64, read: impl FnOnce(&[u8]) -> Option<()>) -> Option<()> {
        if let Some(page) = self.pages.borrow().get(&number) {
            return read(page.as_ref()?);
        }
        if self.pages.borrow().len() + self.missing.borrow().len() >= self.most_pages {
            self.is_full.set(true);
            return None;
        }
        if self.mode.get() == Mode::Copied {
            self.missing.borrow_mut().insert(number);
            return None;
        }
        let page = page(&self.file, number);
        let done = page.as_deref().and_then(read);
        self.pages.borrow_mut().insert(number, page);
        done
    }
}

/// Pages by number; `None` where nothing can be read.
type Pages = BTreeMap<u64, Option<Box<[u8]>>>;

/// Reads one page of the process.
fn page(file: &File, number: u64) -> Option<Box<[u8]>> {
    let mut bytes = vec![0; page_bytes()];
    let start = number.checked_mul(PAGE)?;
    file.read_exact_at(&mut bytes, start).ok()?;
    Some(bytes.into_boxed_slice())
}

fn page_bytes() -> usize {
    usize::try_from(PAGE).unwrap_or(usize::MAX)
}
