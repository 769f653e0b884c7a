//! Settings of a solve: defaults, then `ras.toml`, then the command line.

use crate::cli::SolveOptions;
use crate::highs_process::MEMORY_LIMIT_DEFAULT;
use crate::overrides::Overrides;
use crate::quantity;
use anyhow::{Context, Result, anyhow, ensure};
use async_solver::SolverConfig;
use decisions::outage::StormGuard;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum size of a settings file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The settings of one solve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Deadline for the result, counted from the start of the process.
    pub deadline: Option<Duration>,
    /// Memory limit of one HiGHS process, in bytes.
    pub highs_memory: u64,
    /// The solver's configuration.
    pub solver: SolverConfig,
    /// Overrides of the snapshot's settings.
    pub overrides: Overrides,
}

/// `ras.toml`: the sections that do not concern solves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreFile {
    /// The Postgres that holds the region.
    pub database_url: Option<String>,
    /// The data folder.
    pub data: Option<PathBuf>,
}

/// `ras.toml`, section `[service]`: schedule and limits of solves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceFile {
    /// Schedule, a cron expression in UTC.
    pub schedule: Option<String>,
    /// Number of newly unavailable servers that triggers a solve at once.
    pub event_servers: Option<u32>,
    /// Deadline of a solve.
    #[serde(deserialize_with = "optional_duration")]
    pub deadline: Option<Duration>,
    /// Memory limit of a solve, in bytes.
    #[serde(deserialize_with = "optional_bytes")]
    pub memory: Option<u64>,
    /// Duration of a worker's lease on a job.
    #[serde(deserialize_with = "optional_duration")]
    pub lease: Option<Duration>,
    /// The archive of solves: a folder or a URL.
    pub archive: Option<String>,
    /// Number of newest solves kept at any age.
    pub keep_least: Option<u32>,
    /// Maximum number of solves kept.
    pub keep_most: Option<u32>,
    /// Maximum age of other solves.
    #[serde(deserialize_with = "optional_duration")]
    pub keep_age: Option<Duration>,
    /// Solves that move more servers in use than this, and requests that move more of others, await the approval of an
    /// operator.
    pub approval_above_in_use_moves: Option<u64>,
}

/// `ras.toml`, section `[mover]`: the execution of moves.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoverFile {
    /// The host agent, as on the command line.
    pub agent: Option<String>,
    /// File with the key that signs requests.
    pub agent_key: Option<PathBuf>,
    /// File with CA certificates to trust instead of the system's.
    pub agent_ca: Option<PathBuf>,
    /// Whether to send requests without a signature.
    pub agent_unsigned: bool,
    /// Whether to allow requests to other machines without TLS.
    pub agent_cleartext: bool,
    /// Timeout of one request.
    #[serde(deserialize_with = "optional_duration")]
    pub agent_timeout: Option<Duration>,
    /// Time after which a move is given up.
    #[serde(deserialize_with = "optional_duration")]
    pub give_up_after: Option<Duration>,
    /// Limits of moves at once and per window.
    pub limits: Option<fleet::pace::Limits>,
    /// How long a failure must last before the mover reacts.
    #[serde(deserialize_with = "optional_duration")]
    pub settle: Option<Duration>,
    /// When single failures together count as the loss of an MSB.
    pub storm_guard: Option<StormGuardFile>,
    /// Settings of loans of idle buffers.
    pub elastic: Option<decisions::elastic::Elastic>,
    /// How long two MSBs must be lost before automatic preemption.
    #[serde(deserialize_with = "optional_duration")]
    pub give_way_after: Option<Duration>,
}

/// `ras.toml`, section `[mover.storm_guard]`: when single failures count as the loss of an MSB.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormGuardFile {
    /// Share of an MSB's servers that fail together.
    pub share: Option<f64>,
    /// Minimum number of servers.
    pub servers: Option<u64>,
    /// Time within which they fail.
    #[serde(deserialize_with = "optional_duration")]
    pub within: Option<Duration>,
    /// How long after its failures the storm ends.
    #[serde(deserialize_with = "optional_duration")]
    pub lasts: Option<Duration>,
}

