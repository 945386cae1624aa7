//! Resolved call stacks, whole and shortened for a reader.

use std::collections::HashSet;

use ecosystem::{PathMeaning, is_within, public_path};

use crate::frame::Frame;
use crate::frame_kind::FrameKind;
use crate::names::{crate_of, path_of, primitive_name};
use crate::options::ProfileOptions;
use crate::symbols::{Symbol, Symbols};
use crate::waits_table::row_of;

/// Frames of a stack that a profile shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Frames {
    /// Your own functions with file and line, the function by which a library was entered, and
    /// last the primitive that is waited for.
    #[default]
    Own,
    /// Every frame between the request's outermost future and the primitive, including those of the
    /// framework and the standard library.
    All,
}

/// A stack whose names are resolved, outermost frame first.
pub(crate) struct Stack {
    all: Vec<Frame>,
    own: Vec<Frame>,
    /// True for a timer that bounds how long something else may take.
    pub(crate) is_timeout: bool,
    /// True for a wake by a task that is no request.
    pub(crate) is_of_task: bool,
    /// True for a wake by a value that is dropped, such as a guard.
    pub(crate) is_by_drop: bool,
}

impl Stack {
    pub(crate) fn new(innermost_first: &[Symbols], options: &ProfileOptions) -> Self {
        let all = resolve(innermost_first, options.own_crates.as_deref());
        Stack {
            own: own_frames(&all),
            is_timeout: is_timeout(&all, &options.deadlines),
            is_of_task: false,
            is_by_drop: false,
            all,
        }
    }

    /// Returns the stack of a wake.
    pub(crate) fn of_release(innermost_first: &[Symbols], options: &ProfileOptions) -> Self {
        let all = resolve_between(
            innermost_first,
            options.own_crates.as_deref(),
            &WAKES,
            &[POLLS_REQUEST, POLLS_TASK],
        );
        let shown = shown_frames(&all);
        let says_who = shown.iter().any(|frame| frame.kind == FrameKind::Own);
        let is_in = |meaning: PathMeaning| {
            let modules = meaning.names();
            all.iter()
                .any(|frame| is_within(&frame.path, modules.iter().copied()))
        };
        let driver = all
            .iter()
            .rfind(|frame| PathMeaning::Driver.fits(&frame.path));
        let remark = match driver {
            Some(driver) if is_within(&driver.path, [TIMERS]) => Some("(a timer)"),
            Some(_) => Some("(the network)"),
            // Worker threads of the runtime belong to that pool too.
            None if !says_who
                && is_in(PathMeaning::BlockingPool)
                && !is_in(PathMeaning::Scheduler) =>
            {
                Some(POOL_THREAD)
            }
            None => None,
        };
        let own = match remark {
            Some(remark) => vec![Frame::text(remark, FrameKind::Remark)],
            None => shown,
        };
        Stack {
            own,
            is_timeout: false,
            is_of_task: is_of_task(innermost_first),
            is_by_drop: all.iter().any(drops),
            all,
        }
    }

    /// Returns whether this wake came from a thread of the blocking pool.
    pub(crate) fn is_of_pool_thread(&self) -> bool {
        self.own.iter().any(|frame| frame.path == POOL_THREAD)
    }

    /// Names the wait for a `JoinHandle`, once its wakes have shown that it belongs to a closure on a blocking
    /// thread. The frames of the wait alone do not show that.
    pub(crate) fn of_blocking(&mut self) {
        let closure = Frame::text("tokio::task::spawn_blocking", FrameKind::Primitive);
        if let Some(leaf) = self.own.last()
            && leaf.path == "tokio::task::JoinHandle"
            && let Some((row, _)) = row_of(&[closure])
        {
            self.own.push(Frame::text(row.wait.what, FrameKind::Remark));
        }
    }

    pub(crate) fn frames(&self, frames: Frames) -> &[Frame] {
        match frames {
            Frames::Own => &self.own,
            Frames::All => &self.all,
        }
    }
}

