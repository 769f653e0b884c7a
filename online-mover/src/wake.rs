//! What an entry of the audit trail wakes the mover for.
//!
//! The trail is a doorbell: what has to be done is read from the tables. An action that is missing here
//! costs up to [`crate::MoverSettings::look_every`], so the match is exhaustive.

use broker::{Action, Recorded, Wanted};

/// What the mover has to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wake {
    /// Targets were written, or what holds moves back has changed: which targets to open moves for.
    pub look: Option<Wanted>,
    /// Servers may be out of use, or back in use. Decided once no further report has arrived for
    /// [`crate::MoverSettings::settle`].
    pub health: bool,
    /// What can be lent may have changed.
    pub loans: bool,
    /// Capacity was asked for at once.
    pub emergency: bool,
}

impl Wake {
    /// What one entry wakes.
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
            // Targets between two solves, which an index finds.
            Action::PlanApplied
            | Action::ReservationsGaveWay
            | Action::DecommissionAsked
            | Action::DecommissionCancelled => look(Wanted::BetweenSolves),
            // What holds moves back.
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
            // The mover that acts writes these, and looks for their moves itself; one that takes over
            // looks at everything first.
            Action::MovesOpened
            | Action::ServerBound
            | Action::MoveEnded
            | Action::ServerReplaced
            | Action::ReplacementOwed
            | Action::EmergencyGranted
            | Action::ServersLent
            | Action::ServersRecalled
            | Action::OutageBegan
            | Action::OutageEnded => none,
            // No target, and nothing that holds a move back.
            Action::EmergencyEnded
            | Action::TokenCreated
            | Action::TokenRevoked
            | Action::RequestSubmitted
            | Action::RequestRefused
            | Action::RequestCancelled
            | Action::ReservationRemoved
            | Action::QuotaSet
            | Action::SolveRequested
            | Action::ProfileSet
            | Action::ProfileRemoved
            | Action::HardwareTypeRenamed
            | Action::HardwareTypeRemoved
            | Action::HardwareTypeAdded => none,
            // What there is to lend, and to whom.
            Action::RegionSettingsSet
            | Action::SharedBufferSet
            | Action::ElasticSet
            | Action::ElasticEnded
            | Action::ServersRacked
            | Action::ServersDecommissioned
            | Action::ServersRelocated => Wake { loans: true, ..none },
        }
    }

    /// What either of two wakes.
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

    /// Actions that others than the mover write, by their words: those that write targets, with the
    /// statement that does, and those that hold moves back, let them go on or have servers drained.
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

    /// Actions that change what can be lent, or to whom.
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
    fn every_action_that_writes_a_target_wakes() {
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
    fn a_word_of_a_newer_program_wakes_for_everything() {
        let wake = Wake::of(&Recorded::read("servers_painted"));
        let all = Wake { look: Some(Wanted::All), health: true, loans: true, emergency: true };
        assert_eq!(wake, all);
    }

    #[test]
    fn of_two_looks_the_wider_one_counts() {
        let narrow = Wake::of(&Action::PlanApplied.into());
        let wide = Wake::of(&Action::TargetsPublished.into());
        assert_eq!(narrow.look, Some(Wanted::BetweenSolves));
        assert_eq!(narrow.and(wide), wide);
        assert_eq!(wide.and(narrow), wide);
        assert_eq!(narrow.and(Wake::default()), narrow);
    }
}
