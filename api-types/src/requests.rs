//! `/v1/requests` and `/v1/operations`: requests, and the operations to wait for.

use crate::plans::{ExceededQuota, QuotaRefusal};
use chrono::{DateTime, Utc};
use fleet::CapacityRequest;
use fleet::explain::{Evidence, HeldBy, Limit};
use fleet::quote::{Alternative, Quote};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// A request and its outcome.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Request {
    /// Its id.
    pub request: String,
    /// The reservation.
    pub reservation: String,
    /// Its owner.
    pub owner: String,
    /// The kind of change.
    pub kind: String,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// The requested change. Absent members keep their value.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub asked: CapacityRequest,
    /// What is a grant.
    pub grant_policy: String,
    /// Of the policy `at_least`: the least RRU that is a grant; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub at_least_rru: Option<f64>,
    /// When it is decided; null: at once.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub starts_at: Option<DateTime<Utc>>,
    /// Before its start: that no capacity is reserved until then; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub notice: Option<String>,
    /// When the reservation ends without a further request.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub ends_at: Option<DateTime<Utc>>,
    /// Labels to set; null: they stay.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, required))]
    pub labels: Option<BTreeMap<String, String>>,
    /// Why it is requested, where the requester says so: of `autosize`, the forecast.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Promised RRU; null: not granted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub granted_rru: Option<f64>,
    /// Of a request that awaits approval: servers in use of others that its plan would move; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub awaits_in_use: Option<u64>,
    /// Servers in use of others that its plan may move, as an operator approved; null: never approved.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub approved_in_use: Option<u64>,
    /// The outcome: the quote of the grant or of the plan that awaits approval, or `code`, `detail`, `reasons` and `alternatives` of the refusal.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, required))]
    pub answer: Option<Value>,
    /// The plan that contained it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub plan: Option<String>,
    /// The operation to wait for; null: a draft.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub operation: Option<String>,
    /// Its ETag.
    pub version: i64,
    /// When it was submitted.
    pub created_at: DateTime<Utc>,
    /// The caller that submitted it.
    pub created_by: String,
}

/// A page of requests, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Requests {
    /// The requests of this page.
    pub requests: Vec<Request>,
    /// Token of the next page; null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// A request was stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Accepted {
    /// The reservation.
    pub reservation: String,
    /// The request.
    pub request: String,
    /// Operation to wait for; null: a draft, which is not decided.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub operation: Option<String>,
    /// If it starts later: that no capacity is reserved until then; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub notice: Option<String>,
}

/// A request that is valid and was not stored: only its validity was asked for, or it would change nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ValidRequest {
    /// true.
    pub valid: bool,
    /// The reservation.
    pub reservation: String,
    /// Whether the reservation is as requested already.
    pub unchanged: bool,
    /// If it starts later: that no capacity is reserved until then; else null.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub notice: Option<String>,
}

/// An operation to wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Operation {
    /// Its id.
    pub operation: String,
    /// What it decides.
    pub kind: String,
    /// The request or plan.
    pub subject: String,
    /// Its state.
    pub state: String,
    /// When it reached that state.
    pub state_at: DateTime<Utc>,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The caller that created it.
    pub created_by: String,
    /// Before the start of its request: that no capacity is reserved until then.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub notice: Option<String>,
    /// Result; of a failed operation `code`, `detail`, `reasons` with their numbers, and `alternatives` that would
    /// be granted.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>, required))]
    pub result: Option<Value>,
}

/// The refusal of a request: its stored answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RequestRefusal {
    /// The grant policy refuses what can be granted.
    NotGranted(Box<NotGranted>),
    /// It exceeds a quota, when it is planned.
    Quota(QuotaRefusal),
    /// It exceeds a quota that was reduced while it was planned.
    QuotaReduced(QuotaReduced),
    /// It cannot be carried out.
    Invalid(InvalidRequest),
}

/// The grant policy refuses what can be granted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NotGranted {
    /// `not_granted`.
    pub code: String,
    /// The reason with its numbers, as text.
    #[serde(deserialize_with = "crate::present")]
    pub detail: Option<String>,
    /// Codes: the reason of the shortfall, then the limits.
    pub reasons: Vec<String>,
    /// Requested amount.
    pub asked_rru: f64,
    /// Amount that can be granted.
    pub grantable_rru: f64,
    /// The difference.
    #[serde(deserialize_with = "crate::present")]
    pub missing_rru: Option<f64>,
    /// The smallest set of limits that prevents the grant.
    pub limits: Vec<Limit>,
    /// Further numbers.
    #[serde(deserialize_with = "crate::present")]
    pub evidence: Option<Evidence>,
    /// Holders of the servers that it could use.
    #[serde(deserialize_with = "crate::present")]
    pub held_by: Option<Vec<HeldBy>>,
    /// Requests that would be granted.
    #[serde(deserialize_with = "crate::present")]
    pub alternatives: Option<Vec<Alternative>>,
    /// The quote.
    pub answer: Quote,
}

/// A request exceeds a quota that was reduced while it was planned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QuotaReduced {
    /// `quota_exceeded`.
    pub code: String,
    /// The quota with its numbers, as text.
    pub detail: String,
    /// `quota_exceeded`.
    pub reasons: Vec<String>,
    /// The exceeded quota.
    pub quotas: Vec<ExceededQuota>,
    /// Empty.
    pub alternatives: Vec<Alternative>,
}

/// A request that cannot be carried out, such as the removal of a reservation that is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct InvalidRequest {
    /// `request_refused`.
    pub code: String,
    /// The reason, as text.
    pub detail: String,
    /// `request_invalid`.
    pub reasons: Vec<String>,
    /// Empty.
    pub alternatives: Vec<Alternative>,
}
