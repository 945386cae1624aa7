//! `cargo workshop test`: everything that CI checks, a line a check.

mod answers;
mod book;
mod check;
mod claims;
mod comparisons;
mod context;
mod counts;
mod faults;
mod grades;
mod judge;
mod own_service;
mod postgres;
mod profile;
mod proofs;
mod scratch;
mod sentences;
mod steps;

use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use self::check::{Check, Need};
use self::context::Context;
use self::counts::Counts;
use crate::chapters::Workshop;
use crate::ctrl_c;
use crate::exit::{CliError, Exit};

/// What `cargo workshop setup` installs, where a check needs some of it.
const TOOLS: Check = Check::new("tools", "`setup` finds or installs all", |context| {
    context.run(&mut context.own("setup"))
});

/// Cheap checks first. The grades come last, since they leave no server as it was.
const CHECKS: &[Check] = &[
    Check::new("format", "rustfmt would change nothing", |context| {
        context.run(&mut context.cargo("fmt --all --check"))
    }),
    Check::new("lints", "clippy has nothing to say", |context| {
        let clippy = "clippy --workspace --all-targets -- --deny warnings";
        context.run(&mut context.cargo(clippy))
    }),
    Check::new("documentation", "rustdoc finds no broken link", |context| {
        let mut doc = context.cargo("doc --workspace --no-deps --document-private-items");
        context.run(doc.env("RUSTDOCFLAGS", "--deny warnings"))
    }),
    Check::new("tests", "pass, and documentation's", |context| {
        // Without the examples, which the lints compile and which would take minutes more to link.
        context.run(&mut context.cargo("test --workspace --tests --no-fail-fast"))?;
        // Asked for by `--doc`, the opening comments of exercises would be compiled, too.
        context.run(&mut context.cargo("test --workspace --exclude chapter* --doc"))
    }),
    Check::new("captures", "all is what the records give", |context| {
        context.run(&mut context.own("capture --verify"))
    }),
    Check::new(
        "sentences",
        "of the book say what records say",
        sentences::hold,
    ),
    Check::new("steps", "come out the same twice", steps::same_twice).needs(&[Need::Git]),
    Check::new("compiled-steps", "each step compiles", steps::compile)
        .needs(&[Need::Git])
        .deep(),
    Check::new("pprof", "`go tool pprof` reads a profile", profile::pprof).needs(&[Need::Go]),
    Check::new(
        "own-service",
        "the book's commands run on the shop",
        own_service::commands,
    )
    .needs(&[Need::Go]),
    Check::new("unoptimised", "such a build warns", profile::unoptimised).deep(),
    Check::new("scripts", "of k6 and Locust tell faults", |context| {
        let tests = "test --package bench --test generator_tools";
        // They wait more than they work.
        let mut tests = context.cargo(&format!("{tests} -- --ignored --test-threads 4"));
        tests.env("K6", context.tools.k6());
        context.run(tests.env("LOCUST", context.tools.in_venv("locust")))
    })
    .needs(&[Need::K6, Need::Locust]),
    Check::new("proof", "of the first chapter's claim", claims::proof),
    Check::new("many-proofs", "20 each beside a busy core", proofs::many).deep(),
    Check::new("generators", "prove all, and agree", claims::generators)
        .needs(&[Need::K6, Need::Locust])
        .deep(),
    Check::new("upstream", "claims hold before nginx", claims::upstream)
        .needs(&[Need::Go, Need::Nginx])
        .deep(),
    Check::new("postgres", "proves as the file does", postgres::proof)
        .needs(&[Need::Postgres])
        .deep(),
    Check::new("numa", "four emulated nodes prove locality", claims::numa).needs(&[Need::Machine]),
    Check::new("book", "mdbook builds it without a warning", book::builds).needs(&[Need::Mdbook]),
    Check::new("browser", "book and report work in Chromium", book::browser).needs(&[
        Need::Mdbook,
        Need::Locust,
        Need::Browser,
    ]),
    Check::new("damage", "to a site is seen by `browser`", book::self_test)
        .needs(&[Need::Locust, Need::Browser])
        .deep(),
    Check::new("faults", "and stops leave nothing behind", faults::some),
    Check::new(
        "many-faults",
        "200 stops leave nothing behind",
        faults::many,
    )
    .deep(),
    Check::new(
        "many-comparisons",
        "equal builds are told apart at most twice in 100",
        comparisons::many,
    )
    .deep(),
    Check::new("grades", "exercises fail, solutions pass", grades::once),
    Check::new("many-grades", "20 each beside a busy core", grades::many).deep(),
    Check::new("fixes", "of other kinds pass", grades::fixes).deep(),
    Check::new("cheats", "fail, each for its reason", grades::cheats).deep(),
    Check::new(
        "many-edits",
        "5 of each beside a busy core",
        grades::many_edits,
    )
    .deep(),
];

