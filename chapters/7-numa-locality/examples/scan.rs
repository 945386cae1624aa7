//! The core logic alone: scans, on every CPU, and nothing else. For instruments that look into
//! the CPU, see `vtune/`.
//!
//! ```console
//! $ cargo run -p chapter7 --example scan -- 400000 15      texts, seconds
//! $ cargo run -p chapter7 --example scan -- 40000 50x      texts, scans on one thread
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a text, as in the chapter.
const BYTES: usize = 640;
const BODY: &str = "None of the forbidden texts begins as this letter does.";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [texts, how_long] = &arguments[..] else {
        eprintln!("usage: scan TEXTS SECONDS, or scan TEXTS SCANSx");
        std::process::exit(2);
    };
    let texts = texts.parse().unwrap_or(400_000);
    let all = Texts::build(texts);
    let body = BODY.repeat(12);
    let began = Instant::now();
    let scans = match how_long.strip_suffix('x').map(str::parse) {
        Some(Ok(scans)) => {
            for _ in 0..scans {
                assert!(!all.any_begins(&body));
            }
            scans
        }
        _ => on_every_cpu(&all, &body, how_long.parse().unwrap_or(15)),
    };
    let seconds = began.elapsed().as_secs_f64();
    let compared = texts as f64 * scans as f64;
    println!(
        "{scans} scans of {texts} texts in {seconds:.1} s: {:.2} ns a text",
        seconds * 1e9 / compared
    );
}

/// Scans for so many seconds on as many threads as there are CPUs, and says how often.
fn on_every_cpu(texts: &Texts, body: &str, seconds: u64) -> u64 {
    let scans = AtomicU64::new(0);
    let end = Instant::now() + Duration::from_secs(seconds);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while Instant::now() < end {
                    assert!(!texts.any_begins(body));
                    scans.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    scans.into_inner()
}

/// Texts as in the chapter, one after the other in one allocation.
struct Texts(Vec<u8>);

impl Texts {
    fn build(count: usize) -> Self {
        let texts = (0..count).map(|number| format!("{number:020}").repeat(BYTES / 20));
        Self(texts.collect::<String>().into_bytes())
    }

    fn any_begins(&self, body: &str) -> bool {
        let body = body.as_bytes();
        self.0
            .chunks_exact(BYTES)
            .any(|text| body.starts_with(text))
    }
}
