//! `/v1/policies`: policies in SQL that the solves of the region keep.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

/// A policy to set or replace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyAsked {
    /// Its statements.
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 262_144))]
    pub sql: String,
    /// Why it is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_length = 1_000))]
    pub why: Option<String>,
}

/// The name and text of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyText {
    /// Its name: lower case letters, digits and `_`, at most 63.
    #[cfg_attr(feature = "schema", schema(max_length = 63))]
    pub policy: String,
    /// Its statements.
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 262_144))]
    pub sql: String,
}

/// Policies to set or replace together, or to try.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoliciesAsked {
    /// The policies; empty: those in force as they are, which is only good for a dry run.
    pub policies: Vec<PolicyText>,
    /// Why they are changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(max_length = 1_000))]
    pub why: Option<String>,
    /// Whether to say only what would be, and change nothing.
    #[serde(default)]
    pub dry_run: bool,
    /// How long to search for an assignment in which every policy holds, in seconds; absent: it is not searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0.5, maximum = 30))]
    pub search_seconds: Option<f64>,
}

/// A policy without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyRow {
    /// Its name.
    pub policy: String,
    /// 1, 2, 3, ... of this policy.
    pub version: i32,
    /// 1, 2, 3, ... of all changes of policies.
    pub edition: i32,
    /// in_force, replaced or withdrawn.
    pub state: String,
    /// Its groups that are above their limits now; null: it is not in force, or this is not known.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub exceeded: Option<usize>,
    /// Why it was changed; may be empty.
    pub why: String,
    /// Who changed it.
    pub changed_by: String,
    /// When.
    pub changed_at: DateTime<Utc>,
}

/// A version of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policy {
    /// What it is.
    #[serde(flatten)]
    pub row: PolicyRow,
    /// Its statements; null: the policy is withdrawn.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub sql: Option<String>,
}

/// Policies in force, and those withdrawn: the last version of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policies {
    /// By name.
    pub policies: Vec<PolicyRow>,
    /// Token of the next page; null: this is the last.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// The versions of a policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyVersions {
    /// The last one first.
    pub versions: Vec<PolicyRow>,
    /// Token of the next page; null: this is the last.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// What changed, or would change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PoliciesChanged {
    /// The new versions; empty after a dry run.
    pub changed: Vec<PolicyRow>,
    /// What all policies say of the region today, with the change.
    pub outlook: PolicyOutlook,
}

/// What policies say of the region today, by views.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyOutlook {
    /// Every hard policy.
    pub views: Vec<PolicyView>,
    /// An assignment in which all of them hold; null: it was not searched for, or all hold today.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub search: Option<PolicySearch>,
}

/// What a view of a policy says of the region today.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyView {
    /// The view.
    pub view: String,
    /// The policy that defines it.
    pub policy: String,
    /// Rows that do not pass today.
    pub fails: usize,
    /// The first of these, as `column=value`.
    pub rows: Vec<String>,
    /// Its groups that are nearest to their limit, or furthest beyond it.
    pub groups: Vec<PolicyGroup>,
}

/// A group of a view, and what it adds up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyGroup {
    /// The group, as `column=value`; empty: the view has only one.
    pub group: String,
    /// What it may add up to, in a unit of the policy's.
    pub most: i64,
    /// What it adds up to today.
    pub today: i64,
    /// The fewest servers that must leave until it is within its limit; null: servers that stay where they are exceed it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub leave: Option<usize>,
}

/// What the solver found within its deadline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicySearch {
    /// Whether every policy holds in it, by plain SQL.
    pub holds: bool,
    /// Servers in use that would move.
    pub moves_in_use: usize,
    /// Idle servers that would move.
    pub moves_idle: usize,
    /// The fewest servers that cover each shortfall then.
    pub shortfall_servers: usize,
    /// The same today.
    pub shortfall_today_servers: usize,
    /// How long it took.
    pub seconds: f64,
}

/// A policy is withdrawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PolicyWithdrawn {
    /// The policy.
    pub withdrawn: String,
    /// Its version without a text.
    pub version: i32,
}
