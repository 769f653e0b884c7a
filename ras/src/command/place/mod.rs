//! `ras place`

mod explain;
mod input;
mod simulate;
mod text;

use crate::cli::{Engine, Place, PlaceAction, Search};
use crate::context::Context;
use crate::exit::Verdict;
use crate::interrupt;
use crate::number;
use crate::quantity::show_duration;
use crate::results::write_text;
use crate::terminal::{Spinner, say};
use anyhow::{Context as _, Result};
use datasets::cluster::{PlacementFile, ScheduleFile, roadef};
use fleet::number::{counted, decimal};
use placement::{
    Cluster, Found, Limits, Progress, Schedule, ScheduleFlaw, ServiceFabric, annealing, audit,
    audit_schedule, schedule, search,
};
use report::PlacementPage;
use report::line_chart::Point;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use text::{Answer, PAGE};

/// Interval of progress lines where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(options: &Place, context: &Context) -> Result<Verdict> {
    if let Some(PlaceAction::Explain(options)) = &options.action {
        return explain::run(options, context);
    }
    if let Some(PlaceAction::Simulate(options)) = &options.action {
        return simulate::run(options, context);
    }
    // Both are required where there is no action.
    let (input, options) =
        options.input.as_ref().zip(options.search.as_ref()).context("no CLUSTER")?;
    let (cluster, notes) = input::read(input)?;
    if !context.global.quiet {
        notes.iter().for_each(|note| say(&format!("note: {note}")));
    }
    interrupt::listen()?;
    let began = Instant::now();
    let (found, history) = find(&cluster, options, context, began);
    let seconds = began.elapsed().as_secs_f64();
    let began = Instant::now();
    let (phases, flaws) = phases(&cluster, &found, context, began);
    let phases_file = ScheduleFile::new(&cluster, &phases, &flaws, began.elapsed().as_secs_f64());
    let file = PlacementFile::new(&cluster, &found, phases_file, seconds);
    let nodes: Option<Vec<_>> = found.assignment.iter().copied().collect();
    file.write(&options.out)?;
    if input.assignment.is_some() {
        // The search takes no process off its machine for good.
        let nodes = nodes.context("a process has no machine")?;
        roadef::write(&options.out.join("assignment.txt"), &nodes)?;
    }
    let today = audit(&cluster, &cluster.today());
    let page = PlacementPage {
        cluster: &cluster,
        found: &found,
        schedule: &phases,
        flaws: &flaws,
        broken_today: &today,
        history: &history,
        seconds,
    };
    write_text(&options.out.join(PAGE), &report::render_placement(&page))?;
    let answer =
        Answer { cluster: &cluster, today: &today, found: &found, file: &file, out: &options.out };
    context.answer(|| answer.text(), &file)?;
    Ok(Verdict::fine_if(found.violations.is_empty() && flaws.is_empty()))
}

/// The answer, and value and bound during the search.
fn find(
    cluster: &Cluster,
    options: &Search,
    context: &Context,
    began: Instant,
) -> (Found, Vec<Point>) {
    let history = Mutex::new(Vec::new());
    let told = |value: f64, bound: f64| {
        let seconds = began.elapsed().as_secs_f64();
        let point = Point { seconds, value: Some(value), bound: Some(bound) };
        history.lock().unwrap_or_else(PoisonError::into_inner).push(point);
    };
    let quiet = context.global.quiet;
    let line = if quiet { None } else { Spinner::new("{spinner} {wide_msg}") };
    let last = Mutex::new(began);
    let best = Mutex::new(f64::INFINITY);
    let progress = |progress: &Progress| {
        let Progress { value, bound } = *progress;
        // Each thread tells its own best one.
        let mut best = best.lock().unwrap_or_else(PoisonError::into_inner);
        *best = best.min(value);
        let value = *best;
        told(value, bound);
        let text = format!(
            "value {} | bound {} | {} of {}",
            decimal(value),
            decimal(bound),
            show_duration(began.elapsed()),
            show_duration(options.deadline)
        );
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        match &line {
            Some(line) => line.set(&text),
            None if !quiet && last.elapsed() >= INTERVAL => {
                *last = Instant::now();
                say(&text);
            }
            None => {}
        }
    };
    let limits = Limits {
        seed: options.seed,
        rounds: None,
        deadline: Some(options.deadline),
        gap: options.gap,
        threads: options.threads.into(),
        elapsed: &|| began.elapsed(),
        interrupted: &interrupt::asked,
        progress: &progress,
    };
    let found = match options.engine {
        Engine::Search => search(cluster, &limits),
        Engine::Annealing => annealing(cluster, &ServiceFabric::default(), &limits),
    };
    if let Some(line) = line {
        line.finish();
    }
    told(found.value.total, found.bound);
    (found, history.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The moves in phases, and what the audit finds wrong with them.
fn phases(
    cluster: &Cluster,
    found: &Found,
    context: &Context,
    began: Instant,
) -> (Schedule, Vec<ScheduleFlaw>) {
    let quiet = context.global.quiet;
    let line = if quiet { None } else { Spinner::new("{spinner} {wide_msg} {elapsed}") };
    let tell = |step: &str| {
        if let Some(line) = &line {
            line.set(step);
        }
    };
    tell("moves are put into phases");
    let made = schedule(cluster, &found.assignment);
    tell("phases are checked");
    let flaws = audit_schedule(cluster, &found.assignment, &made);
    match &line {
        Some(line) => line.finish(),
        None if !quiet && began.elapsed() >= INTERVAL => say(&format!(
            "schedule of {} in {}",
            counted(made.phases.len(), "phase"),
            number::seconds(began.elapsed().as_secs_f64())
        )),
        None => {}
    }
    (made, flaws)
}
