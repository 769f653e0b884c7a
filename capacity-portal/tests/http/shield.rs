//! What stands before every route: headers, sizes, times, how often; and what logs never have.

use crate::place::{Place, ROOT, WATCH, answer, tokens};
use crate::who_may::token;
use broker::Role;
use capacity_portal::{Authority, PortalSettings};
use reqwest::Method;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::time::Instant;
use tracing_subscriber::fmt::MakeWriter;

#[tokio::test]
async fn every_response_has_security_headers() {
    let place = Place::new().await;
    for path in
        ["/live", "/metrics", "/sign-in", "/v1/whoami", "/v1/nowhere", "/nowhere", "/openapi.json"]
    {
        let response = place.send(Method::GET, path, None, "").await;
        let header = |name: &str| response.headers()[name].to_str().expect("text").to_owned();
        let policy = header("content-security-policy");
        for part in
            ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"]
        {
            assert!(policy.contains(part), "{path}: {policy}");
        }
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(header("referrer-policy"), "same-origin", "{path}");
        assert_eq!(header("cache-control"), "no-store", "{path}");
        assert!(!response.headers().contains_key("strict-transport-security"), "there is no TLS");
    }
}

/// A zero character is rejected on every path and for every caller.
#[tokio::test]
async fn zero_character_in_a_path_is_rejected() {
    let place = Place::new().await;
    for path in [
        "/v1/reservations/%00",
        "/v1/reservations/a%00/servers",
        "/v1/reservations?owner=%00",
        "/ops/v1/servers/s00%00",
        "/ops/v1/moves?server=%00",
        "/reservations/a%00/servers",
        "/servers/s00%00",
        "/trail?subject=a%00b",
        "/maintenance/plan?scope=rack&scope_id=a%00b&length=60&why=x",
        "/assets/%00",
        "/nowhere/%00",
    ] {
        for (method, token) in
            [(Method::GET, None), (Method::GET, Some(ROOT)), (Method::POST, None)]
        {
            let response = place.send(method, path, token, "").await;
            assert_eq!(response.status(), 400, "{path}");
            let said = response.text().await.expect("text");
            assert!(said.contains("zero character"), "{path}: {said}");
        }
    }
}

#[tokio::test]
async fn oversized_and_deep_bodies_are_rejected() {
    let place = Place::new().await;
    let post = async |path: &str, body: String| {
        answer(place.send(Method::POST, path, Some(ROOT), body).await).await
    };
    for path in ["/ops/v1/events", "/ops/v1/usage", "/ops/v1/emergencies", "/ops/v1/maintenance"] {
        for deep in
            ["[".repeat(100_000), "{\"a\":".repeat(100_000), format!("{}1", "[".repeat(200))]
        {
            let (status, problem) = post(path, deep).await;
            assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()), "{path}");
        }
        let (status, problem) = post(path, " ".repeat(5 << 20)).await;
        assert_eq!((status.as_u16(), &problem["code"]), (413, &"body_too_large".into()), "{path}");
    }
    assert_eq!(place.send(Method::GET, "/live", None, "").await.status(), 200);
}

/// Says something byte by byte until it is hung up on, or too long; what is answered, and when.
fn drip(address: String, first: String, drop: &'static [u8]) -> (String, Duration) {
    let begun = Instant::now();
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(Duration::from_millis(500))).expect("set");
    stream.write_all(first.as_bytes()).expect("said");
    let mut said = Vec::new();
    while begun.elapsed() < Duration::from_secs(50) {
        let mut some = [0; 4096];
        match stream.read(&mut some) {
            Ok(0) => break,
            Ok(count) => said.extend_from_slice(&some[..count]),
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => break,
        }
        if stream.write_all(drop).is_err() {
            break;
        }
    }
    (String::from_utf8_lossy(&said).into_owned(), begun.elapsed())
}

