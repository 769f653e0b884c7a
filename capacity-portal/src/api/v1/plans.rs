//! `/v1/plans`: makes plans of changes, and applies a plan if it still holds.

use super::accepted::WriteQuery;
use super::change::{self, ChangeContext, ReservationChange};
use super::hidden;
use super::reservations;
use super::unchanged::is_unchanged;
use crate::http::auth::{Caller, Role};
use crate::http::field;
use crate::http::idempotency::{StoredResponse, once};
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, body, in_time};
use api_types::plans::{
    ExceededQuota, MemberChange, OfferedRequest, Plan, PlanApplied, PlanValid, PlannedChange,
};
use api_types::problem::{BlockingLimit, FieldError, ProblemMembers, ShortChange};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{
    ApplyError, KeyClaim, NewPlan, OperationId, PlanState, Quota, RequestChangeKind, RequestGrant,
    RequestId, RequestSpec, RequestState, State as _, StoredPlan,
};
use control::admission::{check_quota, promised_capacity, refusal_codes};
use control::{AdmissionError, CachedRegion, PlanDeadline};
use fleet::quote::{Grant, Quote, net_moves};
use fleet::{CapacityRequest, OwnerName, RegionSnapshot, Rru};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// Limit of changes in a plan: each is solved.
const CHANGES_MAX: usize = 20;

/// The changes to plan.
#[derive(ToSchema)]
#[expect(dead_code, reason = "schema of the body, which is read member by member")]
pub(super) struct PlanBody {
    /// Changes to different reservations. Removals and reductions are planned first, the others in this order.
    #[schema(min_items = 1, max_items = 20)]
    changes: Vec<ReservationChange>,
    /// How long to search, in seconds. A change that is granted in full takes less; one that is not may be granted more
    /// with more time.
    #[schema(minimum = 0.5, maximum = 30, default = 5)]
    deadline_seconds: Option<f64>,
}

/// A plan, as it is sent to a caller.
fn view(
    site: &Site,
    stored: &StoredPlan,
    quotas: &BTreeMap<OwnerName, Quota>,
    region: &RegionSnapshot,
    caller: &Caller,
) -> Plan {
    let plan = &stored.plan;
    let changes: Vec<PlannedChange> = (plan.changes.iter().zip(&plan.quotes))
        .map(|(asking, quote)| PlannedChange {
            reservation: asking.reservation().to_string(),
            owner: asking.owner.to_string(),
            kind: asking.kind.as_str().to_owned(),
            differences: match stored.state {
                PlanState::Made if asking.kind == RequestChangeKind::Change => {
                    let today = region.reservation(asking.reservation());
                    let today = today.map(|ix| CapacityRequest::of(region, ix));
                    today.map_or_else(Vec::new, |of| MemberChange::between(&of, &asking.change))
                }
                _ => Vec::new(),
            },
            granted: quote.granted,
            asked_rru: quote.capacity.to_f64(),
            granted_rru: quote.granted_rru.to_f64(),
            quota: match stored.state {
                PlanState::Made => {
                    let today = promised_capacity(region, asking.reservation());
                    check_quota(asking, quotas.get(&asking.owner), today)
                }
                PlanState::Applied | PlanState::Stale | PlanState::Expired => None,
            },
            answer: hidden::quote(quote.clone(), caller, region),
        })
        .collect();
    let granted = |of: &PlannedChange| of.granted == Grant::InFull && of.quota.is_none();
    let in_use = net_moves(&plan.quotes).into_iter().filter(|of| of.in_use);
    let others_in_use = plan.quotes.iter().map(Quote::moves_in_use_of_others).sum();
    Plan {
        plan: plan.id.to_string(),
        state: stored.state.as_str().to_owned(),
        applicable: stored.state == PlanState::Made && changes.iter().all(granted),
        made_at: stored.made_at,
        made_by: stored.made_by.clone(),
        expires_at: stored.expires_at,
        version: plan.base.0,
        seq: plan.seq.0,
        taken_at: plan.taken_at,
        servers: plan.targets.len(),
        servers_in_use: in_use.count(),
        others_in_use,
        needs_approval: site.approval_above.is_some_and(|most| others_in_use as u64 > most),
        changes,
    }
}

