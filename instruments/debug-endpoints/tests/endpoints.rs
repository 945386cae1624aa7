//! A service with the endpoints, asked over TCP as anybody could ask.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use common::{Answer, ask, ask_as, ask_until};
use debug_endpoints::{DebugEndpoints, ListenError};
use tokio::runtime::Runtime;
use tokio::sync::Mutex;

/// There is one profile at a time in a process, and these tests share one.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Lock that the handler `stuck_here` waits for, so that no request gets past it.
static LOCK: Mutex<()> = Mutex::const_new(());

async fn stuck_here(Path(_): Path<u32>) -> &'static str {
    let _guard = LOCK.lock().await;
    "never"
}

/// Sends a request as text, and returns all that is answered until the connection ends.
fn raw(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Begins a profile of this kind, and returns once it is being taken.
fn begun(admin: SocketAddr, kind: &'static str, seconds: u32) -> JoinHandle<Answer> {
    let patience = Instant::now() + Duration::from_secs(60);
    let first = std::thread::spawn(move || {
        loop {
            let answer = ask(admin, &format!("{kind}?seconds={seconds}"));
            if answer.status != 409 {
                return answer;
            }
            assert!(Instant::now() < patience, "{kind}: always busy");
        }
    });
    let short = format!("{kind}?seconds=0.001");
    while !first.is_finished() && ask(admin, &short).status != 409 {
        assert!(Instant::now() < patience, "{kind}: never busy");
    }
    first
}

/// Returns endpoints whose router answers every request from this machine.
fn trusting() -> DebugEndpoints {
    DebugEndpoints::new().trust_loopback()
}

/// Starts a [`common::service`] in which no order is ever answered.
fn service(debug: impl FnOnce() -> DebugEndpoints) -> (Runtime, SocketAddr, SocketAddr) {
    common::service(debug, |debug| {
        Router::new()
            .route("/orders/{id}", get(stuck_here))
            .route("/at-once", get(|| async { "done" }))
            .layer(debug.layer())
            .merge(debug.router())
    })
}

#[test]
fn each_path_of_the_list_has_an_answer() {
    let _alone = ALONE.lock();
    let (_runtime, _, admin) = service(DebugEndpoints::new);
    for line in ask(admin, "/debug").text().lines() {
        let path = line.split(['?', ' ']).next().expect("a path");
        let answer = ask(admin, &format!("{path}?seconds=0.05"));
        // The answer may be that there is nothing yet; a path without a route has an empty one.
        assert!(!answer.body.is_empty(), "{path}: {}", answer.status);
    }
    assert!(ask(admin, "/debug/nothing").body.is_empty());
}

#[test]
fn a_request_for_a_head_takes_no_profile() {
    let _alone = ALONE.lock();
    let (_runtime, _, admin) = service(DebugEndpoints::new);
    for path in [
        "pprof/profile",
        "pprof/flamegraph",
        "await",
        "threads",
        "tasks",
        "look",
        "heartbeat",
    ] {
        let began = Instant::now();
        let request = format!(
            "HEAD /debug/{path}?seconds=60 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        );
        let answer = raw(admin, &request);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "no body: {answer}");
        assert!(
            began.elapsed() < Duration::from_secs(59),
            "{path} took its time"
        );
    }
    let last = ask(admin, "/debug/pprof/last");
    assert_eq!(last.status, 404, "{}", last.text());
}

#[test]
fn each_endpoint_answers_on_the_service_and_on_a_listener() {
    let _alone = ALONE.lock();
    let (_runtime, own, admin) = service(|| trusting().metrics(|| Ok("orders_total 3\n".into())));
    let held = LOCK.blocking_lock();
    let stuck: Vec<_> = (1..=3)
        .map(|order| {
            let mut stream = TcpStream::connect(own).expect("it listens");
            let request = format!("GET /orders/{order} HTTP/1.1\r\nHost: shop\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("sent");
            stream
        })
        .collect();
    for address in [own, admin] {
        let index = ask(address, "/debug");
        assert_eq!(index.status, 200, "{}", index.text());
        assert!(index.text().contains("/debug/heartbeat"));

        let metrics = ask(address, "/debug/metrics").text();
        for name in ["orders_total 3", "tokio_workers 2", "process_cpu_seconds "] {
            assert!(metrics.contains(name), "{metrics}");
        }

        ask_until(address, "/debug/await?seconds=0.3", |waits| {
            let waits = waits.text();
            waits.contains("GET /orders/{id};") && waits.contains("stuck_here")
        });
        let last = ask(address, "/debug/pprof/last");
        assert_eq!(last.status, 404, "{}", last.text());
        assert!(last.text().contains("no such profile was taken yet"));
        ask_until(address, "/debug/look?seconds=0.5", |look| {
            let look = look.text();
            look.contains("requests were answered") && look.contains("stuck_here")
        });
        let pprof = "/debug/pprof/await?seconds=0.1";
        let pprof = ask_until(address, pprof, |pprof| pprof.status == 200);
        assert!(!unzipped(&pprof.body).is_empty(), "{}", pprof.head);
        let drawn = ask(address, "/debug/await/last?format=svg");
        if cfg!(feature = "flamegraph") {
            assert!(drawn.head.contains("image/svg+xml"), "{}", drawn.head);
        } else {
            assert_eq!(drawn.status, 501, "{}", drawn.text());
        }

        let heartbeat = ask(address, "/debug/heartbeat?seconds=0.2").text();
        for key in ["\"ticks\":", "\"late_p99\":", "\"held_worst\":["] {
            assert!(heartbeat.contains(key), "{heartbeat}");
        }

        let memory = ask(address, "/debug/memory?seconds=0.05");
        let told = memory.text().contains("\"says\":\"");
        assert!(told || !cfg!(target_os = "linux"), "{}", memory.text());

        for line in "\
            400 /debug/pprof/profile?seconds=0 over 0 and at most 600
            400 /debug/await?seconds=1&captures=0 from 1 to 100000
            400 /debug/await?seconds=600&captures=100000 at most 10 seconds
            400 /debug/pprof/await?seconds=600&captures=2000 at most 500 seconds
            400 /debug/pprof/profile?seconds=600&format=json pprof, folded and svg
            400 /debug/pprof/profile?seconds=600&format=xml unknown variant
            400 /debug/await?seconds=600&format=xml unknown variant
            400 /debug/await?seconds=600&all=perhaps all
            404 /debug/nothing "
            .lines()
        {
            let mut words = line.trim_start().splitn(3, ' ');
            let mut word = || words.next().unwrap_or_default();
            let (status, path, why) = (word().parse(), word(), word());
            let refusal = ask(address, path);
            assert_eq!(Ok(refusal.status), status, "{path}");
            assert!(refusal.text().contains(why), "{path}: {}", refusal.text());
        }
        #[cfg(all(target_os = "linux", feature = "cpu"))]
        cpu_profiles(address);
        #[cfg(not(all(target_os = "linux", feature = "cpu")))]
        assert_eq!(ask(address, "/debug/pprof/profile?seconds=1").status, 501);

        let heap = ask(address, "/debug/heap?seconds=0.1");
        if cfg!(feature = "heap") {
            assert!(
                heap.text().contains("\"dhatFileVersion\""),
                "{}",
                heap.text()
            );
        } else {
            assert_eq!(heap.status, 501);
            assert!(
                heap.text().contains("the feature `heap`"),
                "{}",
                heap.text()
            );
        }
    }
    assert_eq!(ask(admin, "/").status, 200);
    assert!(ask(admin, "/metrics").text().contains("orders_total 3"));
    drop((stuck, held));
}

fn unzipped(bytes: &[u8]) -> Vec<u8> {
    let mut protobuf = Vec::new();
    let mut unzip = flate2::read::GzDecoder::new(bytes);
    unzip.read_to_end(&mut protobuf).expect("it is gzipped");
    protobuf
}

#[cfg(all(target_os = "linux", feature = "cpu"))]
fn cpu_profiles(address: SocketAddr) {
    let profile = ask(address, "/debug/pprof/profile?seconds=0.2");
    assert_eq!(profile.status, 200, "{}", profile.text());
    let too_often = ask(address, "/debug/pprof/profile?seconds=1&frequency=5000");
    assert_eq!(too_often.status, 400, "{}", too_often.text());
    assert!(!unzipped(&profile.body).is_empty());
    let drawn = ask(address, "/debug/pprof/flamegraph?seconds=0.2&idle=true");
    let is_picture = drawn.head.contains("image/svg+xml") && drawn.text().contains("<svg");
    assert!(
        is_picture || !cfg!(feature = "flamegraph"),
        "{}",
        drawn.text()
    );
    let folded = ask(address, "/debug/pprof/last?format=folded&idle=true");
    assert!(folded.text().contains("[idle] "), "{}", folded.text());
}

#[test]
fn a_token_opens_and_nothing_else_does() {
    let (_runtime, own, admin) =
        service(|| DebugEndpoints::new().token(" open sesame\n").expect("one"));
    for address in [own, admin] {
        // base64 of `me:open sesame`, of `open sesame:` and of `me:open`.
        for (credentials, expected) in [
            ("Bearer open sesame", 200),
            ("Basic bWU6b3BlbiBzZXNhbWU=", 200),
            ("Basic b3BlbiBzZXNhbWU6", 401),
            ("Basic bWU6b3Blbg==", 401),
            ("Bearer open", 401),
            ("Bearer ", 401),
            ("open sesame", 401),
        ] {
            let headers = [("Host", "shop.example"), ("Authorization", credentials)];
            let answer = ask_as(address, "/debug", &headers);
            assert_eq!(answer.status, expected, "{credentials}: {}", answer.text());
        }
        let none = ask(address, "/debug/metrics");
        assert_eq!(none.status, 401);
        assert!(
            none.head.contains("www-authenticate: basic"),
            "{}",
            none.head
        );
    }
}

#[test]
fn a_listener_that_others_can_reach_takes_a_token() {
    let open = DebugEndpoints::new().listen("0.0.0.0:0");
    let error = open.expect_err("there is no token");
    assert!(matches!(error, ListenError::Exposed(_)), "{error}");
    assert!(error.to_string().contains("DebugEndpoints::token"));
    let open = DebugEndpoints::new().token("t").expect("one");
    open.listen("0.0.0.0:0").expect("with a token it may");
    for (token, why) in [
        ("", "is empty"),
        (" \n", "is empty"),
        ("schlüssel", "character 5"),
        ("a\nb", "character 2"),
    ] {
        let error = DebugEndpoints::new().token(token).expect_err(token);
        assert!(error.to_string().contains(why), "{token}: {error}");
    }
}

#[test]
fn a_name_that_leads_here_and_is_not_ours_is_refused() {
    let (_runtime, own, admin) = service(trusting);
    for address in [own, admin] {
        let ours = "localhost 127.0.0.1:8080 [::1]:8080 LocalHost:8080 localhost. 127.0.0.2:6060 [0:0::1] \
            [::ffff:127.0.0.1]:80";
        let others = "localhost.. localhost:http localhost:+80 user@localhost [::1 [::1]x:80 [::2] 128.0.0.1 \
            rebound.example:8080 localhost.rebound.example 127.0.0.1.rebound.example localhost: ";
        for (hosts, expected) in [(ours, 200), (others, 403)] {
            for host in hosts.split(' ') {
                let answer = ask_as(address, "/debug", &[("Host", host)]);
                assert_eq!(answer.status, expected, "{host}: {}", answer.text());
            }
        }
        let embedded = [
            ("Host", "localhost"),
            ("Sec-Fetch-Site", "cross-site"),
            ("Sec-Fetch-Dest", "image"),
        ];
        assert_eq!(ask_as(address, "/debug", &embedded).status, 403);
        let followed = [embedded[0], embedded[1], ("Sec-Fetch-Dest", "document")];
        assert_eq!(ask_as(address, "/debug", &followed).status, 200);
    }
    // The service itself answers requests for any host name.
    let own_route = ask_as(own, "/nothing", &[("Host", "shop.example")]);
    assert_eq!(own_route.status, 404);
}

#[test]
fn a_router_without_a_token_answers_nobody_until_the_author_trusts_this_machine() {
    let (_runtime, own, admin) = service(DebugEndpoints::new);
    for path in [
        "/debug",
        "/debug/metrics",
        "/debug/look",
        "/debug/threads/last",
    ] {
        let refused = ask(own, path);
        assert_eq!(refused.status, 403, "{path}: {}", refused.text());
        for way_out in ["listen(\"127.0.0.1:6060\")", "token", "trust_loopback()"] {
            assert!(refused.text().contains(way_out), "{}", refused.text());
        }
    }
    // The service still answers paths that the router does not have.
    assert_eq!(ask(own, "/at-once").text(), "done");
    assert_eq!(ask(own, "/debug/nothing").status, 404);
    assert_eq!(ask(admin, "/debug").status, 200);
    let (_runtime, own, _) = service(trusting);
    assert_eq!(ask(own, "/debug").status, 200);
    // A token is required even if this machine is trusted.
    let (_runtime, own, _) = service(|| trusting().token("t").expect("one"));
    assert_eq!(ask(own, "/debug").status, 401);
}

#[test]
fn what_a_proxy_passes_on_is_refused_also_where_this_machine_is_trusted() {
    let headers = [
        ("X-Forwarded-For", "10.0.0.7"),
        ("x-forwarded-proto", "https"),
        ("Forwarded", "for=10.0.0.7"),
        ("Via", "1.1 edge"),
        ("X-Real-IP", "10.0.0.7"),
        ("True-Client-IP", "10.0.0.7"),
        ("CF-Connecting-IP", ""),
        ("X-Request-Id", "7"),
        ("x-varnish", "32770"),
        ("x-amz-cf-id", "a"),
        ("fly-client-ip", "10.0.0.7"),
        ("x-b3-traceid", "a"),
    ];
    let (_runtime, own, admin) = service(trusting);
    for header in headers {
        let answer = ask_as(own, "/debug", &[("Host", "localhost"), header]);
        assert_eq!(answer.status, 403, "{header:?}: {}", answer.text());
        let sentence = answer.text();
        assert!(
            sentence.contains("proxy") && sentence.contains("set a token"),
            "{sentence}"
        );
        // The listener's port has nothing else, so a proxy in front of it is there on purpose.
        assert_eq!(
            ask_as(admin, "/debug", &[("Host", "localhost"), header]).status,
            200
        );
    }
    // The only sign of nginx before 1.29.7 in its default configuration is HTTP/1.0.
    let nginx = raw(own, "GET /debug HTTP/1.0\r\nHost: localhost\r\n\r\n");
    assert!(nginx.starts_with("HTTP/1.0 403"), "{nginx}");
    let (_runtime, own, _) = service(|| DebugEndpoints::new().token("t").expect("one"));
    let through = [
        ("Host", "shop.example"),
        headers[0],
        ("Authorization", "Bearer t"),
    ];
    assert_eq!(ask_as(own, "/debug", &through).status, 200);
}

#[test]
fn a_router_that_trusts_this_machine_and_cannot_know_who_asks_says_what_to_do() {
    let runtime = Runtime::new().expect("a runtime");
    let address = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let app = trusting().router();
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    });
    let answer = ask(address, "/debug");
    assert_eq!(answer.status, 403);
    for way_out in ["into_make_service_with_connect_info", "Unix socket"] {
        assert!(answer.text().contains(way_out), "{}", answer.text());
    }
}

