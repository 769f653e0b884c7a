//! HTTP client of a server (`ras up`).
//!
//! | module | one line |
//! |---|---|
//! | [`login`] | selects server and token |
//! | `socket` | connects to the unix socket of a server on this machine |
//! | [`problem`] | problem documents, the server's errors |
//! | [`operation`] | long-running operations |

pub mod login;
pub mod operation;
pub mod problem;
mod socket;

use self::login::{Place, Server};
use self::problem::Problem;
use self::socket::SocketConnector;
use crate::mistake::{self, Hinted};
use crate::terminal;
use anyhow::{Context, Result, anyhow, bail};
use chrono::{DateTime, Utc};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, DATE, ETAG, IF_MATCH, IF_NONE_MATCH, RETRY_AFTER,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Connections;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};
use uuid::Uuid;

/// Maximum size of an answer: the server limits pages.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// Timeout of one request: a plan of a large region takes some seconds, and may wait in a queue.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long idempotent requests are retried.
const PATIENCE: Duration = Duration::from_secs(90);
/// Delay between two attempts, unless the server gives one.
const AGAIN_AFTER: Duration = Duration::from_millis(500);
const AGAIN_AFTER_MOST: Duration = Duration::from_secs(30);
/// Answers remembered while something is watched.
const REMEMBERED_MAX: usize = 256;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A connection to a server.
pub struct Client {
    server: Server,
    /// URL in front of every path; its host has no meaning for a unix socket.
    base: String,
    transport: Transport,
    /// The last answer to each GET request, by path, while something is watched.
    remembered: Option<Mutex<HashMap<String, Answer>>>,
}

/// Connections to the server.
enum Transport {
    Network(Connections<HttpsConnector<HttpConnector>, String>),
    Socket(Connections<SocketConnector, String>),
}

/// URL in front of every path at a unix socket.
const SOCKET_BASE: &str = "http://localhost";

/// A request.
#[derive(Clone, Debug)]
pub struct Ask {
    method: Method,
    path: String,
    body: Option<String>,
    if_match: Option<String>,
    key: Option<Uuid>,
}

/// A successful answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The version (`ETag`) of the object read.
    pub etag: Option<String>,
    /// The time by the server's clock; the Unix epoch if it gives none.
    pub at: DateTime<Utc>,
    /// The body as it was sent; null if absent.
    pub body: Value,
    /// The request that it answers: method and path.
    route: String,
}

impl Answer {
    /// The body as a document.
    ///
    /// # Errors
    /// If a member is missing or of another type, as from a server of another version. The error names the route and
    /// the member.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let error = |error: serde_path_to_error::Error<serde_json::Error>| {
            anyhow!("cannot read the server's answer to {}: {error}", self.route)
        };
        serde_path_to_error::deserialize(&self.body).map_err(error)
    }
}

impl Ask {
    /// A GET request.
    pub fn get(path: impl Into<String>) -> Ask {
        Ask { method: Method::GET, path: path.into(), body: None, if_match: None, key: None }
    }

    /// A POST request with an idempotency key: it may be retried.
    pub fn post(path: impl Into<String>, body: impl Serialize) -> Ask {
        Ask { key: Some(Uuid::now_v7()), ..Ask::post_once(path, body) }
    }

    /// A POST request that is not idempotent: it is retried only if the server did not process it.
    pub fn post_once(path: impl Into<String>, body: impl Serialize) -> Ask {
        let body = serde_json::to_string(&body).expect("members have names");
        Ask { method: Method::POST, body: Some(body), ..Ask::get(path) }
    }

    /// A PUT request, which is idempotent.
    pub fn put(path: impl Into<String>, body: impl Serialize) -> Ask {
        Ask { method: Method::PUT, ..Ask::post(path, body) }
    }

    /// A PATCH request if the object has this version; `*` for any version.
    pub fn patch(path: impl Into<String>, version: impl Into<String>, body: impl Serialize) -> Ask {
        Ask { method: Method::PATCH, ..Ask::post(path, body) }.of_version(version)
    }

    /// A DELETE request if the object has this version; `*` for any version.
    pub fn delete(path: impl Into<String>, version: impl Into<String>) -> Ask {
        let key = Some(Uuid::now_v7());
        Ask { method: Method::DELETE, key, ..Ask::get(path) }.of_version(version)
    }

