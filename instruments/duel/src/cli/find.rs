//! `duel load URL --find 'p99 < 100ms'`: the capacity of a service.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use children::{Interrupt, environment};
use engine::capacity::{Ended, Found, Wanted};
use engine::event::Event;
use engine::load::{GeneratorError, Target};
use engine::placement::Placement;
use engine::traffic::Traffic;
use statistics::figures;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{files, json};

use crate::cli::compare::typed;
use crate::cli::options::{Format, Load};
use crate::report::capacity::Report;

/// Rate for the look into the service, as a multiple of its capacity: what limits it shows just above.
const JUST_ABOVE: f64 = 1.1;
/// Seconds of that look.
const LOOK_S: f64 = 5.0;

/// Searches for the capacity of the service at `target`, whose right answers `traffic` has, and prints it.
pub(crate) fn run(
    options: &Load,
    target: &Target,
    traffic: &Traffic,
    notes: Vec<String>,
    interrupt: &Interrupt,
) -> Result<Exit, CliError> {
    let folder = match &options.report {
        Some(folder) => folder.clone(),
        None => PathBuf::from("target/duel"),
    };
    if options.report.is_none() {
        let _ = files::ignored(&folder);
    }
    files::writable(&folder)?;
    let environment = environment::observe(true, "", BTreeMap::new());
    let placement = Placement::apart();
    let terminal = Terminal::new();
    let wanted = Wanted {
        traffic,
        spacing: options.sent.arrivals,
        conditions: &options.find,
        first: options.rate,
        users: options.users,
        // The service runs, and the first steps warm it up.
        warm_up: Duration::ZERO,
        at_most: Duration::from_secs_f64(options.at_most),
        cpus: &placement.generator,
        interrupt,
        observer: &|event| terminal.show(event),
    };
    let began = Instant::now();
    let mut found = wanted.find(target).map_err(failed)?;
    let look = options.look.as_deref();
    let limit = limit(&wanted, target, &mut found, look, &terminal)?;
    drop(terminal);
    found.notes.extend(notes);
    let report = Report::new(&options.find, found, limit, began.elapsed().as_secs_f64());
    let routes: Vec<&str> = traffic.routes.iter().map(|route| &*route.name).collect();
    let load = format!("{}.", routes.join(", "));
    let page = report.page(&load, &environment.in_a_line(), &typed());
    let file = folder.join("capacity.html");
    files::replace(&file, page)?;
    print(options.output.format, &report, &file)?;
    Ok(match report.found.ended {
        Ended::NothingHolds => Exit::Bad,
        _ if report.is_known() => Exit::Good,
        _ => Exit::Invalid,
    })
}

fn print(format: Format, report: &Report, file: &Path) -> Result<(), CliError> {
    let text = format!("{}report: {}", report.text(), file.display());
    match format {
        Format::Human => println!("{text}"),
        Format::Json => {
            eprintln!("{text}");
            json::print_as("capacity", report)?;
        }
    }
    Ok(())
}

/// Converts an error of the generator.
pub(super) fn failed(error: GeneratorError) -> CliError {
    match error {
        GeneratorError::Interrupted => CliError::interrupted(),
        GeneratorError::Unreachable { target, reason } => CliError::invalid(format!(
            "the service at {target} takes no connections any more: {reason}"
        )),
        other => CliError::invalid(other),
    }
}

/// Says what the limit was: the generator, or what the debug endpoints of the service report just above its capacity.
fn limit(
    wanted: &Wanted<'_>,
    target: &Target,
    found: &mut Found,
    look: Option<&str>,
    terminal: &Terminal,
) -> Result<Option<String>, CliError> {
    if found.ended == Ended::Generator {
        return Ok(Some("the load generator.".to_owned()));
    }
    let (Some(url), Some(capacity)) = (look, found.capacity) else {
        if look.is_none() && found.capacity.is_some() {
            found.notes.push(
                "to see what the limit is, add --look URL, the address of the service's debug endpoints.".to_owned(),
            );
        }
        return Ok(None);
    };
    let rate = capacity.rate * JUST_ABOVE;
    let label = format!(
        "a look into the service at {} requests/s",
        figures::count(rate.round())
    );
    terminal.show(Event::Begins(1, 1, &label));
    let url = url.to_owned();
    let looking = thread::spawn(move || look_client::ask(&url, LOOK_S, true));
    wanted.hold_at(target, rate, LOOK_S).map_err(failed)?;
    let Ok(said) = looking.join() else {
        return Err(CliError::bad("the look panicked"));
    };
    Ok(look_client::limit(&said?))
}
