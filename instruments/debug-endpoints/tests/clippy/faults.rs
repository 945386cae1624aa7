//! Each fault that `clippy/clippy.toml` knows of, once, for its test. A line that Clippy has to name ends with `// !`.
#![allow(dead_code)]

use std::sync::{Condvar, Mutex, mpsc};

use dashmap::DashMap;
use tokio::task::yield_now;

async fn tokio_mutex(lock: &tokio::sync::Mutex<u32>) {
    let _guard = lock.lock().await; // !
    yield_now().await;
}

async fn tokio_owned(lock: std::sync::Arc<tokio::sync::Mutex<u32>>) {
    let _guard = lock.lock_owned().await; // !
    yield_now().await;
}

async fn tokio_read(lock: &tokio::sync::RwLock<u32>) {
    let _guard = lock.read().await; // !
    yield_now().await;
}

async fn tokio_write(lock: &tokio::sync::RwLock<u32>) {
    let _guard = lock.write().await; // !
    yield_now().await;
}

async fn parking_lot_mutex(lock: &parking_lot::Mutex<u32>) {
    let _guard = lock.lock(); // !
    yield_now().await;
}

async fn parking_lot_read(lock: &parking_lot::RwLock<u32>) {
    let _guard = lock.read(); // !
    yield_now().await;
}

async fn parking_lot_write(lock: &parking_lot::RwLock<u32>) {
    let _guard = lock.write(); // !
    yield_now().await;
}

async fn dashmap_get(map: &DashMap<u32, u32>) {
    let _guard = map.get(&1).unwrap(); // !
    yield_now().await;
}

async fn dashmap_get_mut(map: &DashMap<u32, u32>) {
    let _guard = map.get_mut(&1).unwrap(); // !
    yield_now().await;
}

async fn dashmap_iter(map: &DashMap<u32, u32>) {
    let _guard = map.iter().next().unwrap(); // !
    yield_now().await;
}

async fn dashmap_entry(map: &DashMap<u32, u32>) {
    let _guard = map.entry(1); // !
    yield_now().await;
}

async fn blocks(condition: &Condvar, lock: &Mutex<u32>, messages: &mpsc::Receiver<u32>) {
    std::thread::sleep(std::time::Duration::from_millis(1)); // !
    let _ = std::fs::read("a"); // !
    let _ = std::fs::read_to_string("a"); // !
    let _ = std::fs::write("a", "b"); // !
    let _ = std::fs::read_dir("."); // !
    let _ = std::fs::File::open("a"); // !
    let _ = std::fs::File::create("a"); // !
    let _ = std::net::TcpStream::connect("localhost:1"); // !
    let _ = std::net::ToSocketAddrs::to_socket_addrs("localhost:1"); // !
    let _ = std::process::Command::new("a").output(); // !
    let _ = std::process::Command::new("a").status(); // !
    let mut child = std::process::Command::new("a").spawn().unwrap();
    let _ = child.wait(); // !
    let _ = messages.recv(); // !
    drop(condition.wait(lock.lock().unwrap())); // !
    let _ = std::thread::spawn(|| ()).join(); // !
    tokio::runtime::Handle::current().block_on(yield_now()); // !
}

/// Right code, of which Clippy reports nothing.
async fn right(lock: &tokio::sync::Mutex<u32>, map: &DashMap<u32, u32>) -> u32 {
    let one = { *lock.lock().await };
    let other = map.get(&1).map(|value| *value);
    yield_now().await;
    one + other.unwrap_or_default()
}
