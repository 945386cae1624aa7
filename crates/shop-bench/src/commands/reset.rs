//! `cargo workshop capstone reset`: the shop as it was shipped.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use terminal::exit::{CliError, Exit};
use terminal::files;
use terminal::git::Git;

use crate::shipped::{REFERENCE, Shipped};
use crate::shop::Shop;

/// Puts the shop back. It changes nothing until all of the learner's files are copied.
///
/// # Errors
///
/// Returns an error if this clone does not have the wanted shop, or if the learner's files cannot be copied.
pub fn run(shop: &Shop, to: Option<&str>) -> Result<Exit, CliError> {
    let git = Git::within(shop.root());
    let (said, wanted) = match to {
        Some(commit) => of_commit(&git, commit)?,
        None => ("it was shipped".to_owned(), Shipped::read(shop)?),
    };
    for (path, blob) in &wanted.blobs {
        if git.ask(["cat-file", "-e", blob]).is_none() {
            return Err(CliError::usage(format!(
                "this clone has no {path} as it was shipped: `git fetch --unshallow`, or clone the whole workshop"
            )));
        }
    }

    let kept = shop.state_of_workshop().join("kept");
    let refused = |why: &std::io::Error| {
        CliError::bad(format!(
            "your shop cannot be kept in {} ({why}), so nothing was changed",
            kept.display()
        ))
    };
    let _turn = files::lock(&shop.state_of_workshop()).map_err(|error| refused(&error))?;
    let here = Shipped::lying_here(&git, shop.root())?;
    let staged = git.say(["ls-files", "--stage", "--", "capstone"])?;
    if here == wanted.blobs && is_staged(&staged, &wanted) {
        println!("capstone/ is as {said}; nothing to do");
        return Ok(Exit::Good);
    }

    let files: Vec<&str> = here.keys().map(String::as_str).collect();
    let into = copied(shop.root(), &files, &kept).map_err(|error| refused(&error))?;
    let into = shop.shown(&into);
    restore(&git, shop.root(), &wanted, &files)
        .map_err(CliError::because(format!("your shop is in {into}, but")))?;
    println!(
        "capstone/ is back as {said}; your version is kept in {into}\n\
         Scores stay. If you changed the schema: cargo workshop capstone init-db"
    );
    Ok(Exit::Good)
}

/// Returns the shop of a commit, and the commit's name for messages.
fn of_commit(git: &Git, commit: &str) -> Result<(String, Shipped), CliError> {
    let manifest = format!("{commit}:./capstone/Cargo.toml");
    if git.ask(["cat-file", "-e", &manifest]).is_none() {
        return Err(CliError::usage(format!(
            "{commit} is no commit with a ticket shop: name another with --to"
        )));
    }
    let said = git.say(["show", "--no-patch", "--format=in %h %s", commit])?;
    Ok((said, Shipped::in_commit(git, commit)?))
}

/// Returns whether the index has the same files.
fn is_staged(staged: &str, wanted: &Shipped) -> bool {
    let mut count = 0;
    // `100644 ID 0<tab>PATH`
    for line in staged.lines() {
        let Some((about, path)) = line.split_once('\t') else {
            return false;
        };
        if path.starts_with(REFERENCE) {
            continue;
        }
        let blob = about.split(' ').nth(1);
        if wanted.blobs.get(path).map(String::as_str) != blob {
            return false;
        }
        count += 1;
    }
    count == wanted.blobs.len()
}

/// Puts the files in place of the learner's, in the folder and in the index.
fn restore(git: &Git, root: &Path, wanted: &Shipped, here: &[&str]) -> Result<(), CliError> {
    let mut list = String::new();
    for line in wanted.list.lines() {
        if !line.contains(&format!("\t{REFERENCE}")) {
            list += line;
            list.push('\n');
        }
    }
    let gone = "rm -r --cached --force --quiet --ignore-unmatch -- capstone :!capstone/reference";
    git.say(gone.split(' '))?;
    git.run(["update-index", "--index-info"], &list)?;
    for path in here {
        std::fs::remove_file(root.join(path)).map_err(CliError::because(path))?;
    }
    let paths: Vec<&str> = wanted.blobs.keys().map(String::as_str).collect();
    git.run(
        ["checkout-index", "--force", "--stdin"],
        &(paths.join("\n") + "\n"),
    )?;
    Ok(())
}

/// Copies files into a new folder in `kept`. Removes the folder if that fails.
fn copied(root: &Path, files: &[&str], kept: &Path) -> std::io::Result<PathBuf> {
    std::fs::create_dir_all(kept)?;
    let now = humantime::format_rfc3339_seconds(SystemTime::now());
    let now = now.to_string().replace(['-', ':'], "");
    let into = tempfile::Builder::new()
        .prefix(&format!("capstone-{now}-"))
        .tempdir_in(kept)?;
    for file in files {
        let within = file.strip_prefix("capstone/").unwrap_or(file);
        let to = into.path().join(within);
        std::fs::create_dir_all(to.parent().unwrap_or(kept))?;
        std::fs::copy(root.join(file), to)?;
    }
    Ok(into.keep())
}
