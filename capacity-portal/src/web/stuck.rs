//! What has been in a state for longer than anything should.

use super::frame::{Page, Place, Whole};
use super::{link, part};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::State;
use axum::response::Html;
use broker::Stuck;
use chrono::{DateTime, Utc};
use maud::{Markup, html};
use report::number;

/// Rows of the page.
const ROWS: usize = 200;

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
) -> Result<Html<String>, Problem> {
    let now = in_time(site.broker.clock()).await?;
    let stuck = in_time(site.broker.stuck()).await?;
    let body = html! {
        h1 { "Stuck" }
        p.facts { span { "What has been in its state for longer than anything should be, the longest first." } }
        @if stuck.is_empty() { div.notice.good { strong.verdict { "Nothing is stuck" }
            p { "Moves, solves, jobs, replacements, maintenance and emergencies all go on." } } }
        @else { (table(&stuck, now)) }
    };
    Ok(Page { place: Place::Stuck, title: "Stuck", charts: false, body }.show(&reader))
}

fn table(stuck: &[Stuck], now: DateTime<Utc>) -> Markup {
    html! {
        section { div.scroll { table {
            caption { (number::counted(stuck.len(), "thing")) @if stuck.len() > ROWS { ", the first " (ROWS) " shown" } }
            thead { tr { th scope="col" { "What" } th scope="col" { "Which" } th scope="col" { "State" }
                th scope="col" { "Since" } } }
            tbody { @for of in stuck.iter().take(ROWS) { tr {
                td { (of.machine.replace('_', " ")) }
                th scope="row" { a href=(place(of)) { (of.subject) } }
                td { (part::state(part::Mood::Bad, &of.state)) }
                td.when { (part::when(of.since)) " " span.dim { (part::ago(of.since, now)) } }
            } } }
        } } }
    }
}

fn place(of: &Stuck) -> String {
    match of.machine.as_str() {
        "solves" => format!("/solves/{}", of.subject),
        "maintenance" => "/maintenance".to_owned(),
        "moves" | "replacements" | "unfinished" => link::server(&of.subject),
        _ => format!("/trail?subject={}", link::segment(&of.subject)),
    }
}
