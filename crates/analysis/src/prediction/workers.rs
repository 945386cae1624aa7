//! Throughput goes with workers until CPUs or memory run out.

use super::Prediction;
use measurement::figures;

/// What the law needs to know of problem and solution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Working {
    /// CPUs that did any work, in each.
    pub cpus: (f64, f64),
    /// CPU time a request, in seconds, in each.
    pub cpu_per_request: (f64, f64),
}

pub(super) fn predicted(working: Working) -> Prediction {
    let (few, many) = working.cpus;
    let dearer = working.cpu_per_request.1 / working.cpu_per_request.0;
    let ratio = many / few / dearer;
    Prediction {
        problem: None,
        solution: None,
        ratio,
        sentence: format!(
            "CPUs that worked: {} of the problem, {} of the solution, which is {} times as \
             many; beside its neighbours a request takes {} times the CPU time, so that {} \
             / {} = {} times as many are answered.",
            figures::count(few),
            figures::count(many),
            figures::ratio(many / few),
            figures::ratio(dearer),
            figures::ratio(many / few),
            figures::ratio(dearer),
            figures::ratio(ratio)
        ),
    }
}

impl Working {
    /// Whether both sides worked on equally many CPUs: then there is nothing to gain here.
    pub(crate) fn is_equal(self) -> bool {
        self.cpus.0 >= self.cpus.1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_the_cpus_answer_twice_as_many_unless_memory_runs_out() {
        let working = |dearer| Working {
            cpus: (1.0, 2.0),
            cpu_per_request: (0.01, 0.01 * dearer),
        };
        let free = predicted(working(1.0));
        assert!((free.ratio - 2.0).abs() < 1e-9);
        let crowded = predicted(working(1.6));
        assert!((crowded.ratio - 1.25).abs() < 1e-9);
        assert!(crowded.sentence.contains("1.6"), "{}", crowded.sentence);
    }
}
