//! Options from the file `duel.toml` in the folder that the command is called in.

use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;

use clap::{ArgAction, Command};
use terminal::exit::CliError;
use toml::{Table, Value};

/// Name of the file.
pub(crate) const FILE: &str = "duel.toml";
/// Commands that take options from it.
const COMMANDS: [&str; 3] = ["compare", "bisect", "load"];

/// Returns the arguments of the process with the options of [`FILE`], if there is one. An option of the command line comes
/// before that of the file, and before those that it excludes.
///
/// # Errors
///
/// Returns an error if the file cannot be read, or names an option that no command has.
pub(crate) fn with_file(
    mut arguments: Vec<OsString>,
    program: &Command,
) -> Result<Vec<OsString>, CliError> {
    let name = arguments.get(1).and_then(|name| name.to_str());
    let Some(command) = name.and_then(|name| program.find_subcommand(name)) else {
        return Ok(arguments);
    };
    if !COMMANDS.contains(&command.get_name()) {
        return Ok(arguments);
    }
    match fs::read_to_string(FILE) {
        Ok(text) => {
            let added = added(&text, &arguments[2..], command, program)?;
            arguments.splice(2..2, added);
            Ok(arguments)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(arguments),
        Err(error) => Err(CliError::usage(format!("{FILE}: {error}"))),
    }
}

/// Returns the file's options for `command` that `typed` does not override.
fn added(
    text: &str,
    typed: &[OsString],
    command: &Command,
    program: &Command,
) -> Result<Vec<OsString>, CliError> {
    let wrong = |why: &dyn std::fmt::Display| CliError::usage(format!("{FILE}: {why}"));
    let file: Table = text
        .parse()
        .map_err(|error: toml::de::Error| wrong(&error))?;
    let mut options = Table::new();
    for (key, value) in &file {
        match value {
            Value::Table(own) if COMMANDS.contains(&key.as_str()) => {
                if key == command.get_name() {
                    options.extend(own.clone());
                }
            }
            _ => {
                let has_it = |name: &&str| {
                    let command = program.find_subcommand(name);
                    command.is_some_and(|command| argument(command, key).is_some())
                };
                if !COMMANDS.iter().any(has_it) {
                    return Err(wrong(&format!("no command has an option `{key}`")));
                }
                // An option of another command is none of this one's.
                if argument(command, key).is_some() && !options.contains_key(key) {
                    options.insert(key.clone(), value.clone());
                }
            }
        }
    }
    let is_typed = |long: &str| {
        typed.iter().any(|word| {
            let word = word.to_string_lossy();
            let rest = word
                .strip_prefix("--")
                .and_then(|word| word.strip_prefix(long));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    };
    let mut added = Vec::new();
    for (key, value) in &options {
        let Some(argument) = argument(command, key) else {
            let name = command.get_name();
            return Err(wrong(&format!("`duel {name}` has no option `{key}`")));
        };
        // Either of two options that exclude each other may say so.
        let excluded = command.get_arguments().filter(|other| {
            let others = [*other, argument].map(|one| command.get_arg_conflicts_with(one));
            others[0].contains(&argument) || others[1].contains(other)
        });
        let mut excluded = excluded.filter_map(clap::Arg::get_long);
        let requests = ["get", "request", "access-log"];
        // Requests that are typed take the place of all in the file.
        let is_replaced =
            requests.contains(&key.as_str()) && requests.iter().any(|one| is_typed(one));
        if is_typed(key) || is_replaced || excluded.any(is_typed) {
            continue;
        }
        let is_flag = matches!(argument.get_action(), ArgAction::SetTrue);
        for value in values(value).ok_or_else(|| {
            wrong(&format!(
                "`{key}` is no text, number, truth value or list of these"
            ))
        })? {
            match (value, is_flag) {
                (Value::Boolean(true), true) => added.push(format!("--{key}").into()),
                (Value::Boolean(false), true) => {}
                (value, false) => added.push(format!("--{key}={}", text_of(value)).into()),
                (_, true) => return Err(wrong(&format!("`{key}` is true or false"))),
            }
        }
    }
    Ok(added)
}

fn argument<'c>(command: &'c Command, long: &str) -> Option<&'c clap::Arg> {
    command
        .get_arguments()
        .find(|one| one.get_long() == Some(long))
}

/// Returns the values of a key: those of a list, or its own. `None` if one of them is no plain value.
fn values(value: &Value) -> Option<Vec<&Value>> {
    let all = match value {
        Value::Array(all) => all.iter().collect(),
        one => vec![one],
    };
    let is_plain = |value: &&Value| {
        matches!(
            value,
            Value::String(_) | Value::Integer(_) | Value::Float(_) | Value::Boolean(_)
        )
    };
    all.iter().all(is_plain).then_some(all)
}

fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    const TOML: &str = r#"
users = 100
get = ["/a", "/b x3"]
build = "make"
rate = 20
[load]
seconds = 2.5
http2 = true
insecure = false
[compare]
margin = "2%"
"#;

    fn read(text: &str, command: &str, typed: &str) -> Result<String, String> {
        let mut program = crate::cli::Cli::command();
        program.build();
        let typed: Vec<OsString> = typed.split_whitespace().map(OsString::from).collect();
        let command = program.find_subcommand(command).unwrap();
        let added = added(text, &typed, command, &program).map_err(|error| error.to_string())?;
        let words: Vec<_> = added.iter().map(|word| word.to_string_lossy()).collect();
        Ok(words.join(" "))
    }

    #[test]
    fn the_file_gives_what_the_command_line_leaves_open() {
        let added = read(TOML, "load", "URL").unwrap();
        for word in [
            "--users=100",
            "--get=/a",
            "--get=/b x3",
            "--seconds=2.5",
            "--http2",
            "--rate=20",
        ] {
            assert!(added.contains(word), "{added}");
        }
        for word in ["build", "margin", "insecure"] {
            assert!(!added.contains(word), "{added}");
        }
        let added = read(TOML, "compare", "--users 7 --think=1").unwrap();
        assert!(
            added.contains("--build=make") && added.contains("--margin=2%"),
            "{added}"
        );
        assert!(
            !added.contains("users") && !added.contains("rate"),
            "{added}"
        );
        let added = read(TOML, "compare", "--at-capacity 'p99<1s'").unwrap();
        assert!(
            added.contains("--rate=20") && !added.contains("users"),
            "{added}"
        );
        let added = read(TOML, "compare", "--access-log log").unwrap();
        assert!(!added.contains("--get"), "{added}");
    }

    #[test]
    fn a_wrong_file_is_told() {
        for (text, word) in [
            ("users = ", "duel.toml"),
            ("usres = 5", "no command has an option `usres`"),
            ("[load]\nmargin = 1", "`duel load` has no option `margin`"),
            ("[load]\nhttp2 = 1", "true or false"),
            ("get = [[1]]", "no text"),
        ] {
            let said = read(text, "load", "URL").unwrap_err();
            assert!(said.contains(word), "{said}");
        }
    }
}
