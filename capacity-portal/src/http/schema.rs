//! Parts of OpenAPI schemas.

use broker::State;
use serde_json::Value;
use utoipa::openapi::schema::{ObjectBuilder, Schema, SchemaType, Type};

/// A string of a closed list.
pub(crate) fn words(words: impl IntoIterator<Item = &'static str>) -> Schema {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

/// A string of a closed list, or null.
pub(crate) fn words_or_null(words: impl IntoIterator<Item = &'static str>) -> Schema {
    let words = words.into_iter().map(Value::from).chain([Value::Null]);
    ObjectBuilder::new().enum_values(Some(words)).schema_type(SchemaType::AnyValue).into()
}

/// The name of a state.
pub(crate) fn state<S: State>() -> Schema {
    words(S::ALL.iter().map(|state| state.as_str()))
}
