//! Tests of `duel load` over HTTP/2, including gRPC, against servers of the tests' own.

use std::convert::Infallible;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use h2::server::{self, SendResponse};
use h2::{Reason, RecvStream};
use hyper::body::Bytes;
use hyper::header::HeaderMap;
use hyper::{Request, Response, Version};
use serde_json::Value;
use terminal::testing::once_in_three;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const LOCALHOST: &[u8] = include_bytes!("certificates/localhost.der");
const KEY: &[u8] = include_bytes!("certificates/key.der");
const AUTHORITY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/certificates/authority.pem"
);

/// Reaction of a server to a request.
#[derive(Clone, Copy)]
enum Reaction {
    /// A body, and the gRPC status after it.
    Answer(&'static [u8], Option<&'static str>),
    Reset(Reason),
    /// The end of the connection: at once, unless the reason is `NO_ERROR`.
    GoAway(Reason),
}

type React = fn(usize, &Request<Bytes>) -> Reaction;

/// Server that speaks HTTP/2 and nothing else.
struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    _runtime: Runtime,
}

impl Server {
    fn plain(react: React) -> Self {
        Self::start(None, react)
    }

    /// Starts a server with TLS that knows these protocols.
    fn encrypted(alpn: &[&str], react: React) -> Self {
        let key = PrivateKeyDer::try_from(KEY).unwrap();
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![CertificateDer::from(LOCALHOST)], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        Self::start(Some(TlsAcceptor::from(Arc::new(config))), react)
    }

    fn start(tls: Option<TlsAcceptor>, react: React) -> Self {
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0"));
        let listener = listener.unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let counted = connections.clone();
        let requests = Arc::new(AtomicUsize::new(0));
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (tls, counted, requests) = (tls.clone(), counted.clone(), requests.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &counted, &requests, react).await,
                        Some(tls) => {
                            serve(tls.accept(stream).await.ok()?, &counted, &requests, react).await
                        }
                    }
                });
            }
        });
        Self {
            port,
            connections,
            _runtime: runtime,
        }
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }
}

/// Serves a connection until the client closes it, or a reaction ends it.
async fn serve(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connections: &AtomicUsize,
    requests: &AtomicUsize,
    react: React,
) -> Option<Infallible> {
    let mut connection = server::handshake(stream).await.ok()?;
    connections.fetch_add(1, Ordering::Relaxed);
    loop {
        let (request, answer) = connection.accept().await?.ok()?;
        let (head, body) = request.into_parts();
        let body = if body.is_end_stream() {
            Bytes::new()
        } else {
            // The connection has to be driven while the body is read.
            let mut read = std::pin::pin!(all(body));
            std::future::poll_fn(|context| {
                let _ = connection.poll_closed(context);
                read.as_mut().poll(context)
            })
            .await
        };
        let number = requests.fetch_add(1, Ordering::Relaxed);
        match react(number, &Request::from_parts(head, body)) {
            Reaction::Answer(body, grpc) => send(answer, body, grpc)?,
            Reaction::Reset(reason) => { answer }.send_reset(reason),
            Reaction::GoAway(Reason::NO_ERROR) => {
                send(answer, b"6", None)?;
                connection.graceful_shutdown();
            }
            Reaction::GoAway(reason) => connection.abrupt_shutdown(reason),
        }
    }
}

async fn all(mut body: RecvStream) -> Bytes {
    let mut all = Vec::new();
    while let Some(Ok(bytes)) = body.data().await {
        all.extend_from_slice(&bytes);
    }
    all.into()
}

fn send(
    mut answer: SendResponse<Bytes>,
    body: &'static [u8],
    grpc: Option<&'static str>,
) -> Option<()> {
    let mut stream = answer.send_response(Response::new(()), false).ok()?;
    stream.send_data(body.into(), grpc.is_none()).ok()?;
    if let Some(status) = grpc {
        let trailers = HeaderMap::from_iter([("grpc-status".parse().ok()?, status.parse().ok()?)]);
        stream.send_trailers(trailers).ok()?;
    }
    Some(())
}

/// Exit code of a command, its standard output as JSON, and its standard error.
type Said = (i32, Value, String);

/// Runs `duel`.
fn duel(arguments: &str) -> Said {
    duel_with(arguments, &[])
}

/// Runs `duel` with more arguments, which may contain spaces.
fn duel_with(arguments: &str, more: &[&str]) -> Said {
    let mut command = Command::new(env!("CARGO_BIN_EXE_duel"));
    command.args(arguments.split_whitespace()).args(more);
    let output = command.output().unwrap();
    let said = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), said, errors)
}

const SHORT: &str = "--users 3 --warm-up 0 --seconds 1 --format json";

/// Checks that every answer was right, and returns whether there was one: a machine that stands still may give none.
#[track_caller]
fn is_right((code, said, errors): &Said) -> bool {
    // If other programs leave the generator no CPU, the run is invalid.
    assert!(matches!(code, 0 | 3), "{said} {errors}");
    assert_eq!(said["wrong_answers"], 0, "{said}");
    assert_eq!(said["errors"], serde_json::json!({}), "{said}");
    said["completed"].as_u64().unwrap() > 0
}