    /// Adds the precondition (`If-Match`) that the object has this version; `*` for any version.
    #[must_use]
    pub fn of_version(mut self, version: impl Into<String>) -> Ask {
        self.if_match = Some(version.into());
        self
    }

    fn request(&self, server: &Server, base: &str) -> Result<Request<String>> {
        let url = format!("{base}{}", self.path);
        let url: Uri = url.parse().with_context(|| format!("{url:?} is not a URL"))?;
        let mut request = Request::builder().method(&self.method).uri(url);
        request = request.header(ACCEPT, "application/json, application/problem+json");
        if let Some(token) = &server.token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.0))
                .map_err(|_| anyhow!("the token has invalid characters"))?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(etag) = &self.if_match {
            request = request.header(IF_MATCH, etag);
        }
        if let Some(key) = &self.key {
            request = request.header(IDEMPOTENCY_KEY, key.to_string());
        }
        if self.body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(self.body.clone().unwrap_or_default()).context("cannot encode the request")
    }
}

/// A path of percent-encoded segments; `.` and `..`, which URLs resolve, are encoded twice.
pub fn path(words: &[&str]) -> String {
    let mut url = url::Url::parse("http://server").expect("a URL");
    let segment = |word: &&str| match *word {
        "." | ".." => word.replace('.', "%2E"),
        word => word.to_owned(),
    };
    url.path_segments_mut().expect("it has a path").extend(words.iter().map(segment));
    url.path().to_owned()
}

/// A path with a query.
pub fn query(path: &str, pairs: &[(&str, String)]) -> String {
    if pairs.is_empty() {
        return path.to_owned();
    }
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    let query = query.extend_pairs(pairs).finish();
    format!("{path}?{query}")
}

impl Client {
    /// Creates a client; nothing is sent yet.
    ///
    /// # Errors
    /// If the system has no trusted CA certificates.
    pub fn new(server: Server) -> Result<Client> {
        let (base, transport) = match &server.place {
            Place::Network(url) => (url.clone(), Transport::Network(network(url)?)),
            Place::Socket(local) => {
                let connections = Connections::builder(TokioExecutor::new());
                let connections = connections.build(SocketConnector::new(local.clone()));
                (SOCKET_BASE.to_owned(), Transport::Socket(connections))
            }
        };
        Ok(Client { server, base, transport, remembered: None })
    }

    /// Remembers answers to GET requests, so that the server sends only those that have changed (`If-None-Match`).
    #[must_use]
    pub fn remembering(self) -> Client {
        Client { remembered: Some(Mutex::default()), ..self }
    }

    /// The remembered answer to a request.
    fn remembered(&self, ask: &Ask) -> Option<Answer> {
        let answers = self.remembered.as_ref().filter(|_| ask.method == Method::GET)?;
        answers.lock().unwrap_or_else(PoisonError::into_inner).get(&ask.path).cloned()
    }

    fn remember(&self, ask: &Ask, answer: &Answer) {
        let Some(answers) = self.remembered.as_ref().filter(|_| ask.method == Method::GET) else {
            return;
        };
        let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
        // Paths of pages change with their tokens.
        if answers.len() >= REMEMBERED_MAX {
            answers.clear();
        }
        answers.insert(ask.path.clone(), answer.clone());
    }

    /// Sends a request, with retries while the server is busy or cannot be reached.
    ///
    /// # Errors
    /// [`Problem`] if the server refuses; another error if it does not answer.
    pub async fn ask(&self, ask: &Ask) -> Result<Answer> {
        let until = Instant::now() + PATIENCE;
        let mut told = false;
        loop {
            let (wait, error) = match self.once(ask).await {
                Ok(answer) => return Ok(answer),
                Err(Failure::Final(error)) => return Err(error),
                Err(Failure::Passing { after, error }) => (after, error),
            };
            let wait = wait.unwrap_or(AGAIN_AFTER).clamp(AGAIN_AFTER, AGAIN_AFTER_MOST);
            if Instant::now() + wait >= until {
                return Err(error);
            }
            // Once: the attempts fail in the same way.
            if !std::mem::replace(&mut told, true) {
                let error = mistake::plain(&format!("{error:#}"));
                let error = error.lines().next().unwrap_or_default();
                terminal::tell(&format!("{error}; retrying for up to {} s", PATIENCE.as_secs()));
            }
            sleep(wait).await;
        }
    }

    /// Sends a GET request like [`Client::ask`].
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub async fn get(&self, path: &str) -> Result<Answer> {
        self.ask(&Ask::get(path)).await
    }

