//! `/v1/reservations`: promised and owned capacity, and changes to it.

use super::accepted::{WriteQuery, accepted, not_reserved_until};
use super::change::{self, ChangeContext, ParsedChange, ReservationChange};
use super::reservation_view::{self, kinds};
use super::scope::{reservation_name, visible_owner};
use super::unchanged::is_unchanged;
use crate::http::auth::{Caller, Role};
use crate::http::idempotency::{StoredResponse, once};
use crate::http::list::{ListKind, ListQuery, PAGE, StoredListRequest};
use crate::http::preconditions::{etag, if_match, stale};
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, body, field, in_time, schema};
use api_types::plans::QuotaRefusal;
use api_types::problem::ProblemMembers;
use api_types::requests::{Accepted, ValidRequest};
use api_types::reservations::{Reservation, Reservations};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{
    GrantPolicy, KeyClaim, Labels, OperationId, RequestChangeKind, RequestId, RequestSpec,
    RequestState, ReservationSummary, State as _, Submission, SubmitError, SummaryFilter,
};
use control::{CachedRegion, admission};
use fleet::{CapacityRequest, ReservationKind};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use utoipa::IntoParams;

/// Filters of the list of reservations.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ReservationsQuery {
    /// Owner.
    owner: Option<String>,
    /// Kind.
    #[param(schema_with = kinds)]
    kind: Option<String>,
    /// State.
    #[param(schema_with = schema::state::<RequestState>)]
    state: Option<String>,
    /// Labels, as in `team=green,stage=production`.
    label: Option<String>,
}

/// The list of reservations.
pub(crate) const RESERVATIONS: ListKind =
    ListKind { rows: "reservations", key: &["reservation"], order: "reservation", page: PAGE };

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Problem {
        let detail = error.to_string();
        let conflict = |code| Problem::new(StatusCode::CONFLICT, code, detail.clone());
        match error {
            SubmitError::Exists { .. } => conflict("exists"),
            SubmitError::UnknownReservation { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            SubmitError::NotGuaranteed { .. } => conflict("not_guaranteed"),
            SubmitError::Open { request, .. } => {
                conflict("request_open").with("request", json!(request.to_string()))
            }
            SubmitError::Stale { current } => stale(&current),
            SubmitError::UnknownRequest { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_request", detail)
            }
            SubmitError::Over { .. } => conflict("over"),
            SubmitError::KeyLost => conflict("key_in_use"),
            SubmitError::Db(error) => error.into(),
        }
    }
}

/// Reservations, by name
#[utoipa::path(get, path = "/reservations", operation_id = "list_reservations",
    params(ReservationsQuery, ListQuery),
    responses((status = 200, description = "a page", body = Reservations)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StoredListRequest { filters: wanted, list }: StoredListRequest<ReservationsQuery>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let state = query::state_of::<RequestState>(wanted.state.as_deref())?;
    let kind = wanted.kind.as_deref().map(|word| {
        let unknown = || Problem::bad_request("malformed", format!("{word:?} is not a kind"));
        ReservationKind::parse(word).ok_or_else(unknown)
    });
    let kind = kind.transpose()?;
    let labels = wanted.label.as_deref().map(labels).transpose()?.unwrap_or_default();
    let filter = SummaryFilter { owner: visible_owner(&caller, wanted.owner)?, kind, labels };
    let texts = filter.labels.iter().flat_map(|(label, value)| [label, value]);
    query::storable(filter.owner.iter().chain(texts))?;
    let held = site.known_region().await?;
    let (site, filter, held) = (&site, &filter, &held);
    let read = move |after: Option<String>, limit| async move {
        let mut after = after.unwrap_or_default();
        query::storable([&after].into_iter())?;
        let (mut found, mut more) = (Vec::new(), true);
        // The state follows from the region, so a filter by state may need more than one query.
        while more && found.len() < limit as usize {
            let cards = in_time(site.broker.reservation_summaries(filter, &after, limit)).await?;
            more = cards.len() >= limit as usize;
            for card in cards {
                after = card.reservation.to_string();
                let status = held.as_ref().and_then(|held| held.statuses.get(&card.reservation));
                let view = reservation_view::view(card, status);
                if state.is_none_or(|state| view.state == state.as_str()) {
                    found.push(view);
                }
            }
        }
        Ok(found)
    };
    let parameters = (&filter.owner, &wanted.kind, &wanted.state, &filter.labels);
    let position = |of: &Reservation| of.reservation.clone();
    let page = list.page(RESERVATIONS, &parameters, read, position, |of| of).await?;
    Ok(page.response(&Reservations { reservations: Vec::new(), next_page_token: None }))
}

