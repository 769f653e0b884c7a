//! What the entries of the audit trail say: an action with its detail.
//!
//! A stored detail outlives the program that wrote it: followers and clients read its members by name. Members
//! are added, and left out where there is nothing to say; none is renamed without a line in the changelog. The lines
//! of `event/details.txt` hold each.

use crate::access::role::Role;
use crate::incidents::emergency_refusal::EmergencyRefusal;
use crate::infra::document::Document;
use crate::infra::id::{
    EmergencyId, MaintenancePlanId, MoveId, PublicationId, RequestId, SolveId, TokenId, WindowId,
};
use crate::infra::state::{EmergencyState, MaintenanceState, RecallState, RequestState, State};
use crate::log::trail::{Action, TargetVersion};
use crate::moves::origin::MoveReason;
use crate::queue::cause::Cause;
use crate::requests::request::RequestSpec;
use chrono::{DateTime, NaiveDate, Utc};
use decisions::maintenance::lifecycle::MaintenanceReason;
use decisions::outage::OutageReason;
use decisions::preemption::Preemption;
use fleet::edit::{Racked, RegionSettings, Relocated};
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, Name, ReservationKind, ReservationName, Scope,
    ServerName, UnavailabilityKind,
};
use serde::{Serialize, Serializer};
use std::collections::{BTreeMap, BTreeSet};

