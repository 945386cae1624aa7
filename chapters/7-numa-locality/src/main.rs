//! Chapter 7: NUMA locality.
//! `cargo run -p chapter7 [-- VARIANT]`; the book says what each variant is for.

use chapter7::{basic, copies, exercise, pinned, problem, solution, texts, thread_isolated};
use lab::{Connection, Lab, Options};
use tokio::runtime::Builder;

#[rustfmt::skip]
const VARIANTS: &[&str] = &["problem", "exercise", "solution", "basic", "thread-isolated", "copies", "pinned"];

fn main() -> Result<(), lab::Error> {
    let options = Options::read("chapter7", VARIANTS);
    texts::prepare(&options)?;
    let team = match options.variant() {
        "basic" => return basic::serve(options),
        "thread-isolated" => thread_isolated::start(),
        "problem" => problem::start(),
        "copies" => copies::start(),
        "pinned" => pinned::start(),
        "solution" => solution::start(),
        _ => exercise::start(),
    };
    // Nobody is let in before all texts are in memory.
    team.wait();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let lab = Lab::open(options)?;
        lab.hand_over(async |connection: Connection| team.give(connection).await)
            .await
    })
}
