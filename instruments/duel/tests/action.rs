//! Tests of the steps of `action.yml`, in the order in which a runner takes them. Only the keys of its caches are
//! tested.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use terminal::testing::git;

/// Service that answers `ok` after `DELAY` milliseconds.
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

/// Runner of GitHub's, as far as the steps see it.
struct Runner {
    /// Its temporary folder.
    temporary: PathBuf,
    /// The checkout.
    project: PathBuf,
    /// Contexts such as `inputs.base`, and the outputs of earlier steps.
    contexts: Vec<(String, String)>,
}

impl Runner {
    fn new(folder: &Path, contexts: &[(&str, &str)]) -> Self {
        let temporary = folder.join("runner");
        fs::create_dir_all(temporary.join("duel/bin")).unwrap();
        let program = temporary.join("duel/bin/duel");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_duel"), program).unwrap();
        let action = ("github.action_path", env!("CARGO_MANIFEST_DIR"));
        let project = folder.join("project");
        fs::create_dir(&project).unwrap();
        let mut runner = Self {
            temporary,
            project,
            contexts: Vec::new(),
        };
        for (name, value) in contexts.iter().chain([&action]) {
            runner.set(name, value);
        }
        runner
    }

    fn set(&mut self, name: &str, value: &str) {
        self.contexts.retain(|(other, _)| other != name);
        self.contexts.push((name.to_owned(), value.to_owned()));
    }

    /// Returns `text` with the value of each `${{ … }}`. A context that is not set is empty, as at GitHub's.
    fn filled_in(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${{ ") {
            let (name, after) = after.split_once(" }}").unwrap();
            filled += before;
            match self.contexts.iter().find(|(other, _)| other == name) {
                Some((_, value)) => filled += value,
                None if name == "runner.temp" => filled += &self.temporary.display().to_string(),
                None => {}
            }
            rest = after;
        }
        filled + rest
    }

    /// Runs the step with this name, and notes its outputs.
    fn take(&mut self, name: &str) -> Output {
        let action = fs::read_to_string("action.yml").unwrap();
        let (_, step) = action.split_once(&format!("- name: {name}\n")).unwrap();
        let step = step.split("\n    - ").next().unwrap();
        let step = step.split("\n    #").next().unwrap();
        let (head, run) = step.split_once("run: |\n").unwrap();
        let (_, variables) = head.split_once("env:\n").unwrap();
        let run: Vec<&str> = run
            .lines()
            .map(|line| line.strip_prefix("        ").unwrap_or(line))
            .collect();
        let path = format!("{}:{}", self.in_temporary("duel/bin"), env!("PATH"));
        let mut shell = Command::new("bash");
        shell
            .args(["-eo", "pipefail", "-c", &run.join("\n")])
            .env("PATH", path)
            .env("GITHUB_OUTPUT", self.in_temporary("output"))
            .env("GITHUB_STEP_SUMMARY", self.in_temporary("summary"))
            .env("GITHUB_PATH", self.in_temporary("path"))
            .current_dir(&self.project);
        for line in variables.lines() {
            if let Some((name, value)) = line.trim().split_once(": ") {
                shell.env(name, self.filled_in(value));
            }
        }
        let taken = shell.output().unwrap();
        let id = head
            .lines()
            .find_map(|line| line.trim().strip_prefix("id: "));
        let said = fs::read_to_string(self.in_temporary("output")).unwrap_or_default();
        for line in said.lines() {
            if let (Some(id), Some((name, value))) = (id, line.split_once('=')) {
                self.set(&format!("steps.{id}.outputs.{name}"), value);
            }
        }
        let _ = fs::remove_file(self.in_temporary("output"));
        taken
    }

    /// Returns an output of a step: `base.commit`.
    fn output(&self, name: &str) -> String {
        let (step, output) = name.split_once('.').unwrap();
        self.filled_in(&format!("${{{{ steps.{step}.outputs.{output} }}}}"))
    }

    fn in_temporary(&self, name: &str) -> String {
        self.temporary.join(name).display().to_string()
    }

    fn result(&self, name: &str) -> PathBuf {
        self.temporary.join("duel/result").join(name)
    }
}

fn commit(folder: &Path, file: &str, text: &str) -> String {
    fs::write(folder.join(file), text).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "-qm", &format!("Change {file}")]);
    git(folder, &["rev-parse", "HEAD"])
}

