//! What commands print with `--format json`: the one place that reads their keys.

use evidence::chapter_file::ChapterFile;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::failure::{Failure, failed};
use super::judge::{Answer, Broken, Verdict};

/// What `check N` says.
pub(super) fn grade(said: &Value, chapter: &ChapterFile) -> Result<Answer, Failure> {
    let mut answer = verdict(said, "kind")?;
    if answer.verdict == Verdict::Bad {
        // The reason begins with the name of what did not hold.
        let is = |name: &str| answer.reason.starts_with(name);
        let kept = "the exercise kept ";
        answer.broken = vec![if is(&chapter.mechanism.name) {
            Broken::RootCause
        } else if chapter.check.limits.iter().any(|limit| is(&limit.name)) {
            Broken::Count
        } else if is(chapter.effect.metric.label()) || is(kept) {
            Broken::Ratio
        } else {
            Broken::Contract
        }];
    }
    Ok(answer)
}

/// What `prove N` says.
pub(super) fn proof(said: &Value, chapter: &ChapterFile) -> Result<Answer, Failure> {
    let mut answer = verdict(said, "verdict")?;
    let claim = &chapter.mechanism;
    let users = chapter.mechanism_users();
    let breaks = |side: &str, limit: evidence::claim::Bound| {
        let reading = said["mechanism"][side].as_f64();
        reading.is_some_and(|reading| !limit.holds(reading, users))
    };
    if breaks("problem", claim.problem) || breaks("solution", claim.solution) {
        answer.broken.push(Broken::RootCause);
    }
    let limits = said["price"]["limits"].as_array();
    let exceeds = |found: &Value| found["solution"].as_f64() > found["limit"]["at_most"].as_f64();
    if limits.is_some_and(|limits| limits.iter().any(exceeds)) {
        answer.broken.push(Broken::Count);
    }
    if answer.verdict == Verdict::Bad && answer.broken.is_empty() {
        answer.broken.push(Broken::Ratio);
    }
    Ok(answer)
}

/// What `prove` and `check` say of an emulated machine, where only counts are taken.
pub(super) fn counted(said: &Value) -> Result<Answer, Failure> {
    let mut answer = verdict(said, "verdict")?;
    if answer.verdict == Verdict::Bad {
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
pub(super) fn script(said: &Value) -> Result<(Option<i32>, u64), Failure> {
    Ok((part(said, "exit_code")?, part(said, "wrong_answers")?))
}

/// The commits of `steps`, by chapter.
pub(super) fn steps(said: &Value) -> Result<Vec<(u32, Vec<String>)>, Failure> {
    let branches: Vec<Value> = parsed(said)?;
    let of_branch = |branch: &Value| {
        let steps: Vec<Value> = part(branch, "steps")?;
        let commits = steps.iter().map(|step| part(step, "commit"));
        Ok((part(branch, "chapter")?, commits.collect::<Result<_, _>>()?))
    };
    branches.iter().map(of_branch).collect()
}

fn verdict(said: &Value, key: &str) -> Result<Answer, Failure> {
    if said.is_null() {
        return Ok(Answer {
            verdict: Verdict::Invalid,
            word: "invalid".to_owned(),
            reason: "the run could not be carried through".to_owned(),
            broken: Vec::new(),
        });
    }
    let word: String = part(said, key)?;
    let verdict = match &*word {
        "passed" | "proved" => Verdict::Good,
        "failed" | "refuted" | "inconclusive" | "not shown" => Verdict::Bad,
        "invalid" => Verdict::Invalid,
        _ => return failed(format!("`{word}` is no verdict")),
    };
    Ok(Answer {
        verdict,
        word,
        reason: part(said, "reason")?,
        broken: Vec::new(),
    })
}

fn part<T: DeserializeOwned>(said: &Value, key: &str) -> Result<T, Failure> {
    parsed(&said[key]).or_else(|_| failed(format!("the JSON has lost its `{key}`")))
}

fn parsed<T: DeserializeOwned>(said: &Value) -> Result<T, Failure> {
    T::deserialize(said).or_else(|error| failed(format!("the JSON is another: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chapters::Workshop;

    fn chapter(number: u32) -> ChapterFile {
        let chapter = Workshop::find().unwrap().chapter(number).unwrap();
        chapter.file().unwrap()
    }

    #[test]
    fn a_failed_grade_says_what_broke() {
        let eighth = chapter(8);
        let root_cause = format!("{}: 9, but", eighth.mechanism.name);
        let count = format!("{}: 9, but", eighth.check.limits[0].name);
        let ratio = format!("{}: 0.8", eighth.effect.metric.label());
        for (reason, broken) in [
            (&*root_cause, Broken::RootCause),
            (&count, Broken::Count),
            (&ratio, Broken::Ratio),
            ("the exercise kept 80 % of the", Broken::Ratio),
            ("the exercise: 3 answers were wrong", Broken::Contract),
        ] {
            let said = serde_json::json!({ "kind": "failed", "reason": reason });
            let answer = grade(&said, &eighth).unwrap();
            assert_eq!(answer.broken, [broken], "{reason}");
        }
    }

    #[test]
    fn a_proof_is_broken_by_its_counts_before_its_ratios() {
        let first = chapter(1);
        let users = f64::from(first.mechanism_users());
        let broken = |verdict: &str, problem: f64, solution: f64| {
            let counts = serde_json::json!({ "problem": problem, "solution": solution });
            let said = serde_json::json!({ "verdict": verdict, "reason": "", "mechanism": counts });
            proof(&said, &first).unwrap().broken
        };
        assert_eq!(broken("proved", 1.0, users), []);
        assert_eq!(broken("refuted", 1.0, users), [Broken::Ratio]);
        assert_eq!(broken("invalid", 1.0, users), []);
        assert_eq!(broken("refuted", 2.0, users), [Broken::RootCause]);
        assert_eq!(broken("refuted", 1.0, 1.0), [Broken::RootCause]);
    }

    #[test]
    fn a_key_that_is_gone_or_another_verdict_is_a_failure() {
        for said in [
            serde_json::json!({ "verdict": "proved" }),
            serde_json::json!({ "verdict": "fine", "reason": "" }),
        ] {
            assert!(counted(&said).is_err(), "{said}");
        }
    }
}
