//! `cargo workshop load N --with embedded|k6|locust`.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bench::drivers::{self, k6, locust};
use bench::placement::Placement;
use bench::rounds::{Bench, Event};
use measurement::chapter_file::{ChapterFile, Scenario};
use measurement::figures;
use measurement::load::Arrivals;
use measurement::outcome::{Latency, MISSED, Outcome};

use crate::chapters::Workshop;
use crate::cli::{Format, Load, With};
use crate::compile::Build;
use crate::exit::{CliError, Exit};
use crate::terminal::Terminal;
use crate::tools::Tools;
use crate::{ctrl_c, json};

/// How long a server that runs already may take to accept a connection.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Puts the load of the chapter `number` on one of its variants.
pub(crate) fn run(number: u32, options: &Load) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let file = chapter.file()?;
    let scenario = scenario(number, options, &file)?;
    let interrupt = ctrl_c::watch();
    let placement = Placement::of_chapter(&file);
    let (server, target) = if let Some(host) = &options.host {
        (None, running(host)?)
    } else {
        let build = Build {
            workshop: &workshop,
            chapter: &chapter,
            interrupt: &interrupt,
        };
        let bench = Bench {
            program: &build.server("")?,
            counted: None,
            arguments: &[],
            chapter: &file,
            placement: &placement,
            interrupt: &interrupt,
            observer: &|_| {},
        };
        let server = bench
            .start(&options.variant, &file.load, 0)
            .map_err(|error| CliError::of_run(&error.into(), &interrupt))?;
        let target = server.service();
        (Some(server), target)
    };
    let terminal = Terminal::new();
    terminal.show(Event::Begins(1, 1, &options.variant));
    let show = |progress| terminal.show(Event::Runs(progress));
    let mut load = file.load_of(&scenario);
    if let Some(per_second) = options.rate {
        load.arrivals = Arrivals::Open { per_second };
    }
    let outcome = match options.with {
        With::Embedded => {
            let settings = loadgen::Settings {
                cpus: &placement.generator,
                interrupt: &interrupt,
                progress: Some(&show),
            };
            loadgen::run(target, &load, &settings)
                .map_err(|error| CliError::of_run(&error.into(), &interrupt))?
        }
        With::K6 | With::Locust => {
            let (tools, package) = (Tools::of(&workshop), chapter.package());
            let settings = |program, script| drivers::Settings {
                program,
                script,
                cpus: &placement.generator,
                alone: None,
                interrupt: &interrupt,
            };
            let root = workshop.root();
            let ended = if options.with == With::K6 {
                let script = root.join(format!("k6/{package}.js"));
                k6::run(target, &load, &settings(&tools.k6(), &script))
            } else {
                let script = root.join(format!("locust/{package}.py"));
                locust::run(target, &load, &settings(&tools.in_venv("locust"), &script))
            };
            ended?
        }
    };
    drop((server, terminal));
    match options.output.format {
        Format::Json => json::print(&outcome)?,
        Format::Human => print!("{}", table(&outcome)),
    }
    Ok(exit(&outcome))
}

/// What the command ends with: good only if everybody was answered rightly, and nobody left waiting.
pub(super) fn exit(outcome: &Outcome) -> Exit {
    let faults = outcome.error_count() + outcome.wrong_answers;
    if outcome.generator.is_bound() {
        Exit::Invalid
    } else if faults == 0 && outcome.completed > 0 && outcome.unanswered.is_none() {
        Exit::Good
    } else {
        Exit::Bad
    }
}

fn scenario(number: u32, options: &Load, file: &ChapterFile) -> Result<Scenario, CliError> {
    let mut scenario = file.load.clone();
    scenario.users = options.users.unwrap_or(scenario.users);
    scenario.think_s = options.think.unwrap_or(scenario.think_s);
    scenario.write_share = options.write_share.unwrap_or(scenario.write_share);
    scenario.duration_s = options.seconds;
    if options.rate.is_some() && options.with != With::Embedded {
        return Err(CliError::usage(
            "--rate is for the embedded generator: k6's and Locust's scripts know closed loops \
             only; leave out --with",
        ));
    }
    if scenario.write_share > 0.0 && file.write.is_none() {
        return Err(CliError::usage(format!(
            "chapter {number} has no writes: leave out --write-share"
        )));
    }
    Ok(scenario)
}

