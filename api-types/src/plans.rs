//! `/v1/plans`: plans of changes.

use chrono::{DateTime, Utc};
use fleet::CapacityRequest;
use fleet::quote::{Alternative, Concession, Grant, MoveCost, Quote};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Plan {
    /// Its id.
    pub plan: String,
    /// Its state.
    pub state: String,
    /// Whether every change is granted in full, so that the plan can be applied.
    pub applicable: bool,
    /// When it was made.
    pub made_at: DateTime<Utc>,
    /// The caller that made it.
    pub made_by: String,
    /// Until when it can be applied.
    pub expires_at: DateTime<Utc>,
    /// Version of the targets that it is based on.
    pub version: i64,
    /// Last audit-trail entry that it contains.
    pub seq: i64,
    /// Time of the region that it is based on.
    pub taken_at: DateTime<Utc>,
    /// Its changes, in the order requested.
    pub changes: Vec<PlannedChange>,
    /// Servers that change holder.
    pub servers: usize,
    /// Of these, servers in use.
    pub servers_in_use: usize,
    /// Of the servers in use, those of other reservations.
    #[serde(default)]
    pub others_in_use: usize,
    /// Whether only an operator may apply it, because it moves more servers in use of others than the settings allow.
    #[serde(default)]
    pub needs_approval: bool,
}

/// A change of a plan and its quote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlannedChange {
    /// The reservation.
    pub reservation: String,
    /// Its owner.
    pub owner: String,
    /// The kind of change.
    pub kind: String,
    /// What it changes of a reservation that exists: member, value today and then. Empty once the plan is applied.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schema(inline))]
    pub differences: Vec<MemberChange>,
    /// `in_full`, `in_part` or `nothing`.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub granted: Grant,
    /// Requested RRU.
    pub asked_rru: f64,
    /// RRU that can be granted.
    pub granted_rru: f64,
    /// If the change exceeds the owner's quota: `quota_exceeded`, with the numbers; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, required))]
    pub quota: Option<QuotaRefusal>,
    /// The quote, in the format ras-plan/1: cost, moves, sources, bound, and refusal with reason, limits and
    /// alternatives.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub answer: Quote,
}

/// A member of a reservation that a request changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemberChange {
    /// The member of the request.
    pub member: String,
    /// Its value today; null: the default of the region, or none.
    pub from: Value,
    /// Its value if the request is granted.
    pub to: Value,
}

impl MemberChange {
    /// What a request changes of a reservation, of which `today` asks for what it has.
    pub fn between(today: &CapacityRequest, request: &CapacityRequest) -> Vec<MemberChange> {
        let members = |of: &CapacityRequest| match json!(of) {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        let before = members(today);
        let changes = members(request).into_iter().map(|(member, to)| {
            let from = before.get(&member).cloned().unwrap_or_default();
            MemberChange { member, from, to }
        });
        changes.filter(|change| change.from != change.to).collect()
    }
}

/// Refusal of a change that exceeds a quota. Amounts of the request are in its own RRU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotaRefusal {
    /// `quota_exceeded`.
    pub code: String,
    /// Each exceeded limit with its numbers, as text.
    pub detail: String,
    /// `quota_exceeded`.
    pub reasons: Vec<String>,
    /// Every exceeded limit.
    pub quotas: Vec<ExceededQuota>,
    /// Requested amount.
    pub asked_rru: f64,
    /// Largest amount within every limit.
    pub left_rru: f64,
    /// Requests within every limit.
    pub alternatives: Vec<OfferedRequest>,
}

/// A request that would be granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferedRequest {
    /// What the owner gives up.
    pub concession: Concession,
    /// The alternative as text.
    pub sentence: String,
    /// The request to send.
    pub request: CapacityRequest,
    /// What it would take, if it was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<MoveCost>,
}

impl From<Alternative> for OfferedRequest {
    fn from(Alternative { concession, sentence, request, cost }: Alternative) -> OfferedRequest {
        OfferedRequest { concession, sentence, request, cost: Some(cost) }
    }
}

/// A limit of a quota that a request exceeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExceededQuota {
    /// Measure of the limit.
    pub quota: String,
    /// The limit.
    pub limit: f64,
    /// Promised now; absent where the quota was reduced while the request was planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub promised: Option<f64>,
    /// Promised if the request is granted.
    pub would_be: f64,
}

/// A plan was applied: the operation to wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanApplied {
    /// The plan.
    pub plan: String,
    /// The operation.
    pub operation: String,
}

/// Valid changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlanValid {
    /// Always true.
    pub valid: bool,
    /// Number of changes.
    pub changes: usize,
    /// Reservations that are as the changes want them: planning and applying these changes has no effect.
    pub unchanged: Vec<String>,
}
