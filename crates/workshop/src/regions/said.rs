//! What the machine said on its serial line: the lines after `@`, see `crates/guest`.

use measurement::regions::{Placement, Seen};

use crate::exit::{CliError, Exit};

/// Reads all that a machine said, but for the loads, which it does not know.
pub(super) fn read(text: &str, variant: &str) -> Result<Seen, CliError> {
    let failed = |what: &str| {
        let last: Vec<&str> = text.lines().rev().take(12).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        CliError::new(
            Exit::Invalid,
            format!(
                "the machine with the {variant} {what}; the end of its stderr:\n\n{}",
                last.join("\n")
            ),
        )
    };
    if let Some(why) = line(text, "failed") {
        return Err(failed(&format!("could not do its work ({why})")));
    }
    if line(text, "done").is_none() {
        return Err(failed("was switched off before it was done"));
    }
    let number = |name| {
        line(text, name)
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| failed(&format!("did not tell `{name}`")))
    };
    let placement: Placement = serde_json::from_str(line(text, "placement").unwrap_or_default())
        .map_err(|e| failed(&format!("told a placement that is none ({e})")))?;
    if !placement.is_countable() {
        return Err(failed(
            "told a placement with counts that no machine comes to",
        ));
    }
    Ok(Seen {
        variant: variant.to_owned(),
        answers: number("answers")?,
        resident_kib: number("resident")?,
        placement,
        loads: Vec::new(),
    })
}

/// What follows `@name` in the first such line.
fn line<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let rest = line.trim().strip_prefix('@')?.strip_prefix(name)?;
        (rest.is_empty() || rest.starts_with(' ')).then(|| rest.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_says_is_read_among_the_kernels_words() {
        let placement = r#"{"regions":[0,1],"copies":[],"readers":[]}"#;
        let text = format!(
            "[    0.1] Linux\r\n@machine 2\r\nchapter7 listens\r\n@answers 40\r\n@placement {placement}\r\n@resident 4096\r\n@done\r\n"
        );
        let said = read(&text, "problem").unwrap();
        assert_eq!((said.answers, said.resident_kib), (40, 4096));
        assert_eq!(said.placement.regions, [0, 1]);
    }

    #[test]
    fn a_machine_that_failed_is_quoted() {
        for (text, word) in [
            ("@failed no such file\n@done\n", "no such file"),
            ("[ 1.0] Kernel panic\n", "Kernel panic"),
            ("@answers 1\n@resident 1\n@done\n", "placement"),
        ] {
            let refused = read(text, "solution").unwrap_err();
            assert!(refused.to_string().contains(word), "{refused}");
            assert_eq!(refused.exit, Exit::Invalid);
        }
    }
}
