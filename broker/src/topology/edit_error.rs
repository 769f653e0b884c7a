//! Errors of edits, and the versions that detect lost updates.

use crate::infra::document::Document;
use crate::infra::error::DbError;
use crate::infra::id::HardwareOrderId;
use crate::infra::state::{HardwareOrderState, State};
use fleet::edit::WrongField;
use fleet::{HardwareTypeName, ReservationName};
use serde::Serialize;
use uuid::Uuid;

/// An edit failed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum EditError {
    #[error("no region is loaded")]
    NothingLoaded,
    #[error("{}", sentence(.0))]
    Wrong(Vec<WrongField>),
    #[error("the region has no hardware type {name:?}")]
    UnknownType { name: HardwareTypeName },
    #[error("there is no elastic reservation {name:?}")]
    UnknownElastic { name: ReservationName },
    #[error("there is no order {id:?}")]
    UnknownOrder { id: String },
    #[error("order {id} is {}: only open orders are changed", state.as_str())]
    OrderEnded { id: HardwareOrderId, state: HardwareOrderState },
    #[error("it has changed since it was seen")]
    Stale { current: String },
    #[error("the idempotency key was taken by another request")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

fn sentence(wrong: &[WrongField]) -> String {
    match wrong {
        [one] => format!("{}: {}", one.field, one.detail),
        many => format!("{} fields are wrong", many.len()),
    }
}

/// A version of a value: it changes with the value.
pub(crate) fn version(of: &impl Serialize) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, Document::of(of).text().as_bytes()).to_string()
}

/// Refuses an edit of a version that is no longer the current one.
pub(crate) fn check_seen(seen: Option<&str>, current: String) -> Result<(), EditError> {
    match seen {
        Some(seen) if seen != current => Err(EditError::Stale { current }),
        _ => Ok(()),
    }
}