/// `a=b,c=d`
fn labels(text: &str) -> Result<Labels, Problem> {
    let pair = |pair: &str| {
        let (label, value) = pair.split_once('=')?;
        (!label.is_empty()).then(|| (label.to_owned(), value.to_owned()))
    };
    let read: Option<Labels> = text.split(',').map(pair).collect();
    let malformed =
        || Problem::bad_request("malformed", "label must be like team=green,stage=production");
    read.ok_or_else(malformed)
}

/// Reads a reservation that the caller may see.
async fn card(site: &Site, caller: &Caller, name: String) -> Result<ReservationSummary, Problem> {
    let name = reservation_name(name)?;
    let found = in_time(site.broker.reservation_summary(&name)).await?;
    found.filter(|card| caller.sees(&card.owner)).ok_or_else(|| {
        let detail = format!("there is no reservation {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
    })
}

/// One reservation: promised and owned capacity, and open requests
///
/// The ETag changes with the promise and with requests, not with each server that arrives.
#[utoipa::path(get, path = "/reservations/{name}", operation_id = "get_reservation",
    params(("name" = String, Path, description = "the reservation")),
    responses((status = 200, description = "the reservation", body = Reservation)))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads()?;
    let card = card(&site, &caller, name).await?;
    let version = card.version.clone();
    let held = site.known_region().await?;
    let status = held.as_ref().and_then(|held| held.statuses.get(&card.reservation));
    Ok(etag(Json(reservation_view::view(card, status)), &version))
}

/// Requests a new reservation
///
/// 202 means that it will be decided, not that it is granted: wait for the operation.
#[utoipa::path(post, path = "/reservations", operation_id = "create_reservation",
    params(WriteQuery, ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = ReservationChange,
    responses(
        (status = 200, description = "the request is valid (dry_run)", body = ValidRequest),
        (status = 201, description = "the draft is stored", body = Accepted),
        (status = 202, description = "the request is stored and will be decided", body = Accepted),
        (status = 409, description = "the reservation exists, or a request for it is open; with dry_run, a quota \
            would refuse it (`quota_exceeded`)"),
        (status = 422, description = "fields are invalid; `errors` lists them")))]
pub(super) async fn create(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(wanted): StrictQuery<WriteQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let context = ChangeContext {
        kind: Some(RequestChangeKind::Create),
        owner: caller.scope().map(Into::into),
        ..ChangeContext::default()
    };
    let parsed = parse(&site, &caller, None, &body, context).await?;
    let actor = caller.may_act_for(&parsed.asking.owner)?;
    let how = Submit { validates, unchanged: false };
    submit_once(&site, &actor, &headers, ("/v1/reservations", &body), parsed, None, how).await
}

