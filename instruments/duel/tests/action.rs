//! The steps of `action.yml`, one after the other, as a runner would take them. Its caches are left out.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Answers `ok` after so many milliseconds.
const SERVICE: &str = r#"
use std::io::{BufRead, BufReader, Write};
fn main() {
    let port = std::env::args().nth(1).unwrap();
    for stream in std::net::TcpListener::bind(format!("127.0.0.1:{port}")).unwrap().incoming() {
        std::thread::spawn(move || {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            for _ in lines.map_while(Result::ok).filter(|line| line.is_empty()) {
                std::thread::sleep(std::time::Duration::from_millis(DELAY));
                if stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() { return }
            }
        });
    }
}
"#;

/// The commands of the step with this name, and the inputs that its variables stand for.
fn step(name: &str) -> (String, Vec<(String, String)>) {
    let action = fs::read_to_string("action.yml").unwrap();
    let (_, step) = action.split_once(&format!("- name: {name}\n")).unwrap();
    let step = step.split("\n    - ").next().unwrap();
    let (head, run) = step.split_once("run: |\n").unwrap();
    let (_, variables) = head.split_once("env:\n").unwrap();
    let variables = variables
        .lines()
        .filter_map(|line| line.trim().split_once(": "));
    let inner = |value: &str| {
        let value = value.trim_start_matches("${{ ");
        value.replace(" }}", "")
    };
    (
        run.lines().map(str::trim).collect::<Vec<_>>().join("\n"),
        variables
            .map(|(name, value)| (name.to_owned(), inner(value)))
            .collect(),
    )
}

fn git(folder: &Path, words: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]);
    let said = git.args(words).current_dir(folder).output().unwrap();
    assert!(said.status.success(), "{said:?}");
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_pull_request_that_is_slower_fails_and_says_so_where_a_reviewer_looks() {
    let folder = tempfile::tempdir().unwrap();
    let (project, runner) = (folder.path().join("project"), folder.path().join("runner"));
    fs::create_dir_all(runner.join("duel/bin")).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_duel"), runner.join("duel/bin/duel")).unwrap();
    fs::create_dir(&project).unwrap();
    git(&project, &["init", "-q"]);
    let commit = |delay: &str| {
        fs::write(project.join("service.rs"), SERVICE.replace("DELAY", delay)).unwrap();
        git(&project, &["add", "."]);
        git(&project, &["commit", "-qm", delay]);
        git(&project, &["rev-parse", "HEAD"])
    };
    let (base, change) = (commit("1"), commit("40"));
    let [output, summary, path] = ["output", "summary", "path"].map(|name| runner.join(name));
    let inputs = [
        ("inputs.base", base.as_str()),
        ("inputs.change", &change),
        ("inputs.build", "rustc service.rs -o service"),
        ("inputs.run", "./service {port}"),
        ("inputs.requests", "--get '/a/{1..3}' --users 2"),
        ("inputs.at-most-slower", "10%"),
        ("inputs.at-most", "4"),
        ("inputs.inconclusive", "pass"),
        ("inputs.options", "--seconds 0.2 --warm-up 0"),
        ("github.action_path", env!("CARGO_MANIFEST_DIR")),
    ];
    let take = |name: &str| -> Output {
        let (run, variables) = step(name);
        let temporary = runner.display().to_string();
        let value = |of: &str| {
            let input = inputs.iter().find(|(input, _)| *input == of);
            input.map_or(
                of.replace("${{ runner.temp", &temporary)
                    .replace("runner.temp", &temporary),
                |(_, value)| (*value).to_owned(),
            )
        };
        let paths = format!("{}:{}", runner.join("duel/bin").display(), env!("PATH"));
        Command::new("bash")
            .args(["-eo", "pipefail", "-c", &run])
            .envs(variables.iter().map(|(name, of)| (name, value(of))))
            .env("PATH", paths)
            .env("GITHUB_OUTPUT", &output)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_PATH", &path)
            .current_dir(&project)
            .output()
            .unwrap()
    };
    let installed = take("Install duel");
    assert!(installed.status.success(), "{installed:?}");
    let compared = take("Compare");
    let outputs = fs::read_to_string(&output).unwrap();
    let (_, verdict) = outputs.split_once("verdict=").expect("a verdict");
    // A busy machine may say less than that it is slower.
    let code = match verdict.trim() {
        "slower" => 1,
        "inconclusive" => 0,
        "invalid" => 3,
        other => panic!("{other}: {compared:?}"),
    };
    assert_eq!(compared.status.code(), Some(code), "{compared:?}");
    let result = runner.join("duel/result");
    let said = fs::read_to_string(&summary).unwrap();
    assert!(said.contains(&base) && said.contains(&change), "{said}");
    for file in ["compare.html", "compare.json", "summary.md", "bencher.json"] {
        assert!(result.join(file).is_file(), "no {file}");
    }
    if verdict.trim() == "slower" {
        let bencher = fs::read_to_string(result.join("bencher.json")).unwrap();
        let bencher: serde_json::Value = serde_json::from_str(&bencher).unwrap();
        let ratio = &bencher["all requests, times as good as the base"]["requests_per_second"];
        assert!(ratio["value"].as_f64().unwrap() < 0.5, "{bencher}");
        assert!(ratio["upper_value"].is_number(), "{bencher}");
        assert!(
            bencher["all requests"]["p50_ms"]["value"].is_number(),
            "{bencher}"
        );
    }
}
