//! Files are kept open, until no descriptor is left to accept with.
//!
//! Reports: payjoin/rust-payjoin#1608, tokio-rs/axum#2400, sfackler/r2d2#100. Start it under `ulimit -n 200`.

use std::fs::File;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::get;
use field::Arguments;

#[derive(Clone)]
struct Mailboxes {
    open: Arc<Mutex<Vec<File>>>,
    is_fixed: bool,
}

async fn mailbox(
    State(mailboxes): State<Mailboxes>,
    Path(id): Path<u32>,
) -> Result<String, StatusCode> {
    let file = File::open("/proc/self/status");
    let file = file.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    if !mailboxes.is_fixed {
        // The fault: nobody closes it.
        mailboxes
            .open
            .lock()
            .map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?
            .push(file);
    }
    Ok(id.to_string())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let mailboxes = Mailboxes {
        open: Arc::default(),
        is_fixed: arguments.fixed,
    };
    let routes = Router::new()
        .route("/mailbox/{id}", get(mailbox))
        .with_state(mailboxes);
    field::serve(&arguments, routes).await
}
