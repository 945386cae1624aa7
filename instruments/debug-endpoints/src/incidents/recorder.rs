//! The last incidents, and the number of all.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use diagnosis::printable;
use serde::Serialize;

use crate::incidents::date::utc;
use crate::incidents::judge::Key;
use crate::incidents::kind::Kind;
use crate::incidents::log_line;

/// Most incidents that are kept.
const MOST: usize = 10;

/// Most bytes of the stacks of threads, of the waits, and of the sentences of one incident, each.
const MOST_BYTES: usize = 32 << 10;

/// Longest line in the log, in bytes.
const LONGEST_LINE: usize = 1_000;

/// Observations at the time of an incident.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sentences: Vec<String>,
    /// Stacks of threads, folded.
    pub(crate) stacks: Vec<String>,
    /// Waits of requests in a second, folded.
    pub(crate) waits: Vec<String>,
}

/// An incident that is kept.
struct Incident {
    number: u64,
    key: Key,
    at: SystemTime,
    began: Instant,
    /// Length of the incident; `None` while it goes on.
    lasted: Option<Duration>,
    seen: Seen,
}

/// The same, as `/debug/incidents` shows it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub(crate) kind: Kind,
    /// Moment at which it began, in RFC 3339 and UTC.
    pub(crate) at: String,
    /// Length of the incident, until now if it goes on.
    pub(crate) seconds: f64,
    /// True while it goes on.
    pub(crate) ongoing: bool,
    /// Sentences: first the value that is out of its range, then the instruments' findings.
    pub(crate) sentences: Vec<String>,
    /// Stacks of threads at that moment, folded, a line each.
    pub(crate) stacks: Vec<String>,
    /// Waits of requests in one second: folded stacks, a line each.
    pub(crate) waits: Vec<String>,
}

/// Keeps the last incidents, and counts all.
pub(crate) struct Recorder {
    since: SystemTime,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    kept: VecDeque<Incident>,
    number: u64,
    counts: BTreeMap<Kind, u64>,
    lacked_cpu: u64,
    /// Why nothing is watched.
    failed: Option<String>,
}

impl State {
    /// Returns the incident of this number, if it is still kept.
    fn incident(&mut self, number: u64) -> Option<&mut Incident> {
        self.kept.iter_mut().find(|one| one.number == number)
    }
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self {
            since: SystemTime::now(),
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an incident.
    pub(crate) fn count(&self, kind: Kind) {
        *self.state().counts.entry(kind).or_default() += 1;
    }

    /// Counts something that was late because the machine had no CPU.
    pub(crate) fn count_lacked_cpu(&self) {
        self.state().lacked_cpu += 1;
    }

    /// Keeps why nothing is watched, and says so in the log.
    pub(crate) fn fail(&self, why: String) {
        log_line::warn(&why);
        self.state().failed = Some(why);
    }

    /// Keeps an incident that began some time `ago`, and returns its number. Its evidence follows.
    pub(crate) fn begin(&self, key: Key, says: &str, ago: Duration) -> u64 {
        let (now, at) = (Instant::now(), SystemTime::now());
        let mut state = self.state();
        state.number += 1;
        let number = state.number;
        state.kept.push_front(Incident {
            number,
            key,
            at: at.checked_sub(ago).unwrap_or(at),
            began: now.checked_sub(ago).unwrap_or(now),
            lasted: None,
            seen: Seen {
                sentences: vec![says.to_owned()],
                ..Seen::default()
            },
        });
        state.kept.truncate(MOST);
        number
    }

    /// Ends the incident of this key, if it goes on.
    pub(crate) fn end(&self, key: &Key) {
        let mut state = self.state();
        for incident in &mut state.kept {
            if incident.key == *key && incident.lasted.is_none() {
                incident.lasted = Some(incident.began.elapsed());
            }
        }
    }

    /// Adds the evidence of an incident, and writes its line in the log first.
    pub(crate) fn add(&self, number: u64, mut seen: Seen) {
        let (kind, says) = {
            let mut state = self.state();
            let Some(incident) = state.incident(number) else {
                return;
            };
            (incident.key.0, incident.seen.sentences.clone())
        };
        seen.sentences.splice(0..0, says);
        for part in [&mut seen.sentences, &mut seen.stacks, &mut seen.waits] {
            bound(part);
        }
        // The service's logger may do anything, so no lock is held.
        log_line::warn(&line(kind, &seen.sentences));
        if let Some(incident) = self.state().incident(number) {
            incident.seen = seen;
        }
    }

    /// Returns the incidents that are kept, the newest first.
    pub(crate) fn shown(&self) -> Vec<Shown> {
        let mut shown = Vec::new();
        for incident in &self.state().kept {
            let lasted = match incident.lasted {
                Some(lasted) => lasted,
                None => incident.began.elapsed(),
            };
            shown.push(Shown {
                kind: incident.key.0,
                at: utc(incident.at),
                seconds: (lasted.as_secs_f64() * 1e3).round() / 1e3,
                ongoing: incident.lasted.is_none(),
                sentences: incident.seen.sentences.clone(),
                stacks: incident.seen.stacks.clone(),
                waits: incident.seen.waits.clone(),
            });
        }
        shown
    }

    /// Returns the number of incidents by kind, and of what was late without a CPU, as `no_cpu`.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let state = self.state();
        let mut counts = Vec::new();
        for kind in Kind::ALL {
            let count = state.counts.get(&kind).copied();
            counts.push((kind.name(), count.unwrap_or_default()));
        }
        counts.push(("no_cpu", state.lacked_cpu));
        counts
    }

