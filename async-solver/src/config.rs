//! What may be chosen about a solve.

use serde::{Deserialize, Serialize};

/// Settings of a solve. The prices of the model are the snapshot's (`fleet::Weights`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SolverConfig {
    /// The solve ends when the gap of phase 1 is at most this share of the primal value.
    pub gap_limit: f64,
    /// Rounds of improvement without a better incumbent or bound after which the solve ends.
    pub stall_rounds: u32,
    /// Today's assignment stays unless the best one found mends a shortfall or gains more than
    /// this share of today's cost.
    pub stay_gain: f64,
    /// Worker threads.
    pub threads: usize,
    /// Seed of every random choice.
    pub seed: u64,
    /// Servers that their reservation no longer needs become free.
    pub hand_back: bool,
    /// Servers that are not held today go to emptier MSBs where that costs nothing.
    pub level: bool,
    /// Whether phase 2 places servers on racks.
    pub rack_phase: bool,
    /// Left-over servers go to reservations that stay short, although nothing guarantees them.
    pub unguaranteed: bool,
}

impl Default for SolverConfig {
    fn default() -> Self {
        SolverConfig {
            gap_limit: 1e-4,
            stall_rounds: 8,
            stay_gain: 5e-3,
            threads: 2,
            seed: 1,
            hand_back: true,
            level: true,
            rack_phase: true,
            unguaranteed: true,
        }
    }
}
