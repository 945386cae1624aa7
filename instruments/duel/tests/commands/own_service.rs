//! Tests of `compare` and `load` in a folder that has nothing of the workshop.
#![cfg(unix)]

mod events;
mod project;
mod recorder;
mod slow_answers;

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use terminal::testing::{Ran, once_in_three};

use self::project::{Project, Running, compared, ends, has, service, told};
use self::recorder::Recorder;

#[test]
fn a_comparison_has_the_keys_that_scripts_rely_on_and_leaves_nothing_running() {
    let project = Project::new();
    once_in_three(|| compared_as_scripts_rely_on(&project));
    assert!(project.ever_ran() >= 3);
    assert!(project.left().is_empty());
}

/// Compares, and returns whether there were figures to check. A machine that stands still may leave a slice without an
/// answer, or with too few for a percentile.
fn compared_as_scripts_rely_on(project: &Project) -> (bool, Ran) {
    let base = project.serve("--delay-ms 8");
    let said = project.compare(
        &base,
        &project.serve("--delay-ms 4"),
        "--get '/a/{1..3} x2' --get /b --bystander /health --root-cause served_total --format json \
         --markdown out/summary.md",
    );
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    let expected =
        "base change counters effect left_out metrics reason rounds schema seconds verdict";
    assert_eq!(keys, expected.split(' ').collect::<Vec<_>>());
    let verdict = value["verdict"].as_str().unwrap();
    let code = match verdict {
        "faster" | "no_difference" => 0,
        "slower" | "inconclusive" => 1,
        _ => 3,
    };
    assert_eq!(said.code, Some(code), "{said:?}");
    assert_eq!(value["base"]["name"], base);
    let summary = fs::read_to_string(project.path("out/summary.md")).unwrap();
    let report = fs::read_to_string(project.path("target/duel/compare.html")).unwrap();
    assert!(summary.contains(" against ") && !report.contains("http://"));
    // A very busy machine makes the comparison invalid, and then there are no figures.
    if verdict == "invalid" {
        return (true, said);
    }
    let metrics = value["metrics"].as_array().unwrap();
    let mut wanted = "requests_per_second,p50_ms,p50_ms GET /b,served_total".split(',');
    let has_all = wanted.all(|metric| metrics.iter().any(|one| one["metric"] == metric));
    if has_all {
        assert_eq!(value["effect"]["metric"], "requests_per_second");
        assert!(summary.contains("| Requests per second |"), "{summary}");
        assert!(report.contains("Every round"), "{report}");
    }
    (has_all, said)
}

#[test]
fn profiles_of_a_service_without_the_endpoints_are_missing_and_the_verdict_is_not() {
    let project = Project::new();
    let slow = project.serve("--delay-ms 4");
    let said = project.compare(&slow, &slow, "--get / --profiles");
    compared(&said, &["there are no profiles: both"]);
}

#[test]
fn what_a_shell_started_ends_with_it() {
    let project = Project::new();
    // The service is a grandchild in the background, and another process has left its session.
    let base = format!(
        "sh -c '{} & setsid sleep 600 & echo $! > {}/sleeper; wait'",
        project.serve(""),
        project.folder.path().display()
    );
    project.compare(&base, &project.serve(""), "--get /");
    assert!(project.ever_ran() >= 3);
    assert!(project.left().is_empty());
    let sleeper = fs::read_to_string(project.path("sleeper")).unwrap();
    assert!(!cfg!(target_os = "linux") || ends(sleeper.trim()));
}

#[test]
fn answers_that_differ_make_it_invalid() {
    let project = Project::new();
    let (right, wrong) = (project.serve(""), project.serve("--answer wrong"));
    let said = project.compare(&right, &wrong, "--get / --format json");
    let words = [
        "answers differ",
        "\"right\" of the base",
        "\"wrong\" of the change",
    ];
    told(&said, 3, &words);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["verdict"], "invalid");
    assert!(value["effect"].is_null());
    assert!(project.left().is_empty());
    // Bodies that change from one answer to the next cannot be compared.
    let changing = project.serve("--changing --delay-ms 4");
    let said = project.compare(&changing, &changing, "--get /");
    compared(&said, &["the status alone is compared"]);
}

