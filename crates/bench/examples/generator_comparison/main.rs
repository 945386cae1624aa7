//! How good are the generators themselves? Three comparisons, printed as Markdown, whose last
//! recorded run is in docs/generator.md:
//!
//! ```text
//! cargo run -p bench --example generator_comparison -- peak [ROUNDS] [SECONDS]
//! cargo run -p bench --example generator_comparison -- agreement [ROUNDS] [SECONDS]
//! cargo run -p bench --example generator_comparison -- published [ROUNDS] [SECONDS]
//! ```
//!
//! `peak`: 64 users without a pause against the least server there can be. `agreement`: 200
//! users with 0.5 s of think time against chapter 1's solution, where all three generators of
//! the workshop must tell the same. `published`: the same with 3,000 users.
//!
//! Server and generator each get a processor of their own (Linux), and the generators take
//! turns. Tools are looked for in `PATH`, then where the variables `WRK`, `OHA`, `K6` and
//! `LOCUST` say; a missing one is left out and named. `agreement` and `published` need chapter
//! 1's binary: `cargo build -p chapter1`.

mod chapter1;
mod contestant;
mod peak;
mod server;

use std::error::Error;
use std::time::Duration;

use loadgen::processors;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Which processor is whose; empty lists pin nothing.
struct Placement {
    server: Vec<usize>,
    generator: Vec<usize>,
}

impl Placement {
    fn apart() -> Self {
        match processors::available()[..] {
            [first, second, ..] if cfg!(target_os = "linux") => Self {
                server: vec![first],
                generator: vec![second],
            },
            _ => Self {
                server: Vec::new(),
                generator: Vec::new(),
            },
        }
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, otherwise: u32| {
        arguments
            .get(index)
            .map_or(Ok(otherwise), |text| text.parse())
    };
    let placement = Placement::apart();
    match arguments.first().map(String::as_str) {
        Some("peak") => {
            let seconds = Duration::from_secs(number(2, 4)?.into());
            peak::compare(&placement, number(1, 5)?, seconds);
            Ok(())
        }
        Some("agreement") => {
            let seconds = Duration::from_secs(number(2, 10)?.into());
            chapter1::compare(&placement, 200, number(1, 3)?, seconds)
        }
        Some("published") => {
            let seconds = Duration::from_secs(number(2, 10)?.into());
            chapter1::compare(&placement, 3000, number(1, 3)?, seconds)
        }
        // How `peak` starts its server.
        Some("serve") => Ok(server::serve()?),
        _ => Err("say what to compare: peak, agreement or published".into()),
    }
}
