//! Name of the running program, for messages that tell the reader what to type.

use std::sync::OnceLock;

/// Name of the variable that holds the program for which `duel` stands in, such as `cargo workshop`.
const CALLED: &str = "DUEL_CALLED";

/// A program, by the commands that its reader types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Command that runs it.
    pub name: String,
    /// Command that installs the load tools, if it has one.
    pub setup: Option<String>,
}

static RUNNING: OnceLock<Program> = OnceLock::new();

/// Names the running program. The first call counts.
pub fn is(program: Program) {
    let _ = RUNNING.set(program);
}

/// Returns the running program; `duel`, unless it was named or stands in for another.
pub fn running() -> &'static Program {
    RUNNING.get_or_init(|| match std::env::var(CALLED) {
        Ok(name) => Program {
            setup: Some(format!("{name} setup")),
            name,
        },
        Err(_) => Program {
            name: "duel".to_owned(),
            setup: None,
        },
    })
}

/// Returns advice on how to get `tool`, such as k6, to end a sentence with.
pub fn to_install(tool: &str) -> String {
    match &running().setup {
        Some(setup) => format!("run `{setup} {}` to install it", tool.to_lowercase()),
        None => format!("install {tool}, and put it into PATH"),
    }
}
