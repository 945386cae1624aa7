//! The first program of the small machine that `cargo workshop prove 7 --numa-nodes 4` boots.
//!
//! The machine has a kernel and two programs: this one, as `/init`, and a chapter's server, as
//! `/service`. This one prepares the machine, starts the server in the variant that the kernel's
//! command line names, asks it as clients would, prints a report, and switches the machine off. The
//! report is one line of JSON behind an `@`, on the machine's serial line; the crate `numa` reads it.

#[cfg(target_os = "linux")]
mod linux;

fn main() {
    #[cfg(target_os = "linux")]
    linux::run();
    #[cfg(not(target_os = "linux"))]
    println!("the machine runs Linux, whatever runs the machine");
}
