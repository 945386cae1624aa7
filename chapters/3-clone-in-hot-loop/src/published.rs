//! The service of the article that chapters 1 to 3 come from, with its four routes.
//! `cargo run -p chapter3 --example published` serves it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Mutex, RwLock};
use warp::{Filter, Rejection};

/// Length of the published call of a database.
const CALL: Duration = Duration::from_millis(50);
/// Published rounds of the hot loop.
const ROUNDS: usize = 1_000_000;

/// The three published clients: number and topics, by id.
type Clients = HashMap<&'static str, (usize, Vec<&'static str>)>;

fn clients() -> Clients {
    HashMap::from([
        ("87-89-34", (1, vec!["cats", "dogs"])),
        ("22-38-21", (2, vec!["cats", "reptiles"])),
        ("12-67-22", (3, vec!["mice", "birds", "snakes"])),
    ])
}

/// `/read` and `/fast` answer the sum of the clients' numbers after a call, `/cpualloc` and `/cpu` what the loops compute.
pub fn routes()
-> impl Filter<Extract = (String,), Error = Rejection> + Clone + Send + Sync + 'static {
    let held = Arc::new(Mutex::new(clients()));
    let dropped = Arc::new(RwLock::new(clients()));
    let (cloned, borrowed) = (dropped.clone(), dropped.clone());
    let read = warp::path!("read").then(move || read(held.clone()));
    let fast = warp::path!("fast").then(move || fast(dropped.clone()));
    let cpualloc = warp::path!("cpualloc").then(move || cpualloc(cloned.clone()));
    let cpu = warp::path!("cpu").then(move || cpu(borrowed.clone()));
    read.or(fast).unify().or(cpualloc).unify().or(cpu).unify()
}

async fn read(clients: Arc<Mutex<Clients>>) -> String {
    let clients = clients.lock().await;
    let ids = ids(&clients);
    // The guard lives to the end of the function.
    tokio::time::sleep(CALL).await;
    sum(&ids).to_string()
}

async fn fast(clients: Arc<RwLock<Clients>>) -> String {
    let ids = ids(&*clients.read().await);
    tokio::time::sleep(CALL).await;
    sum(&ids).to_string()
}

async fn cpualloc(clients: Arc<RwLock<Clients>>) -> String {
    cloning(&ids(&*clients.read().await)).to_string()
}

async fn cpu(clients: Arc<RwLock<Clients>>) -> String {
    borrowing(&ids(&*clients.read().await)).to_string()
}

/// The clients' numbers, as texts.
fn ids(clients: &Clients) -> Vec<String> {
    clients.values().map(|(id, _)| id.to_string()).collect()
}

fn sum(ids: &[String]) -> usize {
    ids.iter().map(|id| number(id)).sum()
}

fn number(id: &str) -> usize {
    id.parse().unwrap_or(0)
}

// ANCHOR: loops
/// The hot loop of `/cpualloc`, which clones each id in each round.
#[allow(clippy::redundant_iter_cloned, reason = "it is the fault")]
pub fn cloning(ids: &[String]) -> usize {
    let mut result = 0;
    for round in 0..ROUNDS {
        let numbers = ids.iter().cloned().map(|id| number(&id));
        result += round + numbers.sum::<usize>();
    }
    result
}

/// The loop of `/cpu`, which borrows them.
pub fn borrowing(ids: &[String]) -> usize {
    let mut result = 0;
    for round in 0..ROUNDS {
        let numbers = ids.iter().map(|id| number(id));
        result += round + numbers.sum::<usize>();
    }
    result
}
// ANCHOR_END: loops