/// Declares an event for each action, with the members of its detail.
macro_rules! events {
    ($($name:ident { $($(#[$attribute:meta])* $member:ident: $of:ty),* $(,)? })+) => {
        /// What happened, under the name of its action; serialized as the detail of the entry.
        #[derive(Debug, Serialize)]
        #[serde(untagged)]
        pub(crate) enum Event<'a> {
            $($name { $($(#[$attribute])* $member: $of),* },)+
        }

        impl Event<'_> {
            /// The action.
            pub(crate) const fn action(&self) -> Action {
                match self {
                    $(Event::$name { .. } => Action::$name,)+
                }
            }
        }
    };
}

events! {
    SnapshotLoaded {
        version: TargetVersion,
        servers: Loaded,
        reservations: Loaded,
        unavailability: Loaded,
        domains_changed: usize,
        bindings_changed: usize,
        bindings_freed: usize,
        contradictions: usize,
    }
    TargetsPublished {
        taken: u64,
        skipped: u64,
        kept_back: u64,
        publication: PublicationId,
        solve: Option<SolveId>,
    }
    UnavailabilityRecorded { #[serde(flatten)] of: Unavailable<'a> }
    UnavailabilityCleared {
        scope: Scope,
        scope_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<UnavailabilityKind>,
        #[serde(skip_serializing_if = "Option::is_none")]
        started_at: Option<DateTime<Utc>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        ended_at: Option<DateTime<Utc>>,
    }
    MovesOpened {
        opened: u64,
        superseded: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        maintenance: Option<WindowId>,
    }
    ServerBound {
        r#move: MoveId,
        source: Option<&'a str>,
        target: Option<&'a str>,
        version: TargetVersion,
        origin: &'a str,
    }
    MoveEnded { r#move: MoveId, target: Option<&'a str>, reason: MoveReason, said: &'a str }
    MoverStopped { why: &'a str }
    MoverResumed {}
    ServerReplaced {
        reservation: &'a ReservationName,
        spare: &'a ServerName,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        exceeds: &'a [String],
    }
    ReplacementOwed { reservation: &'a str }
    ServerReturns { reservation: &'a ReservationName, spare: &'a ServerName }
    SpareReturns { reservation: &'a str, server: &'a str }
    OutageBegan {
        #[serde(serialize_with = "outage_reason")]
        reason: OutageReason,
        servers: u64,
        out: u64,
        failed_lately: usize,
        lent: Option<i32>,
    }
    OutageEnded { servers: u64, out: u64 }
    ServersLent { servers: &'a [String] }
    ServersRecalled { servers: &'a [String] }
    UsageReported { in_use: Vec<&'a str>, idle: Vec<&'a str> }
    MaintenancePlanned {
        plan: MaintenancePlanId,
        asked_for: Scope,
        scope: Scope,
        scope_id: &'a Name,
        msb: &'a MsbName,
        starts_at: DateTime<Utc>,
        ends_at: DateTime<Utc>,
        drain_seconds: u64,
        share_micro: u32,
        recall_minutes: Option<u32>,
        why: &'a str,
        servers: u64,
        accept_short: Option<AcceptShort<'a>>,
    }
    MaintenanceChanged { window: WindowId, #[serde(flatten)] to: MaintenanceChange<'a> }
    ContractSet { in_use_micro: u32, window_seconds: i32, zone: &'a str, quiet: Vec<String> }
    ContractRemoved {}
    AutosizeSet {
        metric: &'a str,
        quantile_micro: u32,
        min_rru: f64,
        max_rru: f64,
        cooldown_seconds: i32,
    }
    AutosizeRemoved {}
    PolicySet { version: i32, edition: i32, why: &'a str }
    PolicyWithdrawn { version: i32, edition: i32, why: &'a str }
    EmergencyAsked {
        emergency: EmergencyId,
        rru: f64,
        why: &'a str,
        max_servers: u32,
        beyond_limits: bool,
    }
    EmergencyGranted { emergency: EmergencyId, #[serde(flatten)] answer: EmergencyAnswer }
    EmergencyEnded { emergency: EmergencyId, state: EmergencyState }
    ReservationsGaveWay { cause: GaveWay<'a>, plan: Vec<Handover<'a>>, servers: &'a [String] }
    TokenCreated {
        token: TokenId,
        role: Role,
        owner: Option<&'a str>,
        expires_at: DateTime<Utc>,
    }
    TokenRevoked { token: TokenId, role: Role }
    RequestSubmitted { request: RequestId, state: RequestState, asking: &'a RequestSpec }
    RequestRefused {
        request: RequestId,
        code: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasons: Option<&'a [String]>,
    }
    RequestCancelled { request: RequestId, before: RequestState }
    PlanApplied {
        requests: Vec<RequestId>,
        reservations: Vec<&'a ReservationName>,
        promises: Vec<PromiseChange<'a>>,
        servers: Vec<&'a ServerName>,
    }
    ReservationRemoved {
        #[serde(skip_serializing_if = "Option::is_none")]
        kind: Option<ReservationKind>,
    }
    QuotaSet {
        before: Vec<LimitSet>,
        limits: Vec<LimitSet>,
        before_max_priority: Option<i32>,
        max_priority: Option<i32>,
    }
    SolveRequested { cause: Cause }
    SolveCancelled {}
    ProfileSet {
        before_rru: Option<BTreeMap<&'a HardwareTypeName, f64>>,
        rru: BTreeMap<&'a HardwareTypeName, f64>,
    }
    ProfileRemoved { before_rru: BTreeMap<&'a HardwareTypeName, f64> }
    RegionSettingsSet { before: &'a RegionSettings, after: &'a RegionSettings }
    SharedBufferSet {
        before: Option<BufferSize>,
        servers: Option<f64>,
        listed: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        why: Option<&'a str>,
    }
    BufferAutosizeSet {
        chance_micro: u32,
        min_servers: u32,
        max_servers: u32,
        cooldown_seconds: i32,
    }
    BufferAutosizeRemoved {}
    ElasticSet { before: Option<ElasticTerms<'a>>, after: Option<ElasticTerms<'a>> }
    ElasticEnded { before: ElasticTerms<'a>, borrows: u64 }
    HardwareTypeAdded {}
    ServersRacked { servers: &'a [Racked] }
    ServersDecommissioned { servers: Vec<&'a ServerName> }
    ServersRelocated { servers: &'a [Relocated] }
    DecommissionAsked {
        servers: Vec<&'a str>,
        /// Their targets had changed since.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    }
    DecommissionCancelled { servers: BTreeSet<&'a str> }
    HardwareTypeRenamed { name: &'a str }
    HardwareTypeRemoved {}
    HardwareOrdered { #[serde(flatten)] of: Ordered<'a> }
    HardwareOrderChanged { before: Ordered<'a>, after: Ordered<'a> }
    HardwareOrderArrived { #[serde(flatten)] of: Ordered<'a> }
    HardwareOrderCancelled { #[serde(flatten)] of: Ordered<'a> }
    RolloutPaused { why: &'a str }
    RolloutResumed {}
    SolveAwaitsApproval { in_use_moves: u64, servers: usize }
    SolveApproved { version: TargetVersion }
    SolveRejected { why: &'a str }
    RequestAwaitsApproval { request: RequestId, in_use_moves: u64 }
    RequestApproved { request: RequestId, in_use_moves: i64 }
}

impl Event<'_> {
    /// The detail of the entry.
    pub(crate) fn detail(&self) -> Document {
        Document::of(self)
    }
}

/// The rows of a kind that a load changes.
#[derive(Debug, Serialize)]
pub(crate) struct Loaded {
    pub(crate) added: usize,
    pub(crate) changed: usize,
    pub(crate) removed: usize,
}

/// An event that keeps servers out of use.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Unavailable<'a> {
    Began {
        scope: Scope,
        scope_id: &'a str,
        kind: UnavailabilityKind,
        started_at: DateTime<Utc>,
        ended_at: Option<DateTime<Utc>>,
        /// The move that left the server half-way.
        #[serde(skip_serializing_if = "Option::is_none")]
        r#move: Option<MoveId>,
        /// The event of the recalled work.
        #[serde(skip_serializing_if = "Option::is_none")]
        recalled_from: Option<&'a str>,
    },
    /// Its host does not give the server back.
    StaysOut { scope: Scope, scope_id: &'a str, recall: RecallState, why: &'a str },
}

/// How a window of maintenance changed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum MaintenanceChange<'a> {
    State {
        #[serde(serialize_with = "maintenance_state")]
        state: MaintenanceState,
        #[serde(serialize_with = "maintenance_reason")]
        reason: Option<MaintenanceReason>,
        detail: Option<&'a str>,
        scope: Scope,
        scope_id: &'a Name,
        /// `None`: too many to name.
        #[serde(skip_serializing_if = "Option::is_none")]
        servers: Option<Vec<String>>,
    },
    Recalled {
        #[serde(serialize_with = "maintenance_state")]
        state: MaintenanceState,
        detail: &'a str,
        due_at: DateTime<Utc>,
        place: i32,
        servers: Vec<&'a ServerName>,
    },
    /// The clock was set forward; no server is affected.
    Later { ends_at: DateTime<Utc>, servers: [&'a str; 0], detail: String },
}

/// What an operator accepts while maintenance lasts.
#[derive(Debug, Serialize)]
pub(crate) struct AcceptShort<'a> {
    pub(crate) reservations: &'a BTreeSet<ReservationName>,
    pub(crate) why: &'a str,
}

/// The answer to a request for emergency capacity.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum EmergencyAnswer {
    Granted {
        rru: f64,
        servers: Vec<String>,
        from_shared: u64,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        exceeds: Vec<String>,
    },
    Refused {
        refused: EmergencyRefusal,
        servers: [String; 0],
    },
}

/// Why reservations gave way.
#[derive(Debug, Serialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub(crate) enum GaveWay<'a> {
    Operator { why: &'a str, anyway: bool, lost: &'a [String] },
    Delay { after_seconds: u64, since: DateTime<Utc>, lost: &'a [String] },
}

/// Servers that move from one holder to another.
#[derive(Debug, Serialize)]
pub(crate) struct Handover<'a> {
    source: Option<&'a ReservationName>,
    target: &'a ReservationName,
    msb: &'a MsbName,
    hardware_type: &'a HardwareTypeName,
    in_use: bool,
    count: u64,
}

impl<'a> From<&'a Preemption> for Handover<'a> {
    fn from(of: &'a Preemption) -> Handover<'a> {
        let Preemption { source, target, msb, hardware_type, in_use, count } = of;
        let (source, in_use, count) = (source.as_ref(), *in_use, *count);
        Handover { source, target, msb, hardware_type, in_use, count }
    }
}

/// A promise before and after.
#[derive(Debug, Serialize)]
pub(crate) struct PromiseChange<'a> {
    pub(crate) reservation: &'a ReservationName,
    pub(crate) before_rru: Option<f64>,
    pub(crate) rru: f64,
}

/// A limit of a quota.
#[derive(Debug, Serialize)]
pub(crate) struct LimitSet {
    pub(crate) of: String,
    pub(crate) limit: f64,
}

/// What an order of hardware is for.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Ordered<'a> {
    pub(crate) hardware_type: &'a HardwareTypeName,
    pub(crate) datacenter: &'a DatacenterName,
    pub(crate) servers: u32,
    pub(crate) expected_on: NaiveDate,
}

/// The size of a shared buffer before.
#[derive(Debug, Serialize)]
pub(crate) struct BufferSize {
    pub(crate) servers: u64,
    pub(crate) listed: bool,
}

/// The settings of an elastic reservation.
#[derive(Debug, Serialize)]
pub(crate) struct ElasticTerms<'a> {
    #[serde(flatten)]
    pub(crate) asked: &'a fleet::edit::ElasticAsked,
    pub(crate) share: Option<f64>,
}

fn outage_reason<S: Serializer>(of: &OutageReason, to: S) -> Result<S::Ok, S::Error> {
    of.as_str().serialize(to)
}

fn maintenance_state<S: Serializer>(of: &MaintenanceState, to: S) -> Result<S::Ok, S::Error> {
    of.as_str().serialize(to)
}

fn maintenance_reason<S: Serializer>(
    of: &Option<MaintenanceReason>,
    to: S,
) -> Result<S::Ok, S::Error> {
    of.map(MaintenanceReason::as_str).serialize(to)
}

#[cfg(test)]
mod tests;
