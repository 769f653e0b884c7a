//! `ras ops replay`

use super::replay_tables;
use crate::cli::Replay;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::overrides::Overrides;
use crate::replay_page;
use crate::results::write_text;
use crate::service::replay::{self, Figures, Left, Measure, Replayed, Task};
use crate::service::{Archive, ServiceSettings};
use crate::store::{self, Need, Places, Store};
use anyhow::{Context as _, Result, bail, ensure};
use broker::{BatchId, Broker, Document, JobId, SolveId, SolveRow};
use chrono::DateTime;
use report::SolveReport;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// The most solves replayed at once: a year of hourly ones.
const SOLVES_MAX: u32 = 10_000;

/// Poll interval of a fan-out without notifications.
const LOOK_EVERY: Duration = Duration::from_secs(5);

pub(in crate::command) fn run(options: &Replay, context: &Context) -> Result<Verdict> {
    replay_tables::check(options.tables)?;
    let overrides = Overrides::from(&options.overrides);
    let rows = store::run(replay(options, &overrides))?;
    let settings = match overrides.arguments() {
        arguments if arguments.is_empty() => "with their recorded settings".to_owned(),
        arguments => format!("with {}", arguments.join(" ")),
    };
    if let Some(page) = &options.out {
        write_text(page, &replay_page::render(&rows, &settings))?;
    }
    let tables = options.tables.then(|| replay_tables::of(&rows)).transpose()?;
    let failed = rows.iter().filter(|row| row.failure.is_some()).count();
    let text = || {
        let mut text = format!("{}\n\n{} replayed {settings}", table(&rows), rows.len());
        if let Some(tables) = &tables {
            text.push_str(&tables.text);
        }
        for row in rows.iter().filter(|row| row.failure.is_some()) {
            text.push_str(&format!(
                "\n{} failed: {}",
                row.name,
                row.failure.as_deref().unwrap_or("")
            ));
        }
        if let Some(page) = &options.out {
            text.push_str(&format!("\npage written to {}", page.display()));
        }
        text
    };
    let mut document = json!({ "overrides": overrides, "solves": rows });
    if let Some(tables) = &tables {
        document["days"] = tables.days.clone();
        document["reservations"] = tables.reservations.clone();
    }
    context.answer(text, &document)?;
    ensure!(failed == 0, "{failed} of {} replays failed", rows.len());
    Ok(Verdict::Fine)
}

async fn replay(options: &Replay, overrides: &Overrides) -> Result<Vec<Replayed>> {
    let places = Places::of(&options.store)?;
    let config = options.store.config.as_deref();
    let settings = ServiceSettings::new(&options.worker, None, config, &places)?;
    let (ids, folders): (Vec<&String>, Vec<&String>) =
        options.what.iter().partition(|what| what.parse::<SolveId>().is_ok());
    let stored = !ids.is_empty() || options.last.is_some() || options.since.is_some();
    ensure!(
        stored || !folders.is_empty(),
        "nothing to replay: give solves, folders, --last or --since"
    );
    let mut work = Work {
        settings,
        arguments: overrides.arguments(),
        tables: options.tables,
        rows: Vec::new(),
        tasks: Vec::new(),
    };
    for folder in folders {
        work.add_folder(folder)?;
    }
    if !stored && !options.fan_out {
        work.solve_here(None).await;
        return Ok(work.rows);
    }
    let store = Store::open(&places, Need::There).await?;
    let outcome = async {
        let archive = Archive::open(&work.settings.archive)?;
        for solve in chosen(&store.broker, options, &ids).await? {
            work.add_solve(&store.broker, &solve).await?;
        }
        ensure!(!work.rows.is_empty(), "no such solve");
        if options.fan_out {
            work.fan_out(&store.broker, &archive).await
        } else {
            work.solve_here(Some(&archive)).await;
            Ok(())
        }
    };
    let outcome = outcome.await;
    let closed = store.close().await;
    outcome.and(closed)?;
    Ok(work.rows)
}

/// The selected solves, oldest first.
async fn chosen(broker: &Broker, options: &Replay, ids: &[&String]) -> Result<Vec<SolveRow>> {
    let mut solves = Vec::new();
    for id in ids {
        let solve = broker.solve(id.parse()?).await?;
        solves.push(solve.with_context(|| format!("no solve {id}"))?);
    }
    if options.last.is_some() || options.since.is_some() {
        let since = options.since.unwrap_or(DateTime::UNIX_EPOCH);
        let mut latest = broker.solves(since, SOLVES_MAX).await?;
        latest.retain(|solve| solve.version.is_some() && solve.snapshot_url.is_some());
        latest.truncate(options.last.unwrap_or(SOLVES_MAX) as usize);
        latest.reverse();
        solves.extend(latest);
    }
    Ok(solves)
}

/// The replays and their outcomes: one task per row.
struct Work {
    settings: ServiceSettings,
    arguments: Vec<String>,
    /// Whether tables by reservation are wanted.
    tables: bool,
    rows: Vec<Replayed>,
    tasks: Vec<Task>,
}