impl From<AdmissionError> for Problem {
    fn from(error: AdmissionError) -> Problem {
        let detail = error.to_string();
        match error {
            AdmissionError::Region(error) => error.into(),
            AdmissionError::Queue(error) => error.into(),
            AdmissionError::Ask(error) | AdmissionError::Apply(ApplyError::Ask(error)) => {
                error.into()
            }
            AdmissionError::Db(error) | AdmissionError::Apply(ApplyError::Db(error)) => {
                error.into()
            }
            AdmissionError::Silent(_) => Problem::unavailable("postgres_unavailable", detail),
            AdmissionError::Stale(_) | AdmissionError::Apply(ApplyError::Stale { .. }) => {
                let problem = Problem::new(StatusCode::CONFLICT, "plan_stale", detail);
                problem.with_members(because("region_moved"))
            }
            AdmissionError::Apply(ApplyError::NotApplicable { .. }) => {
                Problem::new(StatusCode::CONFLICT, "plan_over", detail)
            }
            AdmissionError::Apply(ApplyError::NotOurs { .. }) => {
                Problem::new(StatusCode::CONFLICT, "over", detail)
            }
            AdmissionError::Apply(ApplyError::Quota { of, limit, promised, .. }) => {
                let problem = Problem::new(StatusCode::CONFLICT, "quota_exceeded", detail);
                let (limit, would_be) = (limit.to_f64(), promised.to_f64());
                let exceeded =
                    ExceededQuota { quota: of.to_string(), limit, promised: None, would_be };
                problem.with_members(ProblemMembers {
                    quotas: Some(vec![exceeded]),
                    ..because("quota_exceeded")
                })
            }
            AdmissionError::Apply(ApplyError::Contract(_)) => {
                Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
            }
        }
    }
}

/// A problem with one reason.
fn because(reason: &str) -> ProblemMembers {
    ProblemMembers { reasons: Some(vec![reason.to_owned()]), ..ProblemMembers::default() }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_plan", detail)
}

/// What to plan.
struct Asked {
    /// The region.
    held: Arc<CachedRegion>,
    /// The changes.
    changes: Vec<RequestSpec>,
    /// How long to search.
    deadline: PlanDeadline,
}

/// Reads a deadline, where one is given.
fn read_deadline(given: Option<Value>) -> Result<PlanDeadline, FieldError> {
    let error = |detail: String| FieldError::new("deadline_seconds", detail);
    let Some(given) = given.filter(|given| !given.is_null()) else {
        return Ok(PlanDeadline::default());
    };
    let seconds =
        given.as_f64().ok_or_else(|| error("it is not a number of seconds".to_owned()))?;
    PlanDeadline::try_from(seconds).map_err(|refused| error(refused.to_string()))
}

/// Reads the region and the changes, and reports every invalid field of every change.
async fn read(site: &Site, body: &[u8], caller: &Caller) -> Result<Asked, Problem> {
    let body: Value = body::json(body)?;
    let malformed = |detail: &str| Problem::bad_request("malformed", detail);
    let Value::Object(mut members) = body else {
        return Err(malformed("the body must be an object with a list of changes"));
    };
    let Some(Value::Array(changes)) = members.remove("changes") else {
        return Err(malformed("changes: it must be a list of changes"));
    };
    let given = members.remove("deadline_seconds");
    if let Some(field) = members.keys().next() {
        return Err(malformed(&format!("{field}: there is no such field")));
    }
    if !(1..=CHANGES_MAX).contains(&changes.len()) {
        return Err(malformed(&format!("a plan must have 1 to {CHANGES_MAX} changes")));
    }
    let held = site.region.read_current().await?;
    let profiles = change::load_profiles(site, &changes).await?;
    let (mut all, mut errors) = (Vec::new(), Vec::new());
    let deadline = read_deadline(given).unwrap_or_else(|error| {
        errors.push(error);
        PlanDeadline::default()
    });
    for (number, change) in changes.into_iter().enumerate() {
        let context = ChangeContext {
            owner: caller.scope().map(Into::into),
            prefix: format!("changes[{number}]."),
            ..ChangeContext::default()
        };
        match change::parse(change, context, Some(&held.snapshot), profiles.as_ref()) {
            Ok(parsed) => all.push(parsed.asking),
            Err(mut invalid) => errors.append(&mut invalid),
        }
    }
    if all.iter().any(|asking| asking.starts_at.is_some()) {
        let now = in_time(site.broker.clock()).await?;
        let later = |asking: &RequestSpec| asking.starts_at.is_some_and(|at| at > now);
        let later = all.iter().enumerate().filter(|(_, asking)| later(asking));
        errors.extend(later.map(|(number, _)| {
            let field = format!("changes[{number}].starts_at");
            FieldError::new(field, "a plan starts at once; submit a request to start later")
        }));
    }
    if !errors.is_empty() {
        return Err(field::invalid(&errors));
    }
    for (number, asking) in all.iter_mut().enumerate() {
        let prefix = format!("changes[{number}].");
        change::check_zone(site, asking, &prefix).await?;
        // Another owner's reservation is reported as missing.
        let there = held.snapshot.reservation(asking.reservation());
        let owner = there.map(|r| &held.snapshot.reservations[r.ix()].owner);
        if owner.is_some_and(|owner| !caller.sees(owner)) {
            let detail = format!("there is no reservation {:?}", asking.reservation());
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail));
        }
        caller.may_act_for(&asking.owner)?;
        let today = there.map(|at| held.snapshot.reservations[at.ix()].priority);
        change::check_priority(site, caller, today, asking, &prefix).await?;
    }
    Ok(Asked { held, changes: all, deadline })
}

