//! Leaving out of a stack what its reader did not write and did not ask for.

use crate::frames::{Frame, Owner};
use crate::known::{INTERNAL, within};
use crate::names::crate_of;

/// The frames that a reader wants to see of a whole stack.
pub(crate) fn own_view(stack: &[Frame]) -> Vec<Frame> {
    let last_user = stack
        .iter()
        .rposition(|frame| matches!(frame.owner, Owner::Own | Owner::Library));
    let (carried, tail) = stack.split_at(last_user.map_or(0, |at| at + 1));
    // A library outside of all the reader's code has called it: a middleware.
    let first_own = carried
        .iter()
        .position(|frame| frame.owner == Owner::Own)
        .unwrap_or_default();
    let mut shown: Vec<Frame> = Vec::new();
    let mut entered: Option<&str> = None;
    for frame in &carried[first_own..] {
        match frame.owner {
            Owner::Own => {
                entered = None;
                // An async block inside its function: keep the innermost line.
                match shown.last_mut() {
                    Some(last) if last.path == frame.path && frame.line.is_none() => {}
                    Some(last) if last.path == frame.path => last.clone_from(frame),
                    _ => shown.push(frame.clone()),
                }
            }
            // Of a library only the function by which it was entered.
            Owner::Library if entered != Some(crate_of(&frame.path)) => {
                entered = Some(crate_of(&frame.path));
                shown.push(frame.clone());
            }
            // A primitive that polls the reader's code, such as `OnceCell`.
            Owner::Library | Owner::Primitive | Owner::Framework => {}
        }
    }
    shown.extend(primitive(tail).cloned());
    shown
}

/// Of the frames inside the reader's last one, what is waited for.
fn primitive(tail: &[Frame]) -> Option<&Frame> {
    let is_public =
        |frame: &&Frame| frame.owner == Owner::Primitive && !within(&frame.path, INTERNAL);
    let not_std = |frame: &&Frame| {
        !matches!(
            crate_of(&frame.path),
            "core" | "std" | "alloc" | "await_profile"
        )
    };
    tail.iter()
        .find(is_public)
        .or_else(|| tail.iter().find(|frame| frame.owner == Owner::Primitive))
        .or_else(|| tail.iter().rfind(not_std))
        .or_else(|| tail.last())
}

/// Whether the stack is a timer that only bounds how long something else may take.
pub(crate) fn is_deadline(stack: &[Frame]) -> bool {
    let sleeps = stack
        .iter()
        .rposition(|frame| frame.path == "tokio::time::Sleep");
    sleeps.is_some_and(|at| {
        stack[..at]
            .iter()
            .rev()
            .find(|frame| !matches!(crate_of(&frame.path), "core" | "std"))
            .is_some_and(|outer| {
                outer.path.starts_with("tokio::time::Timeout::")
                    || outer.path.starts_with("tower::timeout::")
                    || outer.path.starts_with("tower_http::timeout::")
            })
    })
}
