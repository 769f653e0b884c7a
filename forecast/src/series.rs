//! The validated series: equal steps from a start, values at least 0, missing ones marked.

use serde::Serialize;
use std::fmt;
use std::num::NonZeroU32;

/// The longest series, missing values included: 95 years of 5-minute steps.
pub const MAX_LEN: usize = 10_000_000;

/// The largest value. Squares of values stay finite.
pub const MAX_VALUE: f64 = 1e18;

/// The longest run of zeros that can be a reset: a monitor that restarts, not a fleet that is empty.
const RESET_RUN: usize = 3;

/// The time between two observations, in whole seconds, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Step(NonZeroU32);

impl Step {
    /// Five minutes.
    pub const FIVE_MINUTES: Step = Step::of(300);
    /// An hour.
    pub const HOUR: Step = Step::of(3_600);
    /// A day of 86,400 s.
    pub const DAY: Step = Step::of(86_400);
    /// Seven days.
    pub const WEEK: Step = Step::of(7 * 86_400);

    const fn of(seconds: u32) -> Step {
        match NonZeroU32::new(seconds) {
            Some(seconds) => Step(seconds),
            None => Step(NonZeroU32::MIN),
        }
    }

    /// A step of this many seconds; none for 0.
    pub fn from_seconds(seconds: u32) -> Option<Step> {
        NonZeroU32::new(seconds).map(Step)
    }

    /// Its seconds.
    pub fn seconds(self) -> u32 {
        self.0.get()
    }

    /// How many steps a longer one holds: 288 five-minute steps in a day. Rounded down, at least 1.
    pub fn per(self, longer: Step) -> usize {
        (longer.seconds() / self.seconds()).max(1) as usize
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seconds() {
            s if s % 86_400 == 0 => write!(f, "{} d", s / 86_400),
            s if s % 3_600 == 0 => write!(f, "{} h", s / 3_600),
            s if s % 60 == 0 => write!(f, "{} min", s / 60),
            s => write!(f, "{s} s"),
        }
    }
}

/// One observation as it was read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Seconds since the epoch of the source: 1970, or the start of a trace.
    pub time: i64,
    /// What was observed, in any unit.
    pub value: f64,
    /// Where it was read, for messages: the row or line of its file.
    pub row: u64,
}

/// What happens to gaps and resets, which a monitor leaves when it restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Faults {
    /// They are errors.
    Refuse,
    /// Their values are missing, and a [`Notice`] says so.
    Mark,
}

/// A fault that was marked: its values are missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Notice {
    /// Observations are missing before a row.
    #[error("row {row}: observations are missing before it, which count as unknown: {steps}")]
    Gap {
        /// The row after the gap.
        row: u64,
        /// How many are missing.
        steps: usize,
    },
    /// The values fall to 0 and return at once.
    #[error("row {row}: values are 0 between larger ones, which count as unknown: {steps}")]
    Reset {
        /// The first row that is 0.
        row: u64,
        /// How many are 0.
        steps: usize,
    },
}

/// Why points are not a series.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// There are fewer observations than are needed.
    #[error("known observations: {found}; at least {needed} are needed")]
    TooShort {
        /// How many there are.
        found: usize,
        /// How many are needed.
        needed: usize,
    },
    /// The series would be longer than any honest one.
    #[error("row {row}: the series would have more than {MAX_LEN} steps of {step}")]
    TooLong {
        /// The row that is too far from the first.
        row: u64,
        /// The step found.
        step: Step,
    },
    /// A value is below 0.
    #[error("row {row}: the value is {value}; it must be at least 0")]
    Negative {
        /// Its row.
        row: u64,
        /// The value.
        value: f64,
    },
    /// A value is not a finite number.
    #[error("row {row}: the value is {value}; it must be a finite number")]
    NotFinite {
        /// Its row.
        row: u64,
        /// The value.
        value: f64,
    },
    /// A value is larger than any honest one.
    #[error("row {row}: the value is {value}; it must be at most {MAX_VALUE}")]
    TooLarge {
        /// Its row.
        row: u64,
        /// The value.
        value: f64,
    },
    /// Two rows have the same time.
    #[error("row {row}: time {time} occurs a second time; each time must occur once")]
    Duplicate {
        /// The second of the rows.
        row: u64,
        /// The time of both.
        time: i64,
    },
    /// A row is earlier than the row before it.
    #[error("row {row}: time {time} follows {before}; times must rise")]
    Order {
        /// Its row.
        row: u64,
        /// Its time.
        time: i64,
        /// The time of the row before.
        before: i64,
    },
    /// A time is not a whole number of steps after the start.
    #[error("row {row}: time {time} is not a whole number of steps of {step} after the first")]
    OffGrid {
        /// Its row.
        row: u64,
        /// Its time.
        time: i64,
        /// The step: the shortest time between two rows.
        step: Step,
    },
    /// The shortest time between two rows is longer than a [`Step`] can be.
    #[error("row {row}: {seconds} s lie between two rows; at most {} s may", u32::MAX)]
    StepTooLong {
        /// The second row.
        row: u64,
        /// The time between it and the row before.
        seconds: u64,
    },
    /// A fault that [`Faults::Refuse`] refuses.
    #[error("{0}")]
    Fault(Notice),
}

