//! One round of a comparison: three fresh servers, each loaded in two slices, there and back again.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use children::processes::CpuTimes;
use statistics::figures;
use statistics::metric::Quantile;
use statistics::metric::{
    CPU_MS, Figures, PEAK_MEMORY, PERCENTILES, REQUESTS_PER_SECOND, Triplet, answers_for, grows,
    route_key,
};

use crate::load::{GroupOutcome, Latencies, Progress, Target, TrafficOutcome};
use crate::prometheus::samples;
use crate::traffic::Traffic;

use super::asked::{Comparison, ComparisonError, Side};
use crate::answers::Asked;
use crate::event::Event;
use crate::load::ask::get;
use crate::service::{CommandServer, Launch, Start};

/// Warm-up before a slice on a server that has been under load before.
pub(super) const WARM_AGAIN: Duration = Duration::from_millis(300);
/// Longest time to wait after a slice while the server goes on with work that nobody waits for. The next slice begins
/// when the server is done, or after this time.
pub(super) const SETTLE_AT_MOST: Duration = Duration::from_secs(5);
pub(super) const SETTLE_LOOK: Duration = Duration::from_millis(100);
/// Longest time to wait for the end of a server that has failed requests: its process may end a moment after its
/// connections.
const ENDS_WITHIN: Duration = Duration::from_secs(2);
/// Longest time to wait for a page of counters.
const PAGE_WITHIN: Duration = Duration::from_secs(5);
/// Largest share of the servers' CPU time that other programs may use in a slice.
pub(super) const DISTURBED: f64 = 0.1;
/// Number of times that each server is loaded in a round.
pub(super) const SLICES: usize = 2;
pub(super) const BASE: usize = statistics::Side::Base as usize;
pub(super) const CHANGE: usize = statistics::Side::Change as usize;
pub(super) const AGAIN: usize = statistics::Side::Again as usize;

/// Names of the three servers, in their order.
pub(super) const NAMES: [&str; 3] = ["base", "change", "base (again)"];

/// A server of a round.
pub(super) struct Instance {
    pub(super) target: Target,
    /// Process of the server; `None` if it ran already.
    pub(super) process: Option<CommandServer>,
}

impl Instance {
    fn cpu_s(&self) -> Option<f64> {
        Some(self.process.as_ref()?.used()?.cpu_s)
    }
}

/// Figures of one server from the slices of a round.
#[derive(Default)]
struct Seen {
    per_second: Vec<f64>,
    right: u64,
    cpu_s: Option<f64>,
    routes: Vec<Latencies>,
    bystander: Option<Latencies>,
    /// Growth of each counter in the slices, and its value after the last.
    counters: BTreeMap<String, (f64, f64)>,
    /// Set if a page of counters did not come.
    is_uncounted: bool,
}

/// Faults that spoil a round, apart from its result.
#[derive(Default)]
pub(super) struct Spoilt {
    /// Largest share of the server's CPUs that other programs used in a slice.
    pub(super) foreign: f64,
    /// Largest share of its CPU time that the generator used.
    pub(super) generator_cpu: Option<f64>,
    pub(super) is_generator_bound: bool,
    /// Set if a slice ended before its first answer.
    pub(super) is_silent: bool,
    pub(super) is_unsettled: bool,
}