#[test]
fn a_route_that_is_not_there_is_told_before_any_load() {
    let project = Project::new();
    let slow = project.serve("--delay-ms 4");
    let said = project.compare(&slow, &slow, "--get /none");
    let words = [
        "GET /none answers with status 404",
        "no such page",
        "--expect-status 404",
    ];
    told(&said, 2, &words);
    let said = project.compare(&slow, &slow, "--get /none --expect-status 404");
    compared(&said, &[]);
    let said = project.compare(&slow, &slow, "--get / --expect-status 204");
    told(&said, 2, &["status 200", "204 is expected"]);
    assert!(project.left().is_empty());
}

#[test]
fn a_server_that_does_not_come_up_or_dies_is_told_in_a_sentence() {
    let project = Project::new();
    let good = project.serve("");
    let taken = Running::start("");
    let taken = format!(
        "{} --port {}",
        service().display(),
        taken.1.rsplit_once(':').unwrap().1
    );
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
            project.serve("--dies-after 3"),
            ["the change ended under load (exit code 9)", "out of paper"],
        ),
        (
            taken,
            ["the change ended before it was ready", "a free port"],
        ),
    ] {
        // On a busy machine, the good service needs more time to start than one that never does should be given.
        let within = if change.contains("--silent") { 5 } else { 60 };
        once_in_three(|| {
            let line = format!("--get / --ready-within {within}");
            let said = project.compare(&good, &change, &line);
            assert!(project.left().is_empty());
            (said.code == Some(3) && has(&said, &words), said)
        });
    }
    let said = project.compare(&good, &good, "--get / --root-cause nothing_total");
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
            .comparing(&serve, &serve, "--get / --at-most 100 --margin 0%")
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .spawn();
        let running = running.as_mut().unwrap();
        // These are the services that the answers are learnt from, and those of the first round.
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