/// Requests a change to a reservation
///
/// The current promise holds until the change is granted; a refusal leaves it unchanged. A change to what it has already
/// makes no request.
#[utoipa::path(patch, path = "/reservations/{name}", operation_id = "change_reservation",
    params(("name" = String, Path, description = "the reservation"), WriteQuery,
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = ReservationChange,
    responses(
        (status = 200, description = "no request is stored: the reservation is as requested already (`unchanged`), or \
            the request is valid (dry_run)", body = ValidRequest),
        (status = 201, description = "the draft is stored", body = Accepted),
        (status = 202, description = "the request is stored and will be decided", body = Accepted),
        (status = 409, description = "a request for it is open, or it is not guaranteed; with dry_run, a quota would \
            refuse it (`quota_exceeded`)"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn change(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(wanted): StrictQuery<WriteQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let card = card(&site, &caller, name).await?;
    let actor = caller.may_act_for(&card.owner)?;
    let seen = if_match(&headers)?;
    let context = ChangeContext {
        kind: Some(RequestChangeKind::Change),
        reservation: Some(card.reservation.clone()),
        owner: Some(card.owner.clone()),
        ..ChangeContext::default()
    };
    let parsed = parse(&site, &caller, Some(card.priority), &body, context).await?;
    // Neither the current nor the new owner may be another one.
    caller.may_act_for(&parsed.asking.owner)?;
    let is_seen = seen.as_ref().is_none_or(|seen| *seen == card.version);
    let unchanged = is_seen && !parsed.draft && {
        let held = site.region.read_current().await?;
        is_unchanged(&parsed.asking, &held.snapshot, &card)
    };
    let path = format!("/v1/reservations/{}", card.reservation);
    let how = Submit { validates, unchanged };
    submit_once(&site, &actor, &headers, (&path, &body), parsed, seen, how).await
}

/// Requests the removal of a reservation
///
/// Its servers are freed; it is removed when it holds none.
#[utoipa::path(delete, path = "/reservations/{name}", operation_id = "delete_reservation",
    params(("name" = String, Path, description = "the reservation"), WriteQuery,
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "the request is valid (dry_run)", body = ValidRequest),
        (status = 202, description = "the request is stored and will be decided", body = Accepted),
        (status = 409, description = "a request for it is open, or it is not guaranteed"),
        (status = 412, description = "it has changed since"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(wanted): StrictQuery<WriteQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let card = card(&site, &caller, name).await?;
    let actor = caller.may_act_for(&card.owner)?;
    let seen = if_match(&headers)?;
    let asking = RequestSpec {
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
        why: None,
    };
    let parsed = ParsedChange { asking, draft: false };
    let path = format!("/v1/reservations/{}?remove", card.reservation);
    let how = Submit { validates, unchanged: false };
    submit_once(&site, &actor, &headers, (&path, &[]), parsed, seen, how).await
}

/// Reads a change of a reservation with priority `today` and checks it on the cached region, which is read again only if
/// it lacks the reservation.
async fn parse(
    site: &Site,
    caller: &Caller,
    today: Option<i32>,
    body: &[u8],
    context: ChangeContext,
) -> Result<ParsedChange, Problem> {
    let body: Value = body::json(body)?;
    let contains = |held: &CachedRegion| {
        let name = context.reservation.as_ref();
        name.is_none_or(|name| held.snapshot.reservation(name).is_some())
    };
    let held = match site.region.latest().filter(|held| contains(held)) {
        Some(held) => held,
        None => site.region.read_current().await?,
    };
    let profiles = change::load_profiles(site, std::slice::from_ref(&body)).await?;
    let mut parsed = change::parse(body, context, Some(&held.snapshot), profiles.as_ref())
        .map_err(|errors| field::invalid(&errors))?;
    change::check_zone(site, &parsed.asking, "").await?;
    change::check_priority(site, caller, today, &mut parsed.asking, "").await?;
    Ok(parsed)
}

/// How a change is submitted.
#[derive(Clone, Copy)]
struct Submit {
    /// Only its validity is asked for.
    validates: bool,
    /// The reservation is as requested already.
    unchanged: bool,
}

fn not_stored(asking: &RequestSpec, unchanged: bool) -> ValidRequest {
    ValidRequest {
        valid: true,
        reservation: asking.reservation().to_string(),
        unchanged,
        notice: asking.starts_at.map(not_reserved_until),
    }
}

/// Submits a change once for each key, unless it only has to be valid or changes nothing.
async fn submit_once(
    site: &Site,
    actor: &Arc<str>,
    headers: &HeaderMap,
    request: (&str, &[u8]),
    parsed: ParsedChange,
    seen: Option<String>,
    how: Submit,
) -> Result<Response, Problem> {
    if how.validates {
        check_quota(site, &parsed.asking).await?;
        return Ok(Json(not_stored(&parsed.asking, how.unchanged)).into_response());
    }
    let submit = async |claim| {
        // Here, because a request that was sent again gets its first answer.
        if how.unchanged {
            let body = json!(not_stored(&parsed.asking, true));
            return Ok(StoredResponse::new(StatusCode::OK, None, body));
        }
        let id = RequestId::now_v7();
        let response = submit(site, actor, id, &parsed, seen.as_deref(), claim).await?;
        site.submitted.notify_one();
        Ok(response)
    };
    once(site, actor, headers, request, submit).await
}

/// [`create`] or [`change()`] for a page, by whether the reservation exists: the id of the request.
pub(crate) async fn submitted_for(
    site: &Site,
    caller: &Caller,
    body: &Value,
) -> Result<RequestId, Problem> {
    caller.needs(Role::Owner)?;
    let name = body.get("reservation").and_then(Value::as_str).unwrap_or_default();
    let (today, context) = match in_time(site.broker.reservation_summary(name)).await? {
        None => {
            let kind = Some(RequestChangeKind::Create);
            let owner = caller.scope().map(Into::into);
            (None, ChangeContext { kind, owner, ..ChangeContext::default() })
        }
        Some(_) => {
            let card = card(site, caller, name.to_owned()).await?;
            caller.may_act_for(&card.owner)?;
            let context = ChangeContext {
                kind: Some(RequestChangeKind::Change),
                reservation: Some(card.reservation),
                owner: Some(card.owner),
                ..ChangeContext::default()
            };
            (Some(card.priority), context)
        }
    };
    let parsed = parse(site, caller, today, body.to_string().as_bytes(), context).await?;
    let actor = caller.may_act_for(&parsed.asking.owner)?;
    let id = RequestId::now_v7();
    submit(site, &actor, id, &parsed, None, None).await?;
    site.submitted.notify_one();
    Ok(id)
}

/// Refuses a request that its owner's quota would refuse, as the worker that decides requests does.
pub(super) async fn check_quota(site: &Site, asking: &RequestSpec) -> Result<(), Problem> {
    if asking.keeps_the_promise() {
        return Ok(());
    }
    let held = site.cached_region().await?;
    let today = admission::promised_capacity(&held.snapshot, asking.reservation());
    let quotas = in_time(site.broker.quotas(Some(&asking.owner))).await?;
    match admission::check_quota(asking, quotas.first(), today) {
        Some(refusal) => Err(over_quota(refusal)),
        None => Ok(()),
    }
}

/// The problem of a request that exceeds a quota, with the members of the refusal.
fn over_quota(of: QuotaRefusal) -> Problem {
    Problem::new(StatusCode::CONFLICT, "quota_exceeded", of.detail).with_members(ProblemMembers {
        reasons: Some(of.reasons),
        quotas: Some(of.quotas),
        asked_rru: Some(of.asked_rru),
        left_rru: Some(of.left_rru),
        alternatives: Some(of.alternatives),
        ..ProblemMembers::default()
    })
}

async fn submit(
    site: &Site,
    actor: &str,
    id: RequestId,
    parsed: &ParsedChange,
    seen: Option<&str>,
    claim: Option<KeyClaim>,
) -> Result<StoredResponse, Problem> {
    let operation = (!parsed.draft).then(OperationId::now_v7);
    let response = accepted(&parsed.asking, id, operation);
    let stored = response.document();
    let submission = Submission {
        id,
        operation,
        asking: &parsed.asking,
        expected: seen,
        key: claim.map(|claim| (claim, &stored)),
    };
    in_time(site.broker.submit_request(actor, &submission)).await?;
    Ok(response)
}
