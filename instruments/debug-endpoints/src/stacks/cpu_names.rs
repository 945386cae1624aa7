//! Names of the functions at a CPU profile's addresses, and the profile as pprof's protobuf.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};

use await_profile::profile_proto::{self as proto, Builder};
use await_profile::{is_foreign, portable, symbols};
use diagnosis::Process;
use diagnosis::maps::{self, Part};
use diagnosis::threads::roles::{label, role_of};
use diagnosis::threads::{CpuSamples, NamedFrame, Names};

use crate::cpu_profile::CpuProfile;
use crate::missing_names;
use crate::stacks::cpu_samples::{Sampled, Stack};

/// Longest time for which names are looked up. Each takes allocations, which may wait for those of the service's threads.
const LONGEST_NAMES: Duration = Duration::from_secs(15);

/// One function at an address.
pub(crate) struct Function {
    pub(crate) name: String,
    system_name: String,
    /// File, without the part of its path that shows whose machine it was compiled on.
    pub(crate) file: String,
    /// True if it was compiled from a library or the toolchain.
    pub(crate) is_foreign: bool,
}

/// Functions at an address with their lines, innermost first: several if one is inlined into another.
pub(crate) type Functions = Vec<(Function, u32)>;

/// Part of a file that is in memory and may be executed.
pub(crate) struct Mapping {
    start: usize,
    end: usize,
    offset: u64,
    name: String,
}

impl Mapping {
    /// Returns all mappings, the program's own first, as readers of pprof files expect. On systems other than Linux
    /// there are none.
    pub(crate) fn all() -> Vec<Self> {
        let maps = maps::read(Process::this());
        let mut all: Vec<Self> = maps.lines().filter_map(Self::parse).collect();
        let own = std::env::current_exe().unwrap_or_default();
        all.sort_by_key(|mapping| Path::new(&mapping.name) != own);
        for mapping in &mut all {
            // Keep the name alone: the profile should not reveal the paths of this machine.
            let name = Path::new(&mapping.name).file_name().unwrap_or_default();
            mapping.name = name.to_string_lossy().into_owned();
        }
        all
    }

    /// Reads a line of the list, if it is for a file's code.
    fn parse(line: &str) -> Option<Self> {
        let part = Part::parse(line)?;
        let is_code = part.permissions.contains('x') && part.name.starts_with('/');
        is_code.then_some(Self {
            start: usize::try_from(part.start).ok()?,
            end: usize::try_from(part.end).ok()?,
            offset: part.offset,
            name: part.name.to_owned(),
        })
    }

    fn holds(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Names that were looked up before.
struct Known<'a> {
    functions: &'a HashMap<usize, Functions>,
    mappings: &'a [Mapping],
}

impl Names for Known<'_> {
    fn functions(&mut self, address: usize) -> Vec<NamedFrame> {
        let mut named = Vec::new();
        for (function, line) in self.functions.get(&address).into_iter().flatten() {
            named.push(NamedFrame {
                function: function.name.clone(),
                file: function.file.clone(),
                line: *line,
                is_foreign: function.is_foreign,
            });
        }
        named
    }

    fn nameless(&self, address: usize) -> String {
        nameless(address, self.mappings)
    }

    fn note(&self, _: &HashMap<usize, Vec<NamedFrame>>) -> Option<String> {
        None
    }

    fn has_begun_requests(&self, tid: i32) -> bool {
        await_profile::has_begun_requests(tid)
    }
}

/// Returns the profile of these samples, with names, and the samples for the rules.
pub(crate) fn profile(sampled: Sampled) -> (CpuProfile, CpuSamples) {
    let mut stacks = sampled.stacks;
    let mappings = Mapping::all();
    let mut known: HashMap<usize, Functions> = HashMap::new();
    let began = Instant::now();
    let mut unnamed = 0;
    // The most frequent stacks come first, in case that there is no time for all.
    let mut by_samples: Vec<&Stack> = stacks.iter().collect();
    by_samples.sort_by_key(|stack| Reverse(stack.samples));
    for &address in by_samples.iter().flat_map(|stack| &stack.addresses) {
        known.entry(address).or_insert_with(|| {
            if began.elapsed() < LONGEST_NAMES {
                return functions(address);
            }
            unnamed += 1;
            Vec::new()
        });
    }
    for stack in &mut stacks {
        let mut names: Vec<&str> = Vec::new();
        for address in stack.addresses.iter().rev() {
            for (function, _) in at(&known, *address).iter().rev() {
                names.push(&function.name);
            }
        }
        stack.thread = label(role_of(&names), &stack.thread);
    }
    symbols::forget();
    let mut notes = sampled.notes;
    notes.extend(sampled.why_unseen.clone());
    if unnamed > 0 {
        notes.push(format!(
            "{unnamed} of {} addresses have no names, because looking names up took over {} s.",
            known.len(),
            LONGEST_NAMES.as_secs()
        ));
    } else {
        notes.extend(note(&known, &mappings));
    }
    let note = match notes.as_slice() {
        [] => None,
        notes => Some(notes.join(" ")),
    };
    let written = written(
        &stacks,
        &known,
        &mappings,
        note.as_deref(),
        sampled.frequency,
    );
    let busy: u64 = stacks.iter().map(|stack| stack.samples).sum();
    let mut names = Known {
        functions: &known,
        mappings: &mappings,
    };
    let by_thread = stacks
        .iter()
        .map(|stack| (stack.tid, &stack.addresses[..], stack.samples));
    let period = Duration::from_secs(1) / sampled.frequency.max(1);
    let for_rules = CpuSamples::new(by_thread, &sampled.moments, period, &mut names);
    let profile = CpuProfile {
        pprof: written.finish(sampled.began, sampled.duration),
        idle: idle(
            busy + sampled.unseen,
            sampled.duration,
            sampled.cpu_time,
            sampled.frequency,
        ),
        unseen: sampled.unseen,
        why_unseen: sampled.why_unseen,
        stacks: folded(&stacks, &known, &mappings),
        note,
    };
    (profile, for_rules)
}

