//! A second read of one `RwLock` while a writer waits between the two: nobody goes on.
//!
//! Reports: tokio-rs/tokio#2849, mobilecoinfoundation/mobilecoin#3984.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use field::Arguments;
use tokio::sync::RwLock;

#[derive(Clone)]
struct Bank {
    book: Arc<RwLock<HashMap<u32, u64>>>,
    is_fixed: bool,
}

async fn rate(bank: &Bank) -> u64 {
    *bank.book.read().await.get(&0).unwrap_or(&1)
}

async fn balance(State(bank): State<Bank>, Path(id): Path<u32>) -> String {
    if bank.is_fixed {
        tokio::time::sleep(Duration::from_millis(2)).await;
        let mine = *bank.book.read().await.get(&id).unwrap_or(&0);
        return (mine * rate(&bank).await).to_string();
    }
    let book = bank.book.read().await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    // The fault: the guard of the first read is still there.
    let rate = rate(&bank).await;
    (book.get(&id).unwrap_or(&0) * rate).to_string()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::of_process();
    let bank = Bank {
        book: Arc::default(),
        is_fixed: arguments.fixed,
    };
    let book = bank.book.clone();
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_millis(300)).await;
            *book.write().await.entry(0).or_default() += 1;
        }
    });
    let routes = Router::new()
        .route("/balance/{id}", get(balance))
        .with_state(bank);
    field::serve(&arguments, routes).await
}
