//! A solve of the past, solved again: on its archived snapshot, with other settings if wanted.

use super::archive::Archive;
use super::child::{ChildFailure, ChildSolve};
use super::settings::ServiceSettings;
use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::path::Path;

/// What is to be solved again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// How it is named in the table.
    pub name: String,
    /// Where its snapshot is: a URL of the archive, or a folder.
    pub snapshot: String,
    /// The settings, as TOML.
    pub config: String,
    /// What of the command line of `ras solve` differs.
    pub arguments: Vec<String>,
}

/// Does a replay of the queue.
///
/// # Errors
/// If the snapshot is not there, or the solve fails.
pub async fn run(archive: &Archive, settings: &ServiceSettings, task: &Value) -> Result<Value> {
    let task = Task::deserialize(task).context("the task is of another program")?;
    solve(Some(archive), settings, &task).await
}

/// Solves again; gives the report.
///
/// # Errors
/// As [`run`].
pub async fn solve(
    archive: Option<&Archive>,
    settings: &ServiceSettings,
    task: &Task,
) -> Result<Value> {
    let scratch = tempfile::Builder::new().prefix("ras-replay-").tempdir();
    let scratch = scratch.context("a folder for the replay cannot be made")?;
    let path = |name: &str| scratch.path().join(name);
    let snapshot = match archive.filter(|_| task.snapshot.contains("://")) {
        Some(archive) => {
            archive.get(&task.snapshot, &path("snapshot")).await?;
            path("snapshot")
        }
        None => Path::new(&task.snapshot).to_owned(),
    };
    std::fs::write(path("config.toml"), &task.config).context("writing the settings")?;
    let child = ChildSolve {
        program: settings.solver.as_deref(),
        snapshot: &snapshot,
        result: &path("result"),
        config: &path("config.toml"),
        arguments: &task.arguments,
        deadline: settings.deadline,
        memory: settings.memory,
    };
    child
        .run()
        .await
        .map_err(|ChildFailure { reason, detail }| anyhow!("{}: {detail}", reason.as_str()))?;
    let report = datasets::read_report(&path("result")).context("its result cannot be read")?;
    Ok(json!({ "figures": Figures::of(&report) }))
}

/// What is compared of a solve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Expressions 1 to 4 together.
    pub objective: Option<f64>,
    /// Expression 1.
    pub stability: Option<f64>,
    /// Expression 2.
    pub rack_spread: Option<f64>,
    /// Expression 3.
    pub msb_spread: Option<f64>,
    /// Expression 4.
    pub buffer: Option<f64>,
    /// Servers in use that move.
    pub moves_in_use: Option<f64>,
    /// Idle servers that move.
    pub moves_idle: Option<f64>,
    /// The embedded buffer as a share of what is asked.
    pub buffer_share: Option<f64>,
    /// RRU missing.
    pub shortfall: Option<f64>,
    /// The proved gap.
    pub gap: Option<f64>,
    /// How long it took.
    pub seconds: Option<f64>,
}

impl Figures {
    /// From a report.
    pub fn of(report: &Value) -> Figures {
        let number = |pointer: &str| report.pointer(pointer).and_then(Value::as_f64);
        Figures {
            objective: number("/objective/total"),
            stability: number("/objective/stability"),
            rack_spread: number("/objective/rack_spread"),
            msb_spread: number("/objective/msb_spread"),
            buffer: number("/objective/buffer"),
            moves_in_use: number("/moves/in_use"),
            moves_idle: number("/moves/idle"),
            buffer_share: number("/buffer/share"),
            shortfall: number("/shortfall_rru"),
            gap: number("/phase1/gap"),
            seconds: number("/seconds/total"),
        }
    }
}
