//! Replays a past solve on its archived snapshot, with its own or other settings.

use super::archive::Archive;
use super::child::{ChildFailure, ChildSolve};
use super::kept_policies::KeptPolicies;
use super::scratch::Scratch;
use super::settings::ServiceSettings;
use crate::results::read_report;
use anyhow::{Context, Result, anyhow};
use broker::Document;
use chrono::{DateTime, Utc};
use fleet::ReservationName;
use report::SolveReport;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A solve to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Its name in the table.
    pub name: String,
    /// Where its snapshot is: a URL of the archive, or a folder.
    pub snapshot: String,
    /// The settings, as TOML.
    pub config: String,
    /// Overrides, as arguments of `ras solve`.
    pub arguments: Vec<String>,
    /// Whether to report the outcome by reservation.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reservations: bool,
}

/// The outcome of a solve for one reservation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Left {
    /// The reservation.
    #[serde(rename = "reservation_id")]
    pub reservation: ReservationName,
    /// Servers it holds.
    pub servers: u32,
    /// The fewest servers worth what it is missing.
    pub missing_servers: u32,
}

impl Left {
    /// From a report; `None` if it has no outcome by reservation.
    pub fn of(report: &SolveReport) -> Option<Vec<Left>> {
        let rows = report.reservations.iter().map(|row| {
            Some(Left {
                reservation: row.reservation_id.clone(),
                servers: u32::try_from(row.servers?).ok()?,
                missing_servers: u32::try_from(row.shortfall_servers?).ok()?,
            })
        });
        rows.collect()
    }
}

/// The outcome of a replay, as its job stores it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its figures.
    pub figures: Figures,
    /// The outcome by reservation, if it was requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reservations: Vec<Left>,
}

/// Runs a replay from the queue.
///
/// # Errors
/// If the snapshot is missing, or the solve fails.
pub async fn run(
    archive: &Archive,
    settings: &ServiceSettings,
    task: &Document,
) -> Result<Outcome> {
    let task = task.read::<Task>().context("the task is from another version of the program")?;
    solve(Some(archive), settings, &task).await
}

/// Solves again.
///
/// # Errors
/// As [`run`].
pub async fn solve(
    archive: Option<&Archive>,
    settings: &ServiceSettings,
    task: &Task,
) -> Result<Outcome> {
    let scratch = Scratch::new()?;
    let path = |name: &str| scratch.path(name);
    let snapshot = match archive.filter(|_| task.snapshot.contains("://")) {
        Some(archive) => {
            archive.get(&task.snapshot, &path("snapshot")).await?;
            path("snapshot")
        }
        None => Path::new(&task.snapshot).to_owned(),
    };
    std::fs::write(path("config.toml"), &task.config).context("writing the settings")?;
    let policies = KeptPolicies::beside(&snapshot)?;
    let child = ChildSolve {
        program: settings.solver.as_deref(),
        snapshot: &snapshot,
        result: &path("result"),
        config: &path("config.toml"),
        policies: &policies.files,
        arguments: &task.arguments,
        deadline: settings.deadline,
        memory: settings.memory,
        progress: None,
    };
    child
        .run()
        .await
        .map_err(|ChildFailure { reason, detail }| anyhow!("{}: {detail}", reason.as_str()))?;
    let (report, _) = read_report(&path("result")).context("cannot read its result")?;
    let reservations = if task.reservations {
        Left::of(&report).context("its report has no reservations")?
    } else {
        Vec::new()
    };
    Ok(Outcome { figures: Figures::of(&report), reservations })
}

/// The figures of a solve that are compared.
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
    /// The embedded buffer as a share of requested capacity.
    pub buffer_share: Option<f64>,
    /// The fewest servers worth all shortfalls; `None` in reports of older versions.
    pub shortfall_servers: Option<f64>,
    /// The proven gap.
    pub gap: Option<f64>,
    /// Its duration.
    pub seconds: Option<f64>,
}

