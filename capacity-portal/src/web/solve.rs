//! One solve: how far it is, outcome, optimality gap, time by step, objective, spread over MSBs.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::layout::{NavItem, Page, RegionReader};
use super::live::{AsOf, topics};
use super::ui::{self, Mood};
use super::{approval, heat, policies, solves};
use crate::http::auth::Role;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, Redirect};
use broker::{Document, SolveId, SolveProgress, SolveRow, SolveState, SolveStep, State as _};
use control::Topic;
use maud::{Markup, html};
use report::solve_report::{Moment, Termination};
use report::{SolveReport, number};
use serde_json::Value;
use std::collections::BTreeMap;

/// Handler of `GET /solves/{id}`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let unknown = || {
        Problem::new(StatusCode::NOT_FOUND, "unknown_solve", format!("there is no solve {id:?}"))
    };
    let solve_id: SolveId = id.parse().map_err(|_| unknown())?;
    let as_of = AsOf::begin(&site).await?;
    let solve = in_time(broker.solve(solve_id)).await?.ok_or_else(unknown)?;
    let report = in_time(broker.solve_report(solve_id)).await?;
    let progress = in_time(broker.solve_progress(solve_id)).await?;
    let now = as_of.now();
    let follows = topics(&[Topic::Solves, Topic::Progress]);
    let ended = !matches!(solve.state, SolveState::Requested | SolveState::Running);
    let body = html! {
        div.head {
            div {
                (ui::crumbs(&[("/solves", "Solves")]))
                h1 { "Solve of " (ui::when(solve.requested_at)) }
                p.facts #facts data-live=(follows) {
                    (ui::state(solves::mood(solve.state), solve.state.as_str()))
                    span { "cause: " (solve.cause.as_str()) }
                    @match solve.state {
                        SolveState::Requested => span { "waits for a worker" },
                        SolveState::Running => span { "running for "
                            span data-elapsed=[solve.started_at.map(|began| (now - began).num_milliseconds())] { (solves::took(&solve, now)) } },
                        _ => span { "took " (solves::took(&solve, now)) },
                    }
                    span { "started from version " (ui::count(solve.parent.0)) }
                    @if let Some(version) = solve.version { span { "published as version " (ui::count(version.0)) } }
                }
                p.facts { (as_of.show()) }
            }
            div #actions data-live=(topics(&[Topic::Solves])) {
                @if !ended && reader.may(Role::Operator) {
                    form.actions method="post" action={ "/solves/" (solve.id) "/cancel" } { (reader.csrf())
                        button.danger type="submit" { "Cancel solve" } }
                }
            }
        }
        div #outcome data-live=(follows) {
            (outcome(&solve))
            @if solve.state == SolveState::AwaitingApproval {
                div.notice.warn { strong.verdict { "Awaiting approval" }
                    p { "It moves more servers in use than the settings allow without approval. A version that is published meanwhile makes it stale." }
                    (approval::decision(&format!("/solves/{}", solve.id), &reader)) }
            }
            @match (&report, &progress) {
                (Some(report), _) => (report_sections(report)),
                (None, _) if solve.state == SolveState::Published => { (ui::missing("The report of this solve was deleted.")) (heat::without_report()) },
                (None, Some(progress)) => (so_far(&solve, progress)),
                (None, None) => {},
            }
        }
    };
    let title = format!("Solve of {}", solve.requested_at.format("%Y-%m-%d %H:%M"));
    Ok(Page { nav: NavItem::Solves, title: &title, charts: true, body }.show(&reader))
}

/// Handler of `POST /solves/{id}/cancel`.
pub(super) async fn cancel(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Path(id): Path<String>,
) -> Result<Redirect, Problem> {
    let actor = reader.needs(Role::Operator)?;
    let unknown = |_| {
        Problem::new(StatusCode::NOT_FOUND, "unknown_solve", format!("there is no solve {id:?}"))
    };
    let solve: SolveId = id.parse().map_err(unknown)?;
    in_time(site.broker.cancel_solve(&actor, solve)).await?;
    Ok(Redirect::to(&format!("/solves/{solve}")))
}

fn outcome(solve: &SolveRow) -> Markup {
    html! {
        @if let Some(failure) = &solve.failure {
            div class={ "notice " (solves::mood(solve.state).class()) } {
                @if let Some(reason) = solve.reason { strong.verdict { (reason.as_str().replace('_', " ")) } }
                p { (failure) }
            }
        }
    }
}

