//! What every page has: head, navigation, account, and how errors are shown.

use super::asset::{self, Asset};
use super::link;
use super::part;
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::caller::Caller;
use crate::api::problem::Problem;
use axum::body::Body;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{Html, Response};
use maud::{DOCTYPE, Markup, html};
use std::sync::Arc;

/// A place of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Overview,
    Reservations,
    Request,
    Solves,
    Failures,
    Maintenance,
    Drills,
    Emergencies,
    Settings,
    Trail,
    Stuck,
    /// None of them.
    Elsewhere,
}

impl Place {
    /// Whether it is about one owner's things.
    const fn is_of_owners(self) -> bool {
        matches!(self, Place::Reservations | Place::Request)
    }
}

/// The navigation in order: place, path, title.
const PLACES: [(Place, &str, &str); 11] = [
    (Place::Overview, "/", "Overview"),
    (Place::Reservations, "/reservations", "Reservations"),
    (Place::Request, "/request", "Request"),
    (Place::Solves, "/solves", "Solves"),
    (Place::Failures, "/failures", "Failures"),
    (Place::Maintenance, "/maintenance", "Maintenance"),
    (Place::Drills, "/drills", "Drills"),
    (Place::Emergencies, "/emergencies", "Emergencies"),
    (Place::Settings, "/settings", "Settings"),
    (Place::Trail, "/trail", "Trail"),
    (Place::Stuck, "/stuck", "Stuck"),
];

/// Somebody who may read pages: those of one owner or of all.
pub(super) struct Reader {
    caller: Caller,
}

impl Reader {
    /// The name for the audit trail, if this reader may act in this role.
    pub(super) fn needs(&self, role: Role) -> Result<Arc<str>, Problem> {
        self.caller.needs(role)
    }

    /// Whether this reader may act in this role: whether a page offers it.
    pub(super) fn may(&self, role: Role) -> bool {
        self.needs(role).is_ok()
    }

    /// As the interface knows it.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether this reader may know of what this owner has.
    pub(super) fn sees(&self, owner: &str) -> bool {
        self.caller.sees(owner)
    }

    /// Whether this reader may know of one owner's things alone.
    pub(super) fn is_scoped(&self) -> bool {
        self.caller.scope().is_some()
    }

    /// An MSB's name, which leads to its page whoever may read that.
    pub(super) fn msb(&self, name: &str) -> Markup {
        html! { @if self.is_scoped() { (name) } @else { a href=(link::msb(name)) { (name) } } }
    }

    /// What every form says, so that no other site can send it.
    pub(super) fn csrf(&self) -> Markup {
        html! {
            @if let Some(csrf) = self.caller.csrf() { input type="hidden" name="csrf" value=(csrf); }
        }
    }

    /// Who this is, and the way in or out.
    fn account(&self) -> Markup {
        html! {
            div.account {
                @match self.needs(Role::Viewer) {
                    Ok(name) => {
                        span.who title=(name) { (name) }
                        @if self.caller.csrf().is_some() {
                            form method="post" action="/sign-out" { (self.csrf())
                                button.plain type="submit" { "Sign out" } }
                        }
                    }
                    Err(_) => a href="/sign-in" { "Sign in" },
                }
            }
        }
    }
}

impl FromRequestParts<Site> for Reader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Reader, Problem> {
        let caller = Caller::from_request_parts(parts, site).await?;
        caller.reads()?;
        Ok(Reader { caller })
    }
}

/// Somebody who may read what is about the whole region.
pub(super) struct Whole(pub(super) Reader);

impl FromRequestParts<Site> for Whole {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<Whole, Problem> {
        let caller = Caller::from_request_parts(parts, site).await?;
        caller.reads_region()?;
        Ok(Whole(Reader { caller }))
    }
}

