//! Signing in with a token, and out.

use super::frame::{Page, Place};
use crate::api::Site;
use crate::api::caller::{Caller, own_page, session_cookie, session_secret};
use crate::api::problem::Problem;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{ConnectInfo, Form, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::Cookie;
use maud::html;
use serde::Deserialize;
use std::net::SocketAddr;

/// Where to go afterwards.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Next {
    next: String,
}

/// What the form says.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Said {
    token: String,
    #[serde(default)]
    next: String,
}

/// A path of our own, or the first page: a link may not send people elsewhere.
fn local(next: &str) -> &str {
    let own = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if own { next } else { "/" }
}

fn markup(next: &str, wrong: Option<&str>) -> Html<String> {
    let body = html! {
        div.box.narrow {
            h1 { "Sign in" }
            @if let Some(wrong) = wrong {
                p.error #wrong role="alert" { (wrong) }
            }
            form.fields method="post" action="/sign-in" {
                input type="hidden" name="next" value=(local(next));
                div.field { label for="token" { "Token" }
                    input #token type="password" name="token" autocomplete="current-password"
                        required autofocus aria-describedby=(if wrong.is_some() { "wrong token-hint" } else { "token-hint" });
                    span.hint #token-hint { code { "ras token create" } " makes one" } }
                div.actions { button.main type="submit" { "Sign in" } }
            }
        }
    };
    Page { place: Place::Elsewhere, title: "Sign in", charts: false, body }.show_to_all()
}

/// The form.
pub(super) async fn page(next: Result<Query<Next>, QueryRejection>) -> Html<String> {
    let Query(Next { next }) = next.unwrap_or_default();
    markup(&next, None)
}

/// Signs in: a session, and its cookie.
pub(super) async fn sign_in(
    State(site): State<Site>,
    ConnectInfo(from): ConnectInfo<SocketAddr>,
    headers: HeaderMap,
    said: Result<Form<Said>, FormRejection>,
) -> Result<Response, Problem> {
    own_page(&headers)?;
    let refused = |error: FormRejection| Problem::bad_request("malformed", error.body_text());
    let Form(Said { token, next }) = said.map_err(refused)?;
    match site.guard.token(token.trim(), from.ip()).await {
        Ok(token) => {
            let session = site.guard.sign_in(&token).await?;
            let cookie = session_cookie(session.expose(), site.guard.is_secure());
            let jar = CookieJar::default().add(cookie);
            Ok((jar, Redirect::to(local(&next))).into_response())
        }
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            let wrong = "This is none of the tokens that are good now.";
            Ok((StatusCode::UNAUTHORIZED, markup(&next, Some(wrong))).into_response())
        }
        Err(problem) => Err(problem),
    }
}

/// Signs out: the session ends everywhere, and its cookie goes.
pub(super) async fn sign_out(
    State(site): State<Site>,
    _caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let secure = site.guard.is_secure();
    if let Some(session) = session_secret(&headers, secure) {
        site.guard.sign_out(&session).await?;
    }
    let mut cookie: Cookie<'static> = session_cookie("", secure);
    cookie.make_removal();
    // Said in full, whatever the request had.
    Ok((CookieJar::default().add(cookie), Redirect::to("/sign-in")).into_response())
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn a_link_leads_to_a_page_of_ours() {
        for next in ["/", "/reservations/a?x=1"] {
            assert_eq!(local(next), next);
        }
        for next in
            ["", "//evil.example", "/\\evil.example", "https://evil.example", "/a\tb", "/\u{fc}"]
        {
            assert_eq!(local(next), "/", "{next}");
        }
    }
}
