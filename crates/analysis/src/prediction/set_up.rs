//! What is set up for every request instead of once.

use super::Prediction;
use measurement::figures;

/// From the CPU time a request of problem and solution, in seconds.
pub(super) fn predicted(problem: f64, solution: f64) -> Prediction {
    let ratio = problem / solution;
    let micros = |seconds: f64| format!("{} µs", figures::count((seconds * 1e6).round()));
    Prediction {
        problem: None,
        solution: None,
        ratio,
        sentence: format!(
            "With one user the exchange alone takes {} of CPU time, and the set-up for \
             each request {} more: sharing what is set up answers {} times as many.",
            micros(solution),
            micros(problem - solution),
            figures::ratio(ratio)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_up_of_nine_exchanges_costs_a_factor_of_ten() {
        let predicted = predicted(0.001, 0.000_1);
        assert!((predicted.ratio - 10.0).abs() < 1e-9);
        let said = predicted.sentence;
        assert!(said.contains("100 µs") && said.contains("900 µs"), "{said}");
    }
}
