//! What is asked, read strictly: queries and bodies with fields that nobody knows are refused.

use super::problem::Problem;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequestParts, Query};
use axum::http::StatusCode;
use axum::http::request::Parts;
use broker::State;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::str::FromStr;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{
    ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, SchemaType, Type,
};
use utoipa::{PartialSchema, ToSchema};

/// The most rows of one request.
const ROWS_MAX: usize = 1_000;

/// A query.
pub(super) struct Asked<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Asked<T>, Problem> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Problem::bad_request(
                "malformed",
                "nothing has a zero character in its name",
            ));
        }
        let refused = |error: QueryRejection| Problem::bad_request("malformed", error.body_text());
        let Query(asked) = Query::from_request_parts(parts, state).await.map_err(refused)?;
        Ok(Asked(asked))
    }
}

/// A body, which is an object. What no text of Postgres may have in it is refused at once.
pub(super) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let read = any_json(body)?;
    // serde takes an array for the members of a struct in their order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Problem::bad_request("malformed", "the body must be a JSON object"));
    }
    if has_zero(body) {
        let detail = "the body has a zero character in one of its texts";
        return Err(Problem::bad_request("malformed", detail));
    }
    Ok(read)
}

/// Whether some text of it has a zero character, which JSON can only write as an escape.
fn has_zero(json: &[u8]) -> bool {
    let zeros = json.windows(6).enumerate().filter(|(_, six)| six.eq_ignore_ascii_case(br"\u0000"));
    let mut starts = zeros.map(|(at, _)| at);
    // An even number of backslashes before it are backslashes themselves.
    starts.any(|at| json[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0)
}

/// A body whose texts are looked at one by one.
pub(super) fn any_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        let detail = format!("the body is not the JSON that is meant: {error}");
        Problem::bad_request("malformed", detail)
    })
}

/// The id in a path, of something that `unknown` says there is none of.
pub(super) fn id<T: FromStr>(
    said: &str,
    unknown: impl FnOnce(String) -> Problem,
) -> Result<T, Problem> {
    said.parse().map_err(|_| unknown(format!("{said:?} is no id of any")))
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
        let body: Value = any_json(body)?;
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

/// The same of a word that may not be there.
pub(super) fn words_or_null(words: impl IntoIterator<Item = &'static str>) -> Schema {
    let words = words.into_iter().map(Value::from).chain([Value::Null]);
    ObjectBuilder::new().enum_values(Some(words)).schema_type(SchemaType::AnyValue).into()
}

/// A filter's word, if it is one of a closed list.
pub(super) fn word<'a>(
    said: Option<&'a str>,
    field: &str,
    words: impl IntoIterator<Item = &'static str>,
) -> Result<Option<&'a str>, Problem> {
    let words: Vec<&str> = words.into_iter().collect();
    match said {
        Some(said) if !words.contains(&said) => {
            let detail = format!("{field} {said:?} is none of {}", words.join(", "));
            Err(Problem::bad_request("malformed", detail))
        }
        said => Ok(said),
    }
}

/// A filter's state, if there is such a state.
pub(super) fn state_of<S: State>(said: Option<&str>) -> Result<Option<S>, Problem> {
    let said = word(said, "state", S::ALL.iter().map(|state| state.as_str()))?;
    Ok(S::ALL.iter().copied().find(|state| said == Some(state.as_str())))
}

#[cfg(test)]
mod tests {
    use super::{has_zero, json};

    #[test]
    fn an_array_is_no_object() {
        #[derive(Debug, Default, serde::Deserialize)]
        #[serde(default)]
        struct Body {
            _first: Option<f64>,
        }
        assert!(json::<Body>(b" {\"_first\": 1}").is_ok());
        for body in ["[null]", "[]", " [1]"] {
            json::<Body>(body.as_bytes()).expect_err(body);
        }
    }

    #[test]
    fn zero_characters_are_told_from_texts_about_them() {
        for (text, zero) in [
            (r#"{"why": "a\u0000b"}"#, true),
            (r#"{"why": "\\\u0000"}"#, true),
            (r#"{"why": "\\u0000"}"#, false),
            (r#"{"why": "u0000 \u00001"}"#, true),
            (r#"{"why": "\u0001"}"#, false),
        ] {
            assert_eq!(has_zero(text.as_bytes()), zero, "{text}");
        }
    }
}
