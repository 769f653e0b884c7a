//! The next step of a move.

use broker::{MoveOrigin, MoveState, OpenMove};
use serde::Serialize;

/// A step that a host executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// End the running containers.
    Preempt,
    /// Remove the data of the last owner.
    CleanUp,
    /// Apply the host profile of the next owner.
    Reconfigure,
    /// Stop maintenance and return the server to service with its owner's host profile and data, because
    /// an MSB is lost. This step belongs to a recall, not to a move.
    EndMaintenance,
}

impl Step {
    /// Every step of a move, in order.
    pub const ALL: [Step; 3] = [Step::Preempt, Step::CleanUp, Step::Reconfigure];

    /// The word in the contract with agents.
    pub const fn as_str(self) -> &'static str {
        match self {
            Step::Preempt => "preempt",
            Step::CleanUp => "clean_up",
            Step::Reconfigure => "reconfigure",
            Step::EndMaintenance => "end_maintenance",
        }
    }

    /// The state of a move during this step; `None`: it is not a step of moves.
    pub const fn state(self) -> Option<MoveState> {
        match self {
            Step::Preempt => Some(MoveState::Preempting),
            Step::CleanUp => Some(MoveState::CleaningUp),
            Step::Reconfigure => Some(MoveState::Reconfiguring),
            Step::EndMaintenance => None,
        }
    }

    /// The step that a move in this state is executing.
    pub fn of(state: MoveState) -> Option<Step> {
        Step::ALL.into_iter().find(|step| step.state() == Some(state))
    }

    /// Whether a move needs this step. A server without an owner needs no cleaning, and one without a next
    /// owner no profile. A server that keeps its owner keeps its data, unless it was lent. Containers are
    /// ended wherever an owner could have started some: the host knows whether any run now.
    fn is_needed(self, of: &OpenMove) -> bool {
        match self {
            Step::Preempt => of.source.is_some(),
            // A server restored to no owner may hold data of the target of the move that was given up.
            Step::CleanUp if of.origin == MoveOrigin::Restore => of.source.is_none(),
            Step::CleanUp => {
                let kept = matches!(of.origin, MoveOrigin::Drain | MoveOrigin::Reconfigure);
                of.source.is_some() && !kept
            }
            Step::Reconfigure => {
                let kept = matches!(of.origin, MoveOrigin::Recall | MoveOrigin::Drain);
                of.target.is_some() && !kept
            }
            Step::EndMaintenance => false,
        }
    }
}

/// The step after the current state of a move; `None`: the server can be bound.
pub fn next(of: &OpenMove) -> Option<Step> {
    Step::ALL.into_iter().find(|step| step.state() > Some(of.state) && step.is_needed(of))
}

#[cfg(test)]
mod tests {
    use super::{Step, next};
    use broker::{MoveId, MoveOrigin, MoveState, OpenMove, TargetVersion};
    use chrono::DateTime;

    fn open_move(source: Option<&str>, target: Option<&str>) -> OpenMove {
        let opened_at = DateTime::UNIX_EPOCH;
        OpenMove {
            id: MoveId::from_u128(1),
            server: "s1".into(),
            rack: "rack".into(),
            msb: "msb".into(),
            source: source.map(Into::into),
            target: target.map(Into::into),
            host_profile: None,
            version: TargetVersion(1),
            state: MoveState::Pending,
            state_at: opened_at,
            opened_at,
            origin: MoveOrigin::Targets,
            in_use: false,
            out_of_use: false,
        }
    }

    #[test]
    fn next_step_skips_unneeded_steps_and_never_goes_back() {
        let steps = |source: Option<&str>, target: Option<&str>, origin| {
            let mut of = open_move(source, target);
            of.origin = origin;
            std::iter::from_fn(move || {
                let step = next(&of)?;
                of.state = step.state().expect("a step of a move");
                Some(step)
            })
            .collect::<Vec<_>>()
        };
        let targets = MoveOrigin::Targets;
        assert_eq!(steps(Some("a"), Some("b"), targets), Step::ALL);
        assert_eq!(steps(None, Some("b"), targets), [Step::Reconfigure]);
        assert_eq!(steps(Some("a"), None, targets), [Step::Preempt, Step::CleanUp]);
        assert_eq!(steps(None, None, targets), []);
        let restored = [Step::Preempt, Step::Reconfigure];
        assert_eq!(steps(Some("a"), Some("a"), MoveOrigin::Restore), restored);
        assert_eq!(steps(Some("a"), Some("a"), MoveOrigin::Reconfigure), restored);
        assert_eq!(steps(None, None, MoveOrigin::Restore), [Step::CleanUp]);
        let recalled = [Step::Preempt, Step::CleanUp];
        assert_eq!(steps(Some("a"), Some("a"), MoveOrigin::Recall), recalled);
        assert_eq!(steps(Some("a"), Some("a"), MoveOrigin::Drain), [Step::Preempt]);
        assert!(Step::ALL.iter().all(|step| step.state().and_then(Step::of) == Some(*step)));
        assert_eq!(Step::of(MoveState::Pending), None);
    }
}