impl Comparison<'_> {
    /// Starts the three servers of a round in this order, which is that of its slices. Returns them in the order of [`NAMES`].
    pub(super) fn start(
        &self,
        order: [statistics::Side; 3],
    ) -> Result<[Instance; 3], ComparisonError> {
        let mut servers = [None, None, None];
        for index in order.map(|side| side as usize) {
            servers[index] = Some(self.start_one(index)?);
        }
        for (index, server) in servers.iter_mut().flatten().enumerate() {
            self.log_in(server, index)?;
        }
        let [Some(base), Some(change), Some(again)] = servers else {
            unreachable!("an order names each server once");
        };
        Ok([base, change, again])
    }

    /// Starts the server with this index in [`NAMES`].
    pub(super) fn start_one(&self, index: usize) -> Result<Instance, ComparisonError> {
        let side = if index == CHANGE {
            &self.change
        } else {
            &self.base
        };
        Ok(match side {
            Side::Running(target) => Instance {
                target: target.clone(),
                process: None,
            },
            Side::Command(command, folder) => {
                let launch = Launch {
                    name: NAMES[index],
                    start: Start::Shell {
                        command,
                        folder,
                        ready: self.ready,
                        protocol: self.protocol,
                    },
                    ready_within: self.ready_within,
                    cpus: &self.placement.server,
                };
                let process = CommandServer::start(&launch, self.interrupt)?;
                Instance {
                    target: Target {
                        address: process.address(),
                        protocol: self.protocol.clone(),
                        headers: Arc::default(),
                    },
                    process: Some(process),
                }
            }
        })
    }

    /// Sends the login to a server, if there is one.
    pub(super) fn log_in(
        &self,
        server: &mut Instance,
        index: usize,
    ) -> Result<(), ComparisonError> {
        if let Some(login) = self.login {
            let asked = Asked {
                who: NAMES[index],
                target: &server.target,
                time_out: self.traffic.time_out,
                interrupt: self.interrupt,
            };
            server.target.headers = login.at(&asked)?.into();
        }
        Ok(())
    }

    fn generate(
        &self,
        target: &Target,
        traffic: &Traffic,
    ) -> Result<TrafficOutcome, ComparisonError> {
        if let Some(generator) = self.generator {
            return Ok(generator(target, traffic)?);
        }
        let progress = |now: Progress| (self.observer)(Event::Runs(now));
        let settings = crate::load::Settings {
            cpus: &self.placement.generator,
            interrupt: self.interrupt,
            progress: Some(&progress),
        };
        Ok(crate::load::run(target.clone(), traffic, &settings)?)
    }

    pub(super) fn load(
        &self,
        servers: &mut [Instance; 3],
        index: usize,
        traffic: &Traffic,
    ) -> Result<TrafficOutcome, ComparisonError> {
        let carried = self.generate(&servers[index].target, traffic);
        let fault = match &carried {
            Ok(outcome) => fault(outcome),
            Err(_) => None,
        };

        if let Some(server) = &mut servers[index].process {
            // A server that dies closes its connections a moment before it has ended.
            let time = if fault.is_some() {
                ENDS_WITHIN
            } else {
                Duration::ZERO
            };
            server.is_alive_after(time, "under load")?;
        }
        let outcome = carried?;
        match fault {
            Some(fault) => Err(ComparisonError::Invalid(format!(
                "under load the {} {fault}",
                NAMES[index]
            ))),
            None => Ok(outcome),
        }
    }

    /// Runs all slices of a round: there and back again, so that a steady drift favors no server.
    pub(super) fn round(
        &self,
        number: u32,
        order: [statistics::Side; 3],
        servers: &mut [Instance; 3],
        traffic: &Traffic,
        has_counters: bool,
    ) -> Result<(Triplet, Spoilt), ComparisonError> {
        let mut seen: [Seen; 3] = std::array::from_fn(|_| Seen::default());
        let mut spoilt = Spoilt::default();
        let [first, second, third] = order.map(|side| side as usize);
        let slices = [first, second, third, third, second, first];
        for (place, index) in slices.into_iter().enumerate() {
            let (round, slice, name) = (number + 1, place + 1, NAMES[index]);
            self.begins(&format!("round {round}, slice {slice} of 6: {name}"));
            let is_first = place < order.len() && servers[index].process.is_some();
            let slice = Traffic {
                warm_up: if is_first {
                    traffic.warm_up
                } else {
                    traffic.warm_up.min(WARM_AGAIN)
                },
                ..traffic.clone()
            };
            let mut counted = BTreeMap::new();
            if has_counters {
                counted = self.read(&servers[index]);
            }
            let before = self.cpu_times(servers);
            let cpu_before = servers[index].cpu_s();
            let outcome = self.load(servers, index, &slice)?;
            let is_settled = settle(&servers[index]);
            // Work that the server does for this slice after it is part of its cost, too.
            let cpu_s = match (cpu_before, servers[index].cpu_s()) {
                (Some(before), Some(now)) => Some(now - before),
                _ => None,
            };
            if let (Some(before), Some(now)) = (before, self.cpu_times(servers)) {
                spoilt.foreign = spoilt.foreign.max(before.used_by_others(&now));
            }
            if let Some(share) = outcome.generator.cpu_share {
                spoilt.generator_cpu = Some(spoilt.generator_cpu.unwrap_or(0.0).max(share));
            }
            spoilt.is_generator_bound |= outcome.generator.is_bound();
            spoilt.is_unsettled |= !is_settled;
            spoilt.is_silent |= outcome.users.completed == 0;
            if has_counters {
                seen[index].count(&counted, self.read(&servers[index]));
            }
            seen[index].add(outcome, cpu_s);
        }
        let [base, change, again] = &seen;
        let round = Triplet {
            base: self.figures(base, &servers[BASE], traffic),
            change: self.figures(change, &servers[CHANGE], traffic),
            again: self.figures(again, &servers[AGAIN], traffic),
        };
        Ok((round, spoilt))
    }

    /// Returns the CPU time so far on the CPUs of the servers; `None` if nothing is pinned, because the generator shares
    /// them then.
    fn cpu_times(&self, servers: &[Instance; 3]) -> Option<CpuTimes> {
        if self.placement.server.is_empty() {
            return None;
        }
        let own_s = servers.iter().map(Instance::cpu_s).sum::<Option<f64>>()?;
        CpuTimes::now(&self.placement.server, own_s)
    }

    fn figures(&self, seen: &Seen, server: &Instance, traffic: &Traffic) -> Figures {
        let mut figures = Figures::default();
        let mean = seen.per_second.iter().sum::<f64>() / seen.per_second.len().max(1) as f64;
        figures.insert(REQUESTS_PER_SECOND.to_owned(), mean);
        let mut all: Option<Latencies> = None;
        for route in &seen.routes {
            match &mut all {
                Some(all) => all.add(route),
                None => all = Some(route.clone()),
            }
        }
        for (quantile, key) in PERCENTILES {
            if let Some(latency) = percentile(all.as_ref(), quantile) {
                figures.insert_quantile(key.to_owned(), latency);
            }
            for (route, latencies) in traffic.routes.iter().zip(&seen.routes) {
                if let Some(latency) = percentile(Some(latencies), quantile) {
                    figures.insert_quantile(route_key(key, &route.name), latency);
                }
            }
            if let Some(latency) = percentile(seen.bystander.as_ref(), quantile) {
                figures.insert_quantile(format!("bystander_{key}"), latency);
            }
        }
        // The system counts in hundredths of a second. Fewer than ten of them are no figure.
        if let Some(cpu_s) = seen.cpu_s
            && cpu_s >= 0.1
        {
            figures.insert(CPU_MS.to_owned(), cpu_s * 1e3 / seen.right.max(1) as f64);
        }
        if let Some(server) = &server.process
            && let Some(used) = server.used()
            && let Some(bytes) = used.peak_bytes
        {
            figures.insert(PEAK_MEMORY.to_owned(), bytes);
        }
        if seen.is_uncounted {
            return figures;
        }
        for (counter, (grown, last)) in &seen.counters {
            if grows(counter) {
                figures.insert(counter.clone(), grown / seen.right.max(1) as f64);
            } else if self.counters.contains(counter) {
                figures.insert(counter.clone(), *last);
            }
        }
        figures
    }

    /// Returns the target to ask for counters. A second port speaks plain HTTP.
    pub(super) fn metrics_at(&self, server: &Instance) -> Target {
        match &server.process {
            Some(process) if self.is_metrics_on_admin => process.admin_address().into(),
            _ => server.target.clone(),
        }
    }

    /// Returns all counters of this moment; none if there is no page of them.
    pub(super) fn read(&self, server: &Instance) -> BTreeMap<String, f64> {
        let at = self.metrics_at(server);
        let time_out = self.traffic.time_out.min(PAGE_WITHIN);
        let body = get(at, self.metrics_path, time_out).unwrap_or_default();
        counters(&String::from_utf8_lossy(&body))
    }
}

