//! Errors as `application/problem+json` (RFC 9457), with a stable `code` and the id of the request.

use super::problem_types::{PROBLEMS, meaning};
use api_types::problem::{FieldError, ProblemMembers};
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use broker::{DbError, ReservationError};
use control::{PlanQueueError, PlanRefused, RegionError};
use serde_json::{Map, Value, json};
use std::time::Duration;
use uuid::Uuid;

/// Header of the id of a request.
const REQUEST_ID: &str = "x-request-id";

/// When to retry, if the problem does not know better.
const RETRY: Duration = Duration::from_secs(5);

/// An error response.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    members: Box<ProblemMembers>,
    /// Members of this code alone.
    further: Map<String, Value>,
    /// Delay after which a retry may succeed.
    after: Option<Duration>,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
    ) -> Problem {
        debug_assert!(meaning(code).is_some(), "{code:?} is not in TYPES");
        Problem {
            status,
            code,
            detail: detail.into(),
            members: Box::default(),
            further: Map::new(),
            after: None,
        }
    }

    /// The request cannot be parsed.
    pub(crate) fn bad_request(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// A name in the path, query or form contains a zero character, which Postgres cannot store.
    pub(crate) fn zero_character() -> Problem {
        Problem::bad_request("malformed", "names must not contain a zero character")
    }

    /// A retry may succeed later.
    pub(crate) fn unavailable(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail).after(RETRY)
    }

    /// Sets `Retry-After`.
    pub(crate) fn after(mut self, after: Duration) -> Problem {
        self.after = Some(after);
        self
    }

    /// The caller is not authenticated.
    pub(crate) fn unauthorized(code: &'static str, detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::UNAUTHORIZED, code, detail)
    }

    /// Too many requests; a retry may succeed after `seconds`.
    pub(crate) fn too_often(detail: impl Into<String>, seconds: u64) -> Problem {
        let problem = Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests", detail);
        problem.after(Duration::from_secs(seconds))
    }

    /// HTTP status.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Sets the members that several codes have.
    pub(crate) fn with_members(self, members: ProblemMembers) -> Problem {
        Problem { members: Box::new(members), ..self }
    }

    /// Names every invalid field.
    pub(crate) fn with_errors(mut self, errors: impl IntoIterator<Item = FieldError>) -> Problem {
        self.members.errors = Some(errors.into_iter().collect());
        self
    }

    /// Names the only invalid field.
    pub(crate) fn with_field(mut self, field: impl Into<String>) -> Problem {
        self.members.field = Some(field.into());
        self
    }

    /// Adds a member that only this code has.
    pub(crate) fn with(mut self, member: &str, value: Value) -> Problem {
        self.further.insert(member.to_owned(), value);
        self
    }

    pub(crate) fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    pub(crate) fn members(&self) -> &ProblemMembers {
        &self.members
    }

    pub(crate) fn members_mut(&mut self) -> &mut ProblemMembers {
        &mut self.members
    }

    /// The problem of an error response without one, such as the router's.
    pub(crate) fn of(status: StatusCode) -> Problem {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("not_found", "no such path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method_not_allowed", "the path does not support this method")
            }
            StatusCode::PAYLOAD_TOO_LARGE => ("body_too_large", "the body exceeds 4 MiB"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("unsupported_media_type", "the body is of another content type")
            }
            _ => ("not_answered", "the request failed"),
        };
        Problem::new(status, code, detail)
    }

    fn body(mut self, id: Uuid) -> Vec<u8> {
        for error in self.members.errors.iter_mut().flatten() {
            error.pointer = Some(pointer(&error.field));
        }
        self.members.pointer = self.members.field.as_deref().map(pointer);
        let title = self.status.canonical_reason().unwrap_or("problem");
        let fixed = json!({
            "type": format!("{PROBLEMS}{}", self.code), "title": title, "status": self.status.as_u16(),
            "code": self.code, "detail": self.detail, "request_id": id.to_string(),
        });
        let mut body = self.further;
        for part in [json!(self.members), fixed] {
            if let Value::Object(part) = part {
                body.extend(part);
            }
        }
        Value::Object(body).to_string().into_bytes()
    }
}

/// Members of a body that are maps, whose keys may contain any character.
const MAPS: [&str; 3] = ["affinity", "labels", "rru"];

