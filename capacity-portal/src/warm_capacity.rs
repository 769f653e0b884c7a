//! Warm capacity: how many servers the shared buffer of each hardware type needs for failures, and by how many the use of each type
//! may grow in each datacenter within the next hour. Computed every ten minutes.

use crate::http::Problem;
use crate::region_summary::unreadable;
use broker::{Broker, TimeSpan, UsageAsked, UsageKey, UsageSeries};
use chrono::{DateTime, TimeDelta, Utc};
use control::failure_history::RegionDown;
use control::{CachedRegion, RegionCache};
use fleet::{RegionSnapshot, ReservationKind};
use forecast::autosize::need;
use forecast::{Series, Step};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

/// The accepted chances that can be asked for.
pub(crate) const CHANCES: [f64; 4] = [0.001, 0.005, 0.01, 0.05];

/// The accepted chance by default.
pub(crate) const CHANCE: f64 = 0.01;

/// Days of use that the next hour is forecast from.
const LEARNT: i64 = 14;

/// Hours of use without which its growth is not forecast.
const KNOWN_HOURS: usize = 24;

/// How long it counts.
const EVERY: TimeDelta = TimeDelta::minutes(10);

/// How often is looked whether it still counts.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// Timeout of a computation: a hung Postgres never answers.
const WITHIN: Duration = Duration::from_secs(120);

/// Servers of a hardware type in a datacenter.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlaceUse {
    pub(crate) hardware_type: String,
    pub(crate) datacenter: String,
    pub(crate) count: UseCount,
    /// Servers that use may grow by within the next hour, by chance in the order of [`CHANCES`]; `None`: too little is known.
    growth: Option<[u64; 4]>,
}

/// Servers in service, by use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UseCount {
    /// With running containers.
    pub(crate) used: u64,
    /// Of reservations, without running containers and not lent; shared buffers are not counted.
    pub(crate) idle: u64,
    /// Of no reservation.
    pub(crate) free: u64,
}

impl PlaceUse {
    /// Servers that use may grow by within the next hour.
    pub(crate) fn growth(&self, chance: f64) -> Option<u64> {
        let at = CHANCES.iter().position(|of| *of == chance)?;
        Some(self.growth?[at])
    }

    /// Of these, servers that are neither idle nor free.
    pub(crate) fn missing(&self, chance: f64) -> Option<u64> {
        let UseCount { idle, free, .. } = self.count;
        Some(self.growth(chance)?.saturating_sub(idle + free))
    }
}

/// The warm capacity of a region.
#[derive(Debug)]
pub(crate) struct WarmCapacity {
    pub(crate) computed_at: DateTime<Utc>,
    pub(crate) down: RegionDown,
    /// By hardware type and datacenter.
    pub(crate) places: Vec<PlaceUse>,
}

impl WarmCapacity {
    /// Takes as long as a pass over all servers, and the forecasts: not for an async thread.
    fn new(
        region: &CachedRegion,
        begins: Option<DateTime<Utc>>,
        history: Vec<UsageSeries>,
        now: DateTime<Utc>,
    ) -> Result<WarmCapacity, Problem> {
        let region = &region.snapshot;
        let begins = begins.map(|at| at.timestamp());
        let down = RegionDown::new(region, begins).map_err(|error| unreadable(&error))?;
        let mut counts = counts(region);
        let series = history.into_iter().filter_map(|of| {
            let used = of.figures.iter().map(|of| of.map(|of| of.used as f64)).collect();
            let series = Series::new(of.start.timestamp(), Step::FIVE_MINUTES, used).ok()?;
            Some((<[String; 2]>::try_from(of.names).ok()?, series))
        });
        let mut places = Vec::new();
        for ([hardware_type, datacenter], series) in series {
            if let Some(count) = counts.remove(&(hardware_type.clone(), datacenter.clone())) {
                let growth = growth(&series, count.used);
                places.push(PlaceUse { hardware_type, datacenter, count, growth });
            }
        }
        // What the history does not have yet.
        for ((hardware_type, datacenter), count) in counts {
            places.push(PlaceUse { hardware_type, datacenter, count, growth: None });
        }
        places.sort_by(|one, other| {
            (&one.hardware_type, &one.datacenter).cmp(&(&other.hardware_type, &other.datacenter))
        });
        Ok(WarmCapacity { computed_at: now, down, places })
    }
}

/// Servers that use may grow by within the hour after a series, from these used now.
fn growth(series: &Series, used: u64) -> Option<[u64; 4]> {
    let known = series.values().flatten().count();
    if known < KNOWN_HOURS * series.step().per(Step::HOUR) {
        return None;
    }
    let needs = CHANCES.map(|chance| need(series, 1.0 - chance).ok().flatten());
    let [Some(a), Some(b), Some(c), Some(d)] = needs else { return None };
    Some(
        [a, b, c, d]
            .map(|need| (need - 1e-6).ceil().max(0.0) as u64)
            .map(|need| need.saturating_sub(used)),
    )
}

