//! `/v1/reservations`: what is promised, what there is of it, and changes to it.

use super::ask::{self, Place, ReservationAsked};
use super::named;
use super::requests::not_set_aside;
use super::reservation_view::ReservationView;
use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{Answer, etag, if_match, once, stale};
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as Extension};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{
    AskError, Asking, CardFilter, GrantPolicy, KeyClaim, Labels, OperationId, RequestChangeKind,
    RequestId, RequestState, ReservationCard, Submission,
};
use control::HeldRegion;
use fleet::{CapacityRequest, Name, RegionSnapshot, ReservationKind};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// Reservations of a page, unless told otherwise.
const PAGE: u32 = 100;

/// The most of one page.
const ROWS_MAX: u32 = 1_000;

/// Which page of which reservations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReservationsAsked {
    /// Of one owner.
    owner: Option<String>,
    /// Of one kind.
    #[param(schema_with = kinds)]
    kind: Option<String>,
    /// In one state.
    #[param(schema_with = asked::state::<RequestState>)]
    state: Option<String>,
    /// With these labels, as in `team=green,stage=production`.
    label: Option<String>,
    /// The most reservations of the page; 100 unless told otherwise.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<u32>,
    /// Where the page begins: `next_page_token` of the one before, with the same filter.
    page_token: Option<String>,
}

/// The words of kinds.
pub(super) fn kinds() -> utoipa::openapi::Schema {
    let all =
        [ReservationKind::Guaranteed, ReservationKind::SharedBuffer, ReservationKind::Elastic];
    asked::words(all.map(ReservationKind::as_str))
}

/// A page of reservations, by name.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Reservations {
    reservations: Vec<ReservationView>,
    /// Where the next page begins; null: this is the last.
    next_page_token: Option<String>,
}

/// How a write is meant.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WriteAsked {
    /// `validate`: say what is wrong with it, and do nothing.
    #[param(schema_with = dry_runs)]
    dry_run: Option<String>,
}

fn dry_runs() -> utoipa::openapi::Schema {
    asked::words(["validate"])
}

impl WriteAsked {
    /// Whether nothing is to be done.
    pub(super) fn validates(&self) -> Result<bool, Problem> {
        match self.dry_run.as_deref() {
            None => Ok(false),
            Some("validate") => Ok(true),
            Some(_) => Err(Problem::bad_request("malformed", "dry_run is validate or absent")),
        }
    }
}

/// Something was asked: what to wait on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Accepted {
    reservation: String,
    request: String,
    /// What to wait on; null: a draft, which nobody decides.
    operation: Option<String>,
    /// If it has a start: that nothing is set aside until then.
    #[serde(skip_serializing_if = "Option::is_none")]
    notice: Option<String>,
}

/// What a 202 says. It never means granted.
pub(super) fn accepted(asking: &Asking, request: RequestId, operation: OperationId) -> Answer {
    answer(asking, request, Some(operation))
}

fn answer(asking: &Asking, request: RequestId, operation: Option<OperationId>) -> Answer {
    let body = Accepted {
        reservation: asking.reservation().to_string(),
        notice: asking.starts_at.map(not_set_aside),
        request: request.to_string(),
        operation: operation.map(|id| id.to_string()),
    };
    match operation {
        Some(id) => {
            Answer::new(StatusCode::ACCEPTED, Some(format!("/v1/operations/{id}")), json!(body))
        }
        None => {
            Answer::new(StatusCode::CREATED, Some(format!("/v1/requests/{request}")), json!(body))
        }
    }
}

impl From<AskError> for Problem {
    fn from(error: AskError) -> Problem {
        let detail = error.to_string();
        let conflict = |code| Problem::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            AskError::Exists { .. } => conflict("exists"),
            AskError::UnknownReservation { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            AskError::NotGuaranteed { .. } => conflict("not_guaranteed"),
            AskError::Open { request, .. } => {
                conflict("request_open").with("request", json!(request.to_string()))
            }
            AskError::Stale { current } => stale(&current),
            AskError::UnknownRequest { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
            }
            AskError::Over { .. } => conflict("over"),
            AskError::KeyLost => conflict("key_in_use"),
            AskError::Db(error) => error.into(),
        }
    }
}

/// Reservations, by name
#[utoipa::path(get, path = "/reservations", operation_id = "list_reservations",
    params(ReservationsAsked),
    responses((status = 200, description = "a page", body = Reservations)))]
