//! The locality mix, and Amdahl's law on top of it.

use serde::{Deserialize, Serialize};

use super::Prediction;
use crate::figures;

/// Of memory that lies in one of `n` regions, a processor that is anywhere finds 1/n nearby and
/// reaches (n - 1)/n across, where an access takes `across` times as long. So the mean access takes
/// (1 + (n - 1) `across`)/n times as long as one nearby. If all accesses are made nearby, the share
/// `memory_bound` of the time shrinks by that factor, and the rest stays: Amdahl's law.
///
/// With one region both mixes are the same, and the law predicts no gain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Locality {
    /// Share (0 to 1) of the time in which a processor waits for memory, all of it nearby or across.
    pub memory_bound: f64,
    /// How many times as long an access across takes.
    pub across: f64,
}

impl Locality {
    pub(super) fn predicted(&self, regions: u32) -> Prediction {
        let regions = regions.max(1);
        let n = f64::from(regions);
        let mean = (1.0 + (n - 1.0) * self.across) / n;
        let rest = 1.0 - self.memory_bound;
        let ratio = 1.0 / (rest + self.memory_bound / mean);
        let sentence = if regions == 1 {
            "With one memory region every access is nearby, before and after: no gain.".to_owned()
        } else {
            format!(
                "In {regions} memory regions {} of the accesses go across, so that the mean one takes \
                 {mean:.2} times as long as one nearby; with {} of the time spent on memory, 1 / \
                 ({rest:.2} + {:.2} / {mean:.2}) = {} times as many answers.",
                figures::percent((n - 1.0) / n),
                figures::percent(self.memory_bound),
                self.memory_bound,
                figures::ratio(ratio)
            )
        };
        Prediction {
            problem: None,
            solution: None,
            ratio,
            sentence,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Locality = Locality {
        memory_bound: 0.7,
        across: 2.0,
    };

    #[test]
    fn the_published_machine_gains_what_the_mix_allows() {
        let predicted = LAW.predicted(4);
        assert!(
            (predicted.ratio - 1.428_571).abs() < 1e-5,
            "{}",
            predicted.ratio
        );
        assert!(
            predicted.sentence.contains("75 %"),
            "{}",
            predicted.sentence
        );
        assert!(
            predicted.sentence.contains("1.75"),
            "{}",
            predicted.sentence
        );
    }

    #[test]
    fn one_region_gains_nothing() {
        assert!((LAW.predicted(1).ratio - 1.0).abs() < 1e-9);
        assert!((LAW.predicted(0).ratio - 1.0).abs() < 1e-9);
        assert!(LAW.predicted(1).sentence.contains("no gain"));
    }
}
