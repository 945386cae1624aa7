//! `cargo workshop load N --with embedded|k6|locust`.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use children::tool;
use course::bench::drivers::{k6, locust};
use course::bench::rounds::Bench;
use course::measurement::chapter_file::{ChapterFile, Scenario};
use engine::event::Event;
use engine::outcome::Outcome;
use engine::traffic::Arrivals;

use terminal::outcome::{exit_of, figures_of};

use crate::chapters::Workshop;
use crate::cli::{Format, Load, With};
use crate::compile::Build;
use crate::exit;
use crate::tools::Tools;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{ctrl_c, json};

/// Longest time for a running server to accept a connection.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Puts the load of a chapter on one of its variants.
pub(crate) fn run(options: &Load) -> Result<Exit, CliError> {
    let number = options.chapter;
    let workshop = Workshop::find()?;
    let chapter = workshop.chapter(number)?;
    let file = chapter.file()?;
    let scenario = scenario(number, options, &file)?;
    let interrupt = ctrl_c::watch();
    let placement = course::bench::rounds::placement_of(&file);
    let (server, target) = if let Some(host) = &options.host {
        (None, running(host)?)
    } else {
        let build = Build {
            workshop: &workshop,
            chapter: &chapter,
            interrupt: &interrupt,
        };
        let program = build.server("")?;
        let server = Bench::new(&program, &file, &interrupt, &|_| {})
            .start(&options.variant, &file.load)
            .map_err(|error| exit::of_run(&error.into(), &interrupt))?;
        let target = server.service();
        (Some(server), target)
    };
    let terminal = Terminal::new();
    // Nothing here knows which variant answers at a host that the user names.
    let name = match options.host {
        Some(_) => "the service",
        None => options.variant.as_str(),
    };
    terminal.show(Event::Begins(1, 1, name));
    let mut load = file.load_of(&scenario);
    if let Some(per_second) = options.rate {
        load.arrivals = Arrivals::Open {
            per_second,
            spacing: options.arrivals,
        };
    }
    let outcome = match options.with {
        With::Embedded => {
            let settings = engine::load::Settings {
                cpus: &placement.generator,
                interrupt: &interrupt,
                progress: Some(&|progress| terminal.show(Event::Runs(progress))),
            };
            engine::load::run(target, &load, &settings)
                .map(Outcome::from)
                .map_err(|error| exit::of_run(&error.into(), &interrupt))?
        }
        With::K6 | With::Locust => {
            let (tools, package) = (Tools::of(&workshop), chapter.package());
            let settings = |program, script| tool::Settings {
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
        Format::Json => json::print_as("chapter_load", &outcome)?,
        Format::Human => {
            println!("{name} at {target}: {}", scenario.in_words());
            print!("{}", figures_of(&outcome));
        }
    }
    Ok(exit_of(&outcome))
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
