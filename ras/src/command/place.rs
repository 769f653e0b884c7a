//! `ras place`

use super::explain_result::suggestion;
use crate::cli::Place;
use crate::context::Context;
use crate::exit::Verdict;
use crate::interrupt;
use crate::layout::{Table, facts};
use crate::mistake::Hinted;
use crate::number;
use crate::quantity::show_duration;
use crate::results::{read_snapshot, write_text};
use crate::terminal::{Spinner, say};
use anyhow::{Context as _, Result, bail};
use datasets::cluster::{self, PlacementFile, kubernetes, roadef};
use fleet::number::{counted, decimal};
use placement::{Cluster, Found, Limits, Progress, Violation, audit, search};
use report::PlacementPage;
use report::line_chart::Point;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Moves and violations that are listed; the file has all.
const LISTED: usize = 20;
/// The page of the answer.
const PAGE: &str = "placement.html";
/// Interval of progress lines where there is no terminal.
const INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn run(options: &Place, context: &Context) -> Result<Verdict> {
    let (cluster, notes) = read(options)?;
    if !context.global.quiet {
        notes.iter().for_each(|note| say(&format!("note: {note}")));
    }
    interrupt::listen()?;
    let began = Instant::now();
    let (found, history) = find(&cluster, options, context, began);
    let seconds = began.elapsed().as_secs_f64();
    let file = PlacementFile::new(&cluster, &found, seconds);
    let nodes: Option<Vec<_>> = found.assignment.iter().copied().collect();
    file.write(&options.out)?;
    if options.assignment.is_some() {
        // The search takes no process off its machine for good.
        let nodes = nodes.context("a process has no machine")?;
        roadef::write(&options.out.join("assignment.txt"), &nodes)?;
    }
    let today = audit(&cluster, &cluster.today());
    let page = PlacementPage {
        cluster: &cluster,
        found: &found,
        broken_today: &today,
        history: &history,
        seconds,
    };
    write_text(&options.out.join(PAGE), &report::render_placement(&page))?;
    context.answer(|| text(&cluster, &today, &found, &file, options), &file)?;
    Ok(Verdict::fine_if(found.violations.is_empty()))
}

/// The cluster, and what of the input it leaves out.
fn read(options: &Place) -> Result<(Cluster, Vec<String>)> {
    let file = &options.cluster;
    if let Some(assignment) = &options.assignment {
        return Ok((roadef::read(file, assignment)?, Vec::new()));
    }
    if !file.to_string_lossy().ends_with(".json") {
        let what = format!("{}: is not a .json file", file.display());
        let hint = "a model of the ROADEF/EURO challenge needs --assignment FILE";
        return Err(Hinted::new(what, hint).into());
    }
    if let (Some(folder), Some(name)) = (&options.snapshot, &options.reservation) {
        let snapshot = read_snapshot(folder)?;
        let Some(reservation) = snapshot.reservation(name) else {
            bail!("no reservation {name:?}{}", suggestion(&snapshot, name));
        };
        return Ok((cluster::read_on(file, &snapshot, reservation)?, Vec::new()));
    }
    if kubernetes::is_list(file) {
        let imported = kubernetes::read(file)?;
        return Ok((imported.cluster, imported.notes));
    }
    Ok((cluster::read(file)?, Vec::new()))
}

