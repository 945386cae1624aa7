//! Every chapter has one script for each tool, and all three generators send the same.

use std::fs;

use course::measurement::chapter_file::ChapterFile;

use crate::workshop;

fn chapters() -> Vec<ChapterFile> {
    let chapters = fs::read_dir(workshop().join("chapters")).unwrap();
    let chapters = chapters.filter_map(|entry| {
        let path = entry.unwrap().path().join("chapter.toml");
        let text = fs::read_to_string(&path).ok()?;
        Some(ChapterFile::parse(&text, &path.display().to_string(), 2).unwrap())
    });
    let chapters: Vec<ChapterFile> = chapters.collect();
    assert!(!chapters.is_empty());
    chapters
}

#[test]
fn scripts_ask_expect_and_write_what_the_chapter_says() {
    for chapter in chapters() {
        let (number, exchange) = (chapter.chapter, &chapter.exchange);
        for (key, value) in [("path", &exchange.path), ("answer", &exchange.answer)] {
            // JSON has double quotes of its own.
            let quote = if value.contains('"') { '\'' } else { '"' };
            let in_locust = format!("{key} = {quote}{value}{quote}");
            both_say(number, &format!("{key}: '{value}'"), &in_locust);
        }
        if let Some(body) = &exchange.body {
            // A long body is a sentence over and over.
            let is_all = |length: &usize| *body == body[..*length].repeat(body.len() / length);
            let length = (1..=body.len()).find(is_all).unwrap_or(body.len());
            let (sentence, times) = (&body[..length], body.len() / length);
            let (k6, locust, quote) = match times {
                1 => (String::new(), String::new(), '\''),
                _ => (format!(".repeat({times})"), format!(" * {times}"), '"'),
            };
            let in_locust = format!("body = {quote}{sentence}{quote}{locust}\n");
            both_say(number, &format!("body: '{sentence}'{k6},"), &in_locust);
        }
        if let Some(write) = &chapter.write {
            let values = [Some(&write.path), write.body.as_ref(), Some(&write.answer)];
            for value in values.into_iter().flatten() {
                both_say(number, &format!("'{value}'"), &format!("\"{value}\""));
            }
        }
    }
}

#[test]
fn scripts_default_to_the_chapters_load() {
    for chapter in chapters() {
        let (number, load) = (chapter.chapter, &chapter.load);
        let mut settings = vec![("think", "think", load.think_s.to_string())];
        settings.push(match load.users_per_cpu {
            Some(each) => ("usersPerCpu", "users_per_cpu", each.to_string()),
            None => ("users", "users", load.users.to_string()),
        });
        if load.write_share > 0.0 {
            settings.push(("writeShare", "write_share", load.write_share.to_string()));
        }
        if let Some(times) = chapter.times_alone {
            settings.push(("timesAlone", "times_alone", times.to_string()));
        }
        for (in_k6, in_locust, value) in settings {
            let in_locust = format!("{in_locust} = {value}\n");
            both_say(number, &format!("{in_k6}: {value},"), &in_locust);
        }
        let warm_up = load.warm_up_s;
        says("k6/common.js", &format!("number('WARM_UP', {warm_up});"));
        let in_locust = format!("\"--warm-up\", type=float, default={warm_up:?},");
        says("locust/common.py", &in_locust);
        // Some bystanders come only in scenarios, which the scripts do not know.
        let rate = load.bystanders_per_second;
        if let Some(bystander) = chapter.bystander.as_ref().filter(|_| rate > 0.0) {
            for value in [&bystander.path, &bystander.answer] {
                both_say(number, &format!("'{value}'"), &format!("\"{value}\""));
            }
            both_say(
                number,
                &format!("perSecond: {rate},"),
                &format!("per_second={rate},"),
            );
        }
    }
}

#[track_caller]
fn both_say(chapter: u32, in_k6: &str, in_locust: &str) {
    says(&format!("k6/chapter{chapter}.js"), in_k6);
    says(&format!("locust/chapter{chapter}.py"), in_locust);
}

#[track_caller]
fn says(script: &str, words: &str) {
    let text = fs::read_to_string(workshop().join(script))
        .unwrap_or_else(|error| panic!("{script}: {error}"));
    assert!(text.contains(words), "{script} does not say {words}");
}
