//! Formats in which a profile can be written.
#![allow(missing_docs)]

use std::time::Duration;

use await_profile::{
    AwaitProfiler, FlamegraphError, FlamegraphOptions, Frames, Profile, ProfileOptions,
    differential,
};
use tokio::time::sleep;

async fn naps() {
    sleep(Duration::from_millis(5)).await;
}

async fn profile(requests: usize) -> Profile {
    let profiler = AwaitProfiler::new().armed();
    for _ in 0..requests {
        let profiler = profiler.clone();
        tokio::spawn(async move {
            loop {
                profiler.wrap("GET /nap", naps()).await;
            }
        });
    }
    let mut few = Vec::new();
    // A machine that stands still answers hardly a sample, and lets no request end.
    while few.len() < 3 {
        let options = ProfileOptions::lasting(Duration::from_millis(200)).captures_per_second(1000);
        let profile = profiler.profile(options).await.unwrap();
        let summary = profile.summary();
        let is_enough = match requests {
            0 => summary.samples.idle > 10,
            _ => summary.samples.waiting > 10 && summary.mean_latency_ms.is_some(),
        };
        if is_enough {
            return profile;
        }
        few.push(summary);
    }
    panic!("{few:?}");
}

/// The text below the heading, whose lines break where a column ends.
fn captions(svg: &str) -> String {
    let mut captions = Vec::new();
    for caption in svg.split("<text class=\"caption\"").skip(1) {
        let (_, text) = caption.split_once('>').unwrap();
        captions.push(text.split('<').next().unwrap());
    }
    captions.join(" ")
}

#[tokio::test]
async fn the_picture_says_what_it_shows_and_what_it_does_not() {
    let profile = profile(10).await;
    let options = FlamegraphOptions::default().title("Naps & more");
    let svg = profile.flamegraph(&options).unwrap();
    for text in [
        "Naps &amp; more",
        "GET /nap",
        "outputs::naps (tests/outputs.rs:",
        "tokio::time::Sleep",
        "a second of 1000 budgeted",
        "requests in flight",
        " samples ready, ",
        "not shown: inside tasks and sets without inherit(), blocking calls",
        " a request, by Little",
        "% of the requests in flight: ",
    ] {
        let is_there = svg.contains(text) || captions(&svg).contains(text);
        assert!(is_there, "no {text:?} in\n{svg}");
    }
    let all = profile.flamegraph(&options.frames(Frames::All)).unwrap();
    assert!(all.contains("tokio::runtime::time::") && !svg.contains("tokio::runtime::time::"));
}

#[tokio::test]
async fn there_is_no_picture_of_nothing() {
    let profile = profile(0).await;
    assert!(matches!(
        profile.flamegraph(&FlamegraphOptions::default()),
        Err(FlamegraphError::Empty)
    ));
    assert_eq!(profile.folded(Frames::Own), "");
    let summary = profile.summary();
    let json = serde_json::to_string(&summary).unwrap();
    assert!(json.contains("\"mean_in_flight\":0.0"), "{json}");
    assert_eq!(summary.samples.of_requests(), 0);
    assert!(
        summary.samples.idle > 10 && summary.mean_latency_ms.is_none(),
        "{summary:?}"
    );
}

#[tokio::test]
async fn a_difference_is_drawn_of_two_profiles() {
    let (before, after) = (profile(2).await, profile(20).await);
    let svg = differential(
        "Before & after",
        &before.folded(Frames::Own),
        &after.folded(Frames::Own),
    )
    .unwrap();
    assert!(
        svg.contains("Before &amp; after") && svg.contains("outputs::naps"),
        "{svg}"
    );
}

#[tokio::test]
async fn the_summary_is_data() {
    let profile = profile(10).await;
    let json = serde_json::to_value(profile.summary()).unwrap();
    assert_eq!(json["routes"][0]["name"], "GET /nap");
    assert_eq!(json["budget_per_second"], 1000);
    let samples = json["samples"].as_object().unwrap();
    let sum: u64 = samples
        .iter()
        .filter(|(name, _)| *name != "missed")
        .map(|(_, n)| n.as_u64().unwrap())
        .sum();
    let moments =
        json["true_rate_per_second"].as_f64().unwrap() * json["seconds"].as_f64().unwrap();
    assert!((sum as f64 - moments).abs() < 0.5, "{json}");
}
