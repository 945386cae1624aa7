//! Edits that do not cure the exercise: none may pass, and each must be told why.

use serde::Deserialize;

use super::check::{Check, Failure, Need, failed};
use super::claims::Grade;
use super::context::Context;
use super::scratch::Scratch;
use crate::chapters::Chapter;
use crate::exercise;

pub(super) const CHEATS: Check = Check {
    name: "cheats",
    about: "edits that crash, hang, cheat or do not compile fail, each with its reason",
    needs: &[Need::Git],
    stands_alone: true,
    run: |context| {
        let scratch = Scratch::clone(context, "cheats", &["--depth", "1"])?;
        for chapter in &context.chapters {
            for cheat in cheats(chapter)? {
                cheat.fails(context, &scratch, chapter)?;
            }
            // The next chapter's checks must find this one's as it was.
            context.run(&mut scratch.own(&["reset", &chapter.number.to_string()]))?;
        }
        Ok(())
    },
};

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
    fn fails(
        &self,
        context: &Context<'_>,
        scratch: &Scratch<'_>,
        chapter: &Chapter,
    ) -> Result<(), Failure> {
        let mut code = exercise::read(&chapter.source("problem"))?;
        for Edit { old, new } in &self.edits {
            if !code.contains(old.as_str()) {
                return failed(format!(
                    "`{}`: problem.rs has no `{old}` any more",
                    self.name
                ));
            }
            code = code.replace(old, new);
        }
        let file = scratch.path(&context.workshop.shown(&chapter.source("exercise")));
        std::fs::write(&file, code)
            .or_else(|error| failed(format!("the exercise cannot be written: {error}")))?;
        let number = chapter.number.to_string();
        let check = &mut scratch.own(&["check", &number, "--format", "json"]);
        let (code, said) = context.output(check)?;
        let grade: Grade = match serde_json::from_str(&said) {
            Ok(grade) => grade,
            Err(error) => {
                return failed(format!(
                    "`{}`: check printed something else: {error}",
                    self.name
                ));
            }
        };
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
