//! How often a proof is wrong, by run: every chapter's again and again beside a busy core.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use bench::{environment, provenance};
use measurement::figures;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::claims::prove;
use super::context::{Context, beside_a_busy_core, median, note, noted};
use super::scratch;
use crate::chapters::Chapter;
use crate::exit::CliError;
use crate::files;

/// Proofs of each chapter.
const OF_EACH: usize = 20;
/// What decides what a proof says, beside the chapter: results of other code do not count.
const DECIDING: [&str; 6] = [
    "Cargo.lock",
    "crates/analysis/src",
    "crates/bench/src",
    "crates/lab/src",
    "crates/loadgen/src",
    "crates/measurement/src",
];
/// The verdicts, the right ones of a claim that is true first.
const VERDICTS: [&str; 4] = ["proved", "inconclusive", "invalid", "refuted"];

/// One proof: a line of the file.
#[derive(Debug, Serialize, Deserialize)]
struct Proved {
    code: String,
    chapter: u32,
    verdict: String,
    reason: String,
    /// The effect.
    ratio: Option<f64>,
    seconds: f64,
}

/// Goes on where an earlier run of the same code ended.
pub(super) fn many(context: &Context<'_>) -> Result<(), CliError> {
    let file = context.folder.join("proofs.jsonl");
    let mut codes = BTreeMap::new();
    for chapter in &context.chapters {
        codes.insert(chapter.number, code_of(context, chapter)?);
    }
    let mut all: Vec<Proved> = noted(&file)?;
    all.retain(|one| codes.get(&one.chapter) == Some(&one.code));
    beside_a_busy_core(|| {
        while let Some(chapter) = next(context, &all) {
            let said = prove(context, chapter, "--no-profiles")?;
            let proved = proved(chapter.number, &codes[&chapter.number], &said);
            note(&file, &proved)?;
            all.push(proved);
            // For whoever stops it before the end.
            files::replace(&context.folder.join("proofs.md"), table(&all))?;
        }
        Ok(())
    })
}

/// The same for the same code of chapter and workshop.
fn code_of(context: &Context<'_>, chapter: &Chapter) -> Result<String, CliError> {
    let own = ["chapter.toml", "src"].map(|part| chapter.folder.join(part));
    let shared = DECIDING.map(|part| context.workshop.root().join(part));
    let parts = [own.as_slice(), &shared].concat();
    scratch::hash_of(&parts).map_err(CliError::because("the code cannot be read"))
}

/// The chapter with the fewest proofs: a run that is stopped has some of each.
fn next<'a>(context: &'a Context<'_>, all: &[Proved]) -> Option<&'a Chapter> {
    let count = |chapter: &&Chapter| {
        let of_it = all.iter().filter(|one| one.chapter == chapter.number);
        of_it.count()
    };
    let fewest = context.chapters.iter().min_by_key(count)?;
    (count(&fewest) < OF_EACH).then_some(fewest)
}

fn proved(chapter: u32, code: &str, said: &Value) -> Proved {
    let claims = said["claims"].as_array();
    let effect = claims.and_then(|all| all.iter().find(|claim| claim["role"] == "effect"));
    let text = |key: &str| said[key].as_str().map(str::to_owned);
    Proved {
        code: code.to_owned(),
        chapter,
        // A run that could not be carried through says nothing.
        verdict: text("verdict").unwrap_or_else(|| "invalid".to_owned()),
        reason: text("reason").unwrap_or_default(),
        ratio: effect.and_then(|effect| effect["ratio"].as_f64()),
        seconds: said["seconds"].as_f64().unwrap_or_default(),
    }
}

/// What the book includes, as `flamegraphs/README.md` says.
fn table(all: &[Proved]) -> String {
    let mut text = "| chapter | proofs | *proved* | *inconclusive* | *invalid* | *refuted* | effect, median | \
                    lowest | highest |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    let mut chapters: Vec<u32> = all.iter().map(|one| one.chapter).collect();
    chapters.sort_unstable();
    chapters.dedup();
    for chapter in chapters {
        let of_it = || all.iter().filter(|one| one.chapter == chapter);
        let mut cells = vec![chapter.to_string(), of_it().count().to_string()];
        cells.extend(VERDICTS.map(|word| {
            let such = of_it().filter(|one| one.verdict == word);
            such.count().to_string()
        }));
        let ratios: Vec<f64> = of_it().filter_map(|one| one.ratio).collect();
        let lowest = ratios.iter().copied().reduce(f64::min);
        let highest = ratios.iter().copied().reduce(f64::max);
        let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), figures::ratio);
        cells.extend([median(ratios), lowest, highest].map(shown));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    let date = provenance::now();
    let machine = environment::observe(true, "dev", BTreeMap::new());
    let _ = writeln!(
        text,
        "\n*{} proofs beside a program that keeps a CPU busy all the time. Run by `cargo workshop test \
         many-proofs` on {} (UTC): {}.*",
        all.len(),
        date.get(..10).unwrap_or(&date),
        machine.in_a_line()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_its_column() {
        let proof = |chapter, verdict: &str, ratio| Proved {
            code: "a".to_owned(),
            chapter,
            verdict: verdict.to_owned(),
            reason: String::new(),
            ratio,
            seconds: 40.0,
        };
        let all = [
            proof(2, "invalid", None),
            proof(1, "proved", Some(980.0)),
            proof(1, "inconclusive", Some(900.0)),
            proof(1, "proved", Some(990.0)),
        ];
        let table = table(&all);
        let rows: Vec<&str> = table.lines().skip(2).take(2).collect();
        assert_eq!(rows[0], "| 1 | 3 | 2 | 1 | 0 | 0 | 980 | 900 | 990 |");
        assert_eq!(rows[1], "| 2 | 1 | 0 | 0 | 1 | 0 | - | - | - |");
    }

    #[test]
    fn an_effect_is_read_from_what_a_proof_says() {
        let said = serde_json::json!({
            "verdict": "proved",
            "reason": "faster",
            "seconds": 46.0,
            "claims": [{"role": "root_cause", "ratio": null}, {"role": "effect", "ratio": 983.6}],
        });
        let one = proved(1, "a", &said);
        assert_eq!((&*one.verdict, one.ratio), ("proved", Some(983.6)));
        assert_eq!(proved(1, "a", &Value::Null).verdict, "invalid");
    }
}
