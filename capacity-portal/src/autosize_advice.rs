//! Which quantile and cooldown a reservation's own history recommends, computed once a day.

use crate::http::{Problem, in_time};
use crate::region_summary::unreadable;
use broker::{Broker, TimeSpan, UsageAsked, UsageKey};
use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use forecast::autosize::backtest::{Backtest, BacktestError, Terms, backtest};
use forecast::{Series, Step};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::spawn_blocking;

/// Days of demand that are tried.
const DAYS: i64 = 42;

/// Reservations whose advice is remembered.
const KEPT: usize = 1_000;

/// What was tried, or why nothing was.
pub(crate) type Advice = Arc<Result<Backtest, BacktestError>>;

/// The advice of each reservation that was asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct AutosizeAdvice {
    known: Arc<Mutex<HashMap<String, Computed>>>,
    /// Held by who computes it.
    computes: Arc<tokio::sync::Mutex<()>>,
}

/// Advice, with the day and the terms that it was computed for.
#[derive(Debug)]
struct Computed {
    day: NaiveDate,
    terms: Terms,
    advice: Advice,
}

impl AutosizeAdvice {
    /// What was computed for these terms on a day.
    fn known(&self, reservation: &str, terms: Terms, day: NaiveDate) -> Option<Advice> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let of = known.get(reservation)?;
        ((of.day, of.terms) == (day, terms)).then(|| of.advice.clone())
    }

    /// The advice of a day.
    ///
    /// # Errors
    /// If Postgres fails.
    pub(crate) async fn of(
        &self,
        broker: &Broker,
        reservation: &str,
        terms: Terms,
        now: DateTime<Utc>,
    ) -> Result<Advice, Problem> {
        let day = now.date_naive();
        if let Some(known) = self.known(reservation, terms, day) {
            return Ok(known);
        }
        // Concurrent requests wait for one computation instead of each computing.
        let _computes = self.computes.lock().await;
        if let Some(known) = self.known(reservation, terms, day) {
            return Ok(known);
        }
        let span = TimeSpan { from: now - TimeDelta::days(DAYS), until: now };
        let asked = UsageAsked {
            by: vec![UsageKey::Reservation],
            step: i64::from(Step::FIVE_MINUTES.seconds()),
            reservation: Some(reservation.to_owned()),
            ..UsageAsked::default()
        };
        let found = in_time(broker.usage_series(span, &asked)).await?.pop();
        let advice = spawn_blocking(move || {
            let series = found.and_then(|of| {
                let used = of.figures.iter().map(|of| of.map(|of| of.used_rru.to_f64())).collect();
                Series::new(of.start.timestamp(), Step::FIVE_MINUTES, used).ok()
            });
            match series {
                Some(series) => backtest(&series, &terms),
                None => Err(BacktestError::TooShort { days: 0 }),
            }
        });
        let advice = Arc::new(advice.await.map_err(|error| unreadable(&error))?);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(reservation.to_owned(), Computed { day, terms, advice: advice.clone() });
        Ok(advice)
    }
}
