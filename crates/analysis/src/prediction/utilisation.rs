//! The utilisation law, and the queue before a busy CPU.

use super::Prediction;
use measurement::figures;
use measurement::law::Utilisation;

/// `None` where the work has to be measured and was not. `cpu_per_request` is the CPU time
/// of problem and solution, in seconds.
pub(super) fn predicted(
    law: &Utilisation,
    users: u32,
    cpu_per_request: Option<(f64, f64)>,
) -> Option<Prediction> {
    let measured = || cpu_per_request.map(|(problem, _)| 1e3 * problem);
    let work_ms = law.work_ms.or_else(measured)?;
    let ratio = f64::from(users);
    let queue = ratio * work_ms;
    Some(Prediction {
        problem: None,
        solution: None,
        ratio,
        sentence: format!(
            "A CPU gives at most {} requests per second of {} each, wherever it works; but \
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ping_waits_behind_everybody() {
        let law = Utilisation {
            work_ms: Some(4.0),
            scenario: None,
        };
        let predicted = super::predicted(&law, 32, None).expect("4 ms are known");
        assert!((predicted.ratio - 32.0).abs() < 1e-9);
        let said = predicted.sentence;
        assert!(said.contains("250") && said.contains("128 ms"), "{said}");
    }
    #[test]
    fn work_that_is_not_known_is_measured() {
        let law = Utilisation {
            work_ms: None,
            scenario: Some("one".to_owned()),
        };
        assert_eq!(super::predicted(&law, 64, None), None);
        let predicted = super::predicted(&law, 64, Some((0.01, 0.02))).expect("10 ms");
        assert!(predicted.sentence.contains("640 ms"), "{predicted:?}");
    }
}