/// What a worker does, for people.
const fn step_title(step: SolveStep) -> &'static str {
    match step {
        SolveStep::Export => "reads the region",
        SolveStep::Solve => "solves",
        SolveStep::Audit => "checks the result",
        SolveStep::Publish => "publishes",
    }
}

/// How far a solve is, or was when it ended without a result.
fn so_far(solve: &SolveRow, progress: &SolveProgress) -> Markup {
    // Points of another version may lack members.
    let history: Vec<Moment> = progress.history.read().unwrap_or_default();
    let last = history.last();
    let best = history.iter().rev().find(|of| of.gap().is_some());
    let amount = |of: Option<f64>| of.map_or(number::NOTHING.to_owned(), number::decimal);
    let running = solve.state == SolveState::Running;
    html! {
        dl.tiles {
            (ui::tile(Mood::Plain, if running { "The worker" } else { "The worker last" }, &html! { (step_title(progress.step)) },
                &html! { @if let Some(last) = last.filter(|_| progress.step == SolveStep::Solve) {
                    "phase " (last.phase) " of 2, " (last.step.replace('_', " ")) } }))
            (ui::tile(Mood::Plain, "Proved gap", &html! { (best.and_then(Moment::gap).map_or(number::NOTHING.to_owned(), ui::gap)) },
                &html! { @if let Some(best) = best { "after " (number::seconds(best.seconds)) } @else { "incumbent or bound not known yet" } }))
            (ui::tile(Mood::Plain, "Incumbent", &html! { (amount(best.and_then(|of| of.primal))) },
                &html! { "cost of the best assignment so far" }))
            (ui::tile(Mood::Plain, "Bound", &html! { (amount(best.and_then(|of| of.dual_bound))) },
                &html! { "no assignment costs less" }))
        }
        (gap_over_time(&history))
    }
}

fn report_sections(report: &Document) -> Markup {
    let report = report.read::<Value>().map_err(|error| error.to_string());
    match report.and_then(|of| SolveReport::read(&of).map_err(|error| error.to_string())) {
        Ok(report) => html! { (sections(&report)) (heat::section(&report)) },
        Err(error) => {
            tracing::warn!(error, "report of a solve cannot be read");
            ui::missing(&format!("The report of this solve cannot be shown. {error}"))
        }
    }
}

fn sections(report: &SolveReport) -> Markup {
    let percent =
        |of: Option<f64>| html! { (of.map_or(number::NOTHING.to_owned(), number::percent)) };
    let missing = report.shortfall_servers;
    let whole =
        |of: Option<usize>| html! { (of.map_or(number::NOTHING.to_owned(), number::count)) };
    html! {
        dl.tiles {
            (ui::tile(Mood::Plain, "Proved gap",
                &html! { (report.gap().map_or(number::NOTHING.to_owned(), ui::gap)) },
                &html! {
                    @if let (Some(_), Some(search)) = (report.whole.and_then(|of| of.gap), report.phase1.gap) {
                        "of the whole objective; of the search without racks: " (ui::gap(search)) "; "
                    }
                    "ended: " (report.phase1.termination.map_or(number::NOTHING, Termination::text))
                }))
            (ui::tile(Mood::Plain, "Moves in use", &whole(report.moves.map(|of| of.in_use)),
                &html! { (whole(report.moves.map(|of| of.idle))) " idle, " (whole(report.acquired)) " free servers assigned" }))
            (ui::tile(match missing { Some(0) => Mood::Good, Some(_) => Mood::Bad, None => Mood::Plain }, "Servers missing, at least", &whole(missing),
                &html! { (whole(report.initial_shortfall_servers)) " before the solve" }))
            (ui::tile(Mood::Plain, "Embedded buffers", &percent(report.buffer.map(|of| of.share)),
                &html! { "lower bound with this hardware: " (percent(report.buffer.map(|of| of.bounds.hardware))) }))
            (ui::tile(Mood::Plain, "Time", &html! { (report.seconds.total.map_or(number::NOTHING.to_owned(), number::seconds)) },
                &html! { "solver version " (report.version.as_deref().unwrap_or(number::NOTHING)) ", seed " (report.seed.map_or(number::NOTHING.to_owned(), |seed| seed.to_string())) }))
        }
        div.columns { (gap_over_time(&report.history)) (steps(report)) }
        (objective(report))
        @if !report.limits.is_empty() { (policies::nearest(&report.limits)) }
    }
}

