//! The form that schedules maintenance, with a preview of its windows and of the affected reservations.

use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::ui::{self, Mood};
use crate::api::ops::maintenance;
use crate::http::auth::Role;
use crate::http::{Problem, Site};
use crate::region_summary::RegionSummary;
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

/// Rows of a list.
const ROWS: usize = 40;

/// The form. Before it is filled in, its length is empty.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct MaintenanceForm {
    scope: String,
    scope_id: String,
    /// UTC, to the minute; empty for as soon as the drain is over.
    starts_at: String,
    /// Minutes.
    length: String,
    /// Minutes.
    drain: String,
    /// Percent.
    share: String,
    /// Minutes; empty if the servers cannot be recalled.
    recall: String,
    why: String,
    /// Reservations that may be short meanwhile, separated by commas.
    accept_short: String,
    accept_why: String,
}

/// A wrong field of the form.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    field: &'static str,
    detail: String,
}

/// Why the form cannot be planned.
#[derive(Debug)]
enum FormProblem {
    /// Fields are wrong.
    Fields(Vec<Wrong>),
    /// The API refuses the window.
    Refused(Problem),
}

/// Fields of the API, and the fields of the form that they are read from.
const FIELDS: [(&str, &str); 9] = [
    ("scope", "scope"),
    ("scope_id", "scope_id"),
    ("starts_at", "starts_at"),
    ("length_seconds", "length"),
    ("drain_seconds", "drain"),
    ("share", "share"),
    ("recall_minutes", "recall"),
    ("accept_short.reservations", "accept_short"),
    ("accept_short.why", "accept_why"),
];

impl MaintenanceForm {
    /// The body that the API takes, or every field that cannot be read.
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
        let mut reject = |field: &'static str, detail: &str| {
            wrong.push(Wrong { field, detail: detail.to_owned() });
        };
        match seconds(&self.length) {
            Some(seconds) => drop(body.insert("length_seconds".to_owned(), json!(seconds))),
            None => reject("length", "a whole number of minutes"),
        }
        match seconds(&self.drain) {
            Some(seconds) => drop(body.insert("drain_seconds".to_owned(), json!(seconds))),
            None if self.drain.trim().is_empty() => {}
            None => reject("drain", "a whole number of minutes, or empty"),
        }
        match self.share.trim().parse::<f64>() {
            Ok(percent) if (0.0..=100.0).contains(&percent) => {
                drop(body.insert("share".to_owned(), json!(percent / 100.0)));
            }
            _ if self.share.trim().is_empty() => {}
            _ => reject("share", "a number from 0 to 100, or empty"),
        }
        match self.recall.trim().parse::<u32>() {
            Ok(minutes) => drop(body.insert("recall_minutes".to_owned(), json!(minutes))),
            Err(_) if self.recall.trim().is_empty() => {}
            Err(_) => reject("recall", "a whole number of minutes, or empty"),
        }
        let names = self.accept_short.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<&str> = names.collect();
        if !names.is_empty() || !self.accept_why.trim().is_empty() {
            let accepted = json!({ "reservations": names, "why": self.accept_why.trim() });
            body.insert("accept_short".to_owned(), accepted);
        }
        let starts_at = self.starts_at.trim();
        let at = ["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"]
            .iter()
            .find_map(|form| NaiveDateTime::parse_from_str(starts_at, form).ok());
        match at {
            Some(at) => drop(body.insert("starts_at".to_owned(), json!(at.and_utc()))),
            None if starts_at.is_empty() => {}
            None => reject("starts_at", "a time such as 2026-01-31T13:30, or empty"),
        }
        if wrong.is_empty() { Ok(Value::Object(body)) } else { Err(wrong) }
    }
}

impl FormProblem {
    /// The problem of the API, at the field of the form that it names.
    fn of(problem: Problem) -> FormProblem {
        let named = problem.members().field.as_deref();
        let named = named.and_then(|named| FIELDS.iter().find(|(of_api, _)| *of_api == named));
        match named {
            Some(&(_, field)) => {
                let detail = problem.detail().to_owned();
                FormProblem::Fields(vec![Wrong { field, detail }])
            }
            None => FormProblem::Refused(problem),
        }
    }

