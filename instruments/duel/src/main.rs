//! `duel`: see the library's documentation, and the README.

fn main() -> std::process::ExitCode {
    duel::main()
}
