//! Callers: tokens with their roles and sessions, and idempotency keys of repeated calls.

pub(crate) mod idempotency;
pub(crate) mod role;
pub(crate) mod token;

pub use idempotency::{KEY_CHARS_MAX, KEYS_KEPT, Key, KeyClaim};
pub use role::Role;
pub use token::{
    GoodToken, LOCAL_ACTOR_PREFIX, NewToken, Revocation, SecretDigest, TOKEN_LIFE_MAX, TokenError,
    TokenRow, TokenState,
};

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[idempotency::sql::ALL, token::sql::ALL];
