//! The region over time: servers by use, promises, and moves.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::layout::{NavItem, Page, RegionReader};
use super::live::{AsOf, topics};
use super::ui;
use crate::http::range::TimeRange;
use crate::http::{Problem, Site, in_time};
use axum::extract::{Query, State};
use axum::response::Html;
use broker::{IntervalOfMoves, RegionSample, TimeSpan};
use chrono::{DateTime, TimeDelta, Utc};
use control::Topic;
use fleet::Rru;
use maud::{Markup, html};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The path of the page.
const PATH: &str = "/history";

/// The shortest time that can be shown.
const SHORTEST: TimeDelta = TimeDelta::minutes(5);

/// The time shown: a range before now, or from one instant until another, in seconds since 1970.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    range: Option<TimeRange>,
    from: Option<i64>,
    until: Option<i64>,
}

/// The time that the page shows.
struct Shown {
    span: TimeSpan,
    /// The interval of one point is that of this range.
    range: TimeRange,
    /// Whether it ends now, however late that is.
    follows: bool,
}

impl Shown {
    fn new(query: &HistoryQuery, now: DateTime<Utc>) -> Result<Shown, Problem> {
        let refused = |detail: &str| Problem::bad_request("malformed", detail);
        let (from, until) = match (query.from, query.until) {
            (None, None) => {
                let range = query.range.unwrap_or_default();
                let span = TimeSpan { from: now - range.length(), until: now };
                return Ok(Shown { span, range, follows: true });
            }
            (Some(from), Some(until)) if query.range.is_none() => (from, until),
            _ => return Err(refused("give a range, or both from and until")),
        };
        let instant = |seconds| {
            let at = DateTime::from_timestamp(seconds, 0).filter(|at| *at >= DateTime::UNIX_EPOCH);
            at.ok_or_else(|| refused("from and until are seconds since 1970"))
        };
        let (from, until) = (instant(from)?, instant(until)?.min(now));
        if from >= until {
            return Err(refused("from is before until, and not in the future"));
        }
        let from = from.min(until - SHORTEST);
        let range = TimeRange::covering((until - from).to_std().unwrap_or_default());
        // No chart has more points than that of the longest range.
        let from = from.max(until - range.length());
        Ok(Shown { span: TimeSpan { from, until }, range, follows: false })
    }

    fn length(&self) -> TimeDelta {
        self.span.until - self.span.from
    }

    /// First and last point of the axis of a chart.
    fn axis(&self) -> Option<(f64, f64)> {
        Some((self.span.from.timestamp() as f64, self.span.until.timestamp() as f64))
    }

    /// The times beside this one: earlier, later, a narrower one and a wider one, with their links.
    fn beside(&self, now: DateTime<Utc>) -> Vec<(&'static str, String)> {
        let (TimeSpan { from, until }, half) = (self.span, self.length() / 2);
        let middle = from + half;
        let mut beside = vec![("Earlier", from - half, until - half)];
        if !self.follows {
            let until = (until + half).min(now);
            beside.push(("Later", until - self.length(), until));
        }
        if half >= SHORTEST {
            beside.push(("Zoom in", middle - half / 2, middle + half / 2));
        }
        if self.length() < TimeDelta::days(30) {
            let until = (until + half).min(now);
            beside.push(("Zoom out", until - self.length() * 2, until));
        }
        let link = |from: DateTime<Utc>, until: DateTime<Utc>| {
            format!("{PATH}?from={}&until={}", from.timestamp(), until.timestamp())
        };
        beside.into_iter().map(|(title, from, until)| (title, link(from, until))).collect()
    }

    /// Links to the ranges, and to the times beside this one.
    fn links(&self, now: DateTime<Utc>) -> Markup {
        let is_shown = |range: TimeRange| self.follows && self.range == range;
        html! {
            nav aria-label="Time shown" { ul.switch {
                @for range in TimeRange::ALL {
                    li { a href={ (PATH) "?range=" (range.as_str()) } aria-current=[is_shown(range).then_some("true")] {
                        "Last " (range.title()) } }
                }
                @for (title, path) in self.beside(now) { li { a href=(path) { (title) } } }
            } }
        }
    }
}

