//! `/v1/plans`: what changes would come to, really solved; and applied, if that is still so.

use super::ask::{self, FieldError, Place, ReservationAsked};
use super::reservations::WriteAsked;
use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{Answer, once};
use crate::api::problem::Problem;
use crate::api::{Site, held, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State as Extension};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{
    ApplyError, Asking, Granting, KeyClaim, NewPlan, OperationId, PlanState, Quota,
    RequestChangeKind, RequestId, RequestState, State, StoredPlan,
};
use chrono::{DateTime, Utc};
use control::admission::{OverQuota, promised, reasons, refused_by_quota};
use control::{AdmissionError, HeldRegion};
use fleet::quote::{Grant, Quote};
use fleet::{Name, RegionSnapshot, Rru};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// The most changes of one plan: each is solved.
const CHANGES_MAX: usize = 20;

/// What is to be planned.
#[derive(ToSchema)]
#[expect(dead_code, reason = "it is read field by field; this describes it")]
pub(super) struct PlanAsked {
    /// The changes, each to another reservation: what ends or shrinks is planned first, the others in
    /// this order.
    #[schema(min_items = 1, max_items = 20)]
    changes: Vec<ReservationAsked>,
}

/// One change of a plan, and what it would come to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlannedChange {
    pub(crate) reservation: String,
    pub(crate) owner: String,
    #[schema(schema_with = kinds)]
    pub(crate) kind: RequestChangeKind,
    /// `in_full`, `in_part` or `nothing`.
    #[schema(schema_with = grants)]
    pub(crate) granted: Grant,
    pub(crate) asked_rru: f64,
    pub(crate) granted_rru: f64,
    /// Why not, if the owner's quota stands in the way: `quota_exceeded`, with the numbers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub(crate) quota: Option<OverQuota>,
    /// The whole answer, of the format ras-plan/1: cost, moves, sources, bound, refusal with reason,
    /// limits and alternatives.
    #[schema(value_type = Object)]
    pub(crate) answer: Quote,
}

fn kinds() -> utoipa::openapi::Schema {
    asked::words(RequestChangeKind::ALL.map(RequestChangeKind::as_str))
}

fn grants() -> utoipa::openapi::Schema {
    asked::words(Grant::ALL.map(Grant::as_str))
}

/// A plan.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Plan)]
pub(crate) struct PlanView {
    pub(crate) plan: String,
    #[schema(schema_with = asked::state::<PlanState>)]
    pub(crate) state: &'static str,
    /// Whether every change is granted, so that it can be applied.
    pub(crate) applicable: bool,
    made_at: DateTime<Utc>,
    pub(crate) made_by: String,
    pub(crate) expires_at: DateTime<Utc>,
    /// The version of the targets it was made on.
    pub(crate) version: i64,
    /// The last entry of the audit trail it knows.
    seq: i64,
    /// The instant of the region it was made on.
    taken_at: DateTime<Utc>,
    pub(crate) changes: Vec<PlannedChange>,
    /// Servers that change their holder.
    pub(crate) servers: usize,
    /// Of these, how many have containers running.
    pub(crate) servers_in_use: usize,
}

impl PlanView {
    fn new(
        stored: &StoredPlan,
        quotas: &BTreeMap<Name, Quota>,
        region: &RegionSnapshot,
    ) -> PlanView {
        let plan = &stored.plan;
        let changes: Vec<PlannedChange> = (plan.changes.iter().zip(&plan.quotes))
            .map(|(asking, quote)| PlannedChange {
                reservation: asking.reservation().to_string(),
                owner: asking.owner.to_string(),
                kind: asking.kind,
                granted: quote.granted,
                asked_rru: quote.capacity.to_f64(),
                granted_rru: quote.granted_rru.to_f64(),
                quota: match stored.state {
                    PlanState::Made => {
                        let today = promised(region, asking.reservation());
                        refused_by_quota(asking, quotas.get(&asking.owner), today)
                    }
                    PlanState::Applied | PlanState::Stale | PlanState::Expired => None,
                },
                answer: quote.clone(),
            })
            .collect();
        let granted = |of: &PlannedChange| of.granted == Grant::InFull && of.quota.is_none();
        let in_use = plan.quotes.iter().flat_map(|quote| &quote.moves).filter(|of| of.in_use);
        PlanView {
            plan: plan.id.to_string(),
            state: stored.state.as_str(),
            applicable: stored.state == PlanState::Made && changes.iter().all(granted),
            made_at: stored.made_at,
            made_by: stored.made_by.clone(),
            expires_at: stored.expires_at,
            version: plan.base.0,
            seq: plan.seq.0,
            taken_at: plan.taken_at,
            servers: plan.targets.len(),
            servers_in_use: in_use.count(),
            changes,
        }
    }
}

