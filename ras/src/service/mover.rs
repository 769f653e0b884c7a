//! The mover of this process: its host agent and limits.

use super::stop::Stop;
use crate::cli::{AgentPlace, MoverOptions};
use crate::settings;
use anyhow::{Context, Result, ensure};
use broker::Broker;
use decisions::limits::Room;
use futures_util::future::BoxFuture;
use online_mover::agent::command::CommandAgent;
use online_mover::agent::http::{HttpAgent, Protection};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{AgentError, HostAgent, Mover, MoverSettings, StepOrder, StepReport};
use std::path::Path;
use std::time::Duration;
use tokio::sync::watch;

/// Default timeout: agents answer at once, with "under way" if a step takes longer.
const AGENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum size of a key file.
const KEY_BYTES_MAX: u64 = 1 << 16;

/// Maximum size of a file of CA certificates: five times that of a system's CAs.
const AUTHORITIES_BYTES_MAX: u64 = 1 << 20;

/// A mover and its agent.
pub struct MoverService {
    mover: Mover<Agent>,
    /// The agent, as shown to users.
    pub place: String,
}

/// The kinds of agents.
struct Agent(Box<dyn HostAgent>);

impl HostAgent for Agent {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        self.0.ask(order)
    }
}

impl MoverService {
    /// The mover configured by command line and settings file, if any. `room`: what the policies in force leave room for.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn new(
        broker: &Broker,
        options: &MoverOptions,
        config: Option<&Path>,
        room: watch::Receiver<Room>,
    ) -> Result<Option<MoverService>> {
        let (settings, agent) = MoverService::read(options, config)?;
        let Some((agent, place)) = agent else { return Ok(None) };
        let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let name = format!("mover {}:{}", machine.trim(), std::process::id());
        let mover = Mover::new(broker.clone(), agent, settings, name).within(room);
        Ok(Some(MoverService { mover, place }))
    }

    /// The settings of the mover, and the agent as shown to users, if any.
    ///
    /// # Errors
    /// If a setting is invalid.
    pub fn settings(
        options: &MoverOptions,
        config: Option<&Path>,
    ) -> Result<(MoverSettings, Option<String>)> {
        let (settings, agent) = MoverService::read(options, config)?;
        Ok((settings, agent.map(|(_, place)| place)))
    }

    /// The settings of the mover, and the agent with its name, if any.
    fn read(
        options: &MoverOptions,
        config: Option<&Path>,
    ) -> Result<(MoverSettings, Option<(Agent, String)>)> {
        let file = settings::file(config)?.mover;
        let place = match (&options.agent, &file.agent) {
            (Some(place), _) => place.clone(),
            (None, Some(text)) => {
                text.parse().map_err(anyhow::Error::msg).context("[mover]: agent")?
            }
            (None, None) => AgentPlace::Nowhere,
        };
        let timeout = file.agent_timeout.unwrap_or(AGENT_TIMEOUT);
        let key = options.agent_key.as_deref().or(file.agent_key.as_deref());
        let authorities = options.agent_ca.as_deref().or(file.agent_ca.as_deref());
        let protection = Protection {
            key: key.map(read_key).transpose()?,
            unsigned: options.agent_unsigned || file.agent_unsigned,
            cleartext: options.agent_cleartext || file.agent_cleartext,
            authorities: authorities.map(read_authorities).transpose()?,
        };
        let agent: Option<(Box<dyn HostAgent>, String)> = match place {
            AgentPlace::Nowhere => None,
            AgentPlace::Http(url) => {
                Some((Box::new(HttpAgent::new(&url, protection, timeout)?), url))
            }
            AgentPlace::Program(program) => {
                ensure!(program.is_file(), "{}: no such program", program.display());
                let place = program.display().to_string();
                let program = std::path::absolute(program).context("--agent")?;
                Some((Box::new(CommandAgent::new(program, timeout)), place))
            }
            AgentPlace::Simulated => {
                let agent = SimulatedAgent::forgetful(Duration::ZERO);
                Some((Box::new(agent), "simulated: every step succeeds".to_owned()))
            }
        };
        let mut settings =
            MoverSettings { storm_guard: file.storm_guard()?, ..MoverSettings::default() };
        if let Some(limits) = file.limits {
            settings.limits = limits;
        }
        if let Some(after) = file.give_up_after {
            settings.give_up_after = after;
        }
        if let Some(settle) = file.settle {
            settings.settle = settle;
        }
        if let Some(elastic) = file.elastic {
            let kept = elastic.shared_kept;
            ensure!((0.0..=1.0).contains(&kept), "[mover.elastic]: shared_kept is from 0 to 1");
            let share =
                elastic.shares.iter().find(|(_, share)| !(**share > 0.0 && share.is_finite()));
            ensure!(share.is_none(), "[mover.elastic.shares]: a share is more than 0");
            settings.elastic = elastic;
        }
        settings.give_way_after = file.give_way_after;
        Ok((settings, agent.map(|(agent, place)| (Agent(agent), place))))
    }

    /// Executes moves until another future ends; then another mover may take over at once.
    pub async fn beside<T>(this: Option<&MoverService>, other: impl Future<Output = T>) -> T {
        let Some(MoverService { mover, .. }) = this else { return other.await };
        let outcome = tokio::select! {
            never = mover.run() => never,
            outcome = other => outcome,
        };
        mover.release().await;
        outcome
    }

    /// Executes moves until told to stop.
    pub async fn until(&self, stop: &mut Stop) {
        MoverService::beside(Some(self), stop.asked()).await;
    }
}

fn read_authorities(path: &Path) -> Result<Vec<u8>> {
    let name = || format!("certificates {}", path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= AUTHORITIES_BYTES_MAX, "{}: {size} bytes are too large for PEM", name());
    std::fs::read(path).with_context(name)
}

fn read_key(path: &Path) -> Result<Vec<u8>> {
    let name = || format!("key {}", path.display());
    let size = std::fs::metadata(path).with_context(name)?.len();
    ensure!(size <= KEY_BYTES_MAX, "{}: {size} bytes are too long for a key", name());
    let key = std::fs::read(path).with_context(name)?.trim_ascii_end().to_vec();
    ensure!(!key.is_empty(), "{}: it is empty", name());
    Ok(key)
}