impl Seen {
    fn count(&mut self, before: &BTreeMap<String, f64>, after: BTreeMap<String, f64>) {
        self.is_uncounted |= before.is_empty() || after.is_empty();
        for (name, now) in after {
            // A counter with labels is there from its first event on.
            let then = before.get(&name).unwrap_or(&0.0);
            let (grown, last) = self.counters.entry(name).or_default();
            (*grown, *last) = (*grown + now - then, now);
        }
    }

    fn add(&mut self, outcome: TrafficOutcome, cpu_s: Option<f64>) {
        let is_first = self.per_second.is_empty();
        self.per_second.push(outcome.users.requests_per_second);
        self.right += outcome.users.right_in_all;
        self.cpu_s = match (self.cpu_s, cpu_s) {
            (_, now) if is_first => now,
            (Some(before), Some(now)) => Some(before + now),
            _ => None,
        };
        for (index, route) in outcome.users.routes.into_iter().enumerate() {
            match self.routes.get_mut(index) {
                Some(latencies) => latencies.add(&route.latency),
                None => self.routes.push(route.latency),
            }
        }
        let Some(bystander) = outcome.bystander else {
            return;
        };
        for route in bystander.routes {
            match &mut self.bystander {
                Some(latencies) => latencies.add(&route.latency),
                None => self.bystander = Some(route.latency),
            }
        }
    }
}

