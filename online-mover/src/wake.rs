//! The parts of a pass that an entry of the audit trail makes due.
//!
//! An entry is a hint: the tables tell what has to be done. An action that made nothing due by mistake
//! would delay work by up to [`crate::MoverSettings::look_every`], so the match is exhaustive.

use broker::{Action, Recorded, Wanted};

/// The parts of a pass that are due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Targets were written, or a condition that holds moves back has changed: the targets for which moves
    /// are opened.
    pub look: Option<Wanted>,
    /// Servers may have failed or recovered. Decisions are taken once no further report has arrived for
    /// [`crate::MoverSettings::settle`].
    pub health: bool,
    /// The servers that can be lent, or their borrowers, may have changed.
    pub loans: bool,
    /// Emergency capacity was requested.
    pub emergency: bool,
}

impl Wake {
    /// The parts that one action makes due.
    pub fn of(action: &Recorded) -> Wake {
        let none = Wake::default();
        let look = |wanted| Wake { look: Some(wanted), ..none };
        let action = match action {
            Recorded::Known(action) => *action,
            Recorded::Unknown(_) => {
                return Wake {
                    look: Some(Wanted::All),
                    health: true,
                    loans: true,
                    emergency: true,
                };
            }
        };
        match action {
            // Targets of any number of servers.
            Action::SnapshotLoaded | Action::TargetsPublished => look(Wanted::All),
            // Targets between two solves. An index finds them.
            Action::PlanApplied
            | Action::ReservationsGaveWay
            | Action::DecommissionAsked
            | Action::DecommissionCancelled => look(Wanted::BetweenSolves),
            // Conditions that hold moves back.
            Action::MoverStopped
            | Action::MoverResumed
            | Action::ContractSet
            | Action::ContractRemoved
            | Action::RolloutPaused
            | Action::RolloutResumed
            | Action::MaintenancePlanned => look(Wanted::All),
            Action::MaintenanceChanged => Wake { loans: true, ..look(Wanted::All) },
            Action::UnavailabilityRecorded | Action::UnavailabilityCleared => {
                Wake { health: true, ..none }
            }
            Action::UsageReported => Wake { loans: true, ..none },
            Action::EmergencyAsked => Wake { emergency: true, ..none },
            // The acting mover writes these and opens the moves itself; a mover that takes over begins
            // with a full pass.
            Action::MovesOpened
            | Action::ServerBound
            | Action::MoveEnded
            | Action::ServerReplaced
            | Action::ReplacementOwed
            | Action::ServerReturns
            | Action::SpareReturns
            | Action::EmergencyGranted
            | Action::ServersLent
            | Action::ServersRecalled
            | Action::OutageBegan
            | Action::OutageEnded => none,
            // Neither a target nor a condition that holds moves back.
            Action::EmergencyEnded
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
            | Action::HardwareTypeRenamed
            | Action::HardwareTypeRemoved
            | Action::HardwareOrdered
            | Action::HardwareOrderChanged
            | Action::HardwareOrderArrived
            | Action::HardwareOrderCancelled
            | Action::HardwareTypeAdded => none,
            // Servers that can be lent, and borrowers.
            Action::RegionSettingsSet
            | Action::SharedBufferSet
            | Action::ElasticSet
            | Action::ElasticEnded
            | Action::ServersRacked
            | Action::ServersDecommissioned
            | Action::ServersRelocated => Wake { loans: true, ..none },
        }
    }

    /// The parts that are due after both.
    #[must_use]
    pub fn and(self, other: Wake) -> Wake {
        Wake {
            look: match (self.look, other.look) {
                (Some(Wanted::All), _) | (_, Some(Wanted::All)) => Some(Wanted::All),
                (one, other) => one.or(other),
            },
            health: self.health || other.health,
            loans: self.loans || other.loans,
            emergency: self.emergency || other.emergency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Wake;
    use broker::{Action, Recorded, Wanted};

    /// Actions not written by the mover: those that write targets, and those that hold moves back, release
    /// them or drain servers.
    const WRITE_TARGETS: [&str; 4] =
        ["snapshot_loaded", "targets_published", "plan_applied", "reservations_gave_way"];
    const HOLD_BACK: [&str; 10] = [
        "mover_stopped",
        "mover_resumed",
        "contract_set",
        "contract_removed",
        "rollout_paused",
        "rollout_resumed",
        "maintenance_planned",
        "maintenance_changed",
        "decommission_asked",
        "decommission_cancelled",
    ];

    /// Actions that change which servers can be lent, or the borrowers.
    const LEND: [&str; 9] = [
        "usage_reported",
        "maintenance_changed",
        "region_settings_set",
        "shared_buffer_set",
        "elastic_set",
        "elastic_ended",
        "servers_racked",
        "servers_decommissioned",
        "servers_relocated",
    ];

    #[test]
    fn wake_is_due_for_every_action_that_writes_a_target() {
        for action in Action::ALL {
            let word = action.as_str();
            let looks = WRITE_TARGETS.contains(&word) || HOLD_BACK.contains(&word);
            let wake = Wake::of(&action.into());
            assert_eq!(wake.look.is_some(), looks, "{word}");
            let health = word.starts_with("unavailability_");
            assert_eq!(wake.health, health, "{word}");
            assert_eq!(wake.emergency, word == "emergency_asked", "{word}");
            assert_eq!(wake.loans, LEND.contains(&word), "{word}");
        }
    }

    #[test]
    fn unknown_action_makes_every_part_due() {
        let wake = Wake::of(&Recorded::read("servers_painted"));
        let all = Wake { look: Some(Wanted::All), health: true, loans: true, emergency: true };
        assert_eq!(wake, all);
    }

    #[test]
    fn combined_wakes_open_moves_for_the_wider_set_of_targets() {
        let narrow = Wake::of(&Action::PlanApplied.into());
        let wide = Wake::of(&Action::TargetsPublished.into());
        assert_eq!(narrow.look, Some(Wanted::BetweenSolves));
        assert_eq!(narrow.and(wide), wide);
        assert_eq!(wide.and(narrow), wide);
        assert_eq!(narrow.and(Wake::default()), narrow);
    }
}
