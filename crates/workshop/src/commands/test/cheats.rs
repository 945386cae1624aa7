//! Edits that do not cure the exercise: none may pass, and each must be told why.

use serde::Deserialize;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::grading;
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise;

/// Edits that are graded of each chapter after the first, whose grader they share, unless this
/// check is asked for by name. That each still applies is looked at in any case.
const SOME: usize = 1;

pub(super) const CHEATS: Check = Check {
    name: "cheats",
    about: "edits that crash, hang, cheat or do not compile fail, each with its reason (all of them if asked by name)",
    needs: &[Need::Git],
    stands_alone: true,
    run,
};

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let scratch = Scratch::clone(context, "cheats", &["--depth", "1"])?;
    for chapter in &context.chapters {
        let problem = exercise::read(&chapter.source("problem"))?;
        let cheats = cheats(chapter)?;
        let edited = cheats
            .iter()
            .map(|cheat| cheat.edited(&problem))
            .collect::<Result<Vec<_>, _>>()?;
        let all = context.by_name || chapter.number == 1;
        let graded = if all { cheats.len() } else { SOME };
        for (cheat, code) in cheats.iter().zip(edited).take(graded) {
            cheat.fails(&code, context, &scratch, chapter)?;
        }
        // The next chapter's checks must find this one's as it was.
        context.run(&mut scratch.own(&["reset", &chapter.number.to_string()]))?;
    }
    Ok(())
}

/// The file of a chapter's cheats, in its folder.
const FILE: &str = "cheats.toml";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cheats {
    cheats: Vec<Cheat>,
}

/// An edit of the problem, and what the grade must say of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cheat {
    name: String,
    edits: Vec<Edit>,
    /// A part of the reason, in lower case.
    reason: String,
}

/// What is replaced by what.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
}

fn cheats(chapter: &Chapter) -> Result<Vec<Cheat>, Failure> {
    let file = chapter.folder.join(FILE);
    let text = std::fs::read_to_string(&file)
        .or_else(|error| failed(format!("{} cannot be read: {error}", file.display())))?;
    let cheats: Cheats = toml::from_str(&text)
        .or_else(|error| failed(format!("{} is not understood: {error}", file.display())))?;
    Ok(cheats.cheats)
}

impl Cheat {
    /// The problem's code with this edit.
    fn edited(&self, problem: &str) -> Result<String, Failure> {
        let mut code = problem.to_owned();
        for Edit { old, new } in &self.edits {
            if !code.contains(old.as_str()) {
                return failed(format!(
                    "`{}`: problem.rs has no `{old}` any more",
                    self.name
                ));
            }
            code = code.replace(old, new);
        }
        Ok(code)
    }

    fn fails(
        &self,
        code: &str,
        context: &Context<'_>,
        scratch: &Scratch<'_>,
        chapter: &Chapter,
    ) -> Result<(), Failure> {
        grading::put(code, context, scratch, chapter)?;
        let (code, grade) = grading::check(context, scratch, chapter)
            .map_err(|failure| failure.of(&format!("`{}`", self.name)))?;
        context.note(&format!("{}: {} {}", self.name, grade.kind, grade.reason))?;
        let told = grade.reason.to_lowercase().contains(&self.reason);
        if grade.kind == "failed" && code == Some(1) && told {
            Ok(())
        } else {
            failed(format!(
                "`{}` was {} with code {code:?}, and the reason does not say `{}`: {}",
                self.name, grade.kind, self.reason, grade.reason
            ))
        }
    }
}
