//! Instructions, counted by callgrind: a figure that no other program on the machine can disturb.
//!
//! A program does the same work `n` times and then `2n` times. The difference, divided by `n`, is the count
//! for one round, without the program's start and end.

use serde::{Deserialize, Serialize};

/// Instructions to count, as an extra of `chapter.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counting {
    /// The example of the chapter's package that does the work: `EXAMPLE VARIANT ROUNDS`.
    pub example: String,
    /// The variants to count.
    pub variants: Vec<String>,
    /// Rounds of the shorter run.
    pub rounds: u32,
    /// Name of a round, for the table: `round of the loop`.
    pub unit: String,
}

/// Instructions of one variant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instructions {
    /// The variant.
    pub variant: String,
    /// Instructions a round.
    pub per_round: f64,
}

/// Computes the instructions per round from callgrind's output for a run of `rounds` and for one of twice as
/// many. `None` if an output has no count, or if the longer run has fewer instructions.
pub fn per_round(shorter: &str, longer: &str, rounds: u32) -> Option<f64> {
    let (shorter, longer) = (collected(shorter)?, collected(longer)?);
    let difference = longer.checked_sub(shorter)?;
    Some(difference as f64 / f64::from(rounds))
}

/// Reads the count from `==7== Collected : 1234567`, callgrind's last line but one.
fn collected(said: &str) -> Option<u64> {
    said.lines()
        .find_map(|line| line.split_once("Collected :")?.1.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_and_end_do_not_count() {
        let shorter = "==7== Events    : Ir\n==7== Collected : 1500000\n==7== \n";
        let longer = "==9== Collected : 2500000\n";
        assert_eq!(per_round(shorter, longer, 1_000), Some(1_000.0));
        assert_eq!(per_round("valgrind: no such file", longer, 1_000), None);
        assert_eq!(per_round(longer, shorter, 1_000), None);
    }
}
