//! The audit trail, which is also the change feed.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::fmt;

/// The number of an entry of the audit trail: 1, 2, 3, ..., in commit order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Seq(pub i64);

/// A version of the targets: 0 for the empty region; each further version adds one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct TargetVersion(pub i64);

impl fmt::Display for Seq {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Display for TargetVersion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// An action of the audit trail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A snapshot was loaded. Subject: the region.
    SnapshotLoaded,
    /// Targets were published. Subject: their version.
    TargetsPublished,
    /// An unavailability event was recorded. Subject: the event.
    UnavailabilityRecorded,
    /// An unavailability event was ended. Subject: the event.
    UnavailabilityCleared,
    /// Moves were opened and superseded. Subject: the version of the targets.
    MovesOpened,
    /// A move is done: the server has its new owner. Subject: the server.
    ServerBound,
    /// A move failed or expired; the server stays with its owner. Subject: the server.
    MoveEnded,
    /// The stop switch was set. Subject: the mover.
    MoverStopped,
    /// The stop switch was released. Subject: the mover.
    MoverResumed,
    /// A spare replaces a failed server. Subject: the failed server.
    ServerReplaced,
    /// A server failed and no spare fits: a debt. Subject: the failed server.
    ReplacementOwed,
    /// A repaired server returns to its reservation. Subject: the server.
    ServerReturns,
    /// A spare returns to its shared buffer, because the server that it replaced is back. Subject: the spare.
    SpareReturns,
    /// An MSB is lost. Subject: the MSB.
    OutageBegan,
    /// A lost MSB is back. Subject: the MSB.
    OutageEnded,
    /// Idle servers were lent. Subject: the borrowing elastic reservation.
    ServersLent,
    /// Lent servers were recalled. Subject: the borrowing elastic reservation.
    ServersRecalled,
    /// Servers came into use or became idle. Subject: none.
    UsageReported,
    /// Maintenance was planned. Subject: its window.
    MaintenancePlanned,
    /// A window of maintenance began, ended, was cancelled or postponed. Subject: the window.
    MaintenanceChanged,
    /// The churn contract of a reservation was set. Subject: the reservation.
    ContractSet,
    /// The churn contract of a reservation was removed. Subject: the reservation.
    ContractRemoved,
    /// The request of a reservation follows demand from now on, or in another way.
    AutosizeSet,
    /// The request of a reservation no longer follows demand.
    AutosizeRemoved,
    /// A policy was set or replaced. Subject: the policy.
    PolicySet,
    /// A policy was withdrawn. Subject: the policy.
    PolicyWithdrawn,
    /// Emergency capacity was requested. Subject: the reservation.
    EmergencyAsked,
    /// Emergency capacity was granted or refused. Subject: the reservation.
    EmergencyGranted,
    /// An emergency ended. Subject: the reservation.
    EmergencyEnded,
    /// Reservations gave way to more important ones. Subject: none.
    ReservationsGaveWay,
    /// A token was created. Subject: the token.
    TokenCreated,
    /// A token was revoked. Subject: the token.
    TokenRevoked,
    /// A change of a reservation was requested. Subject: the reservation.
    RequestSubmitted,
    /// A request was refused. Subject: the reservation.
    RequestRefused,
    /// A request was cancelled before its decision. Subject: the reservation.
    RequestCancelled,
    /// Requests were granted: promises and targets changed. Subject: the plan.
    PlanApplied,
    /// An ended reservation holds no server any more. Subject: the reservation.
    ReservationRemoved,
    /// The quota of an owner was set. Subject: the owner.
    QuotaSet,
    /// A solve was requested. Subject: the solve.
    SolveRequested,
    /// A solve was cancelled. Subject: the solve.
    SolveCancelled,
    /// An RRU profile was set. Subject: the RRU profile.
    ProfileSet,
    /// An RRU profile was removed. Subject: the RRU profile.
    ProfileRemoved,
    /// Prices and limits of the region were set. Subject: the region.
    RegionSettingsSet,
    /// The shared buffer of a hardware type was given a fixed size, or the region's fraction. Subject: the
    /// type.
    SharedBufferSet,
    /// The shared buffer of a hardware type follows its failures from now on, or in another way. Subject: the type.
    BufferAutosizeSet,
    /// The shared buffer of a hardware type no longer follows its failures. Subject: the type.
    BufferAutosizeRemoved,
    /// An elastic reservation was created or changed. Subject: the reservation.
    ElasticSet,
    /// An elastic reservation was ended; it is removed once it borrows nothing. Subject: the reservation.
    ElasticEnded,
    /// A hardware type was added. Subject: the type.
    HardwareTypeAdded,
    /// Servers were racked. Subject: the region.
    ServersRacked,
    /// Servers were decommissioned. Subject: the region.
    ServersDecommissioned,
    /// Servers were moved to other racks. Subject: the region.
    ServersRelocated,
    /// Servers are to be drained and then removed. Subject: the region.
    DecommissionAsked,
    /// A decommission was cancelled. Subject: the region.
    DecommissionCancelled,
    /// A hardware type was renamed. Subject: the type, by its old name.
    HardwareTypeRenamed,
    /// A hardware type without servers was removed. Subject: the type.
    HardwareTypeRemoved,
    /// Servers were ordered. Subject: the order.
    HardwareOrdered,
    /// The number or the day of an order of hardware was changed. Subject: the order.
    HardwareOrderChanged,
    /// The servers of an order are racked. Subject: the order.
    HardwareOrderArrived,
    /// An order of hardware was cancelled. Subject: the order.
    HardwareOrderCancelled,
    /// The rollout of a host profile was paused. Subject: the reservation.
    RolloutPaused,
    /// The rollout of a host profile was resumed. Subject: the reservation.
    RolloutResumed,
    /// The targets of a solve await approval. Subject: the solve.
    SolveAwaitsApproval,
    /// The targets of a solve were approved and published. Subject: the solve.
    SolveApproved,
    /// The targets of a solve were rejected. Subject: the solve.
    SolveRejected,
    /// A request awaits approval. Subject: the reservation.
    RequestAwaitsApproval,
    /// A request was approved and is planned again. Subject: the reservation.
    RequestApproved,
}