/// Servers in service by hardware type and datacenter.
fn counts(region: &RegionSnapshot) -> BTreeMap<(String, String), UseCount> {
    let mut counts: BTreeMap<_, UseCount> = BTreeMap::new();
    for server in region.servers.iter().filter(|server| server.available) {
        let cell = (server.hardware_type, region.datacenter_of(server));
        let count = counts.entry(cell).or_default();
        match server.current {
            None => count.free += 1,
            Some(_) if server.in_use => count.used += 1,
            Some(_) if server.loaned_to.is_some() => {}
            Some(owner) => {
                let of = &region.reservations[owner.ix()];
                count.idle += u64::from(of.kind != ReservationKind::SharedBuffer);
            }
        }
    }
    let named = counts.into_iter().map(|((ty, datacenter), count)| {
        let datacenter = &region.datacenters[datacenter.ix()].id;
        ((region.hardware_types[ty.ix()].to_string(), datacenter.to_string()), count)
    });
    named.collect()
}

/// The last [`WarmCapacity`], shared by all handlers.
#[derive(Clone, Debug, Default)]
pub(crate) struct WarmCapacityCache {
    last: Arc<RwLock<Option<Arc<WarmCapacity>>>>,
    /// Held by who computes it.
    computes: Arc<Mutex<()>>,
}

impl WarmCapacityCache {
    /// What was computed last, however old; none before the first time.
    pub(crate) fn latest(&self) -> Option<Arc<WarmCapacity>> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What was computed last; computes it the first time. `None`: no region is loaded.
    ///
    /// # Errors
    /// If Postgres fails.
    pub(crate) async fn current(
        &self,
        broker: &Broker,
        region: &RegionCache,
    ) -> Result<Option<Arc<WarmCapacity>>, Problem> {
        match self.latest() {
            Some(latest) => Ok(Some(latest)),
            None => self.renewed(broker, region).await,
        }
    }

    /// The warm capacity of the last ten minutes; `None`: no region is loaded.
    async fn renewed(
        &self,
        broker: &Broker,
        region: &RegionCache,
    ) -> Result<Option<Arc<WarmCapacity>>, Problem> {
        // Concurrent requests wait for one computation instead of each computing.
        let _computes = self.computes.lock().await;
        let Some(region) = region.latest() else { return Ok(None) };
        let (begins, now) = broker.usage_begins().await?;
        if let Some(latest) = self.latest().filter(|of| now - of.computed_at < EVERY) {
            return Ok(Some(latest));
        }
        let asked = UsageAsked {
            by: vec![UsageKey::HardwareType, UsageKey::Datacenter],
            step: i64::from(Step::FIVE_MINUTES.seconds()),
            ..UsageAsked::default()
        };
        let span = TimeSpan { from: now - TimeDelta::days(LEARNT), until: now };
        let history = broker.usage_series(span, &asked).await?;
        let computed = spawn_blocking(move || WarmCapacity::new(&region, begins, history, now));
        let computed = Arc::new(computed.await.map_err(|error| unreadable(&error))??);
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(computed.clone());
        Ok(Some(computed))
    }

    /// Computes it every ten minutes.
    pub(crate) async fn follow(&self, broker: &Broker, region: &RegionCache) -> Infallible {
        loop {
            match timeout(WITHIN, self.renewed(broker, region)).await {
                Ok(Ok(_)) => {}
                Ok(Err(problem)) => {
                    tracing::debug!(detail = problem.detail(), "the warm capacity is not known");
                }
                Err(_) => tracing::warn!("the warm capacity was not computed in time"),
            }
            sleep(LOOK_EVERY).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_neither_idles_nor_is_free_is_missing() {
        let place = |growth| PlaceUse {
            hardware_type: "C4".to_owned(),
            datacenter: "dc1".to_owned(),
            count: UseCount { used: 40, idle: 3, free: 2 },
            growth,
        };
        let of = place(Some([9, 7, 6, 4]));
        assert_eq!(CHANCES.map(|chance| of.missing(chance)), [Some(4), Some(2), Some(1), Some(0)]);
        assert_eq!((of.growth(CHANCE), of.growth(0.02)), (Some(6), None));
        assert_eq!(place(None).missing(CHANCE), None);
    }

    /// Two days of ten servers used, with an hour of 25 on each.
    #[test]
    fn growth_is_the_next_peak_above_what_is_used() {
        let used = |step: usize| if (100..112).contains(&(step % 288)) { 25.0 } else { 10.0 };
        let series = |steps: usize| {
            let values = (0..steps).map(|step| Some(used(step))).collect();
            Series::new(0, Step::FIVE_MINUTES, values).expect("valid")
        };
        let [rare, .., common] = growth(&series(576), 10).expect("two days are known");
        assert!(rare >= common && rare <= 40, "{rare} {common}");
        // The peak of the last hour counts whole, in use or not.
        let [.., at_peak] = growth(&series(288 + 112), 10).expect("more than a day is known");
        assert!(at_peak >= 15, "{at_peak}");
        assert_eq!(growth(&series(287), 10), None, "less than a day is known");
    }
}
