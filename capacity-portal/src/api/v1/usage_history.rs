//! `GET /v1/history/usage`: promised capacity and servers over time.

use super::scope::visible_owner;
use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time, schema};
use crate::usage::view;
use api_types::history::UsageHistory;
use axum::Json;
use axum::extract::State;
use broker::{TimeSpan, UsageAsked, UsageKey};
use chrono::TimeDelta;
use serde::Deserialize;
use utoipa::IntoParams;

/// The longest time in days: the age at which usage is deleted.
const DAYS_MAX: u16 = 400;

/// The time by default.
const DAYS: u16 = 7;

/// Most values of one figure, in all series together.
const VALUES_MAX: usize = 1_000_000;

/// Words of `step`, with their seconds.
const STEPS: [(&str, u32); 3] = [("5m", 300), ("1h", 3_600), ("1d", 86_400)];

/// Which series, how long and how finely.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct UsageQuery {
    /// What series are told apart by, separated by commas: `reservation`, `owner`, `hardware_type`, `datacenter`; absent:
    /// `reservation`.
    by: Option<String>,
    /// Only of this reservation.
    reservation: Option<String>,
    /// Only of this owner.
    owner: Option<String>,
    /// Only of this hardware type.
    hardware_type: Option<String>,
    /// Only in this datacenter.
    datacenter: Option<String>,
    /// The length of a step; absent: `5m`.
    #[param(schema_with = steps)]
    step: Option<String>,
    /// Only of this time before now; absent: 7.
    #[param(minimum = 1, maximum = 400)]
    days: Option<u16>,
}

fn steps() -> utoipa::openapi::Schema {
    schema::words(STEPS.map(|(word, _)| word))
}

/// Parses what series are told apart by.
fn keys(text: Option<&str>) -> Result<Vec<UsageKey>, Problem> {
    let words = text.unwrap_or(UsageKey::Reservation.as_str()).split(',');
    let mut keys = Vec::new();
    for word in words {
        query::word(Some(word), "by", UsageKey::ALL.map(UsageKey::as_str))?;
        keys.extend(UsageKey::ALL.into_iter().find(|key| key.as_str() == word));
    }
    let mut once = keys.clone();
    once.sort();
    once.dedup();
    if once.len() < keys.len() {
        return Err(Problem::bad_request("malformed", "by lists a word twice"));
    }
    Ok(keys)
}

/// Promised capacity and servers over time, as series for forecasts
///
/// A sample is taken every five minutes and kept for 400 days. With a longer step a value is the largest of its samples.
#[utoipa::path(get, path = "/history/usage", operation_id = "get_usage_history",
    params(UsageQuery),
    responses((status = 200, description = "the series", body = UsageHistory)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(wanted): StrictQuery<UsageQuery>,
) -> Result<Json<UsageHistory>, Problem> {
    caller.reads()?;
    let owner = visible_owner(&caller, wanted.owner)?;
    let by = keys(wanted.by.as_deref())?;
    let word = query::word(wanted.step.as_deref(), "step", STEPS.map(|(word, _)| word))?;
    let step = STEPS.into_iter().find(|(known, _)| word.is_none_or(|word| word == *known));
    let step = step.map_or(STEPS[0].1, |(_, seconds)| seconds);
    let days = wanted.days.unwrap_or(DAYS);
    if !(1..=DAYS_MAX).contains(&days) {
        let detail = format!("days must be from 1 to {DAYS_MAX}");
        return Err(Problem::bad_request("malformed", detail));
    }
    let until = in_time(site.broker.clock()).await?;
    let span = TimeSpan { from: until - TimeDelta::days(days.into()), until };
    let asked = UsageAsked {
        by,
        step: step.into(),
        reservation: wanted.reservation,
        owner,
        hardware_type: wanted.hardware_type,
        datacenter: wanted.datacenter,
    };
    let filters = [&asked.reservation, &asked.owner, &asked.hardware_type, &asked.datacenter];
    query::storable(filters.into_iter().flatten())?;
    let series = in_time(site.broker.usage_series(span, &asked)).await?;
    if series.iter().map(|of| of.figures.len()).sum::<usize>() > VALUES_MAX {
        let detail = format!(
            "the answer would have more than {VALUES_MAX} values of each figure; choose a longer step"
        );
        return Err(Problem::bad_request("malformed", detail));
    }
    let series = series.into_iter().map(|of| view(of, &asked.by)).collect();
    Ok(Json(UsageHistory { step_seconds: step, series }))
}
