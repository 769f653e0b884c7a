//! How long the servers of each hardware type last in each datacenter: the daily peaks of what reservations hold, forecast and
//! compared with what is in service and on order. Forecast once a day, when a day of the history has ended; orders, and types
//! that the history does not have yet, are those of now.

use crate::http::Problem;
use crate::region_summary::unreadable;
use broker::{
    Broker, HardwareOrder, HardwareOrderState, TimeSpan, UsageAsked, UsageFigures, UsageKey,
    UsageSeries,
};
use chrono::{DateTime, Days, NaiveDate, TimeDelta, Utc};
use control::{CachedRegion, RegionCache};
use forecast::long::{Daily, LEVELS, Outlook, Plan, outlook};
use forecast::orders::advice::Position;
use forecast::orders::{Pipeline, Supply, Terms};
use forecast::{Series, Step};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Days of demand that a forecast learns from: those that samples are kept for.
const LEARNT: u16 = 400;

/// How often is looked whether a day has ended or orders have changed.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Days that are forecast: those that `ras forecast orders` looks ahead by default.
pub(crate) fn horizon() -> usize {
    Terms::default().horizon()
}

/// The quantiles that dates can be asked for.
pub(crate) const QUANTILES: [f64; 4] = LEVELS;

/// The servers of a hardware type in a datacenter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) hardware_type: String,
    pub(crate) datacenter: String,
    /// Servers in service on the last day known, or now if no day has ended.
    pub(crate) servers: i64,
    /// Of these, servers that reservations own.
    pub(crate) held: i64,
    /// Days with a sample, from the first on which servers were held.
    pub(crate) known_days: usize,
    /// What was held and in service on each day, the last day known last.
    pub(crate) past: Vec<Option<(i64, i64)>>,
    /// The forecast; none if no day has ended.
    pub(crate) outlook: Option<Outlook>,
    /// What is on its way.
    pub(crate) expected: Expected,
}

/// Servers that the history does not have yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Expected {
    /// By the day of their arrival; the first is the day after the last one known.
    arrivals: Pipeline,
    /// Servers of open orders whose day has not passed.
    pub(crate) on_order: i64,
    /// The first of their days.
    pub(crate) next_on: Option<NaiveDate>,
    /// Servers of open orders whose day has passed: when they arrive is not known, so they do not count.
    pub(crate) late: i64,
}

impl Expected {
    /// Adds an order that is open, or arrived today.
    fn add(&mut self, of: &HardwareOrder, today: NaiveDate) {
        let servers = i64::from(of.of.servers);
        if of.is_late {
            self.late += servers;
            return;
        }
        let day = match of.state {
            HardwareOrderState::Open => of.of.expected_on.max(today),
            _ => today,
        };
        if of.state == HardwareOrderState::Open {
            self.on_order += servers;
            self.next_on = Some(self.next_on.map_or(day, |next| next.min(day)));
        }
        let ahead = usize::try_from((day - today).num_days()).unwrap_or(0);
        // No forecast looks further ahead.
        if ahead < horizon() {
            self.arrivals.add(ahead, servers as f64);
        }
    }

    /// Servers that arrive until a day of the forecast, the first being 0.
    pub(crate) fn arrived_by(&self, day: usize) -> f64 {
        (0..=day).map(|day| self.arrivals.on(day)).sum()
    }
}

impl Place {
    /// The servers in the series of a type in a datacenter, of which this many days have ended; nothing if it has no
    /// servers.
    fn new(of: UsageSeries, ended: usize) -> Option<Place> {
        let [hardware_type, datacenter] = <[String; 2]>::try_from(of.names).ok()?;
        let days = of.figures.get(..ended).unwrap_or(&of.figures);
        let series = |pick: fn(&UsageFigures) -> i64| {
            let values = days.iter().map(|day| day.as_ref().map(|day| pick(day) as f64)).collect();
            Series::new(of.start.timestamp(), Step::DAY, values).ok()
        };
        let last = |series: &Series| series.filled().last().copied().unwrap_or(0.0) as i64;
        let daily = series(|of| of.held).filter(|series| series.require(1).is_ok());
        let (held, servers) = match (&daily, series(|of| of.in_service)) {
            (Some(held), Some(in_service)) => (last(held), last(&in_service)),
            _ => {
                let now = of.figures.iter().rev().flatten().next().copied().unwrap_or_default();
                (now.held, now.in_service)
            }
        };
        if servers == 0 {
            return None;
        }
        let daily = daily.and_then(|series| Daily::new(&series).ok());
        Some(Place {
            hardware_type,
            datacenter,
            servers,
            held,
            known_days: days
                .iter()
                .skip_while(|of| of.is_none_or(|of| of.held == 0))
                .flatten()
                .count(),
            past: days.iter().map(|of| of.map(|of| (of.held, of.in_service))).collect(),
            outlook: daily.map(|daily| outlook(&daily, &Plan::new(horizon()), None)),
            expected: Expected::default(),
        })
    }

