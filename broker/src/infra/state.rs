//! States and which may follow which. The table `transitions` says the same; a test compares them.

mod requests;

pub use requests::{OperationState, PlanState, RequestState};

use crate::infra::words;
pub use decisions::maintenance::lifecycle::MaintenanceState;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// Something with states.
pub trait State: Copy + PartialEq + 'static {
    /// The table whose states these are.
    const MACHINE: &'static str;
    /// Every state, in order, those that end it last.
    const ALL: &'static [Self];

    /// The word of the table.
    fn as_str(self) -> &'static str;

    /// Whether this one may follow; `None`: may be the first.
    fn may_follow(self, source: Option<Self>) -> bool;

    /// How long anything may be in it before somebody should look; `None`: it has ended, or lasts for
    /// as long as people want it to.
    fn longest_stay(self) -> Option<Duration>;

    /// Whether nothing can follow.
    fn is_terminal(self) -> bool {
        !Self::ALL.iter().any(|next| next.may_follow(Some(self)))
    }
}

words::serialize_as_word! { SolveState, JobState }

/// Reads a state's word.
///
/// # Errors
/// [`words::unknown`].
pub(crate) fn read<S: State>(word: &str) -> Result<S, sqlx::Error> {
    let found = S::ALL.iter().copied().find(|known| known.as_str() == word);
    found.ok_or_else(|| words::unknown(&format!("{}.state", S::MACHINE), word))
}

/// How far a move is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveState {
    /// Decided; nothing has been done.
    Pending,
    /// Containers are being ended.
    Preempting,
    /// The last owner's traces are being removed.
    CleaningUp,
    /// The host profile is being set.
    Reconfiguring,
    /// Done: the server has its new owner.
    Bound,
    /// A newer target made it moot.
    Superseded,
    /// A step failed for good.
    Failed,
    /// It took too long.
    Expired,
}

impl State for MoveState {
    const MACHINE: &'static str = "moves";
    const ALL: &'static [MoveState] = &[
        MoveState::Pending,
        MoveState::Preempting,
        MoveState::CleaningUp,
        MoveState::Reconfiguring,
        MoveState::Bound,
        MoveState::Superseded,
        MoveState::Failed,
        MoveState::Expired,
    ];

    fn as_str(self) -> &'static str {
        match self {
            MoveState::Pending => "pending",
            MoveState::Preempting => "preempting",
            MoveState::CleaningUp => "cleaning_up",
            MoveState::Reconfiguring => "reconfiguring",
            MoveState::Bound => "bound",
            MoveState::Superseded => "superseded",
            MoveState::Failed => "failed",
            MoveState::Expired => "expired",
        }
    }

    /// Pending ones wait for others within the limits; containers have half an hour to end; wiping and
    /// setting up a host take minutes, and an hour where a person must help.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            MoveState::Pending => Some(2 * HOUR),
            MoveState::Preempting => Some(HOUR / 2),
            MoveState::CleaningUp | MoveState::Reconfiguring => Some(HOUR),
            MoveState::Bound | MoveState::Superseded | MoveState::Failed | MoveState::Expired => {
                None
            }
        }
    }

    /// Steps may be left out, never gone back; from any step a move may end.
    fn may_follow(self, source: Option<MoveState>) -> bool {
        match source {
            None => self == MoveState::Pending,
            Some(source) => source < MoveState::Bound && source < self,
        }
    }
}

/// How far a solve is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SolveState {
    /// Asked for.
    Requested,
    /// Some worker has it. At most one solve of a region is here.
    Running,
    /// Its targets are a version.
    Published,
    /// Another version came first; its targets were not taken.
    Stale,
    /// It ended without targets, or with ones the audit refused.
    Failed,
}

impl State for SolveState {
    const MACHINE: &'static str = "solves";
    const ALL: &'static [SolveState] = &[
        SolveState::Requested,
        SolveState::Running,
        SolveState::Published,
        SolveState::Stale,
        SolveState::Failed,
    ];

    fn as_str(self) -> &'static str {
        match self {
            SolveState::Requested => "requested",
            SolveState::Running => "running",
            SolveState::Published => "published",
            SolveState::Stale => "stale",
            SolveState::Failed => "failed",
        }
    }

    /// A worker takes one within minutes, unless there is none; a solve is hourly work.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            SolveState::Requested => Some(HOUR),
            SolveState::Running => Some(2 * HOUR),
            SolveState::Published | SolveState::Stale | SolveState::Failed => None,
        }
    }

    fn may_follow(self, source: Option<SolveState>) -> bool {
        match source {
            None => self == SolveState::Requested,
            Some(SolveState::Requested) => matches!(self, SolveState::Running | SolveState::Failed),
            // Back to requested: its worker was lost, another may take it.
            Some(SolveState::Running) => self != SolveState::Running,
            Some(_) => false,
        }
    }
}

