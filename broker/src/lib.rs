//! The resource broker: a region as a living thing, in Postgres. The only crate with SQL.
//!
//! # What is stored, and why
//!
//! One database holds one region. Servers, racks, MSBs and datacenters refer to each other, so
//! nesting cannot be broken; a server is one row, so it has at most one owner. Its binding has three
//! columns with one writer each: **current**, who owns it now; **target**, who should, while a move
//! is under way; **loan**, which elastic reservation borrows it. A **generation** counts changes of
//! what a decision about the server rests on.
//!
//! What was promised to a reservation never changes; new versions are added. **Versions of the
//! targets** form a chain: a publication names its parent, and of two on top of the same parent the
//! database refuses one. A server whose generation moved since the snapshot keeps what it has.
//!
//! Every change writes the **audit trail**, whose numbers become visible in their order and without
//! holes. So the trail is also what others follow: they read on from the last number they know, and
//! a `NOTIFY` only tells them when to look.
//!
//! **Solves** are jobs of a queue in the same database, so that any number of workers take them: under
//! a lease, whose number is checked in the transaction that publishes. A worker that was cut off and
//! comes back finds that it may write nothing.
//!
//! Constraints and triggers hold what can be held there (`migrations/`); this crate adds what spans
//! rows of a whole snapshot, through [`fleet::RegionSnapshot`].
//!
//! # What this crate does not know
//!
//! How targets are found, how moves are carried out, who asks over HTTP, and where Postgres runs:
//! an [`Address`] says that. [`private`] starts one where there is none.
//!
//! Start with [`Broker`].

mod apply;
mod broker;
mod card;
mod change;
mod check;
mod contract;
mod copy;
mod decommission;
mod edit;
mod emergency;
mod error;
mod export;
mod figures;
mod follow;
mod give_way;
mod hardware;
mod idempotency;
mod job;
mod kept;
mod lately;
mod latency;
mod lease;
mod listed;
mod load;
mod loan;
mod maintenance;
mod metrics;
mod mover;
mod moves;
mod operation;
mod outage;
mod pace;
mod pacing;
mod place;
mod plan;
mod plan_job;
mod planned;
pub mod private;
mod profile;
mod promise;
mod promised;
mod publish;
mod quota;
mod replacement;
mod report;
mod request;
mod reservation;
mod reserved;
mod rollout;
mod server;
mod solve;
mod state;
mod status;
mod stored;
mod stuck;
mod subscribe;
mod text;
mod token;
mod topology;
mod totals;
mod touched;
mod trail;
mod unavailability;
mod unfinished;
mod usage;
mod valued;

/// Declares statements: a constant for each, and a list of all for the test that prepares them.
macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        $($(#[$doc])* pub(crate) const $name: &str = $sql;)+
        /// Every statement here, by module and name.
        pub(crate) const ALL: &[(&str, &str)] =
            &[$((concat!(module_path!(), "::", stringify!($name)), $name)),+];
    };
}
use statements;

