//! Parts of OpenAPI schemas.

use broker::State;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};

/// A string of a closed list.
pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> Schema {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

/// The name of a state.
pub(crate) fn state<S: State>() -> Schema {
    words(S::ALL.iter().map(|state| state.as_str()))
}
