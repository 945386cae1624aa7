//! What a record of regions shows.

use crate::verdict::{Verdict, VerdictKind};
use measurement::claim::{PROBLEM, SOLUTION};
use measurement::figures;
use measurement::regions::{LOCAL_AT_LEAST, Record, Seen};

/// Judges a record. `proved`: the problem reads across, and the variants `fixed` do not. `refuted`:
/// a count says otherwise. `invalid`: a count is missing.
pub fn judge(record: &Record, fixed: &[&str]) -> Verdict {
    let verdict = |kind, reason: String| Verdict { kind, reason };
    if let Some(missing) = missing(record, fixed) {
        return verdict(VerdictKind::Invalid, missing);
    }
    let percent = |local: Option<f64>| figures::share(local.unwrap_or(f64::NAN));
    let problem = record.seen(PROBLEM);
    if let Some(problem) = problem {
        let local = problem.local_loads().unwrap_or(f64::NAN);
        if local > record.problem_at_most() {
            let reason = format!(
                "{} of the problem's loads were local already, where {} were to be expected.",
                figures::share(local),
                figures::share(record.by_chance())
            );
            return verdict(VerdictKind::Refuted, reason);
        }
    }
    for variant in fixed {
        if let Some(seen) = record.seen(variant)
            && let Some(shortfall) = shortfall(record, seen)
        {
            return verdict(VerdictKind::Refuted, shortfall);
        }
    }
    let after = fixed.first().and_then(|variant| record.seen(variant));
    let reason = format!(
        "loads from the reader's own region: {} of the problem's, {} of the {}'s; every worker on a \
         CPU of its own, a copy for each of {} regions.",
        percent(problem.and_then(Seen::local_loads)),
        percent(after.and_then(Seen::local_loads)),
        fixed.first().unwrap_or(&SOLUTION),
        record.regions
    );
    verdict(VerdictKind::Proved, reason)
}

/// The first figure that is not there.
fn missing(record: &Record, fixed: &[&str]) -> Option<String> {
    [PROBLEM].iter().chain(fixed).find_map(|variant| {
        let Some(seen) = record.seen(variant) else {
            return Some(format!("nothing was seen of the {variant}."));
        };
        let asked = u64::from(record.cpus)
            * u64::from(record.load.connections)
            * u64::from(record.load.requests);
        if seen.answers != asked {
            Some(format!("not all requests of the {variant} were answered."))
        } else if seen.local_loads().is_none() {
            Some(format!("no load was counted of the {variant}."))
        } else if seen.local_pages().is_none() {
            Some(format!(
                "the kernel did not tell where the pages lie of the {variant}."
            ))
        } else {
            None
        }
    })
}

/// What a fixed variant falls short of.
fn shortfall(record: &Record, seen: &Seen) -> Option<String> {
    let name = &seen.variant;
    let cpus = record.cpus as usize;
    let regions = record.regions as usize;
    let shares = [
        ("loads from the data set", seen.local_loads()),
        ("pages", seen.local_pages()),
    ];
    if seen.pinned_readers() != cpus || seen.readers() != cpus {
        return Some(format!(
            "{} of {cpus} workers of the {name} were bound to a CPU of their own, and stayed.",
            seen.pinned_readers()
        ));
    }
    if seen.regions_with_a_copy() != regions {
        return Some(format!(
            "{} of {regions} regions had a copy of their own in the {name}.",
            seen.regions_with_a_copy()
        ));
    }
    if seen.copies() > regions + 1 {
        return Some(format!(
            "the {name} keeps {} copies, and {} are enough: one for each region, and one to copy from.",
            seen.copies(),
            regions + 1
        ));
    }
    shares.into_iter().find_map(|(what, local)| {
        let local = local?;
        (local < LOCAL_AT_LEAST).then(|| {
            format!(
                "{} of the {name}'s {what} were local, where {} were claimed.",
                figures::share(local),
                figures::share(LOCAL_AT_LEAST)
            )
        })
    })
}
