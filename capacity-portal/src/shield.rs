//! What stands before everything: how often may be asked, how large and how slow a body may be, and
//! what browsers are told about every answer.

use crate::api::caller::{CsrfField, address, session_secret};
use crate::api::problem::{Problem, write_own};
use crate::limits::Limits;
use crate::secret::digest;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The largest body: a thousand alerts with their annotations.
pub(crate) const BODY_MAX: usize = 4 << 20;

/// How long a body may take to arrive, and the head of a request before it.
pub(crate) const BODY_WITHIN: Duration = Duration::from_secs(10);
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// How long an answer may take to begin. Whoever waits for something to happen waits less.
const BEGIN_WITHIN: Duration = Duration::from_secs(60);

/// Pages use what this server sends and nothing else, and nobody frames them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// What every answer says, unless it says something else of its own.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    // Nothing here is for caches in between, or for the next who uses the browser.
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Whoever came by TLS once comes by TLS for a year.
const ALWAYS_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// What is needed for that.
#[derive(Debug)]
pub(crate) struct Shield {
    pub(crate) limits: Arc<Limits>,
    /// Whether browsers reach us by TLS.
    pub(crate) secure: bool,
}

/// Lets a request through, or not.
pub(crate) async fn stand(
    State(shield): State<Arc<Shield>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match shield.let_in(request).await {
        Ok(request) => match timeout(BEGIN_WITHIN, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::unavailable("late", "there is no answer in time").into_response(),
        },
        Err(problem) => problem.into_response(),
    };
    write_own(&mut response);
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(value);
    }
    if shield.secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, ALWAYS_TLS);
    }
    response
}

impl Shield {
    async fn let_in(&self, request: Request) -> Result<Request, Problem> {
        let (mut parts, body) = request.into_parts();
        let said = parts.headers.get(AUTHORIZATION).and_then(|said| said.to_str().ok());
        let session = session_secret(&parts.headers, self.secure);
        let caller = said.or(session.as_deref()).map(digest);
        if !self.limits.may_ask(caller, address(&parts.extensions)) {
            return Err(Problem::too_often("ask less often", 1));
        }
        // Postgres stores no zero character, so no name has one. Forms that are sent say so at the field.
        if parts.uri.path_and_query().is_some_and(|asked| asked.as_str().contains("%00")) {
            let detail = "nothing has a zero character in its name";
            return Err(Problem::bad_request("malformed", detail));
        }
        let late = |_| {
            let detail = "a body arrives within 10 seconds";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
        };
        let mut body = timeout(BODY_WITHIN, gather(body)).await.map_err(late)??;
        let form = parts
            .headers
            .get(CONTENT_TYPE)
            .is_some_and(|kind| kind.as_bytes().starts_with(b"application/x-www-form-urlencoded"));
        if form && session.is_some() {
            let (field, rest) = without_csrf(&body);
            parts.headers.insert(CONTENT_LENGTH, rest.len().into());
            body = rest;
            parts.extensions.insert(CsrfField(field));
        }
        Ok(Request::from_parts(parts, Body::from(body)))
    }
}

/// The whole of a body.
async fn gather(body: Body) -> Result<Bytes, Problem> {
    let mut parts = body.into_data_stream();
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| {
            Problem::bad_request("malformed", "the connection ended before the body did")
        })?;
        if all.len() + part.len() > BODY_MAX {
            return Err(Problem::of(StatusCode::PAYLOAD_TOO_LARGE));
        }
        all.extend_from_slice(&part);
    }
    Ok(all.into())
}

/// The field `csrf` of a form, and the form without it: what is behind need not know of it. Its value
/// is made of letters and digits, which forms send as they are.
fn without_csrf(form: &[u8]) -> (String, Bytes) {
    let mut field = String::new();
    let mut rest: Vec<&[u8]> = Vec::new();
    for pair in form.split(|byte| *byte == b'&') {
        match pair.strip_prefix(b"csrf=") {
            Some(value) => field = String::from_utf8_lossy(value).into_owned(),
            None => rest.push(pair),
        }
    }
    (field, rest.join(&b'&').into())
}

#[cfg(test)]
mod tests {
    use super::without_csrf;

    #[test]
    fn the_field_of_a_form_is_taken_out() {
        for (form, field, rest) in [
            ("csrf=abc&a=1&b=2", "abc", "a=1&b=2"),
            ("a=1&csrf=abc", "abc", "a=1"),
            ("csrf=abc", "abc", ""),
            ("a=csrf=abc", "", "a=csrf=abc"),
            ("", "", ""),
        ] {
            let (found, left) = without_csrf(form.as_bytes());
            assert_eq!((&*found, &left[..]), (field, rest.as_bytes()), "{form}");
        }
    }
}
