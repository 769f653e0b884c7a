//! The servers that an entry of the audit trail may affect, for watchers of a reservation.

use crate::log::trail::{Action, Entry, Recorded};
use fleet::Scope;
use serde::Deserialize;
use std::collections::BTreeSet;

/// The members of a detail that name one more server.
#[derive(Deserialize)]
struct WithSpare {
    spare: Option<String>,
}

/// The members of a detail that name what an event covers.
#[derive(Deserialize)]
struct WithScope {
    scope: Scope,
    scope_id: String,
}

/// The members of a detail that name servers by their use.
#[derive(Deserialize)]
struct WithUse {
    in_use: Vec<String>,
    idle: Vec<String>,
}

/// The members of a detail that name servers.
#[derive(Deserialize)]
struct WithServers {
    servers: Vec<String>,
}

/// What a batch of entries may affect. It says where to look; readers then read the tables.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct AffectedServers {
    /// Servers whose owner, target or loan may have changed.
    pub(crate) bindings: BTreeSet<String>,
    /// Versions of the targets; the owner, target or loan of all their servers may have changed.
    pub(crate) versions: BTreeSet<i64>,
    /// Servers with an unchanged binding.
    pub(crate) servers: BTreeSet<String>,
    /// Racks; the bindings of their servers are unchanged.
    pub(crate) racks: BTreeSet<String>,
    /// MSBs; the bindings of their servers are unchanged.
    pub(crate) msbs: BTreeSet<String>,
    /// Datacenters; the bindings of their servers are unchanged.
    pub(crate) datacenters: BTreeSet<String>,
    /// The effect is unknown: anything may have changed.
    pub(crate) anything: bool,
}

impl AffectedServers {
    pub(crate) fn is_empty(&self) -> bool {
        *self == AffectedServers::default()
    }

    /// The names of the affected servers and the versions of the targets, if nothing else is affected.
    pub(crate) fn servers_alone(self) -> Option<(Vec<String>, Vec<i64>)> {
        let AffectedServers { bindings, servers, versions, .. } = self;
        let none = AffectedServers::default();
        let rest = AffectedServers {
            bindings: none.bindings,
            servers: none.servers,
            versions: none.versions,
            ..self
        };
        let names = bindings.into_iter().chain(servers).collect();
        rest.is_empty().then(|| (names, versions.into_iter().collect()))
    }

    /// Adds the effect of an entry.
    pub(crate) fn add(&mut self, entry: &Entry) {
        let subject = entry.subject.as_deref();
        let detail = &entry.detail;
        let Recorded::Known(action) = entry.action else {
            self.anything = true;
            return;
        };
        match action {
            Action::MovesOpened
            | Action::MoverStopped
            | Action::MoverResumed
            | Action::OutageBegan
            | Action::OutageEnded
            | Action::MaintenancePlanned
            | Action::EmergencyAsked
            | Action::EmergencyEnded
            | Action::ContractSet
            | Action::ContractRemoved
            | Action::TokenCreated
            | Action::TokenRevoked
            | Action::RequestSubmitted
            | Action::RequestAwaitsApproval
            | Action::RequestApproved
            | Action::RequestRefused
            | Action::RequestCancelled
            | Action::ReservationRemoved
            | Action::QuotaSet
            | Action::AutosizeSet
            | Action::AutosizeRemoved
            | Action::BufferAutosizeSet
            | Action::BufferAutosizeRemoved
            | Action::PolicySet
            | Action::PolicyWithdrawn
            | Action::SolveRequested
            | Action::SolveAwaitsApproval
            | Action::SolveApproved
            | Action::SolveRejected
            | Action::SolveCancelled
            | Action::ProfileSet
            | Action::ProfileRemoved
            | Action::RegionSettingsSet
            | Action::SharedBufferSet
            | Action::ElasticSet
            | Action::ElasticEnded
            | Action::HardwareTypeAdded
            | Action::HardwareTypeRemoved
            | Action::HardwareOrdered
            | Action::HardwareOrderChanged
            | Action::HardwareOrderArrived
            | Action::HardwareOrderCancelled
            | Action::RolloutPaused
            | Action::RolloutResumed => {}
            Action::TargetsPublished => match subject.and_then(|version| version.parse().ok()) {
                Some(version) => drop(self.versions.insert(version)),
                None => self.anything = true,
            },
            Action::ServerBound
            | Action::MoveEnded
            | Action::ServerReplaced
            | Action::ReplacementOwed
            | Action::ServerReturns
            | Action::SpareReturns => {
                self.bindings.extend(subject.map(str::to_owned));
                match detail.read::<WithSpare>() {
                    Ok(of) => self.bindings.extend(of.spare),
                    Err(_) => self.anything = true,
                }
            }
            Action::UnavailabilityRecorded | Action::UnavailabilityCleared => {
                match detail.read::<WithScope>() {
                    Ok(of) => self.add_scope(of.scope, of.scope_id),
                    Err(_) => self.anything = true,
                }
            }
            Action::UsageReported => match detail.read::<WithUse>() {
                Ok(of) => self.servers.extend(of.in_use.into_iter().chain(of.idle)),
                Err(_) => self.anything = true,
            },
            // These change racks and MSBs of servers, or remove servers.
            Action::SnapshotLoaded
            | Action::HardwareTypeRenamed
            | Action::ServersRacked
            | Action::ServersDecommissioned
            | Action::ServersRelocated => self.anything = true,
            Action::ServersLent
            | Action::DecommissionAsked
            | Action::DecommissionCancelled
            | Action::ServersRecalled
            | Action::MaintenanceChanged
            | Action::EmergencyGranted
            | Action::PlanApplied
            | Action::ReservationsGaveWay => match detail.read::<WithServers>() {
                Ok(of) => self.bindings.extend(of.servers),
                Err(_) => self.anything = true,
            },
        }
    }