/// A plan is applied: what to wait on.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PlanApplied {
    plan: String,
    operation: String,
}

impl From<AdmissionError> for Problem {
    fn from(error: AdmissionError) -> Problem {
        let detail = error.to_string();
        match error {
            AdmissionError::Region(error) => error.into(),
            AdmissionError::Desk(error) => error.into(),
            AdmissionError::Ask(error) | AdmissionError::Apply(ApplyError::Ask(error)) => {
                error.into()
            }
            AdmissionError::Db(error) | AdmissionError::Apply(ApplyError::Db(error)) => {
                error.into()
            }
            AdmissionError::Silent(_) => Problem::unavailable("postgres_unavailable", detail),
            AdmissionError::Moved(_) | AdmissionError::Apply(ApplyError::Stale { .. }) => {
                let problem = Problem::new(StatusCode::CONFLICT, "plan_stale", detail);
                problem.with("reasons", json!(["region_moved"]))
            }
            AdmissionError::Apply(ApplyError::NotApplicable { .. }) => {
                Problem::new(StatusCode::CONFLICT, "plan_over", detail)
            }
            AdmissionError::Apply(ApplyError::NotOurs { .. }) => {
                Problem::new(StatusCode::CONFLICT, "over", detail)
            }
            AdmissionError::Apply(ApplyError::Quota { of, limit, promised, .. }) => {
                let problem = Problem::new(StatusCode::CONFLICT, "quota_exceeded", detail);
                let problem = problem.with("reasons", json!(["quota_exceeded"]));
                let (limit, would_be) = (limit.to_f64(), promised.to_f64());
                let exceeded = json!([{ "quota": of, "limit": limit, "would_be": would_be }]);
                problem.with("quotas", exceeded)
            }
            AdmissionError::Apply(ApplyError::Contract(_)) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
            }
        }
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_plan", detail)
}

/// The region as it is now, and what is asked of it, every wrong field of every change named.
async fn read(
    site: &Site,
    body: &[u8],
    caller: &Caller,
) -> Result<(Arc<HeldRegion>, Vec<Asking>), Problem> {
    let body: Value = asked::json(body)?;
    let malformed = |detail: &str| Problem::bad_request("malformed", detail);
    let Value::Object(mut members) = body else {
        return Err(malformed("the body is an object with a list of changes"));
    };
    let Some(Value::Array(changes)) = members.remove("changes") else {
        return Err(malformed("changes: a list of changes"));
    };
    if let Some(field) = members.keys().next() {
        return Err(malformed(&format!("{field}: there is no such field")));
    }
    if !(1..=CHANGES_MAX).contains(&changes.len()) {
        return Err(malformed(&format!("a plan has 1 to {CHANGES_MAX} changes")));
    }
    let held = site.region.fresh().await?;
    let profiles = super::profiles(site, &changes).await?;
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    for (number, change) in changes.into_iter().enumerate() {
        let place = Place {
            kind: None,
            reservation: None,
            owner: caller.scope().map(Name::from),
            region: Some(&held.snapshot),
            profiles: profiles.as_ref(),
            prefix: format!("changes[{number}]."),
        };
        match ask::read(change, place) {
            Ok(read) => all.push(read.asking),
            Err(mut wrong) => errors.append(&mut wrong),
        }
    }
    if all.iter().any(|asking| asking.starts_at.is_some()) {
        let now = in_time(site.broker.clock()).await?;
        let later = |asking: &Asking| asking.starts_at.is_some_and(|at| at > now);
        let later = all.iter().enumerate().filter(|(_, asking)| later(asking));
        errors.extend(later.map(|(number, _)| {
            let field = format!("changes[{number}].starts_at");
            FieldError::new(field, "a plan is applied at once; a request may start later")
        }));
    }
    if !errors.is_empty() {
        return Err(ask::refused(&errors));
    }
    for (number, asking) in all.iter().enumerate() {
        super::check_zone(site, asking, &format!("changes[{number}].")).await?;
        // Another owner's reservation is none.
        let there = held.snapshot.reservation(asking.reservation());
        let owner = there.map(|r| &held.snapshot.reservations[r.ix()].owner);
        if let Some(owner) = owner.filter(|owner| !caller.sees(owner)) {
            let _ = owner;
            let detail = format!("there is no reservation {:?}", asking.reservation());
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
        }
        caller.may_act_for(&asking.owner)?;
    }
    Ok((held, all))
}