    /// Reads all pages of a list as one answer. `rows`: the member with the rows.
    ///
    /// # Errors
    /// As for [`Client::ask`].
    pub async fn get_all(&self, path: &str, rows: &str) -> Result<Answer> {
        let mut all = self.get(path).await?;
        let separator = if path.contains('?') { '&' } else { '?' };
        while let Some(token) = all.body["next_page_token"].as_str().map(str::to_owned) {
            let token = query("", &[("page_token", token)]);
            let mut page = self.get(&format!("{path}{separator}{}", &token[1..])).await?;
            let (Some(to), Some(from)) =
                (all.body[rows].as_array_mut(), page.body[rows].as_array_mut())
            else {
                bail!("the server's answer to GET {path} lacks {rows}");
            };
            to.append(from);
            all.body["next_page_token"] = page.body["next_page_token"].take();
        }
        Ok(all)
    }

    async fn once(&self, ask: &Ask) -> Result<Answer, Failure> {
        let known = self.remembered(ask);
        let mut request = ask.request(&self.server, &self.base)?;
        let etag = known.as_ref().and_then(|known| known.etag.as_deref());
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            request.headers_mut().insert(IF_NONE_MATCH, etag);
        }
        // A request that may have been processed is retried only if it is idempotent.
        let again = ask.key.is_some() || ask.method == Method::GET;
        let lost = |error: anyhow::Error, safe: bool| {
            let error = error.context(format!("server {} does not answer", self.server.place));
            if safe { Failure::Passing { after: None, error } } else { Failure::Final(error) }
        };
        let answer = match &self.transport {
            Transport::Network(connections) => connections.request(request),
            Transport::Socket(connections) => connections.request(request),
        };
        let response = match timeout(ANSWER_WITHIN, answer).await {
            Ok(Ok(response)) => response,
            // Connection refused or unknown host: retrying is unlikely to help.
            Ok(Err(error)) if error.is_connect() => return Err(Failure::Final(chain(error, self))),
            Ok(Err(error)) => return Err(lost(error.into(), again)),
            Err(_) => return Err(lost(anyhow!("no answer within {ANSWER_WITHIN:?}"), false)),
        };
        let (parts, body) = response.into_parts();
        let body = timeout(ANSWER_WITHIN, Limited::new(body, ANSWER_BYTES_MAX).collect()).await;
        let body = match body {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) => return Err(lost(anyhow!("its answer is truncated: {error}"), again)),
            Err(_) => return Err(lost(anyhow!("its answer is too long"), false)),
        };
        let text = |name: HeaderName| {
            parts.headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        let is_json = text(CONTENT_TYPE).is_some_and(|of| of.contains("json"));
        let body = match serde_json::from_slice::<Value>(&body) {
            Ok(value) => value,
            Err(_) if body.is_empty() => Value::Null,
            Err(error) if is_json => {
                return Err(anyhow!(error).context("the answer is not JSON").into());
            }
            Err(_) => Value::String(String::from_utf8_lossy(&body).into_owned()),
        };
        let at = text(DATE).and_then(|at| DateTime::parse_from_rfc2822(&at).ok());
        let at = at.map(|at| at.to_utc()).unwrap_or_default();
        if let Some(known) = known.filter(|_| parts.status == StatusCode::NOT_MODIFIED) {
            return Ok(Answer { at, ..known });
        }
        if parts.status.is_success() {
            let route =
                format!("{} {}", ask.method, ask.path.split('?').next().unwrap_or_default());
            let answer = Answer { etag: text(ETAG), at, body, route };
            self.remember(ask, &answer);
            return Ok(answer);
        }
        let problem = Problem::new(parts.status, body);
        let unheard = parts.status == StatusCode::TOO_MANY_REQUESTS;
        let busy = parts.status == StatusCode::SERVICE_UNAVAILABLE && again;
        if unheard || busy || problem.is_still_running() {
            let after = retry_after(&parts.headers);
            return Err(Failure::Passing { after, error: problem.into() });
        }
        let refused = parts.status == StatusCode::UNAUTHORIZED;
        let error = anyhow::Error::from(problem);
        Err(Failure::Final(match refused {
            // A token is for one server, and the saved one may be for another.
            true => error.context(format!("server {}", self.server.place)),
            false => error,
        }))
    }
}

