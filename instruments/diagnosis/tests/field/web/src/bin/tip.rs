//! A second borrow of a watched value on one thread, with a writer that waits in between.
//!
//! Reports: ZcashFoundation/zebra#3378, tokio-rs/tokio#4246. A node tells the tip of its chain.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use tokio::sync::watch;

#[derive(Clone)]
struct Tip {
    height: u64,
    hash: String,
}

#[derive(Clone)]
struct Chain {
    tip: watch::Receiver<Tip>,
    fixed: bool,
}

impl Chain {
    fn fields(&self) -> String {
        if self.fixed {
            let tip = self.tip.borrow().clone();
            return format!("height={} hash={}", tip.height, tip.hash);
        }
        let height = self.tip.borrow();
        let age = (0..2_000).fold(height.height, |sum, step| {
            std::hint::black_box(sum.rotate_left(3) ^ step)
        });
        let hash = self.tip.borrow();
        format!("height={} hash={} age={age}", height.height, hash.hash)
    }
}

async fn tip(State(chain): State<Arc<Chain>>) -> String {
    chain.fields()
}

async fn follow(tip: watch::Sender<Tip>) {
    for height in 0.. {
        let _ = tip.send(Tip {
            height,
            hash: format!("{:064x}", height.wrapping_mul(0x9E37_79B9)),
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = field::Arguments::of_process();
    let (sender, receiver) = watch::channel(Tip {
        height: 0,
        hash: String::new(),
    });
    tokio::spawn(follow(sender));
    let chain = Arc::new(Chain {
        tip: receiver,
        fixed: arguments.fixed,
    });
    let app = Router::new().route("/tip", get(tip)).with_state(chain);
    field::serve(&arguments, app).await
}