    /// The error of a field.
    fn at(&self, field: &str) -> Option<&str> {
        match self {
            FormProblem::Fields(wrong) => {
                wrong.iter().find(|of| of.field == field).map(|of| of.detail.as_str())
            }
            FormProblem::Refused(_) => None,
        }
    }
}

/// Handler of `GET /maintenance/plan`: the form, and the preview if it is filled in. Nothing is planned.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(form): Query<MaintenanceForm>,
) -> Result<Html<String>, Problem> {
    reader.needs(Role::Operator)?;
    let summary = site.region_summaries.current(&site.region).await?;
    let previewed = if form.length.trim().is_empty() {
        None
    } else {
        match form.body() {
            Err(wrong) => Some(Err(FormProblem::Fields(wrong))),
            Ok(body) => {
                let body = body.to_string();
                let previewed =
                    maintenance::previewed_for(&site, reader.caller(), body.as_bytes()).await;
                match previewed {
                    Ok(preview) => Some(Ok(preview)),
                    Err(problem) if problem.status().is_client_error() => {
                        Some(Err(FormProblem::of(problem)))
                    }
                    Err(problem) => return Err(problem),
                }
            }
        }
    };
    let (problem, preview) = match &previewed {
        Some(Ok(preview)) => (None, Some(preview)),
        Some(Err(problem)) => (Some(problem), None),
        None => (None, None),
    };
    let preview = html! {
        @if let Some(preview) = preview { (preview_box(&form, preview, &reader.csrf())) }
    };
    Ok(page(&form, summary.as_deref(), problem, &preview).show(&reader))
}

/// Handler of `POST /maintenance/plan`: plans the windows, or shows the form with its errors.
pub(super) async fn plan(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Form(form): Form<MaintenanceForm>,
) -> Result<Response, Problem> {
    reader.needs(Role::Operator)?;
    let (status, problem) = match form.body() {
        Err(wrong) => (StatusCode::BAD_REQUEST, FormProblem::Fields(wrong)),
        Ok(body) => {
            let body = body.to_string();
            match maintenance::planned_for(&site, reader.caller(), body.as_bytes()).await {
                Ok(windows) => {
                    let plan = windows.first().map(|window| window.plan.to_string());
                    let to = format!("/maintenance#{}", plan.unwrap_or_default());
                    return Ok(Redirect::to(&to).into_response());
                }
                Err(problem) if problem.status().is_client_error() => {
                    (problem.status(), FormProblem::of(problem))
                }
                Err(problem) => return Err(problem),
            }
        }
    };
    let summary = site.region_summaries.current(&site.region).await?;
    let page = page(&form, summary.as_deref(), Some(&problem), &html! {}).show(&reader);
    Ok((status, page).into_response())
}

fn page<'a>(
    form: &MaintenanceForm,
    summary: Option<&RegionSummary>,
    problem: Option<&FormProblem>,
    preview: &Markup,
) -> Page<'a> {
    let body = html! {
        (ui::crumbs(&[("/maintenance", "Maintenance")]))
        h1 { "Plan maintenance" }
        p.facts { span { "Containers end before work begins. Embedded buffers provide the servers: a window that would break a guarantee is refused." } }
        div.flow {
            section.box aria-label="Maintenance" { (entry_form(form, summary, problem)) }
            section #live aria-live="polite" aria-label="Preview" {
                @match problem {
                    Some(FormProblem::Refused(problem)) => {
                        div.notice.bad role="alert" { strong.verdict { "This maintenance cannot be planned" } p { (problem.detail()) } }
                    }
                    Some(FormProblem::Fields(_)) => {
                        div.notice.bad role="alert" { strong.verdict { "Some fields need correction" }
                            p { "The errors are shown beside the fields." } }
                    }
                    None if preview.0.is_empty() => p.missing { "Fill in the form for a preview. Nothing is planned yet." },
                    None => (preview),
                }
            }
        }
    };
    Page { nav: NavItem::Maintenance, title: "Plan maintenance", charts: false, body }
}

/// A text field with its value, hint and error.
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

