//! Response types shared by `/v1` and `/ops/v1`.

use api_types::moves::StopSwitch;
use broker::{Entry, Rollout, Stopped};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The stop switch, or the pause of a roll-out.
pub(super) fn stop_switch(of: Stopped) -> StopSwitch {
    StopSwitch { by: of.by, why: of.why }
}

/// Progress of a change of the host profile.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Rollout)]
pub(super) struct RolloutView {
    /// Servers that had another profile when it began.
    servers: i64,
    /// Servers that have the new profile, or have left the reservation.
    done: i64,
    /// Servers whose hosts refused to be reconfigured. They are not retried until the profile changes.
    refused: i64,
    /// Progress as text: `120 of 500`.
    progress: String,
    /// Who paused it, and why: no further server is reconfigured. Null: not paused.
    paused: Option<StopSwitch>,
}

impl From<Rollout> for RolloutView {
    fn from(of: Rollout) -> RolloutView {
        RolloutView {
            servers: of.servers,
            done: of.done(),
            refused: of.refused,
            progress: format!("{} of {}", of.done(), of.servers),
            paused: of.paused.map(stop_switch),
        }
    }
}

/// An entry of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrailEntry {
    /// 1, 2, 3, ... in the order in which entries became visible.
    seq: i64,
    at: DateTime<Utc>,
    /// Who did it.
    actor: String,
    /// What was done.
    action: String,
    /// The object, by name or id.
    subject: Option<String>,
    /// Further data, by action.
    #[schema(value_type = Object)]
    detail: Value,
}

impl From<Entry> for TrailEntry {
    fn from(of: Entry) -> TrailEntry {
        let Entry { seq, at, actor, action, subject, detail } = of;
        let action = action.as_str().to_owned();
        TrailEntry { seq: seq.0, at, actor, action, subject, detail }
    }
}
