//! A chapter about memory regions, in a machine that has some.

use measurement::law::Law;
use serde::Deserialize;

use super::check::{Check, Failure, Need, failed};
use super::context::Context;
use crate::exercise::Exercise;

/// Regions of the machine.
const FOUR: &str = "4";

pub(super) const REGIONS: Check = Check {
    name: "regions",
    about: "in a machine with four memory regions locality is proved, and the shipped exercise fails",
    needs: &[Need::Machine],
    stands_alone: true,
    run: |context| {
        for chapter in &context.chapters {
            if matches!(chapter.file()?.law, Law::Locality(_)) {
                let number = chapter.number.to_string();
                said(
                    context,
                    &["prove", &number, "--numa-nodes", FOUR],
                    0,
                    "proved",
                )?;
                // A reader's own edit may be a cure.
                if !Exercise::read(chapter)?.is_edited() {
                    said(
                        context,
                        &["check", &number, "--numa-nodes", FOUR],
                        1,
                        "refuted",
                    )?;
                }
            }
        }
        Ok(())
    },
};

#[derive(Debug, Deserialize)]
struct Said {
    verdict: String,
    reason: String,
}

fn said(
    context: &Context<'_>,
    arguments: &[&str],
    code: i32,
    verdict: &str,
) -> Result<(), Failure> {
    let command = &mut context.own(&[arguments, &["--format", "json"]].concat());
    let (ended, said) = context.output(command)?;
    let said: Said = match serde_json::from_str(&said) {
        Ok(said) => said,
        Err(error) => {
            return failed(format!(
                "{arguments:?} ended with {ended:?} and no verdict: {error}"
            ));
        }
    };
    if said.verdict == verdict && ended == Some(code) {
        Ok(())
    } else {
        failed(format!(
            "{arguments:?} should say {verdict}, and says {} with code {ended:?}: {}",
            said.verdict, said.reason
        ))
    }
}