fn entry_form(
    form: &MaintenanceForm,
    summary: Option<&RegionSummary>,
    problem: Option<&FormProblem>,
) -> Markup {
    let wrong = |field: &str| problem.and_then(|problem| problem.at(field));
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
    let name = Field {
        required: true,
        list: Some("msbs"),
        ..text("scope_id", "Name", &form.scope_id, "full name of the rack, server or MSB")
    };
    let length = Field {
        required: true,
        ..text("length", "Duration, minutes", &form.length, "for an MSB: of each batch of racks")
    };
    let from = Field {
        kind: "datetime-local",
        ..text("starts_at", "Start, UTC", &form.starts_at, "empty for as soon as the drain is over")
    };
    let drain = text(
        "drain",
        "Drain, minutes",
        &form.drain,
        "before the start: no new containers, and running ones end",
    );
    let share =
        text("share", "Share of the MSB at once, %", &form.share, "empty for at most a quarter");
    let recall = text(
        "recall",
        "Recall, minutes",
        &form.recall,
        "time to return the servers if an MSB is lost; empty if they cannot be recalled",
    );
    let why =
        Field { required: true, ..text("why", "Reason", &form.why, "recorded in the audit trail") };
    let accepted = text(
        "accept_short",
        "Reservations that may be short",
        &form.accept_short,
        "separated by commas; for work that their promise would not allow",
    );
    let accept_why = text(
        "accept_why",
        "Why they may be short",
        &form.accept_why,
        "recorded in the audit trail",
    );
    html! {
        form.fields method="get" action="/maintenance/plan" {
            div.fields.two {
                div.field { label for="scope" { "Scope" }
                    select #scope name="scope" aria-describedby="scope-hint" aria-invalid=[wrong("scope").map(|_| "true")] {
                        @for scope in scopes { option value=(scope) selected[scope == form.scope] { (scope_label(scope)) } } }
                    span.hint #scope-hint { "an MSB is maintained rack by rack" }
                    @if let Some(detail) = wrong("scope") { span.error { (detail) } } }
                (name.show())
                (from.show())
                (length.show())
                (drain.show())
                (share.show())
                (recall.show())
                (accepted.show())
                (accept_why.show())
            }
            (why.show())
            datalist #msbs { @for msb in summary.iter().flat_map(|summary| &summary.region().msbs) { option value=(msb.id) {} } }
            div.actions { button type="submit" { "Preview" } a href="/maintenance" { "Cancel" } }
        }
    }
}

fn scope_label(scope: &str) -> &str {
    if scope == Scope::Msb.as_str() { "MSB" } else { scope }
}

/// The windows, the affected reservations, and the button that plans them.
fn preview_box(form: &MaintenanceForm, of: &MaintenancePreview, csrf: &Markup) -> Markup {
    let (servers, at_once) = (of.servers as usize, of.at_once as usize);
    let share = of.at_once as f64 / of.msb_servers.max(1) as f64;
    html! {
        div.notice.warn {
            strong.verdict { (number::counted(servers, "server")) " in " (number::counted(of.windows.len(), "window")) }
            p { "In use or lent: " (number::count(of.in_use as usize)) ". Containers on these servers end before work begins." }
            p.note { "At most " (number::count(at_once)) " at once: " (number::percent(share)) " of the "
                (number::counted(of.msb_servers as usize, "server")) " of " a href=(link::msb(&of.msb)) { (of.msb) } "; "
                "the limit is " (number::percent_round(f64::from(of.share_micro) / 1e6)) "." }
        }
        (windows(&of.windows))
        @if of.holders.is_empty() { p.note { "No guaranteed reservation holds any of these servers." } } @else {
            div.scroll { table {
                caption { "Affected reservations. Every guarantee stays in force." }
                thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "Servers" } th.n scope="col" { "Unavailable at once, RRU" }
                    th.n scope="col" { "Left, RRU" } th.n scope="col" { "Promised, RRU" } } }
                tbody { @for holder in of.holders.iter().take(ROWS) {
                    @let left = holder.available - holder.at_once;
                    tr {
                        th scope="row" { a href=(link::reservation(&holder.reservation)) { (holder.reservation) } }
                        td.n { (number::count(holder.servers as usize)) }
                        td.n { (number::rru(holder.at_once)) }
                        td.n { (number::rru(left)) @if left < holder.capacity { " " (ui::state(Mood::Warn, "already short")) } }
                        td.n { (number::rru(holder.capacity)) }
                    }
                } }
            } }
            @if of.holders.len() > ROWS { p.note { "Shown: " (ROWS) " of " (number::counted(of.holders.len(), "reservation")) "." } }
        }
        form.actions method="post" action="/maintenance/plan" {
            (csrf)
            @for (name, value) in [("scope", &form.scope), ("scope_id", &form.scope_id), ("starts_at", &form.starts_at),
                ("length", &form.length), ("drain", &form.drain), ("share", &form.share), ("recall", &form.recall),
                ("why", &form.why), ("accept_short", &form.accept_short), ("accept_why", &form.accept_why)] {
                input type="hidden" name=(name) value=(value);
            }
            button.main type="submit" { "Plan maintenance" }
            a href="/maintenance" { "Cancel" }
        }
    }
}