/// The quotas of whose reservations a plan changes.
async fn quotas(site: &Site, plan: &NewPlan) -> Result<BTreeMap<Name, Quota>, Problem> {
    let mut all = BTreeMap::new();
    for owner in plan.owners() {
        let quota = in_time(site.broker.quotas(Some(&owner))).await?.pop();
        all.extend(quota.map(|quota| (quota.owner.clone(), quota)));
    }
    Ok(all)
}

/// Plans changes together, and keeps the plan for a quarter of an hour
///
/// They are really solved on the region as it is now. Nothing is changed. What is not granted in full
/// says why, and what would be.
#[utoipa::path(post, path = "/plans", operation_id = "make_plan",
    params(WriteAsked, ("Idempotency-Key" = Option<String>, Header, description = "makes it safe to send again")),
    request_body = PlanAsked,
    responses(
        (status = 200, description = "nothing is wrong with it (dry_run)", body = Object),
        (status = 201, description = "the plan", body = PlanView),
        (status = 409, description = "no region is loaded, or the key is being worked on"),
        (status = 422, description = "fields are wrong; `errors` names each")))]
pub(super) async fn make(
    Extension(site): Extension<Site>,
    caller: Caller,
    Asked(wanted): Asked<WriteAsked>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let (held, changes) = read(&site, &body, &caller).await?;
    if validates {
        return Ok(Json(json!({ "valid": true, "changes": changes.len() })).into_response());
    }
    let plan = async |claim| Ok(plan(&site, &actor, held, changes, claim).await?.1);
    once(&site, &actor, &headers, ("/v1/plans", &body), plan).await
}

/// Makes a plan and stores it, with the answer to its key.
async fn plan(
    site: &Site,
    actor: &str,
    held: Arc<HeldRegion>,
    changes: Vec<Asking>,
    claim: Option<KeyClaim>,
) -> Result<(PlanView, Answer), Problem> {
    let made = site.admission().plan(held, changes).await?;
    let quotas = quotas(site, &made.plan).await?;
    let now = in_time(site.broker.clock()).await?;
    let lasts = chrono::TimeDelta::from_std(broker::PLAN_LASTS).expect("a quarter of an hour");
    let stored = StoredPlan {
        state: PlanState::Made,
        state_at: now,
        made_at: now,
        made_by: actor.to_owned(),
        expires_at: now + lasts,
        owners: made.plan.owners(),
        plan: made.plan,
    };
    let view = PlanView::new(&stored, &quotas, &made.held.snapshot);
    let place = format!("/v1/plans/{}", view.plan);
    let answer = Answer::new(StatusCode::CREATED, Some(place), json!(view));
    let said = answer.json();
    let key = claim.map(|claim| (claim, &said));
    in_time(site.broker.store_plan(actor, &stored.plan, key)).await?;
    Ok((view, answer))
}

