//! The wrong folder, a damaged file.

use crate::workshop::{CHAPTER, Workshop};

#[test]
fn outside_the_workshop_one_is_told_to_go_inside() {
    let workshop = Workshop::new();
    let elsewhere = tempfile::tempdir().unwrap();
    for arguments in [
        &[][..],
        &["hint", "1"],
        &["reset", "1"],
        &["steps"],
        &["setup"],
        &["doctor"],
    ] {
        let said = workshop
            .command(arguments)
            .current_dir(&elsewhere)
            .output()
            .unwrap();
        let said = crate::workshop::Said::from(said).refused(2);
        assert!(said.contains("not inside the workshop"), "{said}");
    }
}

#[test]
fn a_folder_below_the_root_will_do() {
    let workshop = Workshop::new();
    let said = workshop
        .command(&["reset", "1"])
        .current_dir(workshop.path(CHAPTER).join("src"))
        .output()
        .unwrap();
    assert!(said.status.success(), "{said:?}");
}

#[test]
fn a_chapter_file_that_is_damaged_is_named() {
    let workshop = Workshop::new();
    workshop.write(
        &format!("{CHAPTER}/chapter.toml"),
        "chapter = 1\nminutes =\n",
    );
    let said = workshop.run(&[]).refused(2);
    assert!(said.contains("chapters/1-small/chapter.toml"), "{said}");
}
