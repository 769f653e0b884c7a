//! Response types shared by `/v1` and `/ops/v1`.

use api_types::moves::{Rollout, StopSwitch, StuckThing};
use api_types::reservations::DomainsLeft;
use api_types::servers::TrailEntry;
use broker::{Document, Entry, Stopped, Stuck};
use fleet::RegionSnapshot;
use fleet::audit::Certified;
use serde_json::Value;

/// The stop switch, or the pause of a roll-out.
pub(super) fn stop_switch(of: Stopped) -> StopSwitch {
    StopSwitch { by: of.by, why: of.why }
}

/// Progress of a change of the host profile, as it is sent.
pub(super) fn rollout(of: broker::Rollout) -> Rollout {
    Rollout {
        servers: of.servers,
        done: of.done(),
        refused: of.refused,
        progress: format!("{} of {}", of.done(), of.servers),
        paused: of.paused.map(stop_switch),
    }
}

/// What the loss of any one domain of the partitions that a reservation survives would leave; `None`: it survives none.
pub(super) fn domains_left(region: &RegionSnapshot, row: &Certified) -> Option<DomainsLeft> {
    let (of, holds) = row.domains.zip(row.survives_domains())?;
    let survives = region.reservations[row.reservation.ix()].survives.iter();
    Some(DomainsLeft {
        partitions: survives.map(|ix| region.partitions[ix.ix()].name.to_string()).collect(),
        largest_rru: of.largest.to_f64(),
        left_rru: of.left.to_f64(),
        left_at_once_rru: of.left_at_once.to_f64(),
        holds,
    })
}

/// A stored document, as it is sent.
pub(crate) fn json(of: &Document) -> Value {
    of.read().unwrap_or_default()
}

/// An entry of the audit trail, as it is sent.
pub(crate) fn trail_entry(of: Entry) -> TrailEntry {
    let Entry { seq, at, actor, action, subject, detail } = of;
    let action = action.as_str().to_owned();
    TrailEntry { seq: seq.0, at, actor, action, subject, detail: json(&detail) }
}

/// An object that is stuck.
pub(super) fn stuck_thing(of: Stuck) -> StuckThing {
    StuckThing {
        machine: of.machine.as_str().to_owned(),
        subject: of.subject,
        state: of.state.to_owned(),
        since: of.since,
    }
}
