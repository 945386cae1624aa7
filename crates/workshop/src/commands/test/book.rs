//! The book: it builds without a warning, and works in a real browser.

use std::ffi::OsString;

use super::context::Context;
use crate::exit::CliError;
use crate::tools;

pub(super) fn builds(context: &Context<'_>) -> Result<(), CliError> {
    let mut mdbook = context.command(context.tools.mdbook(), "build --dest-dir");
    context.run(mdbook.arg(context.folder.join("book")))?;
    let said = context.log_text();
    let warns = |line: &&str| line.contains("WARN") || line.contains("ERROR");
    match said.lines().find(warns) {
        Some(line) => Err(CliError::bad(format!("mdbook warned: {line}"))),
        None => Ok(()),
    }
}

/// Every page, and the reports of the proofs that were made here: the check `proof` makes one.
pub(super) fn browser(context: &Context<'_>) -> Result<(), CliError> {
    builds(context)?;
    let mut options = vec!["--book".into(), context.folder.join("book").into()];
    for chapter in &context.chapters {
        let reports = context.workshop.state().join("reports");
        let report = reports.join(chapter.package()).join("report.html");
        if report.is_file() {
            options.extend(["--report".into(), report.into_os_string()]);
        }
    }
    if options.len() == 2 {
        return Err(CliError::bad("there is no report: cargo workshop prove 1"));
    }
    check(context, &options)
}

pub(super) fn self_test(context: &Context<'_>) -> Result<(), CliError> {
    check(context, &["--self-test".into()])
}

/// The driver lives in the same virtual environment as Locust.
fn check(context: &Context<'_>, options: &[OsString]) -> Result<(), CliError> {
    let Some(chromium) = tools::browser() else {
        return Err(CliError::bad("the browser has gone"));
    };
    let python = context.tools.in_venv("python");
    let mut command = context.command(python, "tests/browser/check.py --chromium");
    command.arg(chromium).args(options);
    context.run(command.env("PYTHONDONTWRITEBYTECODE", "1"))
}
