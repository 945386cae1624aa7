//! `--numa-nodes` starts the emulated machine's own program, here with stand-ins for cargo, QEMU and that program.

use crate::workshop::Workshop;
use terminal::testing::Ran;

/// A workshop with chapter 7's claims, and a `numa` that prints its arguments and ends with 3.
fn workshop() -> Workshop {
    let workshop = Workshop::new();
    let claims = include_str!("../../../../chapters/7-numa-locality/chapter.toml");
    workshop.write("chapters/7-numa-locality/chapter.toml", claims);
    workshop.write("chapters/7-numa-locality/Cargo.toml", "");
    workshop.write("Cargo.lock", "");
    workshop.write("vmlinuz", "a kernel");
    workshop.stand_in(
        "qemu-system-x86_64",
        "echo 'QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7)'",
    );
    workshop.stand_in("cc", "");
    let mut made = Vec::new();
    for package in ["chapter7", "numa-guest", "numa"] {
        let program = workshop.program(package, "echo \"asked: $*\"; exit 3");
        let artifact = serde_json::json!({
            "reason": "compiler-artifact",
            "target": { "name": package },
            "executable": program,
        });
        made.push(format!("echo '{artifact}'"));
    }
    workshop.stand_in("cargo", &made.join("\n"));
    workshop
}

fn run(workshop: &Workshop, words: &str) -> Ran {
    let path = format!("{}:/usr/bin:/bin", workshop.path("path").display());
    let mut command = workshop.command(words);
    command
        .env("PATH", path)
        .env("CARGO", workshop.path("path/cargo"))
        .env("WORKSHOP_KERNEL", workshop.path("vmlinuz"));
    Ran::of(&mut command)
}

#[test]
fn a_proof_passes_the_machine_on_and_the_exit_code_back() {
    let workshop = workshop();
    let said = run(&workshop, "prove 7 --numa-nodes 4 --cpus 12 --format json");
    assert_eq!(said.code, Some(3), "{said:?}");
    for words in [
        "asked: observe --nodes 4 --cpus-a-node 3 ",
        " --qemu-version 7.2.22 ",
        " --command cargo workshop prove 7 --numa-nodes 4 --cpus 12 ",
        ".workshop/reports/chapter7 --format json -- problem solution\n",
    ] {
        assert!(said.out.contains(words), "no `{words}` in {said:?}");
    }
    assert!(
        said.err.contains("Compiling numa, a program of its own"),
        "{said:?}"
    );
}

#[test]
fn a_check_takes_the_exercise_and_keeps_nothing() {
    let said = run(&workshop(), "check 7 --numa-nodes 2");
    assert_eq!(said.code, Some(3), "{said:?}");
    assert!(said.out.contains("--nodes 2 --cpus-a-node 2 "), "{said:?}");
    assert!(said.out.ends_with(" -- problem exercise\n"), "{said:?}");
    assert!(!said.out.contains("--into"), "{said:?}");
}

#[test]
fn a_chapter_about_something_else_is_refused_before_anything_is_built() {
    let said = run(&workshop(), "prove 1 --numa-nodes 4");
    let words = said.refused(2);
    assert!(
        words.contains("chapter 1 is not about NUMA nodes"),
        "{words}"
    );
}

#[test]
fn the_doctor_knows_the_parts_without_building_the_machine() {
    let workshop = workshop();
    let said = run(&workshop, "doctor");
    let there = "QEMU and its kernel  there, for prove 7 --numa-nodes 4";
    assert!(said.out.contains(there), "{said:?}");
    std::fs::remove_file(workshop.path("vmlinuz")).unwrap();
    let said = run(&workshop, "doctor");
    let advice = "the machine needs a Linux kernel: cargo workshop setup kernel";
    assert!(said.out.contains(advice), "{said:?}");
}
