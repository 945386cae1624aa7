//! Verdicts of `check` and `prove` on the chapters. A wrong contract or count fails a test. The tests only print an
//! effect that a busy machine hides, or a run that it spoils.

use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use course::measurement::claim::Quantity;
use serde_json::Value;

use crate::results::described;
use crate::{cargo, chapters, json, tell, turn};

/// Chapters that a push grades: a lock, the reactor's CPU and blocking threads. The others compile more crates, and the
/// contracts of all ten are plain tests.
const OF_A_PUSH: [u32; 3] = [1, 5, 8];

#[test]
#[ignore = "takes minutes"]
fn exercises_fail_as_shipped_and_solutions_pass() {
    grade(|number| OF_A_PUSH.contains(&number));
}

#[test]
#[ignore = "takes minutes"]
fn weekly_the_other_exercises_fail_and_solutions_pass() {
    grade(|number| !OF_A_PUSH.contains(&number));
}

fn grade(wanted: impl Fn(u32) -> bool) {
    let _turn = turn();
    let mut wrong = Vec::new();
    for (number, folder) in chapters().into_iter().filter(|&(number, _)| wanted(number)) {
        // Whoever works on an exercise has the problem's code graded, which is what is shipped.
        let code = |variant: &str| {
            let text = fs::read_to_string(folder.join(format!("src/{variant}.rs"))).unwrap();
            let code = text.lines().filter(|line| !line.starts_with("//!"));
            code.map(str::to_owned).collect::<Vec<_>>()
        };
        let is_shipped = code("exercise") == code("problem");
        let shipped = if is_shipped { "exercise" } else { "problem" };
        for (variant, wanted) in [(shipped, "failed"), ("solution", "passed")] {
            let said = ask(&format!("check {number} --variant {variant}"), |_| ());
            wrong.extend(judge(&format!("chapter {number}'s {variant}"), &said, wanted).err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
#[ignore = "takes a minute"]
fn chapter_1_is_proved() {
    let _turn = turn();
    judge("chapter 1's proof", proof(), "proved").unwrap();
}

/// Counts alone: an emulated machine's times mean nothing.
#[test]
#[ignore = "needs QEMU (apt-get install qemu-system-x86) and a kernel (cargo workshop setup kernel)"]
fn weekly_emulated_numa_nodes_prove_locality() {
    let _turn = turn();
    let said = ask("prove 7 --numa-nodes 4", |_| ());
    judge("chapter 7 on four nodes", &said, "proved").unwrap();
}

/// The baselines beside it are programs in Go and nginx itself.
#[test]
#[ignore = "needs nginx (apt-get install nginx-light), Go, and minutes"]
fn weekly_chapter_4_is_proved_before_nginx() {
    let _turn = turn();
    let said = ask("prove 4 --upstream nginx", |_| ());
    judge("chapter 4 before nginx", &said, "proved").unwrap();
}

#[test]
#[ignore = "needs a PostgreSQL server, whose address POSTGRES holds: postgres://shop@localhost/postgres"]
fn weekly_chapter_9_is_proved_on_postgres() {
    let _turn = turn();
    let address = std::env::var("POSTGRES").expect("POSTGRES has the server's address");
    let said = ask(&format!("prove 9 --database {address}"), |_| ());
    judge("chapter 9 on PostgreSQL", &said, "proved").unwrap();
}

/// Returns the answer of chapter 1's proof, which runs once. The browser test opens its report.
pub(crate) fn proof() -> &'static Value {
    static PROOF: OnceLock<Value> = OnceLock::new();
    PROOF.get_or_init(|| ask("prove 1", |_| ()))
}

fn verdict(said: &Value) -> &str {
    // A run that did not reach its end has no answer.
    said["verdict"].as_str().unwrap_or("invalid")
}

/// A busy machine may make a run invalid, which says nothing, and is repeated.
const ATTEMPTS: u32 = 3;

/// Runs `cargo workshop WORDS`, after `with` has changed the command, and returns its answer. It runs the optimised
/// build, as readers do: the build of these tests would limit the load itself.
pub(crate) fn ask(words: &str, with: impl Fn(&mut Command)) -> Value {
    let mut said = Value::Null;
    for _ in 0..ATTEMPTS {
        let mut cargo = cargo(&format!("workshop {words}"));
        with(&mut cargo);
        said = json(&mut cargo);
        if !said.is_null() {
            described(&said);
        }
        if verdict(&said) != "invalid" {
            break;
        }
    }
    said
}

/// Tells the verdict on `what`, and is an error if neither the code nor a busy machine can give it.
fn judge(what: &str, said: &Value, wanted: &str) -> Result<(), String> {
    let verdict = verdict(said);
    let line = format!(
        "{what} is {verdict}: {}",
        said["reason"].as_str().unwrap_or_default()
    );
    tell(&line);
    let claims = said["claims"].as_array().into_iter().flatten();
    let missed: Vec<&Value> = claims.filter(|claim| claim["holds"] == false).collect();
    let missed_root_cause = missed.iter().any(|claim| claim["role"] == "root_cause");
    let broken = said["contract"]["broken"].as_array();
    let is_fine = match verdict {
        _ if broken.is_some_and(|broken| !broken.is_empty()) => false,
        "invalid" => true,
        "failed" if wanted == "failed" => missed_root_cause,
        "failed" | "refuted" | "inconclusive" => {
            wanted != "failed" && !missed.into_iter().any(is_counted)
        }
        other => other == wanted,
    };
    if is_fine { Ok(()) } else { Err(line) }
}

/// Returns whether a claim that does not hold is about a count, which noise does not change.
fn is_counted(claim: &Value) -> bool {
    let quantity = claim["quantity"].as_str().unwrap_or_default().to_owned();
    let is_guardrail = claim["role"] == "guardrail" && claim["ratio"].is_null();
    claim["role"] == "root_cause" || is_guardrail && Quantity::from(quantity).is_counted()
}

#[test]
fn contracts_and_counts_decide_and_effects_are_told() {
    let claim = |role: &str, quantity: &str, ratio: Option<f64>| serde_json::json!({ "role": role, "quantity": quantity, "ratio": ratio, "holds": false });
    let cause = claim("root_cause", "calls_peak", None);
    let threads = claim("guardrail", "threads_peak", None);
    let effect = claim("effect", "requests_per_second", Some(0.8));
    for (verdict, missed, breaks, of_exercise, of_solution) in [
        ("passed", vec![], false, false, true),
        ("failed", vec![&cause], false, true, false),
        ("failed", vec![&cause, &effect], false, true, false),
        ("failed", vec![&threads], false, false, false),
        ("failed", vec![&effect], false, false, true),
        ("failed", vec![], false, false, true),
        ("failed", vec![&cause], true, false, false),
        ("invalid", vec![&cause], false, true, true),
        ("invalid", vec![], true, false, false),
    ] {
        let broken = if breaks {
            vec!["a write is lost"]
        } else {
            vec![]
        };
        let said = serde_json::json!({
            "verdict": verdict, "claims": missed, "contract": { "broken": broken },
        });
        assert_eq!(
            judge("an exercise", &said, "failed").is_ok(),
            of_exercise,
            "{said}"
        );
        assert_eq!(
            judge("a solution", &said, "passed").is_ok(),
            of_solution,
            "{said}"
        );
    }
    assert!(judge("nothing", &Value::Null, "passed").is_ok());
}
