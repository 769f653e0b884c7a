//! `/v1/policies`: policies in SQL that the solves of the region keep.
//!
//! A change is judged together with all other policies before it counts: one that does not compile changes nothing.

use crate::http::auth::{Caller, Role};
use crate::http::field;
use crate::http::idempotency::{StoredResponse, once};
use crate::http::list::{ListKind, ListQuery, ListRequest, PAGE, WHOLE};
use crate::http::preconditions::{etag, optional_if_match, stale};
use crate::http::query::StrictQuery;
use crate::http::{Problem, Site, body, in_time};
use crate::policies::{GroupNow, PolicyRefusal};
use api_types::policies::{
    Policies, PoliciesAsked, PoliciesChanged, Policy, PolicyAsked, PolicyOutlook, PolicyRow,
    PolicyVersions, PolicyWithdrawn,
};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{KeyClaim, PolicyAnswer, PolicyChange, PolicyChanges, PolicyError, PolicyVersion};
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use utoipa::IntoParams;

/// States of a version: it is the last one, a later one has replaced it, or it withdraws the policy.
pub(crate) const STATES: [&str; 3] = [IN_FORCE, REPLACED, WITHDRAWN];
pub(crate) const IN_FORCE: &str = "in_force";
const REPLACED: &str = "replaced";
const WITHDRAWN: &str = "withdrawn";

const POLICIES: ListKind =
    ListKind { rows: "policies", key: &["policy"], order: "policy", page: WHOLE };
const VERSIONS: ListKind =
    ListKind { rows: "versions", key: &["version"], order: "version desc", page: PAGE };

/// Seconds that a search may take.
const SEARCH: std::ops::RangeInclusive<f64> = 0.5..=30.0;

/// Attempts at a change while others change policies, too.
const ATTEMPTS: usize = 3;

fn row(of: &PolicyVersion, is_last: bool, now: Option<&[GroupNow]>) -> PolicyRow {
    let state = match &of.sql {
        None => WITHDRAWN,
        Some(_) if is_last => IN_FORCE,
        Some(_) => REPLACED,
    };
    let is_of = |group: &&GroupNow| group.policy == *of.policy && group.is_exceeded();
    let count = |groups: &[GroupNow]| groups.iter().filter(is_of).count();
    PolicyRow {
        exceeded: now.filter(|_| state == IN_FORCE).map(count),
        policy: of.policy.to_string(),
        version: of.version,
        edition: of.edition.0,
        state: state.to_owned(),
        why: of.why.clone(),
        changed_by: of.changed_by.clone(),
        changed_at: of.changed_at,
    }
}

impl From<PolicyError> for Problem {
    fn from(error: PolicyError) -> Problem {
        let detail = error.to_string();
        let wrong = |field: &str, detail: &str| {
            field::invalid(&[FieldError::new(field.to_owned(), detail)])
        };
        match error {
            PolicyError::Name { .. } | PolicyError::Twice { .. } => wrong("policy", &detail),
            PolicyError::Length { .. } | PolicyError::Nul { .. } => wrong("sql", &detail),
            PolicyError::Why => wrong("why", &detail),
            PolicyError::Unknown { .. } => unknown(detail),
            PolicyError::Stale { current } => stale(&current),
            PolicyError::Meanwhile => {
                Problem::new(StatusCode::CONFLICT, "policies_changed", detail)
            }
            PolicyError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            PolicyError::Db(error) => error.into(),
        }
    }
}

impl From<PolicyRefusal> for Problem {
    fn from(of: PolicyRefusal) -> Problem {
        let PolicyRefusal { policy, line, column, view, message, hint } = of;
        let view_of = view.as_ref().map_or_else(String::new, |view| format!("{view}: "));
        let after = hint.as_ref().map_or_else(String::new, |hint| format!("; {hint}"));
        let detail = format!("{policy}:{line}:{column}: {view_of}{message}{after}");
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "policy_refused", detail)
            .with("policy", json!(policy))
            .with("line", json!(line))
            .with("column", json!(column))
            .with("view", json!(view))
            .with("message", json!(message))
            .with("hint", json!(hint))
    }
}