/// Waits until the server rests. Returns `false` if it does not.
pub(super) fn settle(server: &Instance) -> bool {
    let began = Instant::now();
    let mut before = server.cpu_s();
    loop {
        std::thread::sleep(SETTLE_LOOK);
        let now = server.cpu_s();
        match (before, now) {
            // A service that uses less than two scheduler ticks rests.
            (Some(before), Some(now)) if now - before > 0.015 => {}
            _ => return true,
        }
        if began.elapsed() > SETTLE_AT_MOST {
            return false;
        }
        before = now;
    }
}

/// Describes the fault in the answers that the users of a load, or its bystanders, got.
fn fault(outcome: &TrafficOutcome) -> Option<String> {
    let of_users = fault_of_group(&outcome.users);
    match &outcome.bystander {
        Some(bystander) if of_users.is_none() => fault_of_group(bystander),
        _ => of_users,
    }
}

fn fault_of_group(group: &GroupOutcome) -> Option<String> {
    if group.wrong_answers > 0 {
        return Some(format!(
            "gave {}, the first to {}: {:?}; a service must be right before it is fast.",
            figures::things(group.wrong_answers, "wrong answer"),
            group.first_wrong_request.as_deref().unwrap_or_default(),
            group.first_wrong_answer.as_deref().unwrap_or_default()
        ));
    }
    let (cause, count) = group.errors.iter().max_by_key(|(_, count)| **count)?;
    Some(format!(
        "failed {} with `{cause}`; find out why, or ask for less.",
        figures::things(*count, "request")
    ))
}

/// Returns a percentile if there are enough requests for it, up to 5 % fewer.
fn percentile(latencies: Option<&Latencies>, quantile: f64) -> Option<Quantile> {
    let latencies = latencies?;
    let asked = latencies.count() + latencies.unanswered();
    if (asked as f64) * 1.05 < answers_for(quantile) {
        return None;
    }
    latencies.at(quantile)
}

/// Returns the counters in Prometheus text, their labels added up.
fn counters(text: &str) -> BTreeMap<String, f64> {
    let mut counters = BTreeMap::new();
    for sample in samples(text) {
        *counters.entry(sample.name.to_owned()).or_default() += sample.value;
    }
    counters.retain(|_, value: &mut f64| value.is_finite());
    counters
}

pub(super) fn names(text: &str) -> String {
    const MOST: usize = 20;
    let mut names: Vec<&str> = samples(text).map(|sample| sample.name).collect();
    names.dedup();
    match names.len() {
        0 => "none".to_owned(),
        count if count > MOST => format!("{}, …", names[..MOST].join(", ")),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_a_counter_are_added_up() {
        let text = "# TYPE a counter\na_total{route=\"/x y\"} 3\na_total{route=\"/b\"} 4\nb 0.5\n";
        let right = [("a_total".to_owned(), 7.0), ("b".to_owned(), 0.5)];
        assert_eq!(counters(text), right.into());
        assert_eq!(names(text), "a_total, b");
    }
}
