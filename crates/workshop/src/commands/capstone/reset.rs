//! `cargo workshop capstone reset`: the shop as it was shipped.

use std::path::{Path, PathBuf};

use terminal::exit::{CliError, Exit};
use terminal::files;
use terminal::git::Git;

use super::Shop;

/// The learner's files are copied first: until all are, nothing is changed.
pub(super) fn run(shop: &Shop, to: Option<&str>) -> Result<Exit, CliError> {
    let git = Git::within(shop.workshop.root());
    let commit = match to {
        Some(revision) => revision.to_owned(),
        None => shipped(&git)?,
    };
    let manifest = format!("{commit}:./capstone/Cargo.toml");
    if git.ask(["cat-file", "-e", &manifest]).is_none() {
        return Err(CliError::usage(format!(
            "{commit} is no commit with a ticket shop: name another with --to"
        )));
    }
    let said = git.say(["show", "--no-patch", "--format=%h %s", &commit])?;

    let kept = shop.workshop.state().join("kept");
    let refused = |why: &std::io::Error| {
        CliError::bad(format!(
            "your shop cannot be kept in {} ({why}), so nothing was changed",
            kept.display()
        ))
    };
    let _turn = files::lock(&shop.workshop.state()).map_err(|error| refused(&error))?;
    let differ = ["diff", "--name-only", &commit, "--", "capstone"];
    let staged = ["diff", "--name-only", "--cached", &commit, "--", "capstone"];
    let new = "ls-files --others --exclude-standard -- capstone";
    let is_shipped = git.say(differ)?.is_empty()
        && git.say(staged)?.is_empty()
        && git.say(new.split(' '))?.is_empty();
    if is_shipped {
        println!("capstone/ is as in {said}; nothing to do");
        return Ok(Exit::Good);
    }

    let all = "ls-files -z --cached --others --exclude-standard -- capstone";
    let all = git.say(all.split(' '))?;
    let into = copied(shop.workshop.root(), &all, &kept).map_err(|error| refused(&error))?;
    let into = shop.workshop.shown(&into);
    let back = ["restore", "--staged", "--worktree", "--source", &commit];
    let back = git.say(back.into_iter().chain(["--", "capstone"]));
    back.and_then(|_| git.say(["clean", "-fdq", "--", "capstone"]))
        .map_err(CliError::because(format!("your shop is in {into}, but")))?;
    println!(
        "capstone/ is back as in {said}; your version is kept in {into}\n\
         Scores stay. If you changed the schema: cargo workshop capstone init-db"
    );
    Ok(Exit::Good)
}

/// The last commit that the learner has from others: where there are none, the last one.
fn shipped(git: &Git) -> Result<String, CliError> {
    let others = ["origin/HEAD", "@{upstream}"];
    let base = |other: &&str| git.ask(["merge-base", "HEAD", other]);
    match others.iter().find_map(base) {
        Some(commit) => Ok(commit),
        None => git.say(["rev-parse", "HEAD"]),
    }
}

/// Copies those of the `files` that are there into a new folder in `kept`, which is none if that fails.
fn copied(root: &Path, files: &str, kept: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(kept)?;
    let now = course::bench::provenance::now().replace(['-', ':'], "");
    let into = tempfile::Builder::new()
        .prefix(&format!("capstone-{now}-"))
        .tempdir_in(kept)?;
    for file in files.split_terminator('\0') {
        let to = into
            .path()
            .join(file.strip_prefix("capstone/").unwrap_or(file));
        std::fs::create_dir_all(to.parent().unwrap_or(kept))?;
        match std::fs::copy(root.join(file), to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => (),
        }
    }
    Ok(into.keep())
}