#[test]
fn a_profile_without_a_wait_says_how_many_requests_were_answered_meanwhile() {
    let _alone = ALONE.lock();
    let (_runtime, own, admin) = service(DebugEndpoints::new);
    let quiet = ask(admin, "/debug/await?seconds=0.2");
    assert!(
        quiet.text().contains("put load on the server"),
        "{}",
        quiet.text()
    );
    let profile = begun(admin, "/debug/await", 3);
    // The profile may begin some time after it was asked for, so requests come until it ends.
    while !profile.is_finished() {
        assert_eq!(ask(own, "/at-once").text(), "done");
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer = profile.join().expect("an answer");
    let said = answer.text();
    // A request that was sampled in its microseconds makes a profile.
    assert!(
        answer.status == 200 || said.contains(" finished meanwhile"),
        "{said}"
    );
}

#[test]
fn one_profile_of_a_kind_at_a_time_and_none_once_nobody_waits() {
    let _alone = ALONE.lock();
    let (_runtime, _, admin) = service(DebugEndpoints::new);
    let kinds = [
        ("/debug/await", "another await profile"),
        ("/debug/heartbeat", "another heartbeat"),
        ("/debug/pprof/profile", "another CPU profile"),
        ("/debug/threads", "another profile of threads"),
    ];
    let is_on_linux = cfg!(all(target_os = "linux", feature = "cpu"));
    let of_this_build = if is_on_linux { 4 } else { 2 };
    let kinds = &kinds[..of_this_build];
    // All at the same time, as a collector asks.
    let first = kinds.iter().map(|(path, why)| {
        let request = format!("GET {path}?seconds=600 HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let begin = || {
            let mut first = TcpStream::connect(admin).expect("it listens");
            first.write_all(request.as_bytes()).expect("sent");
            first
        };
        let mut pause = Duration::from_millis(50);
        let (first, busy) = loop {
            let first = begin();
            std::thread::sleep(pause);
            let answer = ask(admin, &format!("{path}?seconds=0.01"));
            if answer.status == 409 {
                break (first, answer.text());
            }
            // On a busy machine the second may have come first, and the first was refused.
            pause *= 2;
            assert!(pause < Duration::from_secs(30), "{path}: {}", answer.text());
        };
        assert!(
            busy.contains(why) && busy.contains("wait until it ends"),
            "{busy}"
        );
        first
    });
    let first: Vec<_> = first.collect();
    // The first clients hang up, so the next one need not wait for ten minutes.
    drop(first);
    let patience = Instant::now() + Duration::from_secs(60);
    for (path, _) in kinds {
        while ask(admin, &format!("{path}?seconds=0.1")).status == 409 {
            assert!(Instant::now() < patience, "{path}: still busy");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Opens 100 connections of each kind that is owed no answer, which is more than the 64 that the listener keeps open.
#[test]
fn clients_that_are_owed_nothing_keep_nobody_from_an_answer() {
    let token = || DebugEndpoints::new().token("t").expect("one");
    for (debug, right) in [
        (
            DebugEndpoints::new as fn() -> DebugEndpoints,
            "Host: localhost",
        ),
        (token, "Host: x\r\nAuthorization: Bearer t"),
    ] {
        let (_runtime, _, admin) = service(debug);
        // These requests together have more answers than the buffers hold, if the listener sends them all.
        let pipelined = format!("GET /debug HTTP/1.1\r\n{right}\r\n\r\n").repeat(5_000);
        for request in [
            "",
            "GET /debug HTTP/1.1\r\nHost: loc",
            "GET /debug HTTP/1.1\r\nHost: rebound.example\r\n\r\n",
            &pipelined,
        ] {
            let answered_after = || {
                let _held: Vec<_> = (0..100)
                    .map(|_| {
                        let mut stream = TcpStream::connect(admin).expect("it listens");
                        stream.set_nonblocking(true).expect("set");
                        // The client writes as much as the buffers take, and never reads.
                        let _ = stream.write_all(request.as_bytes());
                        stream
                    })
                    .collect();
                let began = Instant::now();
                let own = format!("GET /debug/metrics HTTP/1.1\r\n{right}\r\n");
                let answer = raw(admin, &format!("{own}Connection: close\r\n\r\n"));
                assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
                began.elapsed()
            };
            // A machine that stalls takes so long once; a client that waits for others takes so long each time.
            let mut attempts = (0..3).map(|_| answered_after());
            let is_soon = attempts.any(|after| after < Duration::from_secs(4));
            assert!(is_soon, "behind clients that send {request:.40}");
        }
    }
}

/// Checks that a client whose profile is being taken keeps its connection, whatever other clients come.
#[test]
fn a_profile_that_is_being_taken_is_not_crowded_out() {
    let _alone = ALONE.lock();
    let (_runtime, _, admin) = service(DebugEndpoints::new);
    let first = begun(admin, "/debug/heartbeat", 3);
    let crowd: Vec<_> = (0..200)
        .map(|_| TcpStream::connect(admin).expect("it listens"))
        .collect();
    assert_eq!(ask(admin, "/debug").status, 200);
    assert_eq!(first.join().expect("answered").status, 200);
    drop(crowd);
}

#[test]
fn a_connection_answers_once_and_a_refused_one_not_at_all_again() {
    let (_runtime, _, admin) = service(DebugEndpoints::new);
    for host in ["localhost", "rebound.example"] {
        let twice = format!("GET /debug HTTP/1.1\r\nHost: {host}\r\n\r\n").repeat(2);
        let answer = raw(admin, &twice[..twice.len() / 2]);
        assert!(
            answer.to_lowercase().contains("connection: close"),
            "{answer}"
        );
        let mut stream = TcpStream::connect(admin).expect("it listens");
        stream.write_all(twice.as_bytes()).expect("sent");
        let mut answers = Vec::new();
        // The connection ends with a reset if the listener left requests unread.
        let _ = stream.read_to_end(&mut answers);
        let answers = String::from_utf8_lossy(&answers)
            .matches("HTTP/1.1 ")
            .count();
        assert!(answers <= 1, "{answers}");
    }
}
