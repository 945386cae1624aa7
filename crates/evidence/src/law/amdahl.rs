//! Amdahl's law.

use serde::{Deserialize, Serialize};

use super::Prediction;
use crate::figures;

/// Amdahl's law (G. M. Amdahl, "Validity of the single processor approach to achieving large
/// scale computing capabilities", AFIPS Spring Joint Computer Conference, 1967): work of which a
/// share `p` vanishes becomes 1/(1 - p) times as fast.
///
/// The share is read off the problem's own CPU profile: the samples that have one of `frames` on
/// their stack. It is a lower bound of what the cure saves. Checks and register saves that the work
/// needs are inlined around it, and on a processor that executes out of order the rest waits for
/// results of the work, or is sampled in its stead: all of that counts as rest, and goes as well.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Amdahl {
    /// What the cure removes: parts of the names of frames.
    pub frames: Vec<String>,
    /// What that is, in a few words for a sentence: `cloning, allocating and freeing`.
    pub removes: String,
    /// How far the measured gain may fall short of the predicted one, as a share of that. What is
    /// gained beyond is told, and no fault.
    #[serde(default)]
    pub within: Option<f64>,
}

impl Amdahl {
    pub(super) fn predicted(&self, share: f64) -> Prediction {
        let ratio = 1.0 / (1.0 - share);
        Prediction {
            problem: None,
            solution: None,
            ratio,
            sentence: format!(
                "{} of the problem's processor time goes into {}; without it the service answers \
                 1 / (1 - {share:.3}) = {} times as many requests.",
                figures::percent(share),
                self.removes,
                figures::ratio(ratio)
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_bounds_the_gain() {
        let law = Amdahl {
            frames: vec!["malloc".to_owned()],
            removes: "allocating".to_owned(),
            within: None,
        };
        let predicted = law.predicted(0.8);
        assert!((predicted.ratio - 5.0).abs() < 1e-9);
        assert!(
            predicted.sentence.contains("80 %"),
            "{}",
            predicted.sentence
        );
        assert!((law.predicted(0.0).ratio - 1.0).abs() < 1e-9);
    }
}