impl Action {
    /// Whether the action leaves snapshots of the region unchanged, so that an earlier one is still current.
    pub(crate) const fn leaves_the_region(self) -> bool {
        matches!(
            self,
            Action::MoverStopped
                | Action::MoverResumed
                | Action::OutageBegan
                | Action::OutageEnded
                | Action::EmergencyAsked
                | Action::TokenCreated
                | Action::TokenRevoked
                | Action::RequestSubmitted
                | Action::RequestAwaitsApproval
                | Action::RequestApproved
                | Action::RequestRefused
                | Action::RequestCancelled
                | Action::QuotaSet
                | Action::AutosizeSet
                | Action::AutosizeRemoved
                | Action::BufferAutosizeSet
                | Action::BufferAutosizeRemoved
                | Action::PolicySet
                | Action::PolicyWithdrawn
                | Action::SolveRequested
                | Action::SolveAwaitsApproval
                | Action::SolveApproved
                | Action::SolveRejected
                | Action::SolveCancelled
                | Action::ProfileSet
                | Action::ProfileRemoved
                | Action::HardwareTypeAdded
                | Action::HardwareOrdered
                | Action::HardwareOrderChanged
                | Action::HardwareOrderArrived
                | Action::HardwareOrderCancelled
                | Action::RolloutPaused
                | Action::RolloutResumed
        )
    }