/// Checks that requests failed for this cause alone, and returns whether one did.
#[track_caller]
fn failed((code, said, errors): &Said, cause: &str) -> bool {
    let causes: Vec<&String> = said["errors"].as_object().unwrap().keys().collect();
    if causes.is_empty() {
        return false;
    }
    assert!(matches!(code, 1 | 3), "{said} {errors}");
    assert_eq!(causes, [cause], "{said}");
    true
}

/// Checks that the command line made no sense, and that the error says why.
#[track_caller]
fn is_told(said: &Said, sentence: &str) {
    ends_with(2, said, sentence);
}

/// Checks that the service gave no answer, and that the error says why.
#[track_caller]
fn is_unanswered(said: &Said, sentence: &str) {
    ends_with(3, said, sentence);
}

#[track_caller]
fn ends_with(expected: i32, (code, _, errors): &Said, sentence: &str) {
    assert_eq!(*code, expected, "{errors}");
    assert!(errors.contains(sentence), "no `{sentence}` in {errors}");
}

fn six(_: usize, request: &Request<Bytes>) -> Reaction {
    let own = ["connection", "host", "transfer-encoding"];
    let is_right = request.version() == Version::HTTP_2
        && request.uri().authority().is_some()
        && own
            .iter()
            .all(|name| !request.headers().contains_key(*name));
    let is_asked_for = request.uri().path_and_query().unwrap() == "/six?a=b";
    Reaction::Answer(if is_right && is_asked_for { b"6" } else { b"" }, None)
}

#[test]
fn a_service_that_speaks_http_2_alone_is_asked_in_it() {
    once_in_three(|| {
        let server = Server::plain(six);
        let url = format!("http://localhost:{}", server.port);
        let said = duel(&format!("load {url}/six?a=b --http2 {SHORT}"));
        let has_answers = is_right(&said);
        assert_eq!(said.1["first_wrong_answer"], Value::Null);
        // Three connections are the users', and two those that learnt the answer.
        let connections = server.connections();
        assert!(connections <= 3 + 2, "{connections}");
        (has_answers && connections == 3 + 2, (said, connections))
    });
    let server = Server::plain(six);
    let url = format!("http://localhost:{}", server.port);
    let each = "--no-keep-alive --bystander /six?a=b --bystander-rate 50";
    once_in_three(|| {
        let said = duel(&format!("load {url}/six?a=b --http2 {SHORT} {each}"));
        let has_answers = is_right(&said);
        let completed = said.1["completed"].as_u64().unwrap();
        assert!(server.connections() as u64 > completed);
        (has_answers, said)
    });
    let page = tempfile::tempdir().unwrap();
    let (code, _, errors) = duel(&format!(
        "compare --running {url} {url} --http2 --get /six?a=b --ready /six?a=b --rate 50 --seconds 1 --at-most 1 \
         --warm-up 0 --users 3 --report {}",
        page.path().display()
    ));
    assert!(matches!(code, 0 | 1 | 3), "{errors}");
    assert!(!errors.contains("got no answer"), "{errors}");
}

#[test]
fn over_tls_the_server_has_to_choose_http_2() {
    let server = Server::encrypted(&["h2", "http/1.1"], six);
    let url = format!("https://localhost:{}/six?a=b", server.port);
    let right = |options: &str| {
        once_in_three(|| {
            let said = duel(&format!("load {options} --http2 {SHORT}"));
            (is_right(&said), said)
        })
    };
    let said = right(&format!("{url} --cacert {AUTHORITY}"));
    let notes = |said: &Said| said.1["notes"].to_string();
    assert!(!notes(&said).contains("not checked"));
    // The server's certificate is not for this name.
    let address = url.replace("localhost", "127.0.0.1");
    let said = right(&format!("{address} --insecure"));
    assert!(notes(&said).contains("the server's certificate was not checked"));
    is_told(&duel(&format!("load {url} --http2")), "--cacert FILE");
    is_told(&duel(&format!("load {url} --http2")), "--insecure");
    is_told(
        &duel(&format!("load {url} --insecure --cacert {AUTHORITY}")),
        "cannot be used with",
    );
    let plain = url.replace("https", "http");
    is_told(
        &duel(&format!("load {plain} --insecure")),
        "a URL with https://",
    );
    for (alpn, sentence) in [
        (&["http/1.1"][..], "speaks another version of HTTP"),
        (&[], "the server does not choose HTTP/2"),
    ] {
        let server = Server::encrypted(alpn, six);
        let url = format!("https://localhost:{}/", server.port);
        is_unanswered(&duel(&format!("load {url} --http2 --insecure")), sentence);
    }
}