fn both_sides_are_built_for_each_layout(project: &Project, make: &str, shop_of_build: &str) {
    // A number behind a program changes nothing but its digest.
    let numbered = format!("--layouts 3 --build '{make}; echo {{layout}} >> {shop_of_build}'");
    let line = |build: &str| {
        let run = format!(
            "{shop_of_build} {}",
            project.options("--delay-ms $(cat delay)")
        );
        format!("{build} --run '{run}' --get / --format json --at-most 60")
    };
    once_in_three(|| {
        let said = project.compare("git:HEAD~1", "git:HEAD", &line(&numbered));
        compared(&said, &["built anew for each round"]);
        assert!(!said.err.contains("round  4:"), "{said:?}");
        // A busy machine may have no time for the third, or make the first two invalid.
        (said.err.contains("round  3:"), said)
    });
    let equal = format!("--layouts 3 --build '{make}; : {{layout}}'");
    let said = project.compare("git:HEAD~1", "git:HEAD", &line(&equal));
    told(&said, 3, &["the same program with another {layout}"]);
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
    // This is what a killed comparison leaves: a worktree whose temporary folder is gone.
    let killed = project.path("workshop-0/temporary/source");
    let killed = killed.display().to_string();
    project.git(&["worktree", "add", "--quiet", "--detach", &killed]);
    fs::remove_dir_all(project.path("workshop-0")).unwrap();
    let compare = |base: &str, build: &str, run: &str| {
        let run = format!("{run} {}", project.options("--delay-ms $(cat delay)"));
        let line = format!("--build '{build}' --run '{run}' --get / --format json");
        let said = project.compare(base, "git:HEAD", &line);
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
    compared(&said, &[]);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["base"]["name"], "git:HEAD~1");
    let head = project.git(&["rev-parse", "HEAD"]);
    assert_eq!(value["change"]["commit"], head);
    if cfg!(target_os = "linux") {
        assert_eq!(value["change"]["program"]["file"], "target/release/shop");
        assert_eq!(value["change"]["program"], value["base"]["program"]);
        compared(&said, &["the same program, byte for byte"]);
    }
    // The comparison leaves nothing in the reader's checkout that git would show.
    fs::remove_dir_all(project.path("pids")).unwrap();
    assert_eq!(project.git(&["status", "--short"]), "");
    fs::create_dir(project.path("pids")).unwrap();

    // Programs of an earlier comparison, or that no build made, must not be started.
    let shop = service().display().to_string();
    let failing = "echo no such crate >&2; exit 101";
    for (build, run, words) in [
        (
            failing,
            shop_of_build,
            [
                "the build of the base ended with an error (exit code 101)",
                "no such crate",
            ],
        ),
        (
            "true",
            shop_of_build,
            ["(exit code 127)", "its build made no such program"],
        ),
        (
            &make,
            "./none",
            ["(exit code 127)", "its build made no such program"],
        ),
        (
            &make,
            &*shop,
            ["--run of the base starts ", "neither in its checkout nor"],
        ),
    ] {
        if cfg!(target_os = "linux") || words[0].contains("code") {
            told(&compare("git:HEAD", build, run), 3, &words);
        }
    }

    if cfg!(target_os = "linux") {
        both_sides_are_built_for_each_layout(&project, &make, shop_of_build);
    }

    // A checkout has no files of submodules, which the build itself can fetch.
    let part = Project::new();
    part.git(&["init", "--quiet"]);
    part.git(&["commit", "--quiet", "--allow-empty", "-m", "part"]);
    let clone = format!(
        "-c protocol.file.allow=always submodule --quiet add {} part",
        part.folder.path().display()
    );
    project.git(&clone.split(' ').collect::<Vec<_>>());
    project.git(&["commit", "--quiet", "-m", "with a submodule"]);
    let words = [
        "no files of the submodules in .gitmodules",
        "git submodule update --init --recursive",
    ];
    told(&compare("git:HEAD", failing, shop_of_build), 3, &words);
    let fetched = format!(
        "git -c protocol.file.allow=always submodule --quiet update --init; ls part/.git && {make}"
    );
    let said = compare("git:HEAD", &fetched, shop_of_build);
    compared(&said, &[]);
    assert!(!said.err.contains("submodules"), "{said:?}");
    assert_eq!(project.git(&["worktree", "list"]).lines().count(), 1);

    let said = compare("git:none", "true", shop_of_build);
    told(&said, 2, &["the repository has no such revision"]);
    let outside = Project::new();
    let said = outside.compare("git:HEAD", "git:HEAD", "--run a --get /");
    told(&said, 2, &["git:REVISION needs git, and a git repository"]);
}

#[test]
fn wrong_usage_is_told_before_anything_runs() {
    let project = Project::new();
    for line in "
        --get / | --base <COMMAND>
        --base a --change b | no request is named: give a path
        --base git:HEAD --change b --get / | needs --run
        --base a --change b --run c --get / | neither --base nor --change
        --base a --change b --layouts 5 --get / | name them as git:REVISION
        --base git:HEAD --change git:HEAD --run a --layouts 5 --get / | needs {layout} in --build
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
        told(&project.run(&format!("compare {words}")), 2, &[sentence]);
    }
    assert_eq!(project.ever_ran(), 0);
}

/// Answers of a service that sheds load are right if the option allows their status, and wrong otherwise.
#[test]
fn a_status_that_is_allowed_counts_as_right() {
    let project = Project::new();
    let shedding = Running::start("--shedding --delay-ms 2");
    let load = |line: &str| {
        let url = &shedding.1;
        project.run(&format!("load {url} --seconds 0.3 --users 2 {line}"))
    };
    once_in_three(|| {
        let said = load("--get /moved --allow-status 503");
        let words = [
            "answers with status 503 count as right",
            "GET /moved: status 302 is a redirect, which counts as right and is not followed",
            " 0 wrong, 0 failed",
        ];
        told(&said, said.code.unwrap(), &words);
        // A service that stands still for a second leaves requests waiting.
        (matches!(said.code, Some(0 | 3)), said)
    });
    once_in_three(|| {
        let said = load("--get /");
        (said.code != Some(0), said)
    });
    let said = load("--get '/a x1e308' --get /b");
    told(&said, 2, &["GET /b would be sent less than once"]);
    let (base, change) = (project.serve(""), project.serve("--shedding"));
    let said = project.compare(&base, &change, "--get / --allow-status 503");
    assert!(
        !said.out.contains("fail") && !said.out.contains("differ"),
        "{said:?}"
    );
    let said = project.compare(&base, &change, "--get /");
    assert_eq!(said.code, Some(3), "{said:?}");
}

