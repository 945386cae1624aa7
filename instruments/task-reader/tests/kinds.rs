//! Every kind of wait in a program of its own, in a debug and a release build: the stack, the leaf and the holder of each task.

mod common;

use common::{Build, Profile, Program, SECOND_TOOLCHAIN};
use diagnosis::evidence::Receiver;
use task_reader::{Certainty, Snapshot, Stage, State, Task};

/// What is expected of a task, by the name of its function: the functions of the program in its stack with the marks of
/// their lines, and the kinds of its waits.
const EXPECTED: &[(&str, &[&str], &[&str])] = &[
    ("nested", &["nested", "nested_inner", "forever"], &["timer"]),
    (
        "several_lines",
        &["several_lines", "text_of", "forever"],
        &["timer"],
    ),
    (
        "joined",
        &["joined", "forever", "waits_for_notify"],
        &["timer", "notification"],
    ),
    (
        "selected",
        &["selected", "forever", "waits_for_notify"],
        &["timer", "notification"],
    ),
    (
        "selected_pinned",
        &["selected_pinned", "forever", "waits_for_notify"],
        &["timer", "notification"],
    ),
    ("boxed", &["boxed", "forever"], &["timer"]),
    ("boxed_typed", &["boxed_typed", "forever"], &["timer"]),
    ("generic", &["generic", "forever"], &["timer"]),
    ("in_trait", &["in_trait", "load", "forever"], &["timer"]),
    (
        "closure",
        &["closure", "closure_inner", "forever"],
        &["timer"],
    ),
    ("by_hand", &["by_hand", "forever"], &["timer"]),
    ("never", &["never"], &["unknown"]),
    ("poll_fn", &["poll_fn"], &["unknown"]),
    ("pending", &["pending"], &["never"]),
    (
        "unordered",
        &["unordered", "forever", "forever"],
        &["timer", "timer"],
    ),
    ("boxed_stream", &["boxed_stream", "forever"], &["timer"]),
    (
        "joined_all",
        &["joined_all", "forever", "forever"],
        &["timer", "timer"],
    ),
    (
        "selected_all",
        &["selected_all", "forever", "forever"],
        &["timer", "timer"],
    ),
    ("join_set", &["join_set"], &["task"]),
    ("timed_out", &["timed_out"], &["channel"]),
    ("mutex_holder", &["mutex_holder", "forever"], &["timer"]),
    ("mutex_waiter", &["mutex_waiter"], &["lock"]),
    ("waits_for_shadowing", &["waits_for_shadowing"], &["lock"]),
    (
        "shadowing_holder",
        &["shadowing_holder", "forever"],
        &["timer"],
    ),
    ("owned_holder", &["owned_holder", "forever"], &["timer"]),
    ("owned_waiter", &["owned_waiter"], &["lock"]),
    ("write_holder", &["write_holder", "forever"], &["timer"]),
    ("read_waiter", &["read_waiter"], &["lock"]),
    ("read_holder", &["read_holder", "forever"], &["timer"]),
    ("write_waiter", &["write_waiter"], &["lock"]),
    ("permit_holder", &["permit_holder", "forever"], &["timer"]),
    ("permit_waiter", &["permit_waiter"], &["limit"]),
    ("sender_keeper", &["sender_keeper", "forever"], &["timer"]),
    ("receives", &["receives"], &["channel"]),
    ("receives_unbounded", &["receives_unbounded"], &["channel"]),
    (
        "receiver_keeper",
        &["receiver_keeper", "forever"],
        &["timer"],
    ),
    ("sends", &["sends"], &["queue"]),
    ("answer_keeper", &["answer_keeper", "forever"], &["timer"]),
    ("waits_for_answer", &["waits_for_answer"], &["channel"]),
    ("watch_keeper", &["watch_keeper", "forever"], &["timer"]),
    ("waits_for_change", &["waits_for_change"], &["notification"]),
    (
        "broadcast_keeper",
        &["broadcast_keeper", "forever"],
        &["timer"],
    ),
    (
        "waits_for_broadcast",
        &["waits_for_broadcast"],
        &["channel"],
    ),
    ("notified", &["notified"], &["notification"]),
    ("at_barrier", &["at_barrier"], &["notification"]),
    (
        "first_in_cell",
        &["first_in_cell", "slow", "forever"],
        &["timer"],
    ),
    ("second_in_cell", &["second_in_cell"], &["single_flight"]),
    ("sleeps", &["sleeps"], &["timer"]),
    ("ticks", &["ticks"], &["timer"]),
    ("accepts", &["accepts"], &["network"]),
    ("reads", &["reads"], &["network"]),
    ("receives_datagram", &["receives_datagram"], &["network"]),
    (
        "stores_datagrams",
        &["stores_datagrams", "forever"],
        &["timer"],
    ),
    ("accepts_unix", &["accepts_unix"], &["network"]),
    ("joins", &["joins"], &["task"]),
    ("joins_blocking", &["joins_blocking"], &["task"]),
    ("waits_for_child", &["waits_for_child"], &["process"]),
    ("waits_for_signal", &["waits_for_signal"], &["process"]),
    ("dropped", &["dropped", "forever"], &["timer"]),
    ("moved_away", &["moved_away", "forever"], &["timer"]),
    ("taken", &["taken", "forever"], &["timer"]),
    (
        "dropped_in_branch",
        &["dropped_in_branch", "forever"],
        &["timer"],
    ),
    (
        "passed_on",
        &["passed_on", "lets_go", "forever"],
        &["timer"],
    ),
    ("borrowed_only", &["borrowed_only", "forever"], &["timer"]),
    ("in_a_loop", &["in_a_loop", "forever"], &["timer"]),
    ("overwritten", &["overwritten", "forever"], &["timer"]),
    ("scope", &["scope", "forever"], &["timer"]),
    (
        "captured_holder::{async block}",
        &["captured_holder", "forever"],
        &["timer"],
    ),
    ("waits_for_captured", &["waits_for_captured"], &["lock"]),
    ("end_of_chain", &["end_of_chain", "forever"], &["timer"]),
    ("middle_of_chain", &["middle_of_chain"], &["lock"]),
    ("start_of_chain", &["start_of_chain"], &["lock"]),
    ("held_twice", &["held_twice", "forever"], &["timer"]),
    ("waits_for_twice", &["waits_for_twice"], &["lock"]),
    (
        "overwritten_early",
        &["overwritten_early", "forever"],
        &["timer"],
    ),
    ("moved_to_box", &["moved_to_box", "forever"], &["timer"]),
    (
        "captured_dropped::{async block}",
        &["captured_dropped", "forever"],
        &["timer"],
    ),
    ("holds_aside", &["holds_aside", "forever"], &["timer"]),
    ("waits_for_aside", &["waits_for_aside"], &["lock"]),
    ("on_one_thread", &["on_one_thread", "forever"], &["timer"]),
];

