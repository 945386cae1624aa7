//! One machine: QEMU, from switching on to switching off.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bench::child::Starting;
use loadgen::interrupt::Interrupt;

use super::parts::Parts;
use crate::exit::{CliError, Exit};

/// Memory of a region, in MiB: for a copy of the data set, and the kernel's own needs, which grow
/// with the CPUs.
const REGION_MIB: u32 = 256;
/// The distance to another region, where one's own has 10: what two-socket machines tell.
const FAR: u32 = 21;
/// A machine with eight CPUs needs some seconds, one with 176 some minutes.
const TIMEOUT: Duration = Duration::from_secs(180);
const TIMEOUT_A_CPU: Duration = Duration::from_secs(4);

/// All CPUs in turn on one thread: several threads never came to an end with many CPUs, and counting
/// needs no locks.
const OPTIONS: &str = "-no-user-config -nodefaults -display none -serial stdio -no-reboot \
                       -machine q35 -accel tcg,thread=single -cpu max";

/// What the kernel is told; what follows `--` goes to the first program.
///
/// `lpj` and `tsc` save it from measuring clocks, which takes long in an emulator. A page of 2 MiB at
/// the end of a copy may be another region's already.
const KERNEL_LINE: &str = "console=ttyS0 quiet panic=-1 reboot=t lpj=4600000 tsc=reliable \
                           transparent_hugepage=never numa_balancing=disable \
                           mitigations=off random.trust_cpu=on";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(super) regions: u32,
    pub(super) cpus: u32,
}

impl Shape {
    /// With two CPUs in each region unless it is said.
    pub(crate) fn new(regions: u32, cpus: Option<u32>) -> Result<Self, CliError> {
        let cpus = cpus.unwrap_or(2 * regions);
        if !cpus.is_multiple_of(regions) {
            return Err(CliError::usage(format!(
                "--cpus {cpus} makes no sense here: a multiple of the {regions} regions up to \
                 240, as each region gets as many"
            )));
        }
        Ok(Self { regions, cpus })
    }
}

/// A machine that is not switched on yet.
pub(super) struct Machine<'a> {
    pub(super) parts: &'a Parts,
    pub(super) plugin: &'a Path,
    pub(super) initrd: &'a Path,
    /// Where it leaves its files.
    pub(super) folder: &'a Path,
    pub(super) shape: Shape,
    pub(super) interrupt: &'a Interrupt,
}

impl Machine<'_> {
    /// Switches it on with these arguments for its first program, and waits until it is off again.
    /// What it said on its serial line; the plugin's counts are in `counted`.
    pub(super) fn run(
        &self,
        name: &str,
        arguments: &str,
        counted: &Path,
    ) -> Result<String, CliError> {
        let serial = self.folder.join(format!("{name}.serial"));
        let failed = |what: std::io::Error| CliError::bad(format!("QEMU cannot be run: {what}"));
        let mut qemu = Command::new(&self.parts.qemu);
        qemu.args(self.options(counted))
            .args(["-append", &format!("{KERNEL_LINE} -- {arguments}")]);
        let began = Instant::now();
        let deadline = TIMEOUT + TIMEOUT_A_CPU * self.shape.cpus;
        let status = Starting::of(&qemu)
            .stdout(File::create(&serial).map_err(failed)?)
            .stderr(Stdio::inherit())
            .start()
            .and_then(|mut qemu| qemu.wait(self.interrupt, deadline))
            .map_err(CliError::of_child("QEMU cannot be run"))?;
        let said = std::fs::read(&serial).map_err(failed)?;
        let said = String::from_utf8_lossy(&said).into_owned();
        if !status.is_some_and(|status| status.success()) {
            let last: Vec<&str> = said.lines().rev().take(5).collect();
            return Err(CliError::new(
                Exit::Invalid,
                format!(
                    "the machine with the {name} did not come to its end in {} s; the end of its stderr, the \
                     last first:\n\n{}",
                    began.elapsed().as_secs(),
                    last.join("\n")
                ),
            ));
        }
        Ok(said)
    }

    fn options(&self, counted: &Path) -> Vec<String> {
        let Shape { regions, cpus } = self.shape;
        let each = cpus / regions;
        let mib = REGION_MIB + 2 * each;
        let chunk = u64::from(mib) << 20;
        let mut options: Vec<String> = OPTIONS.split(' ').map(str::to_owned).collect();
        let mut add = |name: &str, value: String| options.extend([name.to_owned(), value]);
        add(
            "-smp",
            format!("{cpus},sockets={regions},cores={each},threads=1"),
        );
        add("-m", format!("{}M", mib * regions));
        for region in 0..regions {
            let first = region * each;
            let last = first + each - 1;
            add(
                "-object",
                format!("memory-backend-ram,id=region{region},size={mib}M"),
            );
            add(
                "-numa",
                format!("node,nodeid={region},cpus={first}-{last},memdev=region{region}"),
            );
        }
        for here in 0..regions {
            for there in (0..regions).filter(|there| *there != here) {
                add("-numa", format!("dist,src={here},dst={there},val={FAR}"));
            }
        }
        add("-kernel", self.parts.kernel.display().to_string());
        add("-initrd", self.initrd.display().to_string());
        // A comma ends an option; two are one.
        let file = |path: &Path| path.display().to_string().replace(',', ",,");
        add(
            "-plugin",
            format!(
                "{},out={},chunk={chunk},per_region={each}",
                file(self.plugin),
                file(counted)
            ),
        );
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_as_many_cpus_in_each_region() {
        let cpus = |cpus| Shape::new(4, cpus).map(|shape| shape.cpus).ok();
        assert_eq!(cpus(None), Some(8));
        assert_eq!(cpus(Some(176)), Some(176));
        assert_eq!(cpus(Some(6)), None);
    }
}
