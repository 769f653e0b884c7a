//! Policies in SQL: whether they hold, which of their groups are nearest to a limit, and what the limits cost.

use super::layout::{NavItem, Page, RegionReader};
use super::ui::{self, Mood};
use crate::http::{Problem, Site, in_time};
use crate::policies::GroupNow;
use axum::extract::State;
use axum::response::Html;
use broker::{FailureReason, Policies, PolicyVersion, SolveRow, SolveState, State as _};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use report::solve_report::{GroupLimit, PolicyState};
use report::{SolveReport, number};
use serde_json::Value;
use std::cmp::Reverse;

/// Latest solves that are searched for a published one.
const LAST_SOLVES: u32 = 100;

/// Groups that are listed.
const GROUPS: usize = 20;

/// Handler of `GET /policies`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let policies = in_time(broker.policies()).await?;
    let solves = in_time(broker.solves(DateTime::<Utc>::UNIX_EPOCH, LAST_SOLVES)).await?;
    let published = solves.iter().find(|of| of.state == SolveState::Published);
    let stored = match published {
        Some(solve) => in_time(broker.solve_report(solve.id)).await?,
        None => None,
    };
    // As on the page of a solve, a report of another version is left out.
    let report = stored.and_then(|of| SolveReport::read(&of.read::<Value>().ok()?).ok());
    let report = report.unwrap_or_default();
    let last = solves.iter().find(|of| of.state.is_terminal());
    let body = html! {
        (ui::crumbs(&[("/settings", "Settings")]))
        h1 { "Policies" }
        p.facts { span { "Rules in SQL that every solve keeps: what holds stays, what is broken is mended where servers are there, and gets no worse. Operators change them with "
            code { "ras policy apply" } "; every change is recorded in the " a href="/trail" { "audit trail" } "." } }
        @if let Some(solve) = last { (refused(solve)) }
        (listed(&policies, &report, published))
        @if let Some(groups) = site.groups_now() { (now(groups)) }
        @if !report.limits.is_empty() { (nearest(&report.limits)) }
    };
    Ok(Page { nav: NavItem::Settings, title: "Policies", charts: false, body }.show(&reader))
}

/// Says that the last solve could not keep them.
fn refused(solve: &SolveRow) -> Markup {
    html! {
        @if solve.reason == Some(FailureReason::PoliciesRefused) {
            div.notice.bad {
                strong.verdict { "The region is not solved" }
                p { "The policies do not fit the region: " (solve.failure.as_deref().unwrap_or_default()) }
                p { "Replace or withdraw the policy; until then no solve runs. " a href={ "/solves/" (solve.id) } { "The solve" } }
            }
        }
    }
}

fn listed(policies: &Policies, report: &SolveReport, published: Option<&SolveRow>) -> Markup {
    html! {
        section #policies {
            @if policies.last.is_empty() { (ui::missing("The region has no policies.")) } @else {
                p.lead {
                    @match published {
                        Some(solve) => { "State after the " a href={ "/solves/" (solve.id) } { "last published solve" } ", " (ui::when(solve.requested_at)) "." },
                        None => { "No solve has been published yet." },
                    }
                }
                div.scroll { table {
                    caption.quiet { "Policies, their state and their last change" }
                    thead { tr { th scope="col" { "Policy" } th scope="col" { "State" } th.n scope="col" { "Rows that fail" }
                        th.n scope="col" { "Highest price" } th.n scope="col" { "Version" } th scope="col" { "Changed" } th scope="col" { "By" } th scope="col" { "Why" } } }
                    tbody { @for of in &policies.last { (policy_row(of, report)) } }
                } }
                p.note { "The highest price is that of its groups: what one unit more would save the objective at most. " (number::NOTHING) " means that no limit costs anything." }
                @for of in report.policies.iter().filter(|of| !of.rows.is_empty()) {
                    details { summary { "Rows of " (of.policy) " that fail" }
                        ul { @for row in &of.rows { li { (row) } }
                            @if of.fails > of.rows.len() { li { "and " (number::count(of.fails - of.rows.len())) " more" } } } }
                }
                @for of in &policies.last { @if let Some(sql) = &of.sql {
                    details { summary { "Text of " (of.policy) ", version " (of.version) } pre { (sql) } }
                } }
            }
        }
    }
}

