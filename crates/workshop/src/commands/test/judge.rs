//! What may fail a push: what noise cannot touch. The rest is told.

use measurement::outcome::MISSED;

use crate::exit::Exit;

/// What `check` or `prove` found, as much of it as decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer {
    /// Good, bad or invalid.
    pub(super) verdict: Exit,
    /// The verdict's own word.
    pub(super) word: String,
    pub(super) reason: String,
    /// What did not hold.
    pub(super) broken: Vec<Broken>,
}

/// What did not hold, by what it takes to break it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Broken {
    /// A right answer to every request, and the work that it takes.
    Contract,
    /// The count that changes with the fault.
    RootCause,
    /// Another count: threads, bytes.
    Count,
    /// A ratio or a time, which a busy machine changes.
    Ratio,
}

/// What a check makes of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Judged {
    Fine,
    /// Told, counted, and no failure: a busy machine gives such answers of sound code.
    Told,
    Fails,
}

/// The shipped exercise has to fail, and for its root cause.
pub(super) fn of_shipped(answer: &Answer) -> Judged {
    match answer.verdict {
        _ if answer.broken.contains(&Broken::Contract) => Judged::Fails,
        Exit::Bad if answer.broken.contains(&Broken::RootCause) => Judged::Fine,
        Exit::Invalid => Judged::Told,
        _ => Judged::Fails,
    }
}

/// The solution has to pass, and the claim to be proved.
pub(super) fn of_solution(answer: &Answer) -> Judged {
    match answer.verdict {
        _ if answer.broken.contains(&Broken::Contract) => Judged::Fails,
        Exit::Good => Judged::Fine,
        Exit::Invalid => Judged::Told,
        _ => unless_by_noise(answer),
    }
}

/// An edit that fixes nothing has to fail, with this word in the reason.
pub(super) fn of_cheat(answer: &Answer, word: &str) -> Judged {
    match answer.verdict {
        Exit::Bad if answer.reason.to_lowercase().contains(word) => Judged::Fine,
        Exit::Bad => unless_by_noise(answer),
        Exit::Invalid => Judged::Told,
        _ => Judged::Fails,
    }
}

/// A generator's script has to end with `wanted`, having seen no wrong answer.
pub(super) fn of_script(wanted: i32, ended: Option<i32>, wrong_answers: u64) -> Judged {
    match ended {
        _ if wrong_answers > 0 => Judged::Fails,
        Some(code) if code == wanted => Judged::Fine,
        // Thresholds are times, which noise makes longer but never shorter.
        Some(MISSED) => Judged::Told,
        _ => Judged::Fails,
    }
}

fn unless_by_noise(answer: &Answer) -> Judged {
    let only_ratios = answer.broken.iter().all(|what| *what == Broken::Ratio);
    if only_ratios && !answer.broken.is_empty() {
        Judged::Told
    } else {
        Judged::Fails
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(verdict: Exit, broken: &[Broken]) -> Answer {
        Answer {
            verdict,
            word: String::new(),
            reason: "Peak memory of the process: 9, but at most 3 is needed.".to_owned(),
            broken: broken.to_vec(),
        }
    }

    /// What is made of an exercise as shipped, of a solution, and of a cheat with another reason.
    #[test]
    fn what_noise_cannot_touch_fails_and_the_rest_is_told() {
        use Broken::{Contract, Count, Ratio, RootCause};
        use Judged::{Fails, Fine, Told};

        for (verdict, broken, shipped, solution, cheat) in [
            (Exit::Good, &[][..], Fails, Fine, Fails),
            (Exit::Invalid, &[], Told, Told, Told),
            (Exit::Invalid, &[RootCause], Told, Told, Told),
            (Exit::Invalid, &[Ratio], Told, Told, Told),
            (Exit::Invalid, &[Contract], Fails, Fails, Told),
            // Why it did not hold is not known.
            (Exit::Bad, &[], Fails, Fails, Fails),
            (Exit::Bad, &[Ratio, Ratio], Fails, Told, Told),
            (Exit::Bad, &[RootCause], Fine, Fails, Fails),
            (Exit::Bad, &[RootCause, Ratio], Fine, Fails, Fails),
            (Exit::Bad, &[Count], Fails, Fails, Fails),
            (Exit::Bad, &[Count, Ratio], Fails, Fails, Fails),
            (Exit::Bad, &[Contract], Fails, Fails, Fails),
            (Exit::Bad, &[Contract, Ratio], Fails, Fails, Fails),
            (Exit::Bad, &[Contract, RootCause], Fails, Fails, Fails),
        ] {
            let answer = answer(verdict, broken);
            assert_eq!(of_shipped(&answer), shipped, "{answer:?}");
            assert_eq!(of_solution(&answer), solution, "{answer:?}");
            assert_eq!(of_cheat(&answer, "panic"), cheat, "{answer:?}");
        }
    }

    #[test]
    fn a_cheat_fails_with_its_reason() {
        let memory = answer(Exit::Bad, &[Broken::Count]);
        assert_eq!(of_cheat(&memory, "peak memory"), Judged::Fine);
        assert_eq!(of_cheat(&memory, "threads"), Judged::Fails);
        let passed = answer(Exit::Good, &[]);
        assert_eq!(of_cheat(&passed, "peak memory"), Judged::Fails);
    }

    #[test]
    fn a_script_may_be_slow_but_not_wrong() {
        assert_eq!(of_script(0, Some(0), 0), Judged::Fine);
        assert_eq!(of_script(0, Some(MISSED), 0), Judged::Told);
        assert_eq!(of_script(0, Some(MISSED), 1), Judged::Fails);
        assert_eq!(of_script(0, None, 0), Judged::Fails);
        assert_eq!(of_script(MISSED, Some(MISSED), 0), Judged::Fine);
        assert_eq!(of_script(MISSED, Some(0), 0), Judged::Fails);
    }
}
