//! Objectives of the routes, and the worth of journeys: `objectives.toml`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

/// The table, as it is shipped.
const SHIPPED: &str = include_str!("../../objectives.toml");

/// Objectives of all routes, and the kinds of journeys.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Objectives {
    /// Milliseconds within which 99 of 100 answers of a route have to come.
    pub within_ms: BTreeMap<String, u64>,
    /// Kinds of journeys.
    pub journeys: BTreeMap<Kind, Journey>,
}

/// The purpose of a journey.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// To see what there is.
    Browse,
    /// To buy tickets.
    Buy,
    /// To look at their own orders.
    LookUp,
    /// To sell tickets.
    Organise,
}

/// One kind of journey.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Journey {
    /// Share of these journeys, relative to the other kinds.
    pub share: u32,
    /// Worth of one journey in the score.
    pub worth: u32,
}

impl Objectives {
    /// Returns the objectives of `objectives.toml`.
    ///
    /// # Errors
    ///
    /// Returns an error if the table cannot be read.
    pub fn shipped() -> Result<Self, toml::de::Error> {
        toml::from_str(SHIPPED)
    }

    /// Returns the time after which an answer of this route is late. A route without an objective is never late.
    pub(crate) fn of(&self, route: &str) -> Duration {
        match self.within_ms.get(route) {
            Some(ms) => Duration::from_millis(*ms),
            None => Duration::MAX,
        }
    }
}

/// The order of journeys, in which each kind has its share among any few. In a random order, ten journeys more or less
/// of the kind that is worth most would be the noise of a whole run.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    credit: BTreeMap<Kind, i64>,
}

impl Turns {
    /// Returns the kind that has waited longest for its share.
    pub(crate) fn next(&mut self, journeys: &BTreeMap<Kind, Journey>) -> Kind {
        let mut all = 0;
        for (kind, journey) in journeys {
            *self.credit.entry(*kind).or_default() += i64::from(journey.share);
            all += i64::from(journey.share);
        }
        let most = self.credit.iter().max_by_key(|(_, credit)| **credit);
        let kind = most.map_or(Kind::Browse, |(kind, _)| *kind);
        *self.credit.entry(kind).or_default() -= all;
        kind
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_share_of_any_few_journeys() {
        let journeys = Objectives::shipped().unwrap().journeys;
        let mut turns = Turns::default();
        let drawn: Vec<_> = (0..300).map(|_| turns.next(&journeys)).collect();
        for (kind, journey) in &journeys {
            let count = |drawn: &[Kind]| drawn.iter().filter(|one| *one == kind).count();
            assert_eq!(count(&drawn[50..150]), journey.share as usize);
            let tenth = count(&drawn[33..43]) as f64;
            assert!(
                (tenth - f64::from(journey.share) / 10.0).abs() <= 1.0,
                "{kind:?}"
            );
        }
    }
}
