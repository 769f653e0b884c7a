//! Errors as pages, and the way to the sign-in page.

use super::layout::{NavItem, Page};
use super::{link, sign_in, ui};
use crate::http::Problem;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Response};
use maud::html;

/// The content type of forms.
const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Middleware that renders every error as a page. Where a token is missing it leads to the sign-in page, which keeps the
/// form that was sent; a form of an earlier session is shown to be sent again.
pub(super) async fn error_pages(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let (method, uri) = (parts.method.clone(), parts.uri.clone());
    let headers = parts.headers.clone();
    // It is in memory already, and limited.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let form =
        parts.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(FORM));
    let sent = (form && method == Method::POST).then(|| body.clone());
    let mut response = next.run(Request::from_parts(parts, body.into())).await;
    let own = response.extensions_mut().remove::<Problem>();
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let is_page = response
        .headers()
        .get(CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let problem = own.or_else(|| (is_error && !is_page).then(|| Problem::of(status)));
    if let Some(problem) = problem {
        let asked = uri.path_and_query().map_or("/", |asked| asked.as_str());
        if problem.status() == StatusCode::UNAUTHORIZED && method == Method::GET {
            let to = format!("/sign-in?next={}", link::segment(asked));
            *response.status_mut() = StatusCode::SEE_OTHER;
            *response.body_mut() = Body::empty();
            if let Ok(to) = HeaderValue::from_str(&to) {
                response.headers_mut().insert(LOCATION, to);
            }
        } else {
            let signed_out = problem.status() == StatusCode::UNAUTHORIZED;
            let sent = sent.as_deref().and_then(|sent| str::from_utf8(sent).ok());
            let kept = match sent {
                Some(sent) if signed_out => Some(sign_in::keeping(asked, sent)),
                Some(sent) if problem.code() == "csrf" => {
                    sign_in::of_earlier_session(asked, sent, &headers).await
                }
                _ => None,
            };
            let page = kept.unwrap_or_else(|| error(&problem)).0;
            *response.status_mut() = problem.status();
            *response.body_mut() = Body::from(page);
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
        }
    }
    response
}

/// Answers a path that is no route: with a page to those who ask for one.
pub(crate) async fn no_such_path(headers: HeaderMap) -> Response {
    let problem = Problem::of(StatusCode::NOT_FOUND);
    let wanted = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
    if wanted.contains("text/html") {
        (problem.status(), error(&problem)).into_response()
    } else {
        problem.into_response()
    }
}

fn error(problem: &Problem) -> Html<String> {
    let title = match problem.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::UNAUTHORIZED => "Signed out",
        StatusCode::SERVICE_UNAVAILABLE => "Temporarily unavailable",
        status if status.is_client_error() => "Request refused",
        _ => "Server error",
    };
    let body = html! {
        p.kicker { (problem.status().as_u16()) " · " code { (problem.code()) } }
        h1 { (title) }
        p.notice { (problem.detail()) }
        (ui::errors(problem))
        p.actions { a.button href="/" { "Back to the overview" } }
    };
    Page { nav: NavItem::Elsewhere, title, charts: false, body }.show_signed_out()
}
