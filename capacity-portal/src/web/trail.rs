//! The audit trail: who did what, the newest first.

use super::frame::{Page, Place, Whole};
use super::{link, part};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{Entry, Recorded, Seq, Subject};
use maud::{Markup, html};
use report::number;
use serde::Deserialize;
use serde_json::Value;

/// Entries of a page.
const ROWS: i64 = 50;

/// Characters of a detail shown in its line.
const DETAIL_CHARS: usize = 160;

/// Which entries.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    /// Entries up to this number.
    upto: Option<i64>,
    /// About this subject.
    #[serde(default)]
    subject: String,
}

/// The page.
pub(super) async fn show(
    State(site): State<Site>,
    Whole(reader): Whole,
    Query(asked): Query<Asked>,
) -> Result<Html<String>, Problem> {
    let broker = &site.broker;
    let last = in_time(broker.last_seq()).await?.0;
    let upto = asked.upto.unwrap_or(last).clamp(0, last);
    let mut entries = if asked.subject.is_empty() {
        in_time(broker.trail(Seq((upto - ROWS).max(0)), ROWS.min(upto) as u32)).await?
    } else {
        in_time(broker.trail_of(&asked.subject, Seq(0), 1_000)).await?
    };
    entries.reverse();
    let (newer, older) = if asked.subject.is_empty() {
        (
            (upto < last).then(|| format!("/trail?upto={}", (upto + ROWS).min(last))),
            (upto > ROWS).then(|| format!("/trail?upto={}", upto - ROWS)),
        )
    } else {
        (None, None)
    };
    let body = html! {
        h1 { "Audit trail" }
        p.facts { span { (part::count(last)) " entries, numbered in the order they became visible, without holes" } }
        form.toolbar role="search" method="get" action="/trail" {
            div.field { label for="subject" { "About" }
                input #subject type="search" name="subject" value=(asked.subject) autocomplete="off" aria-describedby="subject-hint";
                span.hint #subject-hint { "a reservation, server, MSB, event or version, by its whole name" } }
            button type="submit" { "Show" }
        }
        @if entries.is_empty() { (part::missing("Nothing was done to it.")) } @else { (table(&entries, "Entries, the newest first", true)) }
        (part::pages(newer, older))
    };
    Ok(Page { place: Place::Trail, title: "Audit trail", charts: false, body }.show(&reader))
}

/// Entries as a table. `linked`: whoever reads it may look at everything.
pub(super) fn table(entries: &[Entry], caption: &str, linked: bool) -> Markup {
    html! {
        div.scroll { table {
            caption { (caption) }
            thead { tr { th.n scope="col" { "Number" } th scope="col" { "When" } th scope="col" { "Who" }
                th scope="col" { "What" } th scope="col" { "To what" } th scope="col" { "More" } } }
            tbody { @for entry in entries { tr id={ "e" (entry.seq) } {
                td.n { (part::count(entry.seq.0)) }
                td.when { (part::when(entry.at)) }
                td { (entry.actor) }
                td { (entry.action.as_str().replace('_', " ")) }
                td { @match &entry.subject {
                    Some(subject) if !linked => (subject),
                    Some(subject) => a href=(about(&entry.action, subject)) { (subject) },
                    None => (number::NOTHING),
                } }
                td.wide { (detail(&entry.detail)) }
            } } }
        } }
    }
}

/// Where there is more about a subject: the page of a server has its own entries.
fn about(action: &Recorded, subject: &str) -> String {
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
                            format!("{name}: {} of them", all.len())
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
    html! { span.dim { (short) "…" } details { summary { "All of it" } pre { (whole) } } }
}
