//! Readings of dhat's heap profiles, beyond what dhat's own viewer shows.

use std::collections::btree_map::{BTreeMap, Entry};

use serde::Deserialize;
use serde_json::{Map, Value};

/// The part of dhat's JSON (format version 2) that is needed here.
#[derive(Debug, Deserialize)]
struct File {
    pps: Vec<ProgramPoint>,
    ftbl: Vec<String>,
}

/// One place that allocates.
#[derive(Debug, Deserialize)]
struct ProgramPoint {
    /// Bytes in total.
    tb: u64,
    /// Blocks in total.
    tbk: u64,
    /// Frames, innermost first, as indices into the table.
    fs: Vec<usize>,
}

/// Totals and folded stacks of a heap profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapProfile {
    /// Allocations while it was taken.
    pub blocks: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Folded stacks, outermost frame first, weighted by allocations.
    pub folded: String,
}

impl HeapProfile {
    /// Reads a file that dhat wrote.
    ///
    /// # Errors
    ///
    /// Fails if it is not dhat's JSON.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let file: File = serde_json::from_slice(json)?;
        let (mut blocks, mut bytes, mut lines) = (0, 0, Vec::new());
        for point in &file.pps {
            blocks += point.tbk;
            bytes += point.tb;
            let mut frames = Vec::new();
            for index in point.fs.iter().rev() {
                if let Some(frame) = file.ftbl.get(*index) {
                    frames.push(name(frame));
                }
            }
            let stack = frames.join(";").replace("; ", ", ");
            lines.push(format!("{stack} {}\n", point.tbk));
        }
        lines.sort_unstable();
        Ok(Self {
            blocks,
            bytes,
            folded: lines.concat(),
        })
    }
}

/// Merges the stacks of dhat's JSON that differ only in how often a function calls itself in a row. A recursive sort
/// has thousands of these. Sums stay what they were; the largest use of a merged stack (`mb`, `mbk`) is an upper limit.
///
/// # Errors
///
/// Fails if it is not dhat's JSON.
pub fn without_recursion(json: &[u8]) -> Result<String, serde_json::Error> {
    let mut file: Map<String, Value> = serde_json::from_slice(json)?;
    let points: Vec<Map<String, Value>> =
        serde_json::from_value(file.remove("pps").unwrap_or_default())?;
    let mut merged: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for mut point in points {
        if let Some(Value::Array(frames)) = point.get_mut("fs") {
            frames.dedup();
        }
        match merged.entry(point["fs"].to_string()) {
            Entry::Vacant(first) => {
                first.insert(point);
            }
            Entry::Occupied(mut sum) => add(sum.get_mut(), &point),
        }
    }
    let points: Vec<Value> = merged.into_values().map(Value::from).collect();
    file.insert("pps".to_owned(), points.into());
    serde_json::to_string(&file)
}

/// Adds the figures of one program point to those of another.
fn add(sum: &mut Map<String, Value>, point: &Map<String, Value>) {
    for (name, value) in sum {
        let other = point.get(name).and_then(Value::as_u64);
        if let (Some(one), Some(other)) = (value.as_u64(), other) {
            *value = (one + other).into();
        }
    }
}

/// Removes what belongs to the machine from dhat's JSON: the command's folder and arguments, the process's
/// number, and the folders of the sources. dhat's viewer still opens the result.
///
/// # Errors
///
/// Fails if it is not JSON.
pub fn portable(json: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut file: Value = serde_json::from_slice(json)?;
    if let Some(command) = file["cmd"].as_str() {
        let program = command.split_whitespace().next().unwrap_or_default();
        let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
        file["cmd"] = name.into();
    }
    file["pid"] = 0.into();
    if let Some(frames) = file["ftbl"].as_array_mut() {
        for frame in frames {
            if let Some(text) = frame.as_str() {
                *frame = portable_frame(text).into();
            }
        }
    }
    serde_json::to_vec(&file)
}

/// Shortens a frame's source to a path relative to the registry, the toolchain or the workshop.
fn portable_frame(frame: &str) -> String {
    let Some((name, place)) = frame.rsplit_once(" (") else {
        return frame.to_owned();
    };
    let parts: Vec<&str> = place.split(['/', '\\']).collect();
    // Without one of these folders, the file's name is kept.
    let mut kept = &parts[parts.len() - 1..];
    for (folder, skipped) in [
        ("registry", 3),
        ("rustc", 2),
        ("chapters", 0),
        ("crates", 0),
    ] {
        if let Some(at) = parts.iter().position(|part| *part == folder)
            && let Some(rest) = parts.get(at + skipped..)
        {
            kept = rest;
            break;
        }
    }
    format!("{name} ({}", kept.join("/"))
}

/// Removes address and place from a frame such as `0x55d0: warp::server::run (src/server.rs:12:3)`.
fn name(frame: &str) -> &str {
    let (_, named) = frame.split_once(": ").unwrap_or(("", frame));
    let (name, _) = named.rsplit_once(" (").unwrap_or((named, ""));
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_folded_from_the_outermost_frame() {
        let json = br#"{"dhatFileVersion":2,"pps":[{"tb":64,"tbk":2,"fs":[2,1]}],
            "ftbl":["[root]","0x1: main (src/main.rs:1:1)","0x2: <T as U>::grow (lib.rs:2:2)"]}"#;
        let profile = HeapProfile::read(json).expect("dhat's JSON");
        assert_eq!(profile.folded, "main;<T as U>::grow 2\n");
        assert_eq!((profile.blocks, profile.bytes), (2, 64));
    }

    #[test]
    fn recursion_is_merged_and_sums_stay() {
        let json = br#"{"dhatFileVersion":2,"pps":[{"tb":64,"tbk":2,"fs":[3,2,2,2,1]},{"tb":6,"tbk":1,"fs":[3,2,1]},
            {"tb":5,"tbk":4,"fs":[3,1]}],
            "ftbl":["[root]","0x1: main (a.rs:1:1)","0x2: sort (b.rs:2:2)","0x3: grow (c.rs:3:3)"]}"#;
        let merged = without_recursion(json).expect("dhat's JSON");
        let profile = HeapProfile::read(merged.as_bytes()).expect("dhat's JSON");
        assert_eq!(profile.folded, "main;grow 4\nmain;sort;grow 3\n");
        assert_eq!((profile.blocks, profile.bytes), (7, 75));
        assert_eq!(without_recursion(merged.as_bytes()).expect("JSON"), merged);
    }

    #[test]
    fn a_profile_does_not_name_the_machine_that_it_comes_from() {
        let json = br#"{"cmd":"/home/me/workshop/target/debug/chapter3 problem --port 0","pid":77,
            "pps":[],"ftbl":["[root]",
            "0x1: alloc (/rustc/59807616/library/alloc/src/alloc.rs:1:2)",
            "0x2: fold (/home/me/workshop/chapters/3-clone/src/problem.rs:3:4)",
            "0x3: run (/home/me/.cargo/registry/src/index-1/warp-0.4.0/src/server.rs:5:6)",
            "0x4: main (/home/me/x.c:7)"]}"#;
        let text = String::from_utf8(portable(json).expect("JSON")).expect("text");
        assert!(!text.contains("/home"), "{text}");
        for kept in [
            "(library/alloc/src/alloc.rs:1:2)",
            "(chapters/3-clone/src/problem.rs:3:4)",
            "(warp-0.4.0/src/server.rs:5:6)",
            "(x.c:7)",
            "\"cmd\":\"chapter3\"",
        ] {
            assert!(text.contains(kept), "{kept} is not in {text}");
        }
    }
}
