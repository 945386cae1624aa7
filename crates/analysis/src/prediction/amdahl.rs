//! Amdahl's law.

use super::Prediction;
use measurement::figures;
use measurement::law::Amdahl;

pub(super) fn predicted(law: &Amdahl, share: f64) -> Prediction {
    let ratio = 1.0 / (1.0 - share);
    Prediction {
        problem: None,
        solution: None,
        ratio,
        sentence: format!(
            "{} of the problem's CPU time goes into {}; without it the service answers \
             1 / (1 - {share:.3}) = {} times as many requests.",
            figures::percent(share),
            law.removes,
            figures::ratio(ratio)
        ),
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
        };
        let predicted = super::predicted(&law, 0.8);
        assert!((predicted.ratio - 5.0).abs() < 1e-9);
        assert!(
            predicted.sentence.contains("80 %"),
            "{}",
            predicted.sentence
        );
        assert!((super::predicted(&law, 0.0).ratio - 1.0).abs() < 1e-9);
    }
}
