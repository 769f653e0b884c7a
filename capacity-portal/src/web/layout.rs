//! The layout of every page: document head, navigation, account.

use super::asset::{self, Asset};
use super::{link, ui};
use crate::http::auth::{Caller, Role};
use crate::http::{Problem, Site};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::response::Html;
use maud::{DOCTYPE, Markup, html};
use std::sync::Arc;

/// An entry of the navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NavItem {
    Overview,
    Reservations,
    Request,
    Requests,
    Inventory,
    Moves,
    Solves,
    History,
    Failures,
    Maintenance,
    Drills,
    Emergencies,
    Settings,
    Trail,
    Stuck,
    /// A page that the navigation does not list.
    Elsewhere,
}

impl NavItem {
    /// Whether readers who are limited to one owner may open it.
    const fn is_for_owners(self) -> bool {
        matches!(self, NavItem::Reservations | NavItem::Request | NavItem::Requests)
    }
}

/// The navigation in order: entry, path, title.
const NAVIGATION: [(NavItem, &str, &str); 15] = [
    (NavItem::Overview, "/", "Overview"),
    (NavItem::Reservations, "/reservations", "Reservations"),
    (NavItem::Request, "/request", "Request"),
    (NavItem::Requests, "/requests", "Requests"),
    (NavItem::Inventory, "/servers", "Servers"),
    (NavItem::Moves, "/moves", "Moves"),
    (NavItem::Solves, "/solves", "Solves"),
    (NavItem::History, "/history", "History"),
    (NavItem::Failures, "/failures", "Failures"),
    (NavItem::Maintenance, "/maintenance", "Maintenance"),
    (NavItem::Drills, "/drills", "Drills"),
    (NavItem::Emergencies, "/emergencies", "Emergencies"),
    (NavItem::Settings, "/settings", "Settings"),
    (NavItem::Trail, "/trail", "Trail"),
    (NavItem::Stuck, "/stuck", "Stuck"),
];

/// A caller who may read pages: of the whole region, or of one owner.
pub(super) struct Reader {
    caller: Caller,
}

impl Reader {
    /// The actor for the audit trail.
    ///
    /// # Errors
    /// If the reader lacks this role.
    pub(super) fn needs(&self, role: Role) -> Result<Arc<str>, Problem> {
        self.caller.needs(role)
    }

    /// Whether the reader has this role, so that a page offers its actions.
    pub(super) fn may(&self, role: Role) -> bool {
        self.needs(role).is_ok()
    }

    /// The caller, as the API handlers take it.
    pub(super) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether reservations of this owner are visible to the reader.
    pub(super) fn sees(&self, owner: &str) -> bool {
        self.caller.sees(owner)
    }

    /// The owner that the reader is limited to; `None`: the whole region.
    pub(super) fn scope(&self) -> Option<&str> {
        self.caller.scope()
    }

    /// The actor for the audit trail.
    ///
    /// # Errors
    /// If the reader may not act for this owner.
    pub(super) fn acts_for(&self, owner: &str) -> Result<Arc<str>, Problem> {
        self.caller.may_act_for(owner)
    }

    /// Whether the reader is limited to one owner.
    pub(super) fn is_scoped(&self) -> bool {
        self.caller.scope().is_some()
    }

    /// An MSB's name, linked to its page if the reader may open that.
    pub(super) fn msb(&self, name: &str) -> Markup {
        html! { @if self.is_scoped() { (name) } @else { a href=(link::msb(name)) { (name) } } }
    }

    /// The hidden field that every form needs against cross-site request forgery.
    pub(super) fn csrf(&self) -> Markup {
        html! {
            @if let Some(csrf) = self.caller.csrf() { input type="hidden" name="csrf" value=(csrf); }
        }
    }

