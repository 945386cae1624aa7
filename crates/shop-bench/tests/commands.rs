//! The ticket shop of a workshop: put back without a loss, and scored.

#[path = "../../workshop/tests/commands/results.rs"]
mod results;
mod workshop;

use terminal::testing::{Ran, git, names};
use workshop::Workshop;

const MAIN: &str = "capstone/src/main.rs";
const SHIPPED: &str = "crates/shop-bench/shipped.txt";
const SCORES: &str = ".workshop/capstone/history.json";

/// A workshop with a shop, committed and shipped; what is ignored here is ignored there.
fn with_a_shop() -> Workshop {
    let workshop = Workshop::new();
    workshop.write(".gitignore", "/.workshop\n/capstone/data\n");
    workshop.write("capstone/Cargo.toml", "[workspace]\n");
    workshop.write(MAIN, "slow");
    git(&workshop.path(""), &["add", "."]);
    git(
        &workshop.path(""),
        &["commit", "--quiet", "--message", "Shop"],
    );
    let shipped = git(
        &workshop.path(""),
        &["ls-tree", "-r", "HEAD", "--", "capstone"],
    );
    workshop.write(SHIPPED, &shipped);
    git(&workshop.path(""), &["add", "."]);
    git(
        &workshop.path(""),
        &["commit", "--quiet", "--message", "Shipped"],
    );
    workshop
}

#[test]
fn reset_puts_the_shop_back_and_keeps_all_of_the_learners() {
    let workshop = with_a_shop();
    let root = workshop.path("");
    workshop.write(SCORES, "[]");
    workshop.write("capstone/data/shop.db", "rows");
    workshop.write("mine.txt", "mine");
    workshop.write(MAIN, "staged");
    workshop.write("capstone/src/added.rs", "added");
    git(&root, &["add", "capstone"]);
    workshop.write(MAIN, "fast");
    workshop.write("capstone/src/cache/new.rs", "new");
    std::fs::remove_file(workshop.path("capstone/Cargo.toml")).unwrap();

    let said = workshop.run("reset").good();
    let kept = said
        .split_whitespace()
        .find(|word| word.starts_with(".workshop/kept/capstone-20"));
    let kept = |name: &str| workshop.read(&format!("{}/{name}", kept.unwrap()));
    assert_eq!(kept("src/main.rs"), "fast");
    assert_eq!(kept("src/added.rs"), "added");
    assert_eq!(kept("src/cache/new.rs"), "new");
    assert_eq!(workshop.read(MAIN), "slow");
    // Scores, the database and what is no shop are left alone.
    assert_eq!(workshop.read(SCORES), "[]");
    assert_eq!(workshop.read("capstone/data/shop.db"), "rows");
    assert_eq!(git(&root, &["status", "--porcelain"]), "?? mine.txt");

    let said = workshop.run("reset").good();
    assert!(said.contains("nothing to do"), "{said}");
}

