//! Planning maintenance: a form, what it would take, and planning it.

use super::frame::{Page, Place, Whole};
use super::link;
use super::part::{self, Mood};
use super::picture::Picture;
use crate::api::Site;
use crate::api::authority::Role;
use crate::api::ops::maintenance;
use crate::api::problem::Problem;
use axum::extract::{Form, Query, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Redirect, Response};
use broker::{MaintenancePreview, PreviewedWindow};
use chrono::NaiveDateTime;
use fleet::Scope;
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// Rows of each list.
const ROWS: usize = 40;

/// What the form says; a length that is empty: it was not filled in yet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Said {
    scope: String,
    scope_id: String,
    /// By the clock of UTC, to the minute; empty: as soon as the drain is over.
    starts_at: String,
    /// Minutes.
    length: String,
    /// Minutes.
    drain: String,
    /// Percent.
    share: String,
    /// Minutes; empty: it cannot be recalled.
    recall: String,
    why: String,
}

/// A field of the form and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    field: &'static str,
    detail: String,
}

/// What is wrong with a form, or in the way of what it asks for.
#[derive(Debug)]
enum Trouble {
    Fields(Vec<Wrong>),
    Refused(Problem),
}

/// The fields of the interface by those of the form.
const FIELDS: [(&str, &str); 7] = [
    ("scope", "scope"),
    ("scope_id", "scope_id"),
    ("starts_at", "starts_at"),
    ("length_seconds", "length"),
    ("drain_seconds", "drain"),
    ("share", "share"),
    ("recall_minutes", "recall"),
];

impl Said {
    /// As the interface takes it, or every field that cannot be read.
    fn body(&self) -> Result<Value, Vec<Wrong>> {
        let mut wrong = Vec::new();
        let mut body = Map::new();
        body.insert("scope".to_owned(), json!(self.scope));
        body.insert("scope_id".to_owned(), json!(self.scope_id.trim()));
        body.insert("why".to_owned(), json!(self.why.trim()));
        let seconds = |text: &str| {
            let minutes: u32 = text.trim().parse().ok()?;
            minutes.checked_mul(60)
        };
        let mut missed = |field: &'static str, detail: &str| {
            wrong.push(Wrong { field, detail: detail.to_owned() });
        };
        match seconds(&self.length) {
            Some(seconds) => drop(body.insert("length_seconds".to_owned(), json!(seconds))),
            None => missed("length", "a whole number of minutes"),
        }
        match seconds(&self.drain) {
            Some(seconds) => drop(body.insert("drain_seconds".to_owned(), json!(seconds))),
            None if self.drain.trim().is_empty() => {}
            None => missed("drain", "a whole number of minutes, or nothing"),
        }
        match self.share.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => {
                drop(body.insert("share".to_owned(), json!(percent / 100.0)));
            }
            _ if self.share.trim().is_empty() => {}
            _ => missed("share", "a number from 0 to 100, or nothing"),
        }
        match self.recall.trim().parse::<u32>() {
            Ok(minutes) => drop(body.insert("recall_minutes".to_owned(), json!(minutes))),
            Err(_) if self.recall.trim().is_empty() => {}
            Err(_) => missed("recall", "a whole number of minutes, or nothing"),
        }
        let starts_at = self.starts_at.trim();
        let at = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(starts_at, form).ok());
        match at {
            Some(at) => drop(body.insert("starts_at".to_owned(), json!(at.and_utc()))),
            None if starts_at.is_empty() => {}
            None => missed("starts_at", "a time as 2026-01-31T13:30, or nothing"),
        }
        if wrong.is_empty() { Ok(Value::Object(body)) } else { Err(wrong) }
    }
}

impl Trouble {
    /// What the interface refuses, at the field that it names.
    fn of(problem: Problem) -> Trouble {
        let named = problem.member("field").and_then(Value::as_str);
        let named = named.and_then(|named| FIELDS.iter().find(|(theirs, _)| *theirs == named));
        match named {
            Some(&(_, field)) => {
                let detail = problem.detail().to_owned();
                Trouble::Fields(vec![Wrong { field, detail }])
            }
            None => Trouble::Refused(problem),
        }
    }

