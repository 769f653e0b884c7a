//! Sign-in with a token, and sign-out.

use super::layout::{NavItem, Page};
use crate::http::auth::cache::csrf;
use crate::http::auth::caller::{Caller, address, same_origin, session_cookie, session_secret};
use crate::http::{Problem, Site};
use axum::body::Body;
use axum::extract::rejection::{FormRejection, QueryRejection};
use axum::extract::{Form, FromRequest, Query, State};
use axum::http::header::{CONTENT_TYPE, ORIGIN};
use axum::http::{Extensions, HeaderMap, Request, StatusCode};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum_extra::extract::CookieJar;
use axum_extra::extract::cookie::Cookie;
use maud::html;
use serde::Deserialize;

/// Path to open after sign-in.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Next {
    next: String,
}

/// The sign-in form.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SignInForm {
    token: String,
    #[serde(default)]
    next: String,
    /// The form that was sent to `next` without a session, as it was sent; empty: none.
    #[serde(default)]
    kept: String,
}

/// The path if it is on this server, else the overview: a link must not redirect to another site.
fn local(next: &str) -> &str {
    let is_local = next.starts_with('/')
        && !next.starts_with("//")
        && next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
    if is_local { next } else { "/" }
}

/// The sign-in page in place of the answer to a form, which is kept.
pub(super) fn keeping(path: &str, form: &str) -> Html<String> {
    markup(path, form, Some("You are signed out. What you typed is kept: sign in, then send it."))
}

fn markup(next: &str, kept: &str, wrong: Option<&str>) -> Html<String> {
    let body = html! {
        div.box.narrow {
            h1 { "Sign in" }
            @if let Some(wrong) = wrong {
                p.error #wrong role="alert" { (wrong) }
            }
            form.fields method="post" action="/sign-in" {
                input type="hidden" name="next" value=(local(next));
                @if !kept.is_empty() { input type="hidden" name="kept" value=(kept); }
                div.field { label for="token" { "Token" }
                    input #token type="password" name="token" autocomplete="current-password"
                        required autofocus aria-describedby=(if wrong.is_some() { "wrong token-hint" } else { "token-hint" });
                    span.hint #token-hint { "An operator creates tokens with " code { "ras token create" } "." } }
                div.actions { button.main type="submit" { "Sign in" } }
            }
        }
    };
    Page { nav: NavItem::Elsewhere, title: "Sign in", charts: false, body }.show_signed_out()
}

/// The page in place of the answer to a form of an earlier session of the same browser, which is kept; `None`: the
/// request may come from a page of another site.
pub(super) async fn of_earlier_session(
    path: &str,
    form: &str,
    headers: &HeaderMap,
) -> Option<Html<String>> {
    let says_origin = headers.contains_key("sec-fetch-site") || headers.contains_key(ORIGIN);
    if !says_origin || same_origin(headers).is_err() {
        return None;
    }
    let session = session_secret(headers, true).or_else(|| session_secret(headers, false))?;
    send_again(path, form.to_owned(), &csrf(&session)).await.ok()
}

/// The page that sends a kept form, once its reader agrees.
async fn send_again(path: &str, kept: String, csrf: &str) -> Result<Html<String>, Problem> {
    let refused = |error: FormRejection| Problem::bad_request("malformed", error.body_text());
    let form = Request::post("/").header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let form = form.body(Body::from(kept)).expect("a request");
    let Form(fields): Form<Vec<(String, String)>> =
        Form::from_request(form, &()).await.map_err(refused)?;
    // That of the session that is over.
    let fields = fields.iter().filter(|(name, _)| name != "csrf");
    let body = html! {
        div.box.narrow {
            h1 { "Nothing was sent yet" }
            p { "You have signed in since the page was opened. This is what you typed:" }
            form.fields method="post" action=(local(path)) {
                input type="hidden" name="csrf" value=(csrf);
                dl.differences { @for (name, value) in fields {
                    input type="hidden" name=(name) value=(value);
                    @if !value.is_empty() { div { dt { (name.replace(['_', '.'], " ")) } dd { (value) } } }
                } }
                div.actions { button.main type="submit" { "Send" } a.button href="/" { "Discard" } }
            }
        }
    };
    Ok(Page { nav: NavItem::Elsewhere, title: "Nothing was sent yet", charts: false, body }
        .show_signed_out())
}

/// Handler of `GET /sign-in`.
pub(super) async fn page(next: Result<Query<Next>, QueryRejection>) -> Html<String> {
    let Query(Next { next }) = next.unwrap_or_default();
    markup(&next, "", None)
}

/// Handler of `POST /sign-in`: starts a session and sets its cookie.
pub(super) async fn sign_in(
    State(site): State<Site>,
    extensions: Extensions,
    headers: HeaderMap,
    form: Result<Form<SignInForm>, FormRejection>,
) -> Result<Response, Problem> {
    same_origin(&headers)?;
    let refused = |error: FormRejection| Problem::bad_request("malformed", error.body_text());
    let Form(SignInForm { token, next, kept }) = form.map_err(refused)?;
    match site.tokens.token(token.trim(), address(&extensions)).await {
        Ok(token) => {
            let session = site.tokens.sign_in(&token).await?;
            let cookie = session_cookie(session.expose(), site.tokens.is_secure());
            let jar = CookieJar::default().add(cookie);
            if !kept.is_empty() {
                let page = send_again(&next, kept, &csrf(session.expose())).await?;
                return Ok((jar, page).into_response());
            }
            Ok((jar, Redirect::to(local(&next))).into_response())
        }
        Err(problem) if problem.status() == StatusCode::UNAUTHORIZED => {
            let wrong = "Invalid or expired token.";
            Ok((StatusCode::UNAUTHORIZED, markup(&next, &kept, Some(wrong))).into_response())
        }
        Err(problem) => Err(problem),
    }
}

/// Handler of `POST /sign-out`: ends the session and removes its cookie.
pub(super) async fn sign_out(
    State(site): State<Site>,
    _caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let secure = site.tokens.is_secure();
    if let Some(session) = session_secret(&headers, secure) {
        site.tokens.sign_out(&session).await?;
    }
    let mut cookie: Cookie<'static> = session_cookie("", secure);
    cookie.make_removal();
    // The removal is sent even if the request had no cookie.
    Ok((CookieJar::default().add(cookie), Redirect::to("/sign-in")).into_response())
}

#[cfg(test)]
mod tests {
    use super::local;

    #[test]
    fn redirect_stays_on_this_server() {
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