/// Returns the number of samples that idle CPUs would have given, beside `busy` ones, taken or missing.
///
/// It takes the busy time from the process's CPU clock, not from the samples. Samples fall on the kernel's ticks, and
/// work that a timer started on a tick is often done before the next.
fn idle(busy: u64, duration: Duration, cpu_time: Duration, frequency: u32) -> u64 {
    let cpus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
    let possible = duration.as_secs_f64() * cpus;
    let used = cpu_time.as_secs_f64().min(possible);
    let idle = if busy == 0 {
        (possible - used) * f64::from(frequency)
    } else {
        busy as f64 * (possible / used.max(1e-6) - 1.0)
    };
    // It is never negative, and part of a sample does not count.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let idle = idle as u64;
    idle
}

/// Returns the functions at an address. A caller calls [`symbols::forget`] after its last call.
pub(crate) fn functions(address: usize) -> Functions {
    let mut functions = Vec::new();
    symbols::functions(address, &mut |found| {
        if found.raw.is_empty() {
            return;
        }
        let file = found.file.unwrap_or_default();
        let function = Function {
            name: found.name,
            system_name: found.raw.into_owned(),
            file: portable(&file),
            is_foreign: is_foreign(&file),
        };
        functions.push((function, found.line.unwrap_or_default()));
    });
    functions
}

/// Returns the functions that are known to be at `address`.
fn at(known: &HashMap<usize, Functions>, address: usize) -> &[(Function, u32)] {
    match known.get(&address) {
        Some(functions) => functions,
        None => &[],
    }
}

/// A function at an address, as [`note`] looks at it.
pub(crate) trait Named {
    /// Returns its line, or 0 if that is not known.
    fn line(&self) -> u32;
}

impl Named for (Function, u32) {
    fn line(&self) -> u32 {
        self.1
    }
}

/// Returns a note on names of the program's own code that are missing, and the remedy.
pub(crate) fn note<T: Named>(
    known: &HashMap<usize, Vec<T>>,
    mappings: &[Mapping],
) -> Option<String> {
    let own = &mappings.first()?.name;
    let (mut all, mut nameless, mut functions, mut without_line) = (0, 0, 0, 0);
    for (address, names) in known {
        let part = mappings.iter().find(|part| part.holds(*address));
        if part.is_none_or(|part| part.name != *own) {
            continue;
        }
        all += 1;
        nameless += usize::from(names.is_empty());
        for name in names {
            functions += 1;
            without_line += usize::from(name.line() == 0);
        }
    }
    if nameless * 2 > all && missing_names::is_replaced() {
        return Some(missing_names::REPLACED.to_owned());
    }
    if nameless * 2 > all {
        return Some(format!(
            "{own} is stripped: {nameless} of its {all} addresses have no names. Set debug = \"limited\" and strip = \
             \"none\" in its Cargo profile."
        ));
    }
    // The standard library has lines of its own in some builds that have none otherwise.
    if without_line * 2 > functions {
        return Some(format!(
            "{own} has no debug information: line numbers and inlined functions are missing. Set debug = \"limited\" \
             and strip = \"none\" in its Cargo profile."
        ));
    }
    None
}

fn folded(
    stacks: &[Stack],
    known: &HashMap<usize, Functions>,
    mappings: &[Mapping],
) -> Vec<(String, u64)> {
    let mut folded = BTreeMap::<String, u64>::new();
    for stack in stacks {
        let mut line = stack.thread.replace(';', ",");
        for address in stack.addresses.iter().rev() {
            let functions = at(known, *address);
            if functions.is_empty() {
                line = format!("{line};{}", nameless(*address, mappings));
            }
            for (function, _) in functions.iter().rev() {
                line = format!("{line};{}", function.name.replace(';', ","));
            }
        }
        *folded.entry(line).or_default() += stack.samples;
    }
    folded.into_iter().collect()
}

/// Returns a label for an address without a name, by its place in its file.
pub(crate) fn nameless(address: usize, mappings: &[Mapping]) -> String {
    for mapping in mappings {
        if mapping.holds(address) {
            let offset = (address - mapping.start) as u64 + mapping.offset;
            return format!("[{}+{offset:#x}]", mapping.name);
        }
    }
    format!("[{address:#x}]")
}

