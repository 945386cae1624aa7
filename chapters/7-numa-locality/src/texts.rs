//! The data set: the texts that no body may begin with.

use std::sync::OnceLock;

use lab::{Options, Replica};
use many_cpus::SystemHardware;

/// Bytes of a text: 20 digits, 32 times.
const BYTES: usize = 640;

/// Number of texts, and the number of the first one.
static WHICH: OnceLock<(usize, u64)> = OnceLock::new();

/// Decides how many texts there will be: as many as the command line says, or as fit the machine. A copy
/// for each NUMA node, and one to copy from, have to fit into the free memory.
pub(crate) fn prepare(options: &Options) -> Result<(), lab::Error> {
    let regions = SystemHardware::current().max_memory_region_count();
    let texts = options.texts(BYTES, regions + 1)?;
    WHICH.get_or_init(|| (texts, options.data_seed()));
    Ok(())
}

/// All texts, one after the other in one allocation, so that they lie where one thread has written
/// them. A clone is another allocation.
#[derive(Debug, Clone)]
pub(crate) struct Texts(Replica);

impl Texts {
    /// Writes the texts, on the calling thread.
    pub(crate) fn build() -> Self {
        let &(texts, first) = WHICH.get().unwrap_or(&(0, 0));
        let mut bytes = Vec::with_capacity(texts * BYTES);
        for number in (first..).take(texts) {
            bytes.extend_from_slice(text(number).as_bytes());
        }
        Self(Replica::from(bytes))
    }

    /// Returns whether `body` begins with one of them. None of them ever matches, so every text is compared.
    pub(crate) fn any_begins(&self, body: &str) -> bool {
        let body = body.as_bytes();
        self.0
            .read(|texts| texts.chunks_exact(BYTES).any(|text| body.starts_with(text)))
    }
}

/// The text with this number.
fn text(number: u64) -> String {
    format!("{number:020}").repeat(BYTES / 20)
}