/// JSON pointer (RFC 6901), as a fragment, to a field such as `changes[0].affinity.dc1`; empty: the whole body.
fn pointer(field: &str) -> String {
    let mut pointer = "#".to_owned();
    let mut add = |token: &str| {
        pointer.push('/');
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    };
    let mut rest = field;
    while !rest.is_empty() {
        let end = rest.find(['.', '[', ']']).unwrap_or(rest.len());
        let (token, after) = rest.split_at(end);
        if !token.is_empty() {
            add(token);
        }
        rest = after.get(1..).unwrap_or_default();
        if MAPS.contains(&token) && after.starts_with('.') {
            add(rest);
            break;
        }
    }
    pointer
}

impl From<DbError> for Problem {
    fn from(error: DbError) -> Problem {
        if error.is_passing() {
            return Problem::unavailable("postgres_unavailable", error.to_string());
        }
        tracing::error!(%error, "request failed");
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    }
}

impl From<RegionError> for Problem {
    fn from(error: RegionError) -> Problem {
        match error {
            RegionError::NothingLoaded => {
                Problem::new(StatusCode::CONFLICT, "no_region", error.to_string())
            }
            RegionError::Db(error) => error.into(),
            RegionError::Silent(_) => {
                Problem::unavailable("postgres_unavailable", error.to_string())
            }
            RegionError::Rule(rule) => {
                tracing::error!(error = %rule, "the stored region breaks a rule");
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", rule.to_string())
            }
        }
    }
}

impl From<PlanQueueError> for Problem {
    fn from(error: PlanQueueError) -> Problem {
        let detail = error.to_string();
        match error {
            PlanQueueError::NoPlanner => Problem::unavailable("no_planner", detail),
            PlanQueueError::Busy { after } => {
                Problem::new(StatusCode::TOO_MANY_REQUESTS, "too_many_plans", detail).after(after)
            }
            PlanQueueError::Refused(refused) => {
                let number = match refused {
                    PlanRefused::Requests(error) => Some(error.number()),
                    PlanRefused::Region(_) => None,
                };
                let status = StatusCode::UNPROCESSABLE_ENTITY;
                Problem::new(status, "request_refused", detail).with("request", json!(number))
            }
        }
    }
}

impl From<ReservationError> for Problem {
    fn from(error: ReservationError) -> Problem {
        match error {
            ReservationError::Unknown { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", error.to_string())
            }
            ReservationError::Db(error) => error.into(),
        }
    }
}

/// [`finish`] or [`write_problem`] writes the body, with the id of the request.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Middleware: gives each request an id, and each error response a body with it.
pub(crate) async fn finish(request: Request, next: Next) -> Response {
    let id = Uuid::now_v7();
    let mut response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let own = response.extensions_mut().remove::<Problem>();
    if status == StatusCode::ACCEPTED {
        // When to ask for the outcome.
        response.headers_mut().entry(RETRY_AFTER).or_insert(HeaderValue::from_static("1"));
    }
    match own.or_else(|| is_error.then(|| Problem::of(status))) {
        Some(problem) => write(&mut response, problem, id),
        None => set_id(&mut response, id),
    }
    response
}

/// Writes the body of a problem that [`finish`] has not handled: from the middleware or a page.
pub(crate) fn write_problem(response: &mut Response) {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        write(response, problem, Uuid::now_v7());
    }
}

fn write(response: &mut Response, problem: Problem, id: Uuid) {
    tracing::debug!(request_id = %id, code = problem.code, "request rejected");
    let headers = response.headers_mut();
    headers.remove(CONTENT_LENGTH);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    let busy = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS];
    let after = problem.after.or_else(|| busy.contains(&problem.status).then_some(RETRY));
    if let Some(after) = after {
        headers.insert(RETRY_AFTER, HeaderValue::from(after.as_secs().max(1)));
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    *response.body_mut() = Body::from(problem.body(id));
    set_id(response, id);
}

fn set_id(response: &mut Response, id: Uuid) {
    if let Ok(value) = HeaderValue::from_str(&id.to_string()) {
        response.headers_mut().insert(REQUEST_ID, value);
    }
}

#[cfg(test)]
mod tests {
    use super::pointer;

    #[test]
    fn pointer_names_the_field_of_the_body() {
        for (field, expected) in [
            ("", "#"),
            ("owner", "#/owner"),
            ("changes[0].owner", "#/changes/0/owner"),
            ("servers[12]", "#/servers/12"),
            ("changes[1].churn_contract.quiet[2]", "#/changes/1/churn_contract/quiet/2"),
            ("affinity.dc.1/a", "#/affinity/dc.1~1a"),
            ("rru.C[1]", "#/rru/C[1]"),
            ("grant_policy.at_least_rru", "#/grant_policy/at_least_rru"),
        ] {
            assert_eq!(pointer(field), expected, "{field}");
        }
    }
}