    /// The servers of a type in a datacenter that the history does not have yet.
    fn unknown(
        (hardware_type, datacenter): (String, String),
        (held, servers): (i64, i64),
    ) -> Place {
        Place {
            hardware_type,
            datacenter,
            servers,
            held,
            known_days: 0,
            past: Vec::new(),
            outlook: None,
            expected: Expected::default(),
        }
    }

    /// What is free.
    pub(crate) fn free(&self) -> i64 {
        self.servers - self.held
    }

    /// The demand on each day of the forecast at a quantile.
    pub(crate) fn demand(&self, quantile: f64) -> Vec<f64> {
        self.outlook.as_ref().map_or_else(Vec::new, |outlook| outlook.bands.path(quantile))
    }

    /// The highest demand that is forecast at a quantile; none if too little is known.
    pub(crate) fn highest(&self, quantile: f64) -> Option<f64> {
        let is_known = self.supply(quantile) != Supply::Unknown;
        self.demand(quantile).into_iter().reduce(f64::max).filter(|_| is_known)
    }

    /// How long they last at a quantile of demand.
    pub(crate) fn supply(&self, quantile: f64) -> Supply {
        let position = Position {
            in_use: self.held as f64,
            free: self.free() as f64,
            pipeline: self.expected.arrivals.clone(),
        };
        let doubts = self.outlook.as_ref().map_or(&[][..], |outlook| &outlook.doubts);
        Supply::new(&position, &self.demand(quantile), doubts)
    }
}

/// The supply of a region.
#[derive(Debug)]
pub(crate) struct RegionSupply {
    /// The last day known; none if no day of the history has ended.
    pub(crate) last_day: Option<NaiveDate>,
    /// The places, in order of name.
    pub(crate) places: Vec<Place>,
    /// What it was computed from.
    forecasts: Arc<Forecasts>,
    orders: Vec<HardwareOrder>,
    region: Option<Arc<CachedRegion>>,
}

/// The forecasts of what reservations hold.
#[derive(Debug)]
struct Forecasts {
    /// The places of the history, without orders.
    places: Vec<Place>,
    /// What they were computed from.
    history: History,
}

/// Which days of the history there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct History {
    /// The day of the first sample.
    first: Option<NaiveDate>,
    /// The day that has not ended.
    today: NaiveDate,
}

impl History {
    /// The last day known; none if no day has ended.
    fn last_day(&self) -> Option<NaiveDate> {
        self.first.filter(|first| *first < self.today).and_then(|_| self.today.pred_opt())
    }
}

impl Forecasts {
    /// Forecasts each series. Takes as long as the forecasts: not for an async thread.
    fn new(series: Vec<UsageSeries>, history: History) -> Forecasts {
        let ended = |start: DateTime<Utc>| (history.today - start.date_naive()).num_days();
        let places = series.into_iter().filter_map(|of| {
            let ended = usize::try_from(ended(of.start)).unwrap_or(0);
            Place::new(of, ended)
        });
        Forecasts { places: places.collect(), history }
    }
}

/// Servers in service by hardware type and datacenter: held ones and all. Takes as long as a pass over all servers.
fn in_service(region: &CachedRegion) -> BTreeMap<(String, String), (i64, i64)> {
    let region = &region.snapshot;
    let mut counts: BTreeMap<_, (i64, i64)> = BTreeMap::new();
    for server in region.servers.iter().filter(|server| server.available) {
        let cell = (server.hardware_type, region.datacenter_of(server));
        let (held, all) = counts.entry(cell).or_default();
        *held += i64::from(server.current.is_some());
        *all += 1;
    }
    let named = counts.into_iter().map(|((ty, datacenter), count)| {
        let datacenter = &region.datacenters[datacenter.ix()].id;
        ((region.hardware_types[ty.ix()].to_string(), datacenter.to_string()), count)
    });
    named.collect()
}

impl RegionSupply {
    /// Adds what the history does not have yet. Takes as long as a pass over all servers: not for an async thread.
    fn new(
        forecasts: Arc<Forecasts>,
        orders: Vec<HardwareOrder>,
        region: Option<Arc<CachedRegion>>,
    ) -> RegionSupply {
        let name = |of: &Place| (of.hardware_type.clone(), of.datacenter.clone());
        let mut places: BTreeMap<(String, String), Place> =
            forecasts.places.iter().map(|of| (name(of), of.clone())).collect();
        for (name, counts) in region.iter().flat_map(|region| in_service(region)) {
            places.entry(name).or_insert_with_key(|name| Place::unknown(name.clone(), counts));
        }
        for of in &orders {
            let name = (of.of.hardware_type.to_string(), of.of.datacenter.to_string());
            let place =
                places.entry(name).or_insert_with_key(|name| Place::unknown(name.clone(), (0, 0)));
            place.expected.add(of, forecasts.history.today);
        }
        let last_day = forecasts.history.last_day();
        RegionSupply { last_day, places: places.into_values().collect(), forecasts, orders, region }
    }

