//! What the profile says of every kind of wait, on both runtimes.
#![allow(missing_docs)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use await_profile::Frames;
use tokio::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::time::sleep;

mod profiled;
use profiled::{assert_waits, profile_of};

async fn locks(mutex: Arc<Mutex<HashMap<u32, u32>>>) {
    mutex.lock().await.insert(1, 2);
}

#[test]
fn a_mutex() {
    let mutex = Arc::new(Mutex::new(HashMap::new()));
    let _guard = mutex.clone().try_lock_owned().unwrap();
    assert_waits(
        &profile_of(|| locks(mutex.clone())),
        "locks",
        "tokio::sync::Mutex::lock",
    );
}

async fn reads(lock: Arc<RwLock<u32>>) {
    drop(lock.read().await);
}

#[test]
fn a_reader_of_a_rwlock() {
    let lock = Arc::new(RwLock::new(1));
    let _guard = lock.clone().try_write_owned().unwrap();
    assert_waits(
        &profile_of(|| reads(lock.clone())),
        "reads",
        "tokio::sync::RwLock::read",
    );
}

async fn writes(lock: Arc<RwLock<u32>>) {
    *lock.write().await += 1;
}

#[test]
fn a_writer_of_a_rwlock() {
    let lock = Arc::new(RwLock::new(1));
    let _guard = lock.clone().try_read_owned().unwrap();
    assert_waits(
        &profile_of(|| writes(lock.clone())),
        "writes",
        "tokio::sync::RwLock::write",
    );
}

async fn acquires(semaphore: Arc<Semaphore>) {
    drop(semaphore.acquire().await);
}

#[test]
fn a_semaphore() {
    let semaphore = Arc::new(Semaphore::new(0));
    assert_waits(
        &profile_of(|| acquires(semaphore.clone())),
        "acquires",
        "tokio::sync::Semaphore::acquire",
    );
}

async fn is_notified(notify: Arc<Notify>) {
    notify.notified().await;
}

#[test]
fn a_notification() {
    let notify = Arc::new(Notify::new());
    assert_waits(
        &profile_of(|| is_notified(notify.clone())),
        "is_notified",
        "tokio::sync::Notified",
    );
}

async fn receives() {
    let (_sender, mut receiver) = mpsc::channel::<u8>(1);
    receiver.recv().await;
}

#[test]
fn a_bounded_channel() {
    assert_waits(
        &profile_of(receives),
        "receives",
        "tokio::sync::mpsc::Receiver::recv",
    );
}

async fn receives_unbounded() {
    let (_sender, mut receiver) = mpsc::unbounded_channel::<u8>();
    receiver.recv().await;
}

#[test]
fn an_unbounded_channel() {
    assert_waits(
        &profile_of(receives_unbounded),
        "receives_unbounded",
        "tokio::sync::mpsc::UnboundedReceiver::recv",
    );
}

async fn sends() {
    let (sender, _receiver) = mpsc::channel::<u8>(1);
    sender.send(1).await.unwrap();
    sender.send(2).await.unwrap();
}

#[test]
fn a_full_channel() {
    assert_waits(
        &profile_of(sends),
        "sends",
        "tokio::sync::mpsc::Sender::send",
    );
}

async fn receives_one() {
    let (_sender, receiver) = oneshot::channel::<u8>();
    receiver.await.ok();
}

#[test]
fn a_oneshot_channel() {
    assert_waits(
        &profile_of(receives_one),
        "receives_one",
        "tokio::sync::oneshot::Receiver",
    );
}

async fn watches() {
    let (_sender, mut receiver) = watch::channel(1);
    receiver.changed().await.unwrap();
}

#[test]
fn a_watch_channel() {
    assert_waits(
        &profile_of(watches),
        "watches",
        "tokio::sync::watch::Receiver::changed",
    );
}

async fn listens() {
    let (_sender, mut receiver) = broadcast::channel::<u8>(4);
    receiver.recv().await.ok();
}

#[test]
fn a_broadcast_channel() {
    assert_waits(
        &profile_of(listens),
        "listens",
        "tokio::sync::broadcast::Receiver::recv",
    );
}

async fn sleeps() {
    sleep(Duration::from_secs(3600)).await;
}

#[test]
fn a_timer() {
    assert_waits(&profile_of(sleeps), "sleeps", "tokio::time::Sleep");
}

async fn ticks() {
    let mut interval = tokio::time::interval(Duration::from_secs(3600));
    interval.tick().await;
    interval.tick().await;
}

#[test]
fn an_interval() {
    assert_waits(&profile_of(ticks), "ticks", "tokio::time::Interval::tick");
}

async fn joins_task() {
    tokio::spawn(sleeps()).await.unwrap();
}

#[test]
fn a_spawned_task_is_seen_as_its_handle() {
    assert_waits(
        &profile_of(joins_task),
        "joins_task",
        "tokio::task::JoinHandle",
    );
}

async fn never_registers() {
    std::future::poll_fn(|_| std::task::Poll::<()>::Pending).await;
}

#[test]
fn a_future_that_keeps_no_waker_is_counted() {
    for profile in profile_of(never_registers) {
        let samples = profile.summary().samples;
        assert!(samples.unregistered > 10, "{samples:?}");
        assert_eq!(samples.waiting, 0, "{samples:?}");
        assert!(
            profile
                .folded(Frames::Own)
                .starts_with("GET /;(pending without a waker) ")
        );
    }
}