fn windows(all: &[PreviewedWindow]) -> Markup {
    html! {
        div.scroll { table {
            caption { (number::counted(all.len(), "window")) @if all.len() > ROWS { ", the first " (ROWS) } }
            thead { tr { th scope="col" { "Window" } th scope="col" { "Drain starts" } th scope="col" { "Work starts" } th scope="col" { "Work ends" } } }
            tbody { @for of in all.iter().take(ROWS) { tr {
                th scope="row" { (of.scope.as_str()) " "
                    @if of.scope == Scope::Server { a href=(link::server(&of.name)) { (of.name) } } @else { (of.name) } }
                td.when { (ui::when(of.drains_at)) }
                td.when { (ui::when(of.starts_at)) }
                td.when { (ui::when(of.ends_at)) }
            } } }
        } }
    }
}

#[cfg(test)]
mod tests {
    use super::{FormProblem, MaintenanceForm};
    use crate::http::Problem;
    use serde_json::json;

    fn filled_in(change: impl FnOnce(&mut MaintenanceForm)) -> MaintenanceForm {
        let mut form = MaintenanceForm {
            scope: "rack".to_owned(),
            scope_id: " r1 ".to_owned(),
            starts_at: "2026-01-31T13:30".to_owned(),
            length: "90".to_owned(),
            drain: String::new(),
            share: "12.5".to_owned(),
            recall: "20".to_owned(),
            why: "new fans".to_owned(),
            accept_short: String::new(),
            accept_why: String::new(),
        };
        change(&mut form);
        form
    }

    #[test]
    fn form_becomes_the_body_of_the_api() {
        assert_eq!(
            filled_in(|_| {}).body().expect("it can be read"),
            json!({ "scope": "rack", "scope_id": "r1", "starts_at": "2026-01-31T13:30:00Z",
                "length_seconds": 5_400, "share": 0.125, "recall_minutes": 20, "why": "new fans" })
        );
        let later = filled_in(|of| of.starts_at = "2026-01-31T13:30:15".to_owned()).body();
        assert_eq!(later.expect("with seconds")["starts_at"], "2026-01-31T13:30:15Z");
    }

    #[test]
    fn body_names_every_unreadable_field() {
        let form = filled_in(|of| {
            of.length = "71582789".to_owned();
            of.drain = "-1".to_owned();
            of.share = "inf".to_owned();
            of.starts_at = "soon".to_owned();
        });
        let wrong = form.body().expect_err("nothing can be read");
        let fields: Vec<_> = wrong.iter().map(|wrong| wrong.field).collect();
        assert_eq!(fields, ["length", "drain", "share", "starts_at"]);
    }

    #[test]
    fn problem_of_the_api_is_shown_at_its_field() {
        let problem = Problem::bad_request("malformed", "too long");
        let of_field = FormProblem::of(problem.clone().with_field("length_seconds"));
        assert_eq!((of_field.at("length"), of_field.at("drain")), (Some("too long"), None));
        assert!(matches!(FormProblem::of(problem), FormProblem::Refused(_)));
    }
}