pub use apply::{Application, Applied, ApplyError, Applying, Granting};
pub use broker::{Address, Broker, MIGRATOR, OpenError, POSTGRES_MIN};
pub use card::{CARDS_PAGE_MAX, CardFilter, InForce, ReservationCard};
pub use contract::{Contract, ContractError, ContractUse, QuietTime};
pub use decommission::Decommission;
pub use edit::{
    EditAnswer, EditError, Elastic, ElasticEnd, HardwareType, SharedBuffer, StoredSettings,
    settings_json,
};
pub use emergency::{Emergency, EmergencyError, EmergencyRefusal, Grant};
pub use error::{DbError, Fault};
pub use export::{Export, ExportError};
pub use figures::{HourOfMoves, SolveFigures};
pub use follow::{Follower, Look, ServerChange, Tick};
pub use give_way::{GaveWay, GiveWayAnswer, GiveWayCause, GiveWayError, give_way_version};
pub use idempotency::{KEY_CHARS_MAX, KEYS_KEPT, Key, KeyClaim};
pub use job::{BatchJob, Job, JobDoorbell, JobKind, LEASE_MAX, Lease};
pub use latency::{STATEMENT_WITHIN, StatementTimes, note_statement, statement_times};
pub use lease::{LeaseTerm, keep_lease, since_boot};
pub use listed::{EventRow, EventsAsked, MoveRow, MovesAsked, SolvesAsked, TrailAsked};
pub use load::{ImportOptions, LoadError, Loaded, Missing};
pub use loan::{Lent, loan_json};
pub use maintenance::{
    AHEAD_MAX, Due, MAINTENANCE_MAX, MaintenanceError, MaintenanceHolder, MaintenanceInstead,
    MaintenanceLeft, MaintenancePreview, MaintenanceReason, MaintenanceRefusal, MaintenanceRequest,
    MaintenanceWindow, OpenRecall, PreviewedWindow, RecallReport, SHARE_MICRO, WindowRecall,
};
pub use metrics::{LastSolve, Metrics, REPLACED_WITHIN};
pub use mover::{Epoch, MoverDistance, MoverError, MoverInstance, MoverStatus, Stopped};
pub use moves::{BegunOfLate, MoveOrigin, MoveReason, OpenMove, Opened, Wanted};
pub use operation::{Operation, OperationKind};
pub use outage::Outage;
pub use pace::{Waiters, Waiting};
pub use pacing::HORIZON;
pub use plan::{Changes, Elsewhere, ImportPlan, PlanError, VANISHING_MAX, Vanishing};
pub use plan_job::PlanJob;
pub use planned::{NewPlan, PLAN_LASTS, StoredPlan, UnreadablePlan};
pub use profile::{ProfileError, RruProfile};
pub use promised::PromiseVersion;
pub use publish::{Publication, PublishError, Published, SolveEnd, TargetRow};
pub use quota::{Quota, QuotaAsked, QuotaError, QuotaLimit, QuotaPromise, QuotaWrong};
pub use replacement::{Replaced, ReplacementRow};
pub use report::{Refusal, Report, ReportOutcome, Reported};
pub use request::{
    AskError, Asking, GrantPolicy, Labels, REQUESTS_PAGE_MAX, Request, RequestChangeKind,
    RequestFilter, Submission, Submitted,
};
pub use reservation::{HeldServer, PAGE_MAX, ReservationError};
pub use reserved::{ReservedFilter, ReservedPage, ReservedServer, SERVERS_PAGE_MAX, ServerState};
pub use rollout::{Rollout, RolloutError};
pub use server::{ServerDetail, ServerMaintenance, ServerPast, ServerTarget};
pub use solve::{Cause, FailureReason, SolveBasis, SolveRow};
pub use state::{
    EmergencyState, JobState, MaintenanceState, MoveState, OperationState, PlanState, RecallState,
    ReplacementState, RequestState, SolveState, State, UnfinishedState,
};
pub use status::{QueueCount, ReservationCounts, RunningJob, ServerCounts, Status};
pub use stuck::Stuck;
pub use subscribe::{Subscription, TrailDoorbell};
pub use text::storable;
pub use token::{GoodToken, NewToken, Role, SecretDigest, TOKEN_LIFE_MAX, TokenError, TokenRow};
pub use totals::ReservedTotals;
pub use trail::{Action, Entry, Recorded, Seq, Subject, TargetVersion};
pub use unavailability::{Occurrence, UnavailabilityError};
pub use unfinished::Unfinished;
pub use usage::{Usage, UsageOutcome};
pub use valued::Valued;

/// Every statement this crate sends, by name, those that make staging tables first: for the test
/// that prepares them against the schema.
#[doc(hidden)]
pub fn all_statements() -> Vec<(&'static str, &'static str)> {
    let lists = [
        load::sql::ALL,
        publish::sql::ALL,
        apply::sql::ALL,
        broker::sql::ALL,
        card::sql::ALL,
        change::sql::ALL,
        check::sql::ALL,
        decommission::sql::ALL,
        edit::sql::ALL,
        edit::buffer::sql::ALL,
        edit::elastic::sql::ALL,
        emergency::sql::ALL,
        give_way::sql::ALL,
        hardware::sql::ALL,
        idempotency::sql::ALL,
        operation::sql::ALL,
        planned::sql::ALL,
        plan_job::sql::ALL,
        profile::sql::ALL,
        quota::sql::ALL,
        contract::sql::ALL,
        export::sql::ALL,
        pacing::sql::ALL,
        figures::sql::ALL,
        follow::sql::ALL,
        job::sql::ALL,
        lately::sql::ALL,
        listed::sql::ALL,
        loan::sql::ALL,
        metrics::sql::ALL,
        mover::sql::ALL,
        moves::sql::ALL,
        outage::sql::ALL,
        place::sql::ALL,
        promise::sql::ALL,
        promised::sql::ALL,
        replacement::sql::ALL,
        rollout::sql::ALL,
        report::sql::ALL,
        reservation::sql::ALL,
        reserved::sql::ALL,
        totals::sql::ALL,
        server::sql::ALL,
        solve::sql::ALL,
        status::sql::ALL,
        stored::sql::ALL,
        stuck::sql::ALL,
        token::sql::ALL,
        topology::sql::ALL,
        trail::sql::ALL,
        unavailability::sql::ALL,
        unfinished::sql::ALL,
        usage::sql::ALL,
        valued::sql::ALL,
    ];
    (lists.into_iter().chain(maintenance::statements()).chain(request::statements()))
        .flatten()
        .copied()
        .collect()
}
