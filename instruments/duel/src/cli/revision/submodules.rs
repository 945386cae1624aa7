//! Submodules of a checkout, from the reader's own clones of them. This needs no network, and leaves nothing but
//! files to clean up.

use std::path::Path;

use terminal::exit::{CliError, Exit};
use terminal::git::Git;

/// Writes the files of all submodules of `commit` below `checkout`. The reader's own checkout of the same
/// repository is at `here`. A submodule without a clone there is left out, as in the reader's own builds, and `say`
/// reports it.
pub(super) fn check_out(
    here: &Path,
    commit: &str,
    checkout: &Path,
    say: &dyn Fn(&str),
) -> Result<(), CliError> {
    let list = Git::within(here).say(["ls-tree", "-r", commit])?;
    // 160000 commit HASH<tab>PATH
    for line in list.lines() {
        let Some((commit, path)) = submodule(line) else {
            continue;
        };
        let (own, into) = (here.join(path), checkout.join(path));
        // In an empty folder, git finds the repository above it.
        let Ok(git) = Git::at(&own) else {
            say(&format!(
                "the submodule {path} has no clone here and is left out; `git submodule update --init` makes one"
            ));
            continue;
        };
        let index = terminal::files::temporary()?;
        let variables = [
            ("GIT_INDEX_FILE", index.path().join("index")),
            ("GIT_WORK_TREE", into.clone()),
            (
                "GIT_DIR",
                git.say(["rev-parse", "--absolute-git-dir"])?.into(),
            ),
        ];
        let read = git
            .with(&variables)
            .say(["read-tree", "--reset", "-u", commit]);
        if read.is_err() {
            return Err(CliError::new(
                Exit::Invalid,
                format!(
                    "the submodule {path} has no commit {commit} here: run `git submodule update --init \
                     --recursive`, or fetch in it"
                ),
            ));
        }
        check_out(&own, commit, &into, say)?;
    }
    Ok(())
}

/// Returns the commit and the path of a submodule in a line of `git ls-tree`.
fn submodule(line: &str) -> Option<(&str, &str)> {
    let (kind, path) = line.split_once('\t')?;
    let commit = kind.strip_prefix("160000 commit ")?;
    Some((commit, path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn git(folder: &Path, words: &[&str]) -> String {
        let name = ["-c", "user.name=A", "-c", "user.email=a@example.com"];
        let words = [&name[..], &["-c", "protocol.file.allow=always"], words].concat();
        Git::within(folder).say(words).unwrap()
    }

    fn repository(folder: &Path, text: &str) {
        fs::create_dir_all(folder).unwrap();
        git(folder, &["init", "--quiet"]);
        fs::write(folder.join("text"), text).unwrap();
        git(folder, &["add", "."]);
        git(folder, &["commit", "--quiet", "-m", "one"]);
    }

    #[test]
    fn a_checkout_has_the_files_of_its_submodules_as_they_were() {
        let folder = tempfile::tempdir().unwrap();
        let [inner, outer, app] = ["inner", "outer", "app"].map(|name| folder.path().join(name));
        repository(&inner, "of the inner one");
        repository(&outer, "of the outer one");
        let add = |to: &Path, from: &Path| {
            git(
                to,
                &[
                    "submodule",
                    "--quiet",
                    "add",
                    &from.display().to_string(),
                    "below",
                ],
            );
            git(to, &["commit", "--quiet", "-am", "with a submodule"]);
        };
        add(&outer, &inner);
        repository(&app, "of the service");
        add(&app, &outer);
        git(
            &app,
            &["submodule", "--quiet", "update", "--init", "--recursive"],
        );
        let commit = git(&app, &["rev-parse", "HEAD"]);
        // The checkout must not have this later change.
        fs::write(app.join("below/text"), "changed").unwrap();

        let checkout = folder.path().join("checkout");
        fs::create_dir_all(checkout.join("below")).unwrap();
        check_out(&app, &commit, &checkout, &|said| panic!("{said}")).unwrap();
        let read = |path: &str| fs::read_to_string(checkout.join(path)).unwrap();
        assert_eq!(read("below/text"), "of the outer one");
        assert_eq!(read("below/below/text"), "of the inner one");
        assert_eq!(git(&app, &["status", "--short"]), " m below");

        git(
            &app,
            &["submodule", "--quiet", "deinit", "--force", "--all"],
        );
        fs::remove_dir_all(&checkout).unwrap();
        let said = std::cell::RefCell::new(String::new());
        check_out(&app, &commit, &checkout, &|text| {
            text.clone_into(&mut said.borrow_mut());
        })
        .unwrap();
        assert!(
            said.borrow()
                .starts_with("the submodule below has no clone here"),
            "{said:?}"
        );
    }
}
