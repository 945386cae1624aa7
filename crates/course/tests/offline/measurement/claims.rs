//! A list of claims that cannot be judged is refused, in a sentence that names the remedy.

use course::measurement::claim::{Bound, LoadMetric, Of, Quantity, Role};

use crate::measurement::chapter_file::{CHAPTER_1, damaged, damaged_at, line_of, parse, with};

#[test]
fn claims_that_cannot_be_judged_are_refused_with_what_they_lack() {
    let mut lines = CHAPTER_1.split_inclusive('\n');
    let solution = lines.find(|line| line.starts_with("solution = "));
    let effect = [
        "the first effect needs",
        "`scenario`",
        "`quantity`",
        "`>= 2`",
    ];
    let of_both = "the root cause `database_calls_in_flight_peak` needs";
    let of_both = [of_both, "`problem`", "`solution`"];
    let within = &["`within` is a share"][..];
    for (from, to, words) in [
        (
            "role = \"effect\"",
            "role = \"guardrail\"",
            &["no claim has the role `effect`", "add one to [[claims]]"][..],
        ),
        (
            "role = \"root_cause\"",
            "role = \"guardrail\"",
            &[
                "no claim has the role `root_cause`",
                "add one to [[claims]]",
            ],
        ),
        ("ratio = \">= 0.3 users\"\n", "", &effect),
        ("scenario = \"saturated\"\n", "", &effect),
        ("quantity = \"requests_per_second\"\n", "", &effect),
        // A chapter is about a gain, so an upper bound, or a bound of 0, is a slip of the pen.
        ("\">= 0.3 users\"", "\"<= 300\"", &["effect", "`>= 2`"]),
        ("\">= 0.3 users\"", "\">= 0\"", &["effect", "`>= 2`"]),
        ("problem = \"<= 1\"\n", "", &of_both),
        (solution.unwrap(), "", &of_both),
        (
            "quantity = \"database_calls_in_flight_peak\"\n",
            "",
            &["no `quantity`", "say what is measured"],
        ),
        ("within = 0.1", "within = 95", within),
        ("within = 0.1", "within = 0", within),
        ("within = 0.1", "within = -0.1", within),
        ("within = 0.1", "within = nan", within),
    ] {
        let line = damaged(from, to, words);
        let claims = line_of("[[claims]]")..line_of("[check]");
        assert!(claims.contains(&line), "line {line}");
    }
    let ratio = "ratio = \">= 0.3 users\"";
    let words = ["unknown key `at_least`", "`ratio`"];
    damaged_at(ratio, ratio, "at_least = 300", &words);
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
fn a_further_effect_needs_a_ratio_or_both_bounds() {
    for (bounds, is_enough) in [
        ("ratio = \">= 3\"", true),
        ("problem = \">= 600\"\nsolution = \"<= 200\"", true),
        ("problem = \">= 600\"", false),
        ("solution = \"<= 200\"", false),
    ] {
        let claim = format!("[[claims]]\nrole = \"effect\"\nquantity = \"p99_ms\"\n{bounds}\n");
        let read = with(CHAPTER_1, "[check]", &format!("{claim}\n[check]"));
        assert_eq!(read.is_ok(), is_enough, "{bounds}");
    }
}

#[test]
fn what_a_claim_leaves_out_it_takes_from_the_effect() {
    let file = parse(CHAPTER_1).unwrap();
    assert_eq!(file.claims.root_cause().scenario(), "saturated");
    let predictions: Vec<_> = file.claims.of(Role::Prediction).collect();
    let own = Quantity::Metric(LoadMetric::RequestsPerSecond);
    assert!(predictions.iter().all(|claim| claim.quantity == own));
    let scenarios: Vec<_> = predictions.iter().map(|claim| claim.scenario()).collect();
    assert_eq!(scenarios, ["saturated", "published"]);
    let of_users = Bound {
        of: Of::Users,
        ..Bound::at_least(0.3)
    };
    assert_eq!(file.claims.effect().ratio, Some(of_users));
}
