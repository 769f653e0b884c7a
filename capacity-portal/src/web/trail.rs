//! The audit trail, newest entries first.

use super::layout::{NavItem, Page, RegionReader};
use super::{link, ui};
use crate::http::{Problem, Site, in_time};
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{Entry, Recorded, Seq, Subject};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;

/// Entries on a page.
const ROWS: i64 = 50;

/// Characters of a detail shown before the rest is folded away.
const DETAIL_CHARS: usize = 160;

/// Filter and page.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrailQuery {
    /// Number of the newest entry on the page.
    upto: Option<i64>,
    /// Subject of the entries; empty for all entries.
    #[serde(default)]
    subject: String,
}

/// Handler of `GET /trail`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(query): Query<TrailQuery>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let last = in_time(broker.last_seq()).await?.0;
    let upto = query.upto.unwrap_or(last).clamp(0, last);
    let mut entries = if query.subject.is_empty() {
        in_time(broker.trail(Seq((upto - ROWS).max(0)), ROWS.min(upto) as u32)).await?
    } else {
        in_time(broker.trail_of(&query.subject, Seq(0), 1_000)).await?
    };
    entries.reverse();
    let (newer, older) = if query.subject.is_empty() {
        (
            (upto < last).then(|| format!("/trail?upto={}", (upto + ROWS).min(last))),
            (upto > ROWS).then(|| format!("/trail?upto={}", upto - ROWS)),
        )
    } else {
        (None, None)
    };
    let body = html! {
        h1 { "Audit trail" }
        p.facts { span { (ui::count(last)) " entries, numbered without gaps in the order of their commits" } }
        form.toolbar role="search" method="get" action="/trail" {
            div.field { label for="subject" { "Subject" }
                input #subject type="search" name="subject" value=(query.subject) autocomplete="off" aria-describedby="subject-hint";
                span.hint #subject-hint { "full name of a reservation, server, MSB, event or version" } }
            button type="submit" { "Show" }
        }
        @if entries.is_empty() { (ui::missing("There are no entries.")) } @else { (table(&entries, "Entries, newest first", true)) }
        (ui::pages(newer, older))
    };
    Ok(Page { nav: NavItem::Trail, title: "Audit trail", charts: false, body }.show(&reader))
}

/// Entries as a table. `linked`: subjects link to their pages, for readers of the whole region.
pub(super) fn table(entries: &[Entry], caption: &str, linked: bool) -> Markup {
    html! {
        div.scroll { table {
            caption { (caption) }
            thead { tr { th.n scope="col" { "Number" } th scope="col" { "Time" } th scope="col" { "Actor" }
                th scope="col" { "Action" } th scope="col" { "Subject" } th scope="col" { "Details" } } }
            tbody { @for entry in entries { tr id={ "e" (entry.seq) } {
                td.n { (ui::count(entry.seq.0)) }
                td.when { (ui::when(entry.at)) }
                td { (entry.actor) }
                td { (entry.action.as_str().replace('_', " ")) }
                td { @match &entry.subject {
                    Some(subject) if !linked => (subject),
                    Some(subject) => a href=(subject_path(&entry.action, subject)) { (subject) },
                    None => (number::NOTHING),
                } }
                td.wide { (detail(&entry.detail)) }
            } } }
        } }
    }
}

/// Path of a subject: the page of a server, or the entries of any other subject.
fn subject_path(action: &Recorded, subject: &str) -> String {
    match action {
        Recorded::Known(action) if action.subject() == Subject::Server => link::server(subject),
        _ => format!("/trail?subject={}", link::segment(subject)),
    }
}

fn detail(of: &Value) -> Markup {
    let text = match of {
        Value::Null => String::new(),
        Value::Object(members) => {
            let words: Vec<String> = members
                .iter()
                .map(|(name, value)| {
                    let name = name.replace('_', " ");
                    match value {
                        Value::String(text) => format!("{name}: {text}"),
                        Value::Array(all) if all.len() > 3 => {
                            format!("{name}: {} items", all.len())
                        }
                        value => format!("{name}: {value}"),
                    }
                })
                .collect();
            words.join("; ")
        }
        value => value.to_string(),
    };
    if text.chars().count() <= DETAIL_CHARS {
        return html! { span.dim { (text) } };
    }
    let short: String = text.chars().take(DETAIL_CHARS).collect();
    let whole = serde_json::to_string_pretty(of).unwrap_or(text);
    html! { span.dim { (short) "…" } details { summary { "Full entry" } pre { (whole) } } }
}
