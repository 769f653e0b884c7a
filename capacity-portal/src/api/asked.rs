//! What is asked, read strictly: queries and bodies with fields that nobody knows are refused.

use super::problem::Problem;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use broker::State;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::{PartialSchema, ToSchema};
use uuid::Uuid;

/// The most rows of one request.
const ROWS_MAX: usize = 1_000;

/// A query.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Problem> {
        let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
        let Query(asked) = Query::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(Asked(asked))
    }
}

/// A body.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let detail = format!("the body is not the JSON that is meant: {error}");
        Problem::bad_request("malformed", detail)
    })
}

/// The id in a path, of something that `unknown` says there is none of.
pub(super) fn id(said: &str, unknown: impl FnOnce(String) -> Problem) -> Result<Uuid, Problem> {
    Uuid::parse_str(said).map_err(|_| unknown(format!("{said:?} is no id of any")))
}

/// How many rows a page has, if that is from 1 to `most`.
pub(super) fn limit(asked: Option<u32>, default: u32, most: u32) -> Result<u32, Problem> {
    let limit = asked.unwrap_or(default);
    if (1..=most).contains(&limit) {
        return Ok(limit);
    }
    Err(Problem::bad_request("malformed", format!("limit is from 1 to {most}")))
}

/// One object or a list of them, each read by itself: one that is wrong is no fault of the others.
pub(super) struct OneOrMany<T>(pub(super) Vec<Result<T, String>>);

impl<T: DeserializeOwned> OneOrMany<T> {
    pub(super) fn read(body: &[u8]) -> Result<OneOrMany<T>, Problem> {
        let body: Value = json(body)?;
        let rows = match body {
            Value::Array(rows) => rows,
            row @ Value::Object(_) => vec![row],
            _ => {
                let detail = "the body is neither an object nor a list of objects";
                return Err(Problem::bad_request("malformed", detail));
            }
        };
        if rows.len() > ROWS_MAX {
            let detail = format!("{} rows; a request has {ROWS_MAX} at most", rows.len());
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_many_rows", detail));
        }
        let read = |row| serde_json::from_value(row).map_err(|error| error.to_string());
        Ok(OneOrMany(rows.into_iter().map(read).collect()))
    }
}

impl<T: ToSchema> PartialSchema for OneOrMany<T> {
    fn schema() -> RefOr<Schema> {
        let row = || utoipa::openapi::Ref::from_schema_name(T::name());
        let many = ArrayBuilder::new().items(row()).max_items(Some(ROWS_MAX));
        OneOfBuilder::new().item(row()).item(many).into()
    }
}

impl<T: ToSchema> ToSchema for OneOrMany<T> {
    fn name() -> std::borrow::Cow<'static, str> {
        format!("{}s", T::name()).into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((T::name().into_owned(), T::schema()));
        T::schemas(schemas);
    }
}

/// The schema of a word of a closed list.
pub(super) fn words(words: impl IntoIterator<Item = &'static str>) -> Schema {
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).into()
}

/// The schema of a state's word.
pub(super) fn state<S: State>() -> Schema {
    words(S::ALL.iter().map(|state| state.as_str()))
}