/// A learner's own main branch is not the shop as it was shipped, wherever it was pushed.
#[test]
fn reset_goes_back_behind_the_learners_own_commits() {
    let shipped = with_a_shop();
    let learner = shipped.path("learner");
    git(&shipped.path(""), &["clone", "--quiet", ".", "learner"]);
    std::fs::write(learner.join(MAIN), "fast").unwrap();
    git(
        &learner,
        &["commit", "--quiet", "--all", "--message", "Cache"],
    );
    git(
        &learner,
        &["push", "--quiet", "origin", "HEAD:refs/heads/mine"],
    );
    git(
        &learner,
        &["branch", "--quiet", "--set-upstream-to", "origin/mine"],
    );
    let reset = |words: &str| {
        let mut reset = shipped.command(words);
        Ran::of(reset.current_dir(&learner))
    };
    let said = reset("reset").good();
    assert!(
        said.contains("is back as it was shipped; your version"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(learner.join(MAIN)).unwrap(), "slow");
    // Within the same second.
    let said = reset("reset --to HEAD").good();
    assert!(said.contains(" Cache; your version"), "{said}");
    assert_eq!(names(&learner.join(".workshop/kept")).len(), 2);
    assert_eq!(std::fs::read_to_string(learner.join(MAIN)).unwrap(), "fast");
    let said = reset("reset --to HEAD~3").refused(2);
    assert!(said.contains("no commit with a ticket shop"), "{said}");
}

#[test]
fn reset_changes_nothing_when_the_shop_cannot_be_kept() {
    let workshop = with_a_shop();
    workshop.write(MAIN, "fast");
    workshop.write(".workshop/kept", "a file");
    let said = workshop.run("reset").refused(1);
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(workshop.read(MAIN), "fast");
}

#[test]
fn a_broken_contract_is_a_0_in_the_history_beside_the_earlier_scores() {
    let workshop = with_a_shop();
    let earlier = r#"{"commit":"abc","is_changed":true,"result":{"score":7.5,"interval":[7.0,8.0],
        "journeys_per_second":3.0,"late_journeys":0,"broken_journeys":0,"users":2.0,"missed":{},"p99_ms":{},
        "seconds":60.0}}"#;
    workshop.write(SCORES, &format!("[{earlier}]"));
    let manifest = "[package]\nname = \"capstone\"\nedition = \"2024\"\n[workspace]\n";
    workshop.write("capstone/Cargo.toml", manifest);
    workshop.write(MAIN, "fn main() {}");
    workshop.write(
        "capstone/tests/contract.rs",
        "#[test] fn sells_no_seat_twice() { panic!(\"a seat is sold once: seat 7 was sold twice\") }",
    );
    let said = workshop.run("bench");
    let rule = "the contract is broken, which is a score of 0; capstone/tests has each rule:\n  \
                sells_no_seat_twice: a seat is sold once: seat 7 was sold twice";
    assert!(said.code == Some(1) && said.err.contains(rule), "{said:?}");
    let held = || serde_json::from_str::<serde_json::Value>(&workshop.read(SCORES));
    let runs = held().unwrap();
    assert_eq!(runs[0]["result"]["score"], 7.5);
    assert!(runs[1]["result"].is_null(), "{runs}");
    assert_eq!(
        git(&workshop.path(""), &["rev-parse", "--short", "HEAD"]),
        runs[1]["commit"].as_str().unwrap()
    );
    results::described(&workshop.run("--format json").json());
    let said = workshop.run("").good();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("abc+      7.5  (7.0 to 8.0)"), "{said}");
    assert!(
        lines[1].ends_with("+      0.0  the contract is broken"),
        "{said}"
    );
    // What does not compile has no score.
    workshop.write(MAIN, "fn main() { 1 }");
    let said = workshop.run("bench");
    assert!(
        said.code == Some(1) && said.err.contains("E0308"),
        "{said:?}"
    );
    assert_eq!(held().unwrap(), runs);
    // Nothing is measured for a file that cannot keep it.
    workshop.write(SCORES, "[{");
    let said = workshop.run("bench").refused(1);
    assert!(said.contains("history.json, remove it"), "{said}");
    assert_eq!(workshop.read(SCORES), "[{");
}

#[test]
fn changes_names_what_the_rules_leave_alone() {
    let workshop = with_a_shop();
    let root = workshop.path("");
    let said = workshop.run("changes").good();
    assert!(said.contains("No file is changed"), "{said}");
    workshop.write(MAIN, "fast");
    workshop.run("changes").good();
    workshop.write("capstone/tests/contract.rs", "#[test] fn holds() {}");
    workshop.write("crates/shop-bench/src/lib.rs", "// ten times the score");
    let said = workshop.run("changes").refused(1);
    assert!(
        said.ends_with("changed: capstone/tests/contract.rs"),
        "{said}"
    );
    git(&root, &["checkout", "--quiet", "-b", "mine"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "--quiet", "--message", "Fast"]);
    git(&root, &["checkout", "--quiet", "-"]);
    workshop.run("changes").good();
    let said = workshop.run("changes mine").refused(1);
    let both = "they are changed: crates/shop-bench/src/lib.rs, capstone/tests/contract.rs";
    assert!(said.ends_with(both), "{said}");
}