pub(super) async fn list(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(wanted): Asked<ReservationsAsked>,
) -> Result<Json<Reservations>, Problem> {
    caller.reads()?;
    let limit = asked::limit(wanted.limit, PAGE, ROWS_MAX)?;
    let state = wanted.state.as_deref().map(super::requests::state).transpose()?;
    let kind = wanted.kind.as_deref().map(|word| {
        let unknown = || Problem::bad_request("malformed", format!("{word:?} is no kind"));
        ReservationKind::parse(word).ok_or_else(unknown)
    });
    let kind = kind.transpose()?;
    let labels = wanted.label.as_deref().map(labels).transpose()?.unwrap_or_default();
    let filter = CardFilter { owner: super::own(&caller, wanted.owner)?, kind, labels };
    let texts = filter.labels.iter().flat_map(|(label, value)| [label, value]);
    super::storable(filter.owner.iter().chain(texts))?;
    let words = (&filter.owner, &wanted.kind, &wanted.state, &filter.labels);
    let question = Question::new(&("reservations", words));
    let after: Option<String> = question.cursor(wanted.page_token.as_deref())?;
    let mut after = after.unwrap_or_default();
    super::storable([&after].into_iter())?;
    let held = site.region.latest();
    let (mut found, mut more) = (Vec::new(), true);
    // How a reservation stands follows from the region, so a filter by that reads on.
    while more && found.len() <= limit as usize {
        let cards = in_time(site.broker.reservation_cards(&filter, &after, limit + 1)).await?;
        more = cards.len() > limit as usize;
        for card in cards {
            after = card.reservation.to_string();
            let standing = held.as_ref().and_then(|held| held.standings.get(&card.reservation));
            let view = ReservationView::new(card, standing);
            if state.is_none_or(|state| view.is_in(state)) {
                found.push(view);
            }
        }
    }
    let (reservations, next_page_token) =
        question.page(found, limit, |last| last.name().to_owned());
    Ok(Json(Reservations { reservations, next_page_token }))
}

/// `a=b,c=d`
fn labels(text: &str) -> Result<Labels, Problem> {
    let pair = |pair: &str| {
        let (label, value) = pair.split_once('=')?;
        (!label.is_empty()).then(|| (label.to_owned(), value.to_owned()))
    };
    let read: Option<Labels> = text.split(',').map(pair).collect();
    let malformed =
        || Problem::bad_request("malformed", "label is as in team=green,stage=production");
    read.ok_or_else(malformed)
}

/// What is promised to a reservation that this caller may know of.
async fn card(site: &Site, caller: &Caller, name: String) -> Result<ReservationCard, Problem> {
    let name = named(name)?;
    let found = in_time(site.broker.reservation_card(&name)).await?;
    found.filter(|card| caller.sees(&card.owner)).ok_or_else(|| {
        let detail = format!("there is no reservation {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
    })
}

/// A reservation: what is promised, what there is of it, and what is asked about it
///
/// The ETag changes with what is promised and asked, not with every server that arrives.
#[utoipa::path(get, path = "/reservations/{name}", operation_id = "get_reservation",
    params(("name" = String, Path, description = "the reservation")),
    responses((status = 200, description = "how it stands", body = ReservationView)))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let card = card(&site, &caller, name).await?;
    let version = card.version.clone();
    let held = site.region.latest();
    let standing = held.as_ref().and_then(|held| held.standings.get(&card.reservation));
    Ok(etag(Json(ReservationView::new(card, standing)), &version))
}

/// Asks for a new reservation
///
/// 202 means that it will be decided, not that it is granted: wait on the operation.
#[utoipa::path(post, path = "/reservations", operation_id = "create_reservation",
    params(WriteAsked, ("Idempotency-Key" = Option<String>, Header, description = "makes it safe to send again")),
    request_body = ReservationAsked,
    responses(
        (status = 200, description = "nothing is wrong with it (dry_run)", body = Object),
        (status = 201, description = "a draft was written down", body = Accepted),
        (status = 202, description = "it will be decided", body = Accepted),
        (status = 409, description = "there is one of this name, or a request for it waits"),
        (status = 422, description = "fields are wrong; `errors` names each")))]
pub(super) async fn create(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(wanted): Asked<WriteAsked>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let place = |region| Place {
        kind: Some(RequestChangeKind::Create),
        reservation: None,
        owner: caller.scope().map(Name::from),
        region,
        profiles: None,
        prefix: String::new(),
    };
    let read = read(&site, &body, place).await?;
    let actor = caller.may_act_for(&read.asking.owner)?;
    ask_for(&site, &actor, &headers, ("/v1/reservations", &body), read, None, validates).await
}

/// Asks for a change to a reservation
///
/// What is promised now holds until more is granted; a refusal leaves it as it is.
#[utoipa::path(patch, path = "/reservations/{name}", operation_id = "change_reservation",
    params(("name" = String, Path, description = "the reservation"), WriteAsked,
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = ReservationAsked,
    responses(
        (status = 200, description = "nothing is wrong with it (dry_run)", body = Object),
        (status = 201, description = "a draft was written down", body = Accepted),
        (status = 202, description = "it will be decided", body = Accepted),
        (status = 409, description = "a request for it waits, or it is not guaranteed"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each"),
        (status = 428, description = "no version was sent")))]