    /// The kind of thing that its subject names.
    pub const fn subject(self) -> Subject {
        match self {
            Action::SnapshotLoaded
            | Action::MoverStopped
            | Action::MoverResumed
            | Action::UsageReported
            | Action::ReservationsGaveWay
            | Action::RegionSettingsSet
            | Action::ServersRacked
            | Action::ServersDecommissioned
            | Action::DecommissionAsked
            | Action::DecommissionCancelled
            | Action::ServersRelocated => Subject::Region,
            Action::TargetsPublished | Action::MovesOpened => Subject::Version,
            Action::ServerBound
            | Action::MoveEnded
            | Action::ServerReplaced
            | Action::ReplacementOwed
            | Action::ServerReturns
            | Action::SpareReturns => Subject::Server,
            Action::OutageBegan | Action::OutageEnded => Subject::Msb,
            Action::ServersLent
            | Action::ServersRecalled
            | Action::ContractSet
            | Action::ContractRemoved
            | Action::AutosizeSet
            | Action::AutosizeRemoved
            | Action::EmergencyAsked
            | Action::EmergencyGranted
            | Action::EmergencyEnded
            | Action::RequestSubmitted
            | Action::RequestAwaitsApproval
            | Action::RequestApproved
            | Action::RequestRefused
            | Action::RequestCancelled
            | Action::ElasticSet
            | Action::ElasticEnded
            | Action::RolloutPaused
            | Action::RolloutResumed
            | Action::ReservationRemoved => Subject::Reservation,
            Action::UnavailabilityRecorded
            | Action::UnavailabilityCleared
            | Action::MaintenancePlanned
            | Action::MaintenanceChanged
            | Action::PlanApplied
            | Action::SolveRequested
            | Action::SolveAwaitsApproval
            | Action::SolveApproved
            | Action::SolveRejected
            | Action::SolveCancelled
            | Action::HardwareOrdered
            | Action::HardwareOrderChanged
            | Action::HardwareOrderArrived
            | Action::HardwareOrderCancelled => Subject::Id,
            Action::TokenCreated
            | Action::TokenRevoked
            | Action::QuotaSet
            | Action::PolicySet
            | Action::PolicyWithdrawn
            | Action::ProfileSet
            | Action::ProfileRemoved
            | Action::SharedBufferSet
            | Action::BufferAutosizeSet
            | Action::BufferAutosizeRemoved
            | Action::HardwareTypeRenamed
            | Action::HardwareTypeRemoved
            | Action::HardwareTypeAdded => Subject::Name,
        }
    }

    /// Every action.
    pub const ALL: [Action; 67] = [
        Action::SnapshotLoaded,
        Action::TargetsPublished,
        Action::UnavailabilityRecorded,
        Action::UnavailabilityCleared,
        Action::MovesOpened,
        Action::ServerBound,
        Action::MoveEnded,
        Action::MoverStopped,
        Action::MoverResumed,
        Action::ServerReplaced,
        Action::ReplacementOwed,
        Action::ServerReturns,
        Action::SpareReturns,
        Action::OutageBegan,
        Action::OutageEnded,
        Action::ServersLent,
        Action::ServersRecalled,
        Action::UsageReported,
        Action::MaintenancePlanned,
        Action::MaintenanceChanged,
        Action::ContractSet,
        Action::ContractRemoved,
        Action::AutosizeSet,
        Action::AutosizeRemoved,
        Action::PolicySet,
        Action::PolicyWithdrawn,
        Action::EmergencyAsked,
        Action::EmergencyGranted,
        Action::EmergencyEnded,
        Action::ReservationsGaveWay,
        Action::TokenCreated,
        Action::TokenRevoked,
        Action::RequestSubmitted,
        Action::RequestRefused,
        Action::RequestCancelled,
        Action::PlanApplied,
        Action::ReservationRemoved,
        Action::QuotaSet,
        Action::SolveRequested,
        Action::SolveCancelled,
        Action::ProfileSet,
        Action::ProfileRemoved,
        Action::RegionSettingsSet,
        Action::SharedBufferSet,
        Action::BufferAutosizeSet,
        Action::BufferAutosizeRemoved,
        Action::ElasticSet,
        Action::ElasticEnded,
        Action::HardwareTypeAdded,
        Action::ServersRacked,
        Action::ServersDecommissioned,
        Action::ServersRelocated,
        Action::DecommissionAsked,
        Action::DecommissionCancelled,
        Action::HardwareTypeRenamed,
        Action::HardwareTypeRemoved,
        Action::HardwareOrdered,
        Action::HardwareOrderChanged,
        Action::HardwareOrderArrived,
        Action::HardwareOrderCancelled,
        Action::RolloutPaused,
        Action::RolloutResumed,
        Action::SolveAwaitsApproval,
        Action::SolveApproved,
        Action::SolveRejected,
        Action::RequestAwaitsApproval,
        Action::RequestApproved,
    ];

