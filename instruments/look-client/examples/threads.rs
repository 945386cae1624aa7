//! A program to look at from outside: `threads deadlock`, `threads ordered` or `threads busy`.
//!
//! ```sh
//! cargo run -p look-client --features pid --example threads -- deadlock &
//! cargo run -p duel --features pid -- look --name threads --seconds 3
//! ```

use std::sync::Mutex;
use std::time::Duration;

static FROM: Mutex<u64> = Mutex::new(100);
static TO: Mutex<u64> = Mutex::new(0);

/// Longest life of the program, so that it does not stay if nobody ends it.
const AT_MOST: Duration = Duration::from_secs(120);

/// Takes one account and then the other, and moves an amount.
fn transfer(first: &Mutex<u64>, second: &Mutex<u64>) {
    loop {
        let mut from = first.lock().unwrap();
        std::thread::sleep(Duration::from_millis(2));
        let mut to = second.lock().unwrap(); // waits here
        let amount = (*from).min(1);
        *from -= amount;
        *to += amount;
        drop((from, to));
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn compute() {
    let mut sum = 0_u64;
    loop {
        sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(7)); // computes here
    }
}

fn main() {
    match std::env::args().nth(1).as_deref() {
        Some("deadlock") => {
            std::thread::spawn(|| transfer(&FROM, &TO));
            std::thread::spawn(|| transfer(&TO, &FROM));
        }
        Some("ordered") => {
            std::thread::spawn(|| transfer(&FROM, &TO));
            std::thread::spawn(|| transfer(&FROM, &TO));
        }
        Some("busy") => {
            std::thread::spawn(compute);
        }
        _ => {
            eprintln!("threads: one of deadlock, ordered, busy");
            std::process::exit(2);
        }
    }
    println!("ready");
    std::thread::sleep(AT_MOST);
}