#[test]
fn a_wrong_command_line_is_refused_with_what_is_right() {
    let workshop = with_a_shop();
    for (words, says) in [
        ("bench --seconds 5", "60"),
        ("bench --against", "<COMMIT>"),
        ("changes mine yours", "unexpected argument"),
    ] {
        let said = workshop.run(words);
        assert!(
            said.code == Some(2) && said.err.contains(says),
            "{words}: {said:?}"
        );
    }
    assert!(
        workshop
            .run("--help")
            .good()
            .contains("cargo workshop capstone")
    );
}

/// Two at once would spoil each other's scores, and one of them would be lost.
#[test]
fn a_second_bench_is_refused() {
    let workshop = with_a_shop();
    let lock = workshop.path(".workshop/capstone/bench.lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let first = std::fs::File::create(lock).unwrap();
    first.lock().unwrap();
    let said = workshop.run("bench").refused(3);
    assert!(
        said.contains("another bench of this shop is running"),
        "{said}"
    );
}

/// Stands in for the shop and for the payment service: it answers whether it is there, and breaks down under load if
/// a file says so.
#[cfg(unix)]
const STANDS_IN: &str = r#"
use std::io::{Read, Write};
fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words.iter().any(|word| word == "init-db") {
        return;
    }
    std::fs::write(words[0].rsplit('/').next().unwrap(), std::process::id().to_string()).unwrap();
    let port = &words[words.iter().position(|word| word == "--port").unwrap() + 1];
    let listener = std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap();
    for stream in listener.incoming() {
        let (mut stream, mut request) = (stream.unwrap(), [0; 1000]);
        let length = stream.read(&mut request).unwrap_or(0);
        if request.starts_with(b"GET /health") || request.starts_with(b"GET /charges") {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        } else if length > 0 && std::path::Path::new("breaks-down").exists() {
            std::process::abort();
        }
    }
}
"#;

/// However a bench ends, no process and no temporary file is left.
#[cfg(unix)]
#[test]
fn a_bench_that_is_killed_and_one_whose_shop_breaks_down_leave_nothing() {
    use rustix::process::{Pid, test_kill_process};

    let workshop = with_a_shop();
    let manifest = "[package]\nname = \"capstone\"\nedition = \"2024\"\n[workspace]\n";
    workshop.write("capstone/Cargo.toml", manifest);
    workshop.write(MAIN, STANDS_IN);
    workshop.write("capstone/src/bin/payments.rs", STANDS_IN);
    std::fs::create_dir(workshop.path("tmp")).unwrap();
    let soon = |what: &str, holds: &dyn Fn() -> bool| {
        let began = std::time::Instant::now();
        while !holds() {
            // The shop has to be compiled first, which a busy machine takes its time for.
            assert!(began.elapsed().as_secs() < 300, "{what}");
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    let process = |name: &str| {
        let id = std::fs::read_to_string(workshop.path("capstone").join(name));
        Pid::from_raw(id.ok()?.parse().ok()?)
    };
    let is_all_gone = || {
        for name in ["capstone", "payments"] {
            let gone = process(name).unwrap();
            soon(name, &|| test_kill_process(gone).is_err());
            std::fs::remove_file(workshop.path("capstone").join(name)).unwrap();
        }
        soon("tmp", &|| names(&workshop.path("tmp")).is_empty());
    };
    let mut bench = workshop.command("bench --no-tests --seconds 10");
    bench.env("TMPDIR", workshop.path("tmp"));

    let mut killed = bench.spawn().unwrap();
    soon("no shop", &|| process("capstone").is_some());
    killed.kill().unwrap();
    killed.wait().unwrap();
    is_all_gone();

    workshop.write("capstone/breaks-down", "");
    let said = Ran::of(&mut bench);
    assert_eq!(said.code, Some(1), "{said:?}");
    let last = said.err.lines().last().unwrap();
    let sentence = "error: the shop ended under load (signal: 6 (SIGABRT)";
    assert!(last.starts_with(sentence), "{said:?}");
    is_all_gone();
}
