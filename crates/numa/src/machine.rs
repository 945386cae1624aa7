//! One machine: QEMU, from switching on to switching off.

use std::fmt::Write as _;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use children::{Interrupt, Starting};
use terminal::exit::CliError;

use crate::cli::{Emulator, Shape};
use crate::record::Load;

/// Size of the data set, and the load on the service. Both are small, for a scan is slow in an emulator. The texts
/// take 19 MiB.
pub(crate) const LOAD: Load = Load {
    texts: 30_000,
    connections: 1,
    requests: 5,
};

/// Memory of a node, in MiB: for a copy of the data set, and the kernel's own needs, which grow
/// with the CPUs.
const NODE_MIB: u32 = 256;
/// Distance to another node, as two-socket machines report it. The distance to one's own node is 10.
const FAR: u32 = 21;
/// A machine with eight CPUs needs some seconds, one with 176 some minutes.
const TIMEOUT: Duration = Duration::from_secs(180);
const TIMEOUT_A_CPU: Duration = Duration::from_secs(4);

/// All CPUs in turn on one thread: several threads never came to an end with many CPUs, and counting
/// needs no locks.
const OPTIONS: &str = "-no-user-config -nodefaults -display none -serial stdio -no-reboot \
                       -machine q35 -accel tcg,thread=single -cpu max";

/// The kernel's command line. The kernel passes the words behind `--` to the first program.
///
/// `lpj` and `tsc` save it from measuring clocks, which takes long in an emulator. Huge pages are off: a page of
/// 2 MiB at the end of a copy may already lie on another node.
const KERNEL_LINE: &str = "console=ttyS0 quiet panic=-1 reboot=t lpj=4600000 tsc=reliable \
                           transparent_hugepage=never numa_balancing=disable \
                           mitigations=off random.trust_cpu=on";

/// A machine that is not switched on yet.
pub(crate) struct Machine<'a> {
    pub(crate) emulator: &'a Emulator,
    pub(crate) plugin: &'a Path,
    pub(crate) initrd: &'a Path,
    pub(crate) shape: Shape,
    /// Folder for its files.
    pub(crate) folder: &'a Path,
    pub(crate) interrupt: &'a Interrupt,
}

impl Machine<'_> {
    /// Starts it for a variant, and waits until it is off again. Returns the output on its serial line; the
    /// plugin's counts are in the file [`Self::loads`].
    pub(crate) fn run(&self, variant: &str) -> Result<String, CliError> {
        let serial = self.folder.join(format!("{variant}.serial"));
        let Load {
            texts,
            connections,
            requests,
        } = LOAD;
        let append = format!("{KERNEL_LINE} -- {variant} {texts} {connections} {requests}");
        let mut qemu = Command::new(&self.emulator.qemu);
        qemu.args(self.options().split(' '))
            .arg("-kernel")
            .arg(&self.emulator.kernel)
            .arg("-initrd")
            .arg(self.initrd)
            .args(["-plugin", &self.plugin_option(&self.loads(variant))])
            .args(["-append", &append]);
        let began = Instant::now();
        let (status, said) = self
            .wait_for(&qemu, &serial)
            .map_err(CliError::of_child("QEMU cannot be run"))?;
        if let Some(status) = status
            && status.success()
        {
            return Ok(said);
        }
        let seconds = began.elapsed().as_secs();
        let what = format!("did not come to its end in {seconds} s");
        Err(failed(variant, &what, &said))
    }

    /// Starts QEMU with its output to the file `serial`, and waits until it ends. Returns its status, which is `None`
    /// after a timeout, and the output.
    fn wait_for(&self, qemu: &Command, serial: &Path) -> io::Result<(Option<ExitStatus>, String)> {
        let status = Starting::of(qemu)
            .stdout(File::create(serial)?)
            .stderr(Stdio::inherit())
            .start()?
            .wait(self.interrupt, TIMEOUT + TIMEOUT_A_CPU * self.shape.cpus())?;
        let said = std::fs::read(serial)?;
        Ok((status, String::from_utf8_lossy(&said).into_owned()))
    }

    /// Returns the file to which the plugin writes its counts.
    pub(crate) fn loads(&self, variant: &str) -> PathBuf {
        self.folder.join(format!("{variant}.loads"))
    }

    fn options(&self) -> String {
        let Shape {
            nodes,
            cpus_a_node: each,
        } = self.shape;
        let cpus = self.shape.cpus();
        let mib = self.node_mib();
        let mut options = format!(
            "{OPTIONS} -smp {cpus},sockets={nodes},cores={each},threads=1 -m {}M",
            mib * nodes
        );
        // Writing to a String cannot fail.
        for node in 0..nodes {
            let (first, last) = (node * each, node * each + each - 1);
            let _ = write!(
                options,
                " -object memory-backend-ram,id=node{node},size={mib}M \
                 -numa node,nodeid={node},cpus={first}-{last},memdev=node{node}"
            );
        }
        for here in 0..nodes {
            for there in (0..nodes).filter(|there| *there != here) {
                let _ = write!(options, " -numa dist,src={here},dst={there},val={FAR}");
            }
        }
        options
    }

    fn plugin_option(&self, loads: &Path) -> String {
        // A comma ends an option; two are one.
        let [plugin, out] =
            [self.plugin, loads].map(|it| it.display().to_string().replace(',', ",,"));
        let chunk = u64::from(self.node_mib()) << 20;
        let per_node = self.shape.cpus_a_node;
        format!("{plugin},out={out},chunk={chunk},per_node={per_node}")
    }

    fn node_mib(&self) -> u32 {
        NODE_MIB + 2 * self.shape.cpus_a_node
    }
}

/// Creates the error of a variant's machine: what it did, and the last 12 lines of its output.
pub(crate) fn failed(variant: &str, what: &str, said: &str) -> CliError {
    let lines: Vec<&str> = said.lines().collect();
    let end = lines[lines.len().saturating_sub(12)..].join("\n");
    CliError::invalid(format!(
        "the machine with the {variant} {what}; the end of its stderr:\n\n{end}"
    ))
}
