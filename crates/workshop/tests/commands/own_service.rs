//! `compare` and `load --url` in a folder that knows nothing of the workshop.
#![cfg(unix)]

mod project;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use self::project::{Project, Running, runs, service, told};
use crate::workshop::Said;

#[test]
fn a_comparison_has_the_keys_that_scripts_rely_on_and_leaves_nothing_running() {
    let project = Project::new();
    let base = project.serve("--delay-ms 8");
    let said = project.compare(
        &base,
        &project.serve("--delay-ms 4"),
        &[
            "--get",
            "/a/{1..3} x2",
            "--get",
            "/b",
            "--bystander",
            "/health",
            "--root-cause",
            "served_total",
            "--format",
            "json",
            "--markdown",
            "out/summary.md",
        ],
    );
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let expected = [
        "base", "change", "effect", "metrics", "reason", "rounds", "seconds", "verdict",
    ];
    assert_eq!(keys, expected);
    let verdict = value["verdict"].as_str().unwrap();
    let code = match verdict {
        "faster" | "no_difference" => 0,
        "slower" | "inconclusive" => 1,
        _ => 3,
    };
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(value["base"]["name"], base);
    let summary = fs::read_to_string(project.path("out/summary.md")).unwrap();
    let report = fs::read_to_string(project.path("target/workshop/compare.html")).unwrap();
    assert!(summary.contains(" against ") && !report.contains("http://"));
    // A machine that is busy enough makes it invalid, and then there are no figures.
    if verdict != "invalid" {
        assert_eq!(value["effect"]["metric"], "requests_per_second");
        let metrics: Vec<&str> = value["metrics"]
            .as_array()
            .unwrap()
            .iter()
            .map(|metric| metric["metric"].as_str().unwrap())
            .collect();
        for metric in [
            "requests_per_second",
            "p50_ms",
            "p50_ms GET /b",
            "served_total",
        ] {
            assert!(metrics.contains(&metric), "{metrics:?}");
        }
        assert!(summary.contains("| Requests per second |"), "{summary}");
        assert!(report.contains("Every round"), "{report}");
    }
    assert!(project.ever_ran() >= 3);
    assert!(project.left().is_empty());
}

#[test]
fn profiles_of_a_service_without_the_endpoints_are_missing_and_the_verdict_is_not() {
    let project = Project::new();
    let slow = project.serve("--delay-ms 4");
    let said = project.compare(&slow, &slow, &["--get", "/", "--profiles"]);
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    let all = format!("{}{}", said.out, said.err).to_lowercase();
    assert!(all.contains("there are no profiles: both"), "{said:?}");
    assert!(project.left().is_empty());
}

#[test]
fn what_a_shell_started_ends_with_it() {
    let project = Project::new();
    // The service is a grandchild in the background, and another has left its session.
    let base = format!(
        "sh -c '{} & setsid sleep 600 & echo $! > {}/sleeper; wait'",
        project.serve(""),
        project.folder.path().display()
    );
    project.compare(&base, &project.serve(""), &["--get", "/"]);
    assert!(project.ever_ran() >= 3);
    assert!(project.left().is_empty());
    let sleeper = fs::read_to_string(project.path("sleeper")).unwrap();
    assert!(!cfg!(target_os = "linux") || !runs(sleeper.trim()));
}

#[test]
fn answers_that_differ_make_it_invalid() {
    let project = Project::new();
    let words = ["--get", "/", "--format", "json"];
    let said = project.compare(&project.serve(""), &project.serve("--answer wrong"), &words);
    told(
        &said,
        3,
        &[
            "answers differ",
            "\"right\" of the base",
            "\"wrong\" of the change",
        ],
    );
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["verdict"], "invalid");
    assert!(value["effect"].is_null());
    assert!(project.left().is_empty());
    // Bodies that change by themselves say nothing.
    let changing = project.serve("--changing --delay-ms 4");
    let said = project.compare(&changing, &changing, &["--get", "/"]);
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    assert!(
        said.out.contains("the status alone is compared"),
        "{said:?}"
    );
}

#[test]
fn a_route_that_is_not_there_is_told_before_any_load() {
    let project = Project::new();
    let said = project.compare(&project.serve(""), &project.serve(""), &["--get", "/none"]);
    told(
        &said,
        2,
        &[
            "GET /none answers with status 404",
            "no such page",
            "--expect-status 404",
        ],
    );
    let wanted = ["--get", "/none", "--expect-status", "404"];
    let slow = project.serve("--delay-ms 4");
    let said = project.compare(&slow, &slow, &wanted);
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    let other = ["--get", "/", "--expect-status", "204"];
    let said = project.compare(&project.serve(""), &project.serve(""), &other);
    told(&said, 2, &["status 200", "204 is expected"]);
    assert!(project.left().is_empty());
}

