//! What a heap profile of dhat's says, besides what its own viewer shows.

use serde::Deserialize;

/// The part of dhat's JSON (format version 2) that is read here.
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
    /// Reads what dhat wrote.
    ///
    /// # Errors
    ///
    /// When it is not dhat's JSON.
    pub fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let file: File = serde_json::from_slice(json)?;
        let mut lines: Vec<String> = file
            .pps
            .iter()
            .map(|point| {
                let frames: Vec<&str> = point
                    .fs
                    .iter()
                    .rev()
                    .filter_map(|&index| Some(name(file.ftbl.get(index)?)))
                    .collect();
                format!("{} {}\n", frames.join(";").replace("; ", ", "), point.tbk)
            })
            .collect();
        lines.sort_unstable();
        Ok(Self {
            blocks: file.pps.iter().map(|point| point.tbk).sum(),
            bytes: file.pps.iter().map(|point| point.tb).sum(),
            folded: lines.concat(),
        })
    }
}

/// `0x55d0: warp::server::run (src/server.rs:12:3)` without address and place.
fn name(frame: &str) -> &str {
    let named = frame.split_once(": ").map_or(frame, |(_, rest)| rest);
    named.rsplit_once(" (").map_or(named, |(name, _)| name)
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
}
