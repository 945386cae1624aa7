//! smoke
mod server;
use evidence::{generator::*, interrupt::Interrupt, load::*};
use std::time::Duration;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    if a[1] == "serve" {
        evidence::processors::pin_current_thread(&[0]).unwrap();
        server::serve(Duration::from_millis(a[2].parse().unwrap())).unwrap();
        return;
    }
    let load = Load {
        exchange: Exchange {
            method: "GET".into(),
            path: "/read".into(),
            body: None,
            answer: "6".into(),
        },
        users: a[2].parse().unwrap(),
        arrivals: if a[3].starts_with('r') {
            Arrivals::Open {
                per_second: a[3][1..].parse().unwrap(),
            }
        } else {
            Arrivals::Closed {
                think: Duration::from_millis(a[3].parse().unwrap()),
            }
        },
        keep_alive: a[4] == "k",
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(4),
        time_out: Duration::from_secs(10),
    };
    let o = run(
        a[1].parse().unwrap(),
        &load,
        &Settings {
            processors: &[1],
            interrupt: &Interrupt::new(),
            progress: None,
        },
    );
    println!("{o:#?}");
}
