//! The reason for which a move was opened.

/// The reason for which a move was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MoveOrigin {
    /// A version of the targets assigns the server to another reservation.
    Targets,
    /// A granted request.
    Plan,
    /// A failure: a spare replaces the server, which becomes a spare once it is repaired.
    Replacement,
    /// A granted request for emergency capacity.
    Emergency,
    /// Preemption: a more important reservation needs the server while MSBs are lost.
    GiveWay,
    /// A move back to the current owner was superseded half-way, so the host profile must be set again.
    Restore,
    /// The owner takes back a server that it lent.
    Recall,
    /// Maintenance is due: containers are ended.
    Drain,
    /// The owner wants another host profile.
    Reconfigure,
    /// The server will be decommissioned.
    Decommission,
}

impl MoveOrigin {
    /// All origins.
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

    /// The word in tables and in the API.
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

    /// Whether a reservation is short until the move ends. Such a move is exempt from limits and churn
    /// contracts.
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
