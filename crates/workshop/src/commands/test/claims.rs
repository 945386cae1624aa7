//! The claims: captures as recorded, and a proof here and now.

use bench::environment::memory_regions;
use serde::Deserialize;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use crate::chapters::Chapter;

pub(super) const CAPTURES: Check = Check {
    name: "captures",
    about: "tables, plots and flamegraphs are what the records give",
    needs: &[],
    stands_alone: false,
    run: |context| context.run(&mut context.own(&["capture", "--verify"])),
};

pub(super) const PROOF: Check = Check {
    name: "proof",
    about: "every chapter's claim is proved on this machine, or what it lacks for it is said",
    needs: &[],
    stands_alone: true,
    run: |context| {
        context
            .chapters
            .iter()
            .try_for_each(|chapter| proof(context, chapter, &[]))
    },
};

pub(super) const UPSTREAM: Check = Check {
    name: "upstream",
    about: "claims about an upstream are proved before nginx, too, with Go and nginx beside them",
    needs: &[Need::Go, Need::Nginx],
    stands_alone: true,
    run: |context| {
        for chapter in &context.chapters {
            if chapter.file()?.yardsticks.is_some() {
                proof(context, chapter, &["--upstream", "nginx"])?;
            }
        }
        Ok(())
    },
};

/// What `prove` ends with when the claim is not shown or refuted.
const NOT_PROVED: i32 = 1;
/// The verdict of a machine that had other things to do. It is no answer, and more rounds would not
/// help: the widest difference of equal servers only grows with their number.
const INVALID: &str = "invalid";
/// The verdict of too few rounds to tell, which more of them may. A claim that is refuted is an answer.
const NOT_SHOWN: &str = "not shown";

/// Proofs of a chapter at most.
const ATTEMPTS: u32 = 3;

/// What every proof says; one that is no answer may lack figures beside it.
#[derive(Debug, Deserialize)]
struct Verdict {
    verdict: String,
    reason: String,
}

/// As much of `prove --format json` as scripts rely on.
#[derive(Debug, Deserialize)]
struct Proof {
    chapter: u32,
    verdict: String,
    reason: String,
    law: Law,
    mechanism: Mechanism,
    effect: Effect,
    generator: Generator,
    environment: serde_json::Map<String, serde_json::Value>,
    #[serde(default)]
    yardsticks: Vec<Yardstick>,
}

#[derive(Debug, Deserialize)]
struct Yardstick {
    requests_per_second: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct Law {
    name: String,
    predicted_ratio: f64,
}

#[derive(Debug, Deserialize)]
struct Mechanism {
    name: String,
    problem: f64,
    solution: f64,
}

#[derive(Debug, Deserialize)]
struct Effect {
    metric: String,
    ratio: f64,
    interval: (f64, f64),
    noise_floor: f64,
}

#[derive(Debug, Deserialize)]
struct Generator {
    name: String,
    cpu_share: Option<f64>,
    users: u32,
}

fn proof(context: &Context<'_>, chapter: &Chapter, options: &[&str]) -> Result<(), Failure> {
    let number = chapter.number.to_string();
    // Such a claim is shown by counting alone; the check `regions` proves it elsewhere.
    let lacks_regions = lacks_regions(chapter)?;
    let (wanted, good) = if lacks_regions {
        (NOT_SHOWN, NOT_PROVED)
    } else {
        ("proved", 0)
    };
    let prove = |pairs: Option<u32>| {
        let mut prove = context.own(&["prove", &number, "--format", "json"]);
        if let Some(pairs) = pairs {
            prove.args(["--pairs", &pairs.to_string()]);
        }
        let (code, said) = context.output(prove.args(options))?;
        match serde_json::from_str::<Verdict>(&said) {
            Ok(verdict) => Ok((code, said, verdict)),
            Err(error) => failed(format!(
                "`prove {number} --format json` ended with code {code:?} and no verdict: {error}"
            )),
        }
    };
    let (mut code, mut said, mut verdict) = prove(None)?;
    let few = chapter.file()?.rounds.pairs;
    let mut pairs = few;
    for _ in 1..ATTEMPTS {
        match verdict.verdict.as_str() {
            word if word == wanted => break,
            INVALID => {}
            NOT_SHOWN => pairs += few,
            _ => break,
        }
        context.note(&format!("{}, {}", verdict.verdict, verdict.reason))?;
        (code, said, verdict) = prove(Some(pairs))?;
    }
    if code != Some(good) {
        return failed(format!(
            "`prove {number}` ended with code {code:?}, {}: {}",
            verdict.verdict, verdict.reason
        ));
    }
    let proof: Proof = match serde_json::from_str(&said) {
        Ok(proof) => proof,
        Err(error) => return failed(format!("`prove --format json` has lost a key: {error}")),
    };
    context.note(&format!("{proof:#?}"))?;
    let (low, high) = proof.effect.interval;
    let sound = proof.chapter == chapter.number
        && proof.verdict == wanted
        && !proof.reason.is_empty()
        && !proof.law.name.is_empty()
        && (proof.law.predicted_ratio > 1.0) != lacks_regions
        && !proof.mechanism.name.is_empty()
        && (proof.mechanism.problem - proof.mechanism.solution).abs() > f64::EPSILON
        && !proof.effect.metric.is_empty()
        && (low..=high).contains(&proof.effect.ratio)
        && proof.effect.noise_floor >= 0.0
        && proof.generator.name == "embedded"
        && proof.generator.cpu_share.is_none_or(|share| share > 0.0)
        && proof.generator.users > 0
        && !proof.environment.is_empty()
        && proof
            .yardsticks
            .iter()
            .all(|one| one.requests_per_second.is_some_and(|rate| rate > 0.0));
    if sound {
        Ok(())
    } else {
        failed("the proof is not what it should be")
    }
}

/// Whether the chapter's claim needs more memory regions than this machine has.
pub(super) fn lacks_regions(chapter: &Chapter) -> Result<bool, Failure> {
    let needed = chapter.file()?.conditions.memory_regions_at_least;
    Ok(memory_regions() < needed)
}
