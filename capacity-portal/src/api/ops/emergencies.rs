//! `/ops/v1/emergencies`: capacity that is granted at once; requested, listed and ended.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, body, in_time};
use api_types::emergencies::{
    Emergencies, Emergency, EmergencyAsked, EmergencyEnded, EmergencyGrant, EmergencyPreview,
};
use api_types::problem::ProblemMembers;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use broker::{
    EmergencyError, EmergencyId, EmergencyRefusal, EmergencyRequest, EmergencyState, Grant,
    State as _,
};
use decisions::emergency::{self, Picks, Stock};
use decisions::limits::Room;
use fleet::{HardwareTypeName, Rru};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::sleep;
use utoipa::IntoParams;

/// Longest wait for a decision, in seconds: load balancers time out soon after.
const WAIT_MAX: u32 = 30;

/// Poll interval.
const POLL_EVERY: Duration = Duration::from_millis(200);

/// Most emergencies that are listed: the last ones.
const EMERGENCIES_MAX: u32 = 100_000;

const EMERGENCIES: ListKind =
    ListKind { rows: "emergencies", key: &["emergency"], order: "asked_at desc", page: WHOLE };

/// An emergency, as it is sent.
fn view(of: &broker::Emergency) -> Emergency {
    let grant = |of: Grant| EmergencyGrant {
        rru: of.amount.to_f64(),
        at: of.at,
        servers: of.servers,
        from_shared: of.from_shared,
    };
    Emergency {
        emergency: of.id.to_string(),
        reservation: of.reservation.to_string(),
        asked_rru: of.asked.to_f64(),
        why: of.why.clone(),
        asked_by: of.asked_by.clone(),
        asked_at: of.asked_at,
        state: of.state.as_str().to_owned(),
        granted: of.granted.map(grant),
        refusal: of.refusal.map(|refusal| refusal.as_str().to_owned()),
        refused_because: of.refusal.map(|refusal| refusal.text().to_owned()),
        debt: of.debt,
        max_servers: of.max_servers,
        beyond_limits: of.beyond_limits,
    }
}

/// How long to wait for the decision.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WaitQuery {
    /// Seconds, at most 30.
    #[serde(default)]
    wait: u32,
}

impl From<EmergencyError> for Problem {
    fn from(error: EmergencyError) -> Problem {
        let detail = error.to_string();
        match error {
            EmergencyError::NoReason | EmergencyError::Amount | EmergencyError::MaxServers => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "malformed", detail)
            }
            EmergencyError::Unknown { .. } => unknown(detail),
            EmergencyError::Over { .. } => Problem::new(StatusCode::CONFLICT, "over", detail),
            EmergencyError::Db(error) => error.into(),
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_emergency", detail)
}

fn parse_id(text: &str) -> Result<EmergencyId, Problem> {
    query::id(text, unknown)
}

/// What is to be previewed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PreviewQuery {
    /// The reservation.
    reservation: String,
    /// Additional RRU.
    rru: f64,
    /// Whether the limits of emergencies and quotas do not apply.
    #[serde(default)]
    beyond_limits: bool,
}

/// What would be granted from a stock. `room`: what policies leave.
pub(crate) fn previewed(stock: &Stock, mut room: Room) -> Result<Previewed, EmergencyRefusal> {
    let Picks { groups, exceeds } = emergency::choose(stock, &mut room);
    let mut of = Previewed { exceeds, ..Previewed::default() };
    for group in groups {
        let key = (stock.reservation.clone(), group.hardware_type.clone());
        let value = stock.worth.values.get(&key).copied().unwrap_or_default();
        let count = group.servers.len() as u64;
        of.grantable += value.times(group.servers.len());
        of.servers += count;
        if group.shared {
            of.from_shared += count;
        }
        *of.by_type.entry((group.hardware_type, group.shared)).or_default() += count;
    }
    of.grantable = of.grantable.min(stock.asked);
    if of.servers == 0 { Err(EmergencyRefusal::NothingFits) } else { Ok(of) }
}

/// What an emergency would be granted.
#[derive(Debug, Default)]
pub(crate) struct Previewed {
    /// RRU.
    pub(crate) grantable: Rru,
    /// Servers.
    pub(crate) servers: u64,
    /// Servers from shared buffers.
    pub(crate) from_shared: u64,
    /// Servers by hardware type, and whether they are from a shared buffer.
    pub(crate) by_type: BTreeMap<(HardwareTypeName, bool), u64>,
    /// Limits of policies that the grant exceeds, by name.
    pub(crate) exceeds: Vec<String>,
}

/// What an emergency would be granted now
///
/// Changes nothing. Send `servers` as `max_servers` of the emergency: it takes no more than that.
#[utoipa::path(get, path = "/emergencies/preview", operation_id = "preview_emergency",
    params(PreviewQuery),
    responses(
        (status = 200, description = "what would be granted, or why nothing would", body = EmergencyPreview),
        (status = 422, description = "the amount is invalid")))]
