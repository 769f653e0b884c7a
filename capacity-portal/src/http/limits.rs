//! Middleware in front of every route: rate limits, limits on size and duration, and security headers.

use super::auth::caller::{CsrfField, address, session_secret};
use super::auth::secret::digest;
use super::problem::{Problem, write_problem};
use super::rate::RateLimits;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
    REFERRER_POLICY, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Largest body: a thousand alerts with their annotations.
pub(crate) const BODY_MAX: usize = 4 << 20;

/// Time in which a body must arrive.
pub(crate) const BODY_WITHIN: Duration = Duration::from_secs(10);

/// Time in which the head of a request must arrive.
pub(crate) const HEAD_WITHIN: Duration = Duration::from_secs(10);

/// Time in which a response must begin. Handlers that wait for an event wait less.
const BEGIN_WITHIN: Duration = Duration::from_secs(60);

/// Pages load only from this server, and no site may frame them.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'";

/// Headers of every response that does not set them itself.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    // Neither proxies nor the next user of the browser may see responses.
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// Browsers that have connected over TLS use TLS for a year.
const ALWAYS_TLS: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// State of the middleware.
#[derive(Debug)]
pub(crate) struct RequestLimits {
    pub(crate) rate: Arc<RateLimits>,
    /// Whether browsers connect over TLS.
    pub(crate) secure: bool,
}

/// The middleware: passes requests within the limits to the routes.
pub(crate) async fn enforce(
    State(limits): State<Arc<RequestLimits>>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = match limits.admit(request).await {
        Ok(request) => match timeout(BEGIN_WITHIN, next.run(request)).await {
            Ok(response) => response,
            Err(_) => Problem::unavailable("late", "the response took too long").into_response(),
        },
        Err(problem) => problem.into_response(),
    };
    write_problem(&mut response);
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.entry(name).or_insert(value);
    }
    if limits.secure {
        headers.insert(STRICT_TRANSPORT_SECURITY, ALWAYS_TLS);
    }
    response
}

impl RequestLimits {
    async fn admit(&self, request: Request) -> Result<Request, Problem> {
        let (mut parts, body) = request.into_parts();
        let bearer = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let session = session_secret(&parts.headers, self.secure);
        let caller = bearer.or(session.as_deref()).map(digest);
        if !self.rate.may_ask(caller, address(&parts.extensions)) {
            return Err(Problem::too_often("too many requests per second", 1));
        }
        // Postgres stores no zero character. In forms, the field is reported instead.
        if parts.uri.path_and_query().is_some_and(|asked| asked.as_str().contains("%00")) {
            return Err(Problem::zero_character());
        }
        let late = |_| {
            let detail = "the body did not arrive within 10 seconds";
            Problem::new(StatusCode::REQUEST_TIMEOUT, "body_too_slow", detail)
        };
        let mut body = timeout(BODY_WITHIN, collect(body)).await.map_err(late)??;
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

/// Lets paths name what is called `.` or `..`. Browsers and URL libraries resolve these segments, also as `%2E`,
/// so clients encode them twice, as `%252E`; no other segment is touched.
pub(crate) async fn dot_segments(mut request: Request) -> Request {
    let asked = request.uri().path();
    if !asked.contains("/%252") {
        return request;
    }
    let once = |segment: &str| match &*segment.to_ascii_uppercase() {
        "%252E" => "%2E".to_owned(),
        "%252E%252E" => "%2E%2E".to_owned(),
        _ => segment.to_owned(),
    };
    let mut path = asked.split('/').map(once).collect::<Vec<_>>().join("/");
    if let Some(query) = request.uri().query() {
        path = format!("{path}?{query}");
    }
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = path.parse().ok();
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
    request
}

/// Reads a whole body.
async fn collect(body: Body) -> Result<Bytes, Problem> {
    let mut parts = body.into_data_stream();
    let mut all = Vec::new();
    while let Some(part) = parts.next().await {
        let part = part.map_err(|_| {
            Problem::bad_request("malformed", "the connection closed before the end of the body")
        })?;
        if all.len() + part.len() > BODY_MAX {
            return Err(Problem::of(StatusCode::PAYLOAD_TOO_LARGE));
        }
        all.extend_from_slice(&part);
    }
    Ok(all.into())
}

/// Splits the field `csrf` from a form, so that handlers need not know it. Its value has only letters and
/// digits, which forms send unescaped.
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
    fn csrf_field_is_removed_from_form() {
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
