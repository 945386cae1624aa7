//! A program to look at from outside: `threads deadlock`, `ordered`, `busy`, `named`, `pauses`, `grows` or `unread`.
//!
//! ```sh
//! cargo run -p duel-look-client --features pid --example threads -- deadlock &
//! cargo run -p duel --features pid -- look --name threads --seconds 3
//! ```

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
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

/// Computes a little, and then waits.
fn compute_at_times() {
    loop {
        std::hint::black_box((0..1000_u64).sum::<u64>());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Keeps ten mebibytes more each tenth of a second.
fn keep() {
    let mut kept = Vec::new();
    loop {
        kept.push(vec![7_u8; 10 << 20]);
        std::hint::black_box(&kept);
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Connects to itself, and sends what nobody reads.
fn send_unread() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    client.write_all(b"is anybody there?").unwrap();
    std::thread::sleep(AT_MOST);
    drop(accepted);
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
        Some("named") => {
            let thread = std::thread::Builder::new().name("работники".to_owned());
            thread.spawn(compute).unwrap();
        }
        Some("pauses") => {
            std::thread::spawn(compute_at_times);
        }
        Some("grows") => {
            std::thread::spawn(keep);
        }
        Some("unread") => {
            std::thread::spawn(send_unread);
        }
        _ => {
            eprintln!("threads: one of deadlock, ordered, busy, named, pauses, grows, unread");
            std::process::exit(2);
        }
    }
    println!("ready");
    std::thread::sleep(AT_MOST);
}
