//! Errors: problem documents (RFC 9457). A refused request and a failed operation have one, without status, as result.

use crate::emergencies::Emergency;
use crate::plans::{ExceededQuota, OfferedRequest, Plan};
use fleet::edit::WrongField;
use fleet::explain::LimitName;
use fleet::quote::Quote;
use serde::{Deserialize, Serialize};

/// A problem document, as clients read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// Stable code, for programs.
    pub code: String,
    /// The reason, as text; null: `answer` has it.
    #[serde(deserialize_with = "crate::present")]
    pub detail: Option<String>,
    /// Id of the request.
    pub request_id: Option<String>,
    /// What else the code has.
    #[serde(flatten)]
    pub members: ProblemMembers,
}

/// Members of several codes, or members that clients use. Each is absent where the code does not have it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProblemMembers {
    /// Every invalid field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Vec<FieldError>>,
    /// The only invalid field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// JSON pointer to `field` (RFC 6901), as a fragment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Codes: the reason of the shortfall, then the limits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasons: Option<Vec<String>>,
    /// The smallest set of limits that prevents the grant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<Vec<BlockingLimit>>,
    /// The changes of a plan that are not granted in full.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub short: Option<Vec<ShortChange>>,
    /// Requests that would be granted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alternatives: Option<Vec<OfferedRequest>>,
    /// Every exceeded limit of a quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quotas: Option<Vec<ExceededQuota>>,
    /// Requested amount.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_rru: Option<f64>,
    /// Largest amount within every limit of the quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_rru: Option<f64>,
    /// Of `plan_stale`: a new plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Box<Plan>>,
    /// The refused emergency.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub emergency: Option<Box<Emergency>>,
    /// Of a refused request: its quote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Box<Quote>>,
}

/// An invalid field.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FieldError {
    /// Path of the field in the body, such as `changes[0].owner`; empty: the body as a whole.
    pub field: String,
    /// JSON pointer to the field (RFC 6901), as a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The reason, as text.
    pub detail: String,
    /// The reason, for programs, where the field has a closed list of them.
    #[serde(flatten)]
    pub broken: Option<BrokenRule>,
}

/// The rule that a field breaks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BrokenRule {
    /// Its code.
    pub reason: String,
    /// The nearest number that would be accepted.
    pub nearest: Option<f64>,
}

impl FieldError {
    /// An error without a code.
    pub fn new(field: impl Into<String>, detail: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), detail: detail.into(), ..FieldError::default() }
    }

    /// Adds the code of the reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> FieldError {
        FieldError { broken: Some(BrokenRule { reason: reason.into(), nearest: None }), ..self }
    }
}

impl From<&WrongField> for FieldError {
    fn from(of: &WrongField) -> FieldError {
        let broken = BrokenRule { reason: of.reason.to_owned(), nearest: of.nearest };
        FieldError { broken: Some(broken), ..FieldError::new(&of.field, &of.detail) }
    }
}

/// A limit that prevents the grant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockingLimit {
    /// Its code.
    pub limit: LimitName,
    /// RRU that could be granted without this limit, at most the requested RRU.
    pub without_rru: f64,
    /// The limit with its numbers, as text.
    pub sentence: String,
    /// Of a plan: the reservation of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
}

/// A change of a plan that is not granted in full.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShortChange {
    /// The reservation.
    pub reservation: String,
    /// Requested RRU.
    pub asked_rru: f64,
    /// RRU that can be granted.
    pub grantable_rru: f64,
    /// What is missing.
    pub missing_rru: f64,
}
