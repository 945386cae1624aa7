//! Gains that were got by leaving out the work.

use measurement::attempt::Trial;
use measurement::{
    chapter_file::{ChapterFile, DATABASE_CALLS},
    figures,
};

/// The first thing that the edit left out, in a sentence; `None` if it did all the work.
pub(super) fn found(chapter: &ChapterFile, trial: &Trial) -> Option<String> {
    let exercise = &trial.exercise;
    let outcome = &exercise.outcome;
    let reads = outcome.completed - outcome.writes;
    if let (Some(metric), Some(calls)) = (chapter.calls_metric(), exercise.calls)
        && calls < reads
    {
        let (who, what) = match metric {
            DATABASE_CALLS => ("the database saw", figures::things(calls, "call")),
            other => (other, format!("is {}", figures::count(calls as f64))),
        };
        return Some(format!(
            "the exercise gave {}, but {who} {what}; every answer needs a call of its own.",
            figures::things(reads, "answer"),
        ));
    }
    if let Some(records) = exercise.database_records
        && records < outcome.writes
    {
        return Some(format!(
            "the exercise accepted {}, but the database recorded {}; every write needs a record.",
            figures::things(outcome.writes, "write"),
            figures::count(records as f64)
        ));
    }
    if let (Some(question), Some(left), Some(right)) = (
        &chapter.afterwards,
        &exercise.afterwards,
        &trial.problem.afterwards,
    ) && left != right
    {
        return Some(format!(
            "after the load the exercise answers {left:?} to {}, where the problem answers {right:?}; \
             writes must not get lost.",
            question.path
        ));
    }
    let call = chapter.law.shortest_answer_ms()?;
    // Histograms round, and a timer may fire a tick early.
    let too_fast = outcome.latency.min_ms < 0.96 * call;
    (too_fast || outcome.latency.min_ms.is_nan()).then(|| {
        format!(
            "the exercise answered within {}, faster than its database call of {} allows; wait for the call.",
            figures::milliseconds(outcome.latency.min_ms),
            figures::milliseconds(call)
        )
    })
}
