//! Which CPUs server and generator run on.

use loadgen::cpus;
use measurement::chapter_file::ChapterFile;

/// Who runs where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placement {
    /// CPUs of the server.
    pub server: Vec<usize>,
    /// CPUs of the generator, a thread each.
    pub generator: Vec<usize>,
}

impl Placement {
    /// Where the servers of this chapter and their generator run: apart, unless the claim is about
    /// all CPUs.
    pub fn of_chapter(chapter: &ChapterFile) -> Self {
        if chapter.all_cpus {
            Self::anywhere()
        } else {
            Self::apart()
        }
    }

    /// Pins nothing.
    fn anywhere() -> Self {
        Self {
            server: Vec::new(),
            generator: Vec::new(),
        }
    }

    /// Server and generator apart, where there are two CPUs or more: half
    /// each, but no more than four for the generator. Empty lists, which pin
    /// nothing, where there is one or the system does not tell.
    pub fn apart() -> Self {
        Self::of(&cpus::available())
    }

    fn of(available: &[usize]) -> Self {
        if available.len() < 2 {
            return Self::anywhere();
        }
        let generator = (available.len() / 2).min(4);
        let (server, generator) = available.split_at(available.len() - generator);
        Self {
            server: server.to_vec(),
            generator: generator.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_generator_never_share_a_cpu() {
        for count in 2..32 {
            let available: Vec<usize> = (0..count).collect();
            let placement = Placement::of(&available);
            assert!(!placement.server.is_empty() && !placement.generator.is_empty());
            assert!(
                placement
                    .server
                    .iter()
                    .all(|p| !placement.generator.contains(p))
            );
        }
        assert!(Placement::of(&[0]).server.is_empty());
    }
}
