//! A list of claims that cannot be judged is refused, in a sentence that names the remedy.

use measurement::claim::{Bound, Claims, Metric, Quantity, Role};

use crate::chapter_file::{CHAPTER_1, damaged, line_of, parse};

/// What an author reads who replaces a place in chapter 1, and that the line is named.
#[track_caller]
fn refused(from: &str, to: &str, words: &[&str]) {
    let error = damaged(from, to);
    for word in words {
        assert!(error.what.contains(word), "{word:?} is not in: {error}");
    }
    let line = error.line.expect("a line");
    let first = line_of(CHAPTER_1, "[[claims]]").expect("claims");
    let last = line_of(CHAPTER_1, "[check]").expect("the next table");
    assert!((first..last).contains(&line), "{error}");
}

#[test]
fn a_chapter_claims_an_effect_and_a_root_cause() {
    refused(
        "role = \"effect\"",
        "role = \"guardrail\"",
        &["no claim has the role `effect`", "add one to [[claims]]"],
    );
    refused(
        "role = \"root_cause\"",
        "role = \"guardrail\"",
        &[
            "no claim has the role `root_cause`",
            "add one to [[claims]]",
        ],
    );
}

#[test]
fn the_effect_says_of_what_where_and_how_much() {
    for without in [
        "ratio = \">= 300\"\n",
        "scenario = \"saturated\"\n",
        "quantity = \"requests_per_second\"\n",
    ] {
        let words = [
            "the first effect needs",
            "`scenario`",
            "`quantity`",
            "`>= 2`",
        ];
        refused(without, "", &words);
    }
}

#[test]
fn an_effect_that_is_no_gain_is_refused() {
    // A chapter is about a gain: a bound from above, of nothing, or of users is a slip of the pen.
    for ratio in ["<= 300", ">= 0", ">= 2 users"] {
        let ratio = format!("ratio = \"{ratio}\"");
        refused("ratio = \">= 300\"", &ratio, &["effect", "`>= 2`"]);
    }
}

#[test]
fn the_root_cause_has_a_bound_for_either_side() {
    let words = [
        "the root cause `database_calls_in_flight_peak` needs",
        "`problem`",
        "`solution`",
    ];
    refused("problem = \"<= 1\"\n", "", &words);
    let line = CHAPTER_1
        .lines()
        .find(|line| line.starts_with("solution = "))
        .unwrap();
    refused(&format!("{line}\n"), "", &words);
}

/// A claim without a bound would always hold.
#[test]
fn a_claim_that_nothing_can_break_is_refused() {
    let further = |claim: &str| {
        let text = CHAPTER_1.replacen("[check]", &format!("{claim}\n[check]"), 1);
        let error = parse(&text).expect_err("a claim without a bound went unnoticed");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        error.what
    };
    let effect = "[[claims]]\nrole = \"effect\"\nquantity = \"p99_ms\"\n";
    let said = further(effect);
    assert!(
        said.contains("p99_ms") && said.contains("`ratio`"),
        "{said}"
    );
    let guardrail = "[[claims]]\nrole = \"guardrail\"\nquantity = \"process_threads\"\n";
    let said = further(guardrail);
    assert!(
        said.contains("process_threads") && said.contains("`solution`"),
        "{said}"
    );
}

#[test]
fn a_claim_says_what_is_measured() {
    refused(
        "quantity = \"database_calls_in_flight_peak\"\n",
        "",
        &["no `quantity`", "say what is measured"],
    );
}

#[test]
fn within_is_a_share() {
    for within in ["95", "0", "-0.1", "nan"] {
        let to = format!("within = {within}");
        refused("within = 0.05", &to, &["`within` is a share"]);
    }
}

#[test]
fn an_unknown_key_of_a_claim_is_placed() {
    let error = damaged("ratio = \">= 300\"", "at_least = 300");
    assert_eq!(error.line, line_of(CHAPTER_1, "ratio = \">= 300\""));
    assert!(error.what.contains("unknown key `at_least`"), "{error}");
    assert!(error.what.contains("`ratio`"), "{error}");
}

#[test]
fn what_a_claim_leaves_out_it_takes_from_the_effect() {
    let file = parse(CHAPTER_1).unwrap();
    assert_eq!(file.claims.root_cause().scenario(), "saturated");
    let predictions: Vec<_> = file.claims.of(Role::Prediction).collect();
    let own = Some(Quantity::Metric(Metric::RequestsPerSecond));
    assert!(predictions.iter().all(|claim| claim.quantity == own));
    let scenarios: Vec<_> = predictions.iter().map(|claim| claim.scenario()).collect();
    assert_eq!(scenarios, ["saturated", "published"]);
    assert_eq!(file.claims.effect().ratio, Some(Bound::at_least(300.0)));
}

#[test]
fn claims_are_written_as_they_are_read() {
    let claims = parse(CHAPTER_1).unwrap().claims;
    let json = serde_json::to_value(&claims).unwrap();
    assert_eq!(json[0]["role"], "root_cause");
    assert_eq!(json[0]["problem"], "<= 1");
    assert_eq!(json[0]["solution"], ">= 0.9 users");
    assert_eq!(json[1]["ratio"], ">= 300");
    assert_eq!(json[3]["within"], 0.05);
    assert_eq!(serde_json::from_value::<Claims>(json).unwrap(), claims);
}