/// Who holds what a task waits for: the holder's function, the variable, and the mark of the holder's line.
const HOLDERS: &[(&str, &str, &str, &str)] = &[
    ("mutex_waiter", "mutex_holder", "guard", "mutex_holder"),
    (
        "waits_for_shadowing",
        "shadowing_holder",
        "mutex",
        "shadowing_holder",
    ),
    ("owned_waiter", "owned_holder", "held", "owned_holder"),
    ("read_waiter", "write_holder", "writes", "write_holder"),
    ("write_waiter", "read_holder", "reads", "read_holder"),
    ("permit_waiter", "permit_holder", "permit", "permit_holder"),
    ("receives", "sender_keeper", "sender", "sender_keeper"),
    ("sends", "receiver_keeper", "receiver", "receiver_keeper"),
    (
        "waits_for_answer",
        "answer_keeper",
        "sender",
        "answer_keeper",
    ),
    ("waits_for_change", "watch_keeper", "sender", "watch_keeper"),
    (
        "waits_for_broadcast",
        "broadcast_keeper",
        "sender",
        "broadcast_keeper",
    ),
    ("waits_for_aside", "holds_aside", "guard", "aside"),
    (
        "waits_for_captured",
        "captured_holder::{async block}",
        "guard",
        "captured_holder",
    ),
    ("waits_for_twice", "held_twice", "second", "held_twice"),
    ("middle_of_chain", "end_of_chain", "guard", "end_of_chain"),
    (
        "start_of_chain",
        "middle_of_chain",
        "guard",
        "middle_of_chain",
    ),
];

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn debug_build() {
    common::once_in_three(|| check(&Program::start("kinds", Profile::Debug), Tokio::Newest));
}

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn weekly_release_build() {
    check(&Program::start("kinds", Profile::Release), Tokio::Newest);
}

