//! How a solve is to run: defaults, then `ras.toml`, then the command line.

use crate::cli::SolveOptions;
use crate::highs_process::MEMORY_LIMIT_DEFAULT;
use crate::overrides::Overrides;
use crate::quantity;
use anyhow::{Context, Result, anyhow, ensure};
use async_solver::SolverConfig;
use online_mover::outage::StormGuard;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A settings file of any use is a page long; a larger one is another file.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The settings of one solve.
#[derive(Clone, Debug)]
pub struct Settings {
    /// A result is on disk by then, counted from the start of the process.
    pub deadline: Option<Duration>,
    /// Memory one HiGHS process may take, in bytes.
    pub highs_memory: u64,
    /// What the solver takes.
    pub solver: SolverConfig,
    /// What the solve sees instead of the snapshot's.
    pub overrides: Overrides,
}

/// `ras.toml`, its parts that are no solver's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreFile {
    /// The Postgres that holds the region.
    pub database_url: Option<String>,
    /// The data folder.
    pub data: Option<PathBuf>,
}

/// `ras.toml`, how a living region is solved.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServiceFile {
    /// When, as a cron expression in UTC.
    pub schedule: Option<String>,
    /// Servers newly unavailable that ask for a solve at once.
    pub event_servers: Option<u32>,
    /// How long a solve may take.
    #[serde(deserialize_with = "optional_duration")]
    pub deadline: Option<Duration>,
    /// Memory a solve may take, in bytes.
    #[serde(deserialize_with = "optional_bytes")]
    pub memory: Option<u64>,
    /// For how long a worker has a job without renewing its lease.
    #[serde(deserialize_with = "optional_duration")]
    pub lease: Option<Duration>,
    /// Where solves leave what they did: a folder or a URL.
    pub archive: Option<String>,
    /// Solves kept however old they are.
    pub keep_least: Option<u32>,
    /// Solves kept at most.
    pub keep_most: Option<u32>,
    /// For how long others are kept.
    #[serde(deserialize_with = "optional_duration")]
    pub keep_age: Option<Duration>,
}

/// `ras.toml`, how moves are carried out.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MoverFile {
    /// Who does the steps, as on the command line.
    pub agent: Option<String>,
    /// The file with the key that requests are signed with.
    pub agent_key: Option<PathBuf>,
    /// The file with the certificates of authorities that are trusted in place of the system's.
    pub agent_ca: Option<PathBuf>,
    /// Whether orders go without a signature.
    pub agent_unsigned: bool,
    /// Whether orders go to other machines without TLS.
    pub agent_cleartext: bool,
    /// How long one question may take.
    #[serde(deserialize_with = "optional_duration")]
    pub agent_timeout: Option<Duration>,
    /// How long a move may take.
    #[serde(deserialize_with = "optional_duration")]
    pub give_up_after: Option<Duration>,
    /// How many at once and per hour.
    pub limits: Option<online_mover::Limits>,
    /// How long a failure is left alone before it is dealt with.
    #[serde(deserialize_with = "optional_duration")]
    pub settle: Option<Duration>,
    /// When single failures count as the loss of an MSB.
    pub storm_guard: Option<StormGuardFile>,
    /// How idle buffers are lent.
    pub elastic: Option<online_mover::elastic::Elastic>,
    /// How long two MSBs are lost before reservations give way by themselves.
    #[serde(deserialize_with = "optional_duration")]
    pub give_way_after: Option<Duration>,
}

/// `ras.toml`, when single failures count as the loss of an MSB.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StormGuardFile {
    /// The share of an MSB's servers that fails together.
    pub share: Option<f64>,
    /// So many servers at least.
    pub servers: Option<u64>,
    /// Within how long.
    #[serde(deserialize_with = "optional_duration")]
    pub within: Option<Duration>,
    /// How long after its failures it is over.
    #[serde(deserialize_with = "optional_duration")]
    pub lasts: Option<Duration>,
}

impl MoverFile {
    /// The storm guard that it asks for; what it does not say has its default.
    ///
    /// # Errors
    /// If a share is none.
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

/// `ras.toml`, who may ask and say what over HTTP.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PortalFile {
    /// Who may read.
    pub read: ReadAccess,
    /// Who may do what, beside the tokens of the store.
    pub tokens: Vec<TokenFile>,
    /// How often one caller may ask in a second.
    pub requests_per_second: Option<std::num::NonZeroU32>,
    /// What TLS is served with.
    pub tls: Option<TlsFile>,
    /// Whether a proxy in front ends TLS.
    pub tls_before: bool,
}

/// `ras.toml`, what TLS is served with: files in PEM.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsFile {
    /// The certificate, and those between it and what clients know.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Who may read over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAccess {
    /// Everybody who reaches it.
    #[default]
    Open,
    /// Whoever has a token.
    Token,
}

/// One token of [`PortalFile`].
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenFile {
    /// Who stands in the audit trail.
    pub name: String,
    /// What may be done with it, as words of [`capacity_portal::Role`].
    pub roles: Vec<String>,
    /// Whose objects it is for; everybody's, unless it says so.
    pub owner: Option<String>,
    /// The file with the secret.
    pub token_file: PathBuf,
}

/// `ras.toml`
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SettingsFile {
    /// How a living region is solved.
    pub service: ServiceFile,
    /// How moves are carried out.
    pub mover: MoverFile,
    /// Who may ask and say what over HTTP.
    pub portal: PortalFile,
    /// Where the region is kept.
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
    /// Puts the three sources together.
    ///
    /// # Errors
    /// If the file cannot be read, or says something that is no setting.
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

/// The solver's settings of the file; one thread for each processor unless it says otherwise.
fn solver_config(mut table: toml::Table) -> Result<SolverConfig> {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let processors = i64::try_from(processors).unwrap_or(1);
    table.entry("threads").or_insert(toml::Value::Integer(processors));
    // The message of the TOML reader ends in a newline.
    table.try_into().map_err(|error| anyhow!("[solver]: {}", error.to_string().trim_end()))
}

/// The settings file; everything is as it is by default where there is none.
///
/// # Errors
/// If it cannot be read, or says something that is no setting.
pub fn file(path: Option<&Path>) -> Result<SettingsFile> {
    path.map_or_else(|| Ok(SettingsFile::default()), read)
}

/// What a settings file says of solving alone, as a file for one solve and to be recorded. Where the
/// region is kept is none of its business, and may hold a password.
///
/// # Errors
/// As [`file()`].
pub fn of_solving(path: Option<&Path>) -> Result<toml::Table> {
    let Some(path) = path else { return Ok(toml::Table::new()) };
    let mut table: toml::Table = toml::from_str(&text(path)?)
        .map_err(|error| anyhow!("settings file {}: {}", path.display(), error))?;
    table.remove("store");
    table.remove("service");
    table.remove("mover");
    table.remove("portal");
    Ok(table)
}

fn read(path: &Path) -> Result<SettingsFile> {
    let text = text(path)?;
    // The message of the TOML reader shows the line; its last newline is ours to drop.
    toml::from_str(&text).map_err(|error| {
        anyhow!("settings file {}: {}", path.display(), error.to_string().trim_end())
    })
}

fn text(path: &Path) -> Result<String> {
    let name = || format!("settings file {}", path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= FILE_BYTES_MAX, "{}: {size} bytes are no settings file", name());
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
