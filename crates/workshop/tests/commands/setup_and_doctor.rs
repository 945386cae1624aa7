//! Installing with stand-ins for Go, Python and cargo: nothing is downloaded here.

use crate::workshop::Workshop;
use terminal::testing::Ran;

#[test]
fn without_go_or_python_one_is_told_where_to_get_it() {
    let workshop = Workshop::new();
    workshop.write("locust/requirements.txt", "locust==2.47.0\n");
    let nothing = tempfile::tempdir().unwrap();
    for (tool, words) in [
        ("k6", ["MISSING: building k6 needs Go", "https://go.dev/dl"]),
        ("locust", ["Locust 2.47.0", "needs Python 3"]),
    ] {
        let mut setup = workshop.command(&format!("setup {tool}"));
        let said = Ran::of(setup.env("PATH", nothing.path()));
        assert_eq!(said.code, Some(1), "{said:?}");
        for word in words {
            assert!(said.out.contains(word), "no `{word}` in {said:?}");
        }
    }
}

#[test]
fn a_tool_that_setup_does_not_install_is_answered_with_those_that_it_does() {
    let said = Workshop::new().run("setup git");
    assert_eq!(said.code, Some(2), "{said:?}");
    for word in ["git", "k6", "Locust", "kernel"] {
        assert!(said.err.contains(word), "no `{word}` in {said:?}");
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let workshop = Workshop::new();
    workshop.write(".tools", "a file where the folder should be");
    let said = workshop.run("setup k6").refused(1);
    assert!(said.contains(".tools"), "{said}");
}

#[test]
fn the_doctor_names_rust_and_what_is_missing() {
    let workshop = Workshop::new();
    let said = workshop.run("doctor --format json").json();
    crate::results::described(&said);
    let finding = |name: &str| {
        let findings = said.as_array().unwrap().iter();
        findings
            .clone()
            .find(|finding| finding["name"] == name)
            .cloned()
            .unwrap_or_else(|| panic!("{name} is not in {said}"))
    };
    assert_eq!(finding("rustc")["state"], "ok");
    assert_eq!(finding("k6")["state"], "missing");
    let remedy = finding("k6")["remedy"].as_str().unwrap().to_owned();
    assert!(remedy.contains("cargo workshop setup k6"), "{remedy}");
    let files = finding("open files")["found"].as_str().unwrap().to_owned();
    assert!(files.contains("3100"), "users of the largest load: {files}");
}

#[test]
fn the_doctor_minds_what_is_not_there() {
    let workshop = Workshop::new();
    let none = workshop.path("none");
    let mut doctor = workshop.command("doctor");
    // Taken by this test, or by somebody else: either way it is not free.
    let _taken = std::net::TcpListener::bind("127.0.0.1:8080");
    let said = Ran::of(doctor.env("RUSTC", &none));
    assert_eq!(said.code, Some(1), "{said:?}");
    for word in ["WRONG   rustc", "note    port 8080"] {
        assert!(said.out.contains(word), "no `{word}` in {said:?}");
    }
}

#[cfg(unix)]
mod with_stand_ins {
    use super::{Ran, Workshop};
    use terminal::testing::names;

    fn run(workshop: &Workshop, tool: &str) -> Ran {
        let mut command = workshop.command(&format!("setup {tool}"));
        let path = format!("{}:/usr/bin:/bin", workshop.path("path").display());
        let cargo = workshop.path("path/cargo");
        Ran::of(command.env("PATH", path).env("CARGO", cargo))
    }

    /// Script of a `go` that installs a k6 and counts its installations.
    const GO: &str = r#"
        [ "$1" = version ] && echo 'go version go1.26.8 linux/amd64' && exit
        [ "$*" = 'install go.k6.io/k6@v1.8.1' ] || exit 9
        printf '#!/bin/sh\necho k6 v1.8.1\n' > "$GOBIN/k6"
        chmod +x "$GOBIN/k6"
        echo called >> "$0.calls""#;

    #[test]
    fn k6_is_installed_once_in_place_of_another_version() {
        let workshop = Workshop::new();
        workshop.stand_in("go", GO);
        workshop.program(".tools/bin/k6", "echo k6 v1.7.0");
        let said = run(&workshop, "k6").good();
        assert!(said.contains("installed in"), "{said}");
        let said = run(&workshop, "k6").good();
        assert!(said.contains("there already"), "{said}");
        assert!(workshop.read(".tools/bin/k6").contains("1.8.1"));
        assert_eq!(workshop.read("path/go.calls"), "called\n");
        assert_eq!(names(&workshop.path(".tools")), ["bin", "setup.lock"]);
    }

    #[test]
    fn all_programs_of_a_crate_are_installed() {
        let workshop = Workshop::new();
        // The last argument is the folder to install into.
        let cargo = r#"
            [ "$*" = "install --locked --quiet flamegraph --version 0.6.14 --profile dev --root ${10}" ] || exit 9
            mkdir "${10}/bin"
            for program in flamegraph cargo-flamegraph; do
                printf '#!/bin/sh\necho flamegraph 0.6.14\n' > "${10}/bin/$program"
                chmod +x "${10}/bin/$program"
            done"#;
        workshop.stand_in("cargo", cargo);
        let said = run(&workshop, "flamegraph").good();
        assert!(said.contains("installed in"), "{said}");
        let said = run(&workshop, "flamegraph").good();
        assert!(said.contains("flamegraph 0.6.14 there already"), "{said}");
        let programs = ["cargo-flamegraph", "flamegraph"];
        assert_eq!(names(&workshop.path(".tools/bin")), programs);
    }

    #[test]
    fn a_go_that_cannot_reach_the_network_is_quoted_and_leaves_nothing() {
        let workshop = Workshop::new();
        workshop.stand_in(
            "go",
            "[ \"$1\" = version ] && echo go1.26.8 && exit\necho 'no such host' >&2; exit 1",
        );
        let said = run(&workshop, "k6");
        assert_eq!(said.code, Some(1), "{said:?}");
        assert!(said.err.contains("no such host"), "{said:?}");
        assert!(said.out.contains("check the network"), "{said:?}");
        assert_eq!(names(&workshop.path(".tools")), ["setup.lock"]);
    }

    #[test]
    fn what_an_interrupted_call_left_behind_goes() {
        let workshop = Workshop::new();
        workshop.stand_in(
            "go",
            "[ \"$1\" = version ] && echo go1.26.8 && exit\necho half > \"$GOBIN/k6\"
             kill -KILL $PPID",
        );
        assert_ne!(run(&workshop, "k6").code, Some(0));
        let left = names(&workshop.path(".tools"));
        assert!(left[0].starts_with("partial-"), "{left:?}");
        assert!(!workshop.path(".tools/bin/k6").exists());
        workshop.stand_in("go", GO);
        run(&workshop, "k6").good();
        assert_eq!(names(&workshop.path(".tools")), ["bin", "setup.lock"]);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    fn a_kernel_is_installed_if_its_hash_is_right_or_nobody_knows_it() {
        let workshop = Workshop::new();
        workshop.stand_in(
            "apt-cache",
            r#"case $1 in
               show) [ -e "$0.known" ] && echo "Package: $2";;
               depends) echo '  Depends: linux-image-9.9.0-cloud-amd64';;
               esac"#,
        );
        workshop.stand_in("apt-get", "echo something > \"${2%%=*}.deb\"");
        workshop.stand_in(
            "dpkg-deb",
            "mkdir -p \"$3/boot\" && cp \"$2\" \"$3/boot/vmlinuz-9.9\"",
        );

        workshop.write("path/apt-cache.known", "");
        let said = run(&workshop, "kernel");
        assert_eq!(said.code, Some(1), "{said:?}");
        for word in [
            "MISSING: linux-image-",
            "nothing was installed",
            "SHA-256 is",
        ] {
            assert!(said.out.contains(word), "no `{word}` in {said:?}");
        }
        assert_eq!(names(&workshop.path(".tools")), ["setup.lock"]);

        std::fs::remove_file(workshop.path("path/apt-cache.known")).unwrap();
        let said = run(&workshop, "kernel");
        assert_eq!(said.code, Some(0), "{said:?}");
        let note = "linux-image-9.9.0-cloud-amd64 is taken instead, for which apt's signature alone speaks";
        assert!(said.err.contains(note), "{said:?}");
        assert_eq!(workshop.read(".tools/kernel/vmlinuz"), "something\n");
    }

    /// Script of a `python3` that makes environments whose `pip` only records its calls.
    const PYTHON: &str = r#"
        [ "$1" = --version ] && echo 'Python 3.11.7' && exit
        mkdir -p "$3/bin"
        printf '#!/bin/sh\necho "$*" >> "%s.calls"\n[ ! -e "%s.offline" ]\n' "$0" "$0" > "$3/bin/python"
        chmod +x "$3/bin/python""#;

    #[test]
    fn locust_is_installed_again_when_its_requirements_change() {
        let workshop = Workshop::new();
        workshop.stand_in("python3", PYTHON);
        let said = run(&workshop, "locust").good();
        assert!(said.contains("left out"), "{said}");

        workshop.write("locust/requirements.txt", "locust==2.47.0\n");
        assert!(run(&workshop, "locust").good().contains("installed in"));
        assert!(run(&workshop, "locust").good().contains("there already"));
        workshop.write("tests/browser/requirements.txt", "playwright==1\n");
        assert!(run(&workshop, "locust").good().contains("installed in"));
        assert_eq!(names(&workshop.path(".tools")), ["setup.lock", "venv"]);
        let calls = workshop.read("path/python3.calls");
        assert_eq!(calls.lines().count(), 2, "{calls}");
        assert!(calls.contains("tests/browser/requirements.txt"), "{calls}");
        assert!(calls.contains("--require-hashes"), "{calls}");
    }

    /// A newer one that cannot be installed leaves the older where it was, whole.
    #[test]
    fn the_locust_that_is_there_stays_until_another_one_works() {
        let workshop = Workshop::new();
        workshop.stand_in("python3", PYTHON);
        workshop.write("locust/requirements.txt", "locust==2.47.0\n");
        run(&workshop, "locust").good();
        let stamp = ".tools/venv/workshop-requirements.txt";
        workshop.write("locust/requirements.txt", "locust==2.48.0\n");
        workshop.write("path/python3.offline", "");
        assert_eq!(run(&workshop, "locust").code, Some(1));
        assert_eq!(workshop.read(stamp), "locust==2.47.0\n");
        assert_eq!(names(&workshop.path(".tools")), ["setup.lock", "venv"]);
        assert!(workshop.path(".tools/venv/bin/python").exists());
    }
}
