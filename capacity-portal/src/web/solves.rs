//! Solves: the latest, and their optimality gaps.

use super::approval::{self, RejectForm};
use super::chart::{Across, Chart, Scale, Series, Unit};
use super::layout::{NavItem, Page, RegionReader};
use super::list::{Answer, Cells, Choice, Column, List, Params, Shown};
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use crate::api::ops::solves::reject_for;
use crate::http::auth::Role;
use crate::http::list::{SORTED_MAX, Written};
use crate::http::query;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Form, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use broker::{Cause, SolveFigures, SolveId, SolveRow, SolveState, SolvesAsked, State as _};
use chrono::{DateTime, Utc};
use control::Topic;
use maud::{Markup, html};
use report::number;
use serde::Serialize;
use utoipa::ToSchema;

static COLUMNS: [Column; 8] = [
    Column::new("requested_at", "Requested at", Shown::Drawn(opened)),
    Column::new("cause", "Cause", Shown::Word),
    Column::new("state", "State", Shown::State(state_mood)),
    Column::new("reason", "Reason", Shown::Word),
    Column::new("seconds", "Time, s", Shown::Number),
    Column::new("version", "Version", Shown::Number),
    Column::new("failure", "Failure", Shown::Text).extra(),
    Column::new("solve", "Id", Shown::Text).extra(),
];

/// A solve, as the page lists it.
#[derive(Serialize, ToSchema)]
struct ListedSolve {
    requested_at: DateTime<Utc>,
    cause: &'static str,
    state: &'static str,
    reason: Option<&'static str>,
    /// Its duration, up to now while it runs.
    seconds: Option<f64>,
    version: Option<i64>,
    failure: Option<String>,
    solve: String,
}

impl ListedSolve {
    fn new(of: &SolveRow, now: DateTime<Utc>) -> ListedSolve {
        ListedSolve {
            requested_at: of.requested_at,
            cause: of.cause.as_str(),
            state: of.state.as_str(),
            reason: of.reason.map(|reason| reason.as_str()),
            seconds: seconds(of, now).map(|seconds| (10.0 * seconds).round() / 10.0),
            version: of.version.map(|version| version.0),
            failure: of.failure.clone(),
            solve: of.id.to_string(),
        }
    }
}

fn opened(row: &dyn Cells) -> Markup {
    html! { a href={ "/solves/" (row.text("solve")) } {
    @match row.text("requested_at").parse() { Ok(at) => (ui::when(at)), Err(_) => (number::NOTHING) } } }
}

fn state_mood(state: &str) -> Mood {
    SolveState::ALL.iter().find(|of| of.as_str() == state).map_or(Mood::Plain, |of| mood(*of))
}

/// Solves in the charts.
const FIGURES: u32 = 500;

/// Handler of `GET /solves`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    params: Params,
) -> Result<Response, Problem> {
    let broker = &site.broker;
    let as_of = AsOf::begin(&site).await?;
    let given = |name: &str| Some(params.get(name)).filter(|text| !text.is_empty());
    let causes = Cause::ALL.map(Cause::as_str);
    let cause = query::word(given("cause"), "cause", causes)?;
    let asked = SolvesAsked {
        state: query::state_of::<SolveState>(given("state"))?,
        cause: Cause::ALL.into_iter().find(|of| cause == Some(of.as_str())),
        before: None,
    };
    let solves = in_time(broker.solves_page(&asked, SORTED_MAX)).await?;
    let list = List {
        kind: crate::api::ops::solves::SOLVES,
        noun: "solve",
        path: "/solves".to_owned(),
        api: None,
        columns: &COLUMNS,
        search: (&["solve", "reason", "failure"], "Part of an id or reason"),
        fixed: Vec::new(),
        own: &[],
    };
    let choices = [
        Choice::new("state", "State", SolveState::ALL.iter().map(|of| of.as_str())),
        Choice::new("cause", "Cause", causes),
    ];
    let rows = solves.iter().map(|of| Written::new(&ListedSolve::new(of, as_of.now())));
    let part = match list.answer(&params, &choices, rows)? {
        Answer::File(file) => return Ok(file),
        Answer::Part(part) => part,
    };
    let figures = in_time(broker.solve_figures(FIGURES)).await?;
    let body = html! {
        div.head { div { h1 { "Solves" }
        p.facts { span { "Each solve reassigns the whole region with as few moves as possible and proves how far it is from the optimum." } (as_of.show()) } }
            @if reader.may(Role::Operator) { form.actions method="post" action="/solves" { (reader.csrf())
                button.main type="submit" { "Solve now" } } } }
        @for solve in solves.iter().filter(|of| of.state == SolveState::AwaitingApproval) {
            section #awaiting {
                h2 { "Awaiting approval" }
                p { a href={ "/solves/" (solve.id) } { "Solve of " (ui::when(solve.requested_at)) } " moves more servers in use than the settings allow without approval." }
                (approval::decision(&format!("/solves/{}", solve.id), &reader))
            }
        }
        section #latest data-live=(topics(&[Topic::Solves])) {
            h2 { "Latest" }
            (part)
            @if solves.len() == SORTED_MAX as usize { p.note { "Listed are the newest " (number::count(solves.len())) " solves; the API has all." } }
        }
        (gaps(&figures))
        p.note { "Moves, servers and promises over time: " a href="/history" { "History" } }
    };
    Ok(Page { nav: NavItem::Solves, title: "Solves", charts: true, body }
        .show(&reader)
        .into_response())
}