#[test]
#[ignore = "compiles the fixtures, which takes minutes"]
fn weekly_aborts_on_panics() {
    check(&Program::start("kinds", Profile::Aborting), Tokio::Newest);
}

#[test]
#[ignore = "compiles the fixtures with older tokios, which takes minutes"]
fn weekly_older_tokios() {
    for version in ["1.40.0", "1.26.0"] {
        for toolchain in [None, Some(SECOND_TOOLCHAIN)] {
            for profile in [Profile::Debug, Profile::Release] {
                let compiler = toolchain.unwrap_or("stable");
                println!("tokio {version}, {compiler}, {profile:?}");
                let program = Build::with_tokio(version, "kinds").toolchain(toolchain);
                check(&program.profile(profile).start(), Tokio::Older);
            }
        }
    }
}

#[test]
#[ignore = "compiles the fixtures with a second compiler, which takes minutes"]
fn weekly_second_compiler() {
    for profile in [Profile::Debug, Profile::Release] {
        let program = Build::new("kinds").profile(profile);
        check(
            &program.toolchain(Some(SECOND_TOOLCHAIN)).start(),
            Tokio::Newest,
        );
    }
}

/// Whether the tables know all fields of the version.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tokio {
    Newest,
    /// A holder may be unseen, and none may be false.
    Older,
}

