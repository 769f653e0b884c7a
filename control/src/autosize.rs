//! Requests that follow demand: decides, every ten minutes, whether the request of a reservation grows or shrinks, and submits
//! the change as an ordinary request. The decision is a pure function, [`forecast::autosize::decide`].

use broker::{
    Autosize, AutosizeAction, AutosizeDecision, AutosizeDue, AutosizeMetric, Broker, DbError,
    GrantPolicy, OperationId, RequestChangeKind, RequestId, RequestSpec, Submission, SubmitError,
    TimeSpan, UsageAsked, UsageKey, UsageSeries,
};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{CapacityRequest, Rru};
use forecast::autosize::{Action, Current, Settings, decide};
use forecast::{Series, Step};
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::error::Elapsed;
use tokio::time::{sleep, timeout};

/// Time between two decisions on a reservation.
const EVERY: Duration = Duration::from_secs(600);

/// Interval between checks whether a decision is due.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Days of demand that a decision rests on.
const LEARNT: i64 = 28;

/// Time after a refusal before the next request: what was short is likely to be short for a while.
const AFTER_REFUSAL: TimeDelta = TimeDelta::hours(1);

/// Timeout of one decision: a hung Postgres never answers.
const DECIDE_WITHIN: Duration = Duration::from_secs(60);

/// The actor in the audit trail.
pub const ACTOR: &str = "autosize";

