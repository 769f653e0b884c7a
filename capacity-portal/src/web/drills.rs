//! Drills: the simulated loss of an MSB or of another fault domain. Nothing is written.

use super::layout::{NavItem, Page, RegionReader};
use super::link;
use super::list::{Answer, Choice, Column, List, Params, Shown};
use super::ui::{self, Mood};
use crate::drill::{Drilled, Lost};
use crate::http::auth::Role;
use crate::http::list::{ListKind, PAGE, Written};
use crate::http::{Problem, Site};
use crate::region_summary::RegionSummary;
use crate::rehearsal::{Rehearse, Rehearsed};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use decisions::elastic::Loan;
use fleet::audit::Certified;
use fleet::{RegionSnapshot, Rru};
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use std::sync::Arc;
use tokio::task::spawn_blocking;
use utoipa::ToSchema;

static COLUMNS: [Column; 9] = [
    Column::new("reservation", "Reservation", Shown::Link(link::reservation)),
    Column::new("outcome", "Result", Shown::State(mood)),
    Column::new("priority", "Priority", Shown::Number),
    Column::new("promised_rru", "Promised, RRU", Shown::Number),
    Column::new("held_rru", "Held now, RRU", Shown::Number),
    Column::new("left_at_once_rru", "At once", Shown::Number),
    Column::new("needed_at_once_rru", "Needed at once", Shown::Number),
    Column::new("left_rru", "Within 30 minutes", Shown::Number),
    Column::new("missing_rru", "Missing", Shown::Number),
];

/// What the loss means for a reservation; the guarantees that it breaks come first.
const OUTCOMES: [&str; 5] =
    ["short", "short at once", "short, no buffer requested", "keeps a quorum", "keeps all"];

fn mood(outcome: &str) -> Mood {
    match OUTCOMES.iter().position(|of| *of == outcome) {
        Some(0 | 1) => Mood::Bad,
        Some(2) => Mood::Warn,
        _ => Mood::Good,
    }
}

/// A reservation after the loss, as the page lists it.
#[derive(Serialize, ToSchema)]
struct AfterLoss {
    reservation: String,
    outcome: &'static str,
    /// Whether what is guaranteed for this case is kept.
    kept: bool,
    priority: i32,
    promised_rru: f64,
    held_rru: f64,
    left_at_once_rru: f64,
    needed_at_once_rru: Option<f64>,
    left_rru: f64,
    missing_rru: f64,
}

impl AfterLoss {
    fn new(row: &Certified, after: &Drilled) -> AfterLoss {
        AfterLoss {
            reservation: row.reservation_id.to_string(),
            outcome: OUTCOMES[outcome(row, after)],
            kept: after.keeps(row),
            priority: row.priority,
            promised_rru: row.capacity.to_f64(),
            held_rru: row.held().to_f64(),
            left_at_once_rru: after.left_at_once(row).to_f64(),
            needed_at_once_rru: after.is_covered(row).then(|| row.needed_at_once().to_f64()),
            left_rru: after.left(row).to_f64(),
            missing_rru: after.missing(row).to_f64(),
        }
    }
}

/// Handler of `GET /drills`: the form and the result of the loss that `msb` names: an MSB, or a domain as `switch=sw1`; empty
/// before one is chosen. It writes nothing, so links to results can be shared.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let summary = site.region_summaries.current(&site.region).await?;
    let lost = params.get("msb").to_owned();
    let result = match &summary {
        Some(summary) if !lost.is_empty() => {
            reader.needs(Role::Operator)?;
            match simulate(summary.clone(), params, site.rehearsal.clone()).await? {
                Answer::File(file) => return Ok(file),
                Answer::Part(part) => Some(part),
            }
        }
        _ => {
            params.only(&["msb"])?;
            None
        }
    };
    let body = html! {
        h1 { "Drills" }
        p.facts { span { "Simulates the loss of an MSB or of another fault domain on the current region. Nothing is changed." } }
        form.toolbar method="get" action="/drills" {
            div.field { label for="msb" { "What is lost" }
                select #msb name="msb" required {
                    option value="" { "Choose an MSB or a domain" }
                    @for of in summary.iter().flat_map(|summary| &summary.region().msbs) {
                        option value=(of.id) selected[*of.id == *lost] { (of.id) }
                    }
                    @for of in summary.iter().flat_map(|summary| &summary.region().partitions) {
                        optgroup label=(of.name) { @for domain in &of.domains {
                            @let value = domain_value(&of.name, domain);
                            option value=(value) selected[value == lost] { (domain) }
                        } }
                    }
                } }
            button.main type="submit" { "Simulate" }
        }
        @if let Some(result) = &result { (result) }
        @else if summary.is_none() { (ui::missing("No region is loaded.")) }
    };
    Ok(Page { nav: NavItem::Drills, title: "Drills", charts: false, body }
        .show(&reader)
        .into_response())
}