/// How far the recall of a server from maintenance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecallState {
    /// Decided; its host has not said that it has begun.
    Ordered,
    /// Its host has begun.
    UnderWay,
    /// It is back.
    Returned,
    /// Its host refused: it stays out until its window ends.
    Refused,
    /// Its window was over first.
    Over,
}

impl State for RecallState {
    const MACHINE: &'static str = "recalls";
    const ALL: &'static [RecallState] = &[
        RecallState::Ordered,
        RecallState::UnderWay,
        RecallState::Returned,
        RecallState::Refused,
        RecallState::Over,
    ];

    fn as_str(self) -> &'static str {
        match self {
            RecallState::Ordered => "ordered",
            RecallState::UnderWay => "under_way",
            RecallState::Returned => "returned",
            RecallState::Refused => "refused",
            RecallState::Over => "over",
        }
    }

    /// Its window says what is late.
    fn longest_stay(self) -> Option<Duration> {
        None
    }

    fn may_follow(self, source: Option<RecallState>) -> bool {
        use RecallState::{Ordered, Over, Refused, Returned, UnderWay};
        match source {
            None => self == Ordered,
            Some(Ordered) => self != Ordered,
            Some(UnderWay) => matches!(self, Returned | Refused | Over),
            Some(Returned | Refused | Over) => false,
        }
    }
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Asked for, or given back.
    Waiting,
    /// Some worker has it, under a lease.
    Running,
    /// It ended with an outcome.
    Done,
    /// It failed for good.
    Failed,
}

impl State for JobState {
    const MACHINE: &'static str = "jobs";
    const ALL: &'static [JobState] =
        &[JobState::Waiting, JobState::Running, JobState::Done, JobState::Failed];

    fn as_str(self) -> &'static str {
        match self {
            JobState::Waiting => "waiting",
            JobState::Running => "running",
            JobState::Done => "done",
            JobState::Failed => "failed",
        }
    }

    /// Replays of a month wait for each other.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            JobState::Waiting | JobState::Running => Some(24 * HOUR),
            JobState::Done | JobState::Failed => None,
        }
    }

    fn may_follow(self, source: Option<JobState>) -> bool {
        match source {
            None => self == JobState::Waiting,
            Some(JobState::Waiting) => matches!(self, JobState::Running | JobState::Failed),
            // Running again: its worker was lost, another has it.
            Some(JobState::Running) => true,
            Some(_) => false,
        }
    }
}

/// What became of a server that failed while a reservation held it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplacementState {
    /// No spare has its place yet: a debt.
    Owed,
    /// A spare is on its way.
    Swapped,
    /// The spare is bound.
    Bound,
    /// The server came back before a spare was found.
    Recovered,
    /// A solve that knew of the failure was published: it has given what there was.
    Paid,
    /// Whoever was short is gone, or the server is.
    Withdrawn,
}

impl State for ReplacementState {
    const MACHINE: &'static str = "replacements";
    const ALL: &'static [ReplacementState] = &[
        ReplacementState::Owed,
        ReplacementState::Swapped,
        ReplacementState::Bound,
        ReplacementState::Recovered,
        ReplacementState::Paid,
        ReplacementState::Withdrawn,
    ];

    fn as_str(self) -> &'static str {
        match self {
            ReplacementState::Owed => "owed",
            ReplacementState::Swapped => "swapped",
            ReplacementState::Bound => "bound",
            ReplacementState::Recovered => "recovered",
            ReplacementState::Paid => "paid",
            ReplacementState::Withdrawn => "withdrawn",
        }
    }

    /// The next solve pays what is owed; a spare is bound as soon as its host is ready.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            ReplacementState::Owed => Some(2 * HOUR),
            ReplacementState::Swapped => Some(HOUR),
            ReplacementState::Bound
            | ReplacementState::Recovered
            | ReplacementState::Paid
            | ReplacementState::Withdrawn => None,
        }
    }

    fn may_follow(self, source: Option<ReplacementState>) -> bool {
        use ReplacementState::{Bound, Owed, Paid, Recovered, Swapped, Withdrawn};
        match source {
            None => self == Owed,
            Some(Owed) => matches!(self, Swapped | Recovered | Paid | Withdrawn),
            // Back to owed: the spare failed as well, or its host refused.
            Some(Swapped) => matches!(self, Owed | Bound | Withdrawn),
            Some(_) => false,
        }
    }
}

