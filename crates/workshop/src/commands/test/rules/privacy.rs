//! Nothing names the machine that it was made on, nor where that machine gets its packages.

use super::Broken;
use crate::commands::test::repository::Text;

/// Where people's files are. In pieces, as this file is tracked too.
const PATHS: [&str; 4] = [
    concat!("/", "root/"),
    concat!("/", "home/"),
    concat!("/", "Users/"),
    concat!(r"C:\", "Users"),
];

/// What downloads come from. A lock file or requirements that name one work
/// nowhere else.
const HOSTS: [&str; 9] = [
    concat!("static.", "crates.io"),
    concat!("index.", "crates.io"),
    concat!("files.", "pythonhosted.org"),
    concat!("pypi.", "org/simple"),
    concat!("proxy.", "golang.org"),
    concat!("sum.", "golang.org"),
    concat!("registry.", "npmjs.org"),
    concat!("deb.", "debian.org"),
    concat!("--index", "-url"),
];

/// The only source that a locked crate may have.
const CRATES: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(in crate::commands::test) fn broken(texts: &[Text]) -> Vec<Broken> {
    let mut broken = Vec::new();
    for Text { path, text } in texts {
        for (number, line) in (1..).zip(text.lines()) {
            let places = PATHS.iter().filter(|place| names_somebody(line, place));
            let hosts = HOSTS.iter().filter(|host| line.contains(**host));
            for word in places.chain(hosts) {
                broken.push(Broken::at(path, number, format!("names `{word}`")));
            }
            let source = line
                .strip_prefix("source = ")
                .filter(|_| path == "Cargo.lock");
            if source.is_some_and(|source| source.trim_matches('"') != CRATES) {
                broken.push(Broken::at(path, number, "a crate from elsewhere"));
            }
        }
    }
    broken
}

/// Whether a path leads into the place of anybody but `me`, who stands for everybody.
fn names_somebody(line: &str, place: &str) -> bool {
    line.split(place)
        .skip(1)
        .any(|rest| !rest.starts_with("me/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        let text = Text {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        broken(&[text]).len()
    }

    #[test]
    fn paths_and_hosts_are_found_wherever_they_are() {
        assert_eq!(
            found("a.folded", &format!("main;{}ann/x.rs 3\n", PATHS[1])),
            1
        );
        assert_eq!(found("requirements.txt", &format!("{} x\n", HOSTS[8])), 1);
        assert_eq!(found("a.rs", "//! Nothing here.\n"), 0);
        assert_eq!(found("a.rs", &format!("\"{}me/x.rs\"\n", PATHS[1])), 0);
    }

    #[test]
    fn a_locked_crate_comes_from_the_public_index() {
        assert_eq!(found("Cargo.lock", &format!("source = \"{CRATES}\"\n")), 0);
        assert_eq!(
            found(
                "Cargo.lock",
                "source = \"registry+https://mirror.example\"\n"
            ),
            1
        );
    }
}
