//! What stands beside a request: the version it was made for, and a key that makes it safe to send again.

use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::http::header::{ETAG, IF_MATCH, LOCATION};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{KEY_CHARS_MAX, Key, KeyClaim};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The header of the key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// An answer that may have to be given again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    status: u16,
    location: Option<String>,
    body: Value,
}

impl Answer {
    /// An answer; `location`: where to look on.
    pub(super) fn new(status: StatusCode, location: Option<String>, body: Value) -> Answer {
        Answer { status: status.as_u16(), location, body }
    }

    /// As it is stored.
    pub(super) fn json(&self) -> Value {
        json!(self)
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, Json(self.body)).into_response();
        let place = self.location.and_then(|place| HeaderValue::from_str(&place).ok());
        if let Some(place) = place {
            response.headers_mut().insert(LOCATION, place);
        }
        response
    }
}

/// What a key says to do.
enum Claimed {
    /// Do it, and answer the key if there is one.
    Go(Option<KeyClaim>),
    /// It was done: the first answer.
    Again(Answer),
}

/// Does what is asked once for each key, and gives the first answer again. The same is asked where path and
/// body are the same. The key is given back where it was not done.
pub(super) async fn once<T: IntoResponse, F: Future<Output = Result<T, Problem>>>(
    site: &Site,
    actor: &str,
    headers: &HeaderMap,
    (path, body): (&str, &[u8]),
    act: impl FnOnce(Option<KeyClaim>) -> F,
) -> Result<Response, Problem> {
    let claim = match claim(site, actor, headers, path, body).await? {
        Claimed::Again(answer) => return Ok(answer.into_response()),
        Claimed::Go(claim) => claim,
    };
    let done = act(claim).await;
    if let (Err(_), Some(claim)) = (&done, claim)
        && let Err(error) = site.broker.release_key(claim).await
    {
        tracing::debug!(%error, "a key runs out by itself");
    }
    Ok(done?.into_response())
}

/// Claims the key of a request, if it has one: for what is asked by whom, path and body.
async fn claim(
    site: &Site,
    actor: &str,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<Claimed, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(Claimed::Go(None)) };
    let readable = |key: &&str| (1..=KEY_CHARS_MAX).contains(&key.len());
    let key = key.to_str().ok().filter(readable).ok_or_else(|| {
        let detail = format!("Idempotency-Key has 1 to {KEY_CHARS_MAX} characters of ASCII");
        Problem::bad_request("malformed", detail)
    })?;
    let mut digest = Sha256::new();
    digest.update(path.as_bytes());
    digest.update([0]);
    digest.update(body);
    match in_time(site.broker.claim_key(actor, key, digest.finalize().into())).await? {
        Key::Ours(claim) => Ok(Claimed::Go(Some(claim))),
        Key::Answered(answer) => serde_json::from_value(answer).map(Claimed::Again).map_err(|_| {
            let detail = "the answer of then is of another program";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        }),
        Key::Running => {
            let detail = "the same is being worked on";
            Err(Problem::new(StatusCode::CONFLICT, "key_in_use", detail))
        }
        Key::Other => {
            let detail = "something else was asked with this Idempotency-Key";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail))
        }
    }
}

/// A version as it is sent.
pub(super) fn etag(response: impl IntoResponse, version: &str) -> Response {
    let mut response = response.into_response();
    if let Ok(value) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, value);
    }
    response
}

/// The version that whoever writes has seen; `None`: any.
pub(super) fn if_match(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    if !headers.contains_key(IF_MATCH) {
        let detail = "send If-Match and the ETag of what you have seen, or * for whatever it is";
        return Err(Problem::new(StatusCode::PRECONDITION_REQUIRED, "version_required", detail));
    }
    seen(headers)
}

/// The same, where nobody has to say one.
pub(super) fn seen(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(said) = headers.get(IF_MATCH) else { return Ok(None) };
    match said.to_str().map(str::trim) {
        Ok("*") => Ok(None),
        // A weak one, or one of several, is none that we gave.
        Ok(said) => Ok(Some(said.trim_matches('"').to_owned())),
        Err(_) => Err(stale("?")),
    }
}

/// It is another version by now.
pub(super) fn stale(current: &str) -> Problem {
    let detail = "it has changed since it was seen; look again";
    let problem = Problem::new(StatusCode::PRECONDITION_FAILED, "version_stale", detail);
    problem.with("etag", json!(format!("\"{current}\"")))
}