/// Runs the checks of these names, or lists them. Without a name those that a push waits for, and with
/// `deep` all.
pub(crate) fn run(
    names: &[String],
    chapters: &[u32],
    deep: bool,
    list: bool,
) -> Result<Exit, CliError> {
    let is_chosen = |check: &&Check| match names {
        [] => list || deep || !check.deep,
        names => names.iter().any(|name| check.name.starts_with(&**name)),
    };
    let chosen: Vec<&Check> = CHECKS.iter().filter(is_chosen).collect();
    let unknown = |name: &&String| !CHECKS.iter().any(|check| check.name.starts_with(&**name));
    if let Some(name) = names.iter().find(unknown) {
        return Err(CliError::usage(format!(
            "there is no check `{name}`; `cargo workshop test --list` lists them"
        )));
    }
    if list {
        for check in chosen {
            let when = if check.deep { " (--deep)" } else { "" };
            println!("{:<16} {}{when}", check.name, check.about);
        }
        return Ok(Exit::Good);
    }
    let workshop = Workshop::find()?;
    let interrupt = ctrl_c::watch();
    let chapters = workshop.chosen(chapters)?;
    let context = Context::new(&workshop, &interrupt, chapters)?;
    let mut counts = Counts::default();
    let tools = chosen.iter().any(|check| check.needs_setup());
    for check in tools.then_some(&TOOLS).into_iter().chain(chosen) {
        report(check, &context, &mut counts);
        if interrupt.is_set() {
            return Err(CliError::new(
                Exit::Interrupted,
                format!("interrupted in `{}`; what ran is not counted", check.name),
            ));
        }
    }
    println!("\n{counts}");
    Ok(if counts.are_good() {
        Exit::Good
    } else {
        Exit::Bad
    })
}

fn report(check: &Check, context: &Context<'_>, counts: &mut Counts) {
    // In CI a tool that is missing is a failure. A reader may do without: its checks are skipped.
    let in_ci = std::env::var("CI").is_ok_and(|ci| !matches!(&*ci, "" | "0" | "false"));
    let began = Instant::now();
    // Seen in a terminal only.
    let spinner = ProgressBar::new_spinner().with_message(check.name);
    spinner.enable_steady_tick(Duration::from_millis(250));
    let missing = check.missing(&context.tools);
    let ended = match &missing {
        Some(missing) => Err(CliError::bad(missing)),
        None => context
            .begin(check.name)
            .and_then(|()| (check.run)(context)),
    };
    spinner.finish_and_clear();
    let told = context.take_told();
    counts.told += told.len();
    let seconds = began.elapsed().as_secs_f64();
    let line = |word: &str, rest: &str| {
        println!("{word:<5} {:<16} {seconds:7.1} s  {rest}", check.name);
    };
    match ended {
        Ok(()) => {
            counts.passed += 1;
            line("ok", &told.join(", "));
        }
        Err(error) if error.exit == Exit::Interrupted => {}
        Err(why) if !in_ci && (missing.is_some() || check.name == TOOLS.name) => {
            counts.skipped += 1;
            line("skip", &why.to_string());
        }
        Err(why) => {
            counts.fail(check.name, &why);
            line("FAIL", &told.join(", "));
            println!("{why}\n{}", context.excerpt());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (place, check) in CHECKS.iter().enumerate() {
            assert!(CHECKS[..place].iter().all(|other| other.name != check.name));
        }
    }
}
