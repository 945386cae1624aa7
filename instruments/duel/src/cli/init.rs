//! `duel init`: writes the workflows that guard a repository.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use terminal::exit::{CliError, Exit};
use terminal::files;
use terminal::git::Git;

use super::config;
use super::revision::repository;
use crate::cli::options::Init;

/// The workflow that compares, and the one that comments. Some lines of the first are replaced for each repository.
const COMPARE: &str = include_str!("../../workflows/compare.yml");
const COMMENT: &str = include_str!("../../workflows/comment.yml");
/// Paths of the workflows in the repository.
const COMPARE_FILE: &str = ".github/workflows/compare.yml";
const COMMENT_FILE: &str = ".github/workflows/comment.yml";

/// Web frameworks; a package that depends on one is probably a service.
const FRAMEWORKS: [&str; 10] = [
    "actix-web",
    "axum",
    "hyper",
    "ntex",
    "poem",
    "rocket",
    "salvo",
    "tide",
    "tonic",
    "warp",
];

/// Writes both workflows, and prints what to check.
pub(super) fn run(options: &Init) -> Result<Exit, CliError> {
    let (root, _) = repository()?;
    let found = Found::of(&root, options)?;
    let branch = default_branch(&Git::at(&root)?);
    let compare = Found::workflow(&branch, options);
    let options_file = found.options();
    for file in [COMPARE_FILE, COMMENT_FILE, config::FILE] {
        if !options.force && root.join(file).exists() {
            return Err(CliError::usage(format!(
                "{file} is there already; look at it, and say --force to write it anew"
            )));
        }
    }
    for (file, text) in [
        (COMPARE_FILE, &*compare),
        (COMMENT_FILE, COMMENT),
        (config::FILE, &*options_file),
    ] {
        files::replace(&root.join(file), text)?;
        println!("wrote {file}");
    }
    for note in &found.notes {
        println!("{note}");
    }
    if options.action.is_none() && own_action().is_none() {
        println!(
            "Put the address of duel's action into the line `uses: OWNER/REPOSITORY/…` of {COMPARE_FILE}."
        );
    }
    println!(
        "Put what your users ask for into {}, in place of `/`. Then try it here:\n    duel compare --base \
         git:{branch}...HEAD --change git:HEAD",
        config::FILE
    );
    Ok(Exit::Good)
}

/// Commands that build and start a repository's service.
struct Found {
    build: String,
    run: String,
    /// Sentences on what the reader has to check.
    notes: Vec<String>,
}

impl Found {
    fn of(root: &Path, options: &Init) -> Result<Self, CliError> {
        let program = match (&options.run, &options.build) {
            (Some(_), Some(_)) => None,
            _ => Some(Service::of(root)?),
        };
        let mut notes = Vec::new();
        let (mut build, mut run) = (String::new(), String::new());
        if let Some(service) = program {
            build = match service.others {
                0 => "cargo build --release".to_owned(),
                _ => format!("cargo build --release --bin {}", service.name),
            };
            if service.others > 0 {
                notes.push(format!(
                    "{} of the {} programs here was taken for the service; name another by --run and --build.",
                    service.name,
                    service.others + 1
                ));
            }
            let program = format!("./target/release/{}", service.name);
            run = format!("{program} --port {{port}}");
            if options.run.is_none() {
                notes.push(format!(
                    "Check `run`: {} gets its port by `--port {{port}}`, and in the variable PORT. If it takes the port \
                     in another way, write that there, such as `SHOP_PORT={{port}} {program}`.",
                    service.name
                ));
            }
        }
        Ok(Self {
            build: options.build.clone().unwrap_or(build),
            run: options.run.clone().unwrap_or(run),
            notes,
        })
    }

    /// Returns the file of options that each command here reads.
    fn options(&self) -> String {
        let text = |text: &str| Value::from(text).to_string();
        format!(
            "# Options of `duel compare`, `duel bisect` and `duel load` in this folder. Those of a command line come before them, \
             and\n# a table such as [load] has those of one command.\nbuild = {}\nrun = {}\nget = [\"/\"]\nusers = 50\n",
            text(&self.build),
            text(&self.run)
        )
    }

    fn workflow(branch: &str, options: &Init) -> String {
        let mut text = String::new();
        for line in COMPARE.lines() {
            let begin = &line[..line.len() - line.trim_start().len()];
            let Some((key, _)) = line.trim_start().split_once(": ") else {
                text += line;
                text.push('\n');
                continue;
            };
            let own = match key {
                "branches" => Some(format!("[{}]", quoted(branch))),
                "uses" if line.contains("OWNER/REPOSITORY") => match &options.action {
                    Some(action) => Some(action.clone()),
                    None => own_action(),
                },
                _ => None,
            };
            match own {
                Some(own) => text.extend([begin, key, ": ", &own]),
                None => text += line,
            }
            text.push('\n');
        }
        text
    }
}