    /// The action's word in the table.
    pub const fn as_str(self) -> &'static str {
        match self {
            Action::SnapshotLoaded => "snapshot_loaded",
            Action::TargetsPublished => "targets_published",
            Action::UnavailabilityRecorded => "unavailability_recorded",
            Action::UnavailabilityCleared => "unavailability_cleared",
            Action::MovesOpened => "moves_opened",
            Action::ServerBound => "server_bound",
            Action::MoveEnded => "move_ended",
            Action::MoverStopped => "mover_stopped",
            Action::MoverResumed => "mover_resumed",
            Action::ServerReplaced => "server_replaced",
            Action::ReplacementOwed => "replacement_owed",
            Action::ServerReturns => "server_returns",
            Action::SpareReturns => "spare_returns",
            Action::OutageBegan => "outage_began",
            Action::OutageEnded => "outage_ended",
            Action::ServersLent => "servers_lent",
            Action::ServersRecalled => "servers_recalled",
            Action::UsageReported => "usage_reported",
            Action::MaintenancePlanned => "maintenance_planned",
            Action::MaintenanceChanged => "maintenance_changed",
            Action::ContractSet => "contract_set",
            Action::ContractRemoved => "contract_removed",
            Action::AutosizeSet => "autosize_set",
            Action::AutosizeRemoved => "autosize_removed",
            Action::PolicySet => "policy_set",
            Action::PolicyWithdrawn => "policy_withdrawn",
            Action::EmergencyAsked => "emergency_asked",
            Action::EmergencyGranted => "emergency_granted",
            Action::EmergencyEnded => "emergency_ended",
            Action::ReservationsGaveWay => "reservations_gave_way",
            Action::TokenCreated => "token_created",
            Action::TokenRevoked => "token_revoked",
            Action::RequestSubmitted => "request_submitted",
            Action::RequestRefused => "request_refused",
            Action::RequestCancelled => "request_cancelled",
            Action::PlanApplied => "plan_applied",
            Action::ReservationRemoved => "reservation_removed",
            Action::QuotaSet => "quota_set",
            Action::SolveRequested => "solve_requested",
            Action::SolveCancelled => "solve_cancelled",
            Action::ProfileSet => "profile_set",
            Action::ProfileRemoved => "profile_removed",
            Action::RegionSettingsSet => "region_settings_set",
            Action::SharedBufferSet => "shared_buffer_set",
            Action::BufferAutosizeSet => "buffer_autosize_set",
            Action::BufferAutosizeRemoved => "buffer_autosize_removed",
            Action::ElasticSet => "elastic_set",
            Action::ElasticEnded => "elastic_ended",
            Action::HardwareTypeAdded => "hardware_type_added",
            Action::ServersRacked => "servers_racked",
            Action::ServersDecommissioned => "servers_decommissioned",
            Action::ServersRelocated => "servers_relocated",
            Action::DecommissionAsked => "decommission_asked",
            Action::DecommissionCancelled => "decommission_cancelled",
            Action::HardwareTypeRenamed => "hardware_type_renamed",
            Action::HardwareTypeRemoved => "hardware_type_removed",
            Action::HardwareOrdered => "hardware_ordered",
            Action::HardwareOrderChanged => "hardware_order_changed",
            Action::HardwareOrderArrived => "hardware_order_arrived",
            Action::HardwareOrderCancelled => "hardware_order_cancelled",
            Action::RolloutPaused => "rollout_paused",
            Action::RolloutResumed => "rollout_resumed",
            Action::SolveAwaitsApproval => "solve_awaits_approval",
            Action::SolveApproved => "solve_approved",
            Action::SolveRejected => "solve_rejected",
            Action::RequestAwaitsApproval => "request_awaits_approval",
            Action::RequestApproved => "request_approved",
        }
    }
}

/// The kind of thing that an entry's subject names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The region, the mover, or many things at once.
    Region,
    /// A version of the targets.
    Version,
    /// A server.
    Server,
    /// An MSB.
    Msb,
    /// A reservation.
    Reservation,
    /// An unavailability event, a window, a plan, a solve or an order of hardware, by id.
    Id,
    /// A token, an owner, an RRU profile, a policy or a hardware type.
    Name,
}

/// The action of a stored entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// An action that this program knows.
    Known(Action),
    /// A word of a newer program. Readers assume that it may have changed anything.
    Unknown(String),
}

