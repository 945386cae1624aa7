//! What the profiler costs a service, in requests per second and in CPU time per
//! request, each compared with the profiler being off.
//!
//! ```text
//! cargo run --release --example overhead -- [ROUNDS] [/trivial|/wait]
//! ```
//!
//! Rounds are of one second and in the order off, on, on, off, so that a drift of
//! the machine falls on both. The load comes from a process of its own. `/trivial`
//! responds at once, and is the worst case: nothing but overhead. `/wait` waits for
//! 20 ms with a thousand connections, about what a service with a database does.

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use await_profile::{AwaitProfiler, ProfileOptions};
use axum::Router;
use axum::routing::get;
use cpu_time::ProcessTime;
use tokio::net::TcpListener;

mod load;

type Error = Box<dyn std::error::Error>;

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Off,
    Armed,
    Profiling(u32),
}

struct Bench {
    profiler: AwaitProfiler,
    answered: Arc<AtomicU64>,
    capture_us: Vec<(f64, f64, f64)>,
}

/// Requests per second, and microseconds of CPU time for each.
struct Round {
    rate: f64,
    cost: f64,
}

impl Bench {
    fn round(&mut self, state: State) -> Result<Round, Error> {
        match state {
            State::Off => self.profiler.disarm(),
            State::Armed | State::Profiling(_) => self.profiler.arm(),
        }
        let profiler = self.profiler.clone();
        let sampling = match state {
            State::Profiling(rate) => Some(std::thread::spawn(move || {
                let options = ProfileOptions::lasting(Duration::from_millis(1600));
                profiler.profile_blocking(&options.captures_per_second(rate))
            })),
            State::Off | State::Armed => None,
        };
        // Registrations, and the poll that begins a profile, are over by then.
        std::thread::sleep(Duration::from_millis(300));
        let (answered, cpu, start) = (
            self.answered.load(Ordering::Relaxed),
            ProcessTime::now(),
            Instant::now(),
        );
        std::thread::sleep(Duration::from_secs(1));
        let (cpu, elapsed) = (cpu.elapsed(), start.elapsed());
        let answered = (self.answered.load(Ordering::Relaxed) - answered) as f64;
        if let Some(sampling) = sampling {
            let profile = sampling.join().map_err(|_| "the sampler panicked")??;
            let cost = profile.summary().capture_cost_us;
            self.capture_us.push((cost.p50, cost.p99, cost.max));
        }
        Ok(Round {
            rate: answered / elapsed.as_secs_f64(),
            cost: cpu.as_secs_f64() * 1e6 / answered,
        })
    }

    fn compare(&mut self, state: State, quads: usize) -> Result<(), Error> {
        let (mut rates, mut costs) = (Vec::new(), Vec::new());
        for _ in 0..quads {
            let [a, b, c, d] =
                [State::Off, state, state, State::Off].map(|state| self.round(state));
            let (a, b, c, d) = (a?, b?, c?, d?);
            rates.push(((b.rate * c.rate) / (a.rate * d.rate)).ln() / 2.0);
            costs.push(((b.cost * c.cost) / (a.cost * d.cost)).ln() / 2.0);
        }
        println!(
            "{state:?}: requests per second {}, CPU time per request {}",
            change(&rates),
            change(&costs)
        );
        Ok(())
    }
}

/// Mean change with a 95 % interval, by bootstrap over the quads.
fn change(logs: &[f64]) -> String {
    let mut random = fastrand::Rng::with_seed(1);
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / logs.len() as f64;
    let mut means: Vec<f64> = (0..4000)
        .map(|_| mean(&mut (0..logs.len()).map(|_| logs[random.usize(..logs.len())])))
        .collect();
    means.sort_by(f64::total_cmp);
    let percent = |log: f64| (log.exp() - 1.0) * 100.0;
    format!(
        "{:+.2} % [{:+.2}, {:+.2}]",
        percent(mean(&mut logs.iter().copied())),
        percent(means[100]),
        percent(means[3899])
    )
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [address, path, connections] = arguments.as_slice() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let address: SocketAddr = address.parse()?;
        runtime.block_on(load::get(address, path, connections.parse()?));
        return Ok(());
    }
    let quads = arguments.first().map_or(Ok(10), |quads| quads.parse())?;
    let path = arguments.get(1).map_or("/trivial", String::as_str);

    let profiler = AwaitProfiler::new();
    let answered = Arc::new(AtomicU64::new(0));
    let counter = answered.clone();
    let count = move || counter.fetch_add(1, Ordering::Relaxed);
    let (trivial, wait) = (count.clone(), count);
    let app = Router::new()
        .route(
            "/trivial",
            get(async move || {
                trivial();
            }),
        )
        .route(
            "/wait",
            get(async move || {
                tokio::time::sleep(Duration::from_millis(20)).await;
                wait();
            }),
        )
        .layer(profiler.layer());
    // One worker: the load has the other core of a small machine.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let address = listener.local_addr()?.to_string();
    runtime.spawn(async { axum::serve(listener, app).await });
    let connections = if path == "/wait" { "1000" } else { "32" };
    let mut load = Command::new(std::env::current_exe()?)
        .args([&address, path, connections])
        .stdin(Stdio::null())
        .spawn()?;

    let mut bench = Bench {
        profiler,
        answered,
        capture_us: Vec::new(),
    };
    for _ in 0..3 {
        bench.round(State::Off)?;
    }
    let off = bench.round(State::Off)?;
    println!(
        "{path}, {connections} connections: {:.0} requests per second, {:.2} us of CPU time each",
        off.rate, off.cost
    );
    let rate = ProfileOptions::DEFAULT_RATE;
    let outcome = [
        State::Off,
        State::Armed,
        State::Profiling(rate),
        State::Profiling(10 * rate),
    ]
    .into_iter()
    .try_for_each(|state| bench.compare(state, quads));
    load.kill()?;
    load.wait()?;
    outcome?;
    let largest =
        |of: fn(&(f64, f64, f64)) -> f64| bench.capture_us.iter().map(of).fold(0.0, f64::max);
    println!(
        "a capture took at most, over all rounds, p50 {:.1} us, p99 {:.1} us, max {:.1} us",
        largest(|cost| cost.0),
        largest(|cost| cost.1),
        largest(|cost| cost.2)
    );
    Ok(())
}
