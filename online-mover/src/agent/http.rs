//! Asks the operator's automation over HTTP.
//!
//! `POST` of a [`StepOrder`] as JSON; the answer is a [`StepReport`] as JSON with status 200. Any
//! other status, or none, is no answer, and the step is asked for again.
//!
//! With a key, each request is signed: `X-Ras-Timestamp` has the seconds since 1970, `X-Ras-Signature`
//! the HMAC-SHA256 of timestamp, a dot and the body, in hexadecimal. The receiver computes the same and
//! refuses what is minutes old, so that nobody else can have servers wiped, and nobody can repeat what
//! we once said.

use super::{AgentError, HostAgent, StepOrder, StepReport, read};
use broker::LeaseTerm;
use bytes::Bytes;
use chrono::Utc;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hmac::{Hmac, KeyInit, Mac};
use http_body::{Body, Frame, SizeHint};
use sha2::Sha256;
use std::fmt::Write;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// An answer is a few words; what is longer comes from somebody else.
const ANSWER_MAX: usize = 64 << 10;

/// Automation behind a URL.
pub struct HttpAgent {
    client: reqwest::Client,
    url: reqwest::Url,
    key: Option<Vec<u8>>,
    timeout: Duration,
}

/// The automation cannot be asked over HTTP.
#[derive(Debug, thiserror::Error)]
pub enum HttpAgentError {
    /// The URL is none.
    #[error("the automation's address {url:?} is not a URL of the form http://host:port/path")]
    Url {
        /// What it is.
        url: String,
    },
    /// The client cannot be made.
    #[error("asking over HTTP")]
    Client(#[source] reqwest::Error),
}

impl HttpAgent {
    /// Asks there; a request takes so long at most.
    ///
    /// # Errors
    /// [`HttpAgentError`].
    pub fn new(
        url: &str,
        key: Option<Vec<u8>>,
        timeout: Duration,
    ) -> Result<HttpAgent, HttpAgentError> {
        let parsed = reqwest::Url::parse(url).ok().filter(|url| url.scheme() == "http");
        let url = parsed.ok_or_else(|| HttpAgentError::Url { url: url.to_owned() })?;
        let client = reqwest::Client::builder()
            .timeout(timeout)
            // An answer from elsewhere is none.
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(HttpAgentError::Client)?;
        Ok(HttpAgent { client, url, key, timeout })
    }

    async fn post(&self, order: &StepOrder) -> Result<StepReport, AgentError> {
        order.may_be_sent()?;
        let body = serde_json::to_vec(order).expect("an order has no map and no float");
        let mut request = self.client.post(self.url.clone());
        request = request.header("content-type", "application/json");
        if let Some(key) = &self.key {
            #[expect(clippy::disallowed_methods, reason = "a signature says when it was made")]
            let at = Utc::now().timestamp().to_string();
            request = request.header("x-ras-signature", signature(key, &at, &body));
            request = request.header("x-ras-timestamp", at);
        }
        let body = WhileItHolds { bytes: Some(body.into()), lease: order.lease.clone() };
        let sent = request.body(reqwest::Body::wrap(body)).send().await;
        let mut response =
            sent.map_err(|error| order.may_be_sent().err().unwrap_or_else(|| self.lost(&error)))?;
        let status = response.status();
        if !status.is_success() {
            return Err(AgentError::Unreachable(format!("it answers {status}")));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.lost(&error))? {
            answer.extend_from_slice(&chunk);
            if answer.len() > ANSWER_MAX {
                return Err(AgentError::NotAnAnswer("it does not end".to_owned()));
            }
        }
        read(&answer)
    }

    fn lost(&self, error: &reqwest::Error) -> AgentError {
        if error.is_timeout() {
            return AgentError::TooLate(self.timeout);
        }
        // The address is known, and the cause is what tells.
        let mut said = String::new();
        let mut cause: Option<&dyn std::error::Error> = Some(error);
        while let Some(this) = cause {
            said = this.to_string();
            cause = this.source();
        }
        AgentError::Unreachable(said)
    }
}

impl HostAgent for HttpAgent {
    fn ask<'a>(&'a self, order: &'a StepOrder) -> BoxFuture<'a, Result<StepReport, AgentError>> {
        self.post(order).boxed()
    }
}

/// A body that is sent only while the lease holds. It is asked for when the connection is there and the head
/// of the request is written, which may be long after the request was begun; without it the request is
/// incomplete, and no server acts on it.
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

/// Signs a body at a time.
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
    use super::{HttpAgent, HttpAgentError, signature};
    use crate::agent::tests::order;
    use crate::agent::{AgentError, HostAgent, StepReport};
    use crate::steps::Step;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// Answers one request with these bytes and gives what was asked.
    async fn once(listener: TcpListener, answer: &'static str) -> String {
        let (mut stream, _) = listener.accept().await.expect("a caller");
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
        let key = Some(b"secret".to_vec());
        let agent = HttpAgent::new(&url, key, Duration::from_millis(500)).expect("an agent");
        let order = order(1, Step::Preempt);
        let (report, asked) = tokio::join!(agent.ask(&order), once(listener, answer));
        (report, asked)
    }

    #[tokio::test]
    async fn orders_are_posted_and_signed() {
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
        // As Python's hmac has it.
        assert_eq!(
            signature(b"Jefe", "what do ya want for nothing?", b""),
            "38c6c848e5a2f57451f5095df6370d5c9b83175b99df46422b34960c28def6ae"
        );
    }

    /// The lease ends while the connection is being made: the order does not arrive.
    #[tokio::test]
    async fn an_order_is_not_sent_after_the_lease() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/steps", listener.local_addr().expect("an address"));
        let agent = HttpAgent::new(&url, None, Duration::from_secs(5)).expect("an agent");
        let order = order(1, Step::Reconfigure);
        let mut asking = std::pin::pin!(agent.ask(&order));
        let begun = tokio::time::timeout(Duration::ZERO, asking.as_mut()).await;
        assert!(begun.is_err(), "it is under way");
        order.lease.end();
        let (refused, arrived) = tokio::join!(asking, async {
            let (mut stream, _) = listener.accept().await.expect("a caller");
            let mut arrived = Vec::new();
            let _ = stream.read_to_end(&mut arrived).await;
            String::from_utf8_lossy(&arrived).into_owned()
        });
        assert!(matches!(refused, Err(AgentError::NotSent)), "{refused:?}");
        assert!(!arrived.contains("reconfigure"), "{arrived}");
        // Nor is a connection made for one that comes later.
        assert!(matches!(agent.ask(&order).await, Err(AgentError::NotSent)));
    }

    #[tokio::test]
    async fn what_is_no_answer_is_told_apart() {
        let (report, _) = ask("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(report, Err(AgentError::Unreachable(said)) if said.contains("503")));
        let (report, _) = ask("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert!(matches!(report, Err(AgentError::NotAnAnswer(_))));
        let (report, _) =
            ask("HTTP/1.1 302 Go\r\nlocation: http://x/\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(report, Err(AgentError::Unreachable(_))));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let agent = HttpAgent::new(&url, None, Duration::from_millis(50)).expect("an agent");
        let order = order(1, Step::Preempt);
        assert!(matches!(agent.ask(&order).await, Err(AgentError::TooLate(_))), "it never answers");
        drop(listener);
        assert!(matches!(agent.ask(&order).await, Err(AgentError::Unreachable(_))));
        for url in ["somewhere", "ftp://x/", "https://x/"] {
            let error = HttpAgent::new(url, None, Duration::from_secs(1)).err().expect("refused");
            assert!(matches!(error, HttpAgentError::Url { .. }));
        }
    }
}