#[test]
fn a_server_that_does_not_come_up_or_dies_is_told_in_a_sentence() {
    let project = Project::new();
    let good = project.serve("");
    for (change, words) in [
        (
            project.serve("--refuses"),
            [
                "the change ended before it was ready (exit code 7)",
                "no database here",
            ],
        ),
        (
            "no-such-program --port {port}".to_owned(),
            [
                "the change ended before it was ready (exit code 127)",
                "not found",
            ],
        ),
        (
            format!("{} & sleep 0.1", project.serve("")),
            ["(exit code 0)", "the command itself has to run"],
        ),
        (
            project.serve("--silent"),
            ["the change did not answer at 127.0.0.1:", "PORT"],
        ),
        (
            project.serve("--dies-after 20"),
            ["the change ended under load (exit code 9)", "out of paper"],
        ),
    ] {
        // Time enough for the other one on a busy machine.
        let is_silent = change.contains("--silent");
        let within = if is_silent { "5" } else { "60" };
        let words_of_it = ["--get", "/", "--ready-within", within];
        let said = project.compare(&good, &change, &words_of_it);
        told(&said, 3, &words);
        assert!(project.left().is_empty());
    }
    let taken = Running::start("");
    let port = taken.1.rsplit_once(':').unwrap().1;
    let change = format!("{} --port {port}", service().display());
    let said = project.compare(&good, &change, &["--get", "/"]);
    told(
        &said,
        3,
        &["the change ended before it was ready", "a free port"],
    );
    let said = project.compare(
        &good,
        &good,
        &["--get", "/", "--root-cause", "nothing_total"],
    );
    told(
        &said,
        2,
        &[
            "the base has no `nothing_total` at /metrics",
            "served_total",
        ],
    );
}

#[test]
fn an_interrupt_or_a_kill_leaves_nothing_running() {
    for (signal, code) in [("-INT", Some(130)), ("-TERM", Some(130)), ("-KILL", None)] {
        let project = Project::new();
        let serve = project.serve("--delay-ms 5");
        let mut running = project
            .comparing(
                &serve,
                &serve,
                &["--get", "/", "--at-most", "100", "--margin", "0%"],
            )
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let running = running.as_mut().unwrap();
        // Those that are asked for their answers, and those of the first round.
        while project.ever_ran() < 6 {
            assert!(running.try_wait().unwrap().is_none(), "it ended by itself");
            std::thread::sleep(Duration::from_millis(50));
        }
        let sent = Command::new("kill")
            .args([signal, &running.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        assert_eq!(running.wait().unwrap().code(), code);
        assert_eq!(project.left(), [] as [String; 0], "after {signal}");
    }
}

#[test]
fn revisions_are_built_in_worktrees_that_go_again() {
    let project = Project::new();
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    for delay in ["8", "4"] {
        fs::write(project.path("delay"), delay).unwrap();
        project.git(&["add", "delay"]);
        project.git(&["commit", "--quiet", "-m", delay]);
    }
    // A comparison that was killed left it: its temporary folder is gone.
    let killed = project.path("workshop-0/temporary/source");
    let killed = killed.display().to_string();
    project.git(&["worktree", "add", "--quiet", "--detach", &killed]);
    fs::remove_dir_all(project.path("workshop-0")).unwrap();
    let compare = |base: &str, build: &str, run: &str| {
        let run = format!("{run} {}", project.options("--delay-ms $(cat delay)"));
        let words = [
            "--build", build, "--run", &run, "--get", "/", "--format", "json",
        ];
        let said = project.compare(base, "git:HEAD", &words);
        assert!(project.left().is_empty());
        said
    };
    let make = format!(
        "mkdir -p $CARGO_TARGET_DIR/release; cp {} $CARGO_TARGET_DIR/release/shop",
        service().display()
    );
    let shop_of_build = "$CARGO_TARGET_DIR/release/shop";
    let said = compare("git:HEAD~1", &make, shop_of_build);
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);
    assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["base"]["name"], "git:HEAD~1");
    let head = project.git(&["rev-parse", "HEAD"]);
    assert_eq!(value["change"]["commit"], head);
    if cfg!(target_os = "linux") {
        assert_eq!(value["change"]["program"]["file"], "target/release/shop");
        assert_eq!(value["change"]["program"], value["base"]["program"]);
        assert!(said.out.contains("the same program, byte for byte"));
    }
    // Nothing in the reader's checkout that git would show.
    fs::remove_dir_all(project.path("pids")).unwrap();
    assert_eq!(project.git(&["status", "--short"]), "");
    fs::create_dir(project.path("pids")).unwrap();

    // What the comparison before left cannot be started, nor what nobody built.
    let shop = service().display().to_string();
    for (base, build, run, code, sentences) in [
        (
            "git:HEAD~1",
            "echo no such crate >&2; exit 101",
            shop_of_build,
            3,
            [
                "the build of the base ended with an error (exit code 101)",
                "no such crate",
            ],
        ),
        (
            "git:HEAD",
            "true",
            shop_of_build,
            3,
            ["(exit code 127)", "its build made no such program"],
        ),
        (
            "git:HEAD",
            &make,
            &*shop,
            3,
            ["--run of the base starts ", "neither of its checkout nor"],
        ),
        (
            "git:none",
            "true",
            shop_of_build,
            2,
            ["the repository has no such revision", "git:none"],
        ),
    ] {
        if cfg!(target_os = "linux") || run != shop {
            told(&compare(base, build, run), code, &sentences);
        }
    }
    let outside = Project::new();
    let words = ["--run", "a", "--get", "/"];
    let said = outside.compare("git:HEAD", "git:HEAD", &words);
    told(&said, 2, &["git:REVISION needs git, and a git repository"]);
}

