//! `cargo workshop watch [N]`: a check at every save, with keys for what comes next.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use anstyle::{AnsiColor, Style};
use children::Interrupt;
use course::analysis::grade::{Grade, GradeKind};
use course::measurement::claim::EXERCISE;
use terminal::ctrl_c;
use terminal::exit::{CliError, Exit};

use super::check::{self, Checked};
use super::{hint, predict, solution};
use crate::chapters::{Chapter, Workshop};
use crate::cli::Format;
use crate::hints;
use crate::keys::Keys;
use crate::progress_file::Progress;

/// Interval between looks at the exercise. Keys are seen at once.
const LOOK: Duration = Duration::from_millis(100);
/// Lines of the compiler or the server that fit on the screen.
const LINES_OF_DETAIL: usize = 30;

/// End of watching one chapter.
enum Ended {
    /// The reader goes on with another chapter.
    Next(Chapter),
    Quit,
    /// Ctrl-C, `kill`, or a closed terminal.
    Stopped,
}

pub(crate) fn run(number: Option<u32>) -> Result<Exit, CliError> {
    let workshop = Workshop::find()?;
    let mut chapter = match number {
        Some(number) => workshop.chapter(number)?,
        None => first_open(&workshop)?,
    };
    // While no signal is caught: Ctrl-C at a question ends the command.
    predict::ask_if_none(&workshop, &chapter)?;
    let interrupt = ctrl_c::watch();
    let keys = Keys::listen();
    loop {
        let watch = Watch {
            workshop: &workshop,
            chapter: &chapter,
            keys: &keys,
            interrupt: &interrupt,
        };
        match watch.run()? {
            Ended::Next(next) => chapter = next,
            Ended::Quit => return Ok(Exit::Good),
            Ended::Stopped => return Ok(Exit::Interrupted),
        }
    }
}

/// The first chapter that is not passed; the first of all once every one is.
fn first_open(workshop: &Workshop) -> Result<Chapter, CliError> {
    let chapters = workshop.chapters()?;
    let progress = Progress::read(workshop)?;
    let open = chapters
        .iter()
        .find(|chapter| !progress.chapter(chapter.number).is_passed());
    open.or(chapters.first())
        .cloned()
        .ok_or_else(|| CliError::usage("there is no chapter"))
}

struct Watch<'a> {
    workshop: &'a Workshop,
    chapter: &'a Chapter,
    keys: &'a Keys,
    interrupt: &'a Interrupt,
}

impl Watch<'_> {
    fn run(&self) -> Result<Ended, CliError> {
        let mut file = Watched::new(self.chapter);
        let mut running = Some(self.start()?);
        loop {
            let key = self.keys.next_within(LOOK);
            if self.interrupt.is_set() || is_output_gone() {
                return Ok(Ended::Stopped);
            }
            if let Some(check) = running.take_if(|check| check.has_ended()) {
                match check.end() {
                    Ok(checked) => self.show(&checked)?,
                    // An error of cargo or of the machine may be gone at the next save.
                    Err(error) => eprintln!("error: {error}"),
                }
            }
            let is_saved = file.is_saved();
            match key {
                Some('q' | '\x04') => return Ok(Ended::Quit),
                Some('h') => self.hint()?,
                Some('s') => self.solution()?,
                Some('n') => {
                    if let Some(next) = self.next()? {
                        return Ok(Ended::Next(next));
                    }
                    println!("This is the last chapter.");
                }
                _ => {}
            }
            let is_asked = key == Some('r') && running.is_none();
            if is_saved || is_asked {
                // A check that still runs is of an old version.
                drop(running.take());
                running = Some(self.start()?);
            }
        }
    }

    /// Begins a check in a thread of its own.
    fn start(&self) -> Result<Running, CliError> {
        self.clear();
        println!("{} A save begins the check anew.", self.title()?);
        let number = self.chapter.number;
        let done = Progress::read(self.workshop)?.chapter(number);
        if done.predictions.is_empty() && self.keys.are_there() {
            println!("Before you measure: what do you expect? `cargo workshop predict {number}`");
        }
        Ok(Running::start(self.workshop.clone(), number))
    }

    fn title(&self) -> Result<String, CliError> {
        let bold = Style::new().bold();
        let file = self.chapter.file()?;
        Ok(format!(
            "{bold}Chapter {}: {}.{bold:#}",
            self.chapter.number, file.title
        ))
    }

    /// Empties the screen where there are keys: elsewhere results stand below each other.
    fn clear(&self) {
        if self.keys.are_there() {
            print!("\x1b[H\x1b[2J");
        }
    }

    fn show(&self, checked: &Checked) -> Result<(), CliError> {
        let grade = &checked.grade;
        if !self.keys.are_there() {
            check::note_others(checked);
            check::print(self.chapter.number, EXERCISE, grade);
            return Ok(());
        }
        self.clear();
        println!("{}\n", self.title()?);
        print(grade);
        check::note_others(checked);
        println!("\n{}", self.next_step(grade)?);
        self.list_keys();
        Ok(())
    }

    fn next_step(&self, grade: &Grade) -> Result<String, CliError> {
        let number = self.chapter.number;
        let done = Progress::read(self.workshop)?.chapter(number);
        let hints = hints::read(self.chapter)?.len();
        Ok(match grade.kind {
            GradeKind::Passed => {
                let prove = format!("prove it with `cargo workshop prove {number} --variant exercise`");
                match self.next()? {
                    Some(next) => format!("Next         {prove}, or go on with chapter {}: n", next.number),
                    None => format!("Next         {prove}"),
                }
            }
            GradeKind::Invalid => {
                "Next         this says nothing about your edit: try again with r, or `cargo workshop doctor`"
                    .to_owned()
            }
            GradeKind::Failed if done.hints < hints => format!(
                "Next         edit and save, or take hint {} of {hints}: h",
                done.hints + 1
            ),
            GradeKind::Failed => "Next         edit and save, or see one way to do it: s".to_owned(),
        })
    }

    fn list_keys(&self) {
        let file = self.workshop.shown(&self.chapter.source(EXERCISE));
        println!("\nWaiting for a save of {file}");
        let enter = if self.keys.need_enter() {
            ", each with Enter"
        } else {
            ""
        };
        println!("h hint   s solution   r run again   n next chapter   q quit{enter}");
    }

    fn hint(&self) -> Result<(), CliError> {
        println!("");
        hint::run(self.chapter.number, None, Format::Human)?;
        self.list_keys();
        Ok(())
    }

    fn solution(&self) -> Result<(), CliError> {
        println!("");
        solution::run(self.chapter.number)?;
        self.list_keys();
        Ok(())
    }

    /// The chapter after this one.
    fn next(&self) -> Result<Option<Chapter>, CliError> {
        let mut chapters = self.workshop.chapters()?.into_iter();
        Ok(chapters.find(|chapter| chapter.number > self.chapter.number))
    }
}

