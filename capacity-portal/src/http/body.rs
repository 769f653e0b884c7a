//! JSON bodies, read strictly: unknown fields and zero characters are rejected.

use super::problem::Problem;
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, OneOfBuilder, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Limit of rows in one request.
const ROWS_MAX: usize = 1_000;

/// Reads a body that is one JSON object. Postgres stores no zero character, so texts with one are rejected.
pub(crate) fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let read = any_json(body)?;
    // serde accepts an array as the members of a struct, in order.
    if body.iter().find(|byte| !byte.is_ascii_whitespace()) != Some(&b'{') {
        return Err(Problem::bad_request("malformed", "the body must be a JSON object"));
    }
    if has_zero(body) {
        let detail = "a text in the body contains a zero character";
        return Err(Problem::bad_request("malformed", detail));
    }
    Ok(read)
}

/// Whether a text contains a zero character, which JSON can only write as an escape.
fn has_zero(json: &[u8]) -> bool {
    let zeros = json.windows(6).enumerate().filter(|(_, six)| six.eq_ignore_ascii_case(br"\u0000"));
    let mut starts = zeros.map(|(at, _)| at);
    // An even number of backslashes before it are escaped themselves, so this one begins an escape.
    starts.any(|at| json[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0)
}

/// Reads a body of any JSON; the caller checks its texts.
pub(crate) fn any_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|error| {
        Problem::bad_request("malformed", format!("the body is not valid JSON: {error}"))
    })
}

/// One object or a list of objects, each read on its own: an invalid one does not fail the others.
pub(crate) struct OneOrMany<T>(pub(crate) Vec<Result<T, String>>);

impl<T: DeserializeOwned> OneOrMany<T> {
    pub(crate) fn read(body: &[u8]) -> Result<OneOrMany<T>, Problem> {
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
            let detail = format!("{} rows; a request has at most {ROWS_MAX}", rows.len());
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

#[cfg(test)]
mod tests {
    use super::{has_zero, json};

    #[test]
    fn json_rejects_an_array() {
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
    fn has_zero_ignores_escaped_backslashes() {
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
