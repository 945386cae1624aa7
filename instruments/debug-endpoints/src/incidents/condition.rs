//! A condition that may become an incident. It must be confirmed at a time when the service has a CPU.

/// Supply of CPUs to the threads that run requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cpu {
    /// Nobody has measured it.
    NotAsked,
    /// They had a CPU when they wanted one, or this system does not tell.
    Had,
    /// For most of the time they had no CPU, because of other programs.
    Lacked,
}

/// State of a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Condition {
    /// In its range.
    #[default]
    Usual,
    /// Out of its range, and not confirmed.
    Suspected {
        /// True if the machine was seen to have no CPU for it.
        has_lacked_cpu: bool,
    },
    /// Out of its range, which was counted as an incident.
    Out {
        /// True if it was recorded, too.
        is_recorded: bool,
    },
}

/// Change that an observation made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Nothing,
    /// An incident began.
    Begins,
    /// An incident goes on that is not recorded yet.
    GoesOn,
    /// An incident is over.
    Ends,
    /// It is out of its range, and the machine has no CPU for the service. Reported once.
    LacksCpu,
}

impl Condition {
    /// Takes an observation, and returns what it changed.
    pub(crate) fn observe(&mut self, is_out: bool, cpu: Cpu) -> Change {
        let lacks_cpu = cpu == Cpu::Lacked;
        let (next, change) = match (*self, is_out) {
            (Self::Usual | Self::Suspected { .. }, false) => (Self::Usual, Change::Nothing),
            (Self::Out { .. }, false) => (Self::Usual, Change::Ends),
            (Self::Usual, true) => (Self::suspected(), Change::Nothing),
            (Self::Suspected { has_lacked_cpu }, true) if lacks_cpu => {
                let change = if has_lacked_cpu {
                    Change::Nothing
                } else {
                    Change::LacksCpu
                };
                let has_lacked_cpu = true;
                (Self::Suspected { has_lacked_cpu }, change)
            }
            (Self::Suspected { .. }, true) => (Self::Out { is_recorded: false }, Change::Begins),
            (Self::Out { is_recorded: false }, true) => (*self, Change::GoesOn),
            (Self::Out { is_recorded: true }, true) => (*self, Change::Nothing),
        };
        *self = next;
        change
    }

    /// Returns the state of a condition that was out of its range once.
    pub(crate) fn suspected() -> Self {
        Self::Suspected {
            has_lacked_cpu: false,
        }
    }

    /// Records that its incident was recorded.
    pub(crate) fn set_recorded(&mut self) {
        *self = Self::Out { is_recorded: true };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_to_be_out_twice_with_a_cpu() {
        let mut condition = Condition::default();
        assert_eq!(condition.observe(true, Cpu::NotAsked), Change::Nothing);
        assert_eq!(condition.observe(true, Cpu::Lacked), Change::LacksCpu);
        assert_eq!(condition.observe(true, Cpu::Lacked), Change::Nothing);
        assert_eq!(condition.observe(true, Cpu::Had), Change::Begins);
        assert_eq!(condition.observe(true, Cpu::Had), Change::GoesOn);
        condition.set_recorded();
        assert_eq!(condition.observe(true, Cpu::Lacked), Change::Nothing);
        assert_eq!(condition.observe(false, Cpu::Had), Change::Ends);
        assert_eq!(condition.observe(true, Cpu::Had), Change::Nothing);
        assert_eq!(condition.observe(false, Cpu::Had), Change::Nothing);
    }
}
