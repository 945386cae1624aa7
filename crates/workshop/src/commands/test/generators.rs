//! k6 and Locust: their scripts, their exit codes, and whether all three generators agree.

use evidence::agreement::{MEDIAN_WITHIN, THROUGHPUT_WITHIN};
use evidence::interrupt::Interrupt;
use evidence::outcome::Outcome;
use evidence::server::{Launch, Server};

use super::check::{Check, Failure, Need, failed};
use super::context::Context;

pub(super) const SCRIPTS: Check = Check {
    name: "scripts",
    about: "k6 and Locust, with two workers too, tell faults and wrong answers from a cure",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: |context| {
        context.run(
            context
                .cargo(&["test", "--package", "evidence", "--test", "generator_tools"])
                .args(["--", "--ignored", "--test-threads", "1"])
                .env("K6", context.tools.k6())
                .env("LOCUST", context.tools.in_venv("locust")),
        )
    },
};

pub(super) const EXIT_CODES: Check = Check {
    name: "exit-codes",
    about: "the same scripts fail on chapter 1's problem and pass on its solution",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: exit_codes,
};

/// What both tools end with when a threshold is missed.
const MISSED: i32 = 99;

fn exit_codes(context: &Context<'_>) -> Result<(), Failure> {
    let program = context.server("chapter1")?;
    for (variant, expected) in [("problem", MISSED), ("solution", 0)] {
        let server = start(&program, variant, context.interrupt)?;
        let host = format!("http://{}", server.service());
        let mut k6 = context.command(context.tools.k6(), &["run", "--quiet", "-e", "DURATION=6"]);
        k6.args(["-e", &format!("HOST={host}"), "k6/chapter1.js"]);
        let arguments = ["-f", "locust/chapter1.py", "--headless", "--only-summary"];
        let mut locust = context.command(context.tools.in_venv("locust"), &arguments);
        locust.args(["-t", "10s", "--host", &host]);
        for (name, tool) in [("k6", &mut k6), ("Locust", &mut locust)] {
            let code = context.code(tool)?;
            if code != Some(expected) {
                return failed(format!(
                    "{name} on the {variant} ended with {code:?} instead of {expected}"
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn start(
    program: &std::path::Path,
    variant: &str,
    interrupt: &Interrupt,
) -> Result<Server, Failure> {
    let launch = Launch {
        program,
        variant,
        data_seed: 0,
        processors: &[],
    };
    Server::start(&launch, interrupt).or_else(|error| failed(error.to_string()))
}

pub(super) const AGREE: Check = Check {
    name: "agreement",
    about: "at a load that saturates none, all generators agree on throughput and median latency",
    needs: &[Need::K6, Need::Locust],
    stands_alone: true,
    run: agree,
};

fn agree(context: &Context<'_>) -> Result<(), Failure> {
    let embedded = figures(context, "embedded")?;
    for with in ["k6", "locust"] {
        let other = figures(context, with)?;
        for (what, ours, theirs, allowed) in [
            ("throughput", embedded.0, other.0, THROUGHPUT_WITHIN),
            ("median latency", embedded.1, other.1, MEDIAN_WITHIN),
        ] {
            let apart = (theirs / ours - 1.0).abs();
            context.note(&format!(
                "{what}: embedded {ours:.2}, {with} {theirs:.2}, {:.1} % apart",
                apart * 100.0
            ))?;
            // A ratio that is no number agrees with nothing.
            if apart.is_nan() || apart > allowed {
                return failed(format!(
                    "{with} gives a {what} of {theirs:.2}, the embedded generator {ours:.2}: more \
                     than {:.0} % apart",
                    allowed * 100.0
                ));
            }
        }
    }
    Ok(())
}

/// Requests a second and median latency in ms on chapter 1's solution.
fn figures(context: &Context<'_>, with: &str) -> Result<(f64, f64), Failure> {
    let mut load = context.own(&["load", "1", "--variant", "solution", "--seconds", "12"]);
    let said = context.output_of(load.args(["--with", with, "--format", "json"]))?;
    let outcome: Outcome = match serde_json::from_str(&said) {
        Ok(outcome) => outcome,
        Err(error) => {
            return failed(format!(
                "`load --with {with}` printed something else: {error}"
            ));
        }
    };
    let median = outcome.latency.at(0.5).unwrap_or(f64::NAN);
    Ok((outcome.requests_per_second, median))
}
