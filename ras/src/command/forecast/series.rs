//! The series of a file, or of a region's history; gaps and resets are marked.

use super::archived::{ArchivedRegion, Range, STEP, is_archive};
use crate::cli::{RegionHistory, SeriesFile};
use crate::client::login::Server;
use crate::client::{Client, query};
use crate::command::api::hardware_order::all as orders;
use crate::context::Context;
use crate::mistake::Hinted;
use crate::store;
use anyhow::{Context as _, Result, anyhow, bail};
use api_types::history::{UsageHistory, UsageSeries};
use broker::{UsageAsked, UsageKey};
use capacity_portal::usage::view;
use chrono::{DateTime, NaiveTime, Utc};
use datasets::import::{NamedSeries, SeriesColumns, StockRow, read_series};
use forecast::{Faults, Notice, Series, Step};
use std::collections::BTreeMap;

/// How finely the history of a region is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    /// Every five minutes.
    Sample,
    /// The peak of each day.
    Day,
}

impl Grain {
    fn word(self) -> &'static str {
        match self {
            Grain::Sample => "5m",
            Grain::Day => "1d",
        }
    }
}

/// What is read of a region's history unless the options say otherwise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// How finely.
    pub(super) grain: Grain,
    /// The figure.
    pub(super) value: &'static str,
    /// What series are told apart by.
    pub(super) by: &'static [&'static str],
    /// The days that are read.
    pub(super) days: u16,
}

/// The keys that free servers have: they belong to no reservation and no owner.
const OF_SERVERS: [&str; 2] = ["hardware_type", "datacenter"];

/// Where series are from: what the options name, and the archive if that is one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Source<'a> {
    pub(super) of: &'a SeriesFile,
    archive: Option<&'a ArchivedRegion>,
}

/// Reads the archive that the options name; nothing if they name a file or a running region.
pub(super) fn archive(of: &SeriesFile, context: &Context) -> Result<Option<ArchivedRegion>> {
    let Some(place) = of.series.as_deref() else { return Ok(None) };
    if is_archive(place) || place.is_dir() {
        return ArchivedRegion::read(&place.to_string_lossy(), Range::ALL, context).map(Some);
    }
    let RegionHistory { reservation, owner, past, .. } = &of.history;
    let given = [
        ("--reservation", reservation.is_some()),
        ("--owner", owner.is_some()),
        ("--past", past.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, is_given)| *is_given) {
        bail!(Hinted::new(
            format!(
                "{option}: {} is a file, and this selects from the history of a region",
                place.display()
            ),
            "leave it out, or name the folder or URL of an archive",
        ));
    }
    Ok(None)
}

impl<'a> Source<'a> {
    pub(super) fn new(of: &'a SeriesFile, archive: Option<&'a ArchivedRegion>) -> Source<'a> {
        Source { of, archive }
    }

    /// Whether it is a file, and no history of a region.
    pub(super) fn is_file(&self) -> bool {
        self.of.series.is_some() && self.archive.is_none()
    }

    /// Whether it is an archive, which has no servers on order.
    pub(super) fn is_archive(&self) -> bool {
        self.archive.is_some()
    }

    /// What it is, for messages.
    pub(super) fn place(&self) -> String {
        match &self.of.series {
            Some(place) => place.display().to_string(),
            None => "history of the region".to_owned(),
        }
    }

    /// Checks that the file or the server can be read; whether that is enough for a forecast is another matter.
    pub(super) fn check(&self, wanted: Wanted) -> Result<()> {
        match self.archive {
            Some(_) => Ok(()),
            None if self.is_file() => self.read(wanted).map(|_| ()),
            None => asked(self.of, wanted.grain, 1, &self.keys(wanted), Part::Asked).map(|_| ()),
        }
    }

    /// The series of the file, or of the region's history.
    pub(super) fn read(&self, wanted: Wanted) -> Result<Vec<NamedSeries>> {
        let of = self.of;
        match &of.series {
            Some(file) if self.is_file() => {
                let value = of.value.clone().unwrap_or_else(|| "value".to_owned());
                let columns = SeriesColumns { time: of.time.clone(), value, by: of.by.clone() };
                Ok(read_series(file, &columns, Faults::Mark)?)
            }
            _ => {
                let history = History::ask(self, wanted, &self.keys(wanted), Part::Asked)?;
                history.series(of.value.as_deref().unwrap_or(wanted.value))
            }
        }
    }

    /// What series of the region's history are told apart by.
    fn keys(&self, wanted: Wanted) -> Vec<String> {
        match self.of.by.as_slice() {
            [] => wanted.by.iter().map(|key| (*key).to_owned()).collect(),
            by => by.to_vec(),
        }
    }
}

/// Servers of a region as a file of stocks would list them.
#[derive(Debug, Default)]
pub(super) struct RegionStock {
    /// What is there, and what is on order.
    pub(super) rows: Vec<StockRow>,
    /// Servers on order whose day has passed, by series: when they arrive is not known, so they are no rows.
    pub(super) late: BTreeMap<String, u32>,
}

