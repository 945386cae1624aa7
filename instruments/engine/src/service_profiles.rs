//! Profiles of a reader's own service that has the endpoints of `debug-endpoints`.

use std::time::Duration;

use statistics::profile::{ProfileKind, SeenByBoth};

use crate::load::Target;
use crate::load::ask::get;

/// Number of one-second profiles per instrument. The differences between them tell how exact their shares are.
const TIMES: u32 = 5;

/// Longest time to wait for a profile. The service looks up names after recording it.
const TIME_OUT: Duration = Duration::from_secs(60);

/// Longest time that all profiles of a server may take.
pub(crate) const AT_MOST: Duration = Duration::from_secs(150);

/// Takes folded stacks of a service under load, with each instrument. Leaves out an instrument that has no endpoint or
/// nothing to report.
pub(crate) fn take(target: &Target) -> Vec<(ProfileKind, Vec<String>)> {
    let mut taken = Vec::new();
    for (kind, path) in [
        (ProfileKind::Await, "/debug/await"),
        (ProfileKind::Cpu, "/debug/pprof/profile"),
    ] {
        // A service without such an endpoint is not asked again.
        let Some(first) = take_one(target, path) else {
            continue;
        };
        let mut profiles = vec![first];
        for _ in 1..TIMES {
            profiles.extend(take_one(target, path));
        }
        taken.push((kind, profiles));
    }
    taken
}

fn take_one(target: &Target, path: &str) -> Option<String> {
    let path = format!("{path}?seconds=1&format=folded&idle=true");
    let folded = get(target.clone(), &path, TIME_OUT).ok()?;
    // A service may answer any path with a page of its own.
    let folded = String::from_utf8(folded).ok()?;
    if are_folded_stacks(&folded) {
        Some(folded)
    } else {
        None
    }
}

/// Returns whether every line of a text has a number of samples at its end.
fn are_folded_stacks(text: &str) -> bool {
    for line in text.lines() {
        match line.trim_end().rsplit_once(' ') {
            Some((_, count)) if count.parse::<u64>().is_ok() => {}
            None if line.is_empty() => {}
            _ => return false,
        }
    }
    true
}

/// Returns the instruments that both servers have.
pub(crate) fn paired(
    base: Vec<(ProfileKind, Vec<String>)>,
    change: &[(ProfileKind, Vec<String>)],
) -> Vec<SeenByBoth> {
    let mut both = Vec::new();
    for (kind, base) in base {
        if let Some((_, change)) = change.iter().find(|(other, _)| *other == kind) {
            both.push(SeenByBoth {
                kind,
                seconds: TIMES,
                base,
                change: change.clone(),
            });
        }
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instrument_that_one_of_them_lacks_is_left_out() {
        let stacks = |kind, count: u64| (kind, vec![format!("main;work {count}\n")]);
        let base = vec![stacks(ProfileKind::Await, 1), stacks(ProfileKind::Cpu, 2)];
        let both = paired(base, &[stacks(ProfileKind::Cpu, 3)]);
        let cpu = SeenByBoth {
            kind: ProfileKind::Cpu,
            seconds: TIMES,
            base: vec!["main;work 2\n".to_owned()],
            change: vec!["main;work 3\n".to_owned()],
        };
        assert_eq!(both, [cpu]);
    }
}