/// The answer, and value and bound during the search.
fn find(
    cluster: &Cluster,
    options: &Place,
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
    let progress = |progress: &Progress| {
        let Progress { value, bound } = *progress;
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
    let found = search(
        cluster,
        &Limits {
            seed: options.seed,
            rounds: None,
            deadline: Some(options.deadline),
            gap: options.gap,
            threads: options.threads.into(),
            elapsed: &|| began.elapsed(),
            interrupted: &interrupt::asked,
            progress: &progress,
        },
    );
    if let Some(line) = line {
        line.finish();
    }
    told(found.value.total, found.bound);
    (found, history.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn text(
    cluster: &Cluster,
    today: &[Violation],
    found: &Found,
    file: &PlacementFile,
    options: &Place,
) -> String {
    let terms = found.value.terms.iter();
    let terms: Vec<String> = terms
        .map(|(name, value)| format!("{} {}", name.replace('_', " "), decimal(*value)))
        .collect();
    let new = file.moves.iter().filter(|of| of.from.is_none()).count();
    let moved = file.moves.len() - new;
    let cost: f64 = file.moves.iter().map(|of| of.cost).sum();
    let gap = found.gap().map_or("no gap, because rules are broken".to_owned(), |gap| {
        format!("gap {}", number::percent(gap))
    });
    let mut lines = facts(&[
        ("cluster", cluster.name.clone()),
        (
            "size",
            format!(
                "{}, {} of {}, {}, {}",
                counted(cluster.nodes.len(), "node"),
                counted(cluster.replicas.len(), "replica"),
                counted(cluster.services.len(), "service"),
                counted(cluster.metrics.len(), "metric"),
                counted(cluster.rules.len(), "rule")
            ),
        ),
        (
            "violations",
            format!(
                "{} today, {} after",
                number::count(today.len()),
                number::count(found.violations.len())
            ),
        ),
        (
            "moves",
            format!(
                "{} at a cost of {}, {} new",
                counted(moved, "move"),
                decimal(cost),
                number::count(new)
            ),
        ),
        ("value", format!("{} = {}", decimal(found.value.total), terms.join(" + "))),
        ("bound", format!("{}, {gap}", decimal(found.bound))),
        ("time", number::seconds(file.seconds)),
        ("file", options.out.join("placement.json").display().to_string()),
        ("page", options.out.join(PAGE).display().to_string()),
    ]);
    lines.push_str("\n\n");
    lines.push_str(&loads(cluster, found).to_string());
    if !found.violations.is_empty() {
        lines.push_str("\n\nthe assignment breaks rules:");
        for violation in found.violations.iter().take(LISTED) {
            lines.push_str(&format!("\n  {violation}"));
        }
        if let more @ 1.. = found.violations.len().saturating_sub(LISTED) {
            lines.push_str(&format!("\n  … {} more in placement.json", number::count(more)));
        }
    }
    if !file.moves.is_empty() {
        let mut table = Table::new(&["replica", "from", "to", "cost"], 3..4);
        for of in file.moves.iter().take(LISTED) {
            let node = |node: Option<&str>, none: &str| node.unwrap_or(none).to_owned();
            let cells = [of.replica.to_owned(), node(of.from, "new"), node(of.to, "not placed")];
            table.add_row(cells.into_iter().chain([decimal(of.cost)]));
        }
        lines.push_str(&format!("\n\n{table}"));
        if let more @ 1.. = file.moves.len().saturating_sub(LISTED) {
            lines.push_str(&format!("\n… {} more in placement.json", number::count(more)));
        }
    }
    lines
}

/// Use of each metric: on average, and on the fullest node today and after.
fn loads(cluster: &Cluster, found: &Found) -> Table {
    let columns = ["metric", "used", "fullest node today", "fullest node after"];
    let mut table = Table::new(&columns, 1..4);
    let (today, after) = (cluster.today(), &found.assignment);
    for (position, metric) in cluster.metrics.iter().enumerate() {
        let fullest = |assignment: &placement::Assignment| {
            let mut used = vec![0; cluster.nodes.len()];
            for (replica, node) in cluster.replicas.iter().zip(assignment) {
                if let Some(node) = node {
                    used[node.ix()] += replica.demand[position];
                }
            }
            let share = |(used, node): (&i64, &placement::Node)| {
                node.capacity[position].map(|limit| *used as f64 / limit.max(1) as f64)
            };
            let shares = used.iter().zip(&cluster.nodes).filter_map(share);
            shares.max_by(f64::total_cmp).map_or("-".to_owned(), number::percent)
        };
        let demand: i64 = cluster.replicas.iter().map(|replica| replica.demand[position]).sum();
        let limits: Option<i64> = cluster.nodes.iter().map(|node| node.capacity[position]).sum();
        let used = limits
            .map_or("-".to_owned(), |limit| number::percent(demand as f64 / limit.max(1) as f64));
        table.add_row([metric.name.clone(), used, fullest(&today), fullest(after)]);
    }
    table
}
