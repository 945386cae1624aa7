//! Edits that do not cure the exercise: none may pass, and each must be told why.

use super::check::{Check, Failure, Need, failed};
use super::claims::Grade;
use super::context::Context;
use super::scratch::Scratch;
use crate::exercise;

pub(super) const CHEATS: Check = Check {
    name: "cheats",
    about: "edits that crash, hang, cheat or do not compile fail, each with its reason",
    needs: &[Need::Git],
    stands_alone: true,
    run: |context| {
        let scratch = Scratch::clone(context, "cheats", &["--depth", "1"])?;
        CHEAT
            .iter()
            .try_for_each(|cheat| cheat.fails(context, &scratch))
    },
};

/// An edit of the problem, and what the grade must say of it.
struct Cheat {
    name: &'static str,
    /// What is replaced by what.
    edits: &'static [(&'static str, &'static str)],
    /// A part of the reason.
    reason: &'static str,
}

const CALL: &str = "database.call().await;";
/// The guard in a block of its own, as in a cure.
const EARLY: (&str, &str) = (
    "let clients = clients.lock().await;\n    let ids: Vec<String> = clients",
    "let ids: Vec<String> = clients.lock().await",
);

const CHEAT: &[Cheat] = &[
    Cheat {
        name: "does not compile",
        edits: &[(CALL, "let nothing: u32 = \"one\";")],
        reason: "compile",
    },
    Cheat {
        name: "panics",
        edits: &[(CALL, "assert!(ids.is_empty(), \"no such client\");")],
        reason: "panic",
    },
    Cheat {
        name: "locks what it has locked",
        edits: &[(
            "let clients = clients.lock().await;",
            "let _held = clients.clone().lock_owned().await;\n    let clients = clients.lock().await;",
        )],
        reason: "answered nothing",
    },
    Cheat {
        name: "answers what it has learnt by heart",
        edits: &[
            EARLY,
            (
                "Ok(sum.to_string())",
                "let _ = sum;\n    Ok(\"6\".to_owned())",
            ),
        ],
        reason: "wrong",
    },
    Cheat {
        name: "does not ask the database",
        edits: &[
            EARLY,
            (
                CALL,
                "let _ = database;\n    tokio::time::sleep(std::time::Duration::from_millis(50)).await;",
            ),
        ],
        reason: "database",
    },
    Cheat {
        name: "does not wait for the database",
        edits: &[
            EARLY,
            (CALL, "tokio::spawn(async move { database.call().await });"),
        ],
        reason: "50",
    },
    Cheat {
        name: "ends the server",
        edits: &[(
            CALL,
            "if !ids.is_empty() {\n        std::process::exit(3);\n    }\n    database.call().await;",
        )],
        reason: "ended",
    },
    Cheat {
        name: "never starts",
        edits: &[(
            "    warp::path!(\"read\")",
            "    while clients.try_lock().is_ok() {\n        std::thread::yield_now();\n    }\n    warp::path!(\"read\")",
        )],
        reason: "listen",
    },
];

impl Cheat {
    fn fails(&self, context: &Context<'_>, scratch: &Scratch<'_>) -> Result<(), Failure> {
        let chapter = context.workshop.chapter(1)?;
        let mut code = exercise::read(&chapter.source("problem"))?;
        for (old, new) in self.edits {
            if !code.contains(old) {
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
        let check = &mut scratch.own(&["check", "1", "--format", "json"]);
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
        let told = grade.reason.to_lowercase().contains(self.reason);
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
