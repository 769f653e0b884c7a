//! Signing in to the pages: cookies, other people's pages, and the end of a session.

use crate::place::{Place, ROOT, answer, tokens};
use crate::who_may::token;
use broker::Role;
use capacity_portal::{Authority, PortalSettings};
use reqwest::{Method, Response, redirect};
use std::time::Duration;

/// A browser: it is told where to go, and does not go there by itself.
pub fn browser() -> reqwest::Client {
    reqwest::Client::builder().redirect(redirect::Policy::none()).build().expect("a client")
}

async fn sign_in(place: &Place, body: String) -> Response {
    let request = browser().post(format!("{}/sign-in", place.base)).body(body);
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    request.send().await.expect("an answer")
}

fn header(response: &Response, name: &str) -> String {
    response.headers()[name].to_str().expect("text").to_owned()
}

/// Signs in with a token; returns the cookie to send.
pub async fn cookie(place: &Place, secret: &str) -> String {
    let response = sign_in(place, format!("token={secret}")).await;
    assert_eq!(response.status(), 303);
    header(&response, "set-cookie").split(';').next().expect("a cookie").to_owned()
}

/// Asks with a cookie, and with headers.
async fn send(
    place: &Place,
    method: Method,
    path: &str,
    cookie: &str,
    headers: &[(&str, &str)],
) -> Response {
    let mut request = browser().request(method, format!("{}{path}", place.base));
    request = request.header("cookie", cookie);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.expect("an answer")
}

