//! Failures and their handling: lost MSBs, preemption, events, replacements, loans.

use super::layout::{NavItem, Page, Reader, RegionReader};
use super::link;
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown, switch};
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use crate::api::ops::{incidents, unavailability};
use crate::http::list::{ListKind, PAGE, SORTED_MAX, Written};
use crate::http::list_filter::Cell;
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use crate::region_summary::RegionSummary;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use broker::{EventRow, EventsAsked, Outage, ReplacementState, State as _};
use chrono::{DateTime, Utc};
use control::Topic;
use fleet::{Scope, UnavailabilityEvent, UnavailabilityKind};
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The pages, in the order of their links.
const LISTS: [(&str, &str); 4] = [
    ("/failures", "Lost MSBs"),
    ("/failures/events", "Events"),
    ("/failures/replacements", "Replacements"),
    ("/failures/loans", "Loans"),
];

static OUTAGES: [Column; 8] = [
    Column::new("msb", "MSB", Shown::Link(link::msb)),
    Column::new("state", "State", Shown::State(outage_mood)),
    Column::new("reason", "Reason", Shown::Word),
    Column::new("began_at", "Began", Shown::When),
    Column::new("ended_at", "Ended", Shown::Drawn(end)),
    Column::new("seconds", "Lasts", Shown::Drawn(lasts)),
    Column::new("servers", "Servers", Shown::Number),
    Column::new("lent", "Lent when lost", Shown::Number),
];

static EVENTS: [Column; 7] = [
    Column::new("scope_id", "Covers", Shown::Drawn(covered)),
    Column::new("scope", "Scope", Shown::Drawn(scope)),
    Column::new("kind", "Kind", Shown::Word),
    Column::new("state", "State", Shown::State(event_mood)),
    Column::new("started_at", "Since", Shown::When),
    Column::new("ended_at", "Until", Shown::Drawn(until)),
    Column::new("event", "Event", Shown::Link(entries_about)),
];

static REPLACEMENTS: [Column; 9] = [
    Column::new("server", "Failed", Shown::Link(link::server)),
    Column::new("reservation", "Reservation", Shown::Link(link::reservation)),
    Column::new("state", "State", Shown::State(mood)),
    Column::new("spare", "Replaced by", Shown::Link(link::server)),
    Column::new("started_at", "Failed at", Shown::When),
    Column::new("returned_at", "Returned", Shown::When),
    Column::new("recorded_at", "Recorded", Shown::When).extra(),
    Column::new("state_at", "State since", Shown::When),
    Column::new("event", "Event", Shown::Link(entries_about)).extra(),
];

static LOANS: [Column; 5] = [
    Column::new("borrower", "Borrower", Shown::Link(link::reservation)),
    Column::new("owner", "Lent by", Shown::Link(link::reservation)),
    Column::new("msb", "MSB", Shown::Link(link::msb)),
    Column::new("hardware_type", "Type", Shown::Text),
    Column::new("servers", "Servers", Shown::Count),
];

fn entries_about(subject: &str) -> String {
    format!("/trail?subject={}", link::segment(subject))
}

fn outage_mood(state: &str) -> Mood {
    if state == "lost" { Mood::Bad } else { Mood::Good }
}

fn event_mood(state: &str) -> Mood {
    if state == "active" { Mood::Bad } else { Mood::Plain }
}

fn mood(state: &str) -> Mood {
    match state {
        "bound" => Mood::Good,
        "owed" => Mood::Bad,
        _ => Mood::Plain,
    }
}

/// An instant, or what its absence means.
fn instant(row: &dyn Cells, member: &str, absent: &str) -> Markup {
    match row.text(member).parse::<DateTime<Utc>>() {
        Ok(at) => ui::when(at),
        Err(_) => html! { span.dim { (absent) } },
    }
}

fn scope(row: &dyn Cells) -> Markup {
    html! { (scope_word(&row.text("scope"))) }
}

/// A scope as people write it.
fn scope_word(scope: &str) -> &str {
    if scope == Scope::Msb.as_str() { "MSB" } else { scope }
}

fn end(row: &dyn Cells) -> Markup {
    instant(row, "ended_at", "goes on")
}

fn until(row: &dyn Cells) -> Markup {
    instant(row, "ended_at", "open")
}

fn lasts(row: &dyn Cells) -> Markup {
    let seconds = match row.of("seconds") {
        Cell::Number(of) => of,
        _ => 0.0,
    };
    html! { (ui::duration(chrono::TimeDelta::seconds(seconds as i64))) }
}

fn covered(row: &dyn Cells) -> Markup {
    let name = row.text("scope_id");
    let path = match Scope::parse(&row.text("scope")) {
        Some(Scope::Msb) => Some(link::msb(&name)),
        Some(Scope::Rack) => Some(link::rack(&name)),
        Some(Scope::Server) => Some(link::server(&name)),
        Some(Scope::Datacenter) | None => None,
    };
    html! { @match path { Some(path) => a href=(path) { (name) }, None => (name) } }
}

