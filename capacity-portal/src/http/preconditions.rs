//! Conditional requests (RFC 9110): ETags and `If-Match`.

use super::problem::Problem;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Adds the ETag of a version.
pub(crate) fn etag(response: impl IntoResponse, version: &str) -> Response {
    let mut response = response.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// The version of `If-Match`, which is required; `None`: `*`, any version.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if !headers.contains_key(IF_MATCH) {
        let detail = "send If-Match with the ETag you have seen, or * for any version";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "version_required", detail));
    }
    optional_if_match(headers)
}

/// The version of `If-Match`, which is optional; `None`: absent or `*`, any version.
pub(crate) fn optional_if_match(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(None) };
    match value.to_str().map(str::trim) {
        Ok("*") => Ok(None),
        // A weak ETag or a list of ETags matches no version.
        Ok(etag) => Ok(Some(etag.trim_matches('"').to_owned())),
        Err(_) => Err(stale("?")),
    }
}

/// The version of `If-Match` is not the current one.
pub(crate) fn stale(current: &str) -> Problem {
    let detail = "it has changed since that version; read it again";
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "version_stale", detail);
    problem.with("etag", json!(format!("\"{current}\"")))
}