/// A test of the engine compares the moments themselves, bit by bit: how late a machine sends is no part of a schedule.
#[test]
fn a_load_at_a_rate_prints_the_seed_that_repeats_it() {
    let project = Project::new();
    let load = |line: &str| {
        // One for each load: it may read the last request of a load only after its end. There are so few values that a
        // busy machine learns all their answers.
        let (recorder, url) = Recorder::start();
        let short = "--rate 100 --users 1 --seconds 0.5 --warm-up 0";
        let said = project.run(&format!("load {url} {short} --get '/a/{{1..20}}' {line}"));
        let all = format!("{}{}", said.out, said.err);
        let seed = all
            .split_once("--seed ")
            .and_then(|(_, rest)| rest.split_whitespace().next())
            .unwrap_or_else(|| panic!("no seed in {said:?}"));
        (seed.to_owned(), recorder.take())
    };
    let (seed, first) = load("");
    let (same, again) = load(&format!("--seed {seed}"));
    assert_eq!(same, seed);
    // A busy machine sends fewer of them.
    let sent = first.len().min(again.len());
    assert!(sent >= 40, "{sent}");
    assert_eq!(first[..sent], again[..sent]);
    let other = if seed == "7" { "8" } else { "7" };
    let (_, others) = load(&format!("--seed {other}"));
    let sent = sent.min(others.len());
    assert_ne!(first[..sent], others[..sent]);
}

#[test]
fn a_load_fails_if_its_condition_holds() {
    let project = Project::new();
    let running = Running::start("--delay-ms 2");
    let load = |line: &str| {
        let short = "--get / --seconds 0.3 --warm-up 0 --users 3";
        project.run(&format!("load {} {short} {line}", running.1))
    };
    once_in_three(|| {
        let said = load("--fail-if 'p50 > 1ms' --fail-if 'rate > 1000000'");
        // If other programs leave the generator no CPU, the run is invalid.
        assert!(matches!(said.code, Some(1 | 3)), "{said:?}");
        assert!(!said.out.contains("--fail-if rate"), "{said:?}");
        let words = "failed by --fail-if p50 > 1.00 ms: it is ";
        (said.out.contains(words), said)
    });
    // Without an answer to most requests, their latency may be any.
    once_in_three(|| {
        let said = load("--fail-if 'p50 > 600s' --fail-if 'errors > 1 %'");
        (matches!(said.code, Some(0 | 3)), said)
    });
    for (wrong, word) in [
        ("--fail-if 'p99 > 100'", "'p99 < 100ms'"),
        ("--fail-if p99", "neither < nor >"),
        (
            "--find 'p99 > 100ms'",
            "keeps a latency or the errors below",
        ),
        ("--find 'rate < 100'", "keeps a latency or the errors below"),
        ("--find 'p99 < 1s' --think 1", "cannot be used with"),
    ] {
        told(&load(wrong), 2, &[word]);
    }
}

