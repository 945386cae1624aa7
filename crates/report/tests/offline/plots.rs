//! Plots say what they show in words too, and are the same for the same figures.

use crate::{captured::has, support::record};
use measurement::record::Round;
use report::measuring;
use report::plots::{
    Direction, Marks, PlotError, Point, Series, bystanders_by_percentile, heat_map,
    latency_by_percentile, throughput_of_rounds, time_series, xy,
};

fn percentiles() -> Result<String, PlotError> {
    let record = record();
    let rounds = record.effect_rounds();
    latency_by_percentile("Latency by percentile, 1,000 users", &rounds)
}

fn throughput(rounds: &[Round]) -> Result<String, PlotError> {
    throughput_of_rounds("Throughput of every round", rounds, "saturated")
}

fn connections() -> Result<String, PlotError> {
    let line = |name: &str, slope: f64| Series {
        name: name.into(),
        points: (0..200)
            .map(|i| (f64::from(i) / 10.0, slope * f64::from(i)))
            .collect(),
    };
    let lines = [line("accepted", 12.5), line("finished", 11.0)];
    time_series("Connections of the server", "connections", &lines)
}

#[test]
fn plots_are_labelled_and_the_same_for_the_same_figures() {
    type Drawing = fn() -> Result<String, PlotError>;
    let plots: [(Drawing, &[&str]); 3] = [
        (
            percentiles,
            &[
                "Latency by percentile, 1,000 users",
                "90 %",
                "99.9 %",
                "ms",
                "percentile of the answers",
                "<title>",
                "<desc>",
                "prefers-color-scheme:dark",
            ],
        ),
        // Marks differ, not colours alone.
        (
            || throughput(&record().rounds),
            &[
                "requests per second (log scale)",
                "Requests per second of 18 rounds",
                "equal servers (A/A)",
                "problem",
                "solution",
                "14",
                "<circle",
                "<rect",
            ],
        ),
        (
            connections,
            &["time (s)", "connections", "accepted", "finished"],
        ),
    ];
    for (draw, parts) in plots {
        let svg = draw().unwrap();
        has(&svg, parts);
        assert_eq!(draw(), Ok(svg));
    }
}

#[test]
fn rounds_of_other_scenarios_are_not_in_the_plot() {
    // The last two rounds ran the published load.
    let rounds = record().rounds;
    assert_eq!(throughput(&rounds), throughput(&rounds[..18]));
}

#[test]
fn figures_close_together_have_labels_too() {
    let mut record = record();
    for round in &mut record.rounds {
        round.outcome.requests_per_second = 248.0;
        round.outcome.latency.quantiles = vec![(0.0, 247.0), (0.5, 256.0), (0.99, 275.0)];
    }
    let latency = latency_by_percentile("close", &record.effect_rounds());
    for (svg, labels) in [
        (latency, ["100 ms", "200 ms"]),
        (throughput(&record.rounds), ["100", "200"]),
    ] {
        let svg = svg.unwrap();
        has(&svg, &labels);
        assert!(!svg.contains("log scale"), "{svg}");
    }
}

#[test]
fn nothing_to_show_is_said() {
    let nonsense = Series {
        name: "n".into(),
        points: vec![(f64::NAN, 1.0), (1.0, f64::INFINITY)],
    };
    for (drawn, title) in [
        (latency_by_percentile("t", &[]), "t"),
        (
            bystanders_by_percentile("nobody beside", &record().effect_rounds()),
            "nobody beside",
        ),
        (throughput(&[]), "Throughput of every round"),
        (time_series("t", "v", std::slice::from_ref(&nonsense)), "t"),
        (heat_map("t", &[nonsense]), "t"),
    ] {
        assert_eq!(drawn, Err(PlotError::Empty(title.into())));
    }
}

#[test]
fn a_heat_map_is_fuller_where_many_answers_lie() {
    let mut points = vec![(0.1, 200.0); 9];
    points.extend([(0.1, 2.0), (6.0, 2.0), (3.0, f64::NAN), (3.0, 0.0)]);
    let name = "problem".to_owned();
    let svg = heat_map("Pings", &[Series { name, points }]).unwrap();
    let filled = |opacity: &str| {
        let fill = format!("opacity=\"{opacity}\" fill=\"#D55E00\"");
        svg.matches(&fill).count()
    };
    // One of the full ones is the mark of the key.
    assert_eq!((filled("1"), filled("0.29")), (2, 2), "{svg}");
    has(&svg, &["from 2.00 ms to 200 ms"]);
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

#[test]
fn anything_against_anything_is_labelled_where_its_marks_are() {
    let label = |value: f64| format!("{value} u");
    let direction = |name: &str| Direction {
        name: name.into(),
        label: &label,
        is_told: true,
    };
    let line = |name: &str, points: &[(f64, f64)]| Marks {
        name: name.into(),
        points: points.iter().map(|(x, y)| Point::at(*x, *y)).collect(),
    };
    let series = [
        line("problem", &[(1.0, 4.0), (64.0, 900.0)]),
        line("solution", &[(1.0, 4.0), (64.0, 5.0)]),
        line("no figure", &[(2.0, f64::NAN)]),
    ];
    let long = "a name, and much more than a phone has room for at an axis";
    let draw = |up: &str, series: &[Marks], is_joined| {
        xy(
            "By users",
            &direction("users"),
            &direction(up),
            series,
            is_joined,
        )
    };
    let svg = draw(long, &series, true).unwrap();
    let parts = [
        "By users",
        "users (log scale)",
        ">\na name (log scale)",
        "\n64 u",
        "users: 1 u to 64 u",
        "solution",
    ];
    has(&svg, &parts);
    // What has no figure is not in the key, and few times apart is from 0.
    assert!(!svg.contains("\nno figure"));
    let mut flat = [line("solution", &[(1.0, 4.0), (2.0, 5.0)])];
    let svg = draw("ms", &flat, false).unwrap();
    has(&svg, &["\n0\n"]);
    assert!(!svg.contains("log scale") && !svg.contains("\nat least"));
    flat[0].points[1].is_at_least = true;
    has(&draw("ms", &flat, false).unwrap(), &["\nat least"]);
    let nothing = draw("ms", &series[2..], false);
    assert!(matches!(nothing, Err(PlotError::Empty(_))));
}

#[test]
fn a_table_of_a_study_has_a_plot() {
    let table = "| workers | pieces | median | longest | throttled |\n| ---: | ---: | ---: | ---: | ---: |\n\
                 | 1 | 482 | 2.0 ms | 2.6 ms | 0 of 50 |\n| 8 | 495 | 4.2 ms | 1.1 s | 50 of 50 |\n";
    let svg = measuring::plot("throttling", table).unwrap();
    assert!(svg.contains("latency: 2.00 ms to 1.10 s, for median, longest."));
    assert!(measuring::plot("throttling", "no table").is_err());
    assert!(measuring::plot("blocking-strategies", table).is_err());
}
