//! Who waits for whom: waits and holders of the same address, confirmed by the state of the resource.

use std::collections::{HashMap, HashSet};

use crate::model::{Certainty, Circle, Hold, Resource, State, Task};

/// Most circles that are reported.
const MOST_CIRCLES: usize = 100;

/// Joins waits and holders into resources, those with the most waiters first.
pub(crate) fn resources(tasks: &mut [Task]) -> Vec<Resource> {
    let mut by_address: HashMap<u64, Resource> = HashMap::new();
    for (number, task) in tasks.iter().enumerate() {
        for wait in &task.waits {
            let Some(address) = wait.address else {
                continue;
            };
            let resource = by_address.entry(address).or_insert_with(|| Resource {
                waits_for: wait.waits_for.clone(),
                waiters: Vec::new(),
                holders: Vec::new(),
                task: None,
                is_complete: false,
                chain: Vec::new(),
                address,
            });
            if !resource.waiters.contains(&number) {
                resource.waiters.push(number);
            }
        }
    }
    let tasks_at: HashMap<u64, usize> = tasks
        .iter()
        .enumerate()
        .map(|(number, task)| (task.address, number))
        .collect();
    let mut resources: Vec<Resource> = by_address.into_values().collect();
    resources.sort_by_key(|resource| {
        (
            std::cmp::Reverse(resource.waiters.len()),
            resource.waiters.first().copied(),
        )
    });
    let places: HashMap<u64, usize> = resources
        .iter()
        .enumerate()
        .map(|(place, resource)| (resource.address, place))
        .collect();
    let given = given(tasks);
    let mut candidates: HashMap<u64, Vec<(usize, usize)>> = HashMap::new();
    for (number, task) in tasks.iter_mut().enumerate() {
        for wait in &mut task.waits {
            wait.resource = wait
                .address
                .and_then(|address| places.get(&address).copied());
        }
        for (at, hold) in task.holds.iter_mut().enumerate() {
            hold.resource = places.get(&hold.address).copied();
            candidates
                .entry(hold.address)
                .or_default()
                .push((number, at));
        }
    }
    for (address, mut candidates) in candidates {
        let given = given.get(&address).copied().unwrap_or_default();
        let agreement = agreement(tasks, &candidates, given);
        for (number, at) in &candidates {
            if let Some(hold) = tasks
                .get_mut(*number)
                .and_then(|task| task.holds.get_mut(*at))
            {
                hold.certainty = certainty(hold, agreement);
            }
        }
        let certainty = |(number, at): &(usize, usize)| {
            let hold = tasks.get(*number).and_then(|task| task.holds.get(*at));
            hold.map_or(Certainty::Doubtful, |hold| hold.certainty)
        };
        candidates.retain(|candidate| certainty(candidate) != Certainty::Doubtful);
        let is_certain = candidates
            .iter()
            .all(|candidate| certainty(candidate) == Certainty::Agreed);
        let resource = places
            .get(&address)
            .and_then(|place| resources.get_mut(*place));
        if let Some(resource) = resource {
            resource.is_complete = agreement == Agreement::All && is_certain;
            resource.holders = candidates;
        }
    }
    for resource in &mut resources {
        resource.task = tasks_at.get(&resource.address).copied();
        resource.is_complete |= resource.task.is_some();
    }
    let chains: Vec<Vec<usize>> = resources
        .iter()
        .map(|resource| chain(tasks, &resources, resource))
        .collect();
    for (resource, chain) in resources.iter_mut().zip(chains) {
        resource.chain = chain;
    }
    resources
}

/// Follows waits from a resource's first holder to their end. A task that polls several futures can go on by any, so it is
/// the last.
fn chain(tasks: &[Task], resources: &[Resource], from: &Resource) -> Vec<usize> {
    let mut chain: Vec<usize> = Vec::new();
    let mut next = holders(from).first().copied();
    while let Some(number) = next.filter(|number| !chain.contains(number)) {
        chain.push(number);
        let waits = tasks.get(number).map_or(&[][..], |task| &task.waits);
        let resource = match waits {
            [wait] if !wait.is_given => wait.resource.and_then(|place| resources.get(place)),
            _ => None,
        };
        next = resource.and_then(|resource| holders(resource).first().copied());
    }
    chain
}

/// Returns how much of each resource its waiters were given and have not yet taken: they hold that, though no value shows it.
fn given(tasks: &[Task]) -> HashMap<u64, u64> {
    let mut given: HashMap<u64, u64> = HashMap::new();
    for wait in tasks.iter().flat_map(|task| &task.waits) {
        if let Some(address) = wait.address {
            let sum = given.entry(address).or_default();
            *sum = sum.saturating_add(wait.has);
        }
    }
    given
}

