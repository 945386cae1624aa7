//! Length of a proof of a chapter, and the CPUs of its server.

use course::bench::proof::planned_s;
use course::measurement::chapter_file::ChapterFile;
use engine::placement::Placement;

use crate::support::chapter;

const CHAPTER_6: &str =
    include_str!("../../../../../chapters/6-processor-group-limit/chapter.toml");

#[test]
fn a_proof_of_chapter_1_leaves_room_in_a_minute() {
    let (least, most) = planned_s(&chapter());
    assert!(least < 45.0 && least < most, "{least} to {most} s of load");
}

#[test]
fn server_and_generator_share_all_cpus_where_the_claim_is_about_them() {
    let file = ChapterFile::parse(CHAPTER_6, "chapter.toml", 2).unwrap();
    let placement = course::bench::rounds::placement_of(&file);
    assert!(placement.server.is_empty() && placement.generator.is_empty());
    assert_eq!(
        course::bench::rounds::placement_of(&chapter()),
        Placement::apart()
    );
}
