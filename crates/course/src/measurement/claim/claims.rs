//! The claims of a chapter: a list that can be judged.

use serde::{Deserialize, Serialize};

use super::{Bound, Claim, Direction, Of, Role};

/// `[[claims]]`: at least one root cause and one effect. The first of each is the chapter's own.
///
/// A claim that leaves out its scenario takes the effect's. A prediction that leaves out its quantity takes
/// the effect's, too.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Claim>", into = "Vec<Claim>")]
pub struct Claims {
    list: Vec<Claim>,
    effect: usize,
    root_cause: usize,
}

impl Claims {
    /// Returns the gain that the chapter is about. It has a scenario and a bound on its ratio.
    pub fn effect(&self) -> &Claim {
        &self.list[self.effect]
    }

    /// Returns the count that the chapter is about.
    pub fn root_cause(&self) -> &Claim {
        &self.list[self.root_cause]
    }

    /// Returns all of them, in the chapter's order.
    pub fn iter(&self) -> impl Iterator<Item = &Claim> {
        self.list.iter()
    }

    /// Returns those of one role, in the chapter's order.
    pub fn of(&self, role: Role) -> impl Iterator<Item = &Claim> {
        self.list.iter().filter(move |claim| claim.role == role)
    }

    /// Returns whether the claims in a scenario mean the same with fewer users. They do not if an effect has
    /// a fixed lower bound there, because effects grow with the users.
    pub fn scale_with_users(&self, scenario: &str) -> bool {
        for claim in self.of(Role::Effect) {
            let bounds = [claim.problem, claim.solution, claim.ratio];
            for bound in bounds.into_iter().flatten() {
                let is_fixed = bound.of == Of::Itself && bound.direction == Direction::AtLeast;
                if is_fixed && claim.scenario() == scenario {
                    return false;
                }
            }
        }
        true
    }

    /// Removes the claims that `keep` refuses; the chapter's own always stay.
    #[must_use]
    pub fn only(self, keep: impl Fn(&Claim) -> bool) -> Self {
        let own = [self.effect, self.root_cause];
        let mut list = Vec::new();
        for (index, claim) in self.list.iter().enumerate() {
            if own.contains(&index) || keep(claim) {
                list.push(claim.clone());
            }
        }
        // The chapter's own are among them, so that the list can be judged.
        Self::try_from(list).unwrap_or(self)
    }
}

impl TryFrom<Vec<Claim>> for Claims {
    type Error = String;

    fn try_from(mut list: Vec<Claim>) -> Result<Self, String> {
        let effect = first(&list, Role::Effect, "effect")?;
        let root_cause = first(&list, Role::RootCause, "root_cause")?;
        let own = list[effect].clone();
        let (Some(scenario), false, Some(_)) = (
            own.scenario,
            own.quantity.is_unsaid(),
            own.ratio.filter(is_gain),
        ) else {
            return Err(
                "the first effect needs a `scenario`, a `quantity` and a `ratio` such as `>= 2`"
                    .to_owned(),
            );
        };
        for claim in &mut list {
            let scenario_of = claim.scenario.get_or_insert_with(|| scenario.clone());
            if claim.role == Role::Prediction && claim.quantity.is_unsaid() {
                claim.quantity = own.quantity.clone();
            }
            let quantity = claim.quantity.key();
            if quantity.is_empty() {
                return Err(format!(
                    "a claim in the scenario `{scenario_of}` has no `quantity`; say what is measured"
                ));
            }
            if claim.role == Role::RootCause
                && (claim.problem.is_none() || claim.solution.is_none())
            {
                return Err(format!(
                    "the root cause `{quantity}` needs a bound for `problem` and one for `solution`"
                ));
            }
            let has_bounds =
                claim.ratio.is_none() && claim.problem.is_some() && claim.solution.is_some();
            if claim.role == Role::Effect
                && !has_bounds
                && !claim.ratio.as_ref().is_some_and(is_gain)
            {
                return Err(format!(
                    "the effect `{quantity}` needs a `ratio` such as `>= 2`, or bounds for `problem` and `solution`"
                ));
            }
            if claim.role == Role::Guardrail && claim.solution.is_none() && claim.ratio.is_none() {
                return Err(format!(
                    "the guardrail `{quantity}` needs a bound: a `solution` or a `ratio`"
                ));
            }
            if let Some(within) = claim.within
                && !(within > 0.0 && within <= 1.0)
            {
                return Err("`within` is a share, above 0 and at most 1".to_owned());
            }
        }
        Ok(Self {
            list,
            effect,
            root_cause,
        })
    }
}

/// Returns the place of the first claim with this role, which `chapter.toml` calls `name`.
fn first(list: &[Claim], role: Role, name: &str) -> Result<usize, String> {
    match list.iter().position(|claim| claim.role == role) {
        Some(place) => Ok(place),
        None => Err(format!(
            "no claim has the role `{name}`; add one to [[claims]]"
        )),
    }
}

/// Returns whether a bound on a ratio demands a gain: at least a number above 0.
fn is_gain(bound: &Bound) -> bool {
    bound.direction == Direction::AtLeast && bound.number > 0.0
}

impl From<Claims> for Vec<Claim> {
    fn from(claims: Claims) -> Self {
        claims.list
    }
}
