//! Results of a profile for every kind of wait, on both runtimes.
#![allow(missing_docs)]

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use await_profile::{AwaitProfiler, Frame, Frames, Profile, ProfileOptions, WaitKind, path};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Mutex, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};
use tokio::time::sleep;

const REQUESTS: usize = 20;

fn runtimes() -> [Runtime; 2] {
    let mut two_workers = Builder::new_multi_thread();
    two_workers.worker_threads(2);
    [Builder::new_current_thread(), two_workers]
        .map(|mut runtime| runtime.enable_all().build().unwrap())
}

/// Profiles requests that all wait for ever where `request` leaves them, given the value that `prepare`
/// made for each. Preparation is not part of the request: on a busy machine it takes a good part
/// of a profile.
fn profile_of_prepared<T, F>(prepare: impl AsyncFn() -> T, request: impl Fn(T) -> F) -> Vec<Profile>
where
    F: Future<Output = ()> + Send + 'static,
{
    runtimes()
        .into_iter()
        .map(|runtime| {
            let profiler = AwaitProfiler::new().armed();
            // In boxes, so that the runtime is compiled once for all requests.
            let profile: Pin<Box<dyn Future<Output = Profile>>> = Box::pin(async {
                for _ in 0..REQUESTS {
                    let request = profiler.wrap("GET /", request(prepare().await));
                    let request: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(request);
                    tokio::spawn(request);
                }
                while profiler.in_flight() < REQUESTS {
                    tokio::task::yield_now().await;
                }
                let options = ProfileOptions::lasting(Duration::from_millis(100));
                let profile = profiler.profile(options.captures_per_second(1000)).await;
                profile.unwrap()
            });
            runtime.block_on(profile)
        })
        .collect()
}

fn profile_of<F>(request: impl Fn() -> F) -> Vec<Profile>
where
    F: Future<Output = ()> + Send + 'static,
{
    profile_of_prepared(async || (), |()| request())
}

/// Takes profiles up to three times until all are right. A runtime that stands still answers no sample, and on a busy machine
/// requests are slow where they do not wait. A fault shows each time.
#[track_caller]
fn once_in_three(profiles: impl Fn() -> Vec<Profile>, is_right: impl Fn(&Profile) -> bool) {
    let mut wrong = Vec::new();
    while wrong.len() < 3 {
        let profiles = profiles();
        match profiles.iter().find(|profile| !is_right(profile)) {
            None => return,
            Some(profile) => wrong.push(profile.folded(Frames::All)),
        }
    }
    panic!("{}", wrong.join("\n"));
}

/// Asserts that nearly all samples that are waits are in `handler`, at a line, for `primitive`. On a busy
/// machine some requests are still on their way there.
#[track_caller]
fn assert_waits(profiles: impl Fn() -> Vec<Profile>, handler: &str, primitive: &str) {
    let handler = format!("waits::{handler} (tests/waits.rs:");
    once_in_three(profiles, |profile| {
        let samples = profile.summary().samples;
        let shares = profile.shares(Frames::Own);
        let places = shares
            .iter()
            .filter(|share| share.frames[0].function().is_some());
        let waiting: f64 = places.clone().map(|share| share.share).sum();
        let right: f64 = places
            .filter(|share| {
                share.route == "GET /"
                    && share.frames[0].to_string().starts_with(&handler)
                    && share.frames.last().is_some_and(|leaf| *leaf == primitive)
            })
            .map(|share| share.share)
            .sum();
        samples.waiting > 10 && right > 0.95 * waiting
    });
}

/// Makes one test for each handler, in which requests wait for the primitive.
macro_rules! waits {
    ($($test:ident: $handler:ident => $primitive:literal)*) => {
        $(
            #[test]
            fn $test() {
                assert_waits(|| profile_of($handler), stringify!($handler), $primitive);
            }
        )*
    };
}

