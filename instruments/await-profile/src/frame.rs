//! One frame of a stack, and its text.

use crate::frame_kind::FrameKind;

/// One frame, ready to be shown.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Frame {
    pub(crate) path: String,
    pub(crate) file: Option<String>,
    pub(crate) line: Option<u32>,
    pub(crate) kind: FrameKind,
}

impl Frame {
    /// Returns a frame that is not a function.
    pub(crate) fn text(text: &str, kind: FrameKind) -> Self {
        Frame {
            path: text.to_owned(),
            file: None,
            line: None,
            kind,
        }
    }

    /// Returns the text in a flamegraph. The reader's own code has file and line.
    pub(crate) fn label(&self) -> String {
        match (self.kind, &self.file, self.line) {
            (FrameKind::Own, Some(file), Some(line)) => {
                format!("{} ({}:{line})", self.path, short(file))
            }
            _ => self.path.clone(),
        }
        .replace([';', '\n'], ",")
    }
}

/// Returns the texts of a stack.
pub(crate) fn labels(stack: &[Frame]) -> Vec<String> {
    stack.iter().map(Frame::label).collect()
}

/// Returns the part of a path that tells which file it is to someone who knows the project.
pub(crate) fn short(file: &str) -> String {
    let file = file.replace('\\', "/");
    for folder in ["/src/", "/examples/", "/tests/", "/benches/"] {
        if let Some(at) = file.rfind(folder) {
            return file[at + 1..].to_owned();
        }
    }
    let from_root = ["src/", "examples/", "tests/", "benches/"]
        .iter()
        .any(|folder| file.starts_with(folder));
    if from_root {
        file
    } else {
        file.rsplit('/').next().unwrap_or(&file).to_owned()
    }
}

/// Returns the part of a path that does not tell whose machine it is: the package's folder and the
/// path in it, or else the file's name.
pub fn portable(file: &str) -> String {
    let short = short(file);
    let above = file.strip_suffix(&short).unwrap_or_default();
    let above = above.trim_end_matches(['/', '\\']);
    match above.rsplit(['/', '\\']).next() {
        Some(folder) if !folder.is_empty() && short.contains('/') => format!("{folder}/{short}"),
        _ => short,
    }
}
