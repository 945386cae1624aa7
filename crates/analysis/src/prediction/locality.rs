//! The locality mix, and Amdahl's law on top of it.

use super::Prediction;
use measurement::figures;
use measurement::law::Locality;

pub(super) fn predicted(law: &Locality, regions: u32) -> Prediction {
    let regions = regions.max(1);
    let n = f64::from(regions);
    let mean = (1.0 + (n - 1.0) * law.across) / n;
    let rest = 1.0 - law.memory_bound;
    let ratio = 1.0 / (rest + law.memory_bound / mean);
    let sentence = if regions == 1 {
        "With one NUMA node every access is nearby, before and after: no gain.".to_owned()
    } else {
        format!(
            "In {regions} NUMA nodes {} of the accesses go across, so that the mean one takes \
             {mean:.2} times as long as one nearby; with {} of the time spent on memory, 1 / \
             ({rest:.2} + {:.2} / {mean:.2}) = {} times as many answers.",
            figures::percent((n - 1.0) / n),
            figures::percent(law.memory_bound),
            law.memory_bound,
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

#[cfg(test)]
mod tests {
    use super::*;

    const LAW: Locality = Locality {
        memory_bound: 0.7,
        across: 2.0,
    };

    #[test]
    fn the_published_machine_gains_what_the_mix_allows() {
        let predicted = super::predicted(&LAW, 4);
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
        assert!((super::predicted(&LAW, 1).ratio - 1.0).abs() < 1e-9);
        assert!((super::predicted(&LAW, 0).ratio - 1.0).abs() < 1e-9);
        assert!(super::predicted(&LAW, 1).sentence.contains("no gain"));
    }
}