    /// Returns the incidents as text.
    pub(crate) fn text(&self) -> String {
        let shown = self.shown();
        let mut text = self.head(shown.len());
        for (index, one) in shown.iter().enumerate() {
            let lasts = if one.ongoing { " so far" } else { "" };
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "\n{}. {}, {}, {:.3} s{lasts}",
                index + 1,
                one.kind.name(),
                one.at,
                one.seconds
            );
            for sentence in &one.sentences {
                let _ = writeln!(text, "   {sentence}");
            }
            for (title, lines) in [
                ("Threads at that moment", &one.stacks),
                ("Waits of requests, one second", &one.waits),
            ] {
                if !lines.is_empty() {
                    let _ = writeln!(text, "   {title}:");
                }
                for line in lines {
                    let _ = writeln!(text, "     {line}");
                }
            }
        }
        text
    }

    fn head(&self, shown: usize) -> String {
        let (since, state) = (utc(self.since), self.state());
        let all: u64 = state.counts.values().sum();
        let mut head = match all {
            0 => format!("No incident since {since}.\n"),
            1 => format!("1 incident since {since}.\n"),
            all => {
                format!("{all} incidents since {since}; {shown} recorded here, the newest first.\n")
            }
        };
        if state.lacked_cpu > 0 {
            let _ = writeln!(
                head,
                "In addition, something was late {} times because other programs had the CPU.",
                state.lacked_cpu
            );
        }
        if let Some(failed) = &state.failed {
            let _ = writeln!(head, "{failed}");
        }
        head
    }
}

/// Cuts a list of lines to what one incident may keep.
fn bound(lines: &mut Vec<String>) {
    let (mut bytes, mut fitting) = (0, 0);
    for line in &*lines {
        bytes += line.len();
        if bytes > MOST_BYTES {
            break;
        }
        fitting += 1;
    }
    let left_out = lines.len() - fitting;
    if left_out > 0 {
        lines.truncate(fitting);
        lines.push(format!("({left_out} more)"));
    }
}

/// Returns the line in the log: what is out of its range, and the first sentence with a file and line number.
fn line(kind: Kind, sentences: &[String]) -> String {
    let mut line = format!("incident ({})", kind.name());
    let mut parts = Vec::new();
    if let Some((first, others)) = sentences.split_first() {
        parts.push(first);
        let place = others.iter().find(|sentence| has_line(sentence));
        parts.extend(place.or(others.first()));
    }
    for sentence in parts {
        // The evidence of a finding, its cause and fix are in the endpoint.
        let (headline, _) = sentence.split_once(" Seen: ").unwrap_or((sentence, ""));
        line.push_str(": ");
        line.push_str(headline.trim_end_matches('.'));
    }
    // Names of routes come from clients.
    let mut line = printable(&line).replace(['\n', '\t'], " ");
    let mut end = line.len().min(LONGEST_LINE);
    while !line.is_char_boundary(end) {
        end -= 1;
    }
    line.truncate(end);
    format!("{line} [/debug/incidents]")
}

