//! The series of a file, or of a region's history; gaps and resets are marked.

use crate::cli::SeriesFile;
use crate::client::login::Server;
use crate::client::{Client, query};
use crate::command::api::hardware_order::all as orders;
use crate::mistake::Hinted;
use crate::store;
use anyhow::{Context as _, Result, anyhow, bail};
use api_types::history::{UsageHistory, UsageSeries};
use chrono::NaiveTime;
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

/// Where the series are from, for messages.
pub(super) fn place(of: &SeriesFile) -> String {
    match &of.series {
        Some(file) => file.display().to_string(),
        None => "history of the region".to_owned(),
    }
}

/// The series of the file, or of the region's history.
pub(super) fn read(of: &SeriesFile, wanted: Wanted) -> Result<Vec<NamedSeries>> {
    match &of.series {
        Some(file) => {
            let value = of.value.clone().unwrap_or_else(|| "value".to_owned());
            let columns = SeriesColumns { time: of.time.clone(), value, by: of.by.clone() };
            Ok(read_series(file, &columns, Faults::Mark)?)
        }
        None => {
            let history = History::ask(of, wanted, &keys(of, wanted), Part::Asked)?;
            history.series(of.value.as_deref().unwrap_or(wanted.value))
        }
    }
}

/// What series of the region's history are told apart by.
fn keys(of: &SeriesFile, wanted: Wanted) -> Vec<String> {
    match of.by.as_slice() {
        [] => wanted.by.iter().map(|key| (*key).to_owned()).collect(),
        by => by.to_vec(),
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
pub(super) fn free(of: &SeriesFile, wanted: Wanted) -> Result<RegionStock> {
    let by = keys(of, wanted);
    if let Some(key) = by.iter().find(|key| !OF_SERVERS.contains(&key.as_str())) {
        bail!(Hinted::new(
            format!(
                "--by {key}: free servers have no {key}, so the stock of a series is not known"
            ),
            "give --stock FILE, or tell series apart by hardware_type and datacenter",
        ));
    }
    let free = History::ask(of, wanted, &by, Part::All)?.free()?;
    with_orders(of, &by, free)
}

/// Servers of each hardware type of the region: those of the reservations asked for, those of none, and orders.
pub(super) fn owned(of: &SeriesFile, wanted: Wanted) -> Result<RegionStock> {
    let by = ["hardware_type".to_owned()];
    let held = History::ask(of, wanted, &by, Part::Asked)?.series("held")?;
    let mut rows: Vec<StockRow> =
        held.iter().map(|named| row(named, last(&named.series))).collect();
    rows.append(&mut History::ask(of, wanted, &by, Part::All)?.free()?);
    with_orders(of, &by, rows)
}

/// Adds the orders that a region has, as its server counts them.
fn with_orders(of: &SeriesFile, by: &[String], mut rows: Vec<StockRow>) -> Result<RegionStock> {
    let server = Server::of(&of.history.server)?;
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
    fn ask(of: &SeriesFile, wanted: Wanted, by: &[String], part: Part) -> Result<History> {
        let Wanted { grain, days, .. } = wanted;
        let mut wanted = vec![
            ("by", by.join(",")),
            ("step", grain.word().to_owned()),
            ("days", of.history.past.unwrap_or(days).to_string()),
        ];
        if part == Part::Asked {
            let filters = [("reservation", &of.history.reservation), ("owner", &of.history.owner)];
            wanted.extend(filters.into_iter().filter_map(|(key, name)| Some((key, name.clone()?))));
        }
        let path = query("/v1/history/usage", &wanted);
        let server = Server::of(&of.history.server)?;
        let found = store::run(async { Client::new(server)?.get(&path).await })?;
        let mut answer: UsageHistory = found.read()?;
        // The peak of a day that has not ended is not known yet.
        let now = found.at.timestamp();
        for series in &mut answer.series {
            let whole = now.saturating_sub(series.start.timestamp())
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
            let hint = "its server takes a sample every five minutes; --past and --reservation say which are read";
            bail!(Hinted::new(what, hint));
        }
        Ok(named)
    }
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