/// Observations at equal steps. At least one value; each is finite and at least 0, or missing.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    start: i64,
    step: Step,
    /// Missing values are NaN here and `None` outside.
    values: Vec<f64>,
}

impl Series {
    /// A series from its values, the first at `start` (seconds).
    ///
    /// # Errors
    /// A value that is negative or not finite (its row is its index), no value, or too many.
    pub fn new(start: i64, step: Step, values: Vec<Option<f64>>) -> Result<Series, SeriesError> {
        if values.is_empty() {
            return Err(SeriesError::TooShort { found: 0, needed: 1 });
        }
        if values.len() > MAX_LEN {
            return Err(SeriesError::TooLong { row: MAX_LEN as u64, step });
        }
        for (row, value) in values.iter().enumerate() {
            value.map_or(Ok(()), |value| check_value(row as u64, value))?;
        }
        let values = values.into_iter().map(|value| value.unwrap_or(f64::NAN)).collect();
        Ok(Series { start, step, values })
    }

    /// A series from points in the order of their times. The step is the shortest time between two
    /// of them; the step of a series with a gap in each interval cannot be known.
    ///
    /// A gap is a whole number of steps without a point. A reset is a run of at most three zeros
    /// between two values of which neither is twice the other; a type of server that is used now and then
    /// has longer ones.
    ///
    /// # Errors
    /// Fewer than two points; values or times that break a rule, with their row; gaps and resets if
    /// they are refused.
    pub fn from_points(
        points: &[Point],
        faults: Faults,
    ) -> Result<(Series, Vec<Notice>), SeriesError> {
        let [first, rest @ ..] = points else {
            return Err(SeriesError::TooShort { found: 0, needed: 2 });
        };
        if rest.is_empty() {
            return Err(SeriesError::TooShort { found: 1, needed: 2 });
        }
        points.iter().try_for_each(|point| check_value(point.row, point.value))?;
        let step = shortest_step(points)?;
        let mut values = vec![first.value];
        let mut rows = vec![first.row];
        let mut notices = Vec::new();
        for point in rest {
            let since = point.time.abs_diff(first.time);
            if since % u64::from(step.seconds()) != 0 {
                return Err(SeriesError::OffGrid { row: point.row, time: point.time, step });
            }
            let index = since / u64::from(step.seconds());
            if index >= MAX_LEN as u64 {
                return Err(SeriesError::TooLong { row: point.row, step });
            }
            let missing = index as usize - values.len();
            if missing > 0 {
                notices.push(Notice::Gap { row: point.row, steps: missing });
            }
            values.resize(index as usize, f64::NAN);
            rows.resize(index as usize, point.row);
            values.push(point.value);
            rows.push(point.row);
        }
        notices.extend(mark_resets(&mut values, &rows));
        match (faults, notices.first()) {
            (Faults::Refuse, Some(fault)) => Err(SeriesError::Fault(fault.clone())),
            _ => Ok((Series { start: first.time, step, values }, notices)),
        }
    }

    /// The time of the first value, in seconds.
    pub fn start(&self) -> i64 {
        self.start
    }

    /// The time between two values.
    pub fn step(&self) -> Step {
        self.step
    }

