//! The repository's own rules, on every file that git tracks.

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::rules::{self, Broken};
use crate::git::Git;

pub(super) const RULES: Check = Check {
    name: "rules",
    about: "no private path, no typed measurement, no long file; every chapter has its parts",
    needs: &[Need::Git],
    stands_alone: false,
    run,
};

/// A tracked text file.
#[derive(Debug)]
pub(super) struct Text {
    /// From the root, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let root = context.workshop.root();
    let tracked = Git::at(root)?.tracked()?;
    let paths: Vec<&str> = tracked.iter().map(String::as_str).collect();
    let texts: Vec<Text> = paths
        .iter()
        // A link to a folder, or a file that is no text, has no words to look at.
        .filter_map(|path| {
            Some(Text {
                path: (*path).to_owned(),
                text: std::fs::read_to_string(root.join(path)).ok()?,
            })
        })
        .collect();
    let broken: Vec<Broken> = [
        rules::privacy::broken(&texts),
        rules::length::broken(&texts),
        rules::book::broken(&texts, root),
        rules::parts::broken(&paths, context.workshop)?,
    ]
    .into_iter()
    .flatten()
    .collect();
    for rule in &broken {
        context.note(&rule.to_string())?;
    }
    match broken.len() {
        0 => Ok(()),
        1 => failed("a rule is broken"),
        number => failed(format!("rules are broken in {number} places")),
    }
}
