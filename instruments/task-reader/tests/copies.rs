//! Two copies of tokio in one program, and tokio in a shared library.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::Build;
use task_reader::{Binary, Index, State};

/// A program in which each copy of tokio has a task, and the second one also polls a task at the moment.
const COPIES: &str = r#"
async fn of_first() {
    tokio::time::sleep(std::time::Duration::from_secs(100_000)).await; // of_first
}

async fn of_second() {
    tokio_copy::time::sleep(std::time::Duration::from_secs(100_000)).await; // of_second
}

async fn computes() {
    loop {
        std::hint::spin_loop(); // computes
    }
}

fn main() {
    let first = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let second = tokio_copy::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    first.spawn(of_first());
    second.spawn(of_second());
    second.spawn(computes());
    std::thread::sleep(std::time::Duration::from_millis(500));
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(100_000));
}
"#;

/// A library that is loaded, with a runtime inside.
const LIBRARY: &str = r#"
#[unsafe(no_mangle)]
extern "C" fn start() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.spawn(std::future::pending::<()>());
    std::mem::forget(runtime);
}
"#;

/// Loads the library.
const LOADS: &str = r#"
use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

fn main() {
    let path = std::ffi::CString::new(std::env::args().nth(1).unwrap()).unwrap();
    unsafe {
        let library = dlopen(path.as_ptr(), 2);
        let start: extern "C" fn() = std::mem::transmute(dlsym(library, c"start".as_ptr()));
        start();
    }
    println!("ready");
    std::thread::sleep(std::time::Duration::from_secs(100_000));
}
"#;

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(folder.join("src/bin")).unwrap();
    folder
}

/// Writes a package with its only source.
fn package(folder: &Path, name: &str, rest: &str, (file, source): (&str, &str)) {
    let manifest = format!(
        "[workspace]\n[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{rest}\n\
         [profile.release]\ndebug = true\n"
    );
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join(file), source).unwrap();
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Returns the folder with the source of the fixtures' tokio.
fn source_of_tokio() -> PathBuf {
    let fixtures = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let metadata = Command::new(env!("CARGO"))
        .current_dir(fixtures)
        .args(["metadata", "--format-version", "1"])
        .output();
    let metadata: serde_json::Value = serde_json::from_slice(&metadata.unwrap().stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let tokio = packages
        .iter()
        .find(|package| package["name"] == "tokio")
        .unwrap();
    let manifest = Path::new(tokio["manifest_path"].as_str().unwrap());
    manifest.parent().unwrap().to_owned()
}

#[test]
#[ignore = "compiles tokio twice, which takes minutes"]
fn weekly_two_copies_of_tokio() {
    let folder = folder("copies");
    // Not within the folder: it would be a part of the workspace, with all that its own tests need.
    copy(&source_of_tokio(), &folder.with_file_name("tokio-copy"));
    let features = "features = [\"rt-multi-thread\", \"time\"]";
    let dependencies = format!(
        "[dependencies]\ntokio = {{ version = \"1\", {features} }}\n\
         tokio-copy = {{ package = \"tokio\", path = \"../tokio-copy\", {features} }}"
    );
    package(
        &folder,
        "copies",
        &dependencies,
        ("src/bin/copies.rs", COPIES),
    );
    let program = Build::within(&folder, "copies").start();
    let snapshot = program.snapshot();
    println!("{snapshot}");
    assert_eq!(snapshot.runtimes.len(), 2);
    for function in ["of_first", "of_second"] {
        let name = format!("copies::{function}");
        let mut tasks = snapshot.tasks.iter().filter(|task| task.future == name);
        let line = tasks
            .next()
            .and_then(|task| task.waits.first()?.line.clone());
        assert_eq!(line.map(|line| line.line), Some(program.line(function)));
        assert!(tasks.next().is_none());
    }
    // Both copies count their tasks from 1.
    let running: Vec<_> = snapshot
        .tasks
        .iter()
        .filter(|task| task.state == State::Running)
        .collect();
    let [computes] = running[..] else {
        panic!("{running:?}");
    };
    let frame = computes
        .frames
        .iter()
        .find(|frame| frame.future == "copies::computes");
    assert!(frame.is_some(), "{computes:?}");
}

#[test]
#[ignore = "compiles tokio, which takes minutes"]
fn weekly_tokio_in_a_shared_library_is_told() {
    let library = folder("library");
    let dependencies = "[lib]\ncrate-type = [\"cdylib\"]\n[dependencies]\n\
        tokio = { version = \"1\", features = [\"rt-multi-thread\"] }";
    package(&library, "library", dependencies, ("src/lib.rs", LIBRARY));
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("target/library");
    let build = Command::new(env!("CARGO"))
        .current_dir(&library)
        .args(["build", "--target-dir"])
        .arg(&target)
        .status();
    assert!(build.unwrap().success(), "the library does not compile");
    let loads = folder("loads");
    package(&loads, "loads", "", ("src/bin/loads.rs", LOADS));
    let path = target.join("debug/liblibrary.so");
    let program = Build::within(&loads, "loads");
    let program = program.argument(path.to_str().unwrap()).start();
    let error = Binary::of_process(program.pid()).and_then(|binary| Index::new(&binary).map(drop));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("in the shared library") && error.contains("liblibrary.so"),
        "{error}"
    );
}
