//! Hands the optimisation level to the code: no `cfg` tells it.

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo:rustc-env=LAB_OPT_LEVEL={level}");
    println!("cargo:rerun-if-changed=build.rs");
}
