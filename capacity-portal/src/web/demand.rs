//! The demand of a reservation over time: what it requests, holds and uses, and the forecast of its use.

use super::chart::{Across, Chart, Scale, Series, Unit};
use super::live::topics;
use super::ui;
use crate::http::{Problem, Site, in_time};
use broker::{TimeSpan, UsageAsked, UsageFigures, UsageKey};
use chrono::{DateTime, TimeDelta, Utc};
use control::Topic;
use fleet::Rru;
use forecast::Step;
use forecast::autosize::ahead;
use maud::{Markup, html};
use report::number;

/// Days that the forecast learns from, and days that are shown.
const LEARNT: i64 = 28;
const SHOWN: usize = 7;

/// Hours without which a forecast says nothing.
const LEAST: usize = 3;

/// The edges of the band.
const LOW: f64 = 0.5;
const HIGH: f64 = 0.9;

/// Hours of a reservation until the present one, and the forecast of each.
struct Demand {
    /// Seconds since 1970 of the beginning of each hour.
    at: Vec<f64>,
    /// Of the present hour: its peak so far.
    figures: Vec<Option<UsageFigures>>,
    low: Vec<Option<f64>>,
    high: Vec<Option<f64>>,
}

impl Demand {
    /// `None`: there is no hour.
    fn of(
        start: DateTime<Utc>,
        mut figures: Vec<Option<UsageFigures>>,
        now: DateTime<Utc>,
    ) -> Option<Demand> {
        let (hour, seconds) = (Step::HOUR, start.timestamp());
        let elapsed = (now.timestamp() - seconds).max(0) / i64::from(hour.seconds());
        let ended = usize::try_from(elapsed).ok()?;
        figures.resize(ended + 1, None);
        let at = (0..=ended).map(|at| (seconds + at as i64 * i64::from(hour.seconds())) as f64);
        let at = at.collect();
        let used = figures.iter().take(ended).map(|of| of.map(|of| of.used_rru.to_f64())).collect();
        let known = figures.iter().take(ended).flatten().count();
        // Only hours that have ended: the peak of the present one is not known.
        let series = forecast::Series::new(seconds, hour, used).ok().filter(|_| known >= LEAST);
        let band = |quantile| {
            let forecast = series.as_ref().and_then(|series| ahead(series, quantile).ok());
            forecast.unwrap_or_else(|| vec![None; ended + 1])
        };
        let (low, high) = (band(LOW), band(HIGH));
        (ended > 0 || figures.iter().any(Option::is_some)).then_some(Demand {
            at,
            figures,
            low,
            high,
        })
    }

    /// The last days of it.
    fn shown(mut self) -> Demand {
        let first = self.figures.len().saturating_sub(SHOWN * 24);
        self.at.drain(..first);
        self.figures.drain(..first);
        self.low.drain(..first);
        self.high.drain(..first);
        self
    }

    fn show(&self) -> Markup {
        let of = |pick: fn(&UsageFigures) -> Rru| {
            self.figures.iter().map(move |of| of.as_ref().map(|of| pick(of).to_f64()))
        };
        let present = |band: &[Option<f64>]| band.last().copied().flatten();
        html! {
            (Chart {
                label: "Requested, held and used capacity by hour, with the forecast of the use", across: Across::Time,
                across_label: "From", unit: Unit::Rru, scale: Scale::FromZero, stepped: false, at: self.at.clone(), span: None,
                zoom: None, series: vec![
                    Series::with_gaps("Forecast Q50", "s2", self.low.iter().copied()),
                    Series::with_gaps("Forecast Q90", "s2", self.high.iter().copied()).band(),
                    Series::with_gaps("Requested", "gap", of(|of| of.promised)),
                    Series::with_gaps("Held", "bound", of(|of| of.held_rru)),
                    Series::with_gaps("Used", "in-use", of(|of| of.used_rru)),
                ],
            }.show())
            @if let Some((low, high)) = present(&self.low).zip(present(&self.high)) {
                p { "Forecast of the peak of this hour: " strong { (number::decimal(tenths(low))) " RRU" } " (Q50), "
                    strong { (number::decimal(tenths(high))) " RRU" } " (Q90)." }
            }
        }
    }
}

fn tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// The section of the page of a reservation.
pub(super) async fn section(
    site: &Site,
    reservation: &str,
    now: DateTime<Utc>,
) -> Result<Markup, Problem> {
    let span = TimeSpan { from: now - TimeDelta::days(LEARNT), until: now };
    let asked = UsageAsked {
        by: vec![UsageKey::Reservation],
        step: i64::from(Step::HOUR.seconds()),
        reservation: Some(reservation.to_owned()),
        ..UsageAsked::default()
    };
    let found = in_time(site.broker.usage_series(span, &asked)).await?.pop();
    let demand = found.and_then(|of| Demand::of(of.start, of.figures, now)).map(Demand::shown);
    Ok(html! {
        section #demand data-live=(topics(&[Topic::Region])) {
            h2 { "Demand" }
            p.lead { "The highest capacity of each hour. Requested: what is promised. Held: servers in service that it owns, its embedded buffer included. "
                "Used: those with running containers. The band is the use as it was forecast an hour before: it stays below Q90 in nine hours of ten." }
            @match &demand {
                Some(demand) => (demand.show()),
                None => (ui::missing("There is no sample yet. The first is taken within minutes.")),
            }
            p.note { "The same as data: " code { "GET /v1/history/usage?reservation=" (reservation) "&step=1h" } }
        }
    })
}
