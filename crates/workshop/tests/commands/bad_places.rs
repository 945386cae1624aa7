//! The wrong folder, a damaged file.

use crate::workshop::{CHAPTER, Said, Workshop};

#[test]
fn outside_the_workshop_one_is_told_to_go_inside() {
    let workshop = Workshop::new();
    let elsewhere = tempfile::tempdir().unwrap();
    for words in ["", "hint 1", "reset 1", "steps", "setup", "doctor"] {
        let said = Said::of(workshop.command(words).current_dir(&elsewhere)).refused(2);
        assert!(said.contains("not inside the workshop"), "{said}");
    }
}

#[test]
fn a_folder_below_the_root_will_do() {
    let workshop = Workshop::new();
    let below = workshop.path(CHAPTER).join("src");
    Said::of(workshop.command("reset 1").current_dir(below)).good();
}

#[test]
fn a_chapter_file_that_is_damaged_is_named() {
    let workshop = Workshop::new();
    workshop.write(
        &format!("{CHAPTER}/chapter.toml"),
        "chapter = 1\nminutes =\n",
    );
    let said = workshop.run("").refused(2);
    assert!(said.contains("chapters/1-small/chapter.toml"), "{said}");
}
