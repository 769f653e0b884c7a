//! Progress of a running solve: a spinner line on a terminal, plain lines otherwise.

use crate::quantity::show_duration;
use crate::terminal::{self, Spinner};
use async_solver::Progress;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between log lines of one step.
const PLAIN_INTERVAL: Duration = Duration::from_secs(1);

/// Shows the progress of a solve on standard error.
pub struct Reporter {
    quiet: bool,
    /// Whether progress is written to standard output, as lines of JSON for a parent process.
    lines: bool,
    began: Instant,
    deadline: Option<Duration>,
    line: Option<Spinner>,
    plain: Mutex<Plain>,
}

#[derive(Default)]
struct Plain {
    last: Option<Instant>,
    step: (u8, String),
}

impl Reporter {
    /// `began` and `deadline`: those of the process.
    pub fn new(quiet: bool, began: Instant, deadline: Option<Duration>) -> Reporter {
        let line = if quiet { None } else { Spinner::new("{spinner} {wide_msg}") };
        Reporter { quiet, lines: false, began, deadline, line, plain: Mutex::default() }
    }

    /// Writes progress as lines of JSON, too.
    #[must_use]
    pub fn with_lines(self, lines: bool) -> Reporter {
        Reporter { lines, ..self }
    }

    /// Shows the state of the solve.
    pub fn tell(&self, progress: &Progress) {
        if self.lines && self.is_due(progress) {
            let line = serde_json::to_string(progress).expect("numbers and words");
            // A parent that does not read does not stop the solve.
            let _ = terminal::print(&line);
        }
        if self.quiet {
            return;
        }
        let text = self.describe(progress);
        if let Some(line) = &self.line {
            line.set(&text);
            return;
        }
        if self.is_due(progress) {
            terminal::say(&text);
        }
    }

    /// Whether a line is due: of each step at once, and then at an interval.
    fn is_due(&self, progress: &Progress) -> bool {
        let mut plain = self.plain.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let step = (progress.phase, progress.step.clone());
        let due = plain.last.is_none_or(|last| now.duration_since(last) >= PLAIN_INTERVAL);
        let due = due || plain.step != step;
        if due {
            *plain = Plain { last: Some(now), step };
        }
        due
    }

    /// Prints a permanent line.
    pub fn note(&self, text: &str) {
        match &self.line {
            _ if self.quiet => {}
            Some(line) => line.note(text),
            None => terminal::say(text),
        }
    }

    /// Removes the spinner line before the answer is printed.
    pub fn finish(&self) {
        if let Some(line) = &self.line {
            line.finish();
        }
    }

    fn describe(&self, progress: &Progress) -> String {
        let mut text = format!("phase {} {}", progress.phase, progress.step);
        if let Some(primal) = progress.primal {
            text.push_str(&format!(" | incumbent {primal:.2}"));
        }
        if let Some(bound) = progress.dual_bound {
            text.push_str(&format!(" | bound {bound:.2}"));
        }
        if let Some(gap) = gap(progress) {
            text.push_str(&format!(" | gap {:.3} %", 100.0 * gap));
        }
        text.push_str(&format!(" | {}", show_duration(self.began.elapsed())));
        if let Some(deadline) = self.deadline {
            text.push_str(&format!(" of {}", show_duration(deadline)));
        }
        text
    }
}

/// (primal - bound) / |primal| if both are known; 0 if they are equal.
pub fn gap(progress: &Progress) -> Option<f64> {
    let (primal, bound) = progress.primal.zip(progress.dual_bound)?;
    let gap = if primal == bound { 0.0 } else { (primal - bound) / primal.abs() };
    gap.is_finite().then_some(gap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_phase_bounds_gap_and_time() {
        let reporter = Reporter::new(true, Instant::now(), Some(Duration::from_secs(60)));
        let progress = Progress {
            seconds: 0.0,
            phase: 1,
            step: "mip".to_owned(),
            primal: Some(200.0),
            dual_bound: Some(199.0),
        };
        let text = reporter.describe(&progress);
        assert_eq!(
            text,
            "phase 1 mip | incumbent 200.00 | bound 199.00 | gap 0.500 % | 0.0s of 60s"
        );
    }
}