fn written(
    stacks: &[Stack],
    known: &HashMap<usize, Functions>,
    mappings: &[Mapping],
    note: Option<&str>,
    frequency: u32,
) -> Builder {
    let mut builder = Builder::default();
    let samples = builder.value_type("samples", "count");
    let time = builder.value_type("cpu", "nanoseconds");
    let period = 1_000_000_000 / i64::from(frequency.max(1));
    builder.profile.sample_type = vec![samples, time];
    builder.profile.period_type = Some(time);
    builder.profile.period = period;
    if let Some(note) = note {
        builder.comment(note);
    }
    for (index, mapping) in mappings.iter().enumerate() {
        let mapping = proto::Mapping {
            id: index as u64 + 1,
            memory_start: mapping.start as u64,
            memory_limit: mapping.end as u64,
            file_offset: mapping.offset,
            filename: builder.string(&mapping.name),
        };
        builder.profile.mapping.push(mapping);
    }
    let thread = builder.string("thread");
    for stack in stacks {
        let samples = i64::try_from(stack.samples).unwrap_or(i64::MAX);
        let label = proto::Label {
            key: thread,
            str: builder.string(&stack.thread),
        };
        let mut location_id = Vec::new();
        for &address in &stack.addresses {
            location_id.push(location(&mut builder, address, known, mappings));
        }
        let sample = proto::Sample {
            location_id,
            value: vec![samples, samples.saturating_mul(period)],
            label: vec![label],
        };
        builder.profile.sample.push(sample);
    }
    builder
}

/// Adds the location of an address, and returns its number.
fn location(
    builder: &mut Builder,
    address: usize,
    known: &HashMap<usize, Functions>,
    mappings: &[Mapping],
) -> u64 {
    let mut lines = Vec::new();
    for (function, line) in at(known, address) {
        lines.push(proto::Line {
            function_id: builder.function(&function.name, &function.system_name, &function.file),
            line: i64::from(*line),
        });
    }
    // Mappings are numbered from 1; 0 is for none.
    let mapping = mappings.iter().position(|one| one.holds(address));
    builder.location(proto::Location {
        id: 0,
        mapping_id: mapping.map_or(0, |index| index as u64 + 1),
        address: address as u64,
        line: lines,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_in_files_that_are_in_memory() {
        let line = "55d0-55f0 r-xp 00001000 fe:00 42                       /opt/my shop";
        let mapping = Mapping::parse(line).expect("code");
        assert!(mapping.holds(0x55ef) && !mapping.holds(0x55f0));
        assert_eq!(nameless(0x55d1, &[mapping]), "[/opt/my shop+0x1001]");
        assert!(Mapping::parse("55d0-55f0 rw-p 00001000 fe:00 42   /bin/shop").is_none());
        assert!(Mapping::parse("7ffd-7fff r-xp 00000000 00:00 0    [vdso]").is_none());
        let here = code_is_in_files_that_are_in_memory as *const () as usize;
        assert!(Mapping::all().first().is_some_and(|own| own.holds(here)));
    }

    #[test]
    fn addresses_without_names_are_kept_and_the_program_is_called_stripped() {
        let part = |name: &str, start| Mapping {
            start,
            end: start + 0x100,
            offset: 0x40,
            name: name.to_owned(),
        };
        let mappings = [part("shop", 0x1000), part("libc.so.6", 0x2000)];
        let names = |name: &str| {
            let name = name.to_owned();
            let function = Function {
                system_name: name.clone(),
                file: String::new(),
                is_foreign: false,
                name,
            };
            vec![(function, 7)]
        };
        let mut known = HashMap::from([(0x1010, Vec::new()), (0x2020, names("start_thread"))]);
        let stacks = [Stack {
            thread: "worker".to_owned(),
            tid: 7,
            addresses: vec![0x1010, 0x2020],
            samples: 3,
        }];
        let note = note(&known, &mappings).expect("it is stripped");
        assert!(note.starts_with("shop is stripped: 1 of its 1"), "{note}");
        let expected = ("worker;start_thread;[shop+0x50]".to_owned(), 3);
        assert_eq!(folded(&stacks, &known, &mappings), [expected]);
        let written = written(&stacks, &known, &mappings, Some(&note), 100).profile;
        let places = written.location.iter();
        let places = places.map(|at| (at.address, at.mapping_id, at.line.len()));
        assert_eq!(places.collect::<Vec<_>>(), [(0x1010, 1, 0), (0x2020, 2, 1)]);
        assert_eq!(written.sample[0].value, [3, 30_000_000]);
        known.insert(0x1010, names("shop::search"));
        assert_eq!(super::note(&known, &mappings), None);
        // The program looks like this with strip = "debuginfo".
        known.insert(0x1020, names("shop::main"));
        for functions in known.values_mut() {
            functions[0].1 = 0;
        }
        let note = super::note(&known, &mappings).expect("there are no lines");
        assert!(note.starts_with("shop has no debug information"), "{note}");
        assert!(note.contains("strip = \"none\""), "{note}");
    }
}