/// Function that polls a request.
const POLLS_REQUEST: &str = "Probe::poll";
/// Function that polls a task, within which a request may be polled.
const POLLS_TASK: &str = "task::core::Core::poll";

/// Functions that the compiler writes to drop a value, of before and since Rust 1.97.
const DROPS: [&str; 2] = ["drop_in_place", "drop_glue"];

/// Returns whether a frame is of a value that is dropped.
fn drops(frame: &Frame) -> bool {
    frame.path.ends_with("::drop") || DROPS.iter().any(|name| frame.path.contains(name))
}

/// Returns whether a task polled this, and no request in it.
fn is_of_task(innermost_first: &[Symbols]) -> bool {
    for symbols in innermost_first {
        for symbol in symbols.iter() {
            if is_named(symbol, &[POLLS_REQUEST]) {
                return false;
            }
            if is_named(symbol, &[POLLS_TASK]) {
                return true;
            }
        }
    }
    false
}

/// Functions of the profiler that a clone of the waker, or a wake during the poll, goes through.
/// The optimizer decides which of them have frames of their own.
const CLONES: [&str; 4] = [
    "clone_waker",
    "Recorder::wake",
    "clone_hook::clone",
    "clone_hook::wake_by_ref",
];
/// Functions of the profiler that a wake after the poll goes through.
const WAKES: [&str; 8] = [
    "capture::Kept::wake",
    "capture::Kept::wake_by_ref",
    "capture_into",
    "record_release",
    "Slot::record_wake",
    "Slot::wake",
    "Slot::wake_by_ref",
    "Changed::wake_by_ref",
];

/// The part of tokio that wakes what waits for a time. It also calls the part for the network, which is then further
/// inwards.
const TIMERS: &str = "tokio::runtime::time";

/// Frame of a wake that ends the wait for a closure of `spawn_blocking`.
const POOL_THREAD: &str = "(a thread of the blocking pool)";

/// Returns all frames of a wait, outermost first, without those of the profiler at either end.
fn resolve(innermost_first: &[Symbols], own_crates: Option<&[String]>) -> Vec<Frame> {
    let polls = ["poll_hooked", "poll_recorded"];
    resolve_between(innermost_first, own_crates, &CLONES, &polls)
}

/// Returns the frames outside of the `hook`s, up to the first poll among `polls`.
fn resolve_between(
    innermost_first: &[Symbols],
    own_crates: Option<&[String]>,
    hook: &[&str],
    polls: &[&str],
) -> Vec<Frame> {
    let mut symbols: Vec<&Symbol> = Vec::new();
    for at_address in innermost_first {
        symbols.extend(at_address.iter());
    }
    // Inner end: the capture, out to the clone (or the wake) of the waker.
    let mut inner = 0;
    for (at, symbol) in symbols.iter().enumerate().take(24) {
        if is_named(symbol, hook) {
            inner = at + 1;
        }
    }
    while inner < symbols.len() && path_of(symbols[inner]).starts_with("core::task::") {
        inner += 1;
    }
    // Outer end: the poll that captured the stack.
    let mut outer = inner;
    while outer < symbols.len() && !is_named(symbols[outer], polls) {
        outer += 1;
    }
    let mut frames = Vec::new();
    for symbol in symbols[inner..outer].iter().rev() {
        let frame = Frame::of_symbol(symbol, own_crates);
        // Leaves out the closures by which the wrapper calls the future.
        if !frames.is_empty() || crate_of(&frame.path) != "await_profile" {
            frames.push(frame);
        }
    }
    claim_macros(&mut frames);
    if frames.is_empty() {
        frames.push(Frame::text("(no symbols)", FrameKind::Remark));
    }
    frames
}

/// Returns whether the path of a symbol ends with one of these names.
fn is_named(symbol: &Symbol, names: &[&str]) -> bool {
    names.iter().any(|name| path_of(symbol).ends_with(name))
}