async fn simulate(
    summary: Arc<RegionSummary>,
    params: Params,
    rehearsal: Option<Arc<dyn Rehearse>>,
) -> Result<Answer, Problem> {
    let name = params.get("msb");
    let lost = find(summary.region(), name).ok_or_else(|| {
        let detail = format!("there is no MSB or fault domain {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_msb", detail)
    })?;
    let simulated = spawn_blocking(move || {
        let after = Drilled::of(summary.region(), lost);
        let capacity = match capacity(&summary, &params, &after)? {
            file @ Answer::File(_) => return Ok(file),
            Answer::Part(part) => part,
        };
        let decisions = lost.as_msb().zip(rehearsal);
        let decisions = decisions.map(|(msb, of)| of.loss(summary.region(), msb));
        Ok(Answer::Part(result(&summary, &after, &capacity, decisions.as_ref())))
    });
    simulated.await.map_err(|error| crate::region_summary::unreadable(&error))?
}

/// The value of a domain in the form.
fn domain_value(partition: &str, domain: &str) -> String {
    format!("{partition}={domain}")
}

/// What a value of the form names; an MSB first.
fn find(region: &RegionSnapshot, value: &str) -> Option<Lost> {
    let domain = || {
        let (partition, domain) = value.split_once('=')?;
        Lost::domain(region, partition, domain)
    };
    Lost::msb(region, value).or_else(domain)
}

/// Reservations with servers there, and all others that would be short.
fn concerned<'a>(summary: &'a RegionSummary, after: &Drilled) -> Vec<&'a Certified> {
    let rows = &summary.held.certificate.rows;
    rows.iter().filter(|row| after.touches(row) || is_short(row, after)).collect()
}

fn capacity(summary: &RegionSummary, params: &Params, after: &Drilled) -> Result<Answer, Problem> {
    const KIND: ListKind = ListKind {
        rows: "reservations",
        key: &["reservation"],
        order: "kept, missing_rru desc, priority",
        page: PAGE,
    };
    let list = List {
        kind: KIND,
        noun: "reservation",
        path: "/drills".to_owned(),
        api: None,
        columns: &COLUMNS,
        search: (&["reservation"], "Part of the name"),
        fixed: Vec::new(),
        own: &["msb"],
    };
    let rows = concerned(summary, after).into_iter().map(|row| AfterLoss::new(row, after));
    let rows = rows.map(|row| Written::new(&row));
    list.answer(params, &[Choice::new("outcome", "Result", OUTCOMES)], rows)
}