pub(super) async fn preview(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(asked): StrictQuery<PreviewQuery>,
) -> Result<Json<EmergencyPreview>, Problem> {
    caller.needs(Role::Emergency)?;
    let PreviewQuery { reservation, rru, beyond_limits } = asked;
    let amount = Rru::from_f64(rru).filter(|amount| *amount > Rru::ZERO);
    let amount = amount.ok_or(EmergencyError::Amount)?;
    let stock = in_time(site.broker.emergency_stock(&reservation, amount, beyond_limits)).await?;
    let found = stock.and_then(|stock| previewed(&stock, site.room()));
    let refusal = found.as_ref().err().copied();
    let of = found.unwrap_or_default();
    let count = |of: u64| u32::try_from(of).unwrap_or(u32::MAX);
    Ok(Json(EmergencyPreview {
        reservation,
        asked_rru: amount.to_f64(),
        grantable_rru: of.grantable.to_f64(),
        servers: count(of.servers),
        from_shared: count(of.from_shared),
        exceeds: of.exceeds,
        refusal: refusal.map(|refusal| refusal.as_str().to_owned()),
        refused_because: refusal.map(|refusal| refusal.text().to_owned()),
    }))
}

/// Requests capacity at once
///
/// The mover decides, usually within a second. 202 means that it has not decided yet. An emergency takes at most
/// `max_servers` servers, and half of each shared buffer stays. It is refused if the emergencies of the reservation would
/// more than double its promise, or if it would exceed a quota of its owner. An operator may go beyond these limits.
#[utoipa::path(post, path = "/emergencies", operation_id = "ask_emergency", params(WaitQuery),
    request_body = EmergencyAsked,
    responses(
        (status = 201, description = "the grant", body = Emergency),
        (status = 202, description = "not decided yet", body = Emergency),
        (status = 404, description = "the id is invalid"),
        (status = 409, description = "refused; `emergency` has the details"),
        (status = 422, description = "the reason, the amount or `max_servers` is invalid")))]
pub(super) async fn ask(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(WaitQuery { wait }): StrictQuery<WaitQuery>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let body: EmergencyAsked = body::json(&body)?;
    let id = body.emergency.as_deref().map_or_else(|| Ok(EmergencyId::now_v7()), parse_id)?;
    let amount = Rru::from_f64(body.rru).ok_or(EmergencyError::Amount)?;
    if body.beyond_limits {
        caller.needs(Role::Operator)?;
    }
    let broker = &site.broker;
    let request = EmergencyRequest {
        id,
        reservation: &body.reservation,
        amount,
        why: &body.why,
        max_servers: body.max_servers,
        beyond_limits: body.beyond_limits,
    };
    in_time(broker.ask_emergency(&actor, &request)).await?;
    let polls = wait.min(WAIT_MAX) * 5;
    let mut polled = 0;
    loop {
        let of =
            in_time(broker.emergency(id)).await?.ok_or_else(|| unknown("it is gone".to_owned()))?;
        if of.state != EmergencyState::Asked || polled >= polls {
            return Ok(response(&of));
        }
        polled += 1;
        sleep(POLL_EVERY).await;
    }
}

fn response(of: &broker::Emergency) -> Response {
    let status = match of.state {
        EmergencyState::Asked => StatusCode::ACCEPTED,
        EmergencyState::Granted => StatusCode::CREATED,
        EmergencyState::Refused | EmergencyState::Cancelled | EmergencyState::Ended => {
            let why = of.refusal.map_or("the emergency is over", |refusal| refusal.text());
            let code = of.refusal.map_or("over", |refusal| refusal.as_str());
            let problem = Problem::new(StatusCode::CONFLICT, code, why);
            let emergency = Some(Box::new(view(of)));
            let members = ProblemMembers { emergency, ..ProblemMembers::default() };
            return problem.with_members(members).into_response();
        }
    };
    let place = format!("/ops/v1/emergencies/{}", of.id);
    (status, [(LOCATION, place)], Json(view(of))).into_response()
}

/// Emergencies, newest first
#[utoipa::path(get, path = "/emergencies", operation_id = "list_emergencies",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Emergencies)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.emergencies(EMERGENCIES_MAX)).await?;
    let page = list.page_of(EMERGENCIES, &filters, all.iter().map(view))?;
    Ok(page.response(&Emergencies { emergencies: Vec::new(), next_page_token: None }))
}

/// One emergency
#[utoipa::path(get, path = "/emergencies/{id}", operation_id = "get_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses((status = 200, description = "the outcome", body = Emergency)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Emergency>, Problem> {
    caller.reads_region()?;
    let id = parse_id(&id)?;
    let of = in_time(site.broker.emergency(id)).await?;
    let of = of.ok_or_else(|| unknown(format!("there is no emergency {id}")))?;
    Ok(Json(view(&of)))
}

/// Ends an emergency: the promise is reduced again
#[utoipa::path(post, path = "/emergencies/{id}/end", operation_id = "end_emergency",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the emergency is ended", body = EmergencyEnded),
        (status = 409, description = "the emergency is over")))]
pub(super) async fn end(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<EmergencyEnded>, Problem> {
    let actor = caller.needs(Role::Emergency)?;
    let id = parse_id(&id)?;
    in_time(site.broker.end_emergency(&actor, id)).await?;
    Ok(Json(EmergencyEnded { ended: id.to_string() }))
}
