//! The utilisation law, and the queue before a busy processor.

use serde::{Deserialize, Serialize};

use super::Prediction;
use crate::figures;

/// The utilisation law, U = XS (P. J. Denning and J. P. Buzen, "The operational analysis of
/// queueing network models", ACM Computing Surveys 10(3), 1978): `m` processors give at most X =
/// m/S answers a second that take `S` of processor time each, wherever the work is done. So moving
/// the work gains no throughput.
///
/// What it gains is everybody else's wait. With `N` users who ask without a pause there are up to
/// `N` pieces of work in a queue. Where one thread does the work and everything else in the order
/// of arrival, another request waits for all of them, up to NS. Where the work has threads of its
/// own, it waits for the scheduler at most, which is not longer than the piece that runs, S. The
/// prediction is the ratio of the two, N.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Utilisation {
    /// Processor time of one piece of work, in milliseconds, where the chapter's code fixes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_ms: Option<f64>,
    /// Otherwise the setting in which it is measured: the problem's processor time for one request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
}

impl Utilisation {
    /// `None` where the work has to be measured and was not. `cpu_per_request` is the processor time
    /// of problem and solution, in seconds.
    pub(super) fn predicted(
        &self,
        users: u32,
        cpu_per_request: Option<(f64, f64)>,
    ) -> Option<Prediction> {
        let measured = || cpu_per_request.map(|(problem, _)| 1e3 * problem);
        let work_ms = self.work_ms.or_else(measured)?;
        let ratio = f64::from(users);
        let queue = ratio * work_ms;
        Some(Prediction {
            problem: None,
            solution: None,
            ratio,
            sentence: format!(
                "A processor gives at most {} answers a second of {} each, wherever it works; but \
                 with {} another request waits up to {} behind their work, or up to {} beside it: \
                 {} times less.",
                figures::count((1e3 / work_ms).round()),
                figures::milliseconds(work_ms),
                figures::things(users.into(), "user"),
                figures::milliseconds(queue),
                figures::milliseconds(work_ms),
                figures::ratio(ratio)
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_waits_behind_everybody() {
        let law = Utilisation {
            work_ms: Some(4.0),
            setting: None,
        };
        let predicted = law.predicted(32, None).expect("4 ms are known");
        assert!((predicted.ratio - 32.0).abs() < 1e-9);
        let said = predicted.sentence;
        assert!(said.contains("250") && said.contains("128 ms"), "{said}");
    }
    #[test]
    fn work_that_is_not_known_is_measured() {
        let law = Utilisation {
            work_ms: None,
            setting: Some("one".to_owned()),
        };
        assert_eq!(law.predicted(64, None), None);
        let predicted = law.predicted(64, Some((0.01, 0.02))).expect("10 ms");
        assert!(predicted.sentence.contains("640 ms"), "{predicted:?}");
    }
}
