//! Provenance of a record: date, compiler, and the digest of its inputs.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{fs, io, process::Command, time::SystemTime};

use engine::service::program::digest;
use toml::{Table, Value};

/// Formats the current time in UTC, to the second: `2026-11-20T20:30:00Z`. A clock before 1970 counts as the
/// beginning of 1970.
pub fn now() -> String {
    written(SystemTime::now())
}

fn written(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time.max(SystemTime::UNIX_EPOCH)).to_string()
}

/// Returns the version of the `rustc` that cargo calls in `folder`, such as `1.95.0`.
pub fn rustc_version(folder: &Path) -> Option<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = said_by(Command::new(rustc).arg("--version").current_dir(folder))?;
    Some(said.split_whitespace().nth(1)?.to_owned())
}

/// Computes the digest of a chapter's inputs: everything that decides its figures, except the machine.
///
/// These are the chapter's sources and configuration, the keys of `chapter.toml` that decide what is measured, and the
/// versions in `Cargo.lock` of the crates that the service names, and of those that the lab below it names. Comments,
/// pages, tests and edits do not count. The exercise counts only if it is the `variant` that was measured. Sources of
/// the lab and the generator do not count either: they change often, and seldom change a figure.
///
/// # Errors
///
/// Names the file that cannot be read.
pub fn of_chapter(root: &Path, folder: &Path, variant: &str) -> Result<String, String> {
    let mut inputs = String::new();
    for file in files_below(folder)? {
        let name = shown(&file, folder);
        let is_page = file.extension().is_some_and(|extension| extension == "md");
        let is_other = name == "src/exercise.rs" && variant != "exercise";
        if is_page || is_other || name.starts_with("tests/") {
            continue;
        }
        inputs += &name;
        inputs += &match &*name {
            "chapter.toml" => measured_keys(&file)?,
            _ => without_comments(&file)?,
        };
    }
    let manifest = parsed(&folder.join("Cargo.toml"))?;
    let named = manifest.get("dependencies").and_then(Value::as_table);
    let named = named.into_iter().flat_map(Table::keys).cloned().collect();
    inputs += &locked(&parsed(&root.join("Cargo.lock"))?, &named);
    Ok(digest(inputs))
}

/// Computes the digest of a study's inputs: its program and the library of the studies, without comments.
///
/// # Errors
///
/// Names the file that cannot be read.
pub fn of_study(root: &Path, program: &str) -> Result<String, String> {
    let folder = root.join("studies/src");
    let mut inputs = String::new();
    for file in files_below(&folder)? {
        let name = shown(&file, &folder);
        if !name.starts_with("bin/") || name == format!("bin/{program}.rs") {
            inputs += &name;
            inputs += &without_comments(&file)?;
        }
    }
    Ok(digest(inputs))
}

/// Keys of `chapter.toml` that no round depends on.
const FOR_READERS: [&str; 8] = [
    "title",
    "minutes",
    "noise",
    "answers",
    "reference",
    "check",
    "stills",
    "steps",
];

/// Reads a `chapter.toml` without these keys.
fn measured_keys(file: &Path) -> Result<String, String> {
    let mut keys = parsed(file)?;
    for key in FOR_READERS {
        keys.remove(key);
    }
    Ok(keys.to_string())
}

/// Reads a file without indentation, empty lines, and lines that are nothing but a comment.
fn without_comments(file: &Path) -> Result<String, String> {
    let extension = file.extension().and_then(OsStr::to_str);
    let comment = match extension {
        Some("rs" | "go") => "//",
        _ => "#",
    };
    let mut code = String::new();
    for line in read(file)?.lines().map(str::trim) {
        if !line.is_empty() && !line.starts_with(comment) {
            code += line;
            code.push('\n');
        }
    }
    Ok(code)
}

/// Lists name and version of the packages `named` and of those that the local ones among them name, such as the lab. The
/// instruments, which the lab names, are not followed further: they do not answer the requests.
fn locked(lock: &Table, named: &BTreeSet<String>) -> String {
    let empty = Vec::new();
    let packages = lock
        .get("package")
        .and_then(Value::as_array)
        .unwrap_or(&empty);
    let mut counted = named.clone();
    for package in packages {
        if named.contains(value(package, "name")) && value(package, "source").is_empty() {
            let below = package.get("dependencies").and_then(Value::as_array);
            for dependency in below.unwrap_or(&empty).iter().filter_map(Value::as_str) {
                // Where there are two versions, one follows the name.
                let (name, _) = dependency.split_once(' ').unwrap_or((dependency, ""));
                counted.insert(name.to_owned());
            }
        }
    }
    let mut versions = BTreeSet::new();
    for package in packages {
        let name = value(package, "name");
        if counted.contains(name) {
            versions.insert(format!("{name} {}\n", value(package, "version")));
        }
    }
    versions.into_iter().collect()
}

/// Reads a package's key in `Cargo.lock`; empty if it has none.
fn value<'a>(package: &'a Value, key: &str) -> &'a str {
    package.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Lists all files below a folder, sorted.
