//! What newcomers mistype: exit code 2, and a sentence that says what is wrong and what is right.

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

#[test]
fn a_chapter_that_is_none_is_answered_with_those_there_are() {
    for command in [
        "prove", "check", "hint", "solution", "reset", "load", "capture",
    ] {
        for wrong in ["foo", "-1", "1.5"] {
            let words = [wrong, "not a chapter's number; the only chapter is 1"];
            refused(&format!("{command} {wrong}"), &words);
        }
        let words = ["'99'", "no such chapter; the only chapter is 1"];
        refused(&format!("{command} 99"), &words);
    }
    refused("profile x --kind cpu", &["not a chapter's number"]);
}

#[test]
fn a_missing_chapter_is_asked_for() {
    for command in ["check", "hint", "solution", "reset", "load"] {
        let usage = format!("Usage: cargo workshop {command} <CHAPTER>");
        refused(command, &["<CHAPTER>", &usage]);
    }
    refused(
        "prove",
        &["or --all, which takes", "cargo workshop prove 1  "],
    );
    refused("prove 1 --all", &["cannot be used with"]);
}

#[test]
fn a_chapter_that_is_named_twice_is_told() {
    refused("prove 1 1", &["chapter 1 is named twice"]);
    refused("capture 1 1", &["chapter 1 is named twice"]);
}

#[test]
fn a_number_that_is_none_or_out_of_bounds_is_answered_with_the_bounds() {
    for (option, wrong, bounds) in [
        ("--seconds", "abc", "from 0.1 to 3600, such as 10"),
        ("--seconds", "0", "from 0.1 to 3600, such as 10"),
        ("--seconds", "-3", "from 0.1 to 3600, such as 10"),
        ("--users", "0", "from 1 to 1000000, such as 200"),
        ("--users", "-5", "from 1 to 1000000, such as 200"),
        ("--users", "many", "from 1 to 1000000, such as 200"),
        ("--think", "-1", "from 0 to 3600, such as 0.5"),
        ("--think", "nan", "from 0 to 3600, such as 0.5"),
        ("--think", "inf", "from 0 to 3600, such as 0.5"),
        ("--think", "1s", "from 0 to 3600, such as 0.5"),
        ("--users", "2.5", "from 1 to 1000000, such as 200"),
        ("--rate", "0", "from 0.01 to 1000000, such as 500"),
        ("--write-share", "1", "from 0 to 0.99, such as 0.05"),
    ] {
        let words = [option, wrong, "not a number", bounds];
        refused(&format!("load 1 {option} {wrong}"), &words);
    }
    refused("profile 1 --kind cpu --seconds 601", &["from 0.1 to 600"]);
    refused("prove 1 --pairs 0", &["from 1 to 1000"]);
    refused("prove 1 --pairs 2", &["at least 3"]);
    for nodes in ["1", "9"] {
        refused(&format!("prove 1 --numa-nodes {nodes}"), &["from 2 to 8"]);
    }
    for (cpus, word) in [
        ("0", "from 2 to 240"),
        ("300", "from 2 to 240"),
        ("6", "a multiple of the 4 regions"),
    ] {
        let line = format!("prove 1 --numa-nodes 4 --cpus {cpus}");
        refused(&line, &[word]);
    }
    refused("hint 1 --upto 0", &["from 1 to 99"]);
    refused("hint 1 --upto 3", &["hints 1 to 2"]);
}

#[test]
fn a_word_that_is_none_of_a_few_is_answered_with_them() {
    refused("chekc 1", &["a similar subcommand exists: 'check'"]);
    refused("setup k7", &["k6, locust, mdbook"]);
    refused("load 1 --with wrk", &["embedded, k6, locust"]);
    refused("profile 1 --kind memory", &["cpu, heap, await"]);
    refused("profile 1", &["--kind <KIND>"]);
    refused("--format xml", &["human, json"]);
    refused("load 1 --user 9", &["'--users'"]);
    refused("check 1 2", &["unexpected argument '2'"]);
}

#[test]
fn options_that_do_not_go_together_are_told() {
    refused("load 1 --with k6 --rate 5", &["leave out --with"]);
    refused("load 1 --write-share 0.1", &["chapter 1 has no writes"]);
    refused("prove --numa-nodes 4", &["--numa-nodes wants one chapter"]);
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

#[test]
fn help_lists_what_an_option_takes() {
    let workshop = Workshop::new();
    for command in ["load", "profile"] {
        let said = workshop.run(&format!("{command} --help")).good();
        assert!(said.contains("problem, exercise, solution"), "{said}");
        assert!(said.contains("The chapter's number"), "{said}");
    }
    let said = workshop.run("profile --help").good();
    assert!(said.contains("- await: What requests wait for"), "{said}");
}

/// With a server made of shell commands, as cargo would have built it.
#[cfg(unix)]
#[test]
fn a_variant_that_the_chapter_lacks_is_answered_with_those_it_has() {
    use crate::workshop::Said;

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
        let said = Said::of(workshop.command(&line).env("CARGO", &cargo));
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
