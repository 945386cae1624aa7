//! Memory of another process, read in pages and kept.
//!
//! What to read is only known once pointers were followed, and following them takes longer than the process may stand
//! still. So the walk runs on **copies**: a first walk reads pages as it meets them, while the process runs. Then the
//! process stands still for as long as it takes to copy those pages anew, and a second walk reads the copies alone. A page
//! that it lacks is noted, for the next attempt.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::FileExt as _;

use crate::Error;
use crate::process::Process;

/// Bytes of a piece that is copied at once.
const PAGE: u64 = 1024;

/// Most pages that are kept: 256 MiB.
const MOST_PAGES: usize = 1 << 18;

/// Most bytes that are read by one call.
const MOST_BYTES_A_CALL: usize = 1 << 20;

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
    missing: RefCell<BTreeSet<u64>>,
    is_full: Cell<bool>,
}

impl Memory {
    pub(crate) fn of(process: Process) -> Result<Self, Error> {
        let file = File::open(process.path("mem")).map_err(|reason| process.error(reason))?;
        Ok(Self {
            file,
            mode: Cell::new(Mode::Live),
            pages: RefCell::default(),
            missing: RefCell::default(),
            is_full: Cell::new(false),
        })
    }

    /// Returns what to copy: all pages that the walks so far have asked for.
    pub(crate) fn wanted(&self) -> Wanted<'_> {
        let mut pages: Vec<u64> = self.pages.borrow().keys().copied().collect();
        pages.extend(self.missing.take());
        pages.sort_unstable();
        pages.dedup();
        pages.truncate(MOST_PAGES);
        let mut runs = Vec::new();
        for run in pages.chunk_by(|a, b| a + 1 == *b) {
            for run in run.chunks(MOST_BYTES_A_CALL / page_bytes()) {
                // Written to, so that the system has found memory for it before the process stands still.
                let bytes = vec![1; run.len() * page_bytes()];
                runs.push(Run {
                    pages: run.to_vec(),
                    bytes,
                    unreadable: Vec::new(),
                });
            }
        }
        Wanted {
            file: &self.file,
            runs,
        }
    }

    /// Makes walks read these copies alone from now on.
    pub(crate) fn replace(&self, copied: Wanted<'_>) {
        let mut pages = Pages::new();
        for run in copied.runs {
            for (number, bytes) in run.pages.iter().zip(run.bytes.chunks_exact(page_bytes())) {
                let is_read = !run.unreadable.contains(number);
                pages.insert(*number, is_read.then(|| bytes.into()));
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
        if self.pages.borrow().len() + self.missing.borrow().len() >= MOST_PAGES {
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

/// Pages to copy, with room for them.
pub(crate) struct Wanted<'m> {
    file: &'m File,
    runs: Vec<Run>,
}

/// Adjacent pages.
struct Run {
    pages: Vec<u64>,
    bytes: Vec<u8>,
    unreadable: Vec<u64>,
}

impl Wanted<'_> {
    /// Copies the pages. This alone happens while the process stands still.
    pub(crate) fn copy(mut self) -> Self {
        for run in &mut self.runs {
            let start = run.pages.first().and_then(|first| first.checked_mul(PAGE));
            let is_read = |start: u64| self.file.read_exact_at(&mut run.bytes, start).is_ok();
            if start.is_some_and(is_read) {
                continue;
            }
            // One of them cannot be read.
            for (number, bytes) in run
                .pages
                .iter()
                .zip(run.bytes.chunks_exact_mut(page_bytes()))
            {
                match page(self.file, *number) {
                    Some(page) => bytes.copy_from_slice(&page),
                    None => run.unreadable.push(*number),
                }
            }
        }
        self
    }
}

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
