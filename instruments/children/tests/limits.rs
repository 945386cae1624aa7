//! The limit on open files, tested in a process of its own: it holds for all of a process.
#![cfg(unix)]

use children::limits::allow_open_files;

#[test]
fn the_soft_limit_is_raised_and_the_hard_one_named() {
    let (_, hard) = rlimit::Resource::NOFILE.get().unwrap();
    let few = 256.min(hard);
    rlimit::Resource::NOFILE.set(few, hard).unwrap();
    let needed = 512.min(hard);
    allow_open_files(needed).unwrap();
    let (soft, _) = rlimit::Resource::NOFILE.get().unwrap();
    assert!(soft >= needed);

    rlimit::Resource::NOFILE.set(few, few).unwrap();
    let text = allow_open_files(3064).unwrap_err().to_string();
    assert!(text.starts_with("3064 files"), "{text}");
    assert!(
        text.contains(&format!("allows the process {few};")),
        "{text}"
    );
    assert!(text.contains("`ulimit -n 3064`"), "{text}");
}
