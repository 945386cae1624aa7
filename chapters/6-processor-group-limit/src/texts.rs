//! The data set: the texts that no body may begin with.

use lab::{DataSet, Options};

/// Bytes of a text: 20 digits, 32 times.
const BYTES: usize = 640;

// ANCHOR: texts
/// All texts, in memory. Clones share them.
#[derive(Clone)]
pub(crate) struct Texts(DataSet<String>);

impl Texts {
    /// Builds as many as the command line says, or as fit the machine.
    pub(crate) fn build(options: &Options) -> Result<Self, lab::Error> {
        let first = options.data_seed();
        let last = first + options.texts(BYTES, 1)? as u64;
        Ok(Self(options.data_set((first..last).map(text).collect())))
    }

    /// Returns whether `body` begins with one of them. None of them ever matches, so every text is compared.
    pub(crate) fn any_begins(&self, body: &str) -> bool {
        self.0
            .scan(|texts| texts.iter().any(|text| body.starts_with(text.as_str())))
    }
}
// ANCHOR_END: texts

/// The text with this number.
fn text(number: u64) -> String {
    format!("{number:020}").repeat(BYTES / 20)
}

#[cfg(test)]
impl Texts {
    /// No texts, for tests of what has to do with workers only.
    pub(crate) fn none() -> Self {
        Self(DataSet::default())
    }
}