/// A lost MSB, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedOutage {
    msb: String,
    state: &'static str,
    reason: &'static str,
    began_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
    /// How long it lasts, or lasted.
    seconds: i64,
    servers: i32,
    lent: i32,
}

impl ListedOutage {
    fn new(of: &Outage, now: DateTime<Utc>) -> ListedOutage {
        ListedOutage {
            msb: of.msb.to_string(),
            state: OUTAGE_STATES[usize::from(of.ended_at.is_some())],
            reason: of.reason.as_str(),
            began_at: of.began_at,
            ended_at: of.ended_at,
            seconds: (of.ended_at.unwrap_or(now) - of.began_at).num_seconds(),
            servers: of.servers,
            lent: of.lent,
        }
    }
}

const OUTAGE_STATES: [&str; 2] = ["lost", "back"];

/// An event, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedEvent {
    event: String,
    state: &'static str,
    scope: String,
    scope_id: String,
    kind: String,
    started_at: DateTime<Utc>,
    ended_at: Option<DateTime<Utc>>,
}

const EVENT_STATES: [&str; 3] = ["active", "announced", "ended"];

impl ListedEvent {
    fn new(of: EventRow, now: DateTime<Utc>) -> ListedEvent {
        let of = unavailability::view(of);
        let state = match of.active {
            true => 0,
            false if of.started_at > now => 1,
            false => 2,
        };
        ListedEvent {
            event: of.event,
            state: EVENT_STATES[state],
            scope: of.scope,
            scope_id: of.scope_id,
            kind: of.kind,
            started_at: of.started_at,
            ended_at: of.ended_at,
        }
    }
}

/// Handler of `GET /failures`: lost MSBs, preemption, and how many events are active.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    const KIND: ListKind =
        ListKind { rows: "outages", key: &["msb", "began_at"], order: "began_at desc", page: PAGE };
    let broker = &site.broker;
    let as_of = AsOf::begin(&site).await?;
    let summary = site.region_summaries.current(&site.region).await?;
    let as_of = as_of.with(&site, summary.as_deref()).await?;
    let now = as_of.now();
    let outages = in_time(broker.outages(false, SORTED_MAX)).await?;
    let list = List {
        kind: KIND,
        noun: "outage",
        path: LISTS[0].0.to_owned(),
        api: None,
        columns: &OUTAGES,
        search: (&["msb"], "Part of the MSB's name"),
        fixed: Vec::new(),
        own: &[],
    };
    let rows = outages.iter().map(|of| Written::new(&ListedOutage::new(of, now)));
    let part = match list.answer(&params, &[Choice::new("state", "State", OUTAGE_STATES)], rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let preview = match site.rehearsal {
        Some(_) => Some(crate::api::ops::give_way::preview(&site).await?),
        None => None,
    };
    let body = html! {
        h1 { "Failures" }
        p.facts { span { "What is out of service, and how the mover replaces it between two solves." } (as_of.show()) }
        (switch(&LISTS, LISTS[0].0))
        @if let Some(summary) = &summary { (active(summary)) }
        section #outages data-live=(topics(&[Topic::Failures])) {
            h2 { "Lost MSBs" }
            @if outages.is_empty() { (ui::missing("No MSB has been lost.")) } @else { (part) }
        }
        @if let Some(preview) = &preview { (super::give_way::section(preview, &reader, now)) }
    };
    Ok(Page { nav: NavItem::Failures, title: "Failures", charts: false, body }
        .show(&reader)
        .into_response())
}

/// The active events, counted.
fn active(summary: &RegionSummary) -> Markup {
    let region = summary.region();
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let active = |of: &&UnavailabilityEvent| of.is_active(region.taken_at);
    for event in region.unavailability.iter().filter(active) {
        *kinds.entry((event.kind.as_str(), event.scope.as_str())).or_default() += 1;
    }
    let path = |kind: &str, scope: &str| {
        format!("/failures/events?state=active&kind={kind}&scope={scope}")
    };
    html! {
        section #events data-live=(topics(&[Topic::Region, Topic::Failures])) {
            h2 { "Out of service" }
            @if kinds.is_empty() { (ui::missing("No event is active.")) } @else {
                p.lead { (number::counted(kinds.values().sum(), "event")) " with " (number::counted(summary.all.down, "unavailable server"))
                    ". Servers in planned maintenance are not counted as unavailable." }
                div.scroll { table.slim {
                    caption.quiet { "Active events by kind and scope" }
                    thead { tr { th scope="col" { "Kind" } th scope="col" { "Covers" } th.n scope="col" { "Events" } } }
                    tbody { @for ((kind, scope), count) in &kinds { tr {
                        th scope="row" { (kind.replace('_', " ")) } td { (scope_word(scope)) }
                        td.n { a href=(path(kind, scope)) { (number::count(*count)) } }
                    } } }
                } }
            }
        }
    }
}

