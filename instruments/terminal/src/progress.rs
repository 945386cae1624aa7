//! What a person sees meanwhile: a live line in a terminal, plain lines elsewhere.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::{Duration, Instant};

use engine::event::Event;
use engine::figures;
use engine::load::Progress;
use engine::printable;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows a run as it happens, on standard error.
pub struct Terminal {
    line: Option<ProgressBar>,
    label: RefCell<String>,
    /// `[16/18]`, with which the label begins.
    place: RefCell<String>,
    /// When, how many requests had been answered then, and how many a second before.
    rate: Cell<(Instant, u64, f64)>,
}

impl Default for Terminal {
    fn default() -> Self {
        Self::new()
    }
}

impl Terminal {
    /// A live line if standard error is a terminal.
    pub fn new() -> Self {
        let line = std::io::stderr().is_terminal().then(|| {
            let line = ProgressBar::with_draw_target(Some(1000), ProgressDrawTarget::stderr());
            // A template that does not parse would be found by the test below.
            if let Ok(style) = ProgressStyle::with_template("{wide_msg} {bar:24} {elapsed:>4}") {
                line.set_style(style);
            }
            line.enable_steady_tick(Duration::from_millis(250));
            line
        });
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
            // Between 0 and 1,000, so neither sign nor fraction is lost to the bar.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            line.set_position((share.clamp(0.0, 1.0) * 1000.0) as u64);
            let label = self.label.borrow();
            // Writing to a String cannot fail.
            let mut message = format!("{label}: {} requests", progress.completed);
            let now = Instant::now();
            let (then, before, rate) = self.rate.get();
            let passed = now.saturating_duration_since(then).as_secs_f64();
            // A second is long enough for a rate that does not jump about.
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

    /// Prints lines above the live one.
    pub fn say(&self, text: &str) {
        let text = printable(text);
        match &self.line {
            Some(line) => line.println(text),
            None => eprintln!("{text}"),
        }
    }
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