#[derive(Debug, thiserror::Error)]
enum AutosizeTaskError {
    #[error(transparent)]
    Db(#[from] DbError),
    #[error(transparent)]
    Submit(#[from] SubmitError),
    #[error("no decision in time")]
    Late(#[from] Elapsed),
}

/// Decides until the other owners of `submitted`, which is notified of each request, have dropped it.
pub async fn run(broker: Broker, submitted: Weak<Notify>) {
    while submitted.strong_count() > 0 {
        match timeout(DECIDE_WITHIN, decide_next(&broker))
            .await
            .map_err(AutosizeTaskError::from)
            .flatten()
        {
            Ok(Turn::Submitted) => {
                if let Some(submitted) = submitted.upgrade() {
                    submitted.notify_one();
                }
            }
            Ok(Turn::Kept) => {}
            Ok(Turn::NothingDue) => sleep(LOOK_EVERY).await,
            Err(error) => {
                tracing::warn!(%error, "cannot decide whether a request follows demand");
                sleep(LOOK_EVERY).await;
            }
        }
    }
}

enum Turn {
    NothingDue,
    Kept,
    Submitted,
}

/// Decides on the reservation that waits longest. One that fails is decided on in [`EVERY`] again.
async fn decide_next(broker: &Broker) -> Result<Turn, AutosizeTaskError> {
    let Some(due) = broker.take_autosize(EVERY).await? else { return Ok(Turn::NothingDue) };
    let span = TimeSpan { from: due.now - TimeDelta::days(LEARNT), until: due.now };
    let asked = UsageAsked {
        by: vec![UsageKey::Reservation],
        step: i64::from(Step::FIVE_MINUTES.seconds()),
        reservation: Some(due.reservation.to_string()),
        ..UsageAsked::default()
    };
    let history = broker.usage_series(span, &asked).await?.pop();
    let (mut decision, policy) = decision(&due, history.as_ref());
    let mut turn = Turn::Kept;
    if let Some(to) = decision.to {
        match submit(broker, &due, to, policy, &decision.reason).await {
            Ok(request) => {
                decision.request = Some(request);
                turn = Turn::Submitted;
            }
            Err(SubmitError::Open { .. }) => {
                decision =
                    kept("another request for the reservation waits for its answer".to_owned());
            }
            // It was removed meanwhile, and its settings with it.
            Err(SubmitError::UnknownReservation { .. }) => return Ok(Turn::Kept),
            Err(error) => return Err(error.into()),
        }
    }
    broker.note_autosize(&due.reservation, &decision).await?;
    Ok(turn)
}

fn kept(reason: String) -> AutosizeDecision {
    AutosizeDecision { action: AutosizeAction::Keep, to: None, reason, request: None }
}

/// The decision on a reservation, and how much of a change must be granted.
fn decision(due: &AutosizeDue, history: Option<&UsageSeries>) -> (AutosizeDecision, GrantPolicy) {
    let unknown = || (kept("there is no history of its demand yet".to_owned()), GrantPolicy::All);
    let Some(series) = history.and_then(|of| demand(of, due.autosize.metric)) else {
        return unknown();
    };
    let current =
        Current { request: due.promised.to_f64(), changed_at: Some(due.promised_at.timestamp()) };
    let decided = match decide(&series, &settings(&due.autosize), &current, due.now.timestamp()) {
        Ok(decided) => decided,
        Err(error) => return (kept(error.to_string()), GrantPolicy::All),
    };
    let reason = decided.reason.to_string();
    if decided.action != Action::Keep && is_refused(due.refused_at, due.now) {
        let reason = format!("{reason}; the last request was refused less than an hour ago");
        return (kept(reason), GrantPolicy::All);
    }
    let (action, to, policy) = match decided.action {
        Action::Keep => return (kept(reason), GrantPolicy::All),
        // Some of what is needed is better than nothing of it.
        Action::Grow(to) => (AutosizeAction::Grow, to, GrantPolicy::BestEffort),
        Action::Shrink(to) => (AutosizeAction::Shrink, to, GrantPolicy::All),
    };
    // Up to hundredths; what floats add to a whole number is no demand.
    let to = Rru::from_f64((to * 100.0 - 1e-6).ceil() / 100.0).map(|to| to.min(due.autosize.max));
    match to {
        Some(to) => (AutosizeDecision { action, to: Some(to), reason, request: None }, policy),
        None => unknown(),
    }
}

fn is_refused(refused_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    refused_at.is_some_and(|at| now - at < AFTER_REFUSAL)
}

/// The settings as the decision takes them.
fn settings(of: &Autosize) -> Settings {
    Settings {
        quantile: f64::from(of.quantile_micro) / 1e6,
        min: of.min.to_f64(),
        max: of.max.to_f64(),
        cooldown: u32::try_from(of.cooldown.as_secs()).unwrap_or(u32::MAX),
    }
}

/// The demand of a history with five-minute steps; `None`: it has no step.
fn demand(of: &UsageSeries, metric: AutosizeMetric) -> Option<Series> {
    let values = of.figures.iter().map(|figures| {
        figures.map(|figures| match metric {
            AutosizeMetric::UsedRru => figures.used_rru.to_f64(),
        })
    });
    Series::new(of.start.timestamp(), Step::FIVE_MINUTES, values.collect()).ok()
}

/// Submits a change of the capacity, with the reason of the decision.
async fn submit(
    broker: &Broker,
    due: &AutosizeDue,
    to: Rru,
    policy: GrantPolicy,
    reason: &str,
) -> Result<RequestId, SubmitError> {
    let asking = RequestSpec {
        kind: RequestChangeKind::Change,
        owner: due.owner.clone(),
        change: CapacityRequest {
            reservation_id: due.reservation.clone(),
            capacity_rru: Some(to.to_f64()),
            ..CapacityRequest::default()
        },
        policy,
        starts_at: None,
        ends_at: None,
        labels: None,
        contract: None,
        why: Some(reason.to_owned()),
    };
    let id = RequestId::now_v7();
    let submission = Submission {
        id,
        operation: Some(OperationId::now_v7()),
        asking: &asking,
        expected: None,
        key: None,
    };
    broker.submit_request(ACTOR, &submission).await?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use broker::UsageFigures;

    const NOW: i64 = 1_700_000_100;

    fn due() -> AutosizeDue {
        let now = DateTime::from_timestamp(NOW, 0).expect("a time");
        AutosizeDue {
            reservation: "web".into(),
            autosize: Autosize {
                metric: AutosizeMetric::UsedRru,
                quantile_micro: 900_000,
                min: Rru(5_000_000),
                max: Rru(60_000_000),
                cooldown: Duration::from_secs(86_400),
            },
            owner: "shop".into(),
            promised: Rru(50_000_000),
            promised_at: now - TimeDelta::days(3),
            now,
            refused_at: None,
        }
    }

    /// Two days of a demand until now.
    fn history(used: i64) -> UsageSeries {
        let figures = UsageFigures { used_rru: Rru(used * 1_000_000), ..UsageFigures::default() };
        let steps = 2 * 288;
        let start = DateTime::from_timestamp(NOW - (steps - 1) * 300, 0).expect("a time");
        UsageSeries {
            names: vec!["web".to_owned()],
            start,
            figures: vec![Some(figures); steps as usize],
        }
    }

    #[test]
    fn demand_decides_and_a_refusal_waits() {
        let (shrink, policy) = decision(&due(), Some(&history(10)));
        assert_eq!((shrink.action, shrink.to), (AutosizeAction::Shrink, Some(Rru(45_000_000))));
        assert_eq!(policy, GrantPolicy::All);
        let (grow, policy) = decision(&due(), Some(&history(55)));
        assert_eq!(
            (grow.action, grow.to, policy),
            (AutosizeAction::Grow, Some(Rru(55_000_000)), GrantPolicy::BestEffort)
        );
        let (capped, _) = decision(&due(), Some(&history(90)));
        assert_eq!(capped.to, Some(Rru(60_000_000)), "never above max");
        let (none, _) = decision(&due(), None);
        assert_eq!((none.action, none.to), (AutosizeAction::Keep, None));
        let refused = |minutes| {
            let due = due();
            let refused_at = Some(due.now - TimeDelta::minutes(minutes));
            decision(&AutosizeDue { refused_at, ..due }, Some(&history(55))).0
        };
        assert!(refused(59).to.is_none() && refused(59).reason.contains("refused"));
        assert!(refused(61).to.is_some());
    }
}