fn policy_row(of: &PolicyVersion, report: &SolveReport) -> Markup {
    let views: Vec<&PolicyState> =
        report.policies.iter().filter(|view| *view.file == *of.policy).collect();
    let fails: usize = views.iter().map(|view| view.fails).sum();
    let (mood, word) = match (&of.sql, views.is_empty(), fails) {
        (None, ..) => (Mood::Plain, "withdrawn"),
        (_, true, _) => (Mood::Plain, "no statement"),
        (_, _, 0) => (Mood::Good, "holds"),
        _ => (Mood::Bad, "broken"),
    };
    let is_of = |limit: &&GroupLimit| views.iter().any(|view| is_group_of(limit, view));
    let prices = report.limits.iter().filter(is_of).map(|limit| limit.price);
    let highest = prices.fold(0.0, f64::max);
    let is_in_force = of.sql.is_some() && !views.is_empty();
    html! {
        tr {
            th scope="row" { (of.policy) }
            td { (ui::state(mood, word)) }
            td.n { @if is_in_force { (number::count(fails)) } @else { (number::NOTHING) } }
            td.n { @if is_in_force && highest > 0.0 { (number::decimal(highest)) } @else { (number::NOTHING) } }
            td.n { (of.version) } td { (ui::when(of.changed_at)) } td { (of.changed_by) } td { (of.why) }
        }
    }
}

/// Whether a limit belongs to a view: it has its name, alone or before the group.
fn is_group_of(limit: &GroupLimit, view: &PolicyState) -> bool {
    limit
        .name
        .strip_prefix(&view.policy)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(": "))
}

/// The groups with the least room at this moment.
fn now(mut groups: Vec<GroupNow>) -> Markup {
    let exceeded = groups.iter().filter(|of| of.is_exceeded()).count();
    groups.sort_by_key(|of| Reverse(fill(of.now, of.most)));
    groups.truncate(GROUPS);
    html! {
        section #now {
            h2 { "Now" }
            p.lead {
                @match exceeded {
                    0 => { "No group is above its limit." },
                    1 => { "One group is above its limit. The next solve mends it as far as servers are there." },
                    _ => { (number::count(exceeded)) " groups are above their limits. The next solve mends them as far as servers are there." },
                }
            }
            div.scroll { table {
                caption.quiet { "Groups with the least room now" }
                thead { tr { th scope="col" { "Group" } th scope="col" { "Policy" } th.n scope="col" { "Now" }
                    th.n scope="col" { "At most" } th.n scope="col" { "Used" } } }
                tbody { @for of in &groups {
                    tr { th scope="row" { (of.name) } td { (of.policy) } td.n { (ui::count(of.now)) } td.n { (ui::count(of.most)) }
                        (used(of.now, of.most)) }
                } }
            } }
        }
    }
}

/// Whether a group is above its limit, then thousandths of the limit, which may be zero.
fn fill(sum: i64, most: i64) -> (bool, i128) {
    (sum > most, i128::from(sum) * 1_000 / i128::from(most.max(1)))
}

fn used(sum: i64, most: i64) -> Markup {
    html! {
        td.n { @if most > 0 { (number::percent(sum as f64 / most as f64)) } @else { (number::NOTHING) }
            @if sum > most { " " (ui::state(Mood::Bad, "exceeded")) } }
    }
}

/// The groups with the least room, those beyond their limit first.
pub(super) fn nearest(limits: &[GroupLimit]) -> Markup {
    let mut rows: Vec<&GroupLimit> = limits.iter().collect();
    rows.sort_by_key(|of| Reverse(fill(of.after, of.most)));
    rows.truncate(GROUPS);
    html! {
        section #groups {
            h2 { "Nearest to their limit" }
            p.lead { "What the servers of a group add up to, in the unit of its policy, before and after the solve." }
            div.scroll { table {
                caption.quiet { "Groups with the least room" }
                thead { tr { th scope="col" { "Group" } th.n scope="col" { "Before" } th.n scope="col" { "After" }
                    th.n scope="col" { "At most" } th.n scope="col" { "Used" } th.n scope="col" { "Price" } } }
                tbody { @for of in rows {
                    tr { th scope="row" { (of.name) } td.n { (ui::count(of.before)) } td.n { (ui::count(of.after)) } td.n { (ui::count(of.most)) }
                        (used(of.after, of.most))
                        td.n { @if of.price > 0.0 { (number::decimal(of.price)) } @else { (number::NOTHING) } } }
                } }
            } }
        }
    }
}
