//! CPUs on which server and generator run.

use std::path::Path;

use children::cpus;

/// Placement of server and generator on CPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// CPUs of the server.
    pub server: Vec<usize>,
    /// CPUs of the generator, one thread on each.
    pub generator: Vec<usize>,
}

impl Placement {
    /// Returns a placement that pins nothing.
    pub fn anywhere() -> Self {
        Self {
            server: Vec::new(),
            generator: Vec::new(),
        }
    }

    /// Places server and generator apart if there are two CPUs or more: half each, but no more than four for the
    /// generator. CPUs that are threads of one core stay together if there is more than one core. With one CPU, or
    /// where the system does not tell, nothing is pinned.
    pub fn apart() -> Self {
        Self::of(&cpus::available(), &|cpu| siblings(Path::new("/sys"), cpu))
    }

    fn of(available: &[usize], siblings: &dyn Fn(usize) -> Vec<usize>) -> Self {
        if available.len() < 2 {
            return Self::anywhere();
        }
        let cores = cores(available, siblings);
        if let [only] = &cores[..] {
            // There are no CPUs but the threads of this core.
            let (server, generator) = only.split_at(only.len() - (only.len() / 2).min(4));
            return Self {
                server: server.to_vec(),
                generator: generator.to_vec(),
            };
        }
        let most = (available.len() / 2).clamp(1, 4);
        let (mut server, mut generator) = (cores, Vec::new());
        // The last core goes to the generator whatever its size; more of them while they fit.
        while let Some(core) = server.pop() {
            let fits = generator.len() + core.len() <= most;
            if server.is_empty() || !(generator.is_empty() || fits) {
                server.push(core);
                break;
            }
            generator.splice(0..0, core);
        }
        Self {
            server: server.concat(),
            generator,
        }
    }

    /// Describes the placement for the record, and whether server and generator share a core.
    pub fn in_words(&self) -> String {
        if self.server.is_empty() {
            return "nothing pinned".to_owned();
        }
        let mut core = "";
        for cpu in &self.generator {
            for sibling in siblings(Path::new("/sys"), *cpu) {
                if self.server.contains(&sibling) {
                    core = ", threads of one core";
                }
            }
        }
        let (server, generator) = (list(&self.server), list(&self.generator));
        format!("server on CPU {server}, generator on CPU {generator}{core}")
    }
}

fn list(cpus: &[usize]) -> String {
    let all: Vec<String> = cpus.iter().map(usize::to_string).collect();
    all.join(", ")
}

/// Groups the CPUs by cores, in rising order.
fn cores(cpus: &[usize], siblings: &dyn Fn(usize) -> Vec<usize>) -> Vec<Vec<usize>> {
    let mut cores: Vec<Vec<usize>> = Vec::new();
    for &cpu in cpus {
        let own = siblings(cpu);
        match cores.iter_mut().find(|core| own.contains(&core[0])) {
            Some(core) => core.push(cpu),
            None => cores.push(vec![cpu]),
        }
    }
    cores
}

/// Returns the CPUs that are threads of the same core as this one; it alone where the system does not tell.
fn siblings(sys: &Path, cpu: usize) -> Vec<usize> {
    let file = format!("devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    let list = std::fs::read_to_string(sys.join(file)).unwrap_or_default();
    // `0,4` or `0-1`, as in cpuset(7).
    let mut all: Vec<usize> = Vec::new();
    for range in list.trim().split(',') {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        if let (Ok(from), Ok(to)) = (from.parse::<usize>(), to.parse::<usize>()) {
            all.extend(from..=to);
        }
    }
    if all.is_empty() { vec![cpu] } else { all }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the siblings of CPUs with so many `threads` a core, numbered one after the other, or by halves as on
    /// most machines.
    fn neighbours(threads: usize, cpus: usize, by_halves: bool) -> impl Fn(usize) -> Vec<usize> {
        move |cpu| {
            let cores = cpus / threads;
            (0..cpus)
                .filter(|other| {
                    let core = |cpu| {
                        if by_halves {
                            cpu % cores
                        } else {
                            cpu / threads
                        }
                    };
                    core(*other) == core(cpu)
                })
                .collect()
        }
    }

    #[test]
    fn server_and_generator_share_neither_a_cpu_nor_a_core() {
        for (threads, by_halves) in [(1, false), (2, false), (2, true)] {
            for cores in 2..20 {
                let cpus = threads * cores;
                let available: Vec<usize> = (0..cpus).collect();
                let siblings = neighbours(threads, cpus, by_halves);
                let placement = Placement::of(&available, &siblings);
                let Placement { server, generator } = &placement;
                assert!(!server.is_empty() && !generator.is_empty(), "{placement:?}");
                assert!(generator.len() <= 4.max(threads), "{placement:?}");
                let mut of_generator = generator.iter().flat_map(|cpu| siblings(*cpu));
                assert!(
                    of_generator.all(|cpu| !server.contains(&cpu)),
                    "{placement:?}"
                );
                assert_eq!(server.len() + generator.len(), cpus, "{placement:?}");
            }
        }
    }

    #[test]
    fn two_threads_of_the_only_core_are_split_and_one_cpu_is_not() {
        let one_core = Placement::of(&[0, 1], &|_| vec![0, 1]);
        assert_eq!((one_core.server, one_core.generator), (vec![0], vec![1]));
        assert!(Placement::of(&[0], &|cpu| vec![cpu]).server.is_empty());
    }

    #[test]
    fn lists_of_the_kernel_are_read() {
        let sys = tempfile::tempdir().expect("a folder");
        let folder = sys.path().join("devices/system/cpu/cpu1/topology");
        std::fs::create_dir_all(&folder).expect("a folder");
        for (list, cpus) in [("0-1\n", vec![0, 1]), ("1,5\n", vec![1, 5]), ("", vec![1])] {
            std::fs::write(folder.join("thread_siblings_list"), list).expect("a file");
            assert_eq!(siblings(sys.path(), 1), cpus);
        }
    }
}
