//! Move budgets: how many servers may begin to leave a place or a reservation before the next solve.

use crate::id::{MsbIx, RackIx, ReservationIx, ServerIx};

/// The longest horizon: 31 days.
pub const HORIZON_MINUTES_MAX: u32 = 44_640;

/// Which servers a budget counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetScope {
    /// All of the region.
    Region,
    /// Those of an MSB.
    Msb(MsbIx),
    /// Those of a rack.
    Rack(RackIx),
    /// Those that a reservation owns: moves out of it.
    Reservation(ReservationIx),
    /// One server.
    Server(ServerIx),
}

impl BudgetScope {
    /// The word of the snapshot format.
    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetScope::Region => "region",
            BudgetScope::Msb(_) => "msb",
            BudgetScope::Rack(_) => "rack",
            BudgetScope::Reservation(_) => "reservation",
            BudgetScope::Server(_) => "server",
        }
    }
}

/// Why no more may move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BudgetCause {
    /// A limit of moves at once or per window.
    Limit,
    /// A churn contract.
    Contract,
    /// A time of the day at which the reservation is not disturbed.
    QuietTime,
    /// Nothing new is put on the server: it is drained for maintenance.
    Cordon,
    /// A churn contract of nothing, or one that is always quiet: no server in use ever leaves for another
    /// reservation's sake.
    Never,
}

impl BudgetCause {
    /// Every cause.
    pub const ALL: [BudgetCause; 5] = [
        BudgetCause::Limit,
        BudgetCause::Contract,
        BudgetCause::QuietTime,
        BudgetCause::Cordon,
        BudgetCause::Never,
    ];

    /// The word of the snapshot format.
    pub const fn as_str(self) -> &'static str {
        match self {
            BudgetCause::Limit => "limit",
            BudgetCause::Contract => "contract",
            BudgetCause::QuietTime => "quiet_time",
            BudgetCause::Cordon => "cordon",
            BudgetCause::Never => "never",
        }
    }

    /// Reads the word of the snapshot format.
    pub fn parse(word: &str) -> Option<BudgetCause> {
        BudgetCause::ALL.into_iter().find(|cause| cause.as_str() == word)
    }
}

/// How many servers may begin to move before the next solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveBudget {
    /// Which servers it counts.
    pub scope: BudgetScope,
    /// Those with running containers, those without, or (`None`) both.
    pub in_use: Option<bool>,
    /// How many of them.
    pub moves: u64,
    /// Why.
    pub because: BudgetCause,
}