waits! {
    a_mutex: locks => "tokio::sync::Mutex::lock"
    a_reader_of_a_rwlock: reads => "tokio::sync::RwLock::read"
    a_writer_of_a_rwlock: writes => "tokio::sync::RwLock::write"
    a_semaphore: acquires => "tokio::sync::Semaphore::acquire"
    a_notification: is_notified => "tokio::sync::Notified"
    a_bounded_channel: receives => "tokio::sync::mpsc::Receiver::recv"
    an_unbounded_channel: receives_unbounded => "tokio::sync::mpsc::UnboundedReceiver::recv"
    a_full_channel: sends => "tokio::sync::mpsc::Sender::send"
    a_oneshot_channel: receives_one => "tokio::sync::oneshot::Receiver"
    a_watch_channel: watches => "tokio::sync::watch::Receiver::changed"
    a_broadcast_channel: listens => "tokio::sync::broadcast::Receiver::recv"
    a_timer: sleeps => "tokio::time::Sleep"
    an_interval: ticks => "tokio::time::Interval::tick"
    a_spawned_task_is_seen_as_its_handle: joins_task => "tokio::task::JoinHandle"
    a_listener: accepts => "tokio::net::TcpListener::accept"
}

async fn locks() {
    let mutex = Arc::new(Mutex::new(()));
    let _guard = mutex.clone().try_lock_owned();
    drop(mutex.lock().await);
}

async fn reads() {
    let lock = Arc::new(RwLock::new(()));
    let _guard = lock.clone().try_write_owned();
    drop(lock.read().await);
}

async fn writes() {
    let lock = Arc::new(RwLock::new(()));
    let _guard = lock.clone().try_read_owned();
    drop(lock.write().await);
}

async fn acquires() {
    drop(Semaphore::new(0).acquire().await);
}

async fn is_notified() {
    Notify::new().notified().await;
}

async fn receives() {
    let (_sender, mut receiver) = mpsc::channel::<u8>(1);
    receiver.recv().await;
}

async fn receives_unbounded() {
    let (_sender, mut receiver) = mpsc::unbounded_channel::<u8>();
    receiver.recv().await;
}

async fn sends() {
    let (sender, _receiver) = mpsc::channel::<u8>(1);
    sender.send(1).await.unwrap();
    sender.send(2).await.unwrap();
}

async fn receives_one() {
    let (_sender, receiver) = oneshot::channel::<u8>();
    receiver.await.ok();
}

async fn watches() {
    let (_sender, mut receiver) = watch::channel(1);
    receiver.changed().await.unwrap();
}

async fn listens() {
    let (_sender, mut receiver) = broadcast::channel::<u8>(4);
    receiver.recv().await.ok();
}

async fn sleeps() {
    sleep(Duration::from_secs(3600)).await;
}

async fn ticks() {
    let mut interval = tokio::time::interval(Duration::from_secs(3600));
    interval.tick().await;
    interval.tick().await;
}

async fn joins_task() {
    tokio::spawn(sleeps()).await.unwrap();
}

async fn accepts() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.accept().await.unwrap();
}

/// Returns both ends of a connection whose buffers hold some kilobytes. With the system's usual buffers it
/// takes megabytes to fill them, and until then the request is running or ready.
async fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpSocket::new_v4().unwrap();
    listener.set_recv_buffer_size(4096).unwrap();
    listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.listen(1).unwrap();
    let client = TcpSocket::new_v4().unwrap();
    client.set_send_buffer_size(4096).unwrap();
    let client = client.connect(listener.local_addr().unwrap());
    let (client, server) = tokio::join!(client, listener.accept());
    (client.unwrap(), server.unwrap().0)
}

async fn reads_socket((mut client, _server): (TcpStream, TcpStream)) {
    client.read_u8().await.unwrap();
}

#[test]
fn a_socket_read() {
    assert_waits(
        || profile_of_prepared(connection, reads_socket),
        "reads_socket",
        "tokio::net::TcpStream::poll_read",
    );
}