/// The address of a server that answers.
fn running(host: &str) -> Result<SocketAddr, CliError> {
    let address = address(host)?;
    TcpStream::connect_timeout(&address, TIMEOUT).map_err(|error| {
        CliError::usage(format!(
            "no server answers at {address} ({error}): start one, such as with `cargo run -p \
             chapter1`, or leave out --host"
        ))
    })?;
    Ok(address)
}

/// Chapter servers listen on loopback only, and load goes nowhere else.
fn address(host: &str) -> Result<SocketAddr, CliError> {
    let bare = host.strip_prefix("http://").unwrap_or(host);
    let bare = bare.trim_end_matches('/').replace("localhost", "127.0.0.1");
    match bare.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        _ => Err(CliError::usage(format!(
            "--host takes a server on this machine, such as http://127.0.0.1:8080, not {host}"
        ))),
    }
}

/// The figures for people.
pub(super) fn table(outcome: &Outcome) -> String {
    let at = |latency: &Latency, quantile| {
        let found = latency.point(quantile);
        found.map_or("-".to_owned(), |found| {
            let over = figures::over(found.is_lower_bound);
            format!("{over}{:.1} ms", found.ms)
        })
    };
    let latency = |quantile| at(&outcome.latency, quantile);
    let time = Duration::from_secs_f64(outcome.seconds);
    let mut lines = vec![
        format!(
            "{} requests/s over {:.1} s: {} right answers, {} wrong, {} failed, {} unfinished",
            figures::count(outcome.requests_per_second),
            time.as_secs_f64(),
            outcome.completed,
            outcome.wrong_answers,
            outcome.error_count(),
            outcome.unfinished,
        ),
        format!(
            "latency: median {}, 90 % {}, 99 % {}, mean {}{:.1} ms ({} loop)",
            latency(0.5),
            latency(0.9),
            latency(0.99),
            figures::over(outcome.latency.lower_bound_from.is_some()),
            outcome.latency.mean_ms,
            if outcome.generator.open_loop {
                "open"
            } else {
                "closed"
            },
        ),
    ];
    if let Some(bystander) = &outcome.bystander {
        lines.push(format!(
            "bystanders: {} right answers, {} wrong, {} failed, {} unfinished; median {}, 99 % {} (open loop)",
            bystander.completed,
            bystander.wrong_answers,
            bystander.errors.values().sum::<u64>(),
            bystander.unfinished,
            at(&bystander.latency, 0.5),
            at(&bystander.latency, 0.99),
        ));
    }
    for (cause, count) in &outcome.errors {
        lines.push(format!("failed: {count} x {cause}"));
    }
    if let Some(unanswered) = &outcome.unanswered {
        lines.push(unanswered.to_string());
    }
    if let Some(wrong) = &outcome.first_wrong_answer {
        lines.push(format!("first wrong answer: {wrong}"));
    }
    if let Some(code) = outcome.exit_code {
        lines.push(match code {
            0 => "the script's thresholds: kept, exit code 0".to_owned(),
            MISSED => format!("the script's thresholds: missed, exit code {MISSED}"),
            other => format!("the script ended with exit code {other}"),
        });
    }
    if let Some(share) = outcome.generator.cpu_share {
        let bound = if outcome.generator.is_bound() {
            ": GENERATOR-BOUND, these figures describe it and not the server"
        } else {
            ""
        };
        lines.push(format!(
            "generator used {:.0} % of its CPUs{bound}",
            share * 100.0
        ));
    }
    lines.join("\n") + "\n"
}