/// Handler of `POST /solves`: queues a solve, or joins the one that is queued, and shows it.
pub(super) async fn ask(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let broker = &site.broker;
    let asked =
        in_time(broker.request_solve(&actor, SolveId::now_v7(), Cause::Demand, None)).await?;
    Ok(match asked {
        Some((solve, _)) => Redirect::to(&format!("/solves/{solve}")),
        None => Redirect::to("/solves"),
    })
}

async fn waiting(site: &Site, id: &str) -> Result<SolveId, Problem> {
    let unknown = || {
        Problem::new(StatusCode::NOT_FOUND, "unknown_solve", format!("there is no solve {id:?}"))
    };
    let id: SolveId = id.parse().map_err(|_| unknown())?;
    in_time(site.broker.solve(id)).await?.map(|solve| solve.id).ok_or_else(unknown)
}

/// Handler of `POST /solves/{id}/approve`.
pub(super) async fn approve(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let solve = waiting(&site, &id).await?;
    in_time(site.broker.approve_solve(&actor, solve)).await?;
    Ok(Redirect::to(&format!("/solves/{solve}")))
}

/// Handler of `POST /solves/{id}/reject`.
pub(super) async fn reject(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
    Form(RejectForm { why }): Form<RejectForm>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let solve = waiting(&site, &id).await?;
    reject_for(&site, &actor, solve, &why).await?;
    Ok(Redirect::to(&format!("/solves/{solve}")))
}

/// How a state of a solve is coloured.
pub(super) fn mood(state: SolveState) -> Mood {
    match state {
        SolveState::Published => Mood::Good,
        SolveState::Failed | SolveState::Rejected => Mood::Bad,
        SolveState::Stale | SolveState::AwaitingApproval => Mood::Warn,
        SolveState::Requested | SolveState::Running => Mood::Plain,
    }
}

/// Solves as a table.
pub(super) fn table(solves: &[SolveRow], now: DateTime<Utc>) -> Markup {
    if solves.is_empty() {
        return ui::missing("No solve was requested yet.");
    }
    html! {
        div.scroll { table {
            caption.quiet { "Solves, the newest first" }
            thead { tr { th scope="col" { "Requested" } th scope="col" { "Cause" } th scope="col" { "State" }
                th.n scope="col" { "Time" } th.n scope="col" { "Version" } } }
            tbody { @for solve in solves { tr {
                th scope="row" { a href={ "/solves/" (solve.id) } { (ui::ago(solve.requested_at, now)) } }
                td { (solve.cause.as_str()) }
                td { (ui::state(mood(solve.state), solve.state.as_str()))
                    @if let Some(reason) = solve.reason { " " span.dim { (reason.as_str().replace('_', " ")) } } }
                td.n { (took(solve, now)) }
                td.n { @match solve.version { Some(version) => (ui::count(version.0)), None => (number::NOTHING) } }
            } } }
        } }
    }
}

/// Duration of a solve, up to now while it runs.
pub(super) fn took(solve: &SolveRow, now: DateTime<Utc>) -> String {
    seconds(solve, now).map_or_else(|| number::NOTHING.to_owned(), number::seconds)
}

fn seconds(solve: &SolveRow, now: DateTime<Utc>) -> Option<f64> {
    let end = if solve.state == SolveState::Running { now } else { solve.state_at };
    solve.started_at.map(|began| (end - began).as_seconds_f64())
}

fn gaps(figures: &[SolveFigures]) -> Markup {
    let proved = figures.iter().rev().filter_map(|of| Some((of.at.timestamp() as f64, of.gap?)));
    let (at, values): (Vec<f64>, Vec<f64>) = proved.unzip();
    let (count, last) = (at.len(), values.last().copied());
    html! {
        section #gaps data-live=(topics(&[Topic::Solves])) {
            h2 { "Proved gap" }
            p.lead { "Optimality gap: the share of the cost that another assignment could save at most." }
            @match last {
                None => (ui::missing("No solve has been published yet.")),
                Some(last) => {
                    (Chart {
                        label: "Proved gap of each published solve over time", across: Across::Time, across_label: "Published",
                        unit: Unit::Percent, scale: Scale::FromZero, stepped: false, at, span: None, zoom: None,
                        series: vec![Series::new("Gap", "primal", values)],
                    }.show())
                    p.note { "Latest: " (ui::gap(last)) ". Shown: " (number::counted(count, "solve")) "." }
                }
            }
        }
    }
}