async fn stored(site: &Site, caller: &Caller, id: &str) -> Result<StoredPlan, Problem> {
    let id = asked::id(id, unknown)?;
    let mine = |owners: &[String]| owners.iter().all(|owner| caller.sees(owner));
    let unknown = || unknown(format!("there is no plan {id}"));
    match in_time(site.broker.stored_plan(id)).await?.ok_or_else(unknown)? {
        Ok(plan) if mine(&plan.owners) => Ok(plan),
        Err(error) if mine(&error.owners) => {
            tracing::error!(%error, "a stored plan is refused");
            let problem = Problem::new(StatusCode::CONFLICT, "plan_stale", error.to_string());
            Err(problem.with("reasons", json!(["plan_unreadable"])))
        }
        _ => Err(unknown()),
    }
}

/// What [`make`] answers, for a page: a body as the interface takes it, and the plan as it says it.
pub(crate) async fn made_for(
    site: &Site,
    caller: &Caller,
    body: &Value,
) -> Result<PlanView, Problem> {
    let actor = caller.needs(Role::Owner)?;
    let (held, changes) = read(site, body.to_string().as_bytes(), caller).await?;
    Ok(plan(site, &actor, held, changes, None).await?.0)
}

/// What [`find`] answers, for a page.
pub(crate) async fn found_for(site: &Site, caller: &Caller, id: &str) -> Result<PlanView, Problem> {
    let stored = stored(site, caller, id).await?;
    let held = held(site).await?;
    Ok(PlanView::new(&stored, &quotas(site, &stored.plan).await?, &held.snapshot))
}

/// What [`apply`] does, for a page.
pub(crate) async fn applied_for(site: &Site, caller: &Caller, id: &str) -> Result<(), Problem> {
    let actor = caller.needs(Role::Owner)?;
    let found = stored(site, caller, id).await?;
    for owner in &found.owners {
        caller.may_act_for(owner)?;
    }
    apply_now(site, &actor, &found, None).await.map(drop)
}

/// One plan
#[utoipa::path(get, path = "/plans/{id}", operation_id = "get_plan",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the plan, and what became of it", body = PlanView),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn find(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<PlanView>, Problem> {
    caller.reads()?;
    let stored = stored(&site, &caller, &id).await?;
    let held = held(&site).await?;
    Ok(Json(PlanView::new(&stored, &quotas(&site, &stored.plan).await?, &held.snapshot)))
}

/// Applies a plan, if what it said is still so
///
/// The region may have moved since: the plan is applied if every change is still granted what it said,
/// no more servers in use have to move and nobody is worse off. Otherwise 409, with a fresh plan.
#[utoipa::path(post, path = "/plans/{id}/apply", operation_id = "apply_plan",
    params(("id" = Uuid, Path, description = "its id"), WriteAsked,
        ("Idempotency-Key" = Option<String>, Header, description = "makes it safe to send again")),
    responses(
        (status = 200, description = "it could be applied (dry_run)", body = Object),
        (status = 202, description = "it is applied", body = PlanApplied),
        (status = 409, description = "not every change is granted: `not_granted` or `quota_exceeded`, with \
            `reasons`, `limits` and their numbers, `short` and `alternatives`; or it was applied or is \
            expired (`plan_over`); or the region moved beyond what it tolerates (`plan_stale`), and `plan` is \
            a fresh one"),
        (status = 422, description = "the key was used for something else")))]
pub(super) async fn apply(
    Extension(site): Extension<Site>,
    caller: Caller,
    Path(id): Path<String>,
    Asked(wanted): Asked<WriteAsked>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let found = stored(&site, &caller, &id).await?;
    for owner in &found.owners {
        caller.may_act_for(owner)?;
    }
    let path = format!("/v1/plans/{}/apply", found.plan.id);
    if !validates {
        let apply = async |claim| apply_now(&site, &actor, &found, claim).await;
        return once(&site, &actor, &headers, (&path, &[]), apply).await;
    }
    may_be_applied(&site, &found).await?;
    Ok(Json(json!({ "valid": true, "plan": found.plan.id.to_string() })).into_response())
}

/// Whether each of its changes is granted, and nobody applied it.
async fn may_be_applied(site: &Site, found: &StoredPlan) -> Result<(), Problem> {
    if found.state != PlanState::Made {
        let detail = format!("plan {} is {}", found.plan.id, found.state.as_str());
        return Err(Problem::new(StatusCode::CONFLICT, "plan_over", detail));
    }
    let held = site.region.fresh().await?;
    let view = PlanView::new(found, &quotas(site, &found.plan).await?, &held.snapshot);
    if view.applicable {
        return Ok(());
    }
    Err(not_granted(&view))
}

