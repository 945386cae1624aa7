//! Plots of odd figures, and of none. Plots of sound figures are committed, and another test derives them
//! again.

use crate::support::record;
use course::measurement::record::Round;
use course::report::measuring::{self, PLOTTED};
use course::report::plots::{
    Of, Series, by_percentile, heat_map, throughput_of_rounds, time_series,
};

fn throughput(rounds: &[Round]) -> Option<String> {
    throughput_of_rounds("Throughput of every round", rounds, "saturated")
}

#[test]
fn nothing_to_show_is_no_plot() {
    let nonsense = Series {
        name: "n".into(),
        points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
    };
    for drawn in [
        by_percentile("t", &[], Of::Users),
        by_percentile("t", &record().effect_rounds(), Of::Bystanders),
        throughput(&[]),
        time_series("t", "v", std::slice::from_ref(&nonsense)),
        heat_map("t", &[nonsense]),
    ] {
        assert_eq!(drawn, None);
    }
}

#[test]
fn odd_figures_draw_or_are_left_out_but_never_panic() {
    let mut record = record();
    for (index, odd) in [f64::NAN, f64::INFINITY, 0.0, -1.0, 1e-300, 1e300]
        .into_iter()
        .enumerate()
    {
        record.rounds[2 + index].outcome.requests_per_second = odd;
        record.rounds[2 + index].outcome.latency.quantiles =
            vec![(odd, odd), (0.5, odd), (1.0, odd), (2.0, 1.0)];
    }
    let rounds: Vec<&Round> = record.rounds.iter().collect();
    let _ = by_percentile("odd", &rounds, Of::Users);
    let _ = throughput(&record.rounds);
    let one = Series {
        name: "one".into(),
        points: vec![(0.0, 0.0)],
    };
    time_series("one point", "v", &[one]).unwrap();
    let single = [record.rounds[10].clone()];
    throughput(&single).unwrap();
}

#[test]
fn a_table_that_lacks_what_its_plot_shows_has_none() {
    for name in PLOTTED {
        for table in [
            "no table",
            "| a | b | c | d |\n| --- | --- | --- | --- |\n| 1 | x | y | z |\n",
        ] {
            assert!(measuring::plot(name, table).is_none(), "{name}: {table}");
        }
    }
}
