//! What programs would count as CPUs on this machine, and who of them is wrong.

use bench::counters::{Counts, Judged, Usable};
use loadgen::cpus;

use super::finding::Finding;

/// Looks from this thread, which is not pinned.
pub(super) fn look() -> Vec<Finding> {
    let usable = Usable::here();
    let affinity = Finding::ok(
        "affinity",
        match cpus::available()[..] {
            [] => "the system does not tell".to_owned(),
            ref may => format!("this process may run on {} CPUs", may.len()),
        },
    );
    let counts = Counts::now().named();
    let judged = counts
        .into_iter()
        .map(|(counter, count)| finding(counter, count, usable));
    std::iter::once(affinity).chain(judged).collect()
}

fn finding(counter: &str, count: usize, usable: Usable) -> Finding {
    let (name, asked) = match counter {
        "std" => ("std counts", "std::thread::available_parallelism"),
        "num_cpus" => ("num_cpus counts", "num_cpus::get"),
        "tokio" => ("tokio counts", "workers of its multi-thread runtime"),
        _ => ("many_cpus counts", "SystemHardware::CPUs"),
    };
    let found = format!("{count} ({asked})");
    let may = match usable.quota {
        Some(quota) => format!("{} CPUs for the time of {quota:.1}", usable.cpus),
        None => format!("{} CPUs", usable.cpus),
    };
    let (wrong, consequence) = match usable.judge(count) {
        Judged::Right => return Finding::ok(name, found),
        Judged::TooFew => ("few", "leaves some idle"),
        Judged::TooMany => ("many", "is throttled"),
    };
    Finding::note(
        name,
        format!("{found}, which is wrong: too {wrong}"),
        format!("this process may use {may}; who starts as many workers {consequence}: chapter 6"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::finding::State;

    #[test]
    fn a_counter_that_is_wrong_is_told_and_how() {
        let of = |count, quota| {
            let usable = Usable { cpus: 176, quota };
            finding("num_cpus", count, usable)
        };
        assert_eq!(of(176, None).state, State::Ok);
        let group = of(44, None);
        assert_eq!(group.state, State::Note);
        assert!(group.found.contains("too few"), "{}", group.found);
        let quota = of(176, Some(2.0));
        assert!(quota.found.contains("too many"), "{}", quota.found);
        assert!(quota.remedy.contains("throttled"), "{}", quota.remedy);
    }
}
