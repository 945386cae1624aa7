//! `duel compare --at-capacity 'p99 < 100ms'`: the capacities of two builds.

use std::collections::BTreeMap;
use std::time::Instant;

use children::environment;
use engine::comparison::{AtCapacity, Capacities};
use statistics::figures;
use statistics::metric::Metric;
use terminal::exit::{CliError, Exit};
use terminal::progress::Terminal;
use terminal::{ctrl_c, files, json};

use super::compare::{self, Setting, of_both};
use crate::cli::options::{Compare, Format};
use crate::cli::requests;
use crate::report::capacities::Report;

/// Compares the capacities, and writes the reports.
pub(crate) fn run(options: &Compare) -> Result<Exit, CliError> {
    let how = &options.how;
    let (specs, of_log) = requests::specs(&how.sent, None)?;
    // The search sets users, rates and times.
    let traffic = requests::traffic(&how.sent, &specs, how.users, (None, 0.0), how.seconds)?;
    let routes: Vec<&str> = traffic.routes.iter().map(|route| &*route.name).collect();
    let metrics = Metric::all(&routes, false, &[]);
    let folder = compare::folder(options)?;
    let environment = environment::observe(true, "", BTreeMap::new());
    let interrupt = ctrl_c::watch();
    let placement = compare::placement(options);
    let terminal = Terminal::new();
    let began = Instant::now();
    let mut sides = compare::sides(options);
    let setting = Setting {
        traffic: &traffic,
        deciding: compare::deciding(how, &metrics)?,
        placement: &placement,
        generator: None,
        interrupt: &interrupt,
        terminal: &terminal,
    };
    let at = AtCapacity {
        conditions: &options.at_capacity,
        spacing: how.sent.arrivals,
        first: how.rate,
    };
    let compared = of_both(options, &setting, &mut sides, |both| both.capacities(at));
    drop(terminal);
    let compared = match compared {
        Ok((mut compared, notes)) => {
            compared.notes.extend(notes);
            compared.notes.extend(of_log);
            compared
                .notes
                .extend(requests::repeats(&traffic, Some(at.spacing)));
            compared
        }
        Err(error) if error.exit == Exit::Invalid && !interrupt.is_set() => {
            Capacities::invalid(error.to_string())
        }
        Err(error) => return Err(error),
    };
    let verdict = compared.verdict.clone();
    let seconds = began.elapsed().as_secs_f64();
    let report = Report::new(&options.at_capacity, compared, sides, seconds);
    let load = format!(
        "{}; {}.",
        routes.join(", "),
        figures::things(report.steps(), "step")
    );
    let file = folder.join("capacities.html");
    let page = report.page(
        &load,
        &environment.in_a_line(),
        &compare::typed(),
        compare::margin(options),
    );
    files::replace(&file, page)?;
    if let Some(markdown) = &options.markdown {
        files::replace(markdown, report.markdown())?;
    }
    let text = format!("{}report: {}", report.text(), file.display());
    match how.output.format {
        Format::Human => println!("{text}"),
        Format::Json => {
            eprintln!("{text}");
            json::print_as("capacities", &report)?;
        }
    }
    Ok(compare::exit(options, &verdict))
}
