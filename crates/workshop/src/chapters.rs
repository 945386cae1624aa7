//! Folders of the workshop, and its chapters.

use std::path::{Path, PathBuf};

use course::measurement::chapter_file::ChapterFile;

use terminal::exit::CliError;
use terminal::git::Git;

/// Folder of all records, below the workshop's.
pub(crate) const CAPTURES: &str = "flamegraphs";

/// The repository that the command was called in.
#[derive(Debug, Clone)]
pub(crate) struct Workshop {
    root: PathBuf,
}

#[derive(Debug, Clone)]
pub(crate) struct Chapter {
    pub(crate) number: u32,
    /// `chapters/1-mutex-held-across-await`, absolute.
    pub(crate) folder: PathBuf,
}

impl Workshop {
    /// Finds the repository above the current folder.
    pub(crate) fn find() -> Result<Self, CliError> {
        let here = std::env::current_dir()
            .map_err(|e| CliError::usage(format!("the current folder cannot be read: {e}")))?;
        for folder in here.ancestors() {
            if folder.join("chapters").is_dir() && folder.join("Cargo.toml").is_file() {
                let root = folder.to_owned();
                return Ok(Self { root });
            }
        }
        Err(CliError::usage(format!(
            "{} is not inside the workshop: change to the folder that you cloned",
            here.display()
        )))
    }

    /// The repository above the current folder, or else the one that this program was compiled in: commands for the
    /// reader's own service work anywhere.
    pub(crate) fn of_this_build() -> Self {
        Self::find().unwrap_or_else(|_| Self {
            root: Path::new(env!("CARGO_MANIFEST_DIR"))
                .ancestors()
                .nth(2)
                .unwrap_or(Path::new("."))
                .to_owned(),
        })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// A path within the workshop as people type it: from the root, with `/`.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let within = path.strip_prefix(&self.root).unwrap_or(path);
        within.display().to_string().replace('\\', "/")
    }

    /// The reader's own state, ignored by git: reports, progress, work set aside by `reset`.
    pub(crate) fn state(&self) -> PathBuf {
        self.root.join(".workshop")
    }

    /// The recorded evidence of a chapter.
    pub(crate) fn captures(&self, number: u32) -> PathBuf {
        self.root.join(CAPTURES).join(format!("chapter{number}"))
    }

    pub(crate) fn chapters(&self) -> Result<Vec<Chapter>, CliError> {
        let folder = self.root.join("chapters");
        let entries = std::fs::read_dir(&folder)
            .map_err(|e| CliError::usage(format!("{} cannot be read: {e}", folder.display())))?;
        let mut chapters = Vec::new();
        for entry in entries.flatten() {
            let folder = entry.path();
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let number = name.split('-').next().unwrap_or_default();
            if let Ok(number) = number.parse()
                && folder.join("chapter.toml").is_file()
            {
                chapters.push(Chapter { number, folder });
            }
        }
        chapters.sort_by_key(|chapter| chapter.number);
        Ok(chapters)
    }

    /// The chapters with these numbers; all of them if none is named.
    pub(crate) fn chosen(&self, numbers: &[u32]) -> Result<Vec<Chapter>, CliError> {
        if numbers.is_empty() {
            return self.chapters();
        }
        let mut chosen = Vec::new();
        for (at, number) in numbers.iter().enumerate() {
            if numbers[..at].contains(number) {
                return Err(CliError::usage(format!(
                    "chapter {number} is named twice: name it once"
                )));
            }
            chosen.push(self.chapter(*number)?);
        }
        Ok(chosen)
    }

    /// Lists the files beside a chapter's exercise that differ from the last commit: of the chapter, and the two of
    /// cargo at the root. None without git.
    pub(crate) fn also_changed(&self, chapter: &Chapter) -> Vec<String> {
        let folder = self.shown(&chapter.folder);
        let Ok(git) = Git::at(&self.root) else {
            return Vec::new();
        };
        let files = [
            "diff",
            "--name-only",
            "HEAD",
            "--",
            &folder,
            "Cargo.toml",
            "Cargo.lock",
        ];
        let changed = git.ask(files).unwrap_or_default();
        let own = self.shown(&chapter.source("exercise"));
        let others = changed.lines().filter(|file| *file != own);
        others.map(str::to_owned).collect()
    }

    pub(crate) fn chapter(&self, number: u32) -> Result<Chapter, CliError> {
        for chapter in self.chapters()? {
            if chapter.number == number {
                return Ok(chapter);
            }
        }
        Err(CliError::usage(format!("there is no chapter {number}")))
    }
}

impl Chapter {
    /// The package's name, `chapter1`.
    pub(crate) fn package(&self) -> String {
        format!("chapter{}", self.number)
    }

    pub(crate) fn file(&self) -> Result<ChapterFile, CliError> {
        let name = self.folder.file_name().unwrap_or_default().display();
        ChapterFile::read(
            &self.folder.join("chapter.toml"),
            &format!("chapters/{name}/chapter.toml"),
            children::cpus::count(),
        )
        .map_err(CliError::usage)
    }

    pub(crate) fn source(&self, variant: &str) -> PathBuf {
        self.folder.join("src").join(format!("{variant}.rs"))
    }
}