fn unknown(detail: String) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_policy", detail)
}

/// Policies, by name
#[utoipa::path(get, path = "/policies", operation_id = "list_policies",
    params(ListQuery),
    responses((status = 200, description = "a page", body = Policies)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.policies()).await?;
    let now = site.groups_now();
    let rows: Vec<PolicyRow> = all.last.iter().map(|of| row(of, true, now.as_deref())).collect();
    let page = list.page_of(POLICIES, &filters, rows)?;
    Ok(page.response(&Policies { policies: Vec::new(), next_page_token: None }))
}

/// Every version of a policy, the last one first; there is at least one.
async fn versions(site: &Site, name: &str) -> Result<Vec<PolicyVersion>, Problem> {
    let versions = in_time(site.broker.policy_versions(name)).await?;
    if versions.is_empty() {
        return Err(unknown(format!("there is no policy {name:?}")));
    }
    Ok(versions)
}

/// One policy, with its text
#[utoipa::path(get, path = "/policies/{name}", operation_id = "get_policy",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "its last version", body = Policy),
        (status = 404, description = "There is no such policy.")))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let last = versions(&site, &name).await?.swap_remove(0);
    let tag = last.tag();
    let row = row(&last, true, site.groups_now().as_deref());
    Ok(etag(Json(Policy { row, sql: last.sql }), &tag))
}

/// The versions of a policy, the last one first
#[utoipa::path(get, path = "/policies/{name}/versions", operation_id = "list_policy_versions",
    params(("name" = String, Path, description = "its name"), ListQuery),
    responses(
        (status = 200, description = "a page", body = PolicyVersions),
        (status = 404, description = "There is no such policy.")))]
pub(super) async fn list_versions(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = versions(&site, &name).await?;
    let now = site.groups_now();
    let row = |(position, of): (usize, _)| row(of, position == 0, now.as_deref());
    let rows = all.iter().enumerate().map(row);
    let page = list.page_of(VERSIONS, &filters, rows.collect::<Vec<_>>())?;
    Ok(page.response(&PolicyVersions { versions: Vec::new(), next_page_token: None }))
}

/// One version of a policy, with its text
#[utoipa::path(get, path = "/policies/{name}/versions/{version}", operation_id = "get_policy_version",
    params(
        ("name" = String, Path, description = "its name"),
        ("version" = i32, Path, description = "the version")),
    responses(
        (status = 200, description = "the version", body = Policy),
        (status = 404, description = "There is no such policy or version.")))]
pub(super) async fn find_version(
    State(site): State<Site>,
    caller: Caller,
    Path((name, version)): Path<(String, i32)>,
) -> Result<Json<Policy>, Problem> {
    caller.reads_region()?;
    let mut all = versions(&site, &name).await?;
    let position = all.iter().position(|of| of.version == version);
    let position =
        position.ok_or_else(|| unknown(format!("policy {name:?} has no version {version}")))?;
    let found = all.swap_remove(position);
    let row = row(&found, position == 0, site.groups_now().as_deref());
    Ok(Json(Policy { row, sql: found.sql }))
}

/// Judges texts of policies on the region as it is.
async fn judge(
    site: &Site,
    files: BTreeMap<String, String>,
    search: Option<Duration>,
) -> Result<PolicyOutlook, Problem> {
    if files.is_empty() {
        return Ok(PolicyOutlook::default());
    }
    let Some(judge) = site.policies.clone() else {
        let detail = "this server is built without policies (feature `policies`)";
        return Err(Problem::new(StatusCode::CONFLICT, "no_policies", detail));
    };
    let busy = |_| Problem::unavailable("busy", "other policies are being compiled");
    // The permit ends with the work, which goes on if the caller does not wait.
    let permit = Arc::clone(&site.judging).try_acquire_owned().map_err(busy)?;
    let held = site.region.read_current().await?;
    let files: Vec<(String, String)> = files.into_iter().collect();
    let work = tokio::task::spawn_blocking(move || {
        let judged = judge.judge(&held.snapshot, &files, search);
        drop(permit);
        judged
    });
    let failed = |_| {
        let detail = "the compiler of policies failed";
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    };
    Ok(work.await.map_err(failed)??)
}

