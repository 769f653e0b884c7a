//! Orders steps from the operator's automation over HTTP.
//!
//! The request is a `POST` of a [`StepOrder`] as JSON, the answer a [`StepReport`] as JSON with status 200.
//! After any other status, or none, the order is repeated.
//!
//! An order can wipe a server, so it is protected twice. First by TLS, with the authorities that the system
//! trusts or with the operator's own. Second by a signature: `X-Ras-Timestamp` has the seconds since 1970,
//! `X-Ras-Signature` the HMAC-SHA256 of timestamp, a dot and the body, in hexadecimal. The receiver verifies
//! it and refuses orders that are minutes old, so that no third party can forge or repeat one. Each
//! protection is waived only explicitly ([`Protection`]).

use super::{ANSWER_MAX, AgentError, HostAgent, StepOrder, StepReport, read};
use broker::LeaseTerm;
use bytes::Bytes;
use chrono::Utc;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use http::{Request, Uri};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use sha2::Sha256;
use std::error::Error;
use std::fmt::Write;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::timeout;

/// The protection of orders. By default an order is sent only if it is signed, and either encrypted or
/// addressed to this machine.
#[derive(Clone, Default)]
pub struct Protection {
    /// The key of the signature.
    pub key: Option<Vec<u8>>,
    /// Allows orders without a signature.
    pub unsigned: bool,
    /// Allows `http` to other machines, where the network can read and change orders.
    pub cleartext: bool,
    /// Certificates of authorities in PEM. They replace those of the system.
    pub authorities: Option<Vec<u8>>,
}

/// Automation behind a URL.
pub struct HttpAgent {
    client: Client<HttpsConnector<HttpConnector>, WhileItHolds>,
    uri: Uri,
    key: Option<Vec<u8>>,
    timeout: Duration,
}

