//! `cargo workshop steps [N|capstone]`: a branch, with a commit a step.

use crate::chapters::Workshop;
use crate::cli::Format;
use crate::steps::{self, Branch, Change, Of};
use terminal::exit::{CliError, Exit};
use terminal::git::Git;
use terminal::json;

pub(crate) fn run(of: Option<Of>, format: Format) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let git = Git::at(workshop.root())?;
    let branches = steps::write(&git, of)?;
    match format {
        Format::Json => json::print_all("branch", &branches)?,
        Format::Human => print(&branches),
    }
    Ok(Exit::Good)
}

fn print(branches: &[Branch]) {
    if branches.is_empty() {
        println!("no chapter has steps at HEAD: they are `[[steps]]` in its chapter.toml");
    }
    for branch in branches {
        let change = match branch.change {
            Change::Created => "created",
            Change::Updated => "updated",
            Change::Unchanged => "as it was",
        };
        let base = short(&branch.base);
        println!("{} ({change}), on commit {base}", branch.name);
        for step in &branch.steps {
            println!("  {} {}", short(&step.commit), step.name);
        }
        println!(
            "  read it with: git log --patch --reverse {base}..{}",
            branch.name
        );
    }
}

fn short(hash: &str) -> &str {
    hash.get(..9).unwrap_or(hash)
}
