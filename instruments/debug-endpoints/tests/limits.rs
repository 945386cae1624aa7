//! Services that the system gives no more threads or memory, each in a process of its own, in which a panic ends it.
#![cfg(target_os = "linux")]

mod common;

use std::fs::{self, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use axum::Router;
use axum::routing::get;
use common::{ENDPOINTS, ask};
use debug_endpoints::{DebugEndpoints, Incidents};
use rlimit::Resource;

/// Environment variable that tells a test which service to run.
const SERVICE: &str = "LIMITED_SERVICE";

/// Further endpoints: a picture, and one that a feature takes away.
const MORE: [&str; 2] = ["/debug/threads?format=svg&", "/debug/pprof/heap?"];

/// Returns a user with no process but the next service of this test: `RLIMIT_NPROC` counts all threads of a user, and
/// root has no limit. Tests run at the same time, here and in other processes.
fn nobody_else() -> u32 {
    static SERVICES: AtomicU32 = AtomicU32::new(0);
    let nth = SERVICES.fetch_add(1, Ordering::Relaxed);
    1_000_000 + std::process::id() * 100 + nth
}

/// Held while a program is copied, and while one is started: a child that is started meanwhile has the copy open for
/// writing until it runs its own program, and the system runs no program that is open for writing.
static STARTING: Mutex<()> = Mutex::new(());

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").expect("this is Linux");
    status.contains("\nUid:\t0\t")
}

/// Runs a test of this file again as the service that `what` names, and returns its output if it did not end by itself.
fn service_process(test: &str, what: &str) -> String {
    // Another user has to be able to run the program.
    let readable = Permissions::from_mode(0o755);
    let mut folder = tempfile::Builder::new();
    let folder = folder.permissions(readable).tempdir().expect("a folder");
    let program = folder.path().join("service");
    let own = std::env::current_exe().expect("this program");
    let starting = STARTING.lock().unwrap_or_else(PoisonError::into_inner);
    fs::copy(own, &program).expect("copied");
    let mut service = Command::new(program);
    service
        .args(["--exact", test, "--nocapture"])
        .env(SERVICE, what)
        .current_dir("/")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if is_root() {
        service.uid(nobody_else());
    }
    let service = service.spawn().expect("started");
    drop(starting);
    let output = service.wait_with_output().expect("it ends");
    let printed = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    // The standard library ends a process in which a thread gets no memory for its signal stack, and tokio starts
    // threads without asking how much there is. No endpoint can prevent that.
    if printed.contains("failed to allocate an alternative stack") {
        println!(
            "{what}: the standard library ended the service, so nothing is known of its endpoints"
        );
        return printed;
    }
    assert!(
        output.status.success(),
        "{what}: {}: {printed}",
        output.status
    );
    printed
}

/// Starts the service's runtime on a thread of its own, and returns the address of its endpoints.
fn begin(mut runtime: tokio::runtime::Builder) -> SocketAddr {
    std::panic::set_hook(Box::new(|panic| {
        eprintln!("{panic}");
        std::process::abort();
    }));
    let runtime = runtime.enable_all().build().expect("a runtime");
    let (address, addresses) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let debug = DebugEndpoints::new().record_incidents(Incidents::new());
            let app = Router::new()
                .route("/", get(async || "ok"))
                .layer(debug.layer());
            address
                .send(debug.listen("127.0.0.1:0").expect("a free port"))
                .expect("awaited");
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
            axum::serve(listener.expect("a free port"), app).await
        })
    });
    addresses.recv().expect("it listens")
}

/// Asks all endpoints. Each has to answer, or to say why it cannot with one of the words `why`.
fn ask_all(admin: SocketAddr, why: &[&str]) {
    for path in ENDPOINTS.into_iter().chain(MORE) {
        let answer = ask(admin, &format!("{path}seconds=0.1"));
        let text = answer.text();
        // Without requests there is no await profile; without its feature, no heap profile.
        assert!(
            [200, 404, 501, 503].contains(&answer.status),
            "{path}: {}: {text}",
            answer.status
        );
        if answer.status == 503 {
            println!("{path}: {text}");
            assert!(why.iter().any(|word| text.contains(word)), "{path}: {text}");
        }
    }
    assert_eq!(ask(admin, "/debug/metrics").status, 200);
}

#[test]
fn a_service_that_can_start_no_more_threads_answers_and_lives() {
    let Ok(service) = std::env::var(SERVICE) else {
        let mut refused = String::new();
        for flavour in ["current_thread", "multi_thread"] {
            refused += &service_process(
                "a_service_that_can_start_no_more_threads_answers_and_lives",
                &format!("{flavour} 0"),
            );
            // Only for a user without other processes can the limit be so low, which takes root.
            for more in if is_root() { &[1, 2, 3, 5][..] } else { &[] } {
                service_process(
                    "a_service_that_can_start_no_more_threads_answers_and_lives",
                    &format!("{flavour} {more}"),
                );
            }
        }
        for word in [
            "/debug/heartbeat?: this takes a thread",
            "/debug/look?: this takes a thread",
        ] {
            assert!(refused.contains(word), "no `{word}` in {refused}");
        }
        return;
    };
    let (flavour, more) = service.split_once(' ').expect("two words");
    let more: u64 = more.parse().expect("a number");
    let runtime = if flavour == "current_thread" {
        tokio::runtime::Builder::new_current_thread()
    } else {
        tokio::runtime::Builder::new_multi_thread()
    };
    let admin = begin(runtime);
    let threads = fs::read_dir("/proc/self/task").expect("this is Linux");
    let threads = u64::try_from(threads.count()).expect("few");
    let most = if more == 0 { 1 } else { threads + more };
    Resource::NPROC.set(most, most).expect("lowered");
    ask_all(admin, &["takes a thread"]);
}

#[test]
fn a_service_that_is_left_little_memory_answers_and_lives() {
    let Ok(service) = std::env::var(SERVICE) else {
        let mut refused = String::new();
        for limit in ["data 64", "data 128", "data 192", "data 320", "as 400"] {
            refused += &service_process(
                "a_service_that_is_left_little_memory_answers_and_lives",
                limit,
            );
        }
        if cfg!(feature = "cpu") {
            let word = "/debug/threads?: a profile may take";
            assert!(refused.contains(word), "no `{word}` in {refused}");
        }
        return;
    };
    let (kind, mib) = service.split_once(' ').expect("two words");
    let bytes = mib.parse::<u64>().expect("a number") << 20;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2);
    let admin = begin(runtime);
    let resource = if kind == "data" {
        Resource::DATA
    } else {
        Resource::AS
    };
    resource.set(bytes, bytes).expect("lowered");
    ask_all(admin, &["memory", "takes a thread"]);
}
