//! `/ops/v1/give-way`: what less important reservations would give to more important ones when more is
//! lost than embedded buffers cover, and doing it.

use super::drills::GivesWay;
use crate::api::asked;
use crate::api::authority::Role;
use crate::api::caller::Caller;
use crate::api::conditions::{Answer, etag, once, seen, stale};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use crate::rehearsal::{Rehearse, Stand};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{GaveWay, GiveWayAnswer, GiveWayCause, GiveWayError, MoverError};
use chrono::{DateTime, TimeDelta, Utc};
use decisions::give_way::{GIVE_WAY_LOST_MIN, GiveWay, RegionHeld};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::{Arc, Mutex};
use utoipa::ToSchema;

const PATH: &str = "/ops/v1/give-way";

/// The most outages listed: more MSBs are not lost at once.
const OUTAGES_MAX: u32 = 1_000;

/// How a reservation stands before and after.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GiveWayStanding)]
struct StandView {
    reservation: String,
    /// 0 is the most important.
    priority: i32,
    /// What was promised.
    capacity_rru: f64,
    /// What works of what it holds.
    before_rru: f64,
    /// What would work of what it holds then.
    after_rru: f64,
}

impl From<Stand> for StandView {
    fn from(of: Stand) -> StandView {
        StandView {
            reservation: of.reservation.to_string(),
            priority: of.priority,
            capacity_rru: of.capacity.to_f64(),
            before_rru: of.before.to_f64(),
            after_rru: of.after.to_f64(),
        }
    }
}

/// When the mover acts without an operator.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GiveWayDelay)]
struct DelayView {
    /// How long at least two MSBs are lost before that.
    after_seconds: u64,
    /// When that is, if nothing comes back before; null: fewer MSBs are lost.
    at: Option<DateTime<Utc>>,
}

/// Who gives way to whom.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GiveWay)]
pub(crate) struct GiveWayView {
    /// Whether it was done; else it is what would be done.
    applied: bool,
    /// MSBs that are lost.
    lost: Vec<String>,
    /// How many must be lost before it is done, unless `anyway` is said.
    lost_min: usize,
    /// When the mover does it by itself; null: it does not.
    by_itself: Option<DelayView>,
    /// Servers that have a new target by it; null: nothing was done.
    servers: Option<usize>,
    /// Groups of servers and who gives them to whom.
    moves: Vec<GivesWay>,
    /// Guaranteed reservations that are short or give way, the most important first.
    reservations: Vec<StandView>,
}

/// What is asked.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = GiveWayAsked)]
pub(crate) struct GiveWayBody {
    /// Why, for the audit trail.
    #[schema(min_length = 1)]
    why: String,
    /// Even if fewer than two MSBs are lost, which embedded buffers cover.
    #[serde(default)]
    anyway: bool,
}

impl From<GiveWayError> for Problem {
    fn from(error: GiveWayError) -> Problem {
        let detail = error.to_string();
        match error {
            GiveWayError::TooFewLost { lost } => {
                Problem::new(StatusCode::CONFLICT, "too_few_lost", detail)
                    .with("lost", json!(lost))
                    .with("lost_min", json!(GIVE_WAY_LOST_MIN))
            }
            GiveWayError::Stale { current } => stale(&current),
            GiveWayError::NoReason => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail).with(
                    "errors",
                    json!([{ "field": "why", "reason": "empty", "detail": "say why" }]),
                )
            }
            GiveWayError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            GiveWayError::Db(error) | GiveWayError::Mover(MoverError::Db(error)) => error.into(),
            GiveWayError::Mover(MoverError::TakenOver) => {
                Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
            }
        }
    }
}

/// What is known of giving way now.
#[derive(Debug)]
pub(crate) struct Preview {
    /// MSBs that are lost.
    pub(crate) lost: Vec<String>,
    /// The mover's delay, and when it acts; `None`: it does not act by itself.
    pub(crate) by_itself: Option<(std::time::Duration, Option<DateTime<Utc>>)>,
    pub(crate) moves: Vec<GiveWay>,
    pub(crate) stand: Vec<Stand>,
}

impl Preview {
    /// Whether it may be done without saying `anyway`.
    pub(crate) fn is_due(&self) -> bool {
        self.lost.len() >= GIVE_WAY_LOST_MIN
    }

    /// The version to carry out, and no other.
    pub(crate) fn version(&self) -> String {
        broker::give_way_version(&self.moves)
    }

    fn view(self, gave: Option<GaveWay>) -> GiveWayView {
        let servers = gave.as_ref().map(|gave| gave.servers);
        let moves = gave.map_or(self.moves, |gave| gave.plan);
        GiveWayView {
            applied: servers.is_some(),
            lost: self.lost,
            lost_min: GIVE_WAY_LOST_MIN,
            by_itself: self
                .by_itself
                .map(|(after, at)| DelayView { after_seconds: after.as_secs(), at }),
            servers,
            moves: moves.into_iter().map(GivesWay::from).collect(),
            reservations: self.stand.into_iter().map(StandView::from).collect(),
        }
    }
}

