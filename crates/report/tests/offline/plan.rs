//! How long a proof of a chapter takes, and where it puts the server.

use bench::{placement::Placement, proof::planned_s};
use measurement::chapter_file::ChapterFile;

use crate::support::chapter;

const CHAPTER_4: &str = include_str!("../../../../chapters/4-client-per-request/chapter.toml");
const CHAPTER_6: &str = include_str!("../../../../chapters/6-processor-group-limit/chapter.toml");

fn parse(text: &str) -> ChapterFile {
    ChapterFile::parse(text, "chapter.toml", 2).unwrap()
}

#[test]
fn a_proof_of_chapter_1_leaves_room_in_a_minute() {
    let (least, most) = planned_s(&chapter());
    assert!(least < 45.0 && least < most, "{least} to {most} s of load");
}

#[test]
fn another_upstream_makes_a_proof_shorter() {
    let file = parse(CHAPTER_4);
    let planned = planned_s(&file);
    let other = planned_s(&file.with_another_upstream());
    assert!(other.0 < planned.0 && other.1 < planned.1);
}

#[test]
fn server_and_generator_share_all_cpus_where_the_claim_is_about_them() {
    let placement = Placement::of_chapter(&parse(CHAPTER_6));
    assert!(placement.server.is_empty() && placement.generator.is_empty());
    assert_eq!(Placement::of_chapter(&chapter()), Placement::apart());
}
