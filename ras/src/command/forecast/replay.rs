//! `ras forecast replay`: decisions of the past, each from what was known then.

mod orders;
mod requests;
mod spares;

use super::archived::{ArchivedRegion, Range, STEP, show};
use crate::cli::{Decisions, ReplayForecast};
use crate::context::Context;
use crate::exit::Verdict;
use crate::progress::Reporter;
use anyhow::{Result, ensure};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::Name;
use serde::Serialize;

/// The longest time that anything is learnt from.
const LEARNT_MOST: TimeDelta = TimeDelta::days(400);

/// `ras-forecast-replay/1`
#[derive(Serialize)]
struct Answer {
    format: &'static str,
    region: Name,
    /// The first and the last snapshot.
    from: DateTime<Utc>,
    until: DateTime<Utc>,
    snapshots: usize,
    /// Hours without a snapshot, from the first to the last.
    hours_missing: usize,
    step_seconds: u32,
    /// The first instant that anything is decided at.
    since: DateTime<Utc>,
    autosize: Option<Part<requests::Replayed>>,
    spares: Option<Part<spares::Replayed>>,
    orders: Option<Part<orders::Replayed>>,
}

/// Decisions that were replayed, or why they cannot be.
#[derive(Serialize)]
#[serde(untagged)]
enum Part<T> {
    Replayed(T),
    Refused { refused: String },
}

impl<T> Part<T> {
    fn of(replayed: Result<T>) -> Part<T> {
        match replayed {
            Ok(replayed) => Part::Replayed(replayed),
            Err(error) => Part::Refused { refused: format!("{error:#}") },
        }
    }
}

pub(super) fn run(options: &ReplayForecast, context: &Context) -> Result<Verdict> {
    let range = Range {
        from: options.since.map_or(Range::ALL.from, |since| {
            since.checked_sub_signed(LEARNT_MOST).unwrap_or(Range::ALL.from)
        }),
        until: options.until.unwrap_or(Range::ALL.until),
    };
    if let (Some(since), Some(until)) = (options.since, options.until) {
        ensure!(since < until, "--since {}: is not before --until {}", show(since), show(until));
    }
    let archive = ArchivedRegion::read(&options.archive, range, context)?;
    let (first, last) = (archive.times[0], archive.times[archive.times.len() - 1]);
    let since = options.since.unwrap_or(first + (last - first) / 4);
    ensure!(
        since <= last,
        "archive {}: no snapshot is from {} on; the last one read is of {}",
        options.archive,
        show(since),
        show(last)
    );
    let reporter = Reporter::new(context.global.quiet, context.began, None);
    let replays = |of: Decisions| options.replays(of);
    // Wrong options, and settings of a running region that cannot be read, are no reason to leave a part out.
    if replays(Decisions::Autosize) {
        requests::check(&options.autosize, &archive)?;
    }
    if replays(Decisions::Orders) {
        orders::check(&options.orders, &archive)?;
    }
    let own = requests::own(options, &archive)?;
    let autosize = replays(Decisions::Autosize)
        .then(|| Part::of(requests::replay(&options.autosize, &archive, since, &own, &reporter)));
    let spares = replays(Decisions::Spares)
        .then(|| Part::of(spares::replay(options, &archive, since, &reporter)));
    let orders = replays(Decisions::Orders)
        .then(|| Part::of(orders::replay(&options.orders, &archive, since, &reporter)));
    reporter.finish();
    let hour = |at: DateTime<Utc>| at.timestamp().div_euclid(STEP.into());
    let hours = hour(last) - hour(first) + 1;
    let mut seen: Vec<i64> = archive.times.iter().map(|at| hour(*at)).collect();
    seen.dedup();
    let answer = Answer {
        format: "ras-forecast-replay/1",
        region: archive.region.clone(),
        from: first,
        until: last,
        snapshots: archive.times.len(),
        hours_missing: usize::try_from(hours).unwrap_or(0).saturating_sub(seen.len()),
        step_seconds: STEP,
        since,
        autosize,
        spares,
        orders,
    };
    context.answer(|| text(&answer, options.all), &answer)?;
    Ok(Verdict::Fine)
}

/// The answer for people.
fn text(answer: &Answer, all: bool) -> String {
    let mut text = format!(
        "{}: {} snapshots from {} to {}, decided from {} on",
        answer.region,
        fleet::number::count(answer.snapshots),
        show(answer.from),
        show(answer.until),
        show(answer.since)
    );
    if answer.hours_missing > 0 {
        let hours = fleet::number::counted(answer.hours_missing, "hour");
        text.push_str(&format!("\nnote: {hours} without a snapshot count as unknown"));
    }
    let mut part = |title: &str, part: Option<String>| {
        if let Some(part) = part {
            text.push_str(&format!("\n\n{title}\n\n{part}"));
        }
    };
    part("Requests that follow demand", shown(&answer.autosize, |of| requests::text(of, all)));
    part("Spares for failed servers", shown(&answer.spares, |of| spares::text(of, all)));
    part("Orders of hardware", shown(&answer.orders, |of| orders::text(of, all)));
    text
}

fn shown<T>(part: &Option<Part<T>>, text: impl FnOnce(&T) -> String) -> Option<String> {
    part.as_ref().map(|part| match part {
        Part::Replayed(replayed) => text(replayed),
        Part::Refused { refused } => format!("cannot be replayed: {refused}"),
    })
}

/// Tells ten times at most how far a part is.
fn tell(reporter: &Reporter, part: &str, done: usize, of: usize) {
    if done * 10 / of.max(1) != (done - 1) * 10 / of.max(1) {
        reporter.note(&format!("{part}: {done} of {of}"));
    }
}

/// An instant of seconds.
fn instant(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap_or_default()
}
