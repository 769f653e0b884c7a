//! Moves of servers, the mover's epoch and pace, rollouts of host profiles.

pub(crate) mod arrival;
pub(crate) mod lifecycle;
pub(crate) mod mover;
pub(crate) mod origin;
pub(crate) mod pacing;
pub(crate) mod rollout;
pub(crate) mod unfinished;

pub use arrival::Arrivals;
pub use fleet::MoveOrigin;
pub use lifecycle::{EndedMoves, OpenMove, Opened, Wanted};
pub use mover::{Epoch, MoverDistance, MoverError, MoverInstance, MoverStatus, Stopped};
pub use origin::MoveReason;
pub use pacing::HORIZON;
pub use rollout::{Rollout, RolloutError};
pub use unfinished::Unfinished;

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    arrival::sql::ALL,
    lifecycle::sql::ALL,
    mover::sql::ALL,
    pacing::sql::ALL,
    rollout::sql::ALL,
    unfinished::sql::ALL,
];