/// Quotas of the owners of a plan.
async fn quotas(site: &Site, plan: &NewPlan) -> Result<BTreeMap<OwnerName, Quota>, Problem> {
    let mut all = BTreeMap::new();
    for owner in plan.owners() {
        let quota = in_time(site.broker.quotas(Some(&owner))).await?.pop();
        all.extend(quota.map(|quota| (quota.owner.clone(), quota)));
    }
    Ok(all)
}

/// Plans changes together, and stores the plan for 15 minutes
///
/// The changes are solved on the current region; nothing is changed. A change that is not granted in full has
/// the reasons and alternatives.
#[utoipa::path(post, path = "/plans", operation_id = "make_plan",
    params(WriteQuery, ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = PlanBody,
    responses(
        (status = 200, description = "the changes are valid (dry_run)", body = PlanValid),
        (status = 201, description = "the plan", body = Plan),
        (status = 409, description = "no region is loaded, or a request with this key is in progress; with dry_run, a \
            quota would refuse a change (`quota_exceeded`)"),
        (status = 422, description = "fields are invalid; `errors` lists them")))]
pub(super) async fn make(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(wanted): StrictQuery<WriteQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Owner)?;
    let validates = wanted.validates()?;
    let asked = read(&site, &body, &caller).await?;
    if validates {
        let mut unchanged = Vec::new();
        for asking in &asked.changes {
            reservations::check_quota(&site, asking).await?;
            let now = in_time(site.broker.reservation_summary(asking.reservation())).await?;
            if now.is_some_and(|now| is_unchanged(asking, &asked.held.snapshot, &now)) {
                unchanged.push(asking.reservation().to_string());
            }
        }
        let valid = PlanValid { valid: true, changes: asked.changes.len(), unchanged };
        return Ok(Json(valid).into_response());
    }
    let plan = async |claim| Ok(plan(&site, &caller, &actor, asked, claim).await?.1);
    once(&site, &actor, &headers, ("/v1/plans", &body), plan).await
}

/// Makes a plan and stores it, with the response for its key.
async fn plan(
    site: &Site,
    caller: &Caller,
    actor: &str,
    Asked { held, changes, deadline }: Asked,
    claim: Option<KeyClaim>,
) -> Result<(Plan, StoredResponse), Problem> {
    let made = site.admission().plan(held, changes, deadline).await?;
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
    let plan = view(site, &stored, &quotas, &made.held.snapshot, caller);
    let place = format!("/v1/plans/{}", plan.plan);
    let response = StoredResponse::new(StatusCode::CREATED, Some(place), json!(plan));
    let stored_response = response.document();
    let key = claim.map(|claim| (claim, &stored_response));
    in_time(site.broker.store_plan(actor, &stored.plan, key)).await?;
    Ok((plan, response))
}

