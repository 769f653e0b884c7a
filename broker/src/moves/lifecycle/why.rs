//! Why moves are opened, and why they end without being bound.

/// Why a move was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveOrigin {
    /// A version of the targets wants it.
    Targets,
    /// A request was granted.
    Plan,
    /// A server failed: a spare takes its place, and it becomes a spare once it is repaired.
    Replacement,
    /// A request for capacity at once was granted.
    Emergency,
    /// Of what an outage left, a more important reservation needs it more.
    GiveWay,
    /// A move was superseded half-way by the owner the server has: its host profile must be set
    /// again.
    Restore,
    /// What was lent comes back.
    Recall,
    /// Maintenance is due: containers are ended.
    Drain,
    /// Its owner wants another host profile.
    Reconfigure,
    /// It is to be decommissioned.
    Decommission,
}

impl MoveOrigin {
    /// Every origin.
    pub const ALL: [MoveOrigin; 10] = [
        MoveOrigin::Targets,
        MoveOrigin::Plan,
        MoveOrigin::Replacement,
        MoveOrigin::Emergency,
        MoveOrigin::GiveWay,
        MoveOrigin::Restore,
        MoveOrigin::Recall,
        MoveOrigin::Drain,
        MoveOrigin::Reconfigure,
        MoveOrigin::Decommission,
    ];

    /// The word of the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            MoveOrigin::Targets => "targets",
            MoveOrigin::Plan => "plan",
            MoveOrigin::Replacement => "replacement",
            MoveOrigin::Emergency => "emergency",
            MoveOrigin::GiveWay => "give_way",
            MoveOrigin::Restore => "restore",
            MoveOrigin::Recall => "recall",
            MoveOrigin::Drain => "drain",
            MoveOrigin::Reconfigure => "reconfigure",
            MoveOrigin::Decommission => "decommission",
        }
    }

    /// Whether the server keeps its owner.
    pub const fn stays(self) -> bool {
        matches!(
            self,
            MoveOrigin::Restore | MoveOrigin::Recall | MoveOrigin::Drain | MoveOrigin::Reconfigure
        )
    }

    /// Whether a reservation is short until it is done: it waits for no limit.
    pub const fn is_urgent(self) -> bool {
        matches!(
            self,
            MoveOrigin::Replacement
                | MoveOrigin::Emergency
                | MoveOrigin::GiveWay
                | MoveOrigin::Recall
        )
    }
}

/// Why a move ended without being bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveReason {
    /// A newer target made it moot.
    NewerTarget,
    /// A snapshot was loaded that says otherwise.
    SnapshotLoaded,
    /// The server is gone.
    ServerRemoved,
    /// The host refused a step for good.
    HostRefused,
    /// It took longer than any move may.
    TookTooLong,
    /// The maintenance it drained for is over, held back or cancelled.
    MaintenanceOver,
    /// The roll-out of the host profile was paused before it began.
    RolloutPaused,
}

impl MoveReason {
    /// Every reason.
    pub const ALL: [MoveReason; 7] = [
        MoveReason::NewerTarget,
        MoveReason::SnapshotLoaded,
        MoveReason::ServerRemoved,
        MoveReason::HostRefused,
        MoveReason::TookTooLong,
        MoveReason::MaintenanceOver,
        MoveReason::RolloutPaused,
    ];

    /// The word of the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            MoveReason::NewerTarget => "newer_target",
            MoveReason::SnapshotLoaded => "snapshot_loaded",
            MoveReason::ServerRemoved => "server_removed",
            MoveReason::HostRefused => "host_refused",
            MoveReason::TookTooLong => "took_too_long",
            MoveReason::MaintenanceOver => "maintenance_over",
            MoveReason::RolloutPaused => "rollout_paused",
        }
    }
}