#[test]
fn wrong_usage_is_told_before_anything_runs() {
    let project = Project::new();
    for line in "
        --get / | --base <COMMAND>
        --base a --change b | nothing is asked for: name a path
        --base git:HEAD --change b --get / | needs --run
        --base a --change b --run c --get / | neither --base nor --change
        --base a --change b --get x | a path begins with /
        --base a --change b --get / --workers 2 | add --with locust
        --base a --change b --get / --with locust --rate 5 | closed loops only
        --base a --change b --get / --with k6 | --k6 FILE
        --base a --change b --get / --get / | named twice
        --base a --change b --get / --metric rps | there are 'requests_per_second'
        --base a --change b --get / --at-least 1 | above 1, such as 2x
        --base a --change b --get / --margin 100% | such as 5%
        --base a --change b --get / --margin 5% --at-least 2x | cannot be used with
        --base a --change b --get / --ready health | a path on the service
        --base a --change b --request POST | a method and a path
        --base a --change b --get / --body x | there is none
        --base a --change b --get / --header x | 'Name: value'
        --base a --change b --get / --header Connection:close | leave it out
        --running http://127.0.0.1:1 --get / | 2 values required"
        .trim()
        .lines()
    {
        let (words, sentence) = line.split_once(" | ").unwrap();
        let words: Vec<&str> = words.split_whitespace().collect();
        let said = Said::of(&mut project.command(&[&["compare"], &words[..]].concat()));
        told(&said, 2, &[sentence]);
    }
    assert_eq!(project.ever_ran(), 0);
}