fn check(program: &Program, tokio: Tokio) {
    let snapshot = program.snapshot();
    println!("{snapshot}");
    let mut wrong = Vec::new();
    for (function, stack, kinds) in EXPECTED {
        let Some(task) = task(&snapshot, function) else {
            // The compiler folds equal functions, which is told.
            if !snapshot.tasks.iter().any(|task| is_one_of(task, function)) {
                wrong.push(format!("{function}: no task"));
            }
            continue;
        };
        if task.state != State::Waiting || !task.not_seen.is_empty() {
            wrong.push(format!(
                "{function}: {:?}, not seen: {:?}",
                task.state, task.not_seen
            ));
        }
        let own: Vec<_> = own_lines(task);
        let marked: Vec<_> = stack.iter().map(|mark| program.line(mark)).collect();
        if own != marked {
            wrong.push(format!(
                "{function}: suspended at {own:?}, marked are {marked:?}"
            ));
        }
        let found: Vec<&str> = task.waits.iter().map(|wait| wait.kind).collect();
        if found != *kinds {
            wrong.push(format!("{function}: waits {found:?}, expected {kinds:?}"));
        }
    }
    for (waiter, holder, variable, mark) in HOLDERS {
        let found = holders(&snapshot, waiter);
        let expected = (
            format!("kinds::{holder}"),
            (*variable).to_owned(),
            program.line(mark),
        );
        let is_unseen = found.is_empty() && tokio == Tokio::Older;
        if found != [expected] && !is_unseen {
            wrong.push(format!(
                "{waiter}: held by {found:?}, expected {holder} with {variable}"
            ));
        }
    }
    for (function, peer) in [("accepts", "port "), ("reads", "127.0.0.1:")] {
        let found = task(&snapshot, function).and_then(|task| task.waits.first()?.peer.clone());
        if !found.as_ref().is_some_and(|found| found.starts_with(peer)) {
            wrong.push(format!("{function} waits for {found:?}"));
        }
    }
    wrong.extend(wrong_receivers(program));
    let start = task(&snapshot, "start_of_chain").and_then(|task| task.waits.first()?.resource);
    let chain = start.map_or(&[][..], |place| &snapshot.resources[place].chain);
    let chain: Vec<&str> = chain
        .iter()
        .map(|number| snapshot.tasks[*number].future.as_str())
        .collect();
    if chain != ["kinds::middle_of_chain", "kinds::end_of_chain"] && tokio == Tokio::Newest {
        wrong.push(format!("the chain of waits is {chain:?}"));
    }
    // Whatever is named as a holder is one.
    for task in &snapshot.tasks {
        for hold in task
            .holds
            .iter()
            .filter(|hold| hold.certainty != Certainty::Doubtful)
        {
            let function = task.future.trim_start_matches("kinds::");
            let is_known = HOLDERS
                .iter()
                .any(|(_, holder, variable, _)| *holder == function && *variable == hold.variable);
            // A receiver holds the room of its channel, and a sender its messages.
            let is_own_end = hold.holds.contains("of a channel");
            if !is_known && !is_own_end && !KEPT.contains(&(function, hold.variable.as_str())) {
                wrong.push(format!(
                    "{function} holds {} ({})",
                    hold.variable, hold.holds
                ));
            }
        }
    }
    let unseen = snapshot.resources.iter().filter(|resource| {
        let mut waiters = resource
            .waiters
            .iter()
            .filter_map(|number| snapshot.tasks.get(*number));
        waiters.any(|task| task.future == "kinds::waits_for_unseen")
    });
    for (task, at) in unseen.flat_map(|resource| &resource.holders) {
        let (task, hold) = (&snapshot.tasks[*task], &snapshot.tasks[*task].holds[*at]);
        wrong.push(format!(
            "{} is a false holder by {}",
            task.future, hold.variable
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Tasks whose code receives datagrams are known, whether or not they wait for that.
fn wrong_receivers(program: &Program) -> Vec<String> {
    let mut wrong = Vec::new();
    let tasks = program.tasks();
    for (function, is_receiving, mark) in [
        ("receives_datagram", true, "receives_datagram"),
        ("stores_datagrams", false, "then_receives"),
    ] {
        let at = format!(
            "kinds::{function} (src/bin/kinds.rs:{})",
            program.line(mark)
        );
        let is_it = |receiver: &&Receiver| {
            receiver.receives_at == at && receiver.is_receiving == is_receiving
        };
        if tasks.receivers.iter().filter(is_it).count() != 1 {
            wrong.push(format!("receivers are {:#?}, not at {at}", tasks.receivers));
        }
    }
    wrong
}

/// Other values that are held.
const KEPT: &[(&str, &str)] = &[("first_in_cell", "permit")];

/// Returns whether the compiler has folded functions of several futures, and this is one of them.
fn is_one_of(task: &Task, function: &str) -> bool {
    let names = task.future.strip_prefix("one of ").unwrap_or_default();
    names
        .split(", ")
        .any(|name| name == format!("kinds::{function}"))
}

fn task<'s>(snapshot: &'s Snapshot, function: &str) -> Option<&'s Task> {
    let name = format!("kinds::{function}");
    snapshot
        .tasks
        .iter()
        .find(|task| task.future == name || task.future.starts_with(&format!("{name}<")))
}

/// Returns the lines of the program itself at which a task is suspended. A macro's await is in the macro's file: there it is
/// the line before the function's first.
fn own_lines(task: &Task) -> Vec<u64> {
    let own = |file: &str| file == "src/bin/kinds.rs";
    let suspended = task
        .frames
        .iter()
        .filter(|frame| frame.stage == Stage::Suspended);
    let mut lines = Vec::new();
    for frame in suspended {
        match (&frame.line, &frame.begins) {
            (Some(line), _) if own(&line.file) => lines.push(line.line),
            (Some(_), Some(begins)) if own(&begins.file) => {
                lines.push(common::macro_of(&frame.future, begins.line));
            }
            _ => {}
        }
    }
    lines
}

fn holders(snapshot: &Snapshot, waiter: &str) -> Vec<(String, String, u64)> {
    let resource = task(snapshot, waiter).and_then(|task| task.waits.first()?.resource);
    let Some(resource) = resource.and_then(|resource| snapshot.resources.get(resource)) else {
        return Vec::new();
    };
    let mut holders = Vec::new();
    for (number, at) in &resource.holders {
        let Some(task) = snapshot.tasks.get(*number) else {
            continue;
        };
        let Some(hold) = task.holds.get(*at) else {
            continue;
        };
        let line = hold.line.as_ref().map_or(0, |line| line.line);
        holders.push((task.future.clone(), hold.variable.clone(), line));
    }
    holders
}
