//! `/ops/v1/quotas`: limits on what may be promised to an owner.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::{Problem, Site, body, field, in_time};
use api_types::problem::FieldError;
use api_types::quotas::{Quota, QuotaAsked, QuotaLimit, QuotaRemoved, Quotas};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use broker::QuotaError;
use fleet::Rru;
use fleet::quota::Measure;

const QUOTAS: ListKind = ListKind { rows: "quotas", key: &["owner"], order: "owner", page: WHOLE };

/// A limit, as it is sent.
fn limit(of: broker::QuotaLimit) -> QuotaLimit {
    let (unit, profile, hardware_type) = match &of.measure {
        Measure::Profile { profile, .. } => ("rru", Some(profile.to_string()), None),
        Measure::Servers => ("servers", None, None),
        Measure::ServersOf(hardware_type) => ("servers", None, Some(hardware_type.to_string())),
    };
    QuotaLimit {
        unit: unit.to_owned(),
        profile,
        hardware_type,
        limit: of.limit.to_f64(),
        promised: of.promised.to_f64(),
        set_by: of.set_by,
        set_at: of.set_at,
    }
}

/// A quota, as it is sent.
fn view(of: broker::Quota) -> Quota {
    Quota {
        owner: of.owner.to_string(),
        limits: of.limits.into_iter().map(limit).collect(),
        max_priority: of.max_priority,
        reservations: of.promises.len(),
    }
}

impl From<QuotaError> for Problem {
    fn from(error: QuotaError) -> Problem {
        let detail = error.to_string();
        let invalid = |errors: Vec<FieldError>| {
            let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail.clone());
            problem.with_errors(errors)
        };
        match error {
            QuotaError::Owner(error) => {
                let reason = error.reason();
                invalid(vec![FieldError::new("owner", &*detail).because(reason)])
            }
            QuotaError::Limits(wrong) => {
                let of = |of: broker::QuotaWrong| {
                    let field = format!("limits[{}].{}", of.nr, of.field);
                    FieldError::new(field, of.detail).because(of.reason)
                };
                invalid(wrong.into_iter().map(of).collect())
            }
            QuotaError::Db(error) => error.into(),
        }
    }
}

/// Reads limits; returns every invalid field.
fn read(body: QuotaAsked) -> Result<Vec<broker::QuotaAsked>, Vec<FieldError>> {
    let mut wrong = Vec::new();
    let mut add = |field: String, reason: &str, detail: &str| {
        wrong.push(FieldError::new(field, detail).because(reason));
    };
    if body.capacity_rru.is_some() {
        add(
            "capacity_rru".to_owned(),
            "ambiguous_rru",
            "RRU of different reservations cannot be added: set limits, each with a profile and \
             rru, or with servers",
        );
    } else if body.limits.is_none() {
        add(
            "limits".to_owned(),
            "missing",
            "send a list of limits, such as [{\"servers\": 40}] or [{\"profile\": \"web\", \"rru\": 2000}]; \
             DELETE removes the quota",
        );
    }
    if body.max_priority.is_some_and(|most| most < 0) {
        add("max_priority".to_owned(), "out_of_range", "it must be 0, the most important, or more");
    }
    let mut limits = Vec::new();
    for (nr, of) in body.limits.into_iter().flatten().enumerate() {
        let field = |name: &str| format!("limits[{nr}].{name}");
        let (name, amount) = match (of.rru, of.servers) {
            (Some(rru), None) => ("rru", rru),
            (None, Some(servers)) => ("servers", servers),
            _ => {
                add(field("rru"), "one_of", "a limit must have either rru or servers");
                continue;
            }
        };
        match (name, of.profile.is_some()) {
            ("rru", false) => add(field("profile"), "missing", "rru needs an RRU profile"),
            ("servers", true) => {
                add(field("profile"), "two_measures", "servers must not have a profile")
            }
            _ => {}
        }
        match Rru::from_f64(amount).filter(|amount| *amount >= Rru::ZERO) {
            None => add(field(name), "out_of_range", "an amount must be from 0 to 1e9"),
            Some(limit) => limits.push(broker::QuotaAsked {
                profile: of.profile.map(Into::into),
                hardware_type: of.hardware_type.map(Into::into),
                limit,
            }),
        }
    }
    if wrong.is_empty() { Ok(limits) } else { Err(wrong) }
}

/// Owners with a quota or a promise
#[utoipa::path(get, path = "/quotas", operation_id = "list_quotas",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Quotas)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads()?;
    let all = in_time(site.broker.quotas(caller.scope())).await?;
    let page = list.page_of(QUOTAS, &filters, all.into_iter().map(view))?;
    Ok(page.response(&Quotas { quotas: Vec::new(), next_page_token: None }))
}

/// Sets the quota of an owner
///
/// Each limit counts RRU of one profile, or servers. A promise counts at its largest possible amount, without the
/// embedded buffer. Existing promises are kept, and may be reduced.
#[utoipa::path(put, path = "/quotas/{owner}", operation_id = "set_quota",
    params(("owner" = String, Path, description = "the owner")), request_body = QuotaAsked,
    responses(
        (status = 200, description = "the quota is set", body = Quota),
        (status = 422, description = "fields are invalid; `errors` lists them")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(owner): Path<String>,
    body: Bytes,
) -> Result<Json<Quota>, Problem> {
    let actor = caller.needs(Role::Admin)?;
    let body: QuotaAsked = body::json(&body)?;
    let max_priority = body.max_priority;
    let limits = read(body).map_err(|wrong| field::invalid(&wrong))?;
    in_time(site.broker.set_quota(&actor, &owner, &limits, max_priority)).await?;
    let set = in_time(site.broker.quotas(Some(&owner))).await?.pop();
    let none =
        || Quota { owner: owner.clone(), limits: Vec::new(), max_priority: None, reservations: 0 };
    Ok(Json(set.map(view).unwrap_or_else(none)))
}

/// Removes the quota of an owner
///
/// Nothing bounds its promises then. Existing promises are kept.
#[utoipa::path(delete, path = "/quotas/{owner}", operation_id = "remove_quota",
    params(("owner" = String, Path, description = "the owner")),
    responses(
        (status = 200, description = "the quota is removed", body = QuotaRemoved),
        (status = 404, description = "the owner has no quota")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(owner): Path<String>,
) -> Result<Json<QuotaRemoved>, Problem> {
    let actor = caller.needs(Role::Admin)?;
    if in_time(site.broker.remove_quota(&actor, &owner)).await? {
        return Ok(Json(QuotaRemoved { removed: owner }));
    }
    let detail = format!("owner {owner:?} has no quota");
    Err(Problem::new(StatusCode::NOT_FOUND, "unknown_quota", detail))
}
