//! Plots say what they show in words too, and are the same for the same figures.

use crate::{captured::keep, support::record};
use measurement::record::Round;
use report::plots::{PlotError, Series, latency_by_percentile, throughput_of_rounds, time_series};

fn percentiles() -> Result<String, PlotError> {
    let record = record();
    let rounds = record.effect_rounds();
    latency_by_percentile("Latency by percentile, 1,000 users", &rounds)
}

fn throughput(rounds: &[Round]) -> Result<String, PlotError> {
    throughput_of_rounds("Throughput of every round", rounds, "saturated")
}

fn connections() -> Vec<Series> {
    let line = |name: &str, slope: f64| Series {
        name: name.into(),
        points: (0..200)
            .map(|i| (f64::from(i) / 10.0, slope * f64::from(i)))
            .collect(),
    };
    vec![line("accepted", 12.5), line("finished", 11.0)]
}

#[test]
fn latency_is_labelled_with_units_and_percentiles() {
    let svg = percentiles().unwrap();
    keep("percentiles.svg", &svg);
    for part in [
        "Latency by percentile, 1,000 users",
        "90 %",
        "99.9 %",
        "ms",
        "percentile of the answers",
        "<title>",
        "<desc>",
        "prefers-color-scheme:dark",
    ] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn throughput_tells_equal_servers_from_the_compared() {
    let svg = throughput(&record().rounds).unwrap();
    keep("throughput.svg", &svg);
    for part in [
        "requests per second (log scale)",
        "equal servers (A/A)",
        "problem",
        "solution",
        "14",
    ] {
        assert!(svg.contains(part), "{part}");
    }
    assert!(
        svg.contains("<circle") && svg.contains("<rect"),
        "marks differ, not colours alone"
    );
}

#[test]
fn rounds_of_other_scenarios_are_not_in_the_plot() {
    // The last two rounds ran the published load.
    let rounds = record().rounds;
    let own = throughput(&rounds[..14]).unwrap();
    assert_eq!(throughput(&rounds).unwrap(), own);
    assert!(own.contains("Requests per second of 14 rounds"));
}

#[test]
fn anything_can_be_shown_over_time() {
    let svg = time_series("Connections of the server", "connections", &connections()).unwrap();
    keep("time_series.svg", &svg);
    for part in ["time (s)", "connections", "accepted", "finished"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn the_same_figures_give_the_same_bytes() {
    assert_eq!(percentiles(), percentiles());
    assert_eq!(throughput(&record().rounds), throughput(&record().rounds));
    let series = || time_series("t", "v", &connections()).unwrap();
    assert_eq!(series(), series());
}

#[test]
fn nothing_to_show_is_said() {
    assert_eq!(
        latency_by_percentile("t", &[]),
        Err(PlotError::Empty("t".into()))
    );
    assert_eq!(
        throughput(&[]),
        Err(PlotError::Empty("Throughput of every round".into()))
    );
    let nonsense = Series {
        name: "n".into(),
        points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
    };
    assert_eq!(
        time_series("t", "v", &[nonsense]),
        Err(PlotError::Empty("t".into()))
    );
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
    let _ = latency_by_percentile("odd", &rounds);
    let _ = throughput(&record.rounds);
    let one = Series {
        name: "one".into(),
        points: vec![(0.0, 0.0)],
    };
    time_series("one point", "v", &[one]).unwrap();
    let single = [record.rounds[10].clone()];
    throughput(&single).unwrap();
}
