//! `GET /ops/v1/trail`: who did what, when.

use crate::api::asked::{self, Asked};
use crate::api::authority::Caller;
use crate::api::page::Question;
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::extract::State;
use broker::{Action, Entry, Seq, TrailAsked};
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Entries of a page, unless told otherwise, and at most.
const PAGE: u32 = 100;
const PAGE_MAX: u32 = 999;

/// Which entries.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// About this, by name or id.
    subject: Option<String>,
    /// By this one.
    actor: Option<String>,
    #[param(schema_with = actions)]
    action: Option<String>,
    #[param(minimum = 1, maximum = 999)]
    #[serde(skip_serializing)]
    limit: Option<u32>,
    /// `next_page_token` of the page before.
    #[serde(skip_serializing)]
    page_token: Option<String>,
}

pub(super) fn actions() -> utoipa::openapi::Schema {
    asked::words(Action::ALL.map(Action::as_str))
}

/// An entry of the audit trail.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::api) struct TrailEntry {
    /// 1, 2, 3, ... in the order entries became visible.
    seq: i64,
    at: DateTime<Utc>,
    /// Who.
    actor: String,
    /// What was done.
    action: String,
    /// To what, by name or id.
    subject: Option<String>,
    /// The rest, by action.
    #[schema(value_type = Object)]
    detail: Value,
}

impl From<Entry> for TrailEntry {
    fn from(of: Entry) -> TrailEntry {
        let Entry { seq, at, actor, action, subject, detail } = of;
        let action = action.as_str().to_owned();
        TrailEntry { seq: seq.0, at, actor, action, subject, detail }
    }
}

/// Entries, the youngest first.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TrailPage {
    entries: Vec<TrailEntry>,
    /// Null: this is the last page.
    next_page_token: Option<String>,
}

/// The audit trail, the youngest entry first
#[utoipa::path(get, path = "/trail", operation_id = "list_trail", params(Which),
    responses((status = 200, description = "a page", body = TrailPage)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    Asked(which): Asked<Which>,
) -> Result<Json<TrailPage>, Problem> {
    caller.reads_region()?;
    let question = Question::new(&("trail", &which));
    let before = question.cursor(which.page_token.as_deref())?.map(Seq);
    let limit = asked::limit(which.limit, PAGE, PAGE_MAX)?;
    asked::word(which.action.as_deref(), "action", Action::ALL.map(Action::as_str))?;
    let Which { subject, actor, action, .. } = which;
    let asked = TrailAsked { subject, actor, action, before };
    let rows = in_time(site.broker.trail_page(&asked, limit + 1)).await?;
    let (rows, next_page_token) = question.page(rows, limit, |entry| entry.seq.0);
    let entries = rows.into_iter().map(TrailEntry::from).collect();
    Ok(Json(TrailPage { entries, next_page_token }))
}