const QUICK: [(&str, &str); 7] = [
    ("inputs.build", "rustc service.rs -o service"),
    ("inputs.run", "./service {port}"),
    ("inputs.requests", "--get '/a/{1..3}' --users 2"),
    ("inputs.at-most-slower", "10%"),
    ("inputs.at-most", "4"),
    ("inputs.inconclusive", "pass"),
    ("inputs.options", "--seconds 0.2 --warm-up 0"),
];

#[test]
fn a_pull_request_that_is_slower_fails_and_says_so_where_a_reviewer_looks() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = Runner::new(folder.path(), &QUICK);
    git(&runner.project, &["init", "-q"]);
    let service = |delay: &str| SERVICE.replace("DELAY", delay);
    let base = commit(&runner.project, "service.rs", &service("1"));
    let change = commit(&runner.project, "service.rs", &service("40"));
    runner.set("inputs.base", &base);
    runner.set("inputs.change", &change);
    for step in ["Find the base", "Install duel"] {
        let taken = runner.take(step);
        assert!(taken.status.success(), "{step}: {taken:?}");
    }
    let compared = runner.take("Compare");
    // On a busy machine the verdict may be less than `slower`.
    let verdict = runner.output("compare.verdict");
    let code = match &*verdict {
        "slower" => 1,
        "inconclusive" => 0,
        "invalid" => 3,
        other => panic!("{other}: {compared:?}"),
    };
    assert_eq!(compared.status.code(), Some(code), "{compared:?}");
    let said = fs::read_to_string(runner.in_temporary("summary")).unwrap();
    let (base, change) = (&base[..7], &change[..7]);
    assert!(said.contains(base) && said.contains(change), "{said}");
    for file in ["compare.html", "compare.json", "summary.md", "bencher.json"] {
        assert!(runner.result(file).is_file(), "no {file}");
    }
    if verdict == "slower" {
        let bencher = fs::read_to_string(runner.result("bencher.json")).unwrap();
        let bencher: Value = serde_json::from_str(&bencher).unwrap();
        let ratio = &bencher["all requests, times as good as the base"]["requests_per_second"];
        // What `at-most-slower` says.
        assert!(ratio["value"].as_f64().unwrap() < 0.9, "{bencher}");
        assert!(ratio["upper_value"].is_number(), "{bencher}");
        // A busy machine may have too few answers for a percentile.
        let json = fs::read_to_string(runner.result("compare.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap();
        let mut metrics = json["metrics"].as_array().unwrap().iter();
        let has_median = metrics.any(|one| one["metric"] == "p50_ms" && one["change"].is_number());
        let median = &bencher["all requests"]["p50_ms"]["value"];
        assert_eq!(median.is_number(), has_median, "{bencher}");
    }
}

/// Compares a branch with the commit where it began, so later commits of the target branch do not count against it.
#[test]
fn a_stale_branch_is_compared_with_where_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let origin = folder.path().join("origin");
    fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "-q", "-b", "main"]);
    let service = |delay: &str| SERVICE.replace("DELAY", delay);
    let began = commit(&origin, "service.rs", &service("40"));
    git(&origin, &["checkout", "-qb", "feature"]);
    let change = commit(&origin, "README.md", "A new paragraph.");
    git(&origin, &["checkout", "-q", "main"]);
    let faster = commit(&origin, "service.rs", &service("1"));

    let url = format!("file://{}", origin.display());
    for depth in [&[][..], &["--depth", "1"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut runner = Runner::new(folder.path(), &QUICK);
        let into = runner.project.display().to_string();
        let clone = ["clone", "-q", "-b", "feature", &url, &into];
        git(folder.path(), &[&clone[..], depth].concat());
        runner.set("inputs.change", &change);
        runner.set("github.base_ref", "main");
        runner.set("github.event.pull_request.base.sha", &faster);
        let taken = runner.take("Find the base");
        assert_eq!(runner.output("base.commit"), began, "{taken:?}");
        let about = runner.output("base.about");
        assert!(about.contains("`main` gained since (1 commit)"), "{about}");
        if !depth.is_empty() {
            continue;
        }
        let compared = runner.take("Compare");
        let json = fs::read_to_string(runner.result("compare.json")).unwrap();
        let json: Value = serde_json::from_str(&json).unwrap_or_else(|_| panic!("{compared:?}"));
        assert_eq!(json["base"]["commit"], *began, "{json}");
        let [base, change] = ["base", "change"].map(|side| &json[side]["program"]["sha256"]);
        assert!(base.is_string() && base == change, "{json}");
        let said = fs::read_to_string(runner.in_temporary("summary")).unwrap();
        assert!(said.contains(&about), "{said}");
    }
}

