//! `Idempotency-Key`: a request sent again with the same key is done once and gets the first answer.

use super::problem::Problem;
use super::state::Site;
use super::timeout::in_time;
use axum::Json;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{Document, KEY_CHARS_MAX, Key, KeyClaim};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Header of the key.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A response that is stored with its key, to be repeated.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct StoredResponse {
    status: u16,
    location: Option<String>,
    body: Value,
}

impl StoredResponse {
    /// `location`: path of what was created, or to wait on.
    pub(crate) fn new(status: StatusCode, location: Option<String>, body: Value) -> StoredResponse {
        StoredResponse { status: status.as_u16(), location, body }
    }

    /// The stored form.
    pub(crate) fn document(&self) -> Document {
        Document::of(self)
    }
}

impl IntoResponse for StoredResponse {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, Json(self.body)).into_response();
        let location = self.location.and_then(|path| HeaderValue::from_str(&path).ok());
        if let Some(location) = location {
            response.headers_mut().insert(LOCATION, location);
        }
        response
    }
}

/// State of the key of a request.
enum KeyState {
    /// Act, and store the response with the claim, if the request has a key.
    New(Option<KeyClaim>),
    /// Already done: repeat this response.
    Done(StoredResponse),
}

/// Runs `act` once per key, path and body, and repeats its first response. If it fails, the key is released.
pub(crate) async fn once<T: IntoResponse, F: Future<Output = Result<T, Problem>>>(
    site: &Site,
    actor: &str,
    headers: &HeaderMap,
    (path, body): (&str, &[u8]),
    act: impl FnOnce(Option<KeyClaim>) -> F,
) -> Result<Response, Problem> {
    let claim = match claim(site, actor, headers, path, body).await? {
        KeyState::Done(response) => return Ok(response.into_response()),
        KeyState::New(claim) => claim,
    };
    let done = act(claim).await;
    if let (Err(_), Some(claim)) = (&done, claim)
        && let Err(error) = site.broker.release_key(claim).await
    {
        tracing::debug!(%error, "key not released; it expires");
    }
    Ok(done?.into_response())
}

/// Claims the key of a request, if it has one, for its actor, path and body.
async fn claim(
    site: &Site,
    actor: &str,
    headers: &HeaderMap,
    path: &str,
    body: &[u8],
) -> Result<KeyState, Problem> {
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else { return Ok(KeyState::New(None)) };
    let readable = |key: &&str| (1..=KEY_CHARS_MAX).contains(&key.len());
    let key = key.to_str().ok().filter(readable).ok_or_else(|| {
        let detail = format!("Idempotency-Key must have 1 to {KEY_CHARS_MAX} ASCII characters");
        Problem::bad_request("malformed", detail)
    })?;
    let mut digest = Sha256::new();
    digest.update(path.as_bytes());
    digest.update([0]);
    digest.update(body);
    match in_time(site.broker.claim_key(actor, key, digest.finalize().into())).await? {
        Key::Ours(claim) => Ok(KeyState::New(Some(claim))),
        Key::Answered(stored) => stored.read().map(KeyState::Done).map_err(|_| {
            let detail =
                "another version of the program stored the response of this Idempotency-Key";
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
        }),
        Key::Running => {
            let detail = "a request with this Idempotency-Key is in progress";
            Err(Problem::new(StatusCode::CONFLICT, "key_in_use", detail))
        }
        Key::Other => {
            let detail = "this Idempotency-Key was used for another request";
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", detail))
        }
    }
}