impl Recorded {
    /// Parses the word of the table.
    pub fn read(word: &str) -> Recorded {
        match Action::ALL.into_iter().find(|action| action.as_str() == word) {
            Some(action) => Recorded::Known(action),
            None => Recorded::Unknown(word.to_owned()),
        }
    }

    /// The action's word in the table.
    pub fn as_str(&self) -> &str {
        match self {
            Recorded::Known(action) => action.as_str(),
            Recorded::Unknown(word) => word,
        }
    }
}

impl From<Action> for Recorded {
    fn from(action: Action) -> Recorded {
        Recorded::Known(action)
    }
}

/// An entry of the audit trail.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The number of the entry.
    pub seq: Seq,
    /// The time by the database's clock; never earlier than the entry before.
    pub at: DateTime<Utc>,
    /// The caller.
    pub actor: String,
    /// The action.
    pub action: Recorded,
    /// The name of the subject.
    pub subject: Option<String>,
    /// Further data; the members depend on the action.
    pub detail: Document,
}

/// The most entries per read.
pub(crate) const ENTRIES_MAX: i64 = 1_000;

pub(crate) mod sql {
    crate::statements! {
        TRAIL = "SELECT seq, at, actor::text, action, subject, detail FROM audit_trail \
            WHERE seq > $1 ORDER BY seq LIMIT $2";
        TRAIL_OF = "SELECT seq, at, actor::text, action, subject, detail FROM audit_trail \
            WHERE subject = $1 AND seq > $2 ORDER BY seq LIMIT $3";
        /// The counter's row instead of the last entry: the same number from a single row.
        LAST_SEQ = "SELECT seq FROM trail_clock";
        /// The number of entries and the last number: equal as long as the trail is whole.
        TRAIL_COUNT = "SELECT count(*), coalesce(max(seq), 0), (SELECT seq FROM trail_clock) FROM audit_trail";
    }
}

pub(crate) fn entry(row: &PgRow) -> Result<Entry, sqlx::Error> {
    Ok(Entry {
        seq: Seq(row.try_get(0)?),
        at: row.try_get(1)?,
        actor: row.try_get(2)?,
        action: Recorded::read(row.try_get(3)?),
        subject: row.try_get(4)?,
        detail: row.try_get(5)?,
    })
}

/// The entries after a number, at most [`ENTRIES_MAX`].
pub(crate) async fn after(db: &mut PgConnection, seq: Seq) -> Result<Vec<Entry>, sqlx::Error> {
    let rows = sqlx::query(sql::TRAIL).bind(seq.0).bind(ENTRIES_MAX);
    rows.try_map(|row: PgRow| entry(&row)).fetch_all(db).await
}

impl Broker {
    /// Reads the entries after a number, at most `limit` and at most 1,000.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail(&self, after: Seq, limit: u32) -> Result<Vec<Entry>, DbError> {
        let rows = sqlx::query(sql::TRAIL)
            .bind(after.0)
            .bind(i64::from(limit).min(ENTRIES_MAX))
            .try_map(|row: PgRow| entry(&row))
            .fetch_all(&self.pool);
        rows.await.doing("reading the audit trail")
    }

    /// Reads the entries about one subject after a number, at most `limit` and at most 1,000.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_of(
        &self,
        subject: &str,
        after: Seq,
        limit: u32,
    ) -> Result<Vec<Entry>, DbError> {
        let rows = sqlx::query(sql::TRAIL_OF)
            .bind(subject)
            .bind(after.0)
            .bind(i64::from(limit).min(ENTRIES_MAX))
            .try_map(|row: PgRow| entry(&row))
            .fetch_all(&self.pool);
        rows.await.doing("reading the audit trail of a subject")
    }

    /// The number of the last entry; 0 if the trail is empty.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn last_seq(&self) -> Result<Seq, DbError> {
        let seq = sqlx::query_scalar(sql::LAST_SEQ).fetch_one(&self.pool).await;
        seq.map(Seq).doing("reading the clock of the audit trail")
    }

    /// Whether the trail is whole: the number of entries equals the last number and the counter.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_is_whole(&self) -> Result<bool, DbError> {
        let counted = sqlx::query_as(sql::TRAIL_COUNT).fetch_one(&self.pool).await;
        let (entries, last, clock): (i64, i64, i64) = counted.doing("counting the audit trail")?;
        Ok(entries == last && last == clock)
    }
}