    /// The menu of the reader, or the link to sign in.
    fn account(&self) -> Markup {
        let Ok(name) = self.needs(Role::Viewer) else {
            return html! { div.account { a href="/sign-in" { "Sign in" } } };
        };
        let roles: Vec<&str> = self.caller.roles().map(Role::as_str).collect();
        html! {
            details.account.menu {
                summary { span.who { (name) } }
                div.items {
                    dl {
                        dt { "Role" } dd { (roles.join(", ")) }
                        dt { "Reads" } dd { @match self.scope() { Some(owner) => { "owner " (owner) } None => "the whole region" } }
                        @if let Some(at) = self.caller.expires_at() { dt { "Token expires" } dd { (ui::when(at)) } }
                    }
                    // The script fills it in.
                    div.themes data-themes {}
                    @if self.caller.csrf().is_some() {
                        form method="post" action="/sign-out" { (self.csrf())
                            button type="submit" { "Sign out" } }
                    }
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

/// A reader who may see the whole region.
pub(super) struct RegionReader(pub(super) Reader);

impl FromRequestParts<Site> for RegionReader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, site: &Site) -> Result<RegionReader, Problem> {
        let caller = Caller::from_request_parts(parts, site).await?;
        caller.reads_region()?;
        Ok(RegionReader(Reader { caller }))
    }
}

/// A page to be put into the layout.
pub(super) struct Page<'a> {
    pub(super) nav: NavItem,
    pub(super) title: &'a str,
    /// Whether the chart library is loaded.
    pub(super) charts: bool,
    pub(super) body: Markup,
}

impl Page<'_> {
    /// Renders the document for this reader.
    pub(super) fn show(self, reader: &Reader) -> Html<String> {
        Html(without_zeros(&document(&self, Some(reader))))
    }

    /// Renders the document without navigation and account, for callers who are not signed in.
    pub(super) fn show_signed_out(self) -> Html<String> {
        Html(without_zeros(&document(&self, None)))
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
                // Before the first paint, so that a page does not flash in another theme.
                script src=(asset::THEME.path()) {}
                @if page.charts { (style(&asset::CHARTS_STYLE)) }
                (style(&asset::STYLE))
                @if page.charts {
                    script defer src=(asset::CHARTS.path()) {}
                    script defer src=(asset::HEAT_MAPS.path()) {}
                }
                // Before the scripts that change what was served.
                script defer src=(asset::LIVE.path()) {}
                script defer src=(asset::SCRIPT.path()) {}
                script defer src=(asset::READER.path()) {}
            }
            body {
                a.skip href="#main" { "Skip to main content" }
                header.top { div {
                    a.brand href="/" { (logo()) "RAS" }
                        @if let Some(reader) = reader { (search()) (reader.account()) (navigation(page.nav, reader)) }
                } }
                main #main tabindex="-1" { (page.body) }
                footer {
                    span { "RAS " (env!("CARGO_PKG_VERSION")) }
                    span { span data-zone { "Times are UTC" } ", amounts are RRU (relative resource units)." }
                    a href="/api" { "API" }
                    a href="/status" { "Status" }
                    a href="/metrics" { "Metrics" }
                }
            }
        }
    }
}

/// The search field of every page.
fn search() -> Markup {
    html! {
        form.search role="search" aria-label="Everything" method="get" action="/search" {
            input type="search" name="q" aria-label="Search servers, racks, MSBs, reservations, owners, ids"
                placeholder="Search" aria-keyshortcuts="/" autocomplete="off" data-search;
        }
    }
}

fn navigation(current: NavItem, reader: &Reader) -> Markup {
    let shown = |(item, ..): &(NavItem, &str, &str)| !reader.is_scoped() || item.is_for_owners();
    html! {
        nav aria-label="Main" {
            @for (item, path, name) in NAVIGATION.into_iter().filter(shown) {
                a href=(path) aria-current=[(item == current).then_some("page")] { (name) }
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

/// The text of a document. Fields show what was typed, and HTML does not allow zero characters.
fn without_zeros(document: &Markup) -> String {
    document.0.replace('\0', "\u{FFFD}")
}
