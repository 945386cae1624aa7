//! Resources that the system grants, tested in a process of its own: a limit holds for all of a process.
#![cfg(unix)]

use engine::load::cpus::allow_open_files;

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

#[cfg(target_os = "linux")]
#[test]
fn a_pinned_thread_and_its_children_stay_where_they_are() {
    let last = *engine::load::cpus::available().last().unwrap();
    let seen = std::thread::spawn(move || {
        engine::load::cpus::pin_current_thread(&[last]).unwrap();
        let child = std::process::Command::new("sh")
            .args(["-c", "grep Cpus_allowed_list /proc/self/status"])
            .output()
            .unwrap();
        String::from_utf8(child.stdout).unwrap()
    })
    .join()
    .unwrap();
    assert_eq!(
        seen.split_whitespace().last(),
        Some(last.to_string().as_str())
    );
    assert!(engine::load::cpus::pin_current_thread(&[]).is_ok());
}