async fn writes_socket((mut client, _server): (TcpStream, TcpStream)) {
    loop {
        client.write_all(&[0; 8192]).await.unwrap();
    }
}

#[test]
fn a_socket_write() {
    assert_waits(
        || profile_of_prepared(connection, writes_socket),
        "writes_socket",
        "tokio::net::TcpStream::poll_write",
    );
}

/// Profiles waits for a pool of one thread, which `GET /job` keeps for most of the profile.
#[test]
fn who_waits_for_a_blocking_thread_is_told_from_who_waits_for_a_task() {
    async fn reads_file() {
        tokio::fs::read("Cargo.toml").await.unwrap();
    }
    async fn computes() {
        let closure = || std::thread::sleep(Duration::from_millis(20));
        tokio::task::spawn_blocking(closure).await.unwrap();
    }
    let mut runtime = Builder::new_current_thread();
    let runtime = runtime
        .enable_all()
        .max_blocking_threads(1)
        .build()
        .unwrap();
    let profiler = AwaitProfiler::new().armed();
    for number in 0..REQUESTS {
        let profiler = profiler.clone();
        runtime.spawn(async move {
            loop {
                match number % 3 {
                    0 => profiler.wrap("GET /file", reads_file()).await,
                    1 => profiler.wrap("GET /job", computes()).await,
                    _ => profiler.wrap("GET /task", joins_task()).await,
                }
            }
        });
    }
    let profile = || {
        let options = ProfileOptions::lasting(Duration::from_millis(500));
        let profile = profiler.profile(options.captures_per_second(500));
        vec![runtime.block_on(profile).unwrap()]
    };
    once_in_three(profile, |profile| {
        let places = profile.shares(Frames::Own);
        let kinds = ["GET /file", "GET /job", "GET /task"].map(|route| {
            let place = places.iter().find(|place| place.route == route);
            place?.wait.as_ref().map(|wait| wait.kind)
        });
        let of_pool = Some(WaitKind::BlockingPool);
        kinds == [of_pool, of_pool, Some(WaitKind::Task)]
    });
}

async fn joins_twenty() {
    futures_util::future::join_all((0..20).map(|_| sleeps())).await;
}

/// A poll keeps sixteen stacks, so four of these twenty waits have none.
#[test]
fn of_many_waits_at_once_those_without_a_stack_have_their_part() {
    once_in_three(
        || profile_of(joins_twenty),
        |profile| {
            let shares = profile.shares(Frames::Own);
            let of_all = |leaf: &str| {
                let there = shares.iter().filter(|share| {
                    let is_below = share.frames.contains(&Frame::Several(20));
                    is_below && share.frames.last().is_some_and(|last| *last == leaf)
                });
                there.map(|share| share.share).sum::<f64>()
            };
            let (seen, unseen) = (of_all("tokio::time::Sleep"), of_all("(not captured)"));
            let ratio = unseen / (seen + unseen);
            unseen > 0.0 && (ratio - 0.2).abs() < 1e-9
        },
    );
}

async fn never_registers() {
    std::future::poll_fn(|_| std::task::Poll::<()>::Pending).await;
}

#[test]
fn a_future_that_keeps_no_waker_is_counted() {
    once_in_three(
        || profile_of(never_registers),
        |profile| {
            let samples = profile.summary().samples;
            assert_eq!(samples.waiting, 0, "{samples:?}");
            let folded = profile.folded(Frames::Own);
            let begins = folded.starts_with("GET /;(pending without a waker) ");
            samples.unregistered > 10 && begins
        },
    );
}

/// Profiles requests that end and begin anew, twelve at a time, for 0.8 seconds.
fn profile_of_repeated<F>(request: impl Fn() -> F + Clone + Send + Sync + 'static) -> Vec<Profile>
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let profiler = AwaitProfiler::new().armed();
        for _ in 0..12 {
            let (profiler, request) = (profiler.clone(), request.clone());
            tokio::spawn(async move {
                loop {
                    profiler.wrap("GET /", request()).await;
                }
            });
        }
        let options = ProfileOptions::lasting(Duration::from_millis(800));
        let profile = profiler.profile(options.captures_per_second(500)).await;
        vec![profile.unwrap()]
    })
}

