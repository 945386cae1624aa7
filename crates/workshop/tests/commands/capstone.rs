//! `cargo workshop capstone` starts the shop's own program.

/// A compiler that is not there would be missed.
#[test]
fn a_shop_without_a_score_needs_no_compiling() {
    use crate::workshop::Workshop;
    use terminal::testing::Ran;

    let workshop = Workshop::new();
    let mut capstone = workshop.command("capstone");
    let said = Ran::of(capstone.env("CARGO", "no-cargo"));
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{said:?}");
    assert!(said.out.contains("no score yet"), "{said:?}");
}

#[cfg(unix)]
#[test]
fn arguments_and_exit_code_are_passed_through() {
    use crate::workshop::Workshop;
    use terminal::testing::Ran;

    let workshop = Workshop::new();
    let bench = workshop.program("shop-bench", "echo \"asked: $*\"; exit 3");
    let made = serde_json::json!({
        "reason": "compiler-artifact",
        "target": { "name": "shop-bench" },
        "executable": bench,
    });
    let cargo = workshop.program("cargo", &format!("echo '{made}'"));
    let mut capstone = workshop.command("capstone bench --seconds 10");
    let said = Ran::of(capstone.env("CARGO", cargo));
    assert_eq!(said.code, Some(3), "{said:?}");
    assert_eq!(said.out, "asked: bench --seconds 10\n");
    // Once for all: whether it was compiled before is seen in the workshop's own folder.
    assert!(
        said.err
            .contains("Compiling shop-bench, a program of its own"),
        "{said:?}"
    );
}
