//! Mistakes of newcomers on the command line: exit code 2, and a sentence that says what is wrong and what is right.

use crate::workshop::Workshop;

/// Asserts that `line` is refused as wrong usage, with these words.
#[track_caller]
fn refused(line: &str, words: &[&str]) {
    let said = Workshop::new().run(line);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.out.is_empty(), "{said:?}");
    assert!(said.err.starts_with("error: "), "{said:?}");
    for word in words {
        assert!(said.err.contains(word), "no `{word}` in {said:?}");
    }
}

/// A line each: what is typed, and behind each bar some of the words that refuse it.
#[track_caller]
fn all_refused(table: &str) {
    for line in table.trim().lines() {
        let mut parts = line.split('|').map(str::trim);
        let typed = parts.next().unwrap();
        refused(typed, &parts.collect::<Vec<_>>());
    }
}

#[test]
fn a_chapter_that_is_none_is_answered_with_those_there_are() {
    for command in [
        "prove", "check", "hint", "solution", "reset", "load", "capture",
    ] {
        let words = ["'99'", "no such chapter; the only chapter is 1"];
        refused(&format!("{command} 99"), &words);
    }
    all_refused(
        "
        hint foo | not a chapter's number; the only chapter is 1
        hint -1 | not a chapter's number; the only chapter is 1
        hint | <CHAPTER> | Usage: cargo workshop hint <CHAPTER>
        profile x --kind cpu | not a chapter's number
        prove 1 1 | chapter 1 is named twice
        prove | or --all, which takes | cargo workshop prove 1
        prove 1 --all | cannot be used with
        watch 99 | no such chapter; the only chapter is 1
        predict | <CHAPTER>
        predict 1 --gain many | not a number of 0 or more | such as 10-100
        predict 1 --gain 9-3 | smaller number first
        steps 99 | no such chapter; the only chapter is 1; or capstone
        ",
    );
}

#[test]
fn what_does_not_fit_is_answered_with_what_does() {
    all_refused(
        "
        load 1 --seconds abc | not a number | from 0.1 to 3600, such as 10
        load 1 --seconds -3 | not a number | from 0.1 to 3600, such as 10
        load 1 --users 2.5 | not a number | from 1 to 1000000, such as 200
        load 1 --think nan | not a number | from 0 to 3600, such as 0.5
        load 1 --think inf | not a number | from 0 to 3600, such as 0.5
        load 1 --rate 0 | from 0.01 to 1000000, such as 500
        load 1 --write-share 1 | from 0 to 0.99, such as 0.05
        prove 1 --triplets 2 | at least 3
        prove 1 --numa-nodes 9 | from 2 to 8
        prove 1 --numa-nodes 4 --cpus 300 | from 2 to 240
        prove 1 --numa-nodes 4 --cpus 6 | a multiple of the 4 regions
        prove --numa-nodes 4 | --numa-nodes takes one chapter
        hint 1 --upto 0 | from 1 to 99
        hint 1 --upto 3 | hints 1 to 2
        chekc 1 | a similar subcommand exists: 'check'
        load 1 --get / | has its own requests
        load 1 --rate 5 --warm-up 2 | has its own requests
        load 1 --with k6 --rate 5 | leave out --with
        load 1 --write-share 0.1 | chapter 1 has no writes
        ",
    );
}

#[test]
fn a_host_that_is_elsewhere_or_answers_nothing_is_told() {
    for wrong in ["example.org", "http://192.0.2.1:80", "127.0.0.1", "8080"] {
        let words = ["a server on this machine", wrong];
        refused(&format!("load 1 --host {wrong}"), &words);
    }
    // A port that was free a moment ago.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let words = ["no server answers at 127.0.0.1:", "leave out --host"];
    for host in ["http://127.0.0.1", "localhost"] {
        refused(&format!("load 1 --host {host}:{port}/"), &words);
    }
}

/// Uses a server made of shell commands, as if cargo had built it.
#[cfg(unix)]
#[test]
fn a_variant_that_the_chapter_lacks_is_answered_with_those_it_has() {
    use terminal::testing::Ran;

    let workshop = Workshop::new();
    let server = workshop.stand_in(
        "chapter1",
        "{ echo \"error: invalid value '$1' for '[VARIANT]'\"\n\
         echo '  [possible values: problem, exercise, solution]'; echo\n\
         echo \"  tip: a similar value exists: 'problem'\"; echo\n\
         echo \"For more information, try '--help'.\"; } >&2; exit 2",
    );
    let built = format!(
        r#"echo '{{"reason":"compiler-artifact","target":{{"name":"chapter1"}},"executable":"{}"}}'"#,
        server.display()
    );
    let cargo = workshop.stand_in("cargo", &built);
    for command in ["load 1", "profile 1 --kind cpu"] {
        let line = format!("{command} --variant probelm");
        let said = Ran::of(workshop.command(&line).env("CARGO", &cargo));
        assert_eq!(said.code, Some(2), "{said:?}");
        assert_eq!(
            said.err.lines().last(),
            Some(
                "error: invalid value 'probelm' for --variant; possible values: problem, exercise, \
                 solution; tip: a similar value exists: 'problem'"
            ),
            "{said:?}"
        );
    }
}