/// Returns whether a sentence names a file with a line, as in `(src/main.rs:14)`.
fn has_line(sentence: &str) -> bool {
    let mut rest = sentence;
    while let Some((before, after)) = rest.split_once(')') {
        if let Some((_, number)) = before.rsplit_once(':')
            && number.parse::<u32>().is_ok()
        {
            return true;
        }
        rest = after;
    }
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn key(kind: Kind) -> Key {
        (kind, Arc::from("main"))
    }

    fn seen(sentences: &[&str], stacks: Vec<String>) -> Seen {
        Seen {
            sentences: sentences.iter().map(|one| (*one).to_owned()).collect(),
            stacks,
            ..Seen::default()
        }
    }

    #[test]
    fn the_last_ten_are_kept_with_what_fits() {
        let recorder = Recorder::new();
        for number in 1..=12 {
            recorder.count(Kind::Late);
            let says = format!("It was late for the time {number}.");
            let kept = recorder.begin(key(Kind::Late), &says, Duration::ZERO);
            recorder.add(kept, seen(&[], vec!["x".repeat(1_000); 100]));
        }
        let shown = recorder.shown();
        assert_eq!(shown.len(), 10);
        assert!(shown[0].sentences[0].ends_with("12."));
        assert_eq!(shown[0].stacks.last().expect("some"), "(68 more)");
        assert!(recorder.text().starts_with("12 incidents since 2"));
        assert_eq!(recorder.counts()[0], ("late", 12));
    }

    #[test]
    fn one_that_goes_on_says_so_until_it_ends() {
        let recorder = Recorder::new();
        recorder.begin(key(Kind::Late), "late", Duration::from_secs(3));
        let shown = recorder.shown().remove(0);
        assert!(shown.ongoing && shown.seconds >= 3.0, "{shown:?}");
        recorder.end(&key(Kind::Memory));
        assert!(recorder.shown()[0].ongoing);
        recorder.end(&key(Kind::Late));
        assert!(!recorder.shown()[0].ongoing);
    }

    #[test]
    fn the_line_names_the_place_and_is_one_line() {
        let said = [
            "1 of 2 workers did not yield for 60 ms.".to_owned(),
            "Not seen: the network.".to_owned(),
            "1 thread was blocked at shop::read\n (src/db.rs:40). Seen: Blocked in 5 of 6 samples."
                .to_owned(),
        ];
        let line = line(Kind::Late, &said);
        assert!(
            line.starts_with("incident (late): 1 of 2 workers"),
            "{line}"
        );
        assert!(
            line.contains("(src/db.rs:40)") && !line.contains('\n'),
            "{line}"
        );
        assert!(
            line.ends_with("(src/db.rs:40) [/debug/incidents]"),
            "{line}"
        );
        assert!(!has_line("at 3:4 and (nothing)"));
    }

    #[test]
    fn a_route_of_a_client_neither_turns_nor_hides_the_line() {
        let said = ["GET /a\u{202e}b\u{200b}\u{1b}[2J is late.".to_owned()];
        assert_eq!(
            line(Kind::Late, &said),
            "incident (late): GET /a\\u202eb\\u200b\\u001b[2J is late [/debug/incidents]"
        );
    }

    #[test]
    fn the_json_has_few_and_stable_keys() {
        let recorder = Recorder::new();
        recorder.begin(key(Kind::BlockingPool), "full", Duration::ZERO);
        let json = serde_json::to_value(recorder.shown()).expect("JSON");
        let keys = json[0].as_object().expect("an object").keys();
        let keys: Vec<_> = keys.map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "at",
                "kind",
                "ongoing",
                "seconds",
                "sentences",
                "stacks",
                "waits"
            ]
        );
        assert_eq!(json[0]["kind"], "blocking_pool");
    }
}
