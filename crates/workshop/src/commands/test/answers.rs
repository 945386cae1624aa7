//! What commands print with `--format json`: the one place that reads their keys.

use measurement::claim::Quantity;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::judge::{Answer, Broken};
use crate::exit::{CliError, Exit};

/// What `check N` and `prove N` say: a verdict with the claims that do not hold.
pub(super) fn judged(said: &Value) -> Result<Answer, CliError> {
    let mut answer = verdict(said)?;
    if said.is_null() {
        return Ok(answer);
    }
    let claims: Vec<Value> = part(said, "claims")?;
    let broken = claims.iter().filter(|claim| claim["holds"] == false);
    answer.broken = broken.map(kind).collect();
    let contract = said["contract"]["broken"].as_array();
    if contract.is_some_and(|parts| !parts.is_empty()) {
        answer.broken.push(Broken::Contract);
    }
    if answer.verdict == Exit::Bad && answer.broken.is_empty() {
        // An interval that straddles its bound, or a machine that cannot show the claim.
        answer.broken.push(Broken::Ratio);
    }
    Ok(answer)
}

/// What it takes to break a claim.
fn kind(claim: &Value) -> Broken {
    let ratio = !claim["ratio"].is_null();
    let quantity = claim["quantity"].as_str().unwrap_or_default();
    let is_counted = Quantity::from(quantity.to_owned()).is_counted();
    match claim["role"].as_str() {
        Some("root_cause") => Broken::RootCause,
        Some("guardrail") if !ratio && is_counted => Broken::Count,
        _ => Broken::Ratio,
    }
}

/// What `prove` and `check` say of an emulated machine, where only counts are taken.
pub(super) fn counted(said: &Value) -> Result<Answer, CliError> {
    let mut answer = verdict(said)?;
    if answer.verdict == Exit::Bad {
        answer.broken.push(Broken::RootCause);
    }
    Ok(answer)
}

/// The generators that did not see what the embedded one saw, of `prove N --all-generators`.
pub(super) fn disagreeing(said: &Value) -> Vec<String> {
    let all = said["agreement"].as_array().into_iter().flatten();
    let apart = all.filter(|one| one["agrees"] == false);
    apart.map(|one| one["generator"].to_string()).collect()
}

/// What `load N --with k6` says: the script's exit code, and how many answers were wrong.
pub(super) fn script(said: &Value) -> Result<(Option<i32>, u64), CliError> {
    Ok((part(said, "exit_code")?, part(said, "wrong_answers")?))
}

/// The commits of `steps`, by chapter.
pub(super) fn steps(said: &Value) -> Result<Vec<(u32, Vec<String>)>, CliError> {
    let branches: Vec<Value> = parsed(said)?;
    let of_branch = |branch: &Value| {
        let steps: Vec<Value> = part(branch, "steps")?;
        let commits = steps.iter().map(|step| part(step, "commit"));
        Ok((part(branch, "chapter")?, commits.collect::<Result<_, _>>()?))
    };
    branches.iter().map(of_branch).collect()
}

fn verdict(said: &Value) -> Result<Answer, CliError> {
    if said.is_null() {
        return Ok(Answer {
            verdict: Exit::Invalid,
            word: "invalid".to_owned(),
            reason: "the run could not be carried through".to_owned(),
            broken: Vec::new(),
        });
    }
    let word: String = part(said, "verdict")?;
    let verdict = match &*word {
        "passed" | "proved" => Exit::Good,
        "failed" | "refuted" | "inconclusive" => Exit::Bad,
        "invalid" => Exit::Invalid,
        _ => return Err(CliError::bad(format!("`{word}` is no verdict"))),
    };
    Ok(Answer {
        verdict,
        word,
        reason: part(said, "reason")?,
        broken: Vec::new(),
    })
}

fn part<T: DeserializeOwned>(said: &Value, key: &str) -> Result<T, CliError> {
    parsed(&said[key]).map_err(|_| CliError::bad(format!("the JSON has lost its `{key}`")))
}

fn parsed<T: DeserializeOwned>(said: &Value) -> Result<T, CliError> {
    T::deserialize(said).map_err(|error| CliError::bad(format!("the JSON is another: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// An answer with one claim that does not hold, beside one that does.
    fn said(verdict: &str, role: &str, ratio: Option<f64>) -> Value {
        let missed = json!({ "role": role, "ratio": ratio, "holds": false });
        let kept = json!({ "role": "root_cause", "ratio": null, "holds": true });
        json!({ "verdict": verdict, "reason": "", "claims": [kept, missed] })
    }

    #[test]
    fn a_claim_is_broken_by_what_it_is_made_of() {
        for (role, ratio, broken) in [
            ("root_cause", None, Broken::RootCause),
            ("guardrail", None, Broken::Count),
            ("guardrail", Some(0.8), Broken::Ratio),
            ("effect", Some(2.0), Broken::Ratio),
            ("prediction", Some(64.0), Broken::Ratio),
        ] {
            for verdict in ["failed", "refuted"] {
                let answer = judged(&said(verdict, role, ratio)).unwrap();
                assert_eq!(answer.broken, [broken], "{role}");
            }
        }
    }

    #[test]
    fn a_broken_contract_is_no_matter_of_noise() {
        let mut said = said("failed", "effect", Some(0.5));
        said["contract"] = json!({ "held": ["it compiles"], "broken": ["no write is lost"] });
        let answer = judged(&said).unwrap();
        assert_eq!(answer.broken, [Broken::Ratio, Broken::Contract]);
    }

    #[test]
    fn what_holds_and_is_bad_all_the_same_is_an_effect() {
        let all_hold = json!({ "verdict": "inconclusive", "reason": "", "claims": [] });
        assert_eq!(judged(&all_hold).unwrap().broken, [Broken::Ratio]);
        let proved = json!({ "verdict": "proved", "reason": "", "claims": [] });
        assert_eq!(judged(&proved).unwrap().broken, []);
    }

    #[test]
    fn a_key_that_is_gone_or_another_verdict_is_a_failure() {
        for said in [
            json!({ "verdict": "proved" }),
            json!({ "verdict": "proved", "reason": "" }),
            json!({ "verdict": "fine", "reason": "", "claims": [] }),
        ] {
            assert!(judged(&said).is_err(), "{said}");
        }
    }
}
