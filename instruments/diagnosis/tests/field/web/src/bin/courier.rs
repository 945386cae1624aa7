//! Webhooks that are tried again at once: one receiver is gone, and its hooks go round and round. With `--fixed` each waits before
//! the next try.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use field::Arguments;
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use reqwest::Client;
use tokio::net::TcpListener;
use tokio::time::sleep;

/// Hooks that are passed on at a time.
const AT_ONCE: usize = 4;
/// Pause before the second try; it doubles with each further one.
const PAUSE: Duration = Duration::from_millis(500);
const MOST_TRIES: u32 = 6;

struct Hook {
    receiver: SocketAddr,
    tries: u32,
}

async fn deliver(client: &Client, hook: &Hook) -> reqwest::Result<()> {
    let sent = client.post(format!("http://{}/", hook.receiver)).send();
    sent.await?.error_for_status()?.bytes().await?;
    Ok(())
}

fn again(mut hook: Hook, hooks: UnboundedSender<Hook>, is_fixed: bool) {
    if !is_fixed {
        // The fault: it fails in no time, and its turn comes at once.
        let _ = hooks.unbounded_send(hook);
        return;
    }
    hook.tries += 1;
    if hook.tries < MOST_TRIES {
        tokio::spawn(async move {
            sleep(PAUSE * 2_u32.pow(hook.tries)).await;
            let _ = hooks.unbounded_send(hook);
        });
    }
}

async fn pass_on(hooks: UnboundedReceiver<Hook>, queue: UnboundedSender<Hook>, is_fixed: bool) {
    let client = Client::new();
    hooks
        .for_each_concurrent(AT_ONCE, |hook| {
            let (client, queue) = (&client, &queue);
            async move {
                if deliver(client, &hook).await.is_err() {
                    again(hook, queue.clone(), is_fixed);
                }
            }
        })
        .await;
}

/// Returns an address at which nobody listens.
async fn gone() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .await?
        .local_addr()
}

#[derive(Clone)]
struct Shop {
    hooks: UnboundedSender<Hook>,
    receivers: [SocketAddr; 2],
}

async fn order(State(shop): State<Shop>) -> &'static str {
    for receiver in shop.receivers {
        let hook = Hook { receiver, tries: 0 };
        let _ = shop.hooks.unbounded_send(hook);
    }
    "ordered"
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let receivers = [
        field::answering_after(Duration::from_millis(2)),
        gone().await?,
    ];
    let (hooks, queue) = mpsc::unbounded();
    tokio::spawn(pass_on(queue, hooks.clone(), arguments.fixed));
    let app = Router::new()
        .route("/order", get(order))
        .with_state(Shop { hooks, receivers });
    field::serve(&arguments, app).await
}
