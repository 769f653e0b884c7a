//! The reason for which a move ended without being bound.

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
