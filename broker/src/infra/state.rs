//! State machines. The table `transitions` has the same transitions; a test compares them.

mod requests;

pub use requests::{OperationState, PlanState, RequestState};

use crate::infra::words;
pub use decisions::maintenance::lifecycle::MaintenanceState;
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// A state machine.
pub trait State: Copy + PartialEq + 'static {
    /// The table with these states.
    const MACHINE: &'static str;
    /// Every state, terminal ones last.
    const ALL: &'static [Self];

    /// The state's word in the table.
    fn as_str(self) -> &'static str;

    /// Whether this state may follow `source`; `None`: whether it may be the first.
    fn may_follow(self, source: Option<Self>) -> bool;

    /// The longest stay in this state before an operator should look; `None`: the state is terminal or lasts as
    /// long as people want.
    fn longest_stay(self) -> Option<Duration>;

    /// Whether no state follows.
    fn is_terminal(self) -> bool {
        !Self::ALL.iter().any(|next| next.may_follow(Some(self)))
    }
}

words::serialize_as_word! {
    SolveState, JobState, RequestState, EmergencyState, RecallState, HardwareOrderState,
}

/// Reads a state's word.
///
/// # Errors
/// [`words::unknown`].
pub(crate) fn read<S: State>(word: &str) -> Result<S, sqlx::Error> {
    let found = S::ALL.iter().copied().find(|known| known.as_str() == word);
    found.ok_or_else(|| words::unknown(&format!("{}.state", S::MACHINE), word))
}

/// The state of a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MoveState {
    /// Decided; nothing is done yet.
    Pending,
    /// Containers are being ended.
    Preempting,
    /// The previous owner's data is being removed.
    CleaningUp,
    /// The host profile is being set.
    Reconfiguring,
    /// Done: the server has its new owner.
    Bound,
    /// A newer target replaced it.
    Superseded,
    /// A step failed permanently.
    Failed,
    /// It exceeded its time.
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

    /// Pending moves wait within the limits; containers have half an hour to end; wiping and setting up a host
    /// take minutes, or an hour if an operator must help.
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

    /// Steps may be skipped but not repeated; a move may end in any step.
    fn may_follow(self, source: Option<MoveState>) -> bool {
        match source {
            None => self == MoveState::Pending,
            Some(source) => source < MoveState::Bound && source < self,
        }
    }
}

/// The state of a solve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SolveState {
    /// Requested.
    Requested,
    /// A worker runs it. At most one solve of a region is in this state.
    Running,
    /// Its targets are a version.
    Published,
    /// Another version was published first; its targets were discarded.
    Stale,
    /// It ended without targets, or the audit refused them.
    Failed,
    /// Its targets move many servers in use: an operator decides.
    AwaitingApproval,
    /// An operator rejected its targets.
    Rejected,
}

impl State for SolveState {
    const MACHINE: &'static str = "solves";
    const ALL: &'static [SolveState] = &[
        SolveState::Requested,
        SolveState::Running,
        SolveState::Published,
        SolveState::Stale,
        SolveState::Failed,
        SolveState::AwaitingApproval,
        SolveState::Rejected,
    ];

    fn as_str(self) -> &'static str {
        match self {
            SolveState::Requested => "requested",
            SolveState::Running => "running",
            SolveState::Published => "published",
            SolveState::Stale => "stale",
            SolveState::Failed => "failed",
            SolveState::AwaitingApproval => "awaiting_approval",
            SolveState::Rejected => "rejected",
        }
    }

    /// A worker takes a solve within minutes if there is one; a solve is hourly work.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            SolveState::Requested => Some(HOUR),
            SolveState::Running => Some(2 * HOUR),
            // Newer ones make it stale.
            SolveState::AwaitingApproval
            | SolveState::Published
            | SolveState::Stale
            | SolveState::Failed
            | SolveState::Rejected => None,
        }
    }

    fn may_follow(self, source: Option<SolveState>) -> bool {
        match source {
            None => self == SolveState::Requested,
            Some(SolveState::Requested) => matches!(self, SolveState::Running | SolveState::Failed),
            // Back to requested: the worker was lost, and another may take it.
            Some(SolveState::Running) => {
                !matches!(self, SolveState::Running | SolveState::Rejected)
            }
            Some(SolveState::AwaitingApproval) => {
                matches!(self, SolveState::Published | SolveState::Stale | SolveState::Rejected)
            }
            Some(_) => false,
        }
    }
}

