//! `duel manual FOLDER`: man pages, and completions for shells. Releases contain them.

use std::fs;
use std::path::Path;

use clap::{Command, ValueEnum as _};
use clap_complete::{Shell, generate_to};
use terminal::exit::{CliError, Exit};

/// Writes the man pages into `man` and the completions into `completions`, both in `folder`.
pub(crate) fn run(folder: &Path, mut program: Command) -> Result<Exit, CliError> {
    let failed = |error| CliError::because("the manual cannot be written")(error);
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man).map_err(failed)?;
    fs::create_dir_all(&completions).map_err(failed)?;
    clap_mangen::generate_to(program.clone(), man).map_err(failed)?;
    for shell in Shell::value_variants() {
        generate_to(*shell, &mut program, "duel", &completions).map_err(failed)?;
    }
    Ok(Exit::Good)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn each_command_has_a_man_page_and_each_shell_its_completions() {
        let folder = tempfile::tempdir().unwrap();
        run(folder.path(), crate::cli::Cli::command()).unwrap();
        let page = fs::read_to_string(folder.path().join("man/duel-load.1")).unwrap();
        assert!(page.contains(r"\-\-stream"), "{page}");
        let pages = terminal::testing::names(&folder.path().join("man"));
        assert!(pages.contains(&"duel.1".to_owned()), "{pages:?}");
        assert!(!pages.contains(&"duel-manual.1".to_owned()), "{pages:?}");
        for (file, word) in [
            ("duel.bash", "--at-capacity"),
            ("_duel", "--at-capacity"),
            ("duel.fish", "-l at-capacity"),
        ] {
            let text = fs::read_to_string(folder.path().join("completions").join(file)).unwrap();
            assert!(text.contains(word), "{file}");
        }
    }
}