    /// Adds everything that an event covers.
    pub(crate) fn add_scope(&mut self, scope: Scope, name: String) {
        let of = match scope {
            Scope::Server => &mut self.servers,
            Scope::Rack => &mut self.racks,
            Scope::Msb => &mut self.msbs,
            Scope::Datacenter => &mut self.datacenters,
        };
        of.insert(name);
    }
}

#[cfg(test)]
mod tests {
    use super::AffectedServers;
    use crate::infra::document::Document;
    use crate::log::trail::{Action, Entry, Recorded, Seq};

    fn touched(action: &str, subject: Option<&str>, detail: &str) -> AffectedServers {
        let mut touched = AffectedServers::default();
        touched.add(&Entry {
            seq: Seq(1),
            at: chrono::DateTime::UNIX_EPOCH,
            actor: "test".into(),
            action: Recorded::read(action),
            subject: subject.map(str::to_owned),
            detail: serde_json::from_str::<Document>(detail).expect("JSON"),
        });
        touched
    }

    #[test]
    fn entry_names_affected_servers() {
        let found = touched("targets_published", Some("12"), "{}");
        assert_eq!(found.versions, [12].into());
        let found = touched("server_replaced", Some("s1"), r#"{ "spare": "s2" }"#);
        assert_eq!(found.bindings, ["s1".to_owned(), "s2".to_owned()].into());
        let found = touched("servers_lent", Some("elastic"), r#"{ "servers": ["s3"] }"#);
        assert_eq!(found.bindings, ["s3".to_owned()].into());
        let rack = r#"{ "scope": "rack", "scope_id": "k" }"#;
        assert_eq!(
            touched("unavailability_cleared", Some("e"), rack).racks,
            ["k".to_owned()].into()
        );
        let used = r#"{ "in_use": ["s4"], "idle": [] }"#;
        assert_eq!(touched("usage_reported", None, used).servers, ["s4".to_owned()].into());
        assert!(touched("moves_opened", Some("3"), "{}").is_empty());
    }

    #[test]
    fn unknown_entry_affects_everything() {
        for (action, subject, detail) in [
            ("snapshot_loaded", Some("region"), "{}"),
            ("a newer word", None, "{}"),
            ("targets_published", Some("last"), "{}"),
            ("servers_lent", Some("elastic"), r#"{ "servers": 3 }"#),
            ("maintenance_changed", Some("w"), "{}"),
            ("unavailability_cleared", Some("e"), r#"{ "ended_at": "now" }"#),
            ("unavailability_cleared", Some("e"), r#"{ "scope": "roof", "scope_id": "k" }"#),
            ("usage_reported", None, r#"{ "in_use": [1], "idle": [] }"#),
        ] {
            assert!(touched(action, subject, detail).anything, "{action}");
        }
        // Every action has a rule.
        for action in Action::ALL {
            touched(action.as_str(), None, "{}");
        }
    }
}