impl Work {
    fn add(&mut self, name: String, snapshot: String, config: String, recorded: Option<Figures>) {
        let (arguments, reservations) = (self.arguments.clone(), self.tables);
        let (task, from) = (name.clone(), snapshot.clone());
        self.tasks.push(Task { name: task, snapshot: from, config, arguments, reservations });
        let (replayed, failure, at, left) = (None, None, None, Default::default());
        self.rows.push(Replayed { name, snapshot, recorded, replayed, failure, at, left });
    }

    fn add_folder(&mut self, folder: &str) -> Result<()> {
        let path = std::path::absolute(folder)?;
        ensure!(path.is_dir(), "{folder} is neither the id of a solve nor a folder");
        let config = self.settings.solving.to_string();
        self.add(folder.to_owned(), path.display().to_string(), config, None);
        Ok(())
    }

    async fn add_solve(&mut self, broker: &Broker, solve: &SolveRow) -> Result<()> {
        let id = solve.id;
        let Some(url) = solve.snapshot_url.clone() else {
            bail!("solve {id}: its snapshot is not in the archive");
        };
        let config = broker.solve_config(id).await?;
        let config: Value = config.and_then(|of| of.read().ok()).unwrap_or_default();
        let config = toml::to_string(config.get("settings").unwrap_or(&json!({})));
        let config = config.with_context(|| format!("solve {id}: its settings"))?;
        let report = broker
            .solve_report(id)
            .await?
            .map(|of| -> Result<SolveReport> { Ok(SolveReport::read(&of.read::<Value>()?)?) });
        let report = report.transpose().with_context(|| format!("solve {id}"))?;
        let recorded = report.as_ref().map(Figures::of);
        let left = report.as_ref().filter(|_| self.tables).and_then(Left::of);
        // Its id is in the URL of its snapshot; here it would leave no room for the figures.
        let name = solve.requested_at.format("%Y-%m-%d %H:%M:%S").to_string();
        self.add(name, url, config, recorded);
        if let Some(row) = self.rows.last_mut() {
            row.at = Some(solve.requested_at);
            row.left[0] = left.unwrap_or_default();
        }
        Ok(())
    }

    /// Replays one after another, in child processes.
    async fn solve_here(&mut self, archive: Option<&Archive>) {
        for (row, task) in self.rows.iter_mut().zip(&self.tasks) {
            match replay::solve(archive, &self.settings, task).await {
                Ok(outcome) => row.take(outcome),
                Err(error) => row.failure = Some(format!("{error:#}")),
            }
        }
    }

    /// Replays by the workers of the queue; local folders are copied to the archive first.
    async fn fan_out(&mut self, broker: &Broker, archive: &Archive) -> Result<()> {
        let batch = BatchId::now_v7();
        let mut jobs: Vec<(JobId, Document)> = Vec::new();
        for (number, task) in self.tasks.iter_mut().enumerate() {
            if !task.snapshot.contains("://") {
                let name = format!("replays/{batch}/{number}/snapshot");
                task.snapshot = archive.put(&name, Path::new(&task.snapshot)).await?;
            }
            jobs.push((JobId::now_v7(), Document::of(&*task)));
        }
        let mut listener = broker.job_listener().await?;
        broker.request_replays(batch, &jobs).await?;
        let ended = loop {
            let ended = broker.batch(batch).await?;
            if ended.iter().all(|job| job.outcome.is_some() || job.failure.is_some()) {
                break ended;
            }
            listener.wait(LOOK_EVERY).await;
        };
        for job in ended {
            let place = jobs.iter().position(|(id, _)| *id == job.job);
            let row = &mut self.rows[place.expect("a job of this batch")];
            match (job.outcome, job.failure) {
                (Some(outcome), _) => row.take_stored(&outcome),
                (None, failure) => row.failure = failure,
            }
        }
        // Snapshots that were copied there only for this.
        archive.delete(&format!("replays/{batch}")).await
    }
}

/// The columns that fit a terminal; the page and JSON also have the terms of the objective.
const LISTED: [Measure; 6] = [
    Measure::Objective,
    Measure::BufferShare,
    Measure::MovesInUse,
    Measure::MovesIdle,
    Measure::Shortfall,
    Measure::Gap,
];

fn table(rows: &[Replayed]) -> String {
    let titles = LISTED.map(Measure::title);
    let header = [&["solve", ""][..], &titles].concat();
    let mut table = Table::new(&header, 2..header.len());
    for row in rows {
        for (place, words) in [(0, "recorded"), (1, "replayed")] {
            let name = if place == 0 { row.name.clone() } else { String::new() };
            let values = LISTED.map(|measure| {
                row.pair(measure)[place].map_or("-".to_owned(), |value| measure.show(value))
            });
            table.add_row([name, words.to_owned()].into_iter().chain(values));
        }
    }
    table.to_string()
}