/// The settings do not give an agent over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpAgentError {
    /// The address is not an HTTP URL.
    #[error(
        "the automation's address {url:?} is not a URL of the form https://host:port/path or \
         http://host:port/path"
    )]
    Url {
        /// The address.
        url: String,
    },
    /// The address is on another machine, without TLS.
    #[error(
        "orders to {host} would go in clear, and they can have servers wiped: use https, or say \
         --agent-cleartext (agent_cleartext in [mover]) to waive that"
    )]
    Cleartext {
        /// The host name.
        host: String,
    },
    /// No key is set, and the signature is not waived.
    #[error(
        "orders would go unsigned, and they can have servers wiped: name a key with --agent-key \
         (agent_key in [mover]), or say --agent-unsigned (agent_unsigned) to waive that"
    )]
    Unsigned,
    /// A key is set, and the signature is waived.
    #[error("a key is named, and --agent-unsigned says that orders go without a signature")]
    KeyAndUnsigned,
    /// The certificates of authorities cannot be read.
    #[error("the certificates of authorities (agent_ca): {why}")]
    Authorities {
        /// The cause.
        why: String,
    },
    /// The TLS client cannot be created.
    #[error("TLS")]
    Tls(#[source] rustls::Error),
    /// The system's trusted certificates cannot be read.
    #[error("certificates that the system trusts")]
    Roots(#[source] std::io::Error),
}

/// Whether a host is this machine, so that orders pass no network.
fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    bare == "localhost" || bare.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The TLS configuration: which authorities are trusted.
fn tls(authorities: Option<&[u8]>, is_https: bool) -> Result<ClientConfig, HttpAgentError> {
    let provider = rustls::crypto::ring::default_provider();
    let config = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .map_err(HttpAgentError::Tls)?;
    let config = match authorities {
        Some(pem) => {
            let wrong = |why: String| HttpAgentError::Authorities { why };
            let mut roots = RootCertStore::empty();
            for certificate in CertificateDer::pem_slice_iter(pem) {
                let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
                roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
            }
            if roots.is_empty() {
                return Err(wrong("there is no certificate in PEM".to_owned()));
            }
            config.with_root_certificates(roots)
        }
        None if is_https => config.with_native_roots().map_err(HttpAgentError::Roots)?,
        // Without encryption no certificates are needed.
        None => config.with_root_certificates(RootCertStore::empty()),
    };
    Ok(config.with_no_client_auth())
}

impl HttpAgent {
    /// Orders steps at a URL. A request fails after the timeout.
    ///
    /// # Errors
    /// [`HttpAgentError`].
    pub fn new(
        url: &str,
        protection: Protection,
        timeout: Duration,
    ) -> Result<HttpAgent, HttpAgentError> {
        let no_url = || HttpAgentError::Url { url: url.to_owned() };
        let uri: Uri = url.parse().map_err(|_| no_url())?;
        let is_https = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(no_url()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(no_url)?;
        if !is_https && !protection.cleartext && !is_loopback(host) {
            return Err(HttpAgentError::Cleartext { host: host.to_owned() });
        }
        match (&protection.key, protection.unsigned) {
            (None, false) => return Err(HttpAgentError::Unsigned),
            (Some(_), true) => return Err(HttpAgentError::KeyAndUnsigned),
            _ => {}
        }
        let config = tls(protection.authorities.as_deref(), is_https)?;
        let connector = HttpsConnectorBuilder::new().with_tls_config(config);
        let connector = if is_https { connector.https_only() } else { connector.https_or_http() };
        // The client follows no redirect and no proxy of the environment: only this URL may answer.
        let client = Client::builder(TokioExecutor::new()).build(connector.enable_http1().build());
        Ok(HttpAgent { client, uri, key: protection.key, timeout })
    }

    async fn post(&self, order: &StepOrder) -> Result<StepReport, AgentError> {
        order.may_be_sent()?;
        let body = serde_json::to_vec(order).expect("an order has no map and no float");
        let mut request = Request::post(&self.uri).header("content-type", "application/json");
        if let Some(key) = &self.key {
            #[expect(clippy::disallowed_methods, reason = "a signature says when it was made")]
            let at = Utc::now().timestamp().to_string();
            request = request.header("x-ras-signature", signature(key, &at, &body));
            request = request.header("x-ras-timestamp", at);
        }
        let body = WhileItHolds { bytes: Some(body.into()), lease: order.lease.clone() };
        let request = request.body(body).expect("every header is ASCII");
        let asked = async {
            let sent = self.client.request(request).await;
            let response =
                sent.map_err(|error| order.may_be_sent().err().unwrap_or_else(|| lost(&error)))?;
            let status = response.status();
            if !status.is_success() {
                return Err(AgentError::Unreachable(format!("it answers {status}")));
            }
            let answer = Limited::new(response.into_body(), ANSWER_MAX).collect().await;
            let answer = answer.map_err(|error| {
                if error.is::<LengthLimitError>() {
                    return AgentError::NotAnAnswer("it is longer than 64 KiB".to_owned());
                }
                lost(&*error)
            })?;
            read(&answer.to_bytes())
        };
        timeout(self.timeout, asked).await.map_err(|_| AgentError::TooLate(self.timeout))?
    }
}

/// The last cause of a failed request: the address is known to the caller.
fn lost(error: &(dyn Error + 'static)) -> AgentError {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    AgentError::Unreachable(cause.to_string())
}

impl HostAgent for HttpAgent {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        self.post(order).boxed()
    }
}

/// A body that is sent only while the lease holds. The client asks for the body once the connection is open
/// and the head of the request is written, which may be long after the start of the request. Without the
/// body the request is incomplete, and no server acts on it.
struct WhileItHolds {
    bytes: Option<Bytes>,
    lease: LeaseTerm,
}

impl Body for WhileItHolds {
    type Data = Bytes;
    type Error = AgentError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, AgentError>>> {
        Poll::Ready(match self.bytes.take() {
            Some(bytes) if self.lease.holds() => Some(Ok(Frame::data(bytes))),
            Some(_) => Some(Err(AgentError::NotSent)),
            None => None,
        })
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// The signature of a body: hexadecimal HMAC-SHA256 of timestamp, a dot and the body.
pub fn signature(key: &[u8], timestamp: &str, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(timestamp.as_bytes());
    mac.update(b".");
    mac.update(body);
    let mut text = String::new();
    for byte in mac.finalize().into_bytes() {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{HttpAgent, HttpAgentError, Protection, signature};
    use crate::agent::tests::order;
    use crate::agent::{AgentError, HostAgent, StepReport};
    use crate::steps::Step;
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    use std::time::Duration;
    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers one request with these bytes and gives the request.
    async fn once(listener: TcpListener, answer: &'static str) -> String {
        let (stream, _) = listener.accept().await.expect("a caller");
        reply(stream, answer).await
    }

    async fn reply(
        mut stream: impl AsyncRead + AsyncWrite + Unpin,
        answer: &'static str,
    ) -> String {
        let mut asked = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let read = stream.read(&mut buffer).await.expect("a request");
            asked.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&asked).into_owned();
            let length = text.to_ascii_lowercase().split("content-length: ").nth(1).map(|rest| {
                rest.split("\r\n").next().expect("a line").parse::<usize>().expect("a number")
            });
            let body = text.split_once("\r\n\r\n").map(|(_, body)| body.len());
            if body.is_some() && body == length {
                stream.write_all(answer.as_bytes()).await.expect("answered");
                return text;
            }
        }
    }

    async fn ask(answer: &'static str) -> (Result<StepReport, AgentError>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/steps", listener.local_addr().expect("an address"));
        let agent = HttpAgent::new(&url, signed(), Duration::from_millis(500)).expect("an agent");
        let order = order(1, Step::Preempt);
        let (report, asked) = tokio::join!(agent.ask(&order), once(listener, answer));
        (report, asked)
    }

    #[tokio::test]
    async fn order_is_posted_and_signed() {
        let done = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"state\":\"done\"}";
        let (report, asked) = ask(done).await;
        assert_eq!(report.expect("an answer"), StepReport::Done);
        let (head, body) = asked.split_once("\r\n\r\n").expect("head and body");
        assert!(head.starts_with("POST /steps HTTP/1.1\r\n"), "{head}");
        let header = |name: &str| {
            let line = head.lines().find(|line| line.starts_with(name)).expect("a header");
            line.split_once(": ").expect("a value").1.to_owned()
        };
        let at = header("x-ras-timestamp");
        assert_eq!(header("x-ras-signature"), signature(b"secret", &at, body.as_bytes()));
        assert!(body.contains("\"step\":\"preempt\""), "{body}");
        // Computed with Python's hmac.
        assert_eq!(
            signature(b"Jefe", "1767225600", b"{}"),
            "f9af0253920f01f15d2f7025018fea13eee543695b72830cba02e45e7db6a7c5"
        );
    }

    /// The lease ends while the connection is opened: the order does not arrive.
    #[tokio::test]
    async fn order_is_not_sent_after_the_lease_ended() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/steps", listener.local_addr().expect("an address"));
        let agent = HttpAgent::new(&url, signed(), Duration::from_secs(5)).expect("an agent");
        let order = order(1, Step::Reconfigure);
        let mut asking = std::pin::pin!(agent.ask(&order));
        // One poll: the connection is not open yet.
        assert!(
            futures_util::FutureExt::now_or_never(asking.as_mut()).is_none(),
            "it is under way"
        );
        order.lease.end();
        let (refused, arrived) = tokio::join!(asking, async {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut arrived = Vec::new();
            let _ = stream.read_to_end(&mut arrived).await;
            String::from_utf8_lossy(&arrived).into_owned()
        });
        assert!(matches!(refused, Err(AgentError::NotSent)), "{refused:?}");
        assert!(!arrived.contains("reconfigure"), "{arrived}");
        // A later order opens no connection.
        assert!(matches!(agent.ask(&order).await, Err(AgentError::NotSent)));
    }

    #[tokio::test]
    async fn invalid_answers_are_distinguished_from_lost_ones() {
        let (report, _) = ask("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(report, Err(AgentError::Unreachable(said)) if said.contains("503")));
        let (report, _) = ask("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert!(matches!(report, Err(AgentError::NotAnAnswer(_))));
        let (report, _) =
            ask("HTTP/1.1 302 Go\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(report, Err(AgentError::Unreachable(_))));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let agent = HttpAgent::new(&url, signed(), Duration::from_millis(50)).expect("an agent");
        let order = order(1, Step::Preempt);
        assert!(matches!(agent.ask(&order).await, Err(AgentError::TooLate(_))), "it never answers");
        drop(listener);
        assert!(matches!(agent.ask(&order).await, Err(AgentError::Unreachable(_))));
        for url in ["somewhere", "ftp://x/", "https://", "http://", "/path", ""] {
            let error = HttpAgent::new(url, signed(), Duration::from_secs(1)).err();
            assert!(matches!(error, Some(HttpAgentError::Url { .. })), "{url}: {error:?}");
        }
    }

    fn signed() -> Protection {
        Protection { key: Some(b"secret".to_vec()), ..Protection::default() }
    }

    #[test]
    fn cleartext_and_unsigned_orders_must_be_allowed_explicitly() {
        let new = |url: &str, protection: &Protection| {
            HttpAgent::new(url, protection.clone(), Duration::from_secs(1)).err()
        };
        let unsigned = Protection { unsigned: true, ..Protection::default() };
        for url in ["http://automation.example/", "http://10.0.0.7:80/", "http://[2001:db8::1]/x"] {
            for protection in [&signed(), &unsigned] {
                let error = new(url, protection).expect("refused").to_string();
                assert!(
                    error.contains("in clear") && error.contains("--agent-cleartext"),
                    "{error}"
                );
            }
            assert!(new(url, &Protection { cleartext: true, ..signed() }).is_none(), "{url}");
        }
        for url in ["http://localhost/", "http://127.0.0.1:9/", "http://[::1]:9/x"] {
            assert!(new(url, &signed()).is_none(), "{url}: it stays on this machine");
            let error = new(url, &Protection::default()).expect("refused").to_string();
            assert!(error.contains("unsigned") && error.contains("--agent-key"), "{error}");
            assert!(new(url, &unsigned).is_none(), "{url}: waived");
        }
        let both = Protection { unsigned: true, ..signed() };
        assert!(matches!(new("http://[::1]/", &both), Some(HttpAgentError::KeyAndUnsigned)));
        for pem in ["", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
        {
            let protection = Protection { authorities: Some(pem.into()), ..signed() };
            let error = new("https://automation.example/", &protection);
            assert!(
                matches!(error, Some(HttpAgentError::Authorities { .. })),
                "{pem:?}: {error:?}"
            );
        }
    }

    const CERTIFICATE: &[u8] =
        include_bytes!("../../../capacity-portal/tests/http/tls/one.cert.pem");
    const KEY: &[u8] = include_bytes!("../../../capacity-portal/tests/http/tls/one.key.pem");
    const OTHER: &[u8] = include_bytes!("../../../capacity-portal/tests/http/tls/two.cert.pem");

    /// Answers one request over TLS and gives it; `None`: the client closed the connection.
    async fn once_by_tls(listener: TcpListener, answer: &'static str) -> Option<String> {
        let chain = CertificateDer::pem_slice_iter(CERTIFICATE).collect::<Result<Vec<_>, _>>();
        let key = PrivateKeyDer::from_pem_slice(KEY).expect("a key");
        let provider = rustls::crypto::ring::default_provider();
        let config = rustls::ServerConfig::builder_with_provider(provider.into())
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(chain.expect("certificates"), key)
            .expect("a pair");
        let acceptor = tokio_rustls::TlsAcceptor::from(std::sync::Arc::new(config));
        let (stream, _) = listener.accept().await.expect("a caller");
        let stream = acceptor.accept(stream).await.ok()?;
        Some(reply(stream, answer).await)
    }

    #[tokio::test]
    async fn order_is_sent_over_tls_only_to_a_trusted_host() {
        let done = "HTTP/1.1 200 OK\r\ncontent-length: 16\r\n\r\n{\"state\":\"done\"}";
        for (host, authority, heard) in [
            ("localhost", CERTIFICATE, true),
            ("127.0.0.1", CERTIFICATE, true),
            ("localhost", OTHER, false),
            // This address reaches the listener, but the certificate does not name it.
            ("127.0.0.2", CERTIFICATE, false),
        ] {
            let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let url = format!("https://{host}:{port}/steps");
            let protection = Protection { authorities: Some(authority.to_vec()), ..signed() };
            let agent = HttpAgent::new(&url, protection, Duration::from_secs(20));
            let agent = agent.expect("an agent");
            let order = order(1, Step::Reconfigure);
            let (report, asked) = tokio::join!(agent.ask(&order), once_by_tls(listener, done));
            assert_eq!(asked.is_some(), heard, "{host}: no order leaves before the host is known");
            match asked {
                Some(asked) => {
                    assert_eq!(report.expect("an answer"), StepReport::Done);
                    assert!(asked.contains("x-ras-signature: "), "{asked}");
                }
                None => {
                    let error = report.expect_err("no answer").to_string();
                    assert!(error.contains("certificate"), "{error}");
                }
            }
        }
    }
}