/// Handler of `GET /history`.
pub(super) async fn show(
    State(site): State<Site>,
    RegionReader(reader): RegionReader,
    Query(query): Query<HistoryQuery>,
) -> Result<Html<String>, Problem> {
    let as_of = AsOf::begin(&site).await?;
    let shown = Shown::new(&query, as_of.now())?;
    let (interval, _) = shown.range.interval();
    let samples = in_time(site.broker.samples_by_time(shown.span, interval)).await?;
    let moves = in_time(site.broker.moves_by_time(shown.span, interval)).await?;
    let body = html! {
        div.head { div { h1 { "History" }
            p.facts { span { "Figures of the region, every five minutes, and the moves of servers." } (as_of.show()) } } }
        (shown.links(as_of.now()))
        @if !shown.follows { p.note { "From " (ui::when(shown.span.from)) " until " (ui::when(shown.span.until)) } }
        p.note { "Drag over a chart to zoom in." }
        div.columns { (servers(&samples, &shown)) (promises(&samples, &shown)) }
        (moved(&moves, &shown))
        p.note { "The same as data: " code { "GET /ops/v1/history?range=" (shown.range.as_str()) } }
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

fn servers(samples: &Samples, shown: &Shown) -> Markup {
    let of = |pick: fn(&RegionSample) -> i32| samples.iter().map(move |(_, of)| pick(of).into());
    html! {
        section #servers data-live=(topics(&[Topic::Region])) {
            h2 { "Servers by use" }
            p.lead { "Idle servers belong to reservations and run no containers; free servers belong to none." }
            @if samples.is_empty() { (no_samples()) } @else {
                (Chart {
                    label: "Servers of the region by use over time", across: Across::Time, across_label: "When", unit: Unit::Count,
                    scale: Scale::FromZero, stepped: false, at: times(samples), span: shown.axis(), zoom: Some(PATH),
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

fn promises(samples: &Samples, shown: &Shown) -> Markup {
    let of = |pick: fn(&RegionSample) -> Rru| samples.iter().map(move |(_, of)| pick(of).to_f64());
    html! {
        section #promises data-live=(topics(&[Topic::Region])) {
            h2 { "Promised and guaranteed" }
            p.lead { "Guaranteed: the part of the promises that would be kept if one more MSB were lost. Each reservation counts with the MSB that hurts it most." }
            @if samples.is_empty() { (no_samples()) } @else {
                (Chart {
                    label: "Promised, held and guaranteed capacity over time", across: Across::Time, across_label: "When", unit: Unit::Rru,
                    scale: Scale::FromZero, stepped: false, at: times(samples), span: shown.axis(), zoom: Some(PATH),
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
fn moved(moves: &[IntervalOfMoves], shown: &Shown) -> Markup {
    let by_time: BTreeMap<i64, &IntervalOfMoves> =
        moves.iter().map(|of| (of.from.timestamp(), of)).collect();
    let (interval, name) = shown.range.interval();
    let step = i64::try_from(interval.as_secs()).unwrap_or(i64::MAX);
    let last = shown.span.until.timestamp() / step * step;
    let at: Vec<i64> =
        (0..=shown.length().num_seconds() / step).rev().map(|back| last - back * step).collect();
    let of = |pick: fn(&IntervalOfMoves) -> i64| -> Vec<f64> {
        at.iter().map(|at| by_time.get(at).map_or(0.0, |of| pick(of) as f64)).collect()
    };
    let (in_use, idle): (i64, i64) =
        (moves.iter().map(|of| of.in_use).sum(), moves.iter().map(|of| of.idle).sum());
    let label = format!("Servers moved in each {name}");
    html! {
        section #moved data-live=(topics(&[Topic::Moves])) {
            h2 { "Moves " span.ref { "figure 16" } }
            p.lead { "Servers that changed their owner, in each " (name) "." }
            @if moves.is_empty() { (ui::missing("No server was moved in this time.")) } @else {
                (Chart {
                    label: &label, across: Across::Time, across_label: "From", unit: Unit::Count, scale: Scale::FromZero,
                    stepped: true, at: at.iter().map(|at| *at as f64).collect(), span: shown.axis(), zoom: Some(PATH),
                    series: vec![Series::new("In use", "bound", of(|of| of.in_use)), Series::new("Idle", "primal", of(|of| of.idle))],
                }.show())
                p.note { "Total: " (ui::count(in_use)) " in use, " (ui::count(idle)) " idle." }
            }
        }
    }
}