fn gap_over_time(history: &[Moment]) -> Markup {
    let moments: Vec<&Moment> =
        history.iter().filter(|of| of.phase == 1 && of.gap().is_some()).collect();
    html! {
        section #progress {
            h2 { "Gap over time" }
            p.lead { "Share of the cost of the best assignment so far that any other could save at most: the distance to the proved lower bound." }
            @if moments.is_empty() { (ui::missing("Incumbent and bound are not known yet.")) } @else {
                (Chart {
                    label: "Proved gap of the solve over time", across: Across::Seconds, across_label: "After", unit: Unit::Percent,
                    scale: Scale::Log, stepped: true, at: moments.iter().map(|of| of.seconds).collect(), span: None, zoom: None,
                    series: vec![
                        Series { label: "Gap", colour: Some("primal"), values: moments.iter().map(|of| of.gap()).collect(), band: false },
                        Series { label: "Incumbent", colour: None, values: moments.iter().map(|of| of.primal).collect(), band: false },
                        Series { label: "Bound", colour: None, values: moments.iter().map(|of| of.dual_bound).collect(), band: false },
                    ],
                }.show())
            }
        }
    }
}

fn steps(report: &SolveReport) -> Markup {
    let mut order: Vec<(u8, &str)> = Vec::new();
    let mut seconds: BTreeMap<(u8, &str), f64> = BTreeMap::new();
    for of in &report.steps {
        let step = (of.phase, of.step.as_str());
        if !seconds.contains_key(&step) {
            order.push(step);
        }
        *seconds.entry(step).or_default() += of.seconds;
    }
    let most = seconds.values().copied().fold(0.0, f64::max);
    html! {
        section #time {
            h2 { "Time by step " span.ref { "figure 9" } }
            p.lead { "Phase 1 assigns servers to reservations and spreads them over MSBs; phase 2 spreads them over racks." }
            @if order.is_empty() { (ui::missing("The report has no steps.")) } @else {
                div.scroll { table {
                    caption.quiet { "Seconds of each step" }
                    thead { tr { th scope="col" { "Step" } th.n scope="col" { "Phase" } th scope="col" { "" } th.n scope="col" { "Time" } } }
                    tbody { @for step in &order { tr {
                        th scope="row" { (step.1.replace('_', " ")) }
                        td.n { (step.0) }
                        td.graph { (ui::bar(&[(if step.0 == 1 { "primal" } else { "bound" }, seconds[step])], most)) }
                        td.n { (number::seconds(seconds[step])) }
                    } } }
                } }
            }
        }
    }
}

fn objective(report: &SolveReport) -> Markup {
    let terms = report.objective.map_or_else(Vec::new, |after| {
        let before = report.initial_objective;
        vec![
            ("Moves (expression 1)", "s4", after.stability, before.map(|of| of.stability)),
            ("Rack spread (2)", "s1", after.rack_spread, before.map(|of| of.rack_spread)),
            ("MSB spread (3)", "s3", after.msb_spread, before.map(|of| of.msb_spread)),
            ("Embedded buffers (4)", "s2", after.buffer, before.map(|of| of.buffer)),
        ]
    });
    let after: f64 = terms.iter().map(|of| of.2).sum();
    let before: f64 = terms.iter().map(|of| of.3.unwrap_or(0.0)).sum();
    let whole = after.max(before);
    html! {
        section #objective {
            h2 { "Objective" }
            @if terms.is_empty() { (ui::missing("The report has no objective.")) } @else {
                p.lead { "Cost of the assignment by the four expressions of the paper." }
                (ui::legend(terms.iter().map(|(label, class, ..)| (*class, (*label).to_owned()))))
                div.scroll { table {
                    caption.quiet { "The terms of the objective, before and after" }
                    thead { tr { th scope="col" { "" } th scope="col" { "Terms" } th.n scope="col" { "Sum" }
                        @for (label, ..) in &terms { th.n scope="col" { (label) } } } }
                    tbody {
                        tr { th scope="row" { "Before" } td.graph { (ui::bar(&terms.iter().map(|of| (of.1, of.3.unwrap_or(0.0))).collect::<Vec<_>>(), whole)) }
                            td.n { (number::decimal(before)) } @for of in &terms { td.n { (of.3.map_or(number::NOTHING.to_owned(), number::decimal)) } } }
                        tr { th scope="row" { "After" } td.graph { (ui::bar(&terms.iter().map(|of| (of.1, of.2)).collect::<Vec<_>>(), whole)) }
                            td.n { (number::decimal(after)) } @for of in &terms { td.n { (number::decimal(of.2)) } } }
                    }
                } }
            }
        }
    }
}