/// A service that sheds load is right by design, if that is said, and wrong otherwise.
#[test]
fn a_status_that_is_allowed_counts_as_right() {
    let project = Project::new();
    let shedding = Running::start("--shedding --delay-ms 2");
    let load = |words: &[&str]| {
        let url = [
            "load",
            "--url",
            &shedding.1,
            "--seconds",
            "0.3",
            "--users",
            "2",
        ];
        Said::of(&mut project.command(&[&url, words].concat()))
    };
    let said = load(&["--get", "/moved", "--allow-status", "503"]);
    assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
    for words in [
        "answers with status 503 count as right",
        "GET /moved: status 302 is a redirect, which counts as right and is not followed",
        " 0 wrong, 0 failed",
    ] {
        assert!(said.out.contains(words), "no {words} in {said:?}");
    }
    let said = load(&["--get", "/"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let said = load(&["--get", "/a x1e308", "--get", "/b"]);
    told(&said, 2, &["GET /b would be sent less than once"]);
    let (base, change) = (
        project.serve("--delay-ms 4"),
        project.serve("--shedding --delay-ms 4"),
    );
    let words = ["--get", "/", "--allow-status", "503"];
    let said = project.compare(&base, &change, &words);
    assert!(
        !said.out.contains("fail") && !said.out.contains("differ"),
        "{said:?}"
    );
    let said = project.compare(&base, &change, &words[..2]);
    assert_eq!(said.code, Some(3), "{said:?}");
}

#[test]
fn a_load_on_a_url_is_told_and_written_down() {
    let project = Project::new();
    let running = Running::start("--delay-ms 2");
    let url = &running.1;
    let load = |words: &[&str]| {
        let short = [
            "load",
            "--url",
            url,
            "--seconds",
            "0.3",
            "--warm-up",
            "0",
            "--users",
            "3",
        ];
        Said::of(&mut project.command(&[&short, words].concat()))
    };
    let said = load(&[
        "--get",
        "/a/{1..9} x3",
        "--request",
        "POST /b",
        "--body",
        "{\"a\":1}",
        "--bystander",
        "/c",
        "--k6",
        "load.js",
        "--locust",
        "load.py",
        "--format",
        "json",
    ]);
    // A generator that gets no CPU beside something else says so.
    assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let completed = |at: usize| value["routes"][at]["completed"].as_u64().unwrap();
    assert_eq!(
        completed(0) + completed(1),
        value["completed"].as_u64().unwrap()
    );
    assert!(completed(0) > completed(1) && completed(1) > 0);
    assert_eq!(value["bystander"]["wrong_answers"], 0);
    let script = fs::read_to_string(project.path("load.js")).unwrap();
    assert!(
        script.contains(r#"body: "{\"a\":1}""#) && script.contains(url.as_str()),
        "{script}"
    );
    let script = fs::read_to_string(project.path("load.py")).unwrap();
    assert!(
        script.contains("@task(3)") && script.contains("randint(1, 9)"),
        "{script}"
    );
    let said = load(&["--get", "/a"]);
    assert!(
        said.out.contains("GET /a: status and body are compared."),
        "{said:?}"
    );
    told(
        &load(&["--get", "/none"]),
        2,
        &["GET /none answers with status 404"],
    );
    told(
        &load(&["--rate", "5", "--locust", "x.py"]),
        2,
        &["closed loops only"],
    );
    for (url, sentence) in [
        (
            "https://127.0.0.1:1/",
            "say whom to trust, by --cacert FILE",
        ),
        (
            "http://127.0.0.1:1/a",
            "got no answer: connect: connection refused",
        ),
        ("http://no such host/", "that is no address"),
    ] {
        let said = Said::of(&mut project.command(&["load", "--url", url]));
        told(&said, 2, &[sentence]);
    }
}

/// The lines `$ cargo workshop …` of the book's page, with what they need in place of the shop.
#[test]
fn the_commands_of_the_books_page_run() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/own/compare.md");
    let page = fs::read_to_string(page).unwrap();
    let lines: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("$ cargo workshop "))
        .collect();
    assert!(lines.len() >= 4, "{lines:?}");
    let project = Project::new();
    project.git(&["init", "--quiet", "--initial-branch=main"]);
    project.git(&["commit", "--quiet", "--allow-empty", "-m", "a shop"]);
    let running = Running::start("--delay-ms 4");
    let pids = project.path("pids").display().to_string();
    let program = service().display();
    for line in lines {
        // A revision's has to be built in its checkout.
        let path = if line.contains("git:") {
            "./shop"
        } else {
            &*program.to_string()
        };
        let shop = format!("{path} --delay-ms 20 --pids {pids}");
        let is_load = line.starts_with("load ");
        let short = if is_load {
            "--seconds 0.2 --warm-up 0"
        } else {
            "--seconds 0.1 --warm-up 0 --at-most 1"
        };
        let line = line
            .replace("./target/release/shop", &shop)
            .replace("cargo build --release", &format!("cp {program} shop"))
            .replace("http://127.0.0.1:8080", &running.1);
        let said = Said::of(
            Command::new("sh")
                .args(["-c", &format!("\"$0\" {line} {short}")])
                .arg(env!("CARGO_BIN_EXE_cargo-workshop"))
                .current_dir(project.folder.path()),
        );
        // Whatever a busy machine makes of it, it is no wrong usage and no server that fails.
        assert!(matches!(said.code, Some(0 | 1 | 3)), "{line}: {said:?}");
        let is_told = said.out.contains("report: ") || said.out.contains("requests/s");
        assert!(is_told, "{line}: {said:?}");
    }
    assert!(project.left().is_empty());
}