/// A page with one list.
fn listed(
    answer: Answer,
    (position, lead): (usize, &str),
    (topic, as_of): (Topic, &AsOf),
    note: Option<Markup>,
    reader: &Reader,
) -> Response {
    let (path, title) = LISTS[position];
    let part = match answer {
        Answer::File(file) => return file,
        Answer::Part(part) => part,
    };
    let body = html! {
        h1 { (title) }
        p.facts { span { (lead) } (as_of.show()) }
        (switch(&LISTS, path))
        section #rows data-live=(topics(&[Topic::Failures, topic])) { (part) @if let Some(note) = note { p.note { (note) } } }
    };
    Page { nav: NavItem::Failures, title, charts: false, body }.show(reader).into_response()
}

fn of_the_newest(read: usize, rows: &str) -> Option<Markup> {
    let cut = read == SORTED_MAX as usize;
    cut.then(
        || html! { "Listed are the newest " (number::count(read)) " " (rows) "; the API has all." },
    )
}

/// Handler of `GET /failures/events`.
pub(super) async fn events(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let scopes = Scope::ALL.map(Scope::as_str);
    let kinds = UnavailabilityKind::ALL.map(UnavailabilityKind::as_str);
    let given = |name: &'static str| Some(params.get(name)).filter(|text| !text.is_empty());
    let open = given("state").map(|state| state != "ended");
    let asked = EventsAsked {
        scope: query::word(given("scope"), "scope", scopes)?.and_then(Scope::parse),
        kind: query::word(given("kind"), "kind", kinds)?.and_then(UnavailabilityKind::parse),
        open,
        ..EventsAsked::default()
    };
    let found = in_time(site.broker.events_page(&asked, SORTED_MAX)).await?;
    let note = of_the_newest(found.len(), "events");
    let list = List {
        kind: unavailability::EVENTS,
        noun: "event",
        path: LISTS[1].0.to_owned(),
        api: None,
        columns: &EVENTS,
        search: (&["scope_id", "event"], "Part of a name"),
        fixed: Vec::new(),
        own: &[],
    };
    let choices = [
        Choice::new("state", "State", EVENT_STATES),
        Choice::new("kind", "Kind", kinds),
        Choice::new("scope", "Scope", scopes),
    ];
    let rows = found.into_iter().map(|of| Written::new(&ListedEvent::new(of, as_of.now())));
    let answer = list.answer(&params, &choices, rows)?;
    let lead = "What takes servers out of service: failures, and announced maintenance.";
    Ok(listed(answer, (1, lead), (Topic::Region, &as_of), note, &reader))
}

/// Handler of `GET /failures/replacements`.
pub(super) async fn replacements(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let states: Vec<ReplacementState> =
        query::state_of(Some(params.get("state")).filter(|of| !of.is_empty()))?
            .into_iter()
            .collect();
    let found = in_time(site.broker.replacements(&states, SORTED_MAX)).await?;
    let note = of_the_newest(found.len(), "replacements");
    let list = List {
        kind: incidents::REPLACEMENTS,
        noun: "replacement",
        path: LISTS[2].0.to_owned(),
        api: Some("/ops/v1/replacements"),
        columns: &REPLACEMENTS,
        search: (&["server", "reservation", "spare"], "Server or reservation"),
        fixed: Vec::new(),
        own: &[],
    };
    let choices =
        [Choice::new("state", "State", ReplacementState::ALL.iter().map(|of| of.as_str()))];
    let rows = found.into_iter().map(|of| Written::new(&incidents::replacement(of)));
    let answer = list.answer(&params, &choices, rows)?;
    let lead = "A server that fails is replaced by a server of the shared buffer, within a minute if one fits.";
    Ok(listed(answer, (2, lead), (Topic::Moves, &as_of), note, &reader))
}

/// Handler of `GET /failures/loans`.
pub(super) async fn loans(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let found = in_time(site.broker.loans()).await?;
    let list = List {
        kind: incidents::LOANS,
        noun: "loan",
        path: LISTS[3].0.to_owned(),
        api: Some("/ops/v1/loans"),
        columns: &LOANS,
        search: (&["borrower", "owner", "msb"], "Reservation or MSB"),
        fixed: Vec::new(),
        own: &[],
    };
    let rows = found.into_iter().map(|of| Written::new(&incidents::borrowed(of)));
    let answer = list.answer(&params, &[], rows)?;
    let lead =
        "Elastic reservations borrow idle servers of buffers. They are recalled when needed.";
    Ok(listed(answer, (3, lead), (Topic::Region, &as_of), None, &reader))
}
