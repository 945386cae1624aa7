//! The ticket shop of a workshop: put back without a loss.

use crate::step_branches::{committed, git};
use crate::workshop::{Said, Workshop, names};

const MAIN: &str = "capstone/src/main.rs";
const SCORES: &str = ".workshop/capstone/history.json";

/// A workshop with a shop, committed; what is ignored here is ignored there.
fn with_a_shop() -> Workshop {
    let workshop = committed();
    workshop.write(".gitignore", "/.workshop\n/capstone/data\n");
    workshop.write("capstone/Cargo.toml", "[workspace]\n");
    workshop.write(MAIN, "slow");
    git(&workshop.path(""), "add .");
    git(&workshop.path(""), "commit --quiet --message Shop");
    workshop
}

#[test]
fn reset_puts_the_shop_back_and_keeps_all_of_the_learners() {
    let workshop = with_a_shop();
    let root = workshop.path("");
    workshop.write(SCORES, "[]");
    workshop.write("capstone/data/shop.db", "rows");
    workshop.write("mine.txt", "mine");
    workshop.write(MAIN, "staged");
    workshop.write("capstone/src/added.rs", "added");
    git(&root, "add capstone");
    workshop.write(MAIN, "fast");
    workshop.write("capstone/src/cache/new.rs", "new");
    std::fs::remove_file(workshop.path("capstone/Cargo.toml")).unwrap();

    let said = workshop.run("capstone reset").good();
    let kept = said
        .split_whitespace()
        .find(|word| word.starts_with(".workshop/kept/capstone-20"));
    let kept = |name: &str| workshop.read(&format!("{}/{name}", kept.unwrap()));
    assert_eq!(kept("src/main.rs"), "fast");
    assert_eq!(kept("src/added.rs"), "added");
    assert_eq!(kept("src/cache/new.rs"), "new");
    assert_eq!(workshop.read(MAIN), "slow");
    // Scores, the database and what is no shop are left alone.
    assert_eq!(workshop.read(SCORES), "[]");
    assert_eq!(workshop.read("capstone/data/shop.db"), "rows");
    assert_eq!(git(&root, "status --porcelain"), "?? mine.txt");

    let said = workshop.run("capstone reset").good();
    assert!(said.contains("nothing to do"), "{said}");
}

/// Of what the learner committed the last commit is not the shop as it was shipped.
#[test]
fn reset_goes_back_behind_the_learners_own_commits() {
    let shipped = with_a_shop();
    let learner = shipped.path("learner");
    git(&shipped.path(""), "clone --quiet . learner");
    std::fs::write(learner.join(MAIN), "fast").unwrap();
    git(&learner, "commit --quiet --all --message Cache");
    let reset = |words: &str| {
        let mut reset = shipped.command(words);
        Said::of(reset.current_dir(&learner))
    };
    let said = reset("capstone reset").good();
    assert!(said.contains(" Shop; your version"), "{said}");
    assert_eq!(std::fs::read_to_string(learner.join(MAIN)).unwrap(), "slow");
    // Within the same second.
    reset("capstone reset --to HEAD").good();
    assert_eq!(names(&learner.join(".workshop/kept")).len(), 2);
    assert_eq!(std::fs::read_to_string(learner.join(MAIN)).unwrap(), "fast");
    let said = reset("capstone reset --to HEAD~2").refused(2);
    assert!(said.contains("no commit with a ticket shop"), "{said}");
}

#[test]
fn reset_changes_nothing_when_the_shop_cannot_be_kept() {
    let workshop = with_a_shop();
    workshop.write(MAIN, "fast");
    workshop.write(".workshop/kept", "a file");
    let said = workshop.run("capstone reset").refused(1);
    assert!(said.contains("nothing was changed"), "{said}");
    assert_eq!(workshop.read(MAIN), "fast");
}
