//! Errors of a chapter's run as the sentence and the exit code of a command.

use children::Interrupt;
use course::bench::rounds::RunError;
use course::bench::server::ServerError;
use terminal::exit::CliError;

/// Turns an error of a run into a sentence and an exit code. A run that did not end says nothing about the code.
pub(crate) fn of_run(error: &RunError, interrupt: &Interrupt) -> CliError {
    if error.is_interrupt() || interrupt.is_set() {
        return CliError::interrupted();
    }
    match error {
        RunError::Server(ServerError::Ended { stderr, .. }) if stderr.contains(NO_VARIANT) => {
            CliError::usage(no_variant(stderr))
        }
        RunError::Outside(why) => CliError::bad(why),
        _ => CliError::invalid(error),
    }
}

/// Name of the argument with which a chapter's server refuses a variant. Only that program knows
/// its variants.
const NO_VARIANT: &str = "'[VARIANT]'";

/// The server's refusal as one line. It names the variants, and the one that was meant perhaps.
fn no_variant(refusal: &str) -> String {
    let mut lines = Vec::new();
    for line in refusal.lines() {
        let line = line.trim().trim_matches(['[', ']']);
        if !line.is_empty() && !line.starts_with("For more information") {
            lines.push(line.trim_start_matches("error: "));
        }
    }
    lines.join("; ").replace(NO_VARIANT, "--variant")
}