/// The answer to a change that is made.
type Answer<'a> = &'a (dyn Fn(&[PolicyVersion], &PolicyOutlook) -> StoredResponse + Sync);

/// What to change, and on which conditions.
struct Asked<'a> {
    changes: Vec<PolicyChange<'a>>,
    why: &'a str,
    /// Only if this is the last version of the first policy.
    seen: Option<String>,
    /// Whether to change nothing.
    dry_run: bool,
    search: Option<Duration>,
}

impl Asked<'_> {
    /// Judges the change, then makes it.
    async fn make(
        &self,
        site: &Site,
        actor: &str,
        key: Option<(KeyClaim, Answer<'_>)>,
    ) -> Result<(Vec<PolicyVersion>, PolicyOutlook), Problem> {
        let (why, seen) = (self.why, self.seen.as_deref());
        let mut attempt = 1;
        loop {
            let held = in_time(site.broker.policies()).await?;
            let changes =
                PolicyChanges { changes: &self.changes, why, checked: held.edition, seen };
            changes.check()?;
            let now: BTreeMap<String, String> =
                held.in_force().map(|(name, sql)| (name.to_string(), sql.to_owned())).collect();
            let mut then = now.clone();
            for PolicyChange { policy, sql } in &self.changes {
                match sql {
                    Some(sql) => then.insert((*policy).to_owned(), (*sql).to_owned()),
                    None => then.remove(*policy),
                };
            }
            let outlook = match judge(site, then, self.search).await {
                // What cannot be kept as it is, either, does not prevent that a part of it is withdrawn.
                Err(problem) if self.only_withdraws() && judge(site, now, None).await.is_err() => {
                    tracing::warn!(
                        problem = problem.detail(),
                        "the remaining policies are refused"
                    );
                    PolicyOutlook::default()
                }
                judged => judged?,
            };
            if self.dry_run {
                return Ok((Vec::new(), outlook));
            }
            let answer = key.map(|(claim, answer)| {
                (claim, |of: &[PolicyVersion]| answer(of, &outlook).document())
            });
            let key = answer.as_ref().map(|(claim, answer)| (*claim, answer as PolicyAnswer<'_>));
            match in_time(site.broker.change_policies(actor, changes, key)).await {
                Ok(made) => return Ok((made, outlook)),
                Err(problem) if problem.code() == "policies_changed" && attempt < ATTEMPTS => {
                    attempt += 1;
                }
                Err(problem) => return Err(problem),
            }
        }
    }

    fn only_withdraws(&self) -> bool {
        !self.changes.is_empty() && self.changes.iter().all(|of| of.sql.is_none())
    }
}

fn changed(made: &[PolicyVersion], outlook: &PolicyOutlook) -> PoliciesChanged {
    // What a change makes of groups is in the outlook.
    let changed = made.iter().map(|of| row(of, true, None)).collect();
    PoliciesChanged { changed, outlook: outlook.clone() }
}

fn changed_response(made: &[PolicyVersion], outlook: &PolicyOutlook) -> StoredResponse {
    StoredResponse::new(StatusCode::OK, None, json!(changed(made, outlook)))
}

/// Sets or replaces policies together, or says what would be
///
/// Each is compiled with all others in force on the region as it is. The answer says which rows break today; what is broken may not
/// get worse from then on. The next solve keeps them; one that is under way is not published.
#[utoipa::path(post, path = "/policies", operation_id = "set_policies",
    params(("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = PoliciesAsked,
    responses(
        (status = 200, description = "what changed, or would", body = PoliciesChanged),
        (status = 409, description = "no region is loaded, the server is built without policies, or others changed policies meanwhile"),
        (status = 422, description = "A policy is refused: `policy`, `line`, `column`, `message` and `hint` say where and why.")))]
pub(super) async fn set_several(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let asked: PoliciesAsked = body::json(&body)?;
    let wrong =
        |field: &str, detail: &str| field::invalid(&[FieldError::new(field.to_owned(), detail)]);
    let search = match asked.search_seconds {
        Some(seconds) if !SEARCH.contains(&seconds) => {
            return Err(wrong("search_seconds", "it is from 0.5 to 30"));
        }
        seconds => seconds.map(Duration::from_secs_f64),
    };
    if asked.policies.is_empty() && !asked.dry_run {
        return Err(wrong("policies", "it is empty"));
    }
    let texts = asked.policies.iter();
    let change = Asked {
        changes: texts.map(|of| PolicyChange { policy: &of.policy, sql: Some(&of.sql) }).collect(),
        why: asked.why.as_deref().unwrap_or_default(),
        seen: None,
        dry_run: asked.dry_run,
        search,
    };
    if asked.dry_run {
        let (made, outlook) = change.make(&site, &actor, None).await?;
        return Ok(changed_response(&made, &outlook).into_response());
    }
    once(&site, &actor, &headers, ("/v1/policies", &body), async |claim| {
        let key = claim.map(|claim| (claim, &changed_response as _));
        let (made, outlook) = change.make(&site, &actor, key).await?;
        Ok(changed_response(&made, &outlook))
    })
    .await
}

fn path(name: &str) -> String {
    format!("/v1/policies/{name}")
}

/// Sets or replaces a policy
///
/// As `POST /v1/policies` does. With `If-Match`, only if it has not changed.
#[utoipa::path(put, path = "/policies/{name}", operation_id = "set_policy",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = PolicyAsked,
    responses(
        (status = 200, description = "what changed", body = PoliciesChanged),
        (status = 404, description = "With If-Match: there is no such policy."),
        (status = 409, description = "no region is loaded, the server is built without policies, or others changed policies meanwhile"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "The policy is refused: `policy`, `line`, `column`, `message` and `hint` say where and why.")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let asked: PolicyAsked = body::json(&body)?;
    let change = Asked {
        changes: vec![PolicyChange { policy: &name, sql: Some(&asked.sql) }],
        why: asked.why.as_deref().unwrap_or_default(),
        seen: optional_if_match(&headers)?,
        dry_run: false,
        search: None,
    };
    once(&site, &actor, &headers, (&path(&name), &body), async |claim| {
        let key = claim.map(|claim| (claim, &changed_response as _));
        let (made, outlook) = change.make(&site, &actor, key).await?;
        let tag = made.first().map(PolicyVersion::tag).unwrap_or_default();
        Ok(etag(Json(changed(&made, &outlook)), &tag))
    })
    .await
}

/// Query of a withdrawal.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct WithdrawQuery {
    /// Why, for the audit trail.
    #[serde(default)]
    why: String,
}

/// Withdraws a policy
///
/// Its versions stay readable. With `If-Match`, only if it has not changed.
#[utoipa::path(delete, path = "/policies/{name}", operation_id = "withdraw_policy",
    params(WithdrawQuery,
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    responses(
        (status = 200, description = "it is withdrawn", body = PolicyWithdrawn),
        (status = 404, description = "There is no such policy in force."),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "Another policy reads its views.")))]
pub(super) async fn withdraw(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    StrictQuery(WithdrawQuery { why }): StrictQuery<WithdrawQuery>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let change = Asked {
        changes: vec![PolicyChange { policy: &name, sql: None }],
        why: &why,
        seen: optional_if_match(&headers)?,
        dry_run: false,
        search: None,
    };
    let answer = |made: &[PolicyVersion], _: &PolicyOutlook| {
        let version = made.first().map_or(0, |of| of.version);
        let withdrawn = json!(PolicyWithdrawn { withdrawn: name.clone(), version });
        StoredResponse::new(StatusCode::OK, None, withdrawn)
    };
    let path = format!("{}?withdraw", path(&name));
    once(&site, &actor, &headers, (&path, why.as_bytes()), async |claim| {
        let key = claim.map(|claim| (claim, &answer as _));
        let (made, outlook) = change.make(&site, &actor, key).await?;
        Ok(answer(&made, &outlook))
    })
    .await
}