/// What the state of a resource says of all values that may hold it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Agreement {
    /// It has as many holders.
    All,
    /// It has more holders, or does not say how many.
    Some,
    /// It has fewer holders.
    TooMany,
}

/// Compares the candidates for one resource with its state.
fn agreement(tasks: &[Task], candidates: &[(usize, usize)], given: u64) -> Agreement {
    let holds = || {
        candidates
            .iter()
            .filter_map(|(number, at)| tasks.get(*number)?.holds.get(*at))
    };
    let values: HashSet<u64> = holds().map(|hold| hold.value).collect();
    let kinds: HashSet<&str> = holds().map(|hold| hold.holds).collect();
    // Of readers and writers of one lock, or of both ends of a channel, each says another number.
    let out = holds().next().and_then(|hold| hold.out);
    let Some(out) = out.filter(|_| kinds.len() == 1) else {
        return Agreement::Some;
    };
    match (values.len() as u64).cmp(&out.saturating_sub(given)) {
        std::cmp::Ordering::Less => Agreement::Some,
        std::cmp::Ordering::Equal => Agreement::All,
        std::cmp::Ordering::Greater => Agreement::TooMany,
    }
}

fn certainty(hold: &Hold, agreement: Agreement) -> Certainty {
    // Nothing can be out of a resource that says so.
    if hold.out == Some(0) || agreement == Agreement::TooMany {
        return Certainty::Doubtful;
    }
    match (hold.is_dropped, hold.out, agreement) {
        (Some(true), _, _) => Certainty::Agreed,
        (_, None, _) | (_, _, Agreement::All) => Certainty::Possible,
        _ => Certainty::Doubtful,
    }
}

/// Returns the tasks that nothing can wake any more, in the circles that they form.
pub(crate) fn circles(tasks: &[Task], resources: &[Resource]) -> Vec<Circle> {
    let stuck = stuck(tasks, resources);
    let (mut circles, mut done): (Vec<Circle>, HashSet<usize>) = (Vec::new(), HashSet::new());
    let mut starts: Vec<usize> = stuck.iter().copied().collect();
    starts.sort_unstable();
    for start in starts {
        let (mut path, mut at): (Vec<(usize, usize)>, usize) = (Vec::new(), start);
        loop {
            if let Some(from) = path.iter().position(|(task, _)| *task == at) {
                let (tasks, used): (Vec<usize>, Vec<usize>) =
                    path.split_off(from).into_iter().unzip();
                let is_certain = used.iter().all(|place| {
                    resources
                        .get(*place)
                        .is_some_and(|resource| resource.is_complete)
                });
                circles.push(Circle {
                    tasks,
                    resources: used,
                    is_certain,
                });
                break;
            }
            if !done.insert(at) || circles.len() >= MOST_CIRCLES {
                break;
            }
            let Some((place, next)) = first_edge(tasks, resources, at) else {
                break;
            };
            path.push((at, place));
            at = next;
        }
    }
    circles
}

/// Returns the tasks of which every wait is for tasks that are stuck themselves.
fn stuck(tasks: &[Task], resources: &[Resource]) -> HashSet<usize> {
    let is_candidate = |task: &Task| {
        task.state == State::Waiting && !task.waits.is_empty() && task.not_seen.is_empty()
    };
    let numbered = tasks.iter().enumerate();
    let mut stuck: HashSet<usize> = numbered
        .filter(|(_, task)| is_candidate(task))
        .map(|(number, _)| number)
        .collect();
    loop {
        let before = stuck.len();
        let can_go_on = |number: &usize| {
            let waits = tasks.get(*number).map_or(&[][..], |task| &task.waits);
            waits.iter().any(|wait| {
                let resource = wait.resource.and_then(|place| resources.get(place));
                let holders = resource.map(holders).unwrap_or_default();
                wait.is_given
                    || holders.is_empty()
                    || holders.iter().any(|holder| !stuck.contains(holder))
            })
        };
        let free: Vec<usize> = stuck.iter().copied().filter(can_go_on).collect();
        for number in free {
            stuck.remove(&number);
        }
        if stuck.len() == before {
            return stuck;
        }
    }
}

/// Returns the tasks that hold a resource, or that it is.
fn holders(resource: &Resource) -> Vec<usize> {
    let holders = resource.holders.iter().map(|(task, _)| *task);
    holders.chain(resource.task).collect()
}

/// Returns the first resource for which a task waits, and a task that has it.
fn first_edge(tasks: &[Task], resources: &[Resource], task: usize) -> Option<(usize, usize)> {
    let place = tasks
        .get(task)?
        .waits
        .iter()
        .find_map(|wait| wait.resource)?;
    Some((place, holders(resources.get(place)?).into_iter().next()?))
}
