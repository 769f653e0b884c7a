//! What a plan reads: the scenario, orders and forecasts of demand.

use super::scenario::{Arrival, Place, Scenario, evenly, factors};
use crate::cli::PlanForecast;
use crate::command::forecast::long;
use anyhow::{Result, bail, ensure};
use datasets::import::{SeriesColumns, read_series, read_stock};
use fleet::{Name, RegionSnapshot, ReservationKind};
use forecast::Faults;
use std::collections::BTreeMap;
use std::path::Path;

const WEEK_SECONDS: i64 = 7 * 86_400;
/// Weeks that are planned at most.
const MOST_WEEKS: u8 = 52;
/// Weeks that demand is forecast ahead at most.
const DEMAND_WEEKS: u8 = 12;

/// What a plan rests on.
pub(super) struct Input {
    pub(super) weeks: u8,
    pub(super) scenario: Scenario,
    /// MSBs without which each week is solved, too.
    pub(super) lost: Vec<Name>,
    /// Servers on order that arrive.
    pub(super) arriving: usize,
    /// Servers on order that do not: beyond the last week, in the snapshot already, or by `--no-orders`.
    pub(super) not_arriving: usize,
}

pub(super) fn read(options: &PlanForecast, region: &RegionSnapshot) -> Result<Input> {
    let number = weeks(options, region)?;
    let weeks = usize::from(number);
    let (arrivals, all) = match &options.stock {
        Some(file) => arrivals(file, region, weeks)?,
        None => (Vec::new(), 0),
    };
    let arrivals = if options.no_orders { Vec::new() } else { arrivals };
    let arriving = arrivals.iter().map(|arrival| arrival.servers).sum();
    let mut named: BTreeMap<String, Vec<f64>> = match &options.demand {
        Some(file) => demand(file, options, region, number)?,
        None => BTreeMap::new(),
    };
    for (name, factor) in &options.growth_of {
        check_name(region, name).map_err(|error| error.context("--growth-of"))?;
        named.insert(name.clone(), evenly(*factor, weeks));
    }
    let all_grow = evenly(options.scenario.unwrap_or(1.0), weeks);
    let factors = factors(region, |name| named.get(name).cloned(), &all_grow);
    let scenario = Scenario { factors, arrivals };
    let lost = lost(options, region)?;
    Ok(Input { weeks: number, scenario, lost, arriving, not_arriving: all - arriving })
}

/// Weeks from the instant of the snapshot to the last date.
fn weeks(options: &PlanForecast, region: &RegionSnapshot) -> Result<u8> {
    let Some(until) = options.until else { return Ok(options.weeks) };
    let today = region.taken_at.date_naive();
    let days = until.signed_duration_since(today).num_days();
    let weeks = u8::try_from((days + 6).div_euclid(7)).ok();
    match weeks.filter(|weeks| (1..=MOST_WEEKS).contains(weeks)) {
        Some(weeks) => Ok(weeks),
        None => bail!(
            "--until {until}: must be after {today}, the day of the snapshot, and at most {MOST_WEEKS} weeks later"
        ),
    }
}

fn check_name(region: &RegionSnapshot, name: &str) -> Result<()> {
    let mut guaranteed =
        region.reservations.iter().filter(|r| r.kind == ReservationKind::Guaranteed);
    ensure!(
        guaranteed.any(|r| *r.id == *name || *r.owner == *name),
        "{name:?} is neither a guaranteed reservation nor an owner of one"
    );
    Ok(())
}

fn lost(options: &PlanForecast, region: &RegionSnapshot) -> Result<Vec<Name>> {
    let all = || region.msbs.iter().map(|msb| Name::from(msb.id.clone()));
    match options.msb_lost.as_deref() {
        None => Ok(Vec::new()),
        Some("all") => Ok(all().collect()),
        Some(name) => match all().find(|msb| **msb == *name) {
            Some(msb) => Ok(vec![msb]),
            None => {
                let known: Vec<Name> = all().take(5).collect();
                bail!("--msb-lost: the region has no MSB {name:?}; it has {}, …", known.join(", "))
            }
        },
    }
}

/// The servers that arrive within the weeks, and how many are on order at all.
fn arrivals(file: &Path, region: &RegionSnapshot, weeks: usize) -> Result<(Vec<Arrival>, usize)> {
    let mut arrivals = Vec::new();
    let mut all = 0;
    for row in read_stock(file)? {
        let servers = row.servers as usize;
        all += servers;
        let (hardware_type, place) = place(region, &row.series).map_err(|why| {
            anyhow::anyhow!(
                "{}, line {}: series: {:?}: {why}",
                file.display(),
                row.line,
                row.series
            )
        })?;
        let after = row.time.saturating_sub(region.taken_at.timestamp());
        // What arrives in the course of a week is there at its end.
        let week = usize::try_from((after - 1).div_euclid(WEEK_SECONDS)).map(|week| week + 1);
        let Some(week) = week.ok().filter(|week| after > 0 && *week <= weeks) else { continue };
        arrivals.push(Arrival { week, hardware_type, place, servers, line: row.line });
    }
    Ok((arrivals, all))
}

/// A hardware type of the region, alone or with a datacenter or an MSB.
fn place(region: &RegionSnapshot, series: &str) -> Result<(Name, Place), String> {
    let type_of = |name: &str| region.hardware_types.iter().find(|known| ***known == *name);
    if let Some(known) = type_of(series) {
        return Ok((known.clone().into(), Place::Anywhere));
    }
    // Names may have slashes of their own.
    for (at, _) in series.match_indices('/') {
        let (first, second) = (&series[..at], &series[at + 1..]);
        for (kind, place) in [(first, second), (second, first)] {
            let Some(kind) = type_of(kind) else { continue };
            let kind: Name = kind.clone().into();
            if let Some(of) = region.datacenters.iter().find(|of| *of.id == *place) {
                return Ok((kind, Place::Datacenter(of.id.clone().into())));
            }
            if let Some(of) = region.msbs.iter().find(|of| *of.id == *place) {
                return Ok((kind, Place::Msb(of.id.clone().into())));
            }
        }
    }
    Err("is not a hardware type of the region, alone or with one of its datacenters or MSBs"
        .to_owned())
}

/// The factors of each series by week: the highest day of the quantile in it, relative to the last day known.
fn demand(
    file: &Path,
    options: &PlanForecast,
    region: &RegionSnapshot,
    weeks: u8,
) -> Result<BTreeMap<String, Vec<f64>>> {
    ensure!(
        weeks <= DEMAND_WEEKS,
        "--demand: demand is forecast for at most {DEMAND_WEEKS} weeks; the plan has {weeks}"
    );
    let columns = SeriesColumns {
        time: options.time.clone(),
        value: options.value.clone(),
        by: vec![options.by.clone()],
    };
    let found = read_series(file, &columns, Faults::Mark)?;
    let plan = long::plan_with(options.quantile, 7 * usize::from(weeks));
    let mut factors = BTreeMap::new();
    for (known, outlook) in long::forecast_all(found, &plan, None, &file.display().to_string())? {
        let place = || format!("{}: series {:?}", file.display(), known.name);
        check_name(region, &known.name).map_err(|error| error.context(place()))?;
        let last = known.series.filled().last().copied().unwrap_or(0.0);
        ensure!(
            last > 0.0,
            "{}: its last value must be above 0, as growth is relative to it",
            place()
        );
        let path = outlook.bands.path(options.quantile);
        let week = |days: &[f64]| days.iter().copied().fold(0.0, f64::max) / last;
        factors.insert(known.name, path.chunks(7).map(week).collect());
    }
    Ok(factors)
}