    fn at(&self, field: &str) -> Option<&str> {
        match self {
            Trouble::Fields(wrong) => {
                wrong.iter().find(|of| of.field == field).map(|of| of.detail.as_str())
            }
            Trouble::Refused(_) => None,
        }
    }
}

/// The form; where it is filled in, what planning that would take. Nothing is planned.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Query(said): Query<Said>,
) -> Result<Html<String>, Problem> {
    reader.needs(Role::Operator)?;
    let picture = site.pictures.now(&site.region).await?;
    let looked = if said.length.trim().is_empty() {
        None
    } else {
        match said.body() {
            Err(wrong) => Some(Err(Trouble::Fields(wrong))),
            Ok(body) => {
                let body = body.to_string();
                let looked =
                    maintenance::previewed_for(&site, reader.caller(), body.as_bytes()).await;
                match looked {
                    Ok(preview) => Some(Ok(preview)),
                    Err(problem) if problem.status().is_client_error() => {
                        Some(Err(Trouble::of(problem)))
                    }
                    Err(problem) => return Err(problem),
                }
            }
        }
    };
    let (trouble, preview) = match &looked {
        Some(Ok(preview)) => (None, Some(preview)),
        Some(Err(trouble)) => (Some(trouble), None),
        None => (None, None),
    };
    let beside = html! {
        @if let Some(preview) = preview { (takes(&said, preview, &reader.csrf())) }
    };
    Ok(page(&said, picture.as_deref(), trouble, &beside).show(&reader))
}

/// Plans it; or shows the form again, and why not.
pub(super) async fn plan(
    State(site): State<Site>,
    Whole(reader): Whole,
    Form(said): Form<Said>,
) -> Result<Response, Problem> {
    reader.needs(Role::Operator)?;
    let (status, trouble) = match said.body() {
        Err(wrong) => (StatusCode::BAD_REQUEST, Trouble::Fields(wrong)),
        Ok(body) => {
            let body = body.to_string();
            match maintenance::planned_for(&site, reader.caller(), body.as_bytes()).await {
                Ok(windows) => {
                    let plan = windows.first().map(|window| window.plan.to_string());
                    let to = format!("/maintenance#{}", plan.unwrap_or_default());
                    return Ok(Redirect::to(&to).into_response());
                }
                Err(problem) if problem.status().is_client_error() => {
                    (problem.status(), Trouble::of(problem))
                }
                Err(problem) => return Err(problem),
            }
        }
    };
    let picture = site.pictures.now(&site.region).await?;
    let page = page(&said, picture.as_deref(), Some(&trouble), &html! {}).show(&reader);
    Ok((status, page).into_response())
}

fn page<'a>(
    said: &Said,
    picture: Option<&Picture>,
    trouble: Option<&Trouble>,
    beside: &Markup,
) -> Page<'a> {
    let body = html! {
        p.kicker { a href="/maintenance" { "Maintenance" } }
        h1 { "Plan maintenance" }
        p.facts { span { "Containers end before work begins. Embedded buffers serve it: nobody's guarantee may break." } }
        div.flow {
            section.box aria-label="What is maintained" { (form(said, picture, trouble)) }
            section #live aria-live="polite" aria-label="What it takes" {
                @match trouble {
                    Some(Trouble::Refused(problem)) => {
                        div.notice.bad role="alert" { strong.verdict { "It cannot be planned so" } p { (problem.detail()) } }
                    }
                    Some(Trouble::Fields(_)) => {
                        div.notice.bad role="alert" { strong.verdict { "Something is not right yet" }
                            p { "It stands beside the field." } }
                    }
                    None if beside.0.is_empty() => p.missing { "Fill in the form: what it would take stands here before anything is planned." },
                    None => (beside),
                }
            }
        }
    };
    Page { place: Place::Maintenance, title: "Plan maintenance", charts: false, body }
}

/// A text field: its name, label, value, hint, and what is wrong with it.
struct Field<'a> {
    name: &'static str,
    label: &'static str,
    kind: &'static str,
    value: &'a str,
    hint: &'static str,
    wrong: Option<&'a str>,
    required: bool,
    list: Option<&'static str>,
}

