//! `/ops/v1/give-way`: preemption. When more is lost than embedded buffers cover, reservations of lower priority give
//! servers to those of higher priority.

use super::drills::gives_way;
use crate::http::auth::{Caller, Role};
use crate::http::idempotency::{StoredResponse, once};
use crate::http::preconditions::{etag, optional_if_match, stale};
use crate::http::{Problem, Site, body, in_time};
use crate::rehearsal::{Rehearse, Stand};
use api_types::drills::{GiveWay, GiveWayAsked, GiveWayDelay, GiveWayStanding};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{MoverError, Preempted, PreemptionAnswer, PreemptionCause, PreemptionError};
use chrono::{DateTime, TimeDelta, Utc};
use decisions::preemption::{PREEMPTION_LOST_MIN, Preemption, RegionHeld};
use serde_json::json;
use std::sync::{Arc, Mutex};

const PATH: &str = "/ops/v1/give-way";

/// Limit of outages: more MSBs are not lost at once.
const OUTAGES_MAX: u32 = 1_000;

fn standing(of: Stand) -> GiveWayStanding {
    GiveWayStanding {
        reservation: of.reservation.to_string(),
        priority: of.priority,
        promised_rru: of.capacity.to_f64(),
        before_rru: of.before.to_f64(),
        after_rru: of.after.to_f64(),
    }
}