/// One server knows HTTP/1.1, and one closes connections that it does not understand.
#[test]
fn a_server_without_http_2_is_told() {
    for (answer, sentence) in [
        (
            "HTTP/1.1 400 Bad Request\r\n\r\n",
            "the answer is not HTTP/2",
        ),
        ("", "closed before HTTP/2 began"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                std::thread::spawn(move || {
                    let _ = stream.read(&mut [0; 1024]);
                    let _ = stream.write_all(answer.as_bytes());
                    let _ = stream.shutdown(Shutdown::Write);
                    // A close before the client's last bytes are read would be a reset, which may overtake the answer.
                    let _ = stream.read_to_end(&mut Vec::new());
                });
            }
        });
        let said = duel(&format!("load http://127.0.0.1:{port}/ --http2"));
        is_unanswered(&said, sentence);
        is_unanswered(&said, "leave out --http2");
    }
}

#[test]
fn what_ends_a_stream_or_a_connection_is_the_cause() {
    let at = |server: &Server| {
        let asked = "--http2 --expect-status 200";
        duel(&format!(
            "load http://127.0.0.1:{}/ {asked} {SHORT}",
            server.port
        ))
    };
    // The load learns the first answer.
    let refuses: React = |number, _| match number {
        0 => Reaction::Answer(b"6", None),
        _ => Reaction::Reset(Reason::REFUSED_STREAM),
    };
    let resets: React = |number, _| match number {
        0 => Reaction::Answer(b"6", None),
        _ => Reaction::Reset(Reason::INTERNAL_ERROR),
    };
    let ends: React = |number, _| match number {
        0 => Reaction::Answer(b"6", None),
        _ => Reaction::GoAway(Reason::ENHANCE_YOUR_CALM),
    };
    for (react, cause) in [
        (refuses, "refused by the server (REFUSED_STREAM)"),
        (resets, "reset by the server (RST_STREAM, INTERNAL_ERROR)"),
        (
            ends,
            "connection ended by the server (GOAWAY, ENHANCE_YOUR_CALM)",
        ),
    ] {
        once_in_three(|| {
            let said = at(&Server::plain(react));
            (failed(&said, cause), said)
        });
    }
    // Proxies end connections in this way after some number of requests, so it is no fault.
    once_in_three(|| {
        let server = Server::plain(|_, _| Reaction::GoAway(Reason::NO_ERROR));
        let said = at(&server);
        let connections = server.connections();
        // A machine that stands still may lose a farewell, as a network may.
        let is_clean = matches!(said.0, 0 | 3) && said.1["errors"] == serde_json::json!({});
        (is_clean && connections > 10, (said, connections))
    });
}

const MESSAGE: &[u8] = b"\x0a\x02\xff\xfe";
const FRAMED: &[u8] = b"\0\0\0\0\x04\x0a\x02\xff\xfe";

/// Every third of these unary gRPC calls fails.
#[test]
fn a_call_whose_status_is_not_0_has_failed() {
    let echo: React = |_, request| {
        let is_right = request.headers()["te"] == "trailers" && request.body() == FRAMED;
        Reaction::Answer(FRAMED, Some(if is_right { "0" } else { "3" }))
    };
    let fails: React =
        |number, _| Reaction::Answer(FRAMED, Some(if number % 3 == 2 { "5" } else { "0" }));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("message.bin");
    std::fs::write(&file, MESSAGE).unwrap();
    let body = format!("--body=@{}", file.display());
    let grpc = "--header=content-type: application/grpc";
    let call = |port: u16, more: &str| {
        duel_with(
            &format!("load http://127.0.0.1:{port} {more}"),
            &["--request=POST /shop.Shop/Buy", grpc, &body],
        )
    };
    let server = Server::plain(echo);
    once_in_three(|| {
        let said = call(server.port, &format!("--http2 {SHORT}"));
        (is_right(&said), said)
    });
    is_told(&call(server.port, ""), "add --http2");
    is_told(&call(server.port, "--http2 --k6 x.js"), "--k6 and --http2");
    once_in_three(|| {
        let server = Server::plain(fails);
        let said = call(server.port, &format!("--http2 {SHORT}"));
        let has_both = failed(&said, "grpc-status 5") && said.1["completed"] != 0;
        // A call that fails must not open another connection.
        let connections = server.connections();
        assert!(connections <= 3 + 2, "{connections}");
        (has_both && connections == 3 + 2, (said, connections))
    });
    let never: React = |_, _| Reaction::Answer(b"", Some("12"));
    let said = call(Server::plain(never).port, "--http2");
    assert!(
        said.2.contains("is answered with grpc-status 12"),
        "{said:?}"
    );
}

#[test]
fn a_body_that_is_no_text_is_not_written_into_a_script() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("image.bin");
    std::fs::write(&file, [0xff, 0xd8]).unwrap();
    let body = format!("--body=@{}", file.display());
    let said = duel_with(
        "load http://127.0.0.1:1 --k6 x.js",
        &["--request=POST /images", &body],
    );
    is_told(
        &said,
        "--k6: the --body of POST /images is no text in UTF-8",
    );
}
