//! The verdict on a record.

use course::analysis::verdict::{VerdictKind, verdict};
use course::measurement::claim::PROBLEM;
use statistics::figures;
use statistics::verdict::Verdict;

use crate::record::{LOCAL_AT_LEAST, Record, Variant};

/// Judges a record. `proved`: the problem reads across nodes, and `fix` does not. `refuted`: a count
/// says otherwise. `invalid`: a count is missing.
pub fn judge(record: &Record, fix: &str) -> Verdict<VerdictKind> {
    let (problem, fixed) = match (counted(record, PROBLEM), counted(record, fix)) {
        (Ok(problem), Ok(fixed)) => (problem, fixed),
        (Err(missing), _) | (_, Err(missing)) => return verdict(VerdictKind::Invalid, missing),
    };
    if let Some(shortfall) = shortfall(record, &problem, &fixed) {
        return verdict(VerdictKind::Refuted, shortfall);
    }
    let reason = format!(
        "loads from the reader's own region: {} of the problem's, {} of the {fix}'s; every worker \
         on a CPU of its own, a copy for each of {} regions.",
        figures::share(problem.local_loads),
        figures::share(fixed.local_loads),
        record.nodes
    );
    verdict(VerdictKind::Proved, reason)
}

/// A variant with all its counts.
struct Counted<'a> {
    variant: &'a Variant,
    local_loads: f64,
    local_pages: f64,
}

/// Returns the counts of a variant, or a sentence about the count that is missing.
fn counted<'a>(record: &'a Record, name: &str) -> Result<Counted<'a>, String> {
    let Some(variant) = record.variant(name) else {
        return Err(format!("nothing was seen of the {name}."));
    };
    let each = u64::from(record.load.connections) * u64::from(record.load.requests);
    if variant.answers != u64::from(record.cpus) * each {
        return Err(format!("not all requests of the {name} were answered."));
    }
    let Some(local_loads) = variant.local_loads() else {
        return Err(format!("no load was counted of the {name}."));
    };
    let Some(local_pages) = variant.local_pages() else {
        return Err(format!(
            "the kernel did not tell where the pages lie of the {name}."
        ));
    };
    Ok(Counted {
        variant,
        local_loads,
        local_pages,
    })
}

/// Returns what contradicts the claim, as a sentence; `None` if nothing does.
fn shortfall(record: &Record, problem: &Counted<'_>, fixed: &Counted<'_>) -> Option<String> {
    if problem.local_loads > record.problem_at_most() {
        return Some(format!(
            "{} of the problem's loads were local already, where {} were to be expected.",
            figures::share(problem.local_loads),
            figures::share(record.local_by_chance())
        ));
    }
    let variant = fixed.variant;
    let name = &variant.name;
    let (cpus, nodes) = (record.cpus as usize, record.nodes as usize);
    let pinned = variant.pinned_readers();
    if pinned != cpus || variant.readers() != cpus {
        return Some(format!(
            "{pinned} of {cpus} workers of the {name} were bound to a CPU of their own, and stayed."
        ));
    }
    let own = variant.nodes_with_a_copy();
    if own != nodes {
        return Some(format!(
            "{own} of {nodes} regions had a copy of their own in the {name}."
        ));
    }
    let (copies, enough) = (variant.placement.copies.len(), nodes + 1);
    if copies > enough {
        return Some(format!(
            "the {name} keeps {copies} copies, and {enough} are enough: one for each region, and one \
             to copy from."
        ));
    }
    let shares = [
        ("loads from the data set", fixed.local_loads),
        ("pages", fixed.local_pages),
    ];
    for (what, local) in shares {
        if local < LOCAL_AT_LEAST {
            return Some(format!(
                "{} of the {name}'s {what} were local, where {} were claimed.",
                figures::share(local),
                figures::share(LOCAL_AT_LEAST)
            ));
        }
    }
    None
}