    /// How many values there are, missing ones included.
    #[expect(clippy::len_without_is_empty, reason = "a series has at least one value")]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The time of a value, in seconds.
    pub fn time(&self, index: usize) -> i64 {
        let since = (index as i64).saturating_mul(i64::from(self.step.seconds()));
        self.start.saturating_add(since)
    }

    /// A value; none if it is missing or past the end.
    pub fn get(&self, index: usize) -> Option<f64> {
        self.values.get(index).copied().filter(|value| !value.is_nan())
    }

    /// All values in order; none for a missing one.
    pub fn values(&self) -> impl ExactSizeIterator<Item = Option<f64>> + '_ {
        self.values.iter().map(|value| (!value.is_nan()).then_some(*value))
    }

    /// All values, each missing one as the last before it. Before the first known value: that one;
    /// 0 if all are missing.
    pub fn filled(&self) -> Vec<f64> {
        let mut last = self.values().flatten().next().unwrap_or(0.0);
        self.values()
            .map(|value| {
                last = value.unwrap_or(last);
                last
            })
            .collect()
    }

    /// The values from `from` to before `to`, clipped to the series; none if that leaves no value.
    pub fn slice(&self, from: usize, to: usize) -> Option<Series> {
        let values =
            self.values.get(from..to.min(self.len())).filter(|values| !values.is_empty())?;
        Some(Series { start: self.time(from), step: self.step, values: values.to_vec() })
    }

    /// The largest known value of each interval, for capacity that is decided once in it. Values after the last
    /// whole interval are left out. None if an interval is not a whole number of steps, or longer than the series.
    pub fn peaks(&self, interval: Step) -> Option<Series> {
        if !interval.seconds().is_multiple_of(self.step.seconds()) {
            return None;
        }
        // The larger of a missing value, which is NaN, and a known one is the known one.
        let peak = |values: &[f64]| values.iter().copied().fold(f64::NAN, f64::max);
        let values: Vec<f64> =
            self.values.chunks_exact(self.step.per(interval)).map(peak).collect();
        (!values.is_empty()).then_some(Series { start: self.start, step: interval, values })
    }

    /// Checks that enough values are known.
    ///
    /// # Errors
    /// Fewer than `needed` are.
    pub fn require(&self, needed: usize) -> Result<(), SeriesError> {
        let found = self.values().flatten().count();
        if found < needed { Err(SeriesError::TooShort { found, needed }) } else { Ok(()) }
    }
}

fn check_value(row: u64, value: f64) -> Result<(), SeriesError> {
    if !value.is_finite() {
        return Err(SeriesError::NotFinite { row, value });
    }
    if value < 0.0 {
        return Err(SeriesError::Negative { row, value });
    }
    if value > MAX_VALUE {
        return Err(SeriesError::TooLarge { row, value });
    }
    Ok(())
}

/// The shortest time between two rows, after checking that times rise.
fn shortest_step(points: &[Point]) -> Result<Step, SeriesError> {
    let mut shortest: Option<(u64, u64)> = None;
    for (before, point) in points.iter().zip(points.iter().skip(1)) {
        let (row, time) = (point.row, point.time);
        if time == before.time {
            return Err(SeriesError::Duplicate { row, time });
        }
        if time < before.time {
            return Err(SeriesError::Order { row, time, before: before.time });
        }
        let seconds = time.abs_diff(before.time);
        if shortest.is_none_or(|(shortest, _)| seconds < shortest) {
            shortest = Some((seconds, row));
        }
    }
    let (seconds, row) = shortest.unwrap_or((1, 0));
    (u32::try_from(seconds).ok())
        .and_then(Step::from_seconds)
        .ok_or(SeriesError::StepTooLong { row, seconds })
}

/// Marks short runs of zeros between similar values as missing.
fn mark_resets(values: &mut [f64], rows: &[u64]) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut at = 1;
    while at < values.len() {
        let zeros = values[at..].iter().take_while(|value| **value == 0.0).count();
        let (before, after) = (values[at - 1], values.get(at + zeros).copied().unwrap_or(0.0));
        let similar = before > 0.0 && after > 0.5 * before && before > 0.5 * after;
        if (1..=RESET_RUN).contains(&zeros) && similar {
            values[at..at + zeros].fill(f64::NAN);
            notices.push(Notice::Reset { row: rows[at], steps: zeros });
        }
        at += zeros.max(1);
    }
    notices
}
