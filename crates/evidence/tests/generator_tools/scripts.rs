//! Every chapter has one script for each tool, and all three generators send the same.

use std::fs;
use std::path::{Path, PathBuf};

use evidence::chapter_file::ChapterFile;

fn workshop() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn chapters() -> Vec<ChapterFile> {
    let mut chapters: Vec<ChapterFile> = fs::read_dir(workshop().join("chapters"))
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path().join("chapter.toml");
            let text = fs::read_to_string(&path).ok()?;
            Some(ChapterFile::parse(&text, &path.display().to_string()).unwrap())
        })
        .collect();
    chapters.sort_by_key(|chapter| chapter.chapter);
    assert!(!chapters.is_empty());
    chapters
}

#[test]
fn scripts_ask_and_expect_what_the_chapter_says() {
    for chapter in chapters() {
        let number = chapter.chapter;
        let exchange = &chapter.exchange;
        for (script, quote, assign) in [
            (format!("locust/chapter{number}.py"), '"', " = "),
            (format!("k6/chapter{number}.js"), '\'', ": "),
        ] {
            let text = fs::read_to_string(workshop().join(&script))
                .unwrap_or_else(|error| panic!("{script}: {error}"));
            for (key, value) in [("path", &exchange.path), ("answer", &exchange.answer)] {
                let line = format!("{key}{assign}{quote}{value}{quote}");
                assert!(text.contains(&line), "{script} does not say {line}");
            }
        }
    }
}

#[test]
fn scripts_default_to_the_chapters_load() {
    let read = |script: &str| fs::read_to_string(workshop().join(script)).unwrap();
    let (k6, locust) = (read("k6/common.js"), read("locust/common.py"));
    for chapter in chapters() {
        let load = &chapter.load;
        for line in [
            format!("number('USERS', {});", load.users),
            format!("number('THINK', {});", load.think_s),
            format!("number('WARM_UP', {});", load.warm_up_s),
        ] {
            assert!(k6.contains(&line), "k6/common.js does not say {line}");
        }
        for line in [
            format!("num_users={},", load.users),
            format!("\"--think\", type=float, default={:?},", load.think_s),
            format!("\"--warm-up\", type=float, default={:?},", load.warm_up_s),
        ] {
            assert!(
                locust.contains(&line),
                "locust/common.py does not say {line}"
            );
        }
    }
}
