//! `/ops/v1/tokens`: API tokens.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A token to create.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenAsked {
    /// Its name, the actor in the audit trail.
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 128))]
    pub name: String,
    /// Its role.
    pub role: String,
    /// The owner whose objects it may access: required for the role owner, optional for viewer.
    #[cfg_attr(feature = "schema", schema(min_length = 1, max_length = 128))]
    pub owner: Option<String>,
    /// Days until it expires; 90 by default.
    #[cfg_attr(feature = "schema", schema(minimum = 1, maximum = 1830))]
    pub days: Option<u32>,
}

/// A token, without its secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenOf {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Its role.
    pub role: String,
    /// The owner whose objects it may access; null: those of every owner.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub owner: Option<String>,
    /// `good`, `expired` or `revoked`.
    pub state: String,
    /// When it was created.
    pub created_at: DateTime<Utc>,
    /// The caller that created it.
    pub created_by: String,
    /// When it expires.
    pub expires_at: DateTime<Utc>,
    /// When it was revoked.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub revoked_at: Option<DateTime<Utc>>,
    /// The caller that revoked it.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub revoked_by: Option<String>,
    /// When it was last used, to the minute.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub last_used_at: Option<DateTime<Utc>>,
}

/// Tokens: the good ones first, then the newest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Tokens {
    /// The tokens.
    pub tokens: Vec<TokenOf>,
    /// Null: this is the last page.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub next_page_token: Option<String>,
}

/// A token that was created.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct TokenMade {
    /// The token.
    pub token: TokenOf,
    /// Its secret: shown once and stored nowhere.
    pub secret: String,
}

/// The token of the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Whoami {
    /// Name: the actor in the audit trail.
    pub name: String,
    /// Its roles.
    pub roles: Vec<String>,
    /// The only owner whose objects are visible; null: all owners.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub owner: Option<String>,
    /// Value of the header `x-csrf-token` that writes of this session need; null: not a session.
    #[serde(deserialize_with = "crate::present")]
    #[cfg_attr(feature = "schema", schema(required))]
    pub csrf: Option<String>,
}