/// Returns `text` as a YAML string in one line.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Returns the address of this version's action; `None` if its repository is not on GitHub.
fn own_action() -> Option<String> {
    let repository = env!("CARGO_PKG_REPOSITORY").strip_prefix("https://github.com/")?;
    let version = env!("CARGO_PKG_VERSION");
    Some(match option_env!("DUEL_COMMIT") {
        Some(commit) => format!("{repository}/instruments/duel@{commit} # duel-v{version}"),
        None => format!("{repository}/instruments/duel@duel-v{version}"),
    })
}

/// Returns the branch that pull requests are for.
fn default_branch(git: &Git) -> String {
    let remote = git.ask(["symbolic-ref", "--short", "refs/remotes/origin/HEAD"]);
    if let Some(name) = remote.unwrap_or_default().strip_prefix("origin/") {
        return name.to_owned();
    }
    for usual in ["main", "master"] {
        let branch = format!("refs/heads/{usual}");
        let found = git.ask(["rev-parse", "--verify", "--quiet", &branch]);
        if found.is_some() {
            return usual.to_owned();
        }
    }
    match git.ask(["symbolic-ref", "--short", "HEAD"]) {
        Some(current) => current,
        None => "main".to_owned(),
    }
}

/// A program of a cargo workspace.
struct Service {
    name: String,
    /// Number of other programs.
    others: usize,
}

impl Service {
    /// Finds the program that is most likely to be a service. A program on a web framework comes before others, then
    /// the one that cargo runs by default.
    fn of(root: &Path) -> Result<Self, CliError> {
        let unknown = |why: &str| {
            CliError::usage(format!(
                "{why}: say what builds and starts the service, by --build and --run './shop --port {{port}}'"
            ))
        };
        let mut cargo = Command::new("cargo");
        cargo
            .args(["metadata", "--no-deps", "--format-version", "1"])
            .current_dir(root);
        let said = match cargo.output() {
            Ok(said) if said.status.success() => said,
            _ => return Err(unknown("cargo knows no package here")),
        };
        let metadata: Value = serde_json::from_slice(&said.stdout)
            .map_err(|_| unknown("cargo's description of this workspace cannot be read"))?;
        let mut programs = Vec::new();
        for package in metadata["packages"].as_array().into_iter().flatten() {
            let mut dependencies = package["dependencies"].as_array().into_iter().flatten();
            let is_web = dependencies.any(|one| {
                let name = one["name"].as_str().unwrap_or_default();
                FRAMEWORKS.contains(&name)
            });
            let targets = package["targets"].as_array().into_iter().flatten();
            for target in targets.filter(|target| target["kind"][0] == "bin") {
                let is_default = package["default_run"] == target["name"];
                let name = target["name"].as_str().unwrap_or_default().to_owned();
                programs.push((is_web, is_default, name));
            }
        }
        let others = programs.len().saturating_sub(1);
        // `max_by_key` takes the last of equally likely programs, and the first one listed should win.
        programs.reverse();
        let likely = programs
            .into_iter()
            .max_by_key(|(is_web, is_default, ..)| (*is_web, *is_default));
        let Some((.., name)) = likely else {
            return Err(unknown("no package here has a program"));
        };
        Ok(Self { name, others })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workflow_is_the_repositorys_own() {
        let found = Found {
            build: "cargo build --release".to_owned(),
            run: "X=\"1\" ./target/release/shop".to_owned(),
            notes: Vec::new(),
        };
        let options = Init {
            run: None,
            build: None,
            action: Some("me/tools/instruments/duel@0123".to_owned()),
            force: false,
        };
        let text = Found::workflow("trunk", &options);
        for line in [
            "    branches: [\"trunk\"]",
            "        uses: me/tools/instruments/duel@0123",
            "          at-most-slower: 10%",
        ] {
            assert!(text.lines().any(|one| one == line), "no `{line}` in {text}");
        }
        assert_eq!(text.lines().count(), COMPARE.lines().count());
        let options: toml::Table = found.options().parse().unwrap();
        assert_eq!(
            options["run"].as_str(),
            Some("X=\"1\" ./target/release/shop")
        );
        assert_eq!(options["build"].as_str(), Some("cargo build --release"));
    }
}