/// Four users who get their answers after 20 ms take 200 requests per second. A busy machine lets them take fewer.
#[test]
fn a_search_finds_a_rate_that_the_service_sustains() {
    let project = Project::new();
    let running = Running::start("--delay-ms 20");
    once_in_three(|| {
        let said = project.run(&format!(
            "load {} --get / --find 'p90 < 200ms' --users 4 --at-most 20 --format json",
            running.1
        ));
        assert!(matches!(said.code, Some(0 | 1 | 3)), "{said:?}");
        let value: Value = serde_json::from_str(&said.out).unwrap();
        assert_eq!(value["schema"], "capacity/1");
        assert_eq!(value["conditions"][0], "p90 < 200 ms");
        let steps = value["steps"].as_array().unwrap();
        for step in steps {
            let (holds, rate) = (step["holds"] == true, step["rate"].as_f64().unwrap());
            assert!(!holds || rate < 250.0, "{step}");
            assert_eq!(holds, step["missed"].is_null(), "{step}");
        }
        // A very busy machine has no time for them.
        (!steps.is_empty(), said)
    });
    let report = fs::read_to_string(project.path("target/duel/capacity.html")).unwrap();
    assert!(report.contains("requests/s"));
    // It opens without a network.
    for attribute in ["src=\"http", "href=\"http"] {
        assert!(!report.contains(attribute), "{attribute}");
    }
}

/// Pauses may last longer than they should, and never less: so the time to the first event has a lower bound, and the events
/// that come after it in an answer have a number.
#[test]
fn a_stream_has_a_first_byte_and_times_between_its_events() {
    let project = Project::new();
    let url = events::start();
    let short = "--users 2 --warm-up 0 --stream --report out";
    let said = once_in_three(|| {
        let said = project.run(&format!(
            "load {url}/events {short} --seconds 1 --format json"
        ));
        // If other programs leave the generator no CPU, the run is invalid.
        assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
        let value: Value = serde_json::from_str(&said.out).unwrap();
        (value["completed"] != 0, said)
    });
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let stream = &value["routes"][0]["stream"];
    let number = |key: &str| stream[key].as_u64().unwrap();
    let completed = value["completed"].as_u64().unwrap();
    // Of each user, one answer may be under way at the end.
    let (answers, further) = (number("answers"), number("further"));
    assert!(
        (completed..=completed + 2).contains(&answers),
        "{completed}: {stream}"
    );
    let events = u64::from(events::FURTHER);
    assert!(
        (events * completed..=events * (completed + 2)).contains(&further),
        "{completed}: {stream}"
    );
    assert_eq!(stream["kind"], "event");
    let first_ms = stream["first_byte"]["min_ms"].as_f64().unwrap();
    assert!(first_ms > events::FIRST.as_secs_f64() * 999.0, "{stream}");
    let all_ms = (events::FIRST + events::NEXT * events::FURTHER).as_secs_f64() * 999.0;
    assert!(value["latency"]["min_ms"].as_f64().unwrap() > all_ms);
    let report = fs::read_to_string(project.path("out/load.html")).unwrap();
    assert!(
        report.contains("between events") && !report.contains("src=\"http"),
        "{report}"
    );
    once_in_three(|| {
        let said = project.run(&format!("load {url}/events {short} --seconds 0.5"));
        (has(&said, &["first byte: median ", "longest "]), said)
    });
    told(
        &project.run(&format!("load {url} {short} --find 'p99 < 1s'")),
        2,
        &["cannot be used with"],
    );
    told(
        &project.run(&format!("load {url} {short} --with locust")),
        2,
        &["--stream is measured by the embedded generator"],
    );
}

