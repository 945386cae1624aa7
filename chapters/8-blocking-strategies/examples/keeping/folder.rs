//! Where files go: a disk, and memory that looks like one.

use std::error::Error;
use std::path::Path;

use tempfile::TempDir;

/// A folder and the kind of file system that it is on.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: TempDir,
    /// `ext4` or `tmpfs`, where the system tells.
    pub(crate) kind: String,
}

impl Folder {
    /// One beside the program, and one in Linux's shared memory where there is one.
    pub(crate) fn all() -> Result<Vec<Self>, Box<dyn Error>> {
        let program = std::env::current_exe()?;
        let beside = program.parent().ok_or("a program is in a folder")?;
        let shared = Path::new("/dev/shm");
        [beside, shared]
            .into_iter()
            .filter(|folder| folder.is_dir())
            .map(|folder| {
                Ok(Self {
                    kind: kind_of(folder),
                    folder: tempfile::tempdir_in(folder)?,
                })
            })
            .collect()
    }

    pub(crate) fn path(&self) -> Result<String, Box<dyn Error>> {
        let path = self.folder.path().to_str();
        Ok(path.ok_or("the folder's name is no text")?.to_owned())
    }
}

/// The file system's kind, by the longest mount point above the folder.
fn kind_of(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(1).map(str::to_owned);
        Some((fields.next()?, fields.next()?))
    };
    mounts
        .lines()
        .filter_map(mount)
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len())
        .map_or_else(|| "the disk".to_owned(), |(_, kind)| kind)
}