impl MoverFile {
    /// The configured storm guard; missing values have their defaults.
    ///
    /// # Errors
    /// If a share is invalid.
    pub fn storm_guard(&self) -> Result<StormGuard> {
        let default = StormGuard::default();
        let Some(file) = &self.storm_guard else { return Ok(default) };
        let share = file.share.unwrap_or(default.share);
        ensure!((0.0..=1.0).contains(&share), "[mover.storm_guard]: share is from 0 to 1");
        Ok(StormGuard {
            share,
            servers: file.servers.unwrap_or(default.servers),
            within: file.within.unwrap_or(default.within),
            lasts: file.lasts.unwrap_or(default.lasts),
        })
    }
}

/// `ras.toml`, section `[portal]`: the HTTP server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortalFile {
    /// Access for reads.
    pub read: ReadAccess,
    /// Tokens in addition to those of the store.
    pub tokens: Vec<TokenFile>,
    /// Rate limit of one caller, in requests per second.
    pub requests_per_second: Option<std::num::NonZeroU32>,
    /// Certificate and key for TLS.
    pub tls: Option<TlsFile>,
    /// Whether `/metrics` shows single reservations without a token even where reads need one.
    pub open_metrics: bool,
    /// Whether a proxy in front terminates TLS.
    pub tls_before: bool,
}

/// `ras.toml`, section `[portal.tls]`: files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// The certificate chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Access for reads over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAccess {
    /// Open to all clients.
    #[default]
    Open,
    /// Requires a token.
    Token,
}

/// One token of [`PortalFile`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// Name recorded in the audit trail.
    pub name: String,
    /// Its roles, as names of [`capacity_portal::Role`].
    pub roles: Vec<String>,
    /// The owner whose objects it may access; without one, all owners.
    pub owner: Option<String>,
    /// The file with the secret.
    pub token_file: PathBuf,
}

/// `ras.toml`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsFile {
    /// Schedule and limits of solves.
    pub service: ServiceFile,
    /// The execution of moves.
    pub mover: MoverFile,
    /// The HTTP server.
    pub portal: PortalFile,
    /// The store.
    pub store: StoreFile,
    #[serde(deserialize_with = "optional_duration")]
    deadline: Option<Duration>,
    #[serde(deserialize_with = "optional_bytes")]
    highs_memory: Option<u64>,
    scale_requests: Option<f64>,
    shared_buffer_fraction: Option<f64>,
    weights: crate::overrides::WeightOverrides,
    solver: toml::Table,
}

impl Settings {
    /// Merges the three sources.
    ///
    /// # Errors
    /// If the file cannot be read, or has an invalid setting.
    pub fn new(options: &SolveOptions) -> Result<Settings> {
        let file = file(options.config.as_deref())?;
        let mut solver = solver_config(file.solver).with_context(|| {
            let file = options.config.as_deref().unwrap_or(Path::new(""));
            format!("settings file {}", file.display())
        })?;
        if let Some(gap) = options.gap {
            solver.gap_limit = gap;
        }
        if let Some(threads) = options.threads {
            solver.threads = usize::from(threads);
        }
        if let Some(seed) = options.seed {
            solver.seed = seed;
        }
        solver.rack_phase &= !options.no_rack_phase;
        solver.hand_back &= !options.keep_surplus;
        let in_file = Overrides {
            scale_requests: file.scale_requests,
            shared_buffer_fraction: file.shared_buffer_fraction,
            weights: file.weights,
        };
        let settings = Settings {
            deadline: options.deadline.or(file.deadline),
            highs_memory: options
                .highs_memory
                .or(file.highs_memory)
                .unwrap_or(MEMORY_LIMIT_DEFAULT),
            solver,
            overrides: Overrides::from(&options.overrides).or(in_file),
        };
        settings.check()?;
        Ok(settings)
    }

    fn check(&self) -> Result<()> {
        let solver = &self.solver;
        ensure!(
            (0.0..=1.0).contains(&solver.gap_limit),
            "solver.gap_limit is {}; it must be from 0 to 1",
            solver.gap_limit
        );
        ensure!(
            (1..=usize::from(u16::MAX)).contains(&solver.threads),
            "solver.threads is {}; it must be from 1 to {}",
            solver.threads,
            u16::MAX
        );
        Ok(())
    }
}