async fn selects(pool: Arc<Semaphore>) {
    let _connection = pool.acquire().await.unwrap();
    sleep(Duration::from_millis(2)).await;
}

async fn processes() {
    sleep(Duration::from_millis(15)).await;
}

#[test]
fn members_of_a_set_that_nobody_polls_are_told_with_who_woke_them() {
    use futures_util::{StreamExt, stream};
    async fn while_it_awaits(pool: Arc<Semaphore>) {
        let mut rows = stream::iter(0..4)
            .map(|_| selects(pool.clone()))
            .buffered(2);
        while rows.next().await.is_some() {
            processes().await;
        }
    }
    async fn one_after_the_other(pool: Arc<Semaphore>) {
        let rows = stream::iter(0..4)
            .map(|_| selects(pool.clone()))
            .buffered(2);
        let rows: Vec<()> = rows.collect().await;
        for () in rows {
            processes().await;
        }
    }
    let pool = || Arc::new(Semaphore::new(3));
    let profile = || {
        let pool = pool();
        profile_of_repeated(move || while_it_awaits(pool.clone()))
    };
    once_in_three(profile, |profile| {
        let unpolled = profile.unpolled();
        let Some(first) = unpolled.first() else {
            return false;
        };
        let has = |frames: &[Frame], name: &str| path(frames).contains(name);
        assert!(first.requests <= first.of_requests, "{first:?}");
        first.requests >= 3
            && has(&first.frames, "while_it_awaits (tests/waits.rs:")
            && has(&first.frames, "FuturesUnordered")
            && has(&first.instead, "waits::processes (tests/waits.rs:")
            && has(&first.woken_by, "waits::selects (tests/waits.rs:")
            && first.longest_ms.is_some_and(|ms| ms > 1.0)
    });

    let profile = || {
        let pool = pool();
        profile_of_repeated(move || one_after_the_other(pool.clone()))
    };
    once_in_three(profile, |profile| profile.unpolled().is_empty());
}

/// Reproduces a futurelock: <https://rfd.shared.oxide.computer/rfd/0609>.
#[test]
fn a_future_that_a_select_leaves_behind_in_the_queue_of_a_lock_is_told() {
    async fn locks_briefly(lock: Arc<Mutex<()>>) {
        let _guard = lock.lock().await;
        sleep(Duration::from_millis(5)).await;
    }
    async fn leaves_behind(lock: Arc<Mutex<()>>) {
        let mut first = std::pin::pin!(locks_briefly(lock));
        tokio::select! {
            () = &mut first => return,
            () = sleep(Duration::from_millis(10)) => processes().await,
        }
        first.await;
    }
    async fn polls_on(lock: Arc<Mutex<()>>) {
        tokio::join!(locks_briefly(lock), processes());
    }
    let lock = || Arc::new(Mutex::new(()));
    let is_it = |unpolled: &await_profile::Unpolled| {
        let [frames, instead] = [&unpolled.frames, &unpolled.instead].map(|frames| path(frames));
        frames.contains("waits::a_future_that_a_select")
            && frames.ends_with("tokio::sync::Mutex::lock")
            && instead.contains("waits::processes")
            && unpolled.longest_ms.is_some_and(|ms| ms > 1.0)
    };
    let profile = || {
        let lock = lock();
        profile_of_repeated(move || leaves_behind(lock.clone()))
    };
    once_in_three(profile, |profile| profile.unpolled().iter().any(is_it));

    let profile = || {
        let lock = lock();
        profile_of_repeated(move || polls_on(lock.clone()))
    };
    once_in_three(profile, |profile| profile.unpolled().is_empty());
}