impl Field<'_> {
    fn show(&self) -> Markup {
        let (hint, wrong) = (format!("{}-hint", self.name), format!("{}-wrong", self.name));
        let described = if self.wrong.is_some() { format!("{hint} {wrong}") } else { hint.clone() };
        let numeric = matches!(self.name, "length" | "drain" | "share" | "recall");
        html! {
            div.field {
                label for=(self.name) { (self.label) }
                input id=(self.name) type=(self.kind) name=(self.name) value=(self.value) required[self.required]
                    inputmode=[numeric.then_some("numeric")] autocomplete="off" list=[self.list]
                    aria-invalid=[self.wrong.map(|_| "true")] aria-describedby=(described);
                span.hint id=(hint) { (self.hint) }
                @if let Some(detail) = self.wrong { span.error id=(wrong) { (detail) } }
            }
        }
    }
}

fn form(said: &Said, picture: Option<&Picture>, trouble: Option<&Trouble>) -> Markup {
    let wrong = |field: &str| trouble.and_then(|trouble| trouble.at(field));
    let scopes = [Scope::Rack, Scope::Server, Scope::Msb].map(Scope::as_str);
    let text = |name, label, value, hint| Field {
        name,
        label,
        kind: "text",
        value,
        hint,
        wrong: wrong(name),
        required: false,
        list: None,
    };
    let what = Field {
        required: true,
        list: Some("msbs"),
        ..text("scope_id", "Its name", &said.scope_id, "by its whole name")
    };
    let length = Field {
        required: true,
        ..text("length", "Work takes, minutes", &said.length, "of an MSB: each batch of racks")
    };
    let from = Field {
        kind: "datetime-local",
        ..text("starts_at", "From, UTC", &said.starts_at, "empty: as soon as the drain is over")
    };
    let drain = text(
        "drain",
        "Drain before, minutes",
        &said.drain,
        "nothing new is put there; containers end",
    );
    let share = text("share", "Of its MSB at once, %", &said.share, "empty: a quarter at most");
    let recall = text(
        "recall",
        "Recalled within, minutes",
        &said.recall,
        "how long work takes to give its servers back when an MSB is lost; empty: it cannot",
    );
    let why = Field {
        required: true,
        ..text("why", "Why", &said.why, "for those who wonder later; it stands in the audit trail")
    };
    html! {
        form.fields method="get" action="/maintenance/plan" {
            div.fields.two {
                div.field { label for="scope" { "What" }
                    select #scope name="scope" aria-describedby="scope-hint" aria-invalid=[wrong("scope").map(|_| "true")] {
                        @for scope in scopes { option value=(scope) selected[scope == said.scope] { (scope_word(scope)) } } }
                    span.hint #scope-hint { "an MSB is done rack by rack" }
                    @if let Some(detail) = wrong("scope") { span.error { (detail) } } }
                (what.show())
                (from.show())
                (length.show())
                (drain.show())
                (share.show())
                (recall.show())
            }
            (why.show())
            datalist #msbs { @for msb in picture.iter().flat_map(|picture| &picture.region().msbs) { option value=(msb.id) {} } }
            div.actions { button type="submit" { "See what it takes" } a href="/maintenance" { "Back" } }
        }
    }
}

fn scope_word(scope: &str) -> &str {
    if scope == Scope::Msb.as_str() { "MSB" } else { scope }
}