pub async fn csrf(place: &Place, cookie: &str) -> String {
    let (status, me) = answer(send(place, Method::GET, "/v1/whoami", cookie, &[]).await).await;
    assert_eq!(status, 200, "{me}");
    me["csrf"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn session_has_the_roles_of_its_token() {
    let place = Place::closed().await;
    let form = place.send(Method::GET, "/sign-in?next=//evil.example", None, "").await;
    assert_eq!(form.status(), 200);
    let page = form.text().await.expect("text");
    assert!(page.contains("type=\"password\"") && !page.contains("evil.example"), "{page}");

    for (body, status) in [
        ("token=nothing".to_owned(), 401),
        (String::new(), 400),
        (format!("token={ROOT}&role=admin"), 400),
    ] {
        let response = sign_in(&place, body.clone()).await;
        assert_eq!(response.status(), status, "{body}");
        assert!(!response.headers().contains_key("set-cookie"));
    }
    // What is wrong is not shown again.
    let wrong =
        sign_in(&place, "token=%3Cb%3Emistyped".to_owned()).await.text().await.expect("text");
    assert!(!wrong.contains("mistyped"), "{wrong}");

    let response = sign_in(&place, format!("token={ROOT}&next=%2Freservations%2Fa")).await;
    assert_eq!(
        (response.status().as_u16(), &*header(&response, "location")),
        (303, "/reservations/a")
    );
    let said = header(&response, "set-cookie");
    assert!(said.starts_with("ras-session="), "{said}");
    for flag in ["HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(said.contains(flag), "{said}");
    }
    assert!(!said.contains("Secure") && !said.contains(ROOT), "{said}");
    let elsewhere = sign_in(&place, format!("token={ROOT}&next=//evil.example")).await;
    assert_eq!(header(&elsewhere, "location"), "/");

    let cookie = said.split(';').next().expect("a cookie");
    let csrf = csrf(&place, cookie).await;
    assert!(!cookie.contains(&csrf));
    let read = send(&place, Method::GET, "/v1/reservations/a/servers", cookie, &[]).await;
    assert_eq!(read.status(), 200);
    let tampered = format!("{cookie}x");
    let read = send(&place, Method::GET, "/v1/reservations/a/servers", &tampered, &[]).await;
    assert_eq!(read.status(), 401);

    // Signing out ends the session for every copy of the cookie.
    let out = send(&place, Method::POST, "/sign-out", cookie, &[("x-csrf-token", &csrf)]).await;
    assert_eq!((out.status().as_u16(), &*header(&out, "location")), (303, "/sign-in"));
    assert!(header(&out, "set-cookie").contains("Max-Age=0"));
    let read = send(&place, Method::GET, "/v1/whoami", cookie, &[]).await;
    assert_eq!(read.status(), 401);
}

#[tokio::test]
async fn cross_site_write_is_rejected() {
    let place = Place::new().await;
    let cookie = cookie(&place, ROOT).await;
    let csrf = csrf(&place, &cookie).await;
    let host = place.base.clone();
    let post = async |headers: &[(&str, &str)]| {
        send(&place, Method::POST, "/ops/v1/moves/resume", &cookie, headers).await
    };
    let good = ("x-csrf-token", &*csrf);
    for headers in [
        vec![],
        vec![("x-csrf-token", "")],
        vec![("x-csrf-token", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")],
        vec![("sec-fetch-site", "same-origin")],
        vec![good, ("sec-fetch-site", "cross-site")],
        vec![good, ("sec-fetch-site", "same-site")],
        vec![good, ("sec-fetch-site", "none")],
        vec![good, ("origin", "https://evil.example")],
        vec![good, ("origin", "null")],
    ] {
        let (status, problem) = answer(post(&headers).await).await;
        assert_eq!((status.as_u16(), &problem["code"]), (403, &"csrf".into()), "{headers:?}");
    }
    for headers in
        [vec![good], vec![good, ("sec-fetch-site", "same-origin")], vec![good, ("origin", &*host)]]
    {
        assert_ne!(post(&headers).await.status(), 403, "{headers:?}");
    }
    // With the field of the form; and without it from another site.
    let form = async |body: String| {
        let request = browser().post(format!("{}/sign-out", place.base)).header("cookie", &cookie);
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        request.body(body).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(form("csrf=wrong".to_owned()).await, 403);
    assert_eq!(form(String::new()).await, 403);
    let me = send(&place, Method::GET, "/v1/whoami", &cookie, &[]).await;
    assert_eq!(me.status(), 200, "still signed in");
    assert_eq!(form(format!("csrf={csrf}")).await, 303);
    // A page of another site cannot sign in.
    let request = browser().post(format!("{}/sign-in", place.base)).body(format!("token={ROOT}"));
    let request = request.header("content-type", "application/x-www-form-urlencoded");
    let response = request.header("sec-fetch-site", "cross-site").send().await.expect("an answer");
    assert_eq!(response.status(), 403);
    assert!(!response.headers().contains_key("set-cookie"));
}

#[tokio::test]
async fn revoked_token_ends_its_sessions() {
    let place = Place::new().await;
    let secret = token(&place, "ann", Role::Viewer, Some("a")).await;
    let cookie = cookie(&place, &secret).await;
    let status =
        async |path: &str| send(&place, Method::GET, path, &cookie, &[]).await.status().as_u16();
    assert_eq!(status("/v1/reservations/a/servers").await, 200);
    assert_eq!(status("/v1/reservations/b%2F%C3%BC/servers").await, 404, "its owner's alone");
    place.broker.revoke_token("test", "ann").await.expect("revoked");
    let over = async {
        while status("/v1/whoami").await != 401 {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), over).await.expect("within seconds");
}

#[tokio::test]
async fn session_cookie_is_secure_behind_tls() {
    let authority = Authority::new(tokens(), false).expect("tokens");
    let settings = PortalSettings { authority, tls_before: true, ..PortalSettings::default() };
    let place = Place::set(settings).await;
    let response = sign_in(&place, format!("token={ROOT}")).await;
    let said = header(&response, "set-cookie");
    assert!(said.starts_with("__Host-ras-session=") && said.contains("Secure"), "{said}");
    assert!(header(&response, "strict-transport-security").contains("max-age="));
    let cookie = said.split(';').next().expect("a cookie");
    csrf(&place, cookie).await;
    // A cookie that a page without TLS could have set is ignored.
    let plain = cookie.replace("__Host-", "");
    assert_eq!(send(&place, Method::GET, "/v1/whoami", &plain, &[]).await.status(), 401);
}

#[tokio::test]
async fn form_sent_signed_out_is_kept_until_signed_in() {
    let place = Place::closed().await;
    let form = "reservation=web&why=a+%3Clong%3E+reason&csrf=old";
    let sent = browser().post(format!("{}/emergencies", place.base)).body(form);
    let sent = sent.header("content-type", "application/x-www-form-urlencoded");
    let sent = sent.send().await.expect("an answer");
    assert_eq!(sent.status(), 401);
    let page = sent.text().await.expect("text");
    assert!(
        page.contains("What you typed is kept") && page.contains("type=\"password\""),
        "{page}"
    );
    let hidden = "name=\"kept\" value=\"reservation=web&amp;why=a+%3Clong%3E+reason&amp;csrf=old\"";
    assert!(
        page.contains(hidden) && page.contains("name=\"next\" value=\"/emergencies\""),
        "{page}"
    );

    // A wrong token keeps it, too.
    let kept = "kept=reservation%3Dweb%26why%3Da%2B%253Clong%253E%2Breason%26csrf%3Dold&next=%2Femergencies";
    let wrong = sign_in(&place, format!("token=nothing&{kept}")).await;
    assert!(wrong.text().await.expect("text").contains(hidden));

    // Signed in, it is shown, and sent by its reader only.
    let response = sign_in(&place, format!("token={ROOT}&{kept}")).await;
    assert_eq!(response.status(), 200);
    let cookie = header(&response, "set-cookie").split(';').next().expect("a cookie").to_owned();
    let page = response.text().await.expect("text");
    assert!(page.contains("action=\"/emergencies\""), "{page}");
    assert!(page.contains("name=\"why\" value=\"a &lt;long&gt; reason\""), "{page}");
    let own = csrf(&place, &cookie).await;
    assert!(page.contains(&own) && !page.contains("value=\"old\""), "{page}");

    // A form of the earlier session is kept for this one, unless another site may have sent it.
    for (origin, kept) in
        [(Some(place.base.as_str()), true), (Some("http://other.example"), false), (None, false)]
    {
        let sent = browser().post(format!("{}/emergencies", place.base)).body(form);
        let sent = sent.header("content-type", "application/x-www-form-urlencoded");
        let sent = sent.header("cookie", &cookie);
        let sent = match origin {
            Some(origin) => sent.header("origin", origin),
            None => sent,
        };
        let sent = sent.send().await.expect("an answer");
        assert_eq!(sent.status(), 403);
        let page = sent.text().await.expect("text");
        let shown =
            page.contains("name=\"why\" value=\"a &lt;long&gt; reason\"") && page.contains(&own);
        assert_eq!(shown, kept, "{origin:?}: {page}");
    }
}
