//! The book: it builds without a warning, and works in a real browser.

use std::ffi::OsString;
use std::path::PathBuf;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use crate::tools;

pub(super) const BUILDS: Check = Check {
    name: "book",
    about: "mdbook builds the book without a warning",
    needs: &[Need::Mdbook],
    stands_alone: true,
    run: |context| {
        let mut mdbook = context.command(context.tools.mdbook(), &["build", "--dest-dir"]);
        context.run(mdbook.arg(context.folder.join("book")))?;
        let said = context.log_text();
        match said
            .lines()
            .find(|line| line.contains("WARN") || line.contains("ERROR"))
        {
            Some(line) => failed(format!("mdbook warned: {line}")),
            None => Ok(()),
        }
    },
};

pub(super) const BROWSER: Check = Check {
    name: "browser",
    about: "every page of the book and the proof's report work in headless Chromium",
    needs: &[Need::Mdbook, Need::Locust, Need::Browser],
    stands_alone: true,
    run: |context| {
        (BUILDS.run)(context)?;
        let mut options = vec![
            "--book".into(),
            context.folder.join("book").into_os_string(),
        ];
        for report in reports(context)? {
            options.extend(["--report".into(), report.into_os_string()]);
        }
        browser(context, &options)
    },
};

pub(super) const BROWSER_SELF_TEST: Check = Check {
    name: "browser-self-test",
    about: "the browser test finds the damage that is done to a small site",
    needs: &[Need::Locust, Need::Browser],
    stands_alone: true,
    run: |context| browser(context, &["--self-test".into()]),
};

/// The reports of proofs on this machine; the check `proof` has just written one.
fn reports(context: &Context<'_>) -> Result<Vec<PathBuf>, Failure> {
    let folder = context.workshop.state().join("reports");
    let found: Vec<PathBuf> = std::fs::read_dir(&folder)
        .map(|entries| {
            let reports = entries
                .flatten()
                .map(|entry| entry.path().join("report.html"));
            reports.filter(|file| file.is_file()).collect()
        })
        .unwrap_or_default();
    if found.is_empty() {
        return failed(format!(
            "there is no report in {}: run `cargo workshop prove 1` first",
            folder.display()
        ));
    }
    Ok(found)
}

/// The driver lives in the same virtual environment as Locust.
fn browser(context: &Context<'_>, options: &[OsString]) -> Result<(), Failure> {
    let Some(chromium) = tools::browser() else {
        return failed("the browser has gone");
    };
    let python = context.tools.in_venv("python");
    let mut command = context.command(python, &["tests/browser/check.py"]);
    command
        .args(options)
        .arg("--chromium")
        .arg(chromium)
        .env("PYTHONDONTWRITEBYTECODE", "1");
    context.run(&mut command)
}