/// What would be planned and whom it touches, and the button that plans it.
fn takes(said: &Said, of: &MaintenancePreview, csrf: &Markup) -> Markup {
    let (servers, at_once) = (of.servers as usize, of.at_once as usize);
    let share = of.at_once as f64 / of.msb_servers.max(1) as f64;
    html! {
        div.notice.warn {
            strong.verdict { (number::counted(servers, "server")) " in " (number::counted(of.windows.len(), "window")) }
            p { "In use or lent: " (number::count(of.in_use as usize)) " of them. What runs there ends before work begins." }
            p.note { "At most " (number::count(at_once)) " at once: " (number::percent(share)) " of the "
                (number::counted(of.msb_servers as usize, "server")) " of " a href=(link::msb(&of.msb)) { (of.msb) } "; "
                (number::percent_round(f64::from(of.share_micro) / 1e6)) " may be." }
        }
        (windows(&of.windows))
        @if of.holders.is_empty() { p.note { "No guaranteed reservation holds any of them." } } @else {
            div.scroll { table {
                caption { "Who is without servers meanwhile; each keeps what was promised" }
                thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Servers" } th.n scope="col" { "Without, RRU at once" }
                    th.n scope="col" { "Left, RRU" } th.n scope="col" { "Promised, RRU" } } }
                tbody { @for holder in of.holders.iter().take(ROWS) {
                    @let left = holder.available - holder.at_once;
                    tr {
                        th scope="row" { a href=(link::reservation(&holder.reservation)) { (holder.reservation) } }
                        td.n { (number::count(holder.servers as usize)) }
                        td.n { (number::rru(holder.at_once)) }
                        td.n { (number::rru(left)) @if left < holder.capacity { " " (part::state(Mood::Warn, "short already")) } }
                        td.n { (number::rru(holder.capacity)) }
                    }
                } }
            } }
            @if of.holders.len() > ROWS { p.note { "Shown: " (ROWS) " of " (number::counted(of.holders.len(), "reservation")) "." } }
        }
        form.actions method="post" action="/maintenance/plan" {
            (csrf)
            @for (name, value) in [("scope", &said.scope), ("scope_id", &said.scope_id), ("starts_at", &said.starts_at),
                ("length", &said.length), ("drain", &said.drain), ("share", &said.share), ("recall", &said.recall),
                ("why", &said.why)] {
                input type="hidden" name=(name) value=(value);
            }
            button.main type="submit" { "Plan it" }
            a href="/maintenance" { "Leave it" }
        }
    }
}

fn windows(all: &[PreviewedWindow]) -> Markup {
    html! {
        div.scroll { table {
            caption { (number::counted(all.len(), "window")) @if all.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "Window" } th scope="col" { "Drains from" } th scope="col" { "Work from" } th scope="col" { "To" } } }
            tbody { @for of in all.iter().take(ROWS) { tr {
                th scope="row" { (of.scope.as_str()) " "
                    @if of.scope == Scope::Server { a href=(link::server(&of.name)) { (of.name) } } @else { (of.name) } }
                td.when { (part::when(of.drains_at)) }
                td.when { (part::when(of.starts_at)) }
                td.when { (part::when(of.ends_at)) }
            } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::{Said, Trouble};
    use crate::api::problem::Problem;
    use serde_json::json;

    fn said(change: impl FnOnce(&mut Said)) -> Said {
        let mut said = Said {
            scope: "rack".to_owned(),
            scope_id: " r1 ".to_owned(),
            starts_at: "2026-01-31T13:30".to_owned(),
            length: "90".to_owned(),
            drain: String::new(),
            share: "12.5".to_owned(),
            recall: "20".to_owned(),
            why: "new fans".to_owned(),
        };
        change(&mut said);
        said
    }

    #[test]
    fn a_form_asks_what_the_interface_takes() {
        assert_eq!(
            said(|_| {}).body().expect("it can be read"),
            json!({ "scope": "rack", "scope_id": "r1", "starts_at": "2026-01-31T13:30:00Z",
                "length_seconds": 5_400, "share": 0.125, "recall_minutes": 20, "why": "new fans" })
        );
        let later = said(|of| of.starts_at = "2026-01-31T13:30:15".to_owned()).body();
        assert_eq!(later.expect("with seconds")["starts_at"], "2026-01-31T13:30:15Z");
    }

    #[test]
    fn every_field_that_cannot_be_read_is_named() {
        let body = said(|of| {
            of.length = "71582789".to_owned();
            of.drain = "-1".to_owned();
            of.share = "inf".to_owned();
            of.starts_at = "soon".to_owned();
        });
        let wrong = body.body().expect_err("nothing can be read");
        let fields: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        assert_eq!(fields, ["length", "drain", "share", "starts_at"]);
    }

    #[test]
    fn what_the_interface_refuses_stands_at_its_field() {
        let problem = Problem::bad_request("malformed", "too long");
        let trouble = Trouble::of(problem.clone().with("field", "length_seconds".into()));
        assert_eq!((trouble.at("length"), trouble.at("drain")), (Some("too long"), None));
        assert!(matches!(Trouble::of(problem), Trouble::Refused(_)));
    }
}
