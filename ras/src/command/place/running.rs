//! A search that runs: progress on the terminal, and value and bound over time for the page.

use crate::context::Context;
use crate::quantity::show_duration;
use crate::terminal::{Spinner, say};
use fleet::number::decimal;
use placement::{Found, Progress};
use report::line_chart::Point;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Interval of progress lines where there is no terminal.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// A search that runs.
pub(super) struct Running {
    began: Instant,
    deadline: Duration,
    is_quiet: bool,
    line: Option<Spinner>,
    shown: Mutex<Shown>,
}

/// What has been shown.
struct Shown {
    best: f64,
    last: Instant,
    history: Vec<Point>,
}

/// A search that has ended.
pub(super) struct Ended {
    pub(super) seconds: f64,
    pub(super) history: Vec<Point>,
}

impl Running {
    pub(super) fn start(deadline: Duration, context: &Context) -> Running {
        let began = Instant::now();
        let is_quiet = context.global.quiet;
        let line = if is_quiet { None } else { Spinner::new("{spinner} {wide_msg}") };
        let shown = Shown { best: f64::INFINITY, last: began, history: Vec::new() };
        Running { began, deadline, is_quiet, line, shown: Mutex::new(shown) }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Takes the progress of a thread.
    pub(super) fn tell(&self, progress: &Progress) {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        // Each thread tells its own best one.
        shown.best = shown.best.min(progress.value);
        let (value, bound) = (shown.best, progress.bound);
        shown.history.push(self.point(value, bound));
        let text = format!(
            "value {} | bound {} | {} of {}",
            decimal(value),
            decimal(bound),
            show_duration(self.elapsed()),
            show_duration(self.deadline)
        );
        match &self.line {
            Some(line) => line.set(&text),
            None if !self.is_quiet && shown.last.elapsed() >= INTERVAL => {
                shown.last = Instant::now();
                say(&text);
            }
            None => {}
        }
    }

    /// The search has found its answer.
    pub(super) fn end(self, found: &Found) -> Ended {
        let last = self.point(found.value.total, found.bound);
        if let Some(line) = self.line {
            line.finish();
        }
        let mut history = self.shown.into_inner().unwrap_or_else(PoisonError::into_inner).history;
        history.push(last);
        Ended { seconds: last.seconds, history }
    }

    fn point(&self, value: f64, bound: f64) -> Point {
        let seconds = self.began.elapsed().as_secs_f64();
        Point { seconds, value: Some(value), bound: Some(bound) }
    }
}
