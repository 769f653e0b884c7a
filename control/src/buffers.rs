//! Shared buffers that follow failures: decides, every ten minutes, whether the shared buffer of a hardware type grows or shrinks,
//! and sets it as an operator does. The decision is a pure function, [`forecast::buffers::decide`].

use crate::failure_history::RegionDown;
use crate::region_cache::RegionCache;
use broker::{
    AutosizeAction, Broker, BufferAutosize, BufferDecision, BufferDue, DbError, EditError,
    HardwareType,
};
use forecast::buffers::{Action, Current, Need, Settings, decide};
use forecast::spares::OutageError;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

/// Time between two decisions on a shared buffer.
const EVERY: Duration = Duration::from_secs(600);

/// Interval between checks whether a decision is due.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Timeout of each question and change: a hung Postgres never answers.
const WITHIN: Duration = Duration::from_secs(60);

/// The actor in the audit trail.
pub const ACTOR: &str = "autosize";

#[derive(Debug, thiserror::Error)]
enum BufferTaskError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Edit(#[from] EditError),
    #[error(transparent)]
    Outage(#[from] OutageError),
    #[error("the failures were not read")]
    Task(#[from] JoinError),
    #[error("no decision in time")]
    Late(#[from] Elapsed),
}

/// Decides until the other owners of `running` have dropped it.
pub async fn run(broker: Broker, region: RegionCache, running: Weak<Notify>) {
    while running.strong_count() > 0 {
        if let Err(error) = decide_due(&broker, &region).await {
            tracing::warn!(%error, "cannot decide whether shared buffers follow failures");
        }
        sleep(LOOK_EVERY).await;
    }
}

async fn in_time<T, E>(asked: impl Future<Output = Result<T, E>>) -> Result<T, BufferTaskError>
where
    BufferTaskError: From<E>,
{
    Ok(timeout(WITHIN, asked).await??)
}

/// Decides on what is due. A hardware type that fails is decided on in [`EVERY`] again.
async fn decide_due(broker: &Broker, region: &RegionCache) -> Result<(), BufferTaskError> {
    let Some(known) = region.latest() else { return Ok(()) };
    let due = in_time(broker.take_buffer_autosizes(EVERY)).await?;
    if due.is_empty() {
        return Ok(());
    }
    // Read before what takes long: a change by anyone meanwhile makes the decision stale.
    let types = in_time(broker.hardware_types()).await?;
    let begins = in_time(broker.usage_begins()).await?.0.map(|at| at.timestamp());
    let down = spawn_blocking(move || RegionDown::new(&known.snapshot, begins)).await??;
    for due in due {
        let Some(of) = types.iter().find(|of| of.hardware_type == due.hardware_type) else {
            continue;
        };
        let decided = in_time(carry_out(broker, &due, of, decision(&due, of, &down)));
        if let Err(error) = decided.await {
            let hardware_type = &due.hardware_type;
            tracing::warn!(%error, %hardware_type, "its shared buffer does not follow failures");
        }
    }
    Ok(())
}

/// Sets the shared buffer as it was decided, if settings and buffer are still those of then.
async fn carry_out(
    broker: &Broker,
    due: &BufferDue,
    of: &HardwareType,
    mut decision: BufferDecision,
) -> Result<(), BufferTaskError> {
    if let Some(to) = decision.to {
        let set = broker.buffer_autosizes().await?;
        if !set.iter().any(|of| of.hardware_type == due.hardware_type && of.set_at == due.set_at) {
            return Ok(());
        }
        let (ty, version) = (&due.hardware_type, of.version());
        let (to, why) = (Some(f64::from(to)), Some(decision.reason.as_str()));
        match broker.set_shared_buffer(ACTOR, ty, to, Some(&version), why).await {
            Ok(_) => {}
            Err(EditError::Stale { .. }) => {
                decision = kept("the buffer was changed meanwhile".to_owned());
            }
            Err(EditError::Wrong(wrong)) => {
                let wrong: Vec<String> =
                    wrong.iter().map(|of| format!("{}: {}", of.field, of.detail)).collect();
                decision = kept(wrong.join("; "));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(broker.note_buffer_autosize(due, &decision).await?)
}

fn kept(reason: String) -> BufferDecision {
    BufferDecision { action: AutosizeAction::Keep, to: None, reason }
}

/// The decision on the shared buffer of a hardware type.
fn decision(due: &BufferDue, of: &HardwareType, down: &RegionDown) -> BufferDecision {
    let mut settings = settings(&due.autosize);
    // A buffer cannot have more servers than there are.
    settings.max = settings.max.min(u32::try_from(of.servers).unwrap_or(u32::MAX));
    settings.min = settings.min.min(settings.max);
    let need = down.of_type(&of.hardware_type).map(|of| Need {
        servers: u32::try_from(of.down.quantile(1.0 - settings.chance)).unwrap_or(u32::MAX),
        known: down.known(),
    });
    let servers = of.buffer.as_ref().map_or(0, |buffer| buffer.wanted);
    let current = Current {
        servers: u32::try_from(servers).unwrap_or(u32::MAX),
        changed_at: due.changed_at.map(|at| at.timestamp()),
    };
    let decided = match decide(need, &settings, &current, due.now.timestamp()) {
        Ok(decided) => decided,
        Err(error) => return kept(error.to_string()),
    };
    let reason = decided.reason.to_string();
    let (action, to) = match decided.action {
        Action::Keep => return kept(reason),
        Action::Grow(to) => (AutosizeAction::Grow, to),
        Action::Shrink(to) => (AutosizeAction::Shrink, to),
    };
    BufferDecision { action, to: Some(to), reason }
}

/// The settings as the decision takes them.
fn settings(of: &BufferAutosize) -> Settings {
    Settings {
        chance: f64::from(of.chance_micro) / 1e6,
        min: of.min,
        max: of.max,
        cooldown: u32::try_from(of.cooldown.as_secs()).unwrap_or(u32::MAX),
    }
}
