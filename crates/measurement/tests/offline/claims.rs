//! A list of claims that cannot be judged is refused, in a sentence that names the remedy.

use measurement::claim::{Bound, Claims, Metric, Quantity, Role};

use crate::chapter_file::{CHAPTER_1, damaged, damaged_at, line_of, parse, with};

/// What an author reads who replaces a place in chapter 1, and that the line is named.
#[track_caller]
fn refused(from: &str, to: &str, words: &[&str]) {
    let line = damaged(from, to, words);
    let claims = line_of("[[claims]]")..line_of("[check]");
    assert!(claims.contains(&line), "line {line}");
}

#[test]
fn a_chapter_claims_an_effect_and_a_root_cause() {
    for role in ["effect", "root_cause"] {
        let none = format!("no claim has the role `{role}`");
        let from = format!("role = \"{role}\"");
        let words = [&none, "add one to [[claims]]"];
        refused(&from, "role = \"guardrail\"", &words);
    }
}

#[test]
fn the_effect_says_of_what_where_and_how_much() {
    for without in [
        "ratio = \">= 300\"\n",
        "scenario = \"saturated\"\n",
        "quantity = \"requests_per_second\"\n",
    ] {
        let first = "the first effect needs";
        refused(without, "", &[first, "`scenario`", "`quantity`", "`>= 2`"]);
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
    let needs = "the root cause `database_calls_in_flight_peak` needs";
    let words = [needs, "`problem`", "`solution`"];
    refused("problem = \"<= 1\"\n", "", &words);
    let mut lines = CHAPTER_1.split_inclusive('\n');
    let line = lines.find(|line| line.starts_with("solution = "));
    refused(line.unwrap(), "", &words);
}

/// A claim without a bound would always hold.
#[test]
fn a_claim_that_nothing_can_break_is_refused() {
    for (role, quantity, lacking) in [
        ("effect", "p99_ms", "`ratio`"),
        ("guardrail", "process_threads", "`solution`"),
    ] {
        let claim = format!("[[claims]]\nrole = \"{role}\"\nquantity = \"{quantity}\"\n");
        let error = with(CHAPTER_1, "[check]", &format!("{claim}\n[check]"));
        let error = error.expect_err("a claim without a bound went unnoticed");
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        for word in [quantity, lacking] {
            assert!(error.what.contains(word), "{error}");
        }
    }
}

#[test]
fn a_claim_says_what_is_measured() {
    let quantity = "quantity = \"database_calls_in_flight_peak\"\n";
    refused(quantity, "", &["no `quantity`", "say what is measured"]);
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
    let ratio = "ratio = \">= 300\"";
    let words = ["unknown key `at_least`", "`ratio`"];
    damaged_at(ratio, ratio, "at_least = 300", &words);
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
