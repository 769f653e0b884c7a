//! Conditional requests (RFC 9110): ETags, `If-Match` and `If-None-Match`.
//!
//! An ETag is `"VERSION~DIGEST"` or `"DIGEST"`. The version changes with what writes depend on, the digest with every byte of
//! the answer; `If-Match` compares only the version, so that a server that arrives makes no write fail.

use super::problem::Problem;
use axum::body::{Body, HttpBody, to_bytes};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use data_encoding::HEXLOWER;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Largest answer with a digest: a page of servers.
const DIGESTED_MAX: usize = 8 << 20;

/// Bytes of the digest in an ETag.
const DIGEST: usize = 8;

/// Between version and digest.
const SEPARATOR: char = '~';

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
        Ok(etag) => {
            let etag = etag.trim_matches('"');
            let version = etag.rsplit_once(SEPARATOR).map_or(etag, |(version, _)| version);
            Ok(Some(version.to_owned()))
        }
        Err(_) => Err(stale("?")),
    }
}

/// The version of `If-Match` is not the current one.
pub(crate) fn stale(current: &str) -> Problem {
    let detail = "it has changed since that version; read it again";
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "version_stale", detail);
    problem.with("etag", json!(format!("\"{current}\"")))
}

/// Gives a JSON answer to a read its ETag, and answers 304 if the caller has it already.
pub(crate) async fn conditional(seen: Option<&HeaderValue>, response: Response) -> Response {
    let is_json =
        response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    let bytes = response.body().size_hint().exact().and_then(|bytes| usize::try_from(bytes).ok());
    if response.status() != StatusCode::OK || !is_json || bytes.is_none_or(|of| of > DIGESTED_MAX) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, DIGESTED_MAX).await.expect("its size is known");
    let digest = HEXLOWER.encode(&Sha256::digest(&body)[..DIGEST]);
    let version = parts.headers.get(ETAG).and_then(|etag| etag.to_str().ok());
    let etag = match version {
        Some(version) => format!("\"{}{SEPARATOR}{digest}\"", version.trim_matches('"')),
        None => format!("\"{digest}\""),
    };
    let value = HeaderValue::from_str(&etag).expect("versions are ASCII");
    parts.headers.insert(ETAG, value);
    // Weak comparison (RFC 9110, 13.1.2).
    let is = |of: &str| of == "*" || of.trim_start_matches("W/") == etag;
    let seen = seen.and_then(|seen| seen.to_str().ok());
    if seen.is_some_and(|seen| seen.split(',').map(str::trim).any(is)) {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(CONTENT_TYPE);
        parts.headers.remove(CONTENT_LENGTH);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, body.into())
}