/// Connections to a server on the network.
fn network(url: &str) -> Result<Connections<HttpsConnector<HttpConnector>, String>> {
    let mut http = HttpConnector::new();
    http.set_connect_timeout(Some(CONNECT_WITHIN));
    http.enforce_http(false);
    let provider = rustls::crypto::ring::default_provider();
    let secure = HttpsConnectorBuilder::new();
    // Without TLS no certificates are loaded.
    let connector = if url.starts_with("https:") {
        let secure = secure.with_provider_and_native_roots(provider);
        secure.context("certificates of the system")?.https_only()
    } else {
        let none = rustls::ClientConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .context("TLS")?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        secure.with_tls_config(none).https_or_http()
    };
    let connector = connector.enable_http1().wrap_connector(http);
    Ok(Connections::builder(TokioExecutor::new()).build(connector))
}

fn chain(error: hyper_util::client::legacy::Error, client: &Client) -> anyhow::Error {
    let error = anyhow!(error);
    match &client.server.place {
        // The causes in between name layers of the client.
        Place::Network(url) => {
            let what = format!("cannot reach server {url}: {}", error.root_cause());
            Hinted::new(what, "check its address, and that the server runs (`ras up`)").into()
        }
        Place::Socket(local) => socket::explain(error, local),
    }
}

fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// The reason for a missing answer.
enum Failure {
    Final(anyhow::Error),
    Passing { after: Option<Duration>, error: anyhow::Error },
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Failure {
        Failure::Final(error)
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, DateTime, path, query};
    use api_types::drills::Drill;
    use api_types::emergencies::Emergency;
    use serde_json::json;

    #[test]
    fn answer_without_a_member_is_an_error_with_route_and_member() {
        let kept = json!({
            "reservation": "web", "owner": "shop", "priority": 0, "promised_rru": 1.0, "held_rru": 1.0,
            "msb_buffer": true, "covered": true, "owned_rru": 1.0, "in_maintenance_rru": 0.0,
            "needed_at_once_rru": 1.0, "left_at_once_rru": 1.0, "left_rru": 1.0,
            "missing_rru": 0.0, "quorum_rru": null, "kept": true,
        });
        let body = json!({
            "msb": "m1", "domain": null, "taken_at": "2026-01-01T00:00:00Z", "seq": 1, "version": 1,
            "servers_lost": 1, "servers_lost_in_use": 1, "all_kept": true,
            "reservations": [kept], "mover": null,
        });
        let at = DateTime::default();
        let route = "POST /ops/v1/drills".to_owned();
        let mut answer = Answer { etag: None, at, body, route };
        assert!(answer.read::<Drill>().expect("whole").all_kept);
        let kept = answer.body["reservations"][0].as_object_mut().expect("an object");
        kept.remove("kept");
        let error = answer.read::<Drill>().expect_err("not whole").to_string();
        for part in ["POST /ops/v1/drills", "reservations[0]", "`kept`"] {
            assert!(error.contains(part), "{error}");
        }
    }

    // `granted` decides the exit code: a missing one must not read as a refusal.
    #[test]
    fn missing_nullable_member_is_not_null() {
        let body = json!({
            "emergency": "e1", "reservation": "web", "asked_rru": 1.0, "why": "launch",
            "asked_by": "ann", "asked_at": "2026-01-01T00:00:00Z", "state": "refused",
            "granted": null, "refusal": "no_capacity", "refused_because": "none", "debt": false,
            "max_servers": 4, "beyond_limits": false,
        });
        let at = DateTime::default();
        let route = "POST /ops/v1/emergencies".to_owned();
        let mut answer = Answer { etag: None, at, body, route };
        assert_eq!(answer.read::<Emergency>().expect("whole").granted, None);
        answer.body.as_object_mut().expect("an object").remove("granted");
        let error = answer.read::<Emergency>().expect_err("not whole").to_string();
        for part in ["POST /ops/v1/emergencies", "`granted`"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn names_are_escaped_in_paths() {
        assert_eq!(path(&["v1", "reservations", "b/ü x?"]), "/v1/reservations/b%2F%C3%BC%20x%3F");
        assert_eq!(path(&["v1", "reservations", ".."]), "/v1/reservations/%252E%252E");
        let pairs = [("label", "team=a b".to_owned()), ("limit", "3".to_owned())];
        assert_eq!(query("/v1/reservations", &pairs), "/v1/reservations?label=team%3Da+b&limit=3");
        assert_eq!(query("/v1/plans", &[]), "/v1/plans");
    }
}