impl From<PreemptionError> for Problem {
    fn from(error: PreemptionError) -> Problem {
        let detail = error.to_string();
        match error {
            PreemptionError::TooFewLost { lost } => {
                Problem::new(StatusCode::CONFLICT, "too_few_lost", detail)
                    .with("lost", json!(lost))
                    .with("lost_min", json!(PREEMPTION_LOST_MIN))
            }
            PreemptionError::Stale { current } => stale(&current),
            PreemptionError::NoReason => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
                    .with_errors([FieldError::new("why", "a reason is required").because("empty")])
            }
            PreemptionError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            PreemptionError::Db(error) | PreemptionError::Mover(MoverError::Db(error)) => {
                error.into()
            }
            PreemptionError::Mover(MoverError::TakenOver) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

/// Simulated preemptions.
#[derive(Debug)]
pub(crate) struct Preview {
    /// Lost MSBs.
    pub(crate) lost: Vec<String>,
    /// The mover's delay, and when it acts; `None`: it never acts without an operator.
    pub(crate) by_itself: Option<(std::time::Duration, Option<DateTime<Utc>>)>,
    pub(crate) moves: Vec<Preemption>,
    pub(crate) stand: Vec<Stand>,
}

impl Preview {
    /// Whether it may be done without `anyway`.
    pub(crate) fn is_due(&self) -> bool {
        self.lost.len() >= PREEMPTION_LOST_MIN
    }

    /// Version of the plan, for `If-Match`.
    pub(crate) fn version(&self) -> String {
        broker::preemption_version(&self.moves)
    }

    fn view(self, gave: Option<Preempted>) -> GiveWay {
        let servers = gave.as_ref().map(|gave| gave.servers);
        let moves = gave.map_or(self.moves, |gave| gave.plan);
        GiveWay {
            applied: servers.is_some(),
            lost: self.lost,
            lost_min: PREEMPTION_LOST_MIN,
            by_itself: self
                .by_itself
                .map(|(after, at)| GiveWayDelay { after_seconds: after.as_secs(), at }),
            servers,
            moves: moves.into_iter().map(gives_way).collect(),
            reservations: self.stand.into_iter().map(standing).collect(),
        }
    }
}

/// The decision functions, if this process has them.
fn decisions(site: &Site) -> Result<Arc<dyn Rehearse>, Problem> {
    let missing = "this process cannot compute the mover's decisions";
    site.rehearsal.clone().ok_or_else(|| Problem::unavailable("no_planner", missing))
}

/// Simulates preemptions now.
pub(crate) async fn preview(site: &Site) -> Result<Preview, Problem> {
    let decides = decisions(site)?;
    let held = in_time(site.broker.region_held()).await?;
    let (moves, stand) = decides.preemptions(&held);
    with_plan(site, moves, stand).await
}

async fn with_plan(
    site: &Site,
    moves: Vec<Preemption>,
    stand: Vec<Stand>,
) -> Result<Preview, Problem> {
    let mut outages = in_time(site.broker.outages(true, OUTAGES_MAX)).await?;
    outages.sort_by_key(|outage| outage.began_at);
    let after = in_time(site.broker.mover_status()).await?.gives_way_after;
    let since = outages.get(PREEMPTION_LOST_MIN - 1).map(|outage| outage.began_at);
    let at =
        |after: std::time::Duration| since?.checked_add_signed(TimeDelta::from_std(after).ok()?);
    Ok(Preview {
        lost: outages.into_iter().map(|outage| outage.msb.to_string()).collect(),
        by_itself: after.map(|after| (after, at(after))),
        moves,
        stand,
    })
}

/// Does preemptions.
pub(crate) async fn give_way(
    site: &Site,
    actor: &str,
    cause: &PreemptionCause,
    key: Option<broker::KeyClaim>,
) -> Result<GiveWay, Problem> {
    let decides = decisions(site)?;
    let before = with_plan(site, Vec::new(), Vec::new()).await?;
    let (lost, by_itself) = (before.lost, before.by_itself);
    let stood: Mutex<Vec<Stand>> = Mutex::default();
    let stand = || stood.lock().map(|stood| stood.clone()).unwrap_or_default();
    let view = |gave: &Preempted| {
        let (lost, moves) = (lost.clone(), Vec::new());
        Preview { lost, by_itself, moves, stand: stand() }.view(Some(gave.clone()))
    };
    let answer =
        |gave: &Preempted| StoredResponse::new(StatusCode::OK, None, json!(view(gave))).document();
    let plan = |held: &RegionHeld| {
        let (moves, stand) = decides.preemptions(held);
        if let Ok(mut stood) = stood.lock() {
            *stood = stand;
        }
        moves
    };
    let key = key.map(|claim| (claim, &answer as PreemptionAnswer));
    let gave = in_time(site.broker.preempt(actor, cause, key, plan)).await?;
    Ok(view(&gave))
}

/// Simulates preemptions and their effect on reservations
///
/// The short reservation of the highest priority is served first: from free servers, then from shared buffers, then
/// from reservations of lower priority, the lowest first. Nothing is changed. The ETag is the version of the plan.
#[utoipa::path(get, path = "/give-way", operation_id = "preview_give_way",
    responses((status = 200, description = "the simulated preemptions", body = GiveWay)))]
pub(super) async fn find(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads_region()?;
    let preview = preview(&site).await?;
    let version = preview.version();
    Ok(etag(Json(preview.view(None)), &version))
}

/// Moves servers from reservations of lower priority to those of higher priority
///
/// The plan is made again in the transaction that writes it. With `If-Match`, only if it is still the plan of that
/// ETag.
#[utoipa::path(post, path = "/give-way", operation_id = "give_way",
    params(
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = GiveWayAsked,
    responses(
        (status = 200, description = "the preemptions are decided", body = GiveWay),
        (status = 409, description = "too few MSBs are lost, and `anyway` is not set"),
        (status = 412, description = "the plan has changed since"),
        (status = 422, description = "the reason is missing")))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let GiveWayAsked { why, anyway } = body::json(&body)?;
    let cause = PreemptionCause::Operator { why, anyway, seen: optional_if_match(&headers)? };
    once(&site, &actor, &headers, (PATH, &body), async |claim| {
        let done = give_way(&site, &actor, &cause, claim).await?;
        if let (Some(0), Some(claim)) = (done.servers, claim) {
            // Nothing was written, not even the response for the key.
            in_time(site.broker.release_key(claim)).await?;
        }
        Ok(Json(done))
    })
    .await
}