/// Who decides, if that is known here.
fn decides(site: &Site) -> Result<Arc<dyn Rehearse>, Problem> {
    let nobody = "this program does not know the mover's decisions";
    site.rehearsal.clone().ok_or_else(|| Problem::unavailable("no_planner", nobody))
}

/// What would be done now.
pub(crate) async fn preview(site: &Site) -> Result<Preview, Problem> {
    let decides = decides(site)?;
    let held = in_time(site.broker.region_held()).await?;
    let (moves, stand) = decides.give_way(&held);
    with_plan(site, moves, stand).await
}

async fn with_plan(
    site: &Site,
    moves: Vec<GiveWay>,
    stand: Vec<Stand>,
) -> Result<Preview, Problem> {
    let mut outages = in_time(site.broker.outages(true, OUTAGES_MAX)).await?;
    outages.sort_by_key(|outage| outage.began_at);
    let after = in_time(site.broker.mover_status()).await?.gives_way_after;
    let since = outages.get(GIVE_WAY_LOST_MIN - 1).map(|outage| outage.began_at);
    let at =
        |after: std::time::Duration| since?.checked_add_signed(TimeDelta::from_std(after).ok()?);
    Ok(Preview {
        lost: outages.into_iter().map(|outage| outage.msb.to_string()).collect(),
        by_itself: after.map(|after| (after, at(after))),
        moves,
        stand,
    })
}

/// Lets reservations give way.
pub(crate) async fn give_way(
    site: &Site,
    actor: &str,
    cause: &GiveWayCause,
    key: Option<broker::KeyClaim>,
) -> Result<GiveWayView, Problem> {
    let decides = decides(site)?;
    let before = with_plan(site, Vec::new(), Vec::new()).await?;
    let (lost, by_itself) = (before.lost, before.by_itself);
    let stood: Mutex<Vec<Stand>> = Mutex::default();
    let stand = || stood.lock().map(|stood| stood.clone()).unwrap_or_default();
    let view = |gave: &GaveWay| {
        let (lost, moves) = (lost.clone(), Vec::new());
        Preview { lost, by_itself, moves, stand: stand() }.view(Some(gave.clone()))
    };
    let answer = |gave: &GaveWay| Answer::new(StatusCode::OK, None, json!(view(gave))).json();
    let plan = |held: &RegionHeld| {
        let (moves, stand) = decides.give_way(held);
        if let Ok(mut stood) = stood.lock() {
            *stood = stand;
        }
        moves
    };
    let key = key.map(|claim| (claim, &answer as GiveWayAnswer));
    let gave = in_time(site.broker.give_way(actor, cause, key, plan)).await?;
    Ok(view(&gave))
}

/// Who would give way to whom, and how reservations would stand then
///
/// The most important reservation that is short is made whole first: from servers that nobody owns, then
/// from shared buffers, then from less important reservations, the least important first. Nothing is
/// changed. The ETag is the version of the plan.
#[utoipa::path(get, path = "/give-way", operation_id = "preview_give_way",
    responses((status = 200, description = "what would be done", body = GiveWayView)))]
pub(super) async fn find(State(site): State<Site>, caller: Caller) -> Result<Response, Problem> {
    caller.reads_region()?;
    let preview = preview(&site).await?;
    let version = preview.version();
    Ok(etag(Json(preview.view(None)), &version))
}

/// Lets less important reservations give way to more important ones
///
/// The plan is made again in the transaction that writes it. With `If-Match` only if it is still the plan
/// of that ETag.
#[utoipa::path(post, path = "/give-way", operation_id = "give_way",
    params(
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "asks once, however often it is sent")),
    request_body = GiveWayBody,
    responses(
        (status = 200, description = "it is done", body = GiveWayView),
        (status = 409, description = "too few MSBs are lost, and `anyway` is not said"),
        (status = 412, description = "the plan has changed since"),
        (status = 422, description = "it says no reason")))]
pub(super) async fn run(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let GiveWayBody { why, anyway } = asked::json(&body)?;
    let cause = GiveWayCause::Operator { why, anyway, seen: seen(&headers)? };
    once(&site, &actor, &headers, (PATH, &body), async |claim| {
        let done = give_way(&site, &actor, &cause, claim).await?;
        if let (Some(0), Some(claim)) = (done.servers, claim) {
            // Nothing was written, the key's answer included.
            in_time(site.broker.release_key(claim)).await?;
        }
        Ok(Json(done))
    })
    .await
}
