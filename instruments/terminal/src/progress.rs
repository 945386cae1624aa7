//! Display of a run in progress: a live line in a terminal, plain lines elsewhere.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use ecosystem::printable;
use engine::event::Event;
use engine::load::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use statistics::figures;

/// Shows a run as it happens, on standard error.
pub struct Terminal {
    line: Option<ProgressBar>,
    label: RefCell<String>,
    /// Beginning of the label, such as `[16/18]`.
    place: RefCell<String>,
    /// Time of the last rate, number of requests that had completed by then, and requests per second before it.
    rate: Cell<(Instant, u64, f64)>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// Opens a live line if standard error is a terminal.
    pub fn new() -> Self {
        let mut line = None;
        if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            // The test below checks that the template parses.
            if let Ok(style) = ProgressStyle::with_template("{wide_msg} {bar:24} {elapsed:>4}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(250));
            line = Some(bar);
        }
        Self {
            line,
            label: RefCell::default(),
            place: RefCell::default(),
            rate: Cell::new((Instant::now(), 0, 0.0)),
        }
    }

    /// Shows an event.
    pub fn show(&self, event: Event<'_>) {
        match event {
            Event::Begins(number, total, what) => {
                let place = format!("[{number:>2}/{total}]");
                *self.label.borrow_mut() = format!("{place} {}", printable(what));
                *self.place.borrow_mut() = place;
                if let Some(line) = &self.line {
                    line.set_message(self.label.borrow().clone());
                    line.set_position(0);
                }
            }
            Event::Runs(progress) => self.tick(progress),
            Event::Said(text) => self.say(text),
            Event::Measured(_, per_second) => {
                let label = self.label.borrow().clone();
                self.say(&format!(
                    "{label}: {} requests/s",
                    figures::count(per_second)
                ));
            }
            Event::Profiled(what, finding) => {
                self.say(&format!("{} {what}: {finding}", self.place.borrow()));
            }
        }
    }

    fn tick(&self, progress: Progress) {
        if let Some(line) = &self.line {
            let share = progress.elapsed.as_secs_f64() / progress.total.as_secs_f64().max(1e-9);
            line.set_position(position(share));
            let label = self.label.borrow();
            // Writing to a String cannot fail.
            let mut message = format!("{label}: {} requests", progress.completed);
            let now = Instant::now();
            let (then, before, rate) = self.rate.get();
            let passed = now.saturating_duration_since(then).as_secs_f64();
            // Over a second, the rate does not jump about.
            if progress.completed < before {
                self.rate.set((now, progress.completed, 0.0));
            } else if passed >= 1.0 {
                let rate = (progress.completed - before) as f64 / passed;
                self.rate.set((now, progress.completed, rate));
            }
            if rate > 0.0 {
                let ms = |time: Duration| figures::milliseconds(time.as_secs_f64() * 1e3);
                let _ = write!(
                    message,
                    ", {}/s, median {}, 99 % {}",
                    figures::count(rate.round()),
                    ms(progress.median),
                    ms(progress.p99)
                );
            }
            if progress.failed > 0 {
                let _ = write!(message, ", {} failed or wrong", progress.failed);
            }
            line.set_message(message);
        }
    }

    /// Does `work`, which takes about `time`, and shows how much of that has passed.
    ///
    /// # Panics
    ///
    /// Panics if `work` does.
    pub fn during<T: Send>(
        &self,
        what: &str,
        time: Duration,
        work: impl FnOnce() -> T + Send,
    ) -> T {
        let Some(line) = &self.line else {
            return work();
        };
        line.set_message(printable(what));
        let began = Instant::now();
        std::thread::scope(|scope| {
            let working = scope.spawn(work);
            while !working.is_finished() {
                let share = began.elapsed().as_secs_f64() / time.as_secs_f64().max(1e-9);
                line.set_position(position(share));
                std::thread::sleep(Duration::from_millis(50));
            }
            match working.join() {
                Ok(done) => done,
                Err(panicked) => std::panic::resume_unwind(panicked),
            }
        })
    }

    /// Prints lines above the live one.
    pub fn say(&self, text: &str) {
        let text = printable(text);
        match &self.line {
            Some(line) => line.println(text),
            None => eprintln!("{text}"),
        }
    }
}

/// Returns the place of a live line's bar for a share of its work.
// The value is between 0 and 1,000: it has no sign, and the bar shows no fractions.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn position(share: f64) -> u64 {
    (share.clamp(0.0, 1.0) * 1000.0) as u64
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_parses() {
        assert!(ProgressStyle::with_template("{wide_msg} {bar:24} {elapsed:>4}").is_ok());
    }
}
