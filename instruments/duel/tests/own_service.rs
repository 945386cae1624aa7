//! Tests of the program against a typical service: with a clock in its JSON, ids in its paths, and a login.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use terminal::testing::once_in_three;

/// Starts a service that runs until the test process ends, and returns its URL. Its token contains `name`.
fn service(name: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    serve(name, listener);
    url
}

fn serve(name: &'static str, listener: TcpListener) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                while let Some((path, head)) = request(&mut reader) {
                    let count = COUNT.fetch_add(1, Ordering::Relaxed);
                    let answer = answer(name, &path, &head, count);
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
}

/// Reads a request; returns its path, and its head in lower case.
fn request(reader: &mut impl BufRead) -> Option<(String, String)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let path = head.split(' ').nth(1)?.to_owned();
    let head = head.to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    Some((path, head))
}

fn answer(name: &str, path: &str, head: &str, count: u64) -> String {
    let (mut status, mut more) = ("200 OK", String::new());
    let body = match path {
        // Both orders of the keys come equally often.
        "/clock" if count.is_multiple_of(2) => format!(r#"{{"price":3,"at":{count}}}"#),
        "/clock" => format!(r#"{{"at":{count},"price":3}}"#),
        "/login" => {
            more = format!("set-cookie: session={name}; Path=/\r\n");
            format!(r#"{{"data":{{"token":"{name}"}}}}"#)
        }
        "/mine" => {
            let [token, cookie] = [
                format!("\r\nauthorization: bearer {name}\r\n"),
                format!("\r\ncookie: session={name}\r\n"),
            ];
            if !head.contains(&token) || !head.contains(&cookie) {
                status = "401 Unauthorized";
            }
            "mine".to_owned()
        }
        "/spec" => {
            if !head.contains(&format!("\r\nauthorization: token {name}\r\n")) {
                status = "401 Unauthorized";
            }
            "mine".to_owned()
        }
        // It gives other answers once the first two of a path are learnt.
        path if path.starts_with("/drifts/") => {
            static ASKED: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());
            let mut asked = ASKED.lock().unwrap();
            let asked = asked.entry(path.to_owned()).or_default();
            *asked += 1;
            if *asked <= 2 { "learnt" } else { "another" }.to_owned()
        }
        path if path.starts_with("/debug/look") && path.contains("format=json") => {
            r#"{"text": "Nothing."}"#.to_owned()
        }
        // This text would set a terminal's title and clipboard, and clear it.
        path if path.starts_with("/debug/look") => {
            "Nothing.\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\r".to_owned()
        }
        path => path.to_owned(),
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n{more}\r\n{body}")
}

/// Runs `duel LINE` in a shell; returns its exit code and its output.
fn duel(line: &str) -> (Option<i32>, String) {
    duel_after(":", line)
}

/// Runs `duel LINE` after the command `first` of the same shell.
fn duel_after(first: &str, line: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new("sh")
        .args(["-c", &format!("{first}; exec \"$0\" {line}")])
        .arg(env!("CARGO_BIN_EXE_duel"))
        .current_dir(&folder)
        .output()
        .unwrap();
    let said = [output.stderr, output.stdout].map(|bytes| String::from_utf8(bytes).unwrap());
    (output.status.code(), said.concat())
}

const SHORT: &str = "--users 2 --seconds 0.2 --warm-up 0 --think 0.01";

#[track_caller]
fn told(line: &str, code: i32, words: &[&str]) -> String {
    let (ended, said) = duel(line);
    assert!(
        words.iter().all(|word| said.contains(word)),
        "{words:?} are not all in {said}"
    );
    // If other programs leave the generator no CPU, the run is invalid.
    let is_right = ended == Some(code) || code < 2 && ended == Some(3);
    assert!(is_right, "{ended:?}: {said}");
    said
}

#[test]
fn answers_that_change_are_compared_without_what_changes() {
    let url = service("base");
    let load = |options: &str| format!("load {url}/clock {SHORT} {options}");
    let remedy = "add --ignore-json '/at'";
    told(&load(""), 0, &["the status alone is compared", remedy]);
    told(&load("--compare body"), 2, &["GET /clock changes", remedy]);
    told(&load("--compare json"), 2, &[remedy]);
    told(
        &load("--ignore-json /at"),
        0,
        &["status and JSON are compared.", " 0 wrong,"],
    );
    told(
        &load("--compare status"),
        0,
        &["the status alone is compared."],
    );
    let judge = "--judge 'grep -q price $EXPECTED && grep -q price $RECEIVED'";
    told(&load(judge), 0, &["bodies by --judge"]);
    told(
        &load("--judge 'cmp $EXPECTED $RECEIVED'"),
        2,
        &["--judge calls two answers to GET /clock different"],
    );
    told(&load("--judge no-such-judge"), 2, &["no-such-judge"]);
    let other = service("change");
    let line = format!("compare --running {url} {other} --get /clock {SHORT} --at-most 1 --judge");
    told(&format!("{line} true"), 1, &["bodies by --judge"]);
    told(&load("--ignore-json at"), 2, &["such as /generated_at"]);
}

#[test]
fn each_server_is_asked_as_somebody_who_has_logged_in_there() {
    let [base, change] = ["base", "change"].map(service);
    let login = "--login 'POST /login' --login-body '{\"name\": \"me\"}' --login-token /data/token";
    told(
        &format!("load {base} --get /mine {SHORT} {login}"),
        0,
        &[
            "GET /mine: status and body are compared.",
            " 0 wrong, 0 failed",
        ],
    );
    let line = format!("compare --running {base} {change} --get /mine {SHORT} --at-most 1");
    told(&line, 2, &["GET /mine answers with status 401"]);
    // One round decides nothing, although both services have answered all requests.
    let said = told(
        &format!("{line} {login}"),
        1,
        &["GET /mine: status and body are compared."],
    );
    let is_open = ["inconclusive", "generator-bound"].map(|word| said.contains(word));
    assert!(is_open.contains(&true), "{said}");
    told(
        &format!("{line} --login '/none'"),
        2,
        &["--login POST /none sets no cookie"],
    );
    told(
        &format!("load {base} --get / {login}/none"),
        2,
        &["the service: --login POST /login has no text at /data/token/none"],
    );
}

#[test]
fn an_access_log_is_sent_as_it_was() {
    let url = service("base");
    let line = |path: &str| {
        format!("1.2.3.4 - - [1/Jan/2026:00:00:00 +0000] \"GET {path} HTTP/1.1\" 200 5\n")
    };
    let log: Vec<String> = ["/a/1", "/a/2", "/a/2", "/b"].map(line).into();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), log.concat()).unwrap();
    let load = format!("load {url} {SHORT} --access-log {}", file.path().display());
    told(
        &load,
        0,
        &[
            "2 routes",
            "100 % of its 4 requests",
            "GET /a/{…}: ",
            "GET /b: ",
            " 0 wrong, 0 failed",
        ],
    );
    told(&format!("{load} --get /"), 2, &["cannot be used with"]);
    std::fs::write(file.path(), "no log\n").unwrap();
    told(
        &load,
        2,
        &[
            "it has no GET request with status 2xx or 3xx",
            "GET /a HTTP/1.1",
        ],
    );
}

#[test]
fn a_login_has_the_scheme_that_the_service_wants() {
    let url = service("spec");
    let load = format!("load {url} {SHORT} --get /spec --login /login --login-token /data/token");
    told(&load, 2, &["`Authorization: Bearer …`", "--login-scheme"]);
    told(
        &format!("{load} --login-scheme Token"),
        0,
        &[" 0 wrong, 0 failed"],
    );
    told(
        &format!("{load} --login-scheme 'To ken'"),
        2,
        &["such as Bearer or Token"],
    );
}

#[test]
fn wrong_answers_are_the_services_fault_however_busy_the_generator_is() {
    let url = service("drifts");
    let attempts = AtomicUsize::new(0);
    // A machine that stands still may leave the load without any answer.
    once_in_three(|| {
        let path = format!("/drifts/{}", attempts.fetch_add(1, Ordering::Relaxed));
        // Fifty users without a pause take all of the generator's CPU.
        let (code, said) = duel(&format!(
            "load {url} --get {path} --seconds 0.3 --warm-up 0"
        ));
        let words = format!("first wrong answer, to GET {path}: another");
        (code == Some(1) && said.contains(&words), said)
    });
}

/// This holds for every command that sends requests to the service.
#[test]
fn a_service_that_refuses_or_hangs_makes_a_run_invalid() {
    // A port that is taken, and at which nobody listens.
    let taken = tokio::net::TcpSocket::new_v4().unwrap();
    taken.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let refusing = format!("http://{}", taken.local_addr().unwrap());
    // The system accepts connections for this listener, but nothing reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hanging = format!("http://{}", silent.local_addr().unwrap());
    let url = service("compared");
    for (line, sentence) in [
        (format!("load {refusing} --get /a"), "connection refused"),
        (
            format!("load {hanging} --get /a --time-out 0.2"),
            "time_out",
        ),
        (
            format!("load {hanging} --get /a --login /login --time-out 0.2"),
            "time_out",
        ),
        (format!("look {refusing} --seconds 1"), "does not answer"),
        (
            format!("compare --running {url} {refusing} --get /a"),
            "o server answers at",
        ),
        (
            format!("compare --running {url} {hanging} --get /a --time-out 0.2"),
            "time_out",
        ),
    ] {
        told(&line, 3, &[sentence]);
    }
}

#[test]
fn a_service_on_the_other_loopback_address_is_found() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        return;
    };
    let port = listener.local_addr().unwrap().port();
    serve("sixth", listener);
    let line = format!("load http://localhost:{port} --get /a --users 1 --seconds 0.2 --warm-up 0");
    let (code, said) = duel(&line);
    // If other programs leave the generator no CPU, the run is invalid.
    assert!(matches!(code, Some(0 | 3)), "{said}");
    assert!(said.contains(" 0 wrong, 0 failed"), "{said}");
}

#[test]
fn a_look_as_json_names_its_form() {
    let url = service("form");
    let words = [r#""schema": "look/1""#, r#""text": "Nothing.""#];
    told(&format!("look {url} --seconds 1 --format json"), 0, &words);
}

/// A terminal obeys control characters: they can hide text, or write to the clipboard.
#[test]
fn control_characters_of_a_service_stay_off_the_terminal() {
    let url = service("evil");
    let says = r#"printf "no such port \033]52;c;ZXZpbA==\007\033[2J" >&2; exit 1"#;
    for (line, code, word) in [
        (format!("look {url} --seconds 1"), 0, "Nothing."),
        (
            format!("compare --base '{says}' --change '{says}' --get /"),
            3,
            "no such port",
        ),
    ] {
        let said = told(&line, code, &[word]);
        assert!(
            !said.contains(|c: char| c.is_control() && c != '\n'),
            "{said:?}"
        );
    }
}

#[test]
fn too_few_file_descriptors_are_named() {
    let url = service("few");
    let (code, said) = duel_after("ulimit -n 24", &format!("load {url} --get /a"));
    assert_eq!(code, Some(3), "{said}");
    assert!(said.contains("ulimit -n"), "{said}");
}
