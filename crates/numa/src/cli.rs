//! The command line. `cargo workshop` writes it, and says all that a reader has to know.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use terminal::output::Output;

/// A service in an emulated machine with several NUMA nodes. `cargo workshop prove 7 --numa-nodes 4` starts this.
#[derive(Debug, Parser)]
#[command(name = "numa")]
pub struct Cli {
    /// Command.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Reads the process's arguments.
    pub fn read() -> Self {
        Self::parse()
    }
}

/// Command of the emulated machine.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run variants of a service, each in a machine of its own, and judge the counts
    Observe(Box<Observe>),
    /// Write the tables and figures of a folder's records again
    Derive {
        /// Folder of the records
        folder: PathBuf,
        /// Write nothing, and fail if a file differs from its record
        #[arg(long)]
        verify: bool,
    },
}

/// Options of `observe`.
#[derive(Debug, Args)]
pub struct Observe {
    /// The machine's size.
    #[command(flatten)]
    pub shape: Shape,
    /// Parts of the machine that Rust does not bring.
    #[command(flatten)]
    pub emulator: Emulator,
    /// The machine's first program: `numa-guest`, linked statically to a fixed address
    #[arg(long, value_name = "FILE")]
    pub guest: PathBuf,
    /// The chapter's server, linked in the same way
    #[arg(long, value_name = "FILE")]
    pub service: PathBuf,
    /// The chapter's number
    #[arg(long)]
    pub chapter: u32,
    /// The command that the reader typed, for the record
    #[arg(long)]
    pub command: String,
    /// The repository, whose compiler is recorded
    #[arg(long, value_name = "FOLDER")]
    pub repository: PathBuf,
    /// Digest of the chapter's sources, for the record
    #[arg(long, value_name = "SHA256")]
    pub inputs: String,
    /// Folder for the record, its table and its figures [default: none is kept]
    #[arg(long, value_name = "FOLDER")]
    pub into: Option<PathBuf>,
    /// Output format.
    #[command(flatten)]
    pub output: Output,
    /// Variants: the problem first, the fix last
    #[arg(value_name = "VARIANT", required = true)]
    pub variants: Vec<String>,
}

/// Size of a machine.
#[derive(Debug, Clone, Copy, Args)]
pub struct Shape {
    /// NUMA nodes
    #[arg(long)]
    pub nodes: u32,
    /// CPUs in each node
    #[arg(long)]
    pub cpus_a_node: u32,
}

impl Shape {
    /// Returns the number of CPUs in all nodes.
    pub fn cpus(self) -> u32 {
        self.nodes * self.cpus_a_node
    }
}

/// QEMU and a kernel.
#[derive(Debug, Args)]
pub struct Emulator {
    /// QEMU's program
    #[arg(long, value_name = "FILE")]
    pub qemu: PathBuf,
    /// QEMU's version
    #[arg(long, value_name = "VERSION")]
    pub qemu_version: String,
    /// The image of a Linux kernel
    #[arg(long, value_name = "FILE")]
    pub kernel: PathBuf,
}
