//! The reason for which a move ended without being bound.

use crate::infra::words;

/// The reason why a move ended unbound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveReason {
    /// A newer target replaced it.
    NewerTarget,
    /// An imported snapshot contradicts it.
    SnapshotLoaded,
    /// The server was removed.
    ServerRemoved,
    /// The host refused a step permanently.
    HostRefused,
    /// It exceeded the longest time of a move.
    TookTooLong,
    /// The maintenance it drained for is over, paused or cancelled.
    MaintenanceOver,
    /// The rollout of its host profile was paused before it began.
    RolloutPaused,
}

words::serialize_as_word! { MoveReason }

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

    /// The reason's word in the table.
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

    /// Reads the reason's word.
    ///
    /// # Errors
    /// [`words::unknown`].
    pub(crate) fn read(word: &str) -> Result<MoveReason, sqlx::Error> {
        words::read("moves.reason", MoveReason::ALL, MoveReason::as_str, word)
    }
}
