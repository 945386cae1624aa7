//! A service with a shared library whose file is cut while profiles are taken. What maps such a file and reads it ends by
//! SIGBUS, so the service has a process of its own.
#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64"),
    feature = "cpu"
))]
#![allow(unsafe_code)] // To load the library.

mod common;

use std::env;
use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

use common::{ask, ask_until};
use debug_endpoints::DebugEndpoints;

/// Variable with the library's path, in the process that is the service.
const LIBRARY: &str = "CUT_LIBRARY";

#[test]
fn a_service_outlives_the_cut_of_a_library_during_profiles() {
    if let Some(library) = env::var_os(LIBRARY) {
        serve(Path::new(&library));
        // The library's own end would run code of which a part is gone.
        // SAFETY: it ends the process.
        unsafe { libc::_exit(0) };
    }
    let Some(unwinder) = unwinder() else {
        // It is linked statically.
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("plugin.so");
    fs::copy(unwinder, &library).expect("copied");
    let service = Command::new(env::current_exe().expect("a path"))
        .args([
            "--exact",
            "a_service_outlives_the_cut_of_a_library_during_profiles",
        ])
        .env(LIBRARY, &library)
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&service.stderr);
    assert!(service.status.success(), "{}: {said}", service.status);
}

/// Returns the library that unwinds stacks. It is the one that calls back, so a thread can wait in it.
fn unwinder() -> Option<PathBuf> {
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let mut paths = maps.lines().filter_map(|line| line.split(' ').next_back());
    paths
        .find(|path| path.contains("/libgcc_s.so"))
        .map(PathBuf::from)
}

/// Runs a service that has a thread in the library, cuts the library's file again and again, and takes profiles.
fn serve(library: &Path) {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let path = CString::new(library.as_os_str().as_bytes()).expect("a path");
    // SAFETY: the library is a copy of one that this process has, and its functions have these types.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW);
        let unwinds = libc::dlsym(library, c"_Unwind_Backtrace".as_ptr());
        assert!(!unwinds.is_null(), "no function");
        let unwinds: Unwinds = std::mem::transmute(unwinds);
        thread::spawn(move || unwinds(waits, std::ptr::null_mut()));
    }
    let admin = DebugEndpoints::new()
        .listen("127.0.0.1:0")
        .expect("a free port");
    let file = OpenOptions::new().write(true).open(library).expect("open");
    let whole = fs::read(library).expect("read");
    // The list of sections, which stands behind what is in memory.
    let sections = whole[0x28..0x30].try_into().map_or(0, u64::from_le_bytes);
    let behind = whole[usize::try_from(sections).expect("small")..].to_vec();
    let cutting = thread::spawn(move || {
        while !IS_OVER.load(Relaxed) {
            file.set_len(sections).expect("cut");
            file.write_all_at(&behind, sections).expect("mended");
        }
    });
    for _ in 0..10 {
        assert_eq!(
            ask(admin, "/debug/threads?seconds=0.1&all=true&idle=true").status,
            200
        );
    }
    IS_OVER.store(true, Relaxed);
    cutting.join().expect("it ended");
    ask_until(
        admin,
        "/debug/threads?seconds=0.1&all=true&idle=true",
        |threads| threads.text().contains("_Unwind_Backtrace"),
    );
}

type Unwinds = unsafe extern "C" fn(Waits, *mut libc::c_void) -> i32;
type Waits = extern "C" fn(*mut libc::c_void, *mut libc::c_void) -> i32;

/// Is called by the library, and never returns.
extern "C" fn waits(_: *mut libc::c_void, _: *mut libc::c_void) -> i32 {
    loop {
        thread::park();
    }
}