/// The state of the recall of a server from maintenance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecallState {
    /// Ordered; the host has not confirmed the start.
    Ordered,
    /// The host has started.
    UnderWay,
    /// The server is back.
    Returned,
    /// The host refused: the server stays out until its window ends.
    Refused,
    /// The window ended first.
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

    /// Its window reports what is late.
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

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobState {
    /// Requested, or given back.
    Waiting,
    /// A worker has it, under a lease.
    Running,
    /// It ended with an outcome.
    Done,
    /// It failed permanently.
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

    /// The replays of a month wait for each other.
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
            // Running again: the worker was lost, and another has the job.
            Some(JobState::Running) => true,
            Some(_) => false,
        }
    }
}

/// The state of a failure of a held server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReplacementState {
    /// Not replaced yet: a debt.
    Owed,
    /// A spare is moving in.
    Swapped,
    /// The spare is bound.
    Bound,
    /// The server came back before a spare was found.
    Recovered,
    /// A solve that knew of the failure was published and gave what was available.
    Paid,
    /// The reservation that was short is gone, or the server is.
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

    /// The next solve pays debts; a spare is bound as soon as its host is ready.
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
            // Back to owed: the spare failed too, or its host refused.
            Some(Swapped) => matches!(self, Owed | Bound | Withdrawn),
            Some(_) => false,
        }
    }
}

/// The state of an emergency request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EmergencyState {
    /// Requested; the mover answers within seconds.
    Asked,
    /// Granted in full or in part.
    Granted,
    /// Nothing could be granted.
    Refused,
    /// Withdrawn before it was answered.
    Cancelled,
    /// Over: the promise returned to its normal amount.
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

    /// A caller waits for the answer. A grant lasts until an operator ends it.
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

/// The state of an order of hardware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HardwareOrderState {
    /// Its servers are on their way.
    Open,
    /// They are racked.
    Arrived,
    /// They will not come.
    Cancelled,
}

impl State for HardwareOrderState {
    const MACHINE: &'static str = "hardware_orders";
    const ALL: &'static [HardwareOrderState] =
        &[HardwareOrderState::Open, HardwareOrderState::Arrived, HardwareOrderState::Cancelled];

    fn as_str(self) -> &'static str {
        match self {
            HardwareOrderState::Open => "open",
            HardwareOrderState::Arrived => "arrived",
            HardwareOrderState::Cancelled => "cancelled",
        }
    }

    /// Each has a day of its own, and is late after it.
    fn longest_stay(self) -> Option<Duration> {
        None
    }

    fn may_follow(self, source: Option<HardwareOrderState>) -> bool {
        match source {
            None => self == HardwareOrderState::Open,
            Some(source) => source == HardwareOrderState::Open && self != source,
        }
    }
}

/// The state of a server that a failed move left between two owners.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnfinishedState {
    /// It belongs to neither its old nor its new owner.
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

    /// An operator should look at once: a host refuses its steps.
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

    /// Planned and paused windows follow their own times; work ends within a week, the longest window.
    fn longest_stay(self) -> Option<Duration> {
        match self {
            MaintenanceState::Draining | MaintenanceState::Active => Some(8 * 24 * HOUR),
            // A recall later than 30 minutes does not count as returned in time.
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
            // Back to planned: the obstacle is gone.
            Some(Paused) => matches!(self, Planned | Cancelled),
            Some(Active) => matches!(self, Recalling | Done | Cancelled),
            Some(Recalling) => matches!(self, Done | Cancelled),
            Some(Done | Cancelled) => false,
        }
    }
}
