//! Threads at the moment of an incident, in sentences and as folded stacks.

use diagnosis::threads::{Stack, State, Thread, ThreadProfile};

/// Most sentences on what threads did.
const MOST_SENTENCES: usize = 3;

/// Threads that did the same at the same place.
struct Group<'a> {
    state: State,
    does: String,
    place: &'a str,
    threads: usize,
}

/// Returns a sentence for each place where threads that drive tasks were blocked or computed, blocked ones first.
pub(crate) fn sentences(profile: &ThreadProfile) -> Vec<String> {
    let mut threads: Vec<&Thread> = profile.threads.iter().collect();
    threads.retain(|thread| thread.is_runtime);
    let mut run = "tasks";
    if threads.iter().any(|thread| thread.began_requests) {
        threads.retain(|thread| thread.began_requests);
        run = "requests";
    }
    let mut groups: Vec<Group<'_>> = Vec::new();
    for thread in &threads {
        let Some(stack) = at_work(thread) else {
            continue;
        };
        let does = match (stack.state, stack.in_call()) {
            (State::Running, None) => "computed".to_owned(),
            (State::Running, Some(call)) => format!("was in {call}"),
            (_, Some(call)) => format!("was blocked in {call}"),
            (_, None) => "was blocked".to_owned(),
        };
        let place = place(stack);
        let same = groups
            .iter_mut()
            .find(|group| group.does == does && group.place == place);
        match same {
            Some(group) => group.threads += 1,
            None => groups.push(Group {
                state: stack.state,
                does,
                place,
                threads: 1,
            }),
        }
    }
    groups.sort_by_key(|group| (group.state, usize::MAX - group.threads));
    groups.truncate(MOST_SENTENCES);
    let mut sentences = Vec::new();
    for group in groups {
        let does = match group.threads {
            1 => group.does,
            _ => group.does.replacen("was ", "were ", 1),
        };
        sentences.push(format!(
            "At that moment {} of {} threads that run {run} {does} at {}.",
            group.threads,
            threads.len(),
            group.place
        ));
    }
    sentences
}

/// Returns the stack of most moments at which a thread was not idle. Its first moments are those of the incident. A
/// thread that asks for events is at no work either, even if it has just begun to run.
fn at_work(thread: &Thread) -> Option<&Stack> {
    thread.stacks.iter().find(|stack| {
        let asks_for_events = matches!(
            stack.in_call(),
            Some("epoll_wait" | "epoll_pwait" | "epoll_pwait2")
        );
        stack.state != State::Idle && !asks_for_events
    })
}

/// Returns the innermost function of the service's own code, or else the innermost function.
fn place(stack: &Stack) -> &str {
    let last = stack.frames.last().map(|frame| frame.function.as_str());
    stack.own.as_deref().or(last).unwrap_or("an unknown place")
}