#[test]
fn a_push_is_compared_with_the_commit_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut runner = Runner::new(folder.path(), &[]);
    git(&runner.project, &["init", "-q"]);
    let first = commit(&runner.project, "a", "1");
    let second = commit(&runner.project, "a", "2");
    let third = commit(&runner.project, "a", "3");
    runner.set("inputs.change", &third);
    runner.set("github.event.before", &first);
    runner.take("Find the base");
    assert_eq!(runner.output("base.commit"), first);
    // A new branch.
    runner.set("github.event.before", &"0".repeat(40));
    runner.take("Find the base");
    assert_eq!(runner.output("base.commit"), second);
}

/// A checkout of one branch has no local branch of another name, and may not even know origin's.
#[test]
fn a_base_that_exists_only_on_origin_is_found_and_one_that_exists_nowhere_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let origin = folder.path().join("origin");
    fs::create_dir(&origin).unwrap();
    git(&origin, &["init", "-q", "-b", "main"]);
    let base = commit(&origin, "a", "1");
    git(&origin, &["branch", "release"]);
    let change = commit(&origin, "a", "2");
    let url = format!("file://{}", origin.display());
    for single in [&[][..], &["--single-branch"]] {
        let folder = tempfile::tempdir().unwrap();
        let mut runner = Runner::new(folder.path(), &[]);
        let into = runner.project.display().to_string();
        git(
            folder.path(),
            &[&["clone", "-q", &url, &into][..], single].concat(),
        );
        runner.set("inputs.change", &change);
        runner.set("inputs.base", "release");
        let taken = runner.take("Find the base");
        assert_eq!(runner.output("base.commit"), base, "{taken:?}");
        runner.set("inputs.base", "none");
        let taken = runner.take("Find the base");
        let said = String::from_utf8_lossy(&taken.stdout);
        assert!(!taken.status.success(), "{taken:?}");
        assert!(
            said.contains("::error::duel: origin has no commit or branch none"),
            "{taken:?}"
        );
    }
}

/// The cache must not return the old program when the pin, or a tag that moves by itself, changes.
#[test]
fn a_kept_program_is_that_of_this_version() {
    let action = fs::read_to_string("action.yml").unwrap();
    let (_, cache) = action
        .split_once("path: ${{ runner.temp }}/duel/bin\n")
        .unwrap();
    let key = cache.lines().next().unwrap().trim().to_owned();
    assert!(key.starts_with("key: "), "{key}");

    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("instruments");
    for (file, text) in [
        (
            "../Cargo.toml",
            "[workspace.package]\nversion = \"0.1.0\"\n",
        ),
        (
            "duel/Cargo.toml",
            "[package]\nname = \"duel\"\nversion.workspace = true\n",
        ),
        ("engine/src/lib.rs", "// one\n"),
    ] {
        let file = source.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
    let mut runner = Runner::new(folder.path(), &[("github.action_ref", "v0")]);
    let action_path = source.join("duel").display().to_string();
    runner.set("github.action_path", &action_path);
    let mut key_now = |reference: &str| {
        runner.set("github.action_ref", reference);
        let taken = runner.take("Name this duel");
        assert!(taken.status.success(), "{taken:?}");
        runner.filled_in(&key)
    };
    let first = key_now("v0");
    assert!(first.contains("v0-"), "{first}");
    assert_eq!(key_now("v0"), first);
    assert_ne!(key_now("v0.2"), first);
    fs::write(source.join("engine/src/lib.rs"), "// two\n").unwrap();
    let second = key_now("v0");
    assert_ne!(second, first);
    fs::write(source.join("../Cargo.lock"), "# other versions\n").unwrap();
    assert_ne!(key_now("v0"), second);
    assert!(!key_now("a/b").contains('/'));
}
