//! Tests of answers that come after the end of a slice, or not at all.

use serde_json::Value;
use terminal::testing::once_in_three;

use super::project::{Project, Running, has, told};

#[test]
fn a_service_that_stops_answering_fails_its_load_and_is_told_when() {
    let project = Project::new();
    for how in ["--rate 200", "--users 20 --think 0.1"] {
        once_in_three(|| {
            let service = Running::start("--stops-after 300");
            let said = project.run(&format!("load {} --seconds 3 {how}", service.1));
            // It is more than a second if an answer took more than half of one.
            let words = [
                "answers stopped ",
                "99 % over ",
                "waited for more than 1.0 s",
            ];
            (said.code == Some(1) && has(&said, &words), said)
        });
    }
    // Requests in flight are no failure, however many there are.
    let service = Running::start("--delay-ms 900");
    once_in_three(|| {
        let said = project.run(&format!("load {} --seconds 2 --users 50", service.1));
        let words = ["0 failed, 50 unfinished", "median "];
        (said.code == Some(0) && has(&said, &words), said)
    });
}

#[test]
fn a_fifth_of_the_answers_that_comes_seconds_late_is_never_taken_for_equal() {
    let project = Project::new();
    let words = "--get / --rate 300 --metric p90_ms --at-most 8 --format json";
    let base = project.serve("--delay-ms 3");
    let late = project.serve("--delay-ms 3 --late-every 5 --late-ms 3000");
    let said = project.compare(&base, &late, words);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    // A busy machine may leave too few rounds for a verdict.
    assert!(matches!(said.code, Some(1 | 3)), "{said:?}");
    if value["verdict"] == "slower" {
        assert_eq!(value["effect"]["interval"][0], 0.0, "{said:?}");
        let reason = value["reason"].as_str().unwrap();
        assert!(reason.contains("of the change at most 0."), "{said:?}");
    }
    let metrics = value["metrics"].as_array().unwrap();
    let p90 = metrics.iter().find(|one| one["metric"] == "p90_ms");
    assert!(
        p90.is_none_or(|p90| p90["is_change_bound"] == true),
        "{said:?}"
    );
}

#[test]
fn too_little_time_for_a_verdict_is_said_before_the_rounds() {
    let project = Project::new();
    let service = project.serve("--delay-ms 3");
    let said = project.compare(&service, &service, "--get /");
    let sentence = "--at-most 1.00 is too short for the three rounds that a verdict takes";
    let (said_at, begun_at) = (said.err.find(sentence), said.err.find("round  1"));
    assert!(said_at.is_some() && said_at < begun_at, "{said:?}");
    // If other programs leave the generator no CPU, the output says only that.
    assert!(matches!(said.code, Some(1 | 3)), "{said:?}");
    if said.code == Some(1) {
        told(&said, 1, &["inconclusive", "too few rounds"]);
    }
}
