//! Pace at which incidents are recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::incidents::kind::Kind;

/// Shortest time between two recorded incidents.
const SHORTEST: Duration = Duration::from_secs(60);

/// Longest time for which a kind that comes again and again has to wait.
const LONGEST: Duration = Duration::from_secs(3600);

/// Pace at which incidents are recorded: at most one a minute, and one kind after another less and less often. The
/// beginning of a trouble that lasts all night thus stays among the last ten.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    last: Option<Duration>,
    /// Time of the last incident of each kind, and for how long the next has to wait.
    kinds: BTreeMap<Kind, (Duration, Duration)>,
}

impl Pace {
    /// Returns whether an incident of this kind is recorded at `now`, a time since the start.
    pub(crate) fn allows(&mut self, now: Duration, kind: Kind) -> bool {
        if self.last.is_some_and(|last| now < last + SHORTEST) {
            return false;
        }
        let wait = match self.kinds.get(&kind) {
            Some((last, wait)) if now < *last + *wait => return false,
            Some((last, wait)) if now < *last + *wait * 2 => (*wait * 2).min(LONGEST),
            _ => SHORTEST,
        };
        self.last = Some(now);
        self.kinds.insert(kind, (now, wait));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the minutes at which an incident is recorded, of one that comes `every` so many seconds.
    fn recorded(every: u64, hours: u64) -> Vec<u64> {
        let mut pace = Pace::default();
        let times = (0..hours * 3600).step_by(usize::try_from(every).unwrap());
        let recorded = times.filter(|time| pace.allows(Duration::from_secs(*time), Kind::Late));
        recorded.map(|time| time / 60).collect()
    }

    #[test]
    fn what_comes_every_ten_minutes_is_recorded_each_time() {
        assert_eq!(recorded(600, 2).len(), 12);
    }

    #[test]
    fn what_comes_all_the_time_is_recorded_less_and_less_often() {
        assert_eq!(recorded(1, 4), [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    }

    #[test]
    fn kinds_share_the_minute_and_wait_apart() {
        let mut pace = Pace::default();
        let at = Duration::from_secs;
        assert!(pace.allows(at(0), Kind::Late));
        assert!(!pace.allows(at(59), Kind::Memory));
        assert!(pace.allows(at(60), Kind::Memory));
        assert!(pace.allows(at(120), Kind::Late));
    }
}