/// What became of an emergency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmergencyState {
    /// Asked for; the mover answers within seconds.
    Asked,
    /// Granted, in whole or in part.
    Granted,
    /// Nothing could be granted.
    Refused,
    /// Taken back before it was answered.
    Cancelled,
    /// Over: the promise is what it would be without it.
    Ended,
}

impl State for EmergencyState {
    const MACHINE: &'static str = "emergencies";
    const ALL: &'static [EmergencyState] = &[
        EmergencyState::Asked,
        EmergencyState::Granted,
        EmergencyState::Refused,
        EmergencyState::Cancelled,
        EmergencyState::Ended,
    ];

    fn as_str(self) -> &'static str {
        match self {
            EmergencyState::Asked => "asked",
            EmergencyState::Granted => "granted",
            EmergencyState::Refused => "refused",
            EmergencyState::Cancelled => "cancelled",
            EmergencyState::Ended => "ended",
        }
    }

    /// Whoever asks waits. What was granted lasts until somebody ends it.
    fn longest_stay(self) -> Option<Duration> {
        (self == EmergencyState::Asked).then_some(HOUR / 60)
    }

    fn may_follow(self, source: Option<EmergencyState>) -> bool {
        use EmergencyState::{Asked, Cancelled, Ended, Granted, Refused};
        match source {
            None => self == Asked,
            Some(Asked) => matches!(self, Granted | Refused | Cancelled),
            Some(Granted) => self == Ended,
            Some(_) => false,
        }
    }
}

/// What became of a server that a move left half-way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnfinishedState {
    /// It is neither its old owner's nor its new one's.
    Unfinished,
    /// Its old owner has it again.
    Restored,
    /// Another owner has it.
    HandedOver,
}

impl State for UnfinishedState {
    const MACHINE: &'static str = "unfinished";
    const ALL: &'static [UnfinishedState] =
        &[UnfinishedState::Unfinished, UnfinishedState::Restored, UnfinishedState::HandedOver];

    fn as_str(self) -> &'static str {
        match self {
            UnfinishedState::Unfinished => "unfinished",
            UnfinishedState::Restored => "restored",
            UnfinishedState::HandedOver => "handed_over",
        }
    }

    /// Somebody should look at once: a host refuses what it is asked.
    fn longest_stay(self) -> Option<Duration> {
        (self == UnfinishedState::Unfinished).then_some(Duration::ZERO)
    }

    fn may_follow(self, source: Option<UnfinishedState>) -> bool {
        match source {
            None => self == UnfinishedState::Unfinished,
            Some(source) => source == UnfinishedState::Unfinished && self != source,
        }
    }
}

impl State for MaintenanceState {
    const MACHINE: &'static str = "maintenance";
    const ALL: &'static [MaintenanceState] = &[
        MaintenanceState::Planned,
        MaintenanceState::Paused,
        MaintenanceState::Draining,
        MaintenanceState::Active,
        MaintenanceState::Recalling,
        MaintenanceState::Done,
        MaintenanceState::Cancelled,
    ];

    fn as_str(self) -> &'static str {
        match self {
            MaintenanceState::Planned => "planned",
            MaintenanceState::Paused => "paused",
            MaintenanceState::Draining => "draining",
            MaintenanceState::Active => "active",
            MaintenanceState::Recalling => "recalling",
            MaintenanceState::Done => "done",
            MaintenanceState::Cancelled => "cancelled",
        }
    }

    /// What is planned or held back has its time; what is under way ends within a week, the longest
    /// there is.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            MaintenanceState::Draining | MaintenanceState::Active => Some(8 * 24 * HOUR),
            // What counts as back within 30 minutes is late by then.
            MaintenanceState::Recalling => Some(HOUR / 2),
            MaintenanceState::Planned
            | MaintenanceState::Paused
            | MaintenanceState::Done
            | MaintenanceState::Cancelled => None,
        }
    }

    fn may_follow(self, source: Option<MaintenanceState>) -> bool {
        use MaintenanceState::{Active, Cancelled, Done, Draining, Paused, Planned, Recalling};
        match source {
            None => self == Planned,
            Some(Planned) => matches!(self, Draining | Paused | Cancelled),
            Some(Draining) => matches!(self, Active | Paused | Cancelled),
            // Back to planned: what held it back is over.
            Some(Paused) => matches!(self, Planned | Cancelled),
            Some(Active) => matches!(self, Recalling | Done | Cancelled),
            Some(Recalling) => matches!(self, Done | Cancelled),
            Some(Done | Cancelled) => false,
        }
    }
}