impl Figures {
    /// From a report.
    pub fn of(report: &SolveReport) -> Figures {
        let (objective, moves) = (report.objective, report.moves);
        Figures {
            objective: objective.map(|of| of.total),
            stability: objective.map(|of| of.stability),
            rack_spread: objective.map(|of| of.rack_spread),
            msb_spread: objective.map(|of| of.msb_spread),
            buffer: objective.map(|of| of.buffer),
            moves_in_use: moves.map(|of| of.in_use as f64),
            moves_idle: moves.map(|of| of.idle as f64),
            buffer_share: report.buffer.map(|of| of.share),
            shortfall_servers: report.shortfall_servers.map(|of| of as f64),
            gap: report.gap(),
            seconds: report.seconds.total,
        }
    }
}

/// The measures drawn and listed of replays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Expressions 1 to 4 together.
    Objective,
    /// Expression 1.
    Stability,
    /// Expression 2.
    RackSpread,
    /// Expression 3.
    MsbSpread,
    /// Expression 4.
    Buffer,
    /// The embedded buffer as a share of requested capacity.
    BufferShare,
    /// Servers in use that move.
    MovesInUse,
    /// Idle servers that move.
    MovesIdle,
    /// The fewest servers worth all shortfalls.
    Shortfall,
    /// The proven gap.
    Gap,
}

impl Measure {
    /// All measures, in display order.
    pub const ALL: [Measure; 10] = [
        Measure::Objective,
        Measure::Stability,
        Measure::RackSpread,
        Measure::MsbSpread,
        Measure::Buffer,
        Measure::BufferShare,
        Measure::MovesInUse,
        Measure::MovesIdle,
        Measure::Shortfall,
        Measure::Gap,
    ];

    /// Its label.
    pub const fn title(self) -> &'static str {
        match self {
            Measure::Objective => "objective",
            Measure::Stability => "stability",
            Measure::RackSpread => "rack spread",
            Measure::MsbSpread => "MSB spread",
            Measure::Buffer => "buffer",
            Measure::BufferShare => "buffer share",
            Measure::MovesInUse => "moves in use",
            Measure::MovesIdle => "moves idle",
            Measure::Shortfall => "servers missing",
            Measure::Gap => "gap",
        }
    }

    /// Its value.
    pub fn of(self, figures: &Figures) -> Option<f64> {
        match self {
            Measure::Objective => figures.objective,
            Measure::Stability => figures.stability,
            Measure::RackSpread => figures.rack_spread,
            Measure::MsbSpread => figures.msb_spread,
            Measure::Buffer => figures.buffer,
            Measure::BufferShare => figures.buffer_share,
            Measure::MovesInUse => figures.moves_in_use,
            Measure::MovesIdle => figures.moves_idle,
            Measure::Shortfall => figures.shortfall_servers,
            Measure::Gap => figures.gap,
        }
    }

    /// Formats a value.
    pub fn show(self, value: f64) -> String {
        match self {
            Measure::BufferShare | Measure::Gap => format!("{:.2} %", 100.0 * value),
            Measure::MovesInUse | Measure::MovesIdle | Measure::Shortfall => {
                format!("{value:.0}")
            }
            _ => format!("{value:.1}"),
        }
    }
}

/// A past solve compared with its replay.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// Its name.
    pub name: String,
    /// Where its snapshot is.
    pub snapshot: String,
    /// The recorded outcome; `None` if it was not recorded.
    pub recorded: Option<Figures>,
    /// The outcome of the replay; `None` if it failed.
    pub replayed: Option<Figures>,
    /// Why it failed.
    pub failure: Option<String>,
    /// Time of the solve's request; `None` for a folder.
    #[serde(skip)]
    pub at: Option<DateTime<Utc>>,
    /// The outcomes by reservation, recorded and replayed; empty unless requested.
    #[serde(skip)]
    pub left: [Vec<Left>; 2],
}

impl Replayed {
    /// One measure, recorded and replayed.
    pub fn pair(&self, measure: Measure) -> [Option<f64>; 2] {
        [&self.recorded, &self.replayed]
            .map(|figures| figures.as_ref().and_then(|figures| measure.of(figures)))
    }

    /// Takes the outcome of a replay.
    pub fn take(&mut self, outcome: Outcome) {
        self.left[1] = outcome.reservations;
        self.replayed = Some(outcome.figures);
    }

    /// Takes the outcome that a job stores.
    pub fn take_stored(&mut self, outcome: &Document) {
        match outcome.read() {
            Ok(outcome) => self.take(outcome),
            Err(_) => {
                self.failure = Some("its outcome is from another version of the program".to_owned())
            }
        }
    }
}
