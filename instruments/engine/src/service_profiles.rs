//! Profiles of a reader's own service that has the endpoints of `debug-endpoints`.

use std::time::Duration;

use crate::folded;
use crate::load::Target;
use crate::metric::SeenByBoth;
use crate::profile::ProfileKind;

use crate::ask::get;

/// Number of one-second profiles per instrument. The differences between them tell how exact their shares are.
const TIMES: u32 = 5;

/// Longest time to wait for a profile. The service looks up names after recording it.
const TIME_OUT: Duration = Duration::from_secs(60);

/// Longest time that all profiles of a server may take.
pub(crate) const AT_MOST: Duration = Duration::from_secs(150);

/// Takes folded stacks of a service under load, with each instrument. Leaves out an instrument that has no endpoint or
/// nothing to report.
pub(crate) fn take(target: &Target) -> Vec<(ProfileKind, Vec<String>)> {
    let once = |path: &str| {
        let path = format!("{path}?seconds=1&format=folded&idle=true");
        let folded = get(target.clone(), &path, TIME_OUT).ok()?;
        // A service may answer any path with a page of its own.
        let folded = String::from_utf8(folded).ok()?;
        folded::total(&folded).is_ok().then_some(folded)
    };
    let ask = |kind, path: &str| {
        // A service without such an endpoint is not asked again.
        let first = once(path)?;
        let others = (1..TIMES).filter_map(|_| once(path));
        Some((kind, std::iter::once(first).chain(others).collect()))
    };
    let instruments = [
        (ProfileKind::Await, "/debug/await"),
        (ProfileKind::Cpu, "/debug/pprof/profile"),
    ];
    instruments
        .into_iter()
        .filter_map(|(kind, path)| ask(kind, path))
        .collect()
}

/// Returns the instruments that both servers have.
pub(crate) fn paired(
    base: Vec<(ProfileKind, Vec<String>)>,
    change: &[(ProfileKind, Vec<String>)],
) -> Vec<SeenByBoth> {
    let pair = |(kind, base): (ProfileKind, Vec<String>)| {
        let (_, change) = change.iter().find(|(other, _)| *other == kind)?;
        Some(SeenByBoth {
            kind,
            seconds: TIMES,
            base,
            change: change.clone(),
        })
    };
    base.into_iter().filter_map(pair).collect()
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