fn result(
    summary: &RegionSummary,
    after: &Drilled,
    capacity: &Markup,
    decisions: Option<&Rehearsed>,
) -> Markup {
    let (gone, region) = (after.gone(), summary.region());
    let rows = concerned(summary, after);
    let broken = rows.iter().filter(|row| !after.keeps(row)).count();
    let short = rows.iter().filter(|row| after.keeps(row) && is_short(row, after));
    let (unprotected, servers) = short.fold((0, 0), |(n, sum), row| {
        (n + 1, sum + row.largest_value.servers_for(after.missing(row)))
    });
    html! {
        div #result {
            div class={ "notice " @if broken > 0 { "bad" } @else { "good" } } {
                strong.verdict {
                    @if broken == 0 { "Every guarantee is kept" }
                    @else { (number::counted(broken, "reservation")) " would have less than is guaranteed" }
                }
                p { "The loss of " @match after.lost {
                        Lost::Msb(msb) => { @let name = &region.msbs[msb.ix()].id; a href=(link::msb(name)) { (name) } }
                        Lost::Domain(partition, domain) => {
                            @let of = &region.partitions[partition.ix()];
                            (of.name) " " (of.domains[domain as usize])
                        }
                    } " takes " (number::counted(gone.servers, "server")) ", "
                    (number::count(gone.in_use)) " of them in use." }
                @if unprotected > 0 {
                    p { (number::counted(unprotected, "reservation")) " that no guarantee covers in full would have less than promised: "
                        "at least " (number::counted(servers, "server")) " would be missing. Their capacity is not to survive this loss." }
                }
            }
            section {
                h2 { "Remaining capacity" }
                p.lead { "Reservations with servers there: those that would be short first, then by priority." }
                @if rows.is_empty() { (ui::missing("No reservation has servers there.")) } @else { (capacity) }
            }
            @if let Some(decisions) = decisions { (mover(decisions)) }
            @else if after.lost.as_msb().is_none() {
                p.note { "The mover does not detect the loss of a domain that is not an MSB: it replaces failed servers one by one." }
            }
        }
    }
}

/// Whether a reservation would have less than promised, guaranteed for this case or not.
fn is_short(row: &Certified, after: &Drilled) -> bool {
    after.missing(row) > Rru::ZERO || !after.keeps(row)
}

/// The result of the loss for a reservation, as a position in [`OUTCOMES`].
fn outcome(row: &Certified, after: &Drilled) -> usize {
    match (after.keeps(row), after.missing(row) > Rru::ZERO) {
        (false, true) => 0,
        (false, false) => 1,
        (true, true) if row.msb_max.is_none() || after.lost.as_msb().is_none() => 2,
        (true, true) => 3,
        (true, false) => 4,
    }
}

fn mover(decisions: &Rehearsed) -> Markup {
    let sum = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>() as usize;
    html! {
        section {
            h2 { "What the mover would decide" }
            p { strong { (number::count(sum(&decisions.recalled))) } " lent servers would be recalled at once, and "
                strong { (number::count(sum(&decisions.recalled_later))) } " more within half an hour if the MSB is still lost." }
            @let given: u64 = decisions.preemptions.iter().map(|of| of.count).sum();
            @if given == 0 { p.note { "No reservation has to be preempted." } } @else {
                p { strong { (number::count(given as usize)) } " servers could move to reservations that are short: free ones, and those of less important reservations." }
                div.scroll { table {
                    caption { "Servers that could move to reservations that are short; an operator decides" }
                    thead { tr { th scope="col" { "From" } th scope="col" { "To" } th scope="col" { "MSB" } th scope="col" { "Type" }
                        th scope="col" { "In use" } th.n scope="col" { "Servers" } } }
                    tbody { @for of in &decisions.preemptions { tr {
                        th scope="row" { @match &of.source { Some(name) => a href=(link::reservation(name)) { (name) }, None => "free" } }
                        td { a href=(link::reservation(&of.target)) { (of.target) } }
                        td { (of.msb) } td { (of.hardware_type) } td { @if of.in_use { "yes" } @else { "no" } }
                        td.n { (number::count(of.count as usize)) }
                    } } }
                } }
            }
            @if !decisions.stand.is_empty() {
                div.scroll { table.slim {
                    caption { "Reservations that would be short or preempted, with open moves counted as done" }
                    thead { tr { th scope="col" { "Reservation" } th.n scope="col" { "After the loss, RRU" } th.n scope="col" { "After preemption, RRU" } } }
                    tbody { @for of in &decisions.stand { tr {
                        th scope="row" { a href=(link::reservation(&of.reservation)) { (of.reservation) } }
                        td.n { (number::rru(of.before)) } td.n { (number::rru(of.after)) }
                    } } }
                } }
            }
        }
    }
}
