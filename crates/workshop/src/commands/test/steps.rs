//! The step-by-step branches: the same from a full and a shallow clone, and
//! every step compiles.

use serde::Deserialize;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use super::scratch::Scratch;

pub(super) const STEPS: Check = Check {
    name: "steps",
    about: "steps come out the same twice, and each one compiles",
    needs: &[Need::Git],
    stands_alone: false,
    run,
};

/// As much of `steps --format json` as matters here.
#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Branch {
    chapter: u32,
    steps: Vec<Step>,
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
struct Step {
    commit: String,
}

fn run(context: &Context<'_>) -> Result<(), Failure> {
    let full = Scratch::clone(context, "full", &[])?;
    let branches = branches(context, &full)?;
    {
        let shallow = Scratch::clone(context, "shallow", &["--depth", "1"])?;
        if self::branches(context, &shallow)? != branches {
            return failed("a shallow clone gives other commits");
        }
    }
    if branches.is_empty() {
        return failed("no chapter has steps");
    }
    for branch in &branches {
        let package = format!("chapter{}", branch.chapter);
        for step in &branch.steps {
            context.run(&mut full.git(&["checkout", "--quiet", "--detach", &step.commit]))?;
            context.run(&mut full.cargo(&["check", "--package", &package, "--all-targets"]))?;
        }
    }
    Ok(())
}

fn branches(context: &Context<'_>, clone: &Scratch<'_>) -> Result<Vec<Branch>, Failure> {
    let said = context.output_of(&mut clone.own(&["steps", "--format", "json"]))?;
    serde_json::from_str(&said)
        .or_else(|error| failed(format!("steps printed something else: {error}")))
}
