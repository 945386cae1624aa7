//! The published pair of clients, one per request and one shared, with a round trip to the upstream: `round-trip.md`.
//!
//! The published service and its upstream are on two machines. Here a small proxy between them delays what passes: half
//! of the round trip in each direction, and a whole one before a new connection carries anything, for the handshake that
//! loopback does not delay. It is no network: it loses nothing and leaves TCP alone. A connection passes at most 4 KiB in
//! each half of a round trip, more than a request or an answer here. Without a round trip the service connects to the
//! upstream itself.
//!
//! `cargo run -p studies --bin round_trip`: one minute.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use course::measurement::load::Exchange;
use engine::placement::Placement;
use engine::traffic::Traffic;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use statistics::figures;
use studies::{Failed, quantile};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::time::sleep;

/// Round trips to the upstream, in ms.
const ROUND_TRIPS: [u64; 4] = [0, 2, 10, 50];
/// Chapter 4's variants.
const VARIANTS: [&str; 2] = ["hyper-per-request", "hyper-shared"];
const ROUNDS: usize = 3;
/// Users at once, as published.
const USERS: u32 = 50;
/// Body of the upstream, as published.
const BODY: &str = r#"{"status": 200, "msg": "Good Luck!"}"#;

fn main() -> Result<(), Failed> {
    studies::compile(&[4])?;
    let placement = Placement::apart();
    let upstream = start(|listener| async move { upstream(&listener).await })?;
    println!(
        "| round trip | per request: requests per second | per request, median | shared: requests per second | shared, median | times |"
    );
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for milliseconds in ROUND_TRIPS {
        let round_trip = Duration::from_millis(milliseconds);
        let address = match milliseconds {
            0 => upstream,
            _ => {
                start(move |listener| async move { proxy(&listener, upstream, round_trip).await })?
            }
        };
        let [per_request, shared] = measure(address, &placement)?;
        println!(
            "| {milliseconds} ms | {} | {} | {} | {} | {} |",
            figures::count(per_request.0.round()),
            figures::milliseconds(per_request.1),
            figures::count(shared.0.round()),
            figures::milliseconds(shared.1),
            figures::ratio(shared.0 / per_request.0),
        );
    }
    studies::print_provenance(&format!(
        "Medians of {ROUNDS} rounds of 2 s, {USERS} users, hyper's client, {}. A proxy on loopback delays; nothing passes \
         a network",
        placement.in_words()
    ));
    Ok(())
}

/// Returns requests per second and the median latency in ms, of each variant. The two take turns.
fn measure(upstream: SocketAddr, placement: &Placement) -> Result<[(f64, f64); 2], Failed> {
    let arguments = ["--upstream".to_owned(), format!("http://{upstream}/")];
    let load = Traffic {
        warm_up: Duration::from_millis(500),
        duration: Duration::from_secs(2),
        ..Exchange::get("/io", r#"{"status":200,"msg":"Good Luck!"}"#).by(USERS)
    };
    let mut rates = [Vec::new(), Vec::new()];
    let mut medians = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (index, variant) in VARIANTS.iter().enumerate() {
            let server = studies::start(4, variant, &placement.server, &arguments)?;
            let outcome = studies::load(&server, &load, &placement.generator)?;
            rates[index].push(outcome.requests_per_second);
            medians[index].extend(outcome.latency.at(0.5));
        }
    }
    Ok([0, 1].map(|side| (quantile(&rates[side], 0.5), quantile(&medians[side], 0.5))))
}

/// Starts a service on a thread of its own, which ends with the process. Returns its address.
fn start<F>(serve: impl FnOnce(TcpListener) -> F + Send + 'static) -> Result<SocketAddr, Failed>
where
    F: Future<Output = io::Result<()>>,
{
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.local_addr()?;
    thread::spawn(move || runtime.block_on(serve(listener)));
    Ok(address)
}

/// Answers every request with [`BODY`], and tells the service's lab its counts as nginx does.
async fn upstream(listener: &TcpListener) -> io::Result<()> {
    let requests = Arc::new(AtomicU64::new(0));
    let mut connections = 0_u64;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        connections += 1;
        let requests = Arc::clone(&requests);
        let answer = service_fn(move |request: Request<Incoming>| {
            let count = requests.fetch_add(1, Relaxed) + 1;
            let text = match request.uri().path() {
                "/stub_status" => format!(
                    "server accepts handled requests\n {connections} {connections} {count}\n"
                ),
                _ => BODY.to_owned(),
            };
            async { Ok::<_, Infallible>(Response::new(Full::new(Bytes::from(text)))) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), answer));
    }
}

/// Passes connections on to the upstream, as over a network with this round trip.
async fn proxy(
    listener: &TcpListener,
    upstream: SocketAddr,
    round_trip: Duration,
) -> io::Result<()> {
    loop {
        let (client, _) = listener.accept().await?;
        tokio::spawn(async move {
            // The handshake.
            sleep(round_trip).await;
            let server = TcpStream::connect(upstream).await?;
            client.set_nodelay(true)?;
            server.set_nodelay(true)?;
            let (from_client, to_client) = client.into_split();
            let (from_server, to_server) = server.into_split();
            tokio::try_join!(
                pass(from_client, to_server, round_trip / 2),
                pass(from_server, to_client, round_trip / 2),
            )
        });
    }
}

/// Passes bytes on, each after the delay, until the sender closes.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    delay: Duration,
) -> io::Result<()> {
    let mut buffer = [0; 4096];
    loop {
        let length = from.read(&mut buffer).await?;
        sleep(delay).await;
        if length == 0 {
            return to.shutdown().await;
        }
        to.write_all(&buffer[..length]).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_through_the_proxy_takes_two_round_trips_on_a_new_connection() {
        let upstream = start(|listener| async move { upstream(&listener).await }).unwrap();
        let round_trip = Duration::from_millis(20);
        let proxy =
            start(move |listener| async move { proxy(&listener, upstream, round_trip).await });
        let began = std::time::Instant::now();
        let answer = engine::load::ask::get(proxy.unwrap(), "/", Duration::from_secs(10)).unwrap();
        assert_eq!(answer, BODY.as_bytes());
        assert!(began.elapsed() >= 2 * round_trip);
    }
}
