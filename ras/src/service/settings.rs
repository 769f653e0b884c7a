//! Settings of the service: defaults, then `ras.toml`, then the command line.

use super::cron::Schedule;
use crate::cli::{ScheduleOptions, SolveOptions, WorkerOptions};
use crate::settings::{self, Settings};
use crate::store::Places;
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The paper's objective is one hour from snapshot to targets; ten minutes remain for everything
/// else.
const DEADLINE: Duration = Duration::from_secs(50 * 60);
/// A million servers take 3 GiB; the limit stops a leak before it takes down the machine.
const MEMORY: u64 = 16 << 30;
/// Longer than a pause of a virtual machine, short compared with a solve.
const LEASE: Duration = Duration::from_secs(60);
/// A tenth of an MSB of a large region.
const EVENT_SERVERS: u32 = 100;
/// A day of hourly solves.
const KEEP_LEAST: u32 = 24;
/// A month of hourly solves, and some on demand.
const KEEP_MOST: u32 = 1_000;
/// A month.
const KEEP_AGE: Duration = Duration::from_secs(31 * 24 * 3600);

/// The settings of a service.
#[derive(Clone, Debug)]
pub struct ServiceSettings {
    /// Schedule of solves; `None` for solves on request only.
    pub schedule: Option<Schedule>,
    /// Number of newly unavailable servers that triggers a solve at once; 0: never.
    pub event_servers: u32,
    /// Deadline of a solve.
    pub deadline: Duration,
    /// Memory limit of a solve, in bytes.
    pub memory: u64,
    /// Duration of a worker's lease on a job.
    pub lease: Duration,
    /// The archive of solves.
    pub archive: String,
    /// Number of newest solves kept at any age.
    pub keep_least: u32,
    /// Maximum number of solves kept.
    pub keep_most: u32,
    /// Maximum age of other solves.
    pub keep_age: Duration,
    /// Solves that move more servers in use than this, and requests that move more of others, await the approval of an
    /// operator; `None`: none does.
    pub approval_above_in_use_moves: Option<u64>,
    /// The settings of solves from `ras.toml`.
    pub solving: toml::Table,
    /// The program that solves; `None` for this one.
    pub solver: Option<PathBuf>,
}

impl ServiceSettings {
    /// The schedule by default.
    pub const SCHEDULE: &str = "0 * * * *";

    /// Merges the three sources.
    ///
    /// # Errors
    /// If the settings file cannot be read, or a setting is invalid.
    pub fn new(
        worker: &WorkerOptions,
        schedule: Option<&ScheduleOptions>,
        config: Option<&Path>,
        places: &Places,
    ) -> Result<ServiceSettings> {
        let file = settings::file(config)?.service;
        // Checked here rather than in every solve.
        let options = SolveOptions { config: config.map(Path::to_owned), ..Default::default() };
        Settings::new(&options)?;
        let cron = schedule.and_then(|options| options.schedule.clone()).or(file.schedule);
        let cron = cron.unwrap_or_else(|| Self::SCHEDULE.to_owned());
        let event_servers = schedule.and_then(|options| options.event_servers);
        let archive = worker.archive.clone().or(file.archive);
        let settings = ServiceSettings {
            schedule: if cron == "never" { None } else { Some(Schedule::parse(&cron)?) },
            event_servers: event_servers.or(file.event_servers).unwrap_or(EVENT_SERVERS),
            deadline: worker.deadline.or(file.deadline).unwrap_or(DEADLINE),
            memory: worker.memory.or(file.memory).unwrap_or(MEMORY),
            lease: worker.lease.or(file.lease).unwrap_or(LEASE),
            archive: archive.unwrap_or_else(|| places.archive().display().to_string()),
            keep_least: file.keep_least.unwrap_or(KEEP_LEAST),
            keep_most: file.keep_most.unwrap_or(KEEP_MOST),
            keep_age: file.keep_age.unwrap_or(KEEP_AGE),
            approval_above_in_use_moves: file.approval_above_in_use_moves,
            solving: settings::of_solving(config)?,
            solver: worker.solver.clone(),
        };
        let leases = Duration::from_secs(1)..=broker::LEASE_MAX;
        ensure!(leases.contains(&settings.lease), "a lease is 1s to {}s", leases.end().as_secs());
        Ok(settings)
    }
}
