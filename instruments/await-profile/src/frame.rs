//! One frame of a stack, and its text.

use ecosystem::{Frame as Seen, Line};

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

    /// Returns the frame as data. The reader's own code has file and line.
    pub(crate) fn seen(&self) -> Seen {
        match (self.kind, &self.file, self.line) {
            (FrameKind::Own, Some(file), Some(line)) => Seen::Own(Line {
                function: self.path.clone(),
                file: short(file),
                line,
            }),
            (FrameKind::Remark, ..) => {
                let Ok(state) = self.path.parse();
                state
            }
            _ => Seen::Function(self.path.clone()),
        }
    }

    /// Returns the text in a flamegraph.
    pub(crate) fn label(&self) -> String {
        self.seen().to_string().replace([';', '\n'], ",")
    }
}

/// Returns frames as data.
pub(crate) fn seen(frames: &[Frame]) -> Vec<Seen> {
    frames.iter().map(Frame::seen).collect()
}

/// Returns the name of the route, which is the first frame of a stack, and the others as data.
pub(crate) fn split(stack: &[Frame]) -> (String, Vec<Seen>) {
    match stack.split_first() {
        Some((route, frames)) => (route.path.clone(), seen(frames)),
        None => (String::new(), Vec::new()),
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