async fn stored(site: &Site, caller: &Caller, id: &str) -> Result<StoredPlan, Problem> {
    let id = query::id(id, unknown)?;
    let mine = |owners: &[String]| owners.iter().all(|owner| caller.sees(owner));
    let unknown = || unknown(format!("there is no plan {id}"));
    match in_time(site.broker.stored_plan(id)).await?.ok_or_else(unknown)? {
        Ok(plan) if mine(&plan.owners) => Ok(plan),
        Err(error) if mine(&error.owners) => {
            tracing::error!(%error, "stored plan cannot be read");
            let problem = Problem::new(StatusCode::CONFLICT, "plan_stale", error.to_string());
            Err(problem.with_members(because("plan_unreadable")))
        }
        _ => Err(unknown()),
    }
}

/// [`make`] for a page: the body as in the API, and the plan.
pub(crate) async fn made_for(site: &Site, caller: &Caller, body: &Value) -> Result<Plan, Problem> {
    let actor = caller.needs(Role::Owner)?;
    let asked = read(site, body.to_string().as_bytes(), caller).await?;
    Ok(plan(site, caller, &actor, asked, None).await?.0)
}

/// [`find`] for a page.
pub(crate) async fn found_for(site: &Site, caller: &Caller, id: &str) -> Result<Plan, Problem> {
    let stored = stored(site, caller, id).await?;
    let held = site.cached_region().await?;
    Ok(view(site, &stored, &quotas(site, &stored.plan).await?, &held.snapshot, caller))
}

/// [`apply`] for a page.
pub(crate) async fn applied_for(site: &Site, caller: &Caller, id: &str) -> Result<(), Problem> {
    let actor = caller.needs(Role::Owner)?;
    let found = stored(site, caller, id).await?;
    for owner in &found.owners {
        caller.may_act_for(owner)?;
    }
    apply_now(site, caller, &actor, &found, None).await.map(drop)
}

/// One plan
#[utoipa::path(get, path = "/plans/{id}", operation_id = "get_plan",
    params(("id" = Uuid, Path, description = "its id")),
    responses(
        (status = 200, description = "the plan", body = Plan),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Plan>, Problem> {
    caller.reads()?;
    let stored = stored(&site, &caller, &id).await?;
    let held = site.cached_region().await?;
    Ok(Json(view(&site, &stored, &quotas(&site, &stored.plan).await?, &held.snapshot, &caller)))
}

/// Applies a plan, if it still holds
///
/// The region may have changed since. The plan is applied if every change is still granted as planned, no more
/// servers in use have to move and no reservation is worse off. Otherwise 409, with a new plan.
#[utoipa::path(post, path = "/plans/{id}/apply", operation_id = "apply_plan",
    params(("id" = Uuid, Path, description = "its id"), WriteQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    responses(
        (status = 200, description = "the plan can be applied (dry_run)", body = Object),
        (status = 202, description = "the plan is applied", body = PlanApplied),
        (status = 403, description = "an operator must approve it (`approval_required`): submit the request"),
        (status = 409, description = "a change is not granted in full: `not_granted` or `quota_exceeded`, with \
            `reasons`, `limits` and their numbers, `short` and `alternatives`; or the plan was applied or has \
            expired (`plan_over`); or the region changed and the plan no longer holds (`plan_stale`), with a \
            new `plan`"),
        (status = 422, description = "the key was used for another request")))]
pub(super) async fn apply(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    StrictQuery(wanted): StrictQuery<WriteQuery>,
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
        let apply = async |claim| apply_now(&site, &caller, &actor, &found, claim).await;
        return once(&site, &actor, &headers, (&path, &[]), apply).await;
    }
    check_applicable(&site, &caller, &found).await?;
    Ok(Json(json!({ "valid": true, "plan": found.plan.id.to_string() })).into_response())
}

/// Checks that each change of a plan is granted in full and that it was not applied.
async fn check_applicable(site: &Site, caller: &Caller, found: &StoredPlan) -> Result<(), Problem> {
    if found.state != PlanState::Made {
        let detail = format!("plan {} is {}", found.plan.id, found.state.as_str());
        return Err(Problem::new(StatusCode::CONFLICT, "plan_over", detail));
    }
    let held = site.region.read_current().await?;
    let plan = view(site, found, &quotas(site, &found.plan).await?, &held.snapshot, caller);
    if !plan.applicable {
        return Err(not_granted(&plan));
    }
    if plan.needs_approval && caller.needs(Role::Operator).is_err() {
        let detail = format!(
            "the plan moves {} servers in use of other reservations, more than an owner may move; submit the request, \
             and an operator decides",
            plan.others_in_use
        );
        return Err(Problem::new(StatusCode::FORBIDDEN, "approval_required", detail));
    }
    Ok(())
}