/// Free servers of each series of the region's history, and its orders.
pub(super) fn free(source: &Source<'_>, wanted: Wanted) -> Result<RegionStock> {
    let by = source.keys(wanted);
    if let Some(key) = by.iter().find(|key| !OF_SERVERS.contains(&key.as_str())) {
        bail!(Hinted::new(
            format!(
                "--by {key}: free servers have no {key}, so the stock of a series is not known"
            ),
            "give --stock FILE, or tell series apart by hardware_type and datacenter",
        ));
    }
    let free = History::ask(source, wanted, &by, Part::All)?.free()?;
    with_orders(source, &by, free)
}

/// Servers of each hardware type of the region: those of the reservations asked for, those of none, and orders.
pub(super) fn owned(source: &Source<'_>, wanted: Wanted) -> Result<RegionStock> {
    let by = ["hardware_type".to_owned()];
    let held = History::ask(source, wanted, &by, Part::Asked)?.series("held")?;
    let mut rows: Vec<StockRow> =
        held.iter().map(|named| row(named, last(&named.series))).collect();
    rows.append(&mut History::ask(source, wanted, &by, Part::All)?.free()?);
    with_orders(source, &by, rows)
}

/// Adds the orders that a region has, as its server counts them; an archive has none.
fn with_orders(source: &Source<'_>, by: &[String], mut rows: Vec<StockRow>) -> Result<RegionStock> {
    if source.is_archive() {
        return Ok(RegionStock { rows, ..RegionStock::default() });
    }
    let server = Server::of(&source.of.history.server)?;
    let (orders, now) = store::run(async { orders(&Client::new(server)?).await })?;
    let mut late = BTreeMap::new();
    for order in orders {
        let name = |key: &String| match key.as_str() {
            "hardware_type" => order.hardware_type.as_str(),
            _ => order.datacenter.as_str(),
        };
        let series = by.iter().map(name).collect::<Vec<_>>().join("/");
        // What arrived today is not in the history of the days that have ended.
        let day = match order.state.as_str() {
            "open" if order.late => {
                *late.entry(series).or_insert(0) += order.servers;
                continue;
            }
            "open" => order.expected_on,
            "arrived" if order.state_at.date_naive() == now.date_naive() => now.date_naive(),
            _ => continue,
        };
        let time = day.and_time(NaiveTime::MIN).and_utc().timestamp();
        rows.push(StockRow { series, time, servers: order.servers, line: 0 });
    }
    Ok(RegionStock { rows, late })
}

/// Servers that are there, in the row of a file of stocks.
fn row(of: &NamedSeries, servers: f64) -> StockRow {
    // A number of servers of a region.
    StockRow { time: of.series.start(), servers: servers as u32, line: 0, series: of.name.clone() }
}

/// What a series was on its last day.
fn last(series: &Series) -> f64 {
    series.filled().last().copied().unwrap_or(0.0)
}

/// Which servers of a region are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Those of the reservation and the owner of the options.
    Asked,
    /// All.
    All,
}

/// What a server answers, with the names in the order of the options.
struct History {
    by: Vec<String>,
    answer: UsageHistory,
}

impl History {
    fn ask(source: &Source<'_>, wanted: Wanted, by: &[String], part: Part) -> Result<History> {
        let (grain, days) = (wanted.grain, source.of.history.past.unwrap_or(wanted.days));
        let (mut answer, now) = match source.archive {
            Some(archive) => (archived(archive, source.of, grain, days, by, part)?, archive.end()),
            None => asked(source.of, grain, days, by, part)?,
        };
        // The peak of a day that has not ended is not known yet.
        for series in &mut answer.series {
            let whole = now.timestamp().saturating_sub(series.start.timestamp())
                / i64::from(answer.step_seconds.max(1));
            if grain == Grain::Day {
                keep(series, usize::try_from(whole).unwrap_or(0));
            }
        }
        Ok(History { by: by.to_vec(), answer })
    }

    /// What is not held of the servers in service on the last day.
    fn free(&self) -> Result<Vec<StockRow>> {
        let (there, held) = (self.series("in_service")?, self.series("held")?);
        let free = |(there, held): (&NamedSeries, &NamedSeries)| {
            row(there, (last(&there.series) - last(&held.series)).max(0.0))
        };
        Ok(there.iter().zip(&held).map(free).collect())
    }