fn files_below(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).map_err(|why| unread(&folder, &why))?;
        for entry in entries {
            let path = entry.map_err(|why| unread(&folder, &why))?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

fn shown(file: &Path, folder: &Path) -> String {
    let within = file.strip_prefix(folder).unwrap_or(file);
    within.display().to_string().replace('\\', "/")
}

fn parsed(file: &Path) -> Result<Table, String> {
    let text = read(file)?;
    text.parse()
        .map_err(|why| format!("{} is no TOML: {why}", file.display()))
}

fn read(file: &Path) -> Result<String, String> {
    let bytes = fs::read(file).map_err(|why| unread(file, &why))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn unread(file: &Path, why: &io::Error) -> String {
    format!("{} cannot be read: {why}", file.display())
}

fn said_by(command: &mut Command) -> Option<String> {
    let output = command
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_utc_to_the_second() {
        let now = now();
        assert_eq!(now.len(), "2026-11-20T20:30:00Z".len(), "{now}");
        assert!(now.ends_with('Z'), "{now}");
        let before = SystemTime::UNIX_EPOCH - std::time::Duration::from_secs(1);
        assert_eq!(written(before), "1970-01-01T00:00:00Z");
    }

    #[test]
    fn the_compiler_says_its_version() {
        let version = rustc_version(Path::new(".")).unwrap();
        assert!(version.starts_with("1."), "{version}");
    }

    /// A folder with a chapter, a study and a lock file.
    fn workshop() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "chapter/Cargo.toml",
                "[dependencies]\nlab.workspace = true\n",
            ),
            ("chapter/chapter.toml", "title = 'One'\n[load]\nusers = 5\n"),
            ("chapter/hints.md", "Look there."),
            ("chapter/src/exercise.rs", "fn fault() {}\n"),
            ("chapter/src/solution.rs", "// Why.\nfn fix() {}\n"),
            ("chapter/tests/contract.rs", "fn holds() {}\n"),
            ("studies/src/lib.rs", "fn shared() {}\n"),
            ("studies/src/bin/one.rs", "fn main() {}\n"),
            ("studies/src/bin/two.rs", "fn main() {}\n"),
            (
                "Cargo.lock",
                "[[package]]\nname = 'lab'\nversion = '1.0.0'\ndependencies = ['instrument', 'tokio 2.0.0']\n\
                 [[package]]\nname = 'instrument'\nversion = '1.0.0'\ndependencies = ['gimli']\n\
                 [[package]]\nname = 'gimli'\nversion = '4.0.0'\nsource = 'registry'\n\
                 [[package]]\nname = 'tokio'\nversion = '2.0.0'\nsource = 'registry'\ndependencies = ['mio']\n\
                 [[package]]\nname = 'mio'\nversion = '3.0.0'\nsource = 'registry'\n",
            ),
        ] {
            let file = root.path().join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    #[test]
    fn inputs_are_what_decides_the_figures_and_nothing_else() {
        let chapter = |root: &Path| of_chapter(root, &root.join("chapter"), "solution").unwrap();
        let study = |root: &Path| of_study(root, "one").unwrap();
        for (name, old, new, decides_chapter, decides_study) in [
            ("chapter/src/solution.rs", "fix()", "fix(u8)", true, false),
            ("chapter/src/solution.rs", "Why", "Because", false, false),
            ("chapter/src/exercise.rs", "fault", "mine", false, false),
            ("chapter/tests/contract.rs", "holds", "held", false, false),
            ("chapter/hints.md", "there", "here", false, false),
            ("chapter/chapter.toml", "5", "6", true, false),
            ("chapter/chapter.toml", "One", "Two", false, false),
            (
                "chapter/chapter.toml",
                "[load]",
                "# Few.\n[load]",
                false,
                false,
            ),
            (
                "Cargo.lock",
                "2.0.0'\nsource",
                "2.0.1'\nsource",
                true,
                false,
            ),
            ("Cargo.lock", "3.0.0", "3.0.1", false, false),
            ("Cargo.lock", "4.0.0", "4.0.1", false, false),
            ("studies/src/lib.rs", "shared", "other", false, true),
            ("studies/src/bin/one.rs", "main", "begin", false, true),
            ("studies/src/bin/two.rs", "main", "begin", false, false),
        ] {
            let root = workshop();
            let root = root.path();
            let before = (chapter(root), study(root));
            let text = fs::read_to_string(root.join(name)).unwrap();
            assert!(text.contains(old), "{name}: {old}");
            fs::write(root.join(name), text.replace(old, new)).unwrap();
            let what = format!("{name}: {old} -> {new}");
            assert_eq!(before.0 != chapter(root), decides_chapter, "{what}");
            assert_eq!(before.1 != study(root), decides_study, "{what}");
        }
    }

    #[test]
    fn an_exercise_that_was_measured_counts() {
        let root = workshop();
        let folder = root.path().join("chapter");
        let of = |variant| of_chapter(root.path(), &folder, variant).unwrap();
        let before = (of("exercise"), of("solution"));
        fs::write(folder.join("src/exercise.rs"), "fn fixed() {}").unwrap();
        assert_ne!(before.0, of("exercise"));
        assert_eq!(before.1, of("solution"));
    }
}