/// What is said of a plan that cannot be applied, of all its changes together: what a refused request
/// is told, with the reservation beside each.
fn not_granted(view: &PlanView) -> Problem {
    let over = view.changes.iter().find_map(|of| of.quota.as_ref());
    let (code, detail) = match over {
        Some(over) => ("quota_exceeded", &*over.detail),
        None => ("not_granted", "not every change of this plan is granted in full"),
    };
    let mut problem = Problem::new(StatusCode::CONFLICT, code, detail);
    let (mut why, mut limits, mut alternatives) = (Vec::new(), Vec::new(), Vec::new());
    let mut short = Vec::new();
    for of in &view.changes {
        for reason in of.quota.iter().flat_map(|over| over.reasons).chain(reasons(&of.answer)) {
            if !why.contains(&reason) {
                why.push(reason);
            }
        }
        alternatives
            .extend(of.quota.iter().flat_map(|over| &over.alternatives).map(|of| json!(of)));
        let Some(refusal) = &of.answer.refusal else { continue };
        alternatives.extend(refusal.alternatives.iter().map(|of| json!(of)));
        limits.extend(refusal.limits.iter().map(|limit| {
            json!({
                "limit": limit.limit, "without_rru": limit.without.to_f64(),
                "sentence": limit.sentence, "reservation": of.reservation,
            })
        }));
        short.push(json!({
            "reservation": of.reservation, "asked_rru": of.asked_rru,
            "grantable_rru": of.granted_rru, "missing_rru": refusal.missing.to_f64(),
        }));
    }
    if let Some(over) = over {
        problem = problem
            .with("quotas", json!(over.quotas))
            .with("asked_rru", json!(over.asked_rru))
            .with("left_rru", json!(over.left_rru));
    }
    problem
        .with("reasons", json!(why))
        .with("limits", json!(limits))
        .with("short", json!(short))
        .with("alternatives", json!(alternatives))
}

async fn apply_now(
    site: &Site,
    actor: &str,
    found: &StoredPlan,
    claim: Option<KeyClaim>,
) -> Result<Answer, Problem> {
    may_be_applied(site, found).await?;
    let NewPlan { id, changes, quotes, .. } = &found.plan;
    let operation = OperationId::now_v7();
    let body = PlanApplied { plan: id.to_string(), operation: operation.to_string() };
    let place = format!("/v1/operations/{operation}");
    let answer = Answer::new(StatusCode::ACCEPTED, Some(place), json!(body));
    let said = answer.json();
    let key = claim.map(|claim| (claim, &said));
    let grants: Vec<Granting> =
        changes.iter().zip(quotes).map(|(asking, quote)| granting(asking, quote)).collect();
    let applied = site.admission().apply(actor, found, &grants, Some(operation), key).await;
    match applied {
        Ok(_) => Ok(answer),
        Err(error @ AdmissionError::Moved(_)) => {
            site.broker.note_stale(*id).await?;
            // What it would be now, so that whoever asked need not ask again.
            let held = site.region.fresh().await?;
            let fresh = plan(site, actor, held, changes.clone(), None).await;
            let problem = Problem::from(error);
            Err(match fresh {
                Ok((fresh, _)) => problem.with("plan", json!(fresh)),
                Err(why) => {
                    tracing::debug!(?why, "no fresh plan beside a stale one");
                    problem
                }
            })
        }
        Err(error) => Err(error.into()),
    }
}

fn granting<'a>(asking: &'a Asking, quote: &'a Quote) -> Granting<'a> {
    let (state, granted) = match asking.kind {
        RequestChangeKind::Remove => (RequestState::Shrinking, Rru::ZERO),
        RequestChangeKind::Create | RequestChangeKind::Change => {
            (RequestState::Granted, quote.capacity)
        }
    };
    let answer = Some(quote);
    Granting { request: RequestId::now_v7(), asking, worker: None, state, granted, answer }
}