/// The solver's settings of the file; by default one thread per processor.
fn solver_config(mut table: toml::Table) -> Result<SolverConfig> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let processors = i64::try_from(processors).unwrap_or(1);
    table.entry("threads").or_insert(toml::Value::Integer(processors));
    // The message of the TOML reader ends in a newline.
    table.try_into().map_err(|error| anyhow!("[solver]: {}", error.to_string().trim_end()))
}

/// The settings file; without one, all settings have their defaults.
///
/// # Errors
/// If it cannot be read, or has an invalid setting.
pub fn file(path: Option<&Path>) -> Result<SettingsFile> {
    path.map_or_else(|| Ok(SettingsFile::default()), read)
}

/// The settings of solves from a settings file, as a file for one solve and for its record. The
/// other sections are left out: the store's URL may have a password.
///
/// # Errors
/// As [`file()`].
pub fn of_solving(path: Option<&Path>) -> Result<toml::Table> {
    let Some(path) = path else { return Ok(toml::Table::new()) };
    let mut table = table(path)?;
    table.remove("store");
    table.remove("service");
    table.remove("mover");
    table.remove("portal");
    Ok(table)
}

/// The settings file as it is written.
///
/// # Errors
/// As [`file()`].
pub fn table(path: &Path) -> Result<toml::Table> {
    toml::from_str(&text(path)?).map_err(|error| {
        anyhow!("settings file {}: {}", path.display(), error.to_string().trim_end())
    })
}

fn read(path: &Path) -> Result<SettingsFile> {
    let text = text(path)?;
    // Removes the final newline of the TOML parser's message.
    toml::from_str(&text).map_err(|error| {
        anyhow!("settings file {}: {}", path.display(), error.to_string().trim_end())
    })
}

fn text(path: &Path) -> Result<String> {
    let name = || format!("settings file {}", path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= FILE_BYTES_MAX, "{}: {size} bytes are too long for a settings file", name());
    std::fs::read_to_string(path).with_context(name)
}

fn optional_duration<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(from)?;
    quantity::duration(&text).map(Some).map_err(serde::de::Error::custom)
}

fn optional_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    let text = String::deserialize(from)?;
    quantity::bytes(&text).map(Some).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn with_file(text: &str, options: SolveOptions) -> Result<Settings> {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("writes");
        Settings::new(&SolveOptions { config: Some(file.path().to_owned()), ..options })
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let text = "deadline = \"60s\"\nscale_requests = 0.5\n[weights]\nspread_beta = 0\n\
                    buffer_tau = 3\n[solver]\ngap_limit = 0.5\nseed = 9";
        let mut options = SolveOptions { gap: Some(0.1), ..SolveOptions::default() };
        let all_processors = Settings::new(&options).expect("defaults").solver.threads;
        options.overrides.spread_beta = Some(7.0);
        let settings = with_file(text, options).expect("reads");
        assert_eq!(settings.deadline, Some(Duration::from_secs(60)));
        assert_eq!(settings.solver.threads, all_processors);
        assert_eq!((settings.solver.gap_limit, settings.solver.seed), (0.1, 9));
        assert_eq!(settings.overrides.weights.spread_beta, Some(7.0));
        assert_eq!(settings.overrides.weights.buffer_tau, Some(3.0));
        assert_eq!(settings.overrides.scale_requests, Some(0.5));
    }

    #[test]
    fn what_is_no_setting_is_refused() {
        for (text, named) in [
            ("deadlin = \"60s\"", "deadlin"),
            ("[solver]\ngap = 1", "gap"),
            ("[weights]\nbeta = 1", "beta"),
            ("deadline = \"60\"", "60"),
            ("deadline = 60", "60"),
            ("[solver]\nthreads = 0", "threads"),
            ("[solver]\ngap_limit = -1", "gap_limit"),
            ("not toml", "not toml"),
        ] {
            let error = with_file(text, SolveOptions::default()).expect_err(text);
            assert!(format!("{error:#}").contains(named), "{text}: {error:#}");
        }
    }
}
