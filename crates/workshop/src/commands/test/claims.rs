//! What chapters claim of their problem and solution, by commands that load servers.

use bench::environment::numa_nodes;
use measurement::law::Law;
use measurement::outcome::MISSED;
use serde_json::Value;

use super::answers;
use super::context::Context;
use super::judge::{self, Judged};
use crate::chapters::Chapter;
use crate::exit::CliError;

/// The first of the chapters: the others' counts are those that `grades` takes.
pub(super) fn proof(context: &Context<'_>) -> Result<(), CliError> {
    let first = context.chapters.first();
    first.map_or(Ok(()), |chapter| prove(context, chapter, "").map(drop))
}

pub(super) fn upstream(context: &Context<'_>) -> Result<(), CliError> {
    for chapter in &context.chapters {
        if chapter.file()?.baselines.is_some() {
            prove(context, chapter, "--upstream nginx")?;
        }
    }
    Ok(())
}

/// A proof, judged, as it was printed.
pub(super) fn prove(
    context: &Context<'_>,
    chapter: &Chapter,
    options: &str,
) -> Result<Value, CliError> {
    let number = chapter.number;
    let (_, said) = context.json(&mut context.own(&format!("prove {number} {options}")))?;
    let answer = answers::judged(&said)?;
    let what = format!("chapter {number}'s proof");
    context.settle(&what, &answer, judge::of_solution(&answer))?;
    Ok(said)
}

/// Counts alone, since an emulated machine's times mean nothing.
pub(super) fn numa(context: &Context<'_>) -> Result<(), CliError> {
    for chapter in &context.chapters {
        if !matches!(chapter.file()?.law, Law::Locality(_)) {
            continue;
        }
        let number = chapter.number;
        let (_, said) =
            context.json(&mut context.own(&format!("prove {number} --numa-nodes 4")))?;
        let answer = answers::counted(&said)?;
        let what = format!("chapter {number} in four nodes");
        context.settle(&what, &answer, judge::of_solution(&answer))?;
    }
    Ok(())
}

/// Seconds that are long enough for the scripts' thresholds to speak.
const LOADED: u32 = 8;

/// Each chapter's proof with k6 and Locust beside it, and what their scripts make of both variants.
pub(super) fn generators(context: &Context<'_>) -> Result<(), CliError> {
    for chapter in &context.chapters {
        let number = chapter.number;
        let said = prove(context, chapter, "--all-generators")?;
        for generator in answers::disagreeing(&said) {
            context.tell(format!("chapter {number}: {generator} saw something else"));
        }
        // On one NUMA node both variants are equally fast: users see no difference.
        let shows = numa_nodes() >= chapter.file()?.conditions.numa_nodes_at_least;
        let of_problem = if shows { MISSED } else { 0 };
        for (variant, code) in [("problem", of_problem), ("solution", 0)] {
            for tool in ["k6", "locust"] {
                script(context, chapter, tool, variant, code)?;
            }
        }
    }
    Ok(())
}

fn script(
    context: &Context<'_>,
    chapter: &Chapter,
    tool: &str,
    variant: &str,
    code: i32,
) -> Result<(), CliError> {
    let number = chapter.number;
    let load = format!("load {number} --with {tool} --variant {variant} --seconds {LOADED}");
    let (_, said) = context.json(&mut context.own(&load))?;
    let (ended, wrong) = answers::script(&said)?;
    let what = format!("{tool} on chapter {number}'s {variant}");
    let reason = format!("code {ended:?} where {code} is right, {wrong} wrong answers");
    match judge::of_script(code, ended, wrong) {
        Judged::Fine => Ok(()),
        Judged::Told => {
            context.tell(format!("{what} missed a threshold"));
            Ok(())
        }
        Judged::Fails => Err(CliError::bad(format!("{what}: {reason}"))),
    }
}