    /// The places by how soon they run out at a quantile of demand: those of which none is free first; those that last
    /// or of which too little is known last, the least free first.
    pub(crate) fn by_urgency(&self, quantile: f64) -> Vec<(&Place, Supply)> {
        let mut all: Vec<(&Place, Supply)> =
            self.places.iter().map(|of| (of, of.supply(quantile))).collect();
        let share = |of: &Place| of.free() as f64 / of.servers.max(1) as f64;
        all.sort_by(|(one, first), (other, second)| {
            let days = |supply: &Supply| supply.days().unwrap_or(usize::MAX);
            let urgent: Ordering = days(first).cmp(&days(second));
            urgent.then(share(one).total_cmp(&share(other)))
        });
        all
    }

    /// The day on which a place runs out.
    pub(crate) fn runs_out_on(&self, supply: Supply) -> Option<NaiveDate> {
        let Supply::RunsOut { days } = supply else { return None };
        self.last_day?.checked_add_days(Days::new(days as u64))
    }

    /// How long a place lasts, as a sentence.
    pub(crate) fn sentence(&self, of: &Place, supply: Supply, quantile: f64) -> String {
        let (ty, place) = (&of.hardware_type, &of.datacenter);
        let level = fleet::number::decimal(100.0 * quantile);
        let mut sentence = match (supply, self.runs_out_on(supply)) {
            (Supply::RunsOut { .. }, Some(day)) => {
                format!("{ty} runs out in {place} on {day} (Q{level})")
            }
            (Supply::Out, _) => {
                let next = of.expected.next_on;
                let next = next
                    .map_or_else(String::new, |day| format!("; the next are expected on {day}"));
                format!("No server of {ty} is free in {place}{next}")
            }
            (Supply::Lasts, _) => {
                format!("{ty} lasts in {place} for {} days (Q{level})", horizon())
            }
            _ => {
                let known = fleet::number::counted(of.known_days, "day");
                format!("{known} of {ty} in {place} are too few to say when it runs out")
            }
        };
        if let Ok(late @ 1..) = usize::try_from(of.expected.late) {
            let late = fleet::number::counted(late, "server");
            sentence += &format!("; {late} on order did not arrive on the day expected");
        }
        sentence
    }
}

/// The last [`RegionSupply`], shared by all handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct SupplyCache {
    last: Arc<RwLock<Option<Arc<RegionSupply>>>>,
    /// Held by who computes it.
    computes: Arc<Mutex<()>>,
}

impl SupplyCache {
    /// What was computed last, however old; none before the first time.
    pub(crate) fn latest(&self) -> Option<Arc<RegionSupply>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The supply after the last day that has ended, with the orders of now. Computes what has changed.
    ///
    /// # Errors
    /// If Postgres fails.
    pub(crate) async fn current(
        &self,
        broker: &Broker,
        region: &RegionCache,
    ) -> Result<Arc<RegionSupply>, Problem> {
        // Concurrent requests wait for one computation instead of each computing.
        let _computes = self.computes.lock().await;
        let (first, now) = broker.usage_begins().await?;
        let history = History { first: first.map(|at| at.date_naive()), today: now.date_naive() };
        let (orders, region) = (broker.expected_hardware().await?, region.latest());
        let latest = self.latest();
        // Until a day has ended the servers are those of the last sample.
        let is_current =
            |of: &Arc<Forecasts>| of.history == history && history.last_day().is_some();
        let known = latest.as_ref().map(|of| of.forecasts.clone()).filter(is_current);
        let same_region = |of: &RegionSupply| match (&of.region, &region) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        if known.is_some()
            && let Some(latest) = latest.filter(|of| of.orders == orders && same_region(of))
        {
            return Ok(latest);
        }
        let series = match known {
            Some(_) => Vec::new(),
            None => {
                let asked = UsageAsked {
                    by: vec![UsageKey::HardwareType, UsageKey::Datacenter],
                    step: i64::from(Step::DAY.seconds()),
                    ..UsageAsked::default()
                };
                let span = TimeSpan { from: now - TimeDelta::days(LEARNT.into()), until: now };
                broker.usage_series(span, &asked).await?
            }
        };
        let computed = spawn_blocking(move || {
            let forecasts = known.unwrap_or_else(|| Arc::new(Forecasts::new(series, history)));
            RegionSupply::new(forecasts, orders, region)
        });
        let computed = Arc::new(computed.await.map_err(|error| unreadable(&error))?);
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(computed.clone());
        Ok(computed)
    }

    /// Computes it whenever a day has ended, orders have changed or the region has.
    pub(crate) async fn follow(&self, broker: &Broker, region: &RegionCache) -> Infallible {
        loop {
            if let Err(problem) = self.current(broker, region).await {
                tracing::debug!(detail = problem.detail(), "the supply of servers is not known");
            }
            sleep(LOOK_EVERY).await;
        }
    }
}