    /// The series of one figure.
    fn series(&self, figure: &str) -> Result<Vec<NamedSeries>> {
        let step = Step::from_seconds(self.answer.step_seconds)
            .ok_or_else(|| anyhow!("the server's history has steps of 0 s"))?;
        let mut named = Vec::new();
        for of in &self.answer.series {
            let name = self
                .by
                .iter()
                .filter_map(|key| of.of.get(key))
                .cloned()
                .collect::<Vec<_>>()
                .join("/");
            let values = values(of, figure)?;
            let known = |value: &Option<f64>| value.is_some();
            if values.iter().filter(|value| known(value)).count() < 2 {
                continue;
            }
            let notices = gaps(&values);
            let series = Series::new(of.start.timestamp(), step, values)
                .with_context(|| format!("history of the region: {name}"))?;
            named.push(NamedSeries { name, series, notices });
        }
        if named.is_empty() {
            let what = format!("the region has no history of two steps of {step} yet");
            let hint = "samples are taken every five minutes, snapshots archived every hour; --past and --reservation say which are read";
            bail!(Hinted::new(what, hint));
        }
        Ok(named)
    }
}

/// The history that a server has, and its time.
fn asked(
    of: &SeriesFile,
    grain: Grain,
    days: u16,
    by: &[String],
    part: Part,
) -> Result<(UsageHistory, DateTime<Utc>)> {
    let mut wanted =
        vec![("by", by.join(",")), ("step", grain.word().to_owned()), ("days", days.to_string())];
    if part == Part::Asked {
        let filters = [("reservation", &of.history.reservation), ("owner", &of.history.owner)];
        wanted.extend(filters.into_iter().filter_map(|(key, name)| Some((key, name.clone()?))));
    }
    let path = query("/v1/history/usage", &wanted);
    let server = Server::of(&of.history.server)?;
    let found = store::run(async { Client::new(server)?.get(&path).await })?;
    Ok((found.read()?, found.at))
}

/// The history that the snapshots of an archive have, as a server would answer.
fn archived(
    archive: &ArchivedRegion,
    of: &SeriesFile,
    grain: Grain,
    days: u16,
    by: &[String],
    part: Part,
) -> Result<UsageHistory> {
    let mut keys: Vec<UsageKey> = Vec::new();
    for word in by {
        let key = UsageKey::ALL.into_iter().find(|key| key.as_str() == word);
        match key.filter(|key| !keys.contains(key)) {
            Some(key) => keys.push(key),
            None => bail!(Hinted::new(
                format!(
                    "--by {word}: not one of reservation, owner, hardware_type, datacenter, each once"
                ),
                "an archive has these; columns are for files",
            )),
        }
    }
    let only = |name: &Option<String>| name.clone().filter(|_| part == Part::Asked);
    let asked = UsageAsked {
        by: keys.clone(),
        step: match grain {
            Grain::Sample => i64::from(STEP),
            Grain::Day => i64::from(Step::DAY.seconds()),
        },
        reservation: only(&of.history.reservation),
        owner: only(&of.history.owner),
        ..UsageAsked::default()
    };
    let series = archive.series(days, &asked).into_iter();
    let step_seconds = u32::try_from(asked.step).unwrap_or(STEP);
    Ok(UsageHistory { step_seconds, series: series.map(|of| view(of, &keys)).collect() })
}

/// Drops what is after a number of steps.
fn keep(series: &mut UsageSeries, steps: usize) {
    for rru in [&mut series.promised_rru, &mut series.held_rru, &mut series.used_rru] {
        rru.truncate(steps);
    }
    let UsageSeries { held, used, lent, free, in_service, .. } = series;
    for servers in [held, used, lent, free, in_service] {
        servers.truncate(steps);
    }
}

fn values(of: &UsageSeries, figure: &str) -> Result<Vec<Option<f64>>> {
    let servers = |list: &[Option<i64>]| list.iter().map(|of| of.map(|of| of as f64)).collect();
    Ok(match figure {
        "promised_rru" => of.promised_rru.clone(),
        "held" => servers(&of.held),
        "held_rru" => of.held_rru.clone(),
        "used" => servers(&of.used),
        "used_rru" => of.used_rru.clone(),
        "lent" => servers(&of.lent),
        "free" => servers(&of.free),
        "in_service" => servers(&of.in_service),
        other => bail!(Hinted::new(
            format!("--value {other:?} is no figure of the history of a region"),
            "one of promised_rru, held, held_rru, used, used_rru, lent, free, in_service",
        )),
    })
}

/// Steps without a sample, by the number of the step after them, the first being 1.
fn gaps(values: &[Option<f64>]) -> Vec<Notice> {
    let mut gaps = Vec::new();
    let mut steps = 0;
    for (position, value) in values.iter().enumerate() {
        match value {
            None => steps += 1,
            Some(_) if steps > 0 => {
                gaps.push(Notice::Gap { row: position as u64 + 1, steps });
                steps = 0;
            }
            Some(_) => {}
        }
    }
    gaps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_listed_by_the_step_after_them() {
        let gap = |row, steps| Notice::Gap { row, steps };
        let values = [Some(1.0), None, None, Some(2.0), None, Some(0.0)];
        assert_eq!(gaps(&values), [gap(4, 2), gap(6, 1)]);
        assert_eq!(gaps(&values[..1]), []);
    }
}
