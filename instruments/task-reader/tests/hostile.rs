//! Damaged programs: no crash, no hang, and an error or a part of the truth.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{Profile, Program};
use task_reader::{Binary, Index, Reader};

/// Bytes that differ on each call, and are the same in each run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Reads a program, and with it a process, which may run another.
fn read(path: &Path, process: Option<u32>) {
    if let Ok(binary) = Binary::of_file(path)
        && let Ok(index) = Index::new(&binary)
        && let Some(pid) = process
    {
        // Values are nonsense where types are: text of them must still be made.
        if let Ok(snapshot) = Reader::new(&index).snapshot(pid) {
            let _ = snapshot.to_string();
        }
    }
}

/// Damages a program 200 times, and reads each.
fn mutate(whole: &[u8], path: &Path, process: Option<u32>) {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    for round in 0..200 {
        let mut bytes = whole.to_vec();
        // Headers of the file and of sections are few among many bytes: each third round damages only them.
        let places = match round % 3 {
            0 => 0..64.min(bytes.len()),
            1 => bytes.len().saturating_sub(4096)..bytes.len(),
            _ => 0..bytes.len(),
        };
        let length = (places.end - places.start) as u64;
        for _ in 0..(1 << (round % 12)) {
            let at = places.start + usize::try_from(noise.next() % length).unwrap();
            bytes[at] = noise.next().to_le_bytes()[0];
        }
        if round % 7 == 0 {
            bytes.truncate(usize::try_from(noise.next()).unwrap_or(usize::MAX) % bytes.len());
        }
        fs::write(path, bytes).unwrap();
        read(path, process);
    }
}

#[test]
fn mutations_of_this_program() {
    let whole = fs::read(std::env::current_exe().unwrap()).unwrap();
    mutate(&whole, &folder("mutations").join("program"), None);
}

#[test]
#[ignore = "compiles the fixtures, and takes minutes"]
fn weekly_mutations_of_a_program_with_tasks() {
    let program = Program::start("kinds", Profile::Debug);
    let whole = fs::read(format!("/proc/{}/exe", program.pid())).unwrap();
    mutate(
        &whole,
        &folder("mutations-of-tasks").join("program"),
        Some(program.pid()),
    );
    assert!(common::stopped(program.pid()).is_empty());
    assert!(program.snapshot().tasks.len() > 50);
}

#[test]
fn what_is_no_program() {
    let folder = folder("no-programs");
    let empty = folder.join("empty");
    fs::write(&empty, []).unwrap();
    let words = folder.join("words");
    fs::write(&words, "no program").unwrap();
    let sparse = folder.join("sparse");
    fs::File::create(&sparse).unwrap().set_len(1 << 40).unwrap();
    for path in [
        &empty,
        &words,
        &sparse,
        &folder,
        &PathBuf::from("/dev/zero"),
        &PathBuf::from("/nowhere"),
    ] {
        let error = Binary::of_file(path).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
    let pipe = folder.join("pipe");
    let _ = fs::remove_file(&pipe);
    assert!(
        std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let error = Binary::of_file(&pipe).unwrap_err().to_string();
    assert!(error.contains("no plain file"), "{error}");
}

#[test]
fn a_process_that_is_not_there() {
    let error = Binary::of_process(u32::MAX).unwrap_err().to_string();
    assert!(error.contains("no process has the number"), "{error}");
}

#[test]
fn a_program_without_tokio() {
    // Tests have full debug information, and this one no runtime.
    let binary = Binary::of_file(&std::env::current_exe().unwrap()).unwrap();
    let error = Index::new(&binary).unwrap_err().to_string();
    assert!(
        error.contains("tokio") || error.contains("debug = true"),
        "{error}"
    );
}
