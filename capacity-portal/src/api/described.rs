//! What the description promises of every route under `/v1` and `/ops/v1`: a parameter that it does not name is
//! refused, a body of another type than JSON is refused, and reads have an ETag.

use super::openapi::METHODS;
use crate::http::Problem;
use crate::http::preconditions::conditional;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use utoipa::openapi::OpenApi;

/// One method of one path.
#[derive(Debug)]
struct Operation {
    /// Names of its query parameters.
    parameters: BTreeSet<String>,
    /// Whether it reads a JSON body.
    reads_json: bool,
}

/// The operations by path, as the description writes it, and method.
#[derive(Debug)]
pub(crate) struct Described(BTreeMap<(String, &'static str), Operation>);

impl Described {
    pub(crate) fn new(openapi: &OpenApi) -> Described {
        let document = serde_json::to_value(openapi).expect("a description is JSON");
        let mut all = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for method in METHODS {
                let Some(operation) = item.get(method) else { continue };
                let parameters = operation["parameters"].as_array().into_iter().flatten();
                let queried = parameters.filter(|of| of["in"] == "query");
                let names = queried.filter_map(|of| of["name"].as_str().map(str::to_owned));
                let reads_json = operation.get("requestBody").is_some_and(Value::is_object);
                let operation = Operation { parameters: names.collect(), reads_json };
                all.insert((path.clone(), method), operation);
            }
        }
        Described(all)
    }

    fn find(&self, request: &Request) -> Option<&Operation> {
        let path = request.extensions().get::<MatchedPath>()?.as_str();
        if !path.starts_with("/v1/") && !path.starts_with("/ops/v1/") {
            return None;
        }
        let method = request.method().as_str();
        let method = METHODS.into_iter().find(|known| known.eq_ignore_ascii_case(method))?;
        self.0.get(&(path.to_owned(), method))
    }
}

/// The middleware.
pub(crate) async fn check(
    State(described): State<Arc<Described>>,
    request: Request,
    next: Next,
) -> Response {
    let Some(operation) = described.find(&request) else { return next.run(request).await };
    if let Err(problem) = operation.check(&request) {
        return problem.into_response();
    }
    let reads = request.method() == Method::GET;
    let seen = request.headers().get(IF_NONE_MATCH).cloned();
    let response = next.run(request).await;
    if reads { conditional(seen.as_ref(), response).await } else { response }
}

impl Operation {
    fn check(&self, request: &Request) -> Result<(), Problem> {
        for pair in request.uri().query().unwrap_or_default().split('&') {
            let name = pair.split('=').next().unwrap_or_default();
            if !name.is_empty() && !self.parameters.contains(name) {
                let known: Vec<&str> = self.parameters.iter().map(String::as_str).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let detail = format!("there is no parameter {name:?}; this route has {known}");
                return Err(Problem::bad_request("malformed", detail));
            }
        }
        if self.reads_json && !is_json(request.headers()) {
            let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
            let detail = "the body must be JSON: send Content-Type: application/json (curl --json)";
            return Err(Problem::new(status, "unsupported_media_type", detail));
        }
        Ok(())
    }
}

/// Whether a body is JSON by its header. Without a header it is read as JSON (RFC 9110, 8.3).
fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(CONTENT_TYPE) else { return true };
    let kind = kind.to_str().unwrap_or_default().split(';').next().unwrap_or_default();
    let kind = kind.trim().to_ascii_lowercase();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}
