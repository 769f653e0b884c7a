//! Work that has been in its state for too long.

use super::layout::{NavItem, Page, RegionReader};
use super::{link, ui};
use crate::http::{Problem, Site, in_time};
use axum::extract::State;
use axum::response::Html;
use broker::{Machine, Stuck};
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use report::number;

/// Rows of the page.
const ROWS: usize = 200;

/// Handler of `GET /stuck`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
) -> Result<Html<String>, Problem> {
    let now = in_time(site.broker.clock()).await?;
    let stuck = in_time(site.broker.stuck()).await?;
    let body = html! {
        h1 { "Stuck" }
        p.facts { span { "Work that has been in its state for too long, longest first." } }
        @if stuck.is_empty() { div.notice.good { strong.verdict { "Nothing is stuck" }
            p { "Moves, solves, jobs, replacements, maintenance and emergencies are all making progress." } } }
        @else { (table(&stuck, now)) }
    };
    Ok(Page { nav: NavItem::Stuck, title: "Stuck", charts: false, body }.show(&reader))
}

fn table(stuck: &[Stuck], now: DateTime<Utc>) -> Markup {
    html! {
        section { div.scroll { table {
            caption { (number::counted(stuck.len(), "item")) @if stuck.len() > ROWS { ", the first " (ROWS) " shown" } }
            thead { tr { th scope="col" { "Kind" } th scope="col" { "Subject" } th scope="col" { "State" }
                th scope="col" { "Since" } } }
            tbody { @for of in stuck.iter().take(ROWS) { tr {
                td { (of.machine.as_str().replace('_', " ")) }
                th scope="row" { a href=(path(of)) { (of.subject) } }
                td { (ui::state(ui::Mood::Bad, of.state)) }
                td.when { (ui::when(of.since)) " " span.dim { (ui::ago(of.since, now)) } }
            } } }
        } } }
    }
}

/// Path of the page that shows the item.
fn path(of: &Stuck) -> String {
    match of.machine {
        Machine::Solves => format!("/solves/{}", of.subject),
        Machine::Maintenance => "/maintenance".to_owned(),
        Machine::Moves | Machine::Replacements | Machine::Unfinished => link::server(&of.subject),
        Machine::Jobs | Machine::Emergencies | Machine::CapacityRequests | Machine::Operations => {
            format!("/trail?subject={}", link::segment(&of.subject))
        }
    }
}
