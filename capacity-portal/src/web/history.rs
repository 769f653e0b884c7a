//! The region over time: servers by use, promises, and moves.

use super::chart::{Across, Chart, Scale, Series, Unit, ranges};
use super::layout::{NavItem, Page, RegionReader};
use super::live::{AsOf, topics};
use super::ui;
use crate::http::range::TimeRange;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{IntervalOfMoves, RegionSample};
use chrono::{DateTime, Utc};
use control::Topic;
use fleet::Rru;
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The range of time shown.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    #[serde(default)]
    range: TimeRange,
}

/// Handler of `GET /history`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(HistoryQuery { range }): Query<HistoryQuery>,
) -> Result<Html<String>, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let (interval, _) = range.interval();
    let samples = in_time(site.broker.samples_by_time(range.length(), interval)).await?;
    let moves = in_time(site.broker.moves_by_time(range.length(), interval)).await?;
    let now = as_of.now().timestamp() as f64;
    let span = (now - range.length().as_secs_f64(), now);
    let body = html! {
        div.head { div { h1 { "History" }
            p.facts { span { "Figures of the region, every five minutes, and the moves of servers." } (as_of.show()) } } }
        (ranges("/history", range))
        div.columns { (servers(&samples, span)) (promises(&samples, span)) }
        (moved(&moves, range, as_of.now()))
        p.note { "The same as data: " code { "GET /ops/v1/history?range=" (range.as_str()) } }
    };
    Ok(Page { nav: NavItem::History, title: "History", charts: true, body }.show(&reader))
}

type Samples = [(DateTime<Utc>, RegionSample)];

fn times(samples: &Samples) -> Vec<f64> {
    samples.iter().map(|(at, _)| at.timestamp() as f64).collect()
}

fn no_samples() -> Markup {
    ui::missing(
        "There is no sample in this time. The first is taken minutes after the region is loaded.",
    )
}

fn servers(samples: &Samples, span: (f64, f64)) -> Markup {
    let of = |pick: fn(&RegionSample) -> i32| samples.iter().map(move |(_, of)| pick(of).into());
    html! {
        section #servers data-live=(topics(&[Topic::Region])) {
            h2 { "Servers by use" }
            p.lead { "Idle servers belong to reservations and run no containers; free servers belong to none." }
            @if samples.is_empty() { (no_samples()) } @else {
                (Chart {
                    label: "Servers of the region by use over time", across: Across::Time, across_label: "When", unit: Unit::Count,
                    scale: Scale::FromZero, stepped: false, at: times(samples), span: Some(span),
                    series: vec![
                        Series::new("In use", "in-use", of(|of| of.in_use)),
                        Series::new("Idle", "s1", of(|of| of.idle)),
                        Series::new("Shared buffers", "shared", of(|of| of.shared_buffer)),
                        Series::new("Free", "dim", of(|of| of.free)),
                        Series::new("Unavailable", "down", of(|of| of.unavailable)),
                    ],
                }.show())
            }
        }
    }
}

fn promises(samples: &Samples, span: (f64, f64)) -> Markup {
    let of = |pick: fn(&RegionSample) -> Rru| samples.iter().map(move |(_, of)| pick(of).to_f64());
    html! {
        section #promises data-live=(topics(&[Topic::Region])) {
            h2 { "Promised and guaranteed" }
            p.lead { "Guaranteed: what reservations would have of their promises after one more MSB loss, for each its worst." }
            @if samples.is_empty() { (no_samples()) } @else {
                (Chart {
                    label: "Promised, held and guaranteed capacity over time", across: Across::Time, across_label: "When", unit: Unit::Rru,
                    scale: Scale::FromZero, stepped: false, at: times(samples), span: Some(span),
                    series: vec![
                        Series::new("Promised", "gap", of(|of| of.promised)),
                        Series::new("Held of it", "bound", of(|of| of.held)),
                        Series::new("Guaranteed", "primal", of(|of| of.guaranteed)),
                    ],
                }.show())
            }
        }
    }
}

/// Intervals without moves are zero, not missing.
fn moved(moves: &[IntervalOfMoves], range: TimeRange, now: DateTime<Utc>) -> Markup {
    let by_time: BTreeMap<i64, &IntervalOfMoves> =
        moves.iter().map(|of| (of.from.timestamp(), of)).collect();
    let (interval, name) = range.interval();
    let seconds = |of: std::time::Duration| i64::try_from(of.as_secs()).unwrap_or(i64::MAX);
    let (length, step) = (seconds(range.length()), seconds(interval));
    let last = now.timestamp() / step * step;
    let at: Vec<i64> = (0..=length / step).rev().map(|back| last - back * step).collect();
    let of = |pick: fn(&IntervalOfMoves) -> i64| -> Vec<f64> {
        at.iter().map(|at| by_time.get(at).map_or(0.0, |of| pick(of) as f64)).collect()
    };
    let (in_use, idle): (i64, i64) =
        (moves.iter().map(|of| of.in_use).sum(), moves.iter().map(|of| of.idle).sum());
    let label = format!("Servers moved in each {name} of the last {}", range.title());
    html! {
        section #moved data-live=(topics(&[Topic::Moves])) {
            h2 { "Moves " span.ref { "figure 16" } }
            p.lead { "Servers that changed their owner, in each " (name) " of the last " (range.title()) "." }
            @if moves.is_empty() { (ui::missing("No server was moved in this time.")) } @else {
                (Chart {
                    label: &label, across: Across::Time, across_label: "From", unit: Unit::Count, scale: Scale::FromZero,
                    stepped: true, at: at.iter().map(|at| *at as f64).collect(), span: None,
                    series: vec![Series::new("In use", "bound", of(|of| of.in_use)), Series::new("Idle", "primal", of(|of| of.idle))],
                }.show())
                p.note { "Total: " (ui::count(in_use)) " in use, " (ui::count(idle)) " idle." }
            }
        }
    }
}