pub(super) async fn change(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(wanted): Asked<WriteAsked>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let card = card(&site, &caller, name).await?;
    let actor = caller.may_act_for(&card.owner)?;
    let seen = if_match(&headers)?;
    let place = |region| Place {
        kind: Some(RequestChangeKind::Change),
        reservation: Some(&card.reservation),
        owner: Some(card.owner.clone()),
        region,
        profiles: None,
        prefix: String::new(),
    };
    let read = read(&site, &body, place).await?;
    // Nobody gives away what is another's, nor to another.
    caller.may_act_for(&read.asking.owner)?;
    let path = format!("/v1/reservations/{}", card.reservation);
    ask_for(&site, &actor, &headers, (&path, &body), read, seen, validates).await
}

/// Asks for the end of a reservation
///
/// Its servers are freed; it goes once it holds none.
#[utoipa::path(delete, path = "/reservations/{name}", operation_id = "delete_reservation",
    params(("name" = String, Path, description = "the reservation"), WriteAsked,
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "nothing is wrong with it (dry_run)", body = Object),
        (status = 202, description = "it will end", body = Accepted),
        (status = 409, description = "a request for it waits, or it is not guaranteed"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "no version was sent")))]
pub(super) async fn remove(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(name): Path<String>,
    Asked(wanted): Asked<WriteAsked>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let card = card(&site, &caller, name).await?;
    let actor = caller.may_act_for(&card.owner)?;
    let seen = if_match(&headers)?;
    let asking = Asking {
        kind: RequestChangeKind::Remove,
        owner: card.owner.clone(),
        change: CapacityRequest {
            reservation_id: card.reservation.clone(),
            remove: true,
            ..CapacityRequest::default()
        },
        policy: GrantPolicy::All,
        starts_at: None,
        ends_at: None,
        labels: None,
        contract: None,
    };
    let read = ask::Read { asking, draft: false };
    let path = format!("/v1/reservations/{}?remove", card.reservation);
    ask_for(&site, &actor, &headers, (&path, &[]), read, seen, validates).await
}

/// Reads a body against the region as it was seen last.
async fn read<'a>(
    site: &Site,
    body: &[u8],
    place: impl FnOnce(Option<&'a RegionSnapshot>) -> Place<'a>,
) -> Result<ask::Read, Problem> {
    let body: Value = asked::json(body)?;
    let mut place = place(None);
    // As it was seen last will do, unless it was seen before the reservation was there.
    let there = |held: &HeldRegion| {
        place.reservation.is_none_or(|name| held.snapshot.reservation(name).is_some())
    };
    let held = match site.region.latest().filter(|held| there(held)) {
        Some(held) => held,
        None => site.region.fresh().await?,
    };
    let profiles = super::profiles(site, std::slice::from_ref(&body)).await?;
    let read = {
        let place = Place {
            kind: place.kind,
            reservation: place.reservation,
            owner: place.owner.take(),
            region: Some(&held.snapshot),
            profiles: profiles.as_ref(),
            prefix: String::new(),
        };
        ask::read(body, place)
    };
    let read = read.map_err(|errors| ask::refused(&errors))?;
    super::check_zone(site, &read.asking, "").await?;
    Ok(read)
}

/// Submits what was read, once for each key.
async fn ask_for(
    site: &Site,
    actor: &Arc<str>,
    headers: &HeaderMap,
    asked: (&str, &[u8]),
    read: ask::Read,
    seen: Option<String>,
    validates: bool,
) -> Result<Response, Problem> {
    if validates {
        let mut said = json!({ "valid": true, "reservation": read.asking.reservation() });
        if let Some(at) = read.asking.starts_at {
            said["notice"] = json!(not_set_aside(at));
        }
        return Ok(Json(said).into_response());
    }
    let submit = async |claim| {
        let answer = submit(site, actor, &read, seen.as_deref(), claim).await?;
        site.submitted.notify_one();
        Ok(answer)
    };
    once(site, actor, headers, asked, submit).await
}

async fn submit(
    site: &Site,
    actor: &str,
    read: &ask::Read,
    seen: Option<&str>,
    claim: Option<KeyClaim>,
) -> Result<Answer, Problem> {
    let (id, operation) = (RequestId::now_v7(), (!read.draft).then(OperationId::now_v7));
    let answer = answer(&read.asking, id, operation);
    let stored = answer.json();
    let submission = Submission {
        id,
        operation,
        asking: &read.asking,
        expected: seen,
        key: claim.map(|claim| (claim, &stored)),
    };
    in_time(site.broker.submit_request(actor, &submission)).await?;
    Ok(answer)
}
