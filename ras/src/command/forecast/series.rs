//! The series of a file, or of a region's history; gaps and resets are marked.

use crate::cli::SeriesFile;
use crate::client::login::Server;
use crate::client::{Client, query};
use crate::mistake::Hinted;
use crate::store;
use anyhow::{Context as _, Result, anyhow, bail};
use api_types::history::{UsageHistory, UsageSeries};
use datasets::import::{NamedSeries, SeriesColumns, StockRow, read_series};
use forecast::{Faults, Notice, Series, Step};

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

    /// The days that are read by default: all there are, or those that a forecast of minutes still learns from.
    fn days(self) -> u16 {
        match self {
            Grain::Sample => 30,
            Grain::Day => 400,
        }
    }
}

/// Where the series are from, for messages.
pub(super) fn place(of: &SeriesFile) -> String {
    match &of.series {
        Some(file) => file.display().to_string(),
        None => "history of the region".to_owned(),
    }
}

/// The series of the file, or of the region's history at a grain; `value` is the figure of the history by default.
pub(super) fn read(of: &SeriesFile, grain: Grain, value: &str) -> Result<Vec<NamedSeries>> {
    match &of.series {
        Some(file) => {
            let value = of.value.clone().unwrap_or_else(|| "value".to_owned());
            let columns = SeriesColumns { time: of.time.clone(), value, by: of.by.clone() };
            Ok(read_series(file, &columns, Faults::Mark)?)
        }
        None => Ok(History::ask(of, grain)?.series(of.value.as_deref().unwrap_or(value))?),
    }
}

/// Free servers of each series of the region's history, as a file of stocks would list them.
pub(super) fn free(of: &SeriesFile) -> Result<Vec<StockRow>> {
    let rows = History::ask(of, Grain::Day)?.series("free")?.into_iter().map(|named| {
        let series = &named.series;
        let servers = series.filled().last().copied().unwrap_or(0.0);
        // A number of servers of a region.
        StockRow { time: series.start(), servers: servers as u32, line: 0, series: named.name }
    });
    Ok(rows.collect())
}

/// What a server answers, with the names in the order of the options.
struct History {
    by: Vec<String>,
    answer: UsageHistory,
}

impl History {
    fn ask(of: &SeriesFile, grain: Grain) -> Result<History> {
        let by = match of.by.as_slice() {
            [] => vec!["reservation".to_owned()],
            by => by.to_vec(),
        };
        let mut wanted = vec![
            ("by", by.join(",")),
            ("step", grain.word().to_owned()),
            ("days", of.history.past.unwrap_or(grain.days()).to_string()),
        ];
        let filters = [("reservation", &of.history.reservation), ("owner", &of.history.owner)];
        wanted.extend(filters.into_iter().filter_map(|(key, name)| Some((key, name.clone()?))));
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
        Ok(History { by, answer })
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
    for servers in [&mut series.held, &mut series.used, &mut series.lent, &mut series.free] {
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
        other => bail!(Hinted::new(
            format!("--value {other:?} is no figure of the history of a region"),
            "one of promised_rru, held, held_rru, used, used_rru, lent, free",
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