/// The verdict may be any in so short a time.
#[test]
fn capacities_of_two_builds_are_compared() {
    let project = Project::new();
    let (base, change) = (project.serve("--delay-ms 5"), project.serve("--delay-ms 5"));
    let compare = |change: &str, line: &str| {
        let words = "compare --base \"$1\" --change \"$2\" --get / --warm-up 0 --at-capacity";
        let mut command = project.command(&format!("{words} {line}"));
        command.args([&base, change]);
        Ran::of(&mut command)
    };
    let line = "'p90 < 100ms' --rate 100 --at-most 12 --markdown out/summary.md --format json";
    let said = compare(&change, line);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(value["schema"], "capacities/1");
    assert_eq!(value["conditions"][0], "p90 < 100 ms");
    assert_eq!(value["base"]["name"], base);
    for side in ["base", "change"] {
        let steps = value[side]["steps"].as_array().unwrap();
        for step in steps {
            assert_eq!(step["holds"] == true, step["missed"].is_null(), "{step}");
        }
    }
    let steps = |side: &str| value[side]["steps"].as_array().unwrap().len();
    // A very busy machine has no time for them.
    if steps("base") > 0 {
        assert_eq!(value["base"]["steps"][0]["rate"], 100.0, "{value}");
    }
    // Three are asked for their answers, and each step has a server of its own.
    assert!(project.ever_ran() >= 3 + steps("base") + steps("change"));
    assert!(project.left().is_empty());
    let summary = fs::read_to_string(project.path("out/summary.md")).unwrap();
    assert!(summary.starts_with("### "), "{summary}");
    let report = fs::read_to_string(project.path("target/duel/capacities.html")).unwrap();
    assert!(report.contains("Capacities"), "{report}");
    told(
        &compare(&change, "'p90 < 1s' --metric p99_ms"),
        2,
        &["cannot be used with"],
    );
    let wrong = project.serve("--answer wrong");
    told(
        &compare(&wrong, "'p90 < 100ms'"),
        3,
        &["answers differ", "\"wrong\" of the change"],
    );
}

#[test]
fn a_base_branch_that_only_origin_has_is_told_in_a_sentence() {
    let project = Project::new();
    project.git(&["init", "--quiet", "--initial-branch=topic"]);
    project.git(&["commit", "--quiet", "--allow-empty", "-m", "one"]);
    project.git(&["update-ref", "refs/remotes/origin/main", "HEAD"]);
    for base in ["git:main...HEAD", "git:main"] {
        let said = project.run(&format!(
            "compare --base {base} --change git:HEAD --run ./shop --get /"
        ));
        let sentence = said.refused(2);
        let words = "--base git:main: the repository has no such revision; origin has a branch of this name: write \
                     origin/main";
        assert!(sentence.contains(words), "{sentence}");
    }
}

#[test]
fn a_load_on_a_url_is_told_and_written_down() {
    let project = Project::new();
    let running = Running::start("--delay-ms 2");
    let url = &running.1;
    let load = |line: &str| {
        let short = "--seconds 0.3 --warm-up 0 --users 3";
        project.run(&format!("load {url} {short} {line}"))
    };
    let said = load(
        "--get '/a/{1..9} x3' --request 'POST /b' --body '{\"a\":1}' --bystander /c --k6 load.js \
         --locust load.py --format json",
    );
    // If other programs leave the generator no CPU, the run is invalid.
    assert!(matches!(said.code, Some(0 | 3)), "{said:?}");
    let value: Value = serde_json::from_str(&said.out).unwrap();
    let completed = |at: usize| value["routes"][at]["completed"].as_u64().unwrap();
    let all = completed(0) + completed(1);
    assert_eq!(value["completed"].as_u64(), Some(all));
    // Routes are drawn at random, so all of few answers, as on a busy machine, may be of one route.
    assert!(all < 100 || completed(0) > completed(1) && completed(1) > 0);
    assert_eq!(value["bystander"]["wrong_answers"], 0);
    for (script, words) in [
        ("load.js", [r#"body: "{\"a\":1}""#, url]),
        ("load.py", ["@task(3)", "randint(1, 9)"]),
    ] {
        let script = fs::read_to_string(project.path(script)).unwrap();
        assert!(words.iter().all(|word| script.contains(word)), "{script}");
    }
    let said = load("--get /a");
    assert!(
        said.out.contains("GET /a: status and body are compared."),
        "{said:?}"
    );
    told(
        &load("--get /none"),
        2,
        &["GET /none answers with status 404"],
    );
    told(&load("--rate 5 --locust x.py"), 2, &["closed loops only"]);
    for (url, code, sentence) in [
        (
            "https://127.0.0.1:1/",
            2,
            "say whom to trust, by --cacert FILE",
        ),
        (
            "http://127.0.0.1:1/a",
            3,
            "got no answer: connect: connection refused",
        ),
        ("'http://no such host/'", 2, "that is no address"),
    ] {
        told(&project.run(&format!("load {url}")), code, &[sentence]);
    }
}