/// The problem of a plan that cannot be applied: the refusals of all its changes, each with its reservation.
fn not_granted(plan: &Plan) -> Problem {
    let over = plan.changes.iter().find_map(|of| of.quota.as_ref());
    let (code, detail) = match over {
        Some(over) => ("quota_exceeded", &*over.detail),
        None => ("not_granted", "not every change of this plan is granted in full"),
    };
    let (mut why, mut limits, mut alternatives) = (Vec::<String>::new(), Vec::new(), Vec::new());
    let mut short = Vec::new();
    for of in &plan.changes {
        let over = of.quota.iter().flat_map(|over| &over.reasons).map(String::as_str);
        for reason in over.chain(refusal_codes(&of.answer)) {
            if !why.iter().any(|of| of == reason) {
                why.push(reason.to_owned());
            }
        }
        alternatives.extend(of.quota.iter().flat_map(|over| over.alternatives.clone()));
        let Some(refusal) = &of.answer.refusal else { continue };
        alternatives.extend(refusal.alternatives.iter().cloned().map(OfferedRequest::from));
        limits.extend(refusal.limits.iter().map(|limit| BlockingLimit {
            limit: limit.limit,
            without_rru: limit.without.to_f64(),
            sentence: limit.sentence.clone(),
            reservation: Some(of.reservation.clone()),
        }));
        short.push(ShortChange {
            reservation: of.reservation.clone(),
            asked_rru: of.asked_rru,
            grantable_rru: of.granted_rru,
            missing_rru: refusal.missing.to_f64(),
        });
    }
    Problem::new(StatusCode::CONFLICT, code, detail).with_members(ProblemMembers {
        reasons: Some(why),
        limits: Some(limits),
        short: Some(short),
        alternatives: Some(alternatives),
        quotas: over.map(|over| over.quotas.clone()),
        asked_rru: over.map(|over| over.asked_rru),
        left_rru: over.map(|over| over.left_rru),
        ..ProblemMembers::default()
    })
}

async fn apply_now(
    site: &Site,
    caller: &Caller,
    actor: &str,
    found: &StoredPlan,
    claim: Option<KeyClaim>,
) -> Result<StoredResponse, Problem> {
    check_applicable(site, caller, found).await?;
    let NewPlan { id, changes, quotes, .. } = &found.plan;
    let operation = OperationId::now_v7();
    let body = PlanApplied { plan: id.to_string(), operation: operation.to_string() };
    let place = format!("/v1/operations/{operation}");
    let response = StoredResponse::new(StatusCode::ACCEPTED, Some(place), json!(body));
    let stored_response = response.document();
    let key = claim.map(|claim| (claim, &stored_response));
    let grants: Vec<RequestGrant> =
        changes.iter().zip(quotes).map(|(asking, quote)| granting(asking, quote)).collect();
    let applied = site.admission().apply(actor, found, &grants, Some(operation), key).await;
    match applied {
        Ok(_) => Ok(response),
        Err(error @ AdmissionError::Stale(_)) => {
            site.broker.note_stale(*id).await?;
            // The response contains a new plan, so that the client need not ask again.
            let held = site.region.read_current().await?;
            let (changes, deadline) = (changes.clone(), PlanDeadline::default());
            let fresh = plan(site, caller, actor, Asked { held, changes, deadline }, None).await;
            let mut problem = Problem::from(error);
            match fresh {
                Ok((fresh, _)) => problem.members_mut().plan = Some(Box::new(fresh)),
                Err(why) => tracing::debug!(?why, "stale plan could not be made again"),
            }
            Err(problem)
        }
        Err(error) => Err(error.into()),
    }
}

fn granting<'a>(asking: &'a RequestSpec, quote: &'a Quote) -> RequestGrant<'a> {
    let (state, granted) = match asking.kind {
        RequestChangeKind::Remove => (RequestState::Shrinking, Rru::ZERO),
        RequestChangeKind::Create | RequestChangeKind::Change => {
            (RequestState::Granted, quote.capacity)
        }
    };
    let answer = Some(quote);
    RequestGrant { request: RequestId::now_v7(), asking, worker: None, state, granted, answer }
}
