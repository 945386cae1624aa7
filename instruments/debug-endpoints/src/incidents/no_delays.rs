//! Replacement for `delays` on systems that do not tell for how long a thread waited for a CPU.

use crate::incidents::condition::Cpu;

#[derive(Debug, Default)]
pub(crate) struct Delays(bool);

impl Delays {
    pub(crate) fn begin(&mut self) {
        self.0 = true;
    }

    pub(crate) fn end(&mut self) -> Cpu {
        if std::mem::take(&mut self.0) {
            Cpu::Had
        } else {
            Cpu::NotAsked
        }
    }
}
