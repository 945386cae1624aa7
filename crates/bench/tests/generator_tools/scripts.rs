//! Every chapter has one script for each tool, and all three generators send the same.

use std::fs;

use measurement::chapter_file::ChapterFile;

use crate::workshop;

fn chapters() -> Vec<ChapterFile> {
    let mut chapters: Vec<ChapterFile> = fs::read_dir(workshop().join("chapters"))
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path().join("chapter.toml");
            let text = fs::read_to_string(&path).ok()?;
            Some(ChapterFile::parse(&text, &path.display().to_string(), 2).unwrap())
        })
        .collect();
    chapters.sort_by_key(|chapter| chapter.chapter);
    assert!(!chapters.is_empty());
    chapters
}

#[test]
fn scripts_ask_and_expect_what_the_chapter_says() {
    for chapter in chapters() {
        let (number, exchange) = (chapter.chapter, &chapter.exchange);
        for (key, value) in [("path", &exchange.path), ("answer", &exchange.answer)] {
            // JSON has double quotes of its own.
            let quote = if value.contains('"') { '\'' } else { '"' };
            let line = format!("{key} = {quote}{value}{quote}");
            says(&format!("locust/chapter{number}.py"), &line);
            let line = format!("{key}: '{value}'");
            says(&format!("k6/chapter{number}.js"), &line);
        }
    }
}

#[test]
fn scripts_send_the_chapters_body() {
    for chapter in chapters() {
        let (number, Some(body)) = (chapter.chapter, &chapter.exchange.body) else {
            continue;
        };
        // A long body is a sentence over and over.
        let length = (1..=body.len())
            .find(|length| {
                body.len() % length == 0 && body == &body[..*length].repeat(body.len() / length)
            })
            .unwrap_or(body.len());
        let (sentence, times) = (&body[..length], body.len() / length);
        let (k6, locust, quote) = match times {
            1 => (String::new(), String::new(), '\''),
            _ => (format!(".repeat({times})"), format!(" * {times}"), '"'),
        };
        says(
            &format!("k6/chapter{number}.js"),
            &format!("body: '{sentence}'{k6},"),
        );
        says(
            &format!("locust/chapter{number}.py"),
            &format!("body = {quote}{sentence}{quote}{locust}\n"),
        );
    }
}

#[test]
fn scripts_default_to_the_chapters_load() {
    let read = |script: &str| fs::read_to_string(workshop().join(script)).unwrap();
    let (k6, locust) = (read("k6/common.js"), read("locust/common.py"));
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
            says(
                &format!("k6/chapter{number}.js"),
                &format!("{in_k6}: {value},"),
            );
            says(
                &format!("locust/chapter{number}.py"),
                &format!("{in_locust} = {value}\n"),
            );
        }
        let warm_up = load.warm_up_s;
        assert!(k6.contains(&format!("number('WARM_UP', {warm_up});")));
        assert!(locust.contains(&format!("\"--warm-up\", type=float, default={warm_up:?},")));
    }
}

#[test]
fn scripts_send_the_bystanders_of_the_chapter() {
    for chapter in chapters() {
        let Some(bystander) = &chapter.bystander else {
            continue;
        };
        let (number, rate) = (chapter.chapter, chapter.load.bystanders_per_second);
        if rate == 0.0 {
            // They come in scenarios alone, which the scripts do not know.
            continue;
        }
        for (script, quote, key) in [
            (format!("k6/chapter{number}.js"), '\'', "perSecond: "),
            (format!("locust/chapter{number}.py"), '"', "per_second="),
        ] {
            says(&script, &format!("{quote}{}{quote}", bystander.path));
            says(&script, &format!("{quote}{}{quote}", bystander.answer));
            says(&script, &format!("{key}{rate},"));
        }
    }
}

#[test]
fn scripts_write_what_the_chapter_writes() {
    for chapter in chapters() {
        let Some(write) = &chapter.write else {
            continue;
        };
        let number = chapter.chapter;
        for value in [Some(&write.path), write.body.as_ref(), Some(&write.answer)]
            .into_iter()
            .flatten()
        {
            says(&format!("k6/chapter{number}.js"), &format!("'{value}'"));
            says(
                &format!("locust/chapter{number}.py"),
                &format!("\"{value}\""),
            );
        }
    }
}

#[track_caller]
fn says(script: &str, words: &str) {
    let text = fs::read_to_string(workshop().join(script))
        .unwrap_or_else(|error| panic!("{script}: {error}"));
    assert!(text.contains(words), "{script} does not say {words}");
}