impl Frame {
    fn of_symbol(symbol: &Symbol, own_crates: Option<&[String]>) -> Self {
        let full = path_of(symbol);
        let kind = FrameKind::of_path(&full, symbol.file.as_deref(), own_crates);
        let public = public_path(full);
        let path = match kind {
            FrameKind::Primitive => primitive_name(&public).to_owned(),
            _ => public,
        };
        Self {
            path,
            file: symbol.file.clone(),
            line: symbol.line,
            kind,
        }
    }
}

/// Marks closures as the reader's own that a library's macro wrote into the reader's function.
/// Such a closure has the macro's file and line, and the function's name.
fn claim_macros(frames: &mut [Frame]) {
    let mut own = HashSet::new();
    for frame in &*frames {
        if frame.kind == FrameKind::Own {
            own.insert(crate_of(&frame.path).to_owned());
        }
    }
    for frame in frames {
        if frame.kind == FrameKind::Library && own.contains(crate_of(&frame.path)) {
            (frame.kind, frame.file, frame.line) = (FrameKind::Own, None, None);
        }
    }
}

/// Returns the frames that the reader wrote or called.
fn own_frames(stack: &[Frame]) -> Vec<Frame> {
    // The name of a well-known wait replaces the frames inside of it.
    if let Some((row, at)) = row_of(stack)
        && row.is_frame()
    {
        let mut shown = shown_frames(&stack[..=at]);
        shown.push(Frame::text(row.wait.what, FrameKind::Remark));
        return shown;
    }
    shown_frames(stack)
}

/// Returns the frames that the reader wrote or called, and the primitive that is waited for.
fn shown_frames(stack: &[Frame]) -> Vec<Frame> {
    let last_user = stack
        .iter()
        .rposition(|frame| matches!(frame.kind, FrameKind::Own | FrameKind::Library));
    let (outer, tail) = stack.split_at(last_user.map_or(0, |at| at + 1));
    // A library outside of all the reader's code has called it: a middleware.
    let first_own = outer
        .iter()
        .position(|frame| frame.kind == FrameKind::Own)
        .unwrap_or_default();
    let mut shown: Vec<Frame> = Vec::new();
    let mut entered: Option<&str> = None;
    for frame in &outer[first_own..] {
        match frame.kind {
            FrameKind::Own => {
                entered = None;
                // An async block inside its function: keep the innermost line.
                match shown.last_mut() {
                    Some(last) if last.path == frame.path && frame.line.is_none() => {}
                    Some(last) if last.path == frame.path => last.clone_from(frame),
                    _ => shown.push(frame.clone()),
                }
            }
            // A library shows only the function by which it was entered.
            FrameKind::Library if entered != Some(crate_of(&frame.path)) => {
                entered = Some(crate_of(&frame.path));
                shown.push(frame.clone());
            }
            // A primitive that polls the reader's code, such as `OnceCell`.
            _ => {}
        }
    }
    shown.extend(primitive(tail).cloned());
    shown
}

/// Returns the primitive that is waited for, among the frames inside the reader's last one.
fn primitive(tail: &[Frame]) -> Option<&Frame> {
    let mut first_primitive = None;
    for frame in tail {
        if frame.kind != FrameKind::Primitive {
            continue;
        }
        if !PathMeaning::Internal.fits(&frame.path) {
            return Some(frame);
        }
        first_primitive = first_primitive.or(Some(frame));
    }
    if first_primitive.is_some() {
        return first_primitive;
    }
    let innermost = tail.iter().rfind(|frame| {
        !matches!(
            crate_of(&frame.path),
            "core" | "std" | "alloc" | "await_profile"
        )
    });
    innermost.or(tail.last())
}

fn is_timeout(stack: &[Frame], further: &[String]) -> bool {
    let sleeps = stack
        .iter()
        .rposition(|frame| PathMeaning::Sleep.names().contains(&frame.path.as_str()));
    let Some(at) = sleeps else {
        return false;
    };
    let caller = stack[..at]
        .iter()
        .rfind(|frame| !matches!(crate_of(&frame.path), "core" | "std"));
    let Some(caller) = caller else {
        return false;
    };
    is_within(&caller.path, PathMeaning::Deadline.names().iter().copied())
        || is_within(&caller.path, further.iter().map(String::as_str))
}