/// A page: where in the navigation, its title, what it loads beside the style, and what it says.
pub(super) struct Page<'a> {
    pub(super) place: Place,
    pub(super) title: &'a str,
    /// Whether it has charts.
    pub(super) charts: bool,
    pub(super) body: Markup,
}

impl Page<'_> {
    /// The whole document for this reader.
    pub(super) fn show(self, reader: &Reader) -> Html<String> {
        Html(written(&document(&self, Some(reader))))
    }

    /// The whole document for whoever asks.
    pub(super) fn show_to_all(self) -> Html<String> {
        Html(written(&document(&self, None)))
    }
}

fn style(asset: &Asset) -> Markup {
    html! { link rel="stylesheet" href=(asset.path()); }
}

fn document(page: &Page, reader: Option<&Reader>) -> Markup {
    let csrf = reader.and_then(|reader| reader.caller.csrf());
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                @if let Some(csrf) = csrf { meta name="csrf" content=(csrf); }
                title { (page.title) " · RAS" }
                link rel="icon" type="image/svg+xml" href=(asset::ICON.path());
                @if page.charts { (style(&asset::CHARTS_STYLE)) }
                (style(&asset::STYLE))
                @if page.charts { script defer src=(asset::CHARTS.path()) {} }
                script defer src=(asset::SCRIPT.path()) {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header.top { div {
                    a.brand href="/" { (logo()) "RAS" }
                    @if let Some(reader) = reader { (navigation(page.place, reader)) (reader.account()) }
                } }
                main #main tabindex="-1" { (page.body) }
                footer {
                    span { "RAS " (env!("CARGO_PKG_VERSION")) }
                    span { "Times are UTC, amounts are RRU (relative resource units)." }
                    a href="/api" { "Interface" }
                    a href="/status" { "Status" }
                    a href="/metrics" { "Metrics" }
                }
            }
        }
    }
}

fn navigation(place: Place, reader: &Reader) -> Markup {
    let shown = |(at, ..): &(Place, &str, &str)| !reader.is_scoped() || at.is_of_owners();
    html! {
        nav aria-label="Main" {
            @for (at, path, name) in PLACES.into_iter().filter(shown) {
                a href=(path) aria-current=[(at == place).then_some("page")] { (name) }
            }
        }
    }
}

fn logo() -> Markup {
    html! {
        svg viewBox="0 0 22 22" aria-hidden="true" {
            rect.in-use width="10" height="10" rx="2" {}
            rect.idle x="12" width="10" height="10" rx="2" {}
            rect.idle y="12" width="10" height="10" rx="2" {}
            rect.in-use x="12" y="12" width="10" height="10" rx="2" {}
        }
    }
}

/// Gives every error a page that says it. Whoever must sign in is sent there.
pub(super) async fn finish(request: Request, next: Next) -> Response {
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let mut response = next.run(request).await;
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
            *response.status_mut() = problem.status();
            *response.body_mut() = Body::from(written(&error(&problem)));
            let html = HeaderValue::from_static("text/html; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, html);
        }
    }
    response
}

fn error(problem: &Problem) -> Markup {
    let title = match problem.status() {
        StatusCode::NOT_FOUND => "Not found",
        StatusCode::FORBIDDEN => "Not allowed",
        StatusCode::UNAUTHORIZED => "Signed out",
        StatusCode::SERVICE_UNAVAILABLE => "Not available just now",
        status if status.is_client_error() => "This does not work",
        _ => "Something failed",
    };
    let body = html! {
        p.kicker { (problem.status().as_u16()) " · " code { (problem.code()) } }
        h1 { (title) }
        p.notice { (problem.detail()) }
        (part::errors(problem))
        p.actions { a.button href="/" { "To the overview" } }
    };
    document(&Page { place: Place::Elsewhere, title, charts: false, body }, None)
}

/// A document as it is sent. What was filled in stays in its field, and HTML knows no zero character.
fn written(document: &Markup) -> String {
    document.0.replace('\0', "\u{FFFD}")
}
