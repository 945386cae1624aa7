//! A call that is begun again with each tick: `select!` makes its future anew in a loop. With `--fixed` the future is made once.
//!
//! A neighbour of `rerank`: what begins again is not cut by a limit of the request.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use field::Arguments;
use tokio::time::{interval, sleep};

/// Another service's answer, which takes longer than a tick most of the time.
async fn ask(attempt: u32) -> u32 {
    let parts = if attempt % 8 == 7 { 1 } else { 6 };
    for _ in 0..parts {
        sleep(Duration::from_millis(10)).await;
    }
    attempt
}

async fn progress(fixed: bool) -> String {
    let mut ticks = interval(Duration::from_millis(30));
    let mut asked = 0;
    let mut one = std::pin::pin!(ask(0));
    loop {
        tokio::select! {
            answer = &mut one, if fixed => return answer.to_string(),
            answer = ask(asked), if !fixed => return answer.to_string(),
            _ = ticks.tick() => asked += 1,
        }
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let fixed = arguments.fixed;
    let app = Router::new().route("/progress", get(move || progress(fixed)));
    field::serve(&arguments, app).await
}
