//! The running program, as messages name it that tell the reader what to type.

use std::sync::OnceLock;

/// Holds the name of the program that another became `duel` for: `cargo workshop`.
const CALLED: &str = "DUEL_CALLED";

/// A program, by what its reader types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Runs it.
    pub name: String,
    /// Installs the load tools, where a command of its does.
    pub setup: Option<String>,
}

static RUNNING: OnceLock<Program> = OnceLock::new();

/// Names the running program. The first call counts.
pub fn is(program: Program) {
    let _ = RUNNING.set(program);
}

/// The running program; `duel`, unless it was named or stands in for another.
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

/// Advice on how to get `tool`, such as k6, to end a sentence with.
pub fn to_install(tool: &str) -> String {
    match &running().setup {
        Some(setup) => format!("run `{setup} {}` to install it", tool.to_lowercase()),
        None => format!("install {tool}, and put it into PATH"),
    }
}