/// Contract, root cause and effect, and then what the grade says.
fn print(grade: &Grade) {
    let contract = &grade.contract;
    match contract.broken.first() {
        None => println!("Contract     kept: {} parts", contract.held.len()),
        Some(broken) => println!("Contract     broken: {broken}"),
    }
    let causes = grade.root_causes();
    if causes.is_empty() {
        println!("Root cause   not counted");
    }
    for cause in causes {
        println!("Root cause   {cause}");
    }
    let effect = grade.effect();
    println!(
        "Effect       {}",
        effect.as_deref().unwrap_or("not measured")
    );
    let (word, colour) = match grade.kind {
        GradeKind::Passed => ("PASSED", AnsiColor::Green),
        GradeKind::Failed => ("FAILED", AnsiColor::Red),
        GradeKind::Invalid => ("INVALID RUN", AnsiColor::Yellow),
    };
    let style = Style::new().bold().fg_color(Some(colour.into()));
    println!("\n{style}{word}{style:#}  {}", grade.reason);
    let Some(detail) = &grade.detail else {
        return;
    };
    println!("");
    for line in detail.lines().take(LINES_OF_DETAIL) {
        println!("{line}");
    }
    let more = detail.lines().count().saturating_sub(LINES_OF_DETAIL);
    if more > 0 {
        println!("… {more} more lines: `cargo workshop check` prints all");
    }
}

/// A check that runs. Dropping it ends it, and waits for that.
struct Running {
    interrupt: Interrupt,
    thread: Option<JoinHandle<Result<Checked, CliError>>>,
}

impl Running {
    fn start(workshop: Workshop, number: u32) -> Self {
        let interrupt = Interrupt::new();
        let flag = interrupt.clone();
        let thread = std::thread::spawn(move || check::check(&workshop, number, EXERCISE, &flag));
        Self {
            interrupt,
            thread: Some(thread),
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn end(mut self) -> Result<Checked, CliError> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(checked)) => checked,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => Err(CliError::interrupted()),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.interrupt.set();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The exercise as it was at the last look.
struct Watched {
    file: PathBuf,
    seen: Seen,
    /// The version that was checked last.
    checked: Seen,
}

/// Time and content of a file's last save. Both are `None` for the moment in which an editor has renamed the file.
#[derive(PartialEq)]
struct Seen {
    saved: Option<SystemTime>,
    content: Option<Vec<u8>>,
}

impl Watched {
    fn new(chapter: &Chapter) -> Self {
        let file = chapter.source(EXERCISE);
        Self {
            seen: Seen::of(&file),
            checked: Seen::of(&file),
            file,
        }
    }

    /// Returns whether the file was saved since the last check, and is complete: two looks in a row found the same.
    fn is_saved(&mut self) -> bool {
        let now = Seen::of(&self.file);
        let is_still = now == self.seen && now.content.is_some();
        self.seen = now;
        if !is_still || self.seen == self.checked {
            return false;
        }
        self.checked = Seen::of(&self.file);
        true
    }
}

impl Seen {
    fn of(file: &PathBuf) -> Self {
        let metadata = std::fs::metadata(file).ok();
        Self {
            saved: metadata.and_then(|metadata| metadata.modified().ok()),
            content: std::fs::read(file).ok(),
        }
    }
}

/// Returns whether nobody reads standard output any more.
fn is_output_gone() -> bool {
    #[cfg(unix)]
    if !std::io::stdout().is_terminal() {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        let stdout = std::io::stdout();
        let mut asked = [PollFd::new(&stdout, PollFlags::empty())];
        let at_once = Timespec::default();
        return poll(&mut asked, Some(&at_once)).is_ok()
            && asked[0].revents().contains(PollFlags::ERR);
    }
    false
}
