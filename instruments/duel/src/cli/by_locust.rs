//! Load on a reader's own service by Locust, for loads that one machine cannot send.

use std::path::PathBuf;

use crate::cli::options::{Sent, With, Workers};
use crate::cli::scripts::{self, About};
use crate::cli::spec::Spec;
use crate::locust::{self, PORT};
use children::Interrupt;
use children::program;
use children::tool::DriverError;
use engine::load::TrafficOutcome;
use engine::traffic::Traffic;
use statistics::figures;
use terminal::exit::CliError;
use terminal::progress::Terminal;

/// Note that tells readers of a verdict what Locust compared.
pub(crate) const NOTE: &str = "Locust sent the load, and compared the status of answers alone.";

/// Load that Locust sends, to any host.
pub(crate) struct ByLocust<'a> {
    program: PathBuf,
    own: u32,
    others: u32,
    sent: &'a Sent,
    specs: &'a [Spec],
    /// Seconds.
    think: f64,
    cpus: &'a [usize],
    interrupt: &'a Interrupt,
}

impl<'a> ByLocust<'a> {
    /// Returns the load if `with` is Locust, and `None` if it is the embedded generator. Locust runs on `cpus`, or on
    /// all CPUs if there are none.
    pub(crate) fn of(
        (with, workers): (With, &Workers),
        (sent, specs): (&'a Sent, &'a [Spec]),
        traffic: &Traffic,
        think: f64,
        cpus: &'a [usize],
        interrupt: &'a Interrupt,
    ) -> Result<Option<Self>, CliError> {
        match with {
            With::Embedded if workers.workers.or(workers.expect_workers).is_some() => {
                return Err(CliError::usage(
                    "--workers and --expect-workers are Locust's: add --with locust",
                ));
            }
            With::Embedded => return Ok(None),
            With::K6 => {
                return Err(CliError::usage(
                    "k6 sends no load to your own service; `load` writes a script for it, by --k6 FILE",
                ));
            }
            With::Locust => {}
        }
        if sent.login.is_some() {
            return Err(CliError::usage(
                "--with locust sends no --login: give its token by --header 'Authorization: Bearer …', or write a \
                 file for Locust by `load --locust FILE`",
            ));
        }
        locust::sendable(traffic).map_err(CliError::usage)?;
        scripts::sendable("--with locust", sent, specs)?;
        let others = workers.expect_workers.unwrap_or(0);
        let own = workers.workers.unwrap_or(u32::from(others == 0));
        if own + others == 0 {
            return Err(CliError::usage(
                "no worker sends the load: give --workers, or --expect-workers for other machines",
            ));
        }
        let program = PathBuf::from("locust");
        if children::find(&program).is_none() {
            return Err(CliError::usage(format!(
                "Locust is not here: {}",
                program::to_install("Locust")
            )));
        }
        Ok(Some(Self {
            program,
            own,
            others,
            sent,
            specs,
            think,
            cpus,
            interrupt,
        }))
    }

    /// Prints the command for other machines, if the load waits for their workers.
    pub(crate) fn announce(&self, terminal: &Terminal) {
        if self.others > 0 {
            terminal.say(&format!(
                "waiting for {} of other machines, which must reach the service, and port {PORT} of this \
                 machine. There, with the same version of Locust, once for each:\n    \
                 while sleep 1; do locust -f - --worker --master-host THIS_MACHINE; done",
                figures::things(self.others.into(), "worker"),
            ));
        }
    }

    /// Sends the load, whose right answers are known, to the service at `host`, `https://HOST:PORT`.
    pub(crate) fn run(&self, host: &str, traffic: &Traffic) -> Result<TrafficOutcome, DriverError> {
        let about = About {
            host: host.to_owned(),
            cacert: self.sent.cacert.as_deref(),
            insecure: self.sent.insecure,
            users: traffic.users,
            think: self.think,
            rate: None,
            login: None,
            seconds: traffic.duration.as_secs_f64(),
        };
        let workers = locust::Workers {
            program: &self.program,
            script: &scripts::locust(&about, self.specs, &scripts::statuses(traffic)),
            host,
            own: self.own,
            others: self.others,
            cpus: self.cpus,
            interrupt: self.interrupt,
        };
        locust::run(traffic, &workers)
    }
}