#[tokio::test]
async fn slow_request_is_cut_off() {
    let place = Place::new().await;
    let address = place.base.strip_prefix("http://").expect("a base").to_owned();
    let head = "POST /ops/v1/events HTTP/1.1\r\nHost: here\r\nContent-Length: 100000\r\n";
    let head = format!("{head}Authorization: Bearer {WATCH}\r\n\r\n");
    let (one, two) = (address.clone(), address);
    let body = tokio::task::spawn_blocking(move || drip(one, head, b"["));
    let head = tokio::task::spawn_blocking(move || {
        drip(two, "GET /live HTTP/1.1\r\nHost: here\r\n".to_owned(), b"X")
    });
    let (answered, after) = body.await.expect("it ran");
    assert!(
        answered.starts_with("HTTP/1.1 408 ") && answered.contains("body_too_slow"),
        "{answered}"
    );
    assert!((5..40).contains(&after.as_secs()), "{after:?}");
    let (answered, after) = head.await.expect("it ran");
    assert!(!answered.contains("200 OK"), "{answered}");
    assert!((5..40).contains(&after.as_secs()), "{after:?}");
}

#[tokio::test]
async fn rate_limit_sets_retry_after() {
    let authority = Authority::new(tokens(), false).expect("tokens");
    let requests_per_second = NonZeroU32::new(5);
    let settings = PortalSettings { authority, requests_per_second, ..PortalSettings::default() };
    let place = Place::set(settings).await;
    let mut refused = 0;
    let begun = Instant::now();
    for _ in 0..60 {
        let sent = place.send(Method::GET, "/v1/whoami", Some(WATCH), "").await;
        if sent.status() == 429 {
            assert_eq!(sent.headers()["retry-after"], "1");
            let (_, problem) = answer(sent).await;
            assert_eq!(problem["code"], "too_many_requests");
            refused += 1;
        }
    }
    // A slow machine asks less often.
    let allowed = 6 + 5 * (begun.elapsed().as_secs() + 1);
    assert!(60 - refused <= allowed, "{refused} refused, {allowed} allowed");
    let other = place.send(Method::GET, "/v1/whoami", Some(ROOT), "").await;
    assert_eq!(other.status(), 200, "another caller");
}

/// What was logged.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no thread panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logged {
    type Writer = Logged;

    fn make_writer(&'a self) -> Logged {
        self.clone()
    }
}

#[tokio::test]
async fn secrets_are_never_logged() {
    let logged = Logged::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(logged.clone())
        .finish();
    // All of a test runs on one thread: the portal and everything below it.
    let _guard = tracing::subscriber::set_default(subscriber);
    let place = Place::new().await;
    let secret = token(&place, "ann", Role::Admin, None).await;
    let wrong = secret.replace("ras_", "ras_a");
    for said in [&*secret, &wrong, WATCH, "an unknown secret"] {
        place.send(Method::GET, "/v1/whoami", Some(said), "").await;
        place.send(Method::POST, "/ops/v1/events", Some(said), "no JSON").await;
        let form =
            place.client.post(format!("{}/sign-in", place.base)).body(format!("token={said}"));
        let form = form.header("content-type", "application/x-www-form-urlencoded");
        let answer = form.send().await.expect("an answer");
        if let Some(cookie) = answer.headers().get("set-cookie") {
            let cookie = cookie.to_str().expect("text").split(';').next().expect("a cookie");
            let request = place.client.get(format!("{}/v1/whoami", place.base));
            let me = request.header("cookie", cookie).send().await.expect("an answer");
            assert_eq!(me.status(), 200);
            let value = cookie.split_once('=').expect("a value").1;
            let text = String::from_utf8_lossy(&logged.0.lock().expect("logs")).into_owned();
            assert!(!text.contains(value), "the session is in the log");
        }
    }
    let body = r#"{"name": "web", "role": "viewer"}"#;
    let (_, made) =
        answer(place.send(Method::POST, "/ops/v1/tokens", Some(&secret), body).await).await;
    let made = made["secret"].as_str().expect("a secret");
    let text = String::from_utf8_lossy(&logged.0.lock().expect("logs")).into_owned();
    assert!(text.contains("signed in"), "something is logged");
    for said in [&*secret, &wrong, WATCH, "an unknown secret", made] {
        let line = text.lines().find(|line| line.contains(said));
        assert!(line.is_none(), "{line:?}");
    }
}
