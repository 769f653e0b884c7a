//! `/ops/v1/servers`: servers are racked, decommissioned and moved, many at once, all or none.

use super::region::errors;
use crate::api::asked::{self, Asked};
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{Answer, once};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::Decommission;
use chrono::{DateTime, Utc};
use fleet::Name;
use fleet::edit::{Racked, Relocated, ServerEdit, ServerPlan, WrongField};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

/// How long a change of a large region may take.
const WITHIN: Duration = Duration::from_secs(60);

/// A server that is racked.
#[derive(ToSchema)]
#[schema(as = ServerRacked)]
#[expect(dead_code, reason = "it is read row by row; this describes it")]
struct RackedBody {
    server: String,
    /// Left out: that of its MSB.
    datacenter: Option<String>,
    /// Left out: that of its rack.
    msb: Option<String>,
    rack: String,
    /// One that is known: see `/ops/v1/hardware-types`.
    hardware_type: String,
    /// Its typical draw under load.
    power_watts: Option<f64>,
}

/// Servers that are racked.
#[derive(ToSchema)]
#[schema(as = ServersAdded)]
#[expect(dead_code, reason = "it is read row by row; this describes it")]
pub(super) struct AddBody {
    servers: Vec<RackedBody>,
}

/// Servers that are decommissioned.
#[derive(ToSchema)]
#[schema(as = ServersRemoved)]
#[expect(dead_code, reason = "it is read row by row; this describes it")]
pub(super) struct RemoveBody {
    /// Their names.
    servers: Vec<String>,
}

/// A server that moves.
#[derive(ToSchema)]
#[schema(as = ServerMoved)]
#[expect(dead_code, reason = "it is read row by row; this describes it")]
struct MovedBody {
    server: String,
    /// Left out: that of the MSB.
    datacenter: Option<String>,
    /// Left out: that of the rack.
    msb: Option<String>,
    rack: String,
}

/// Servers that stand in other racks.
#[derive(ToSchema)]
#[schema(as = ServersMoved)]
#[expect(dead_code, reason = "it is read row by row; this describes it")]
pub(super) struct MoveBody {
    servers: Vec<MovedBody>,
}

/// Whether to do it.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only say what it would come to.
    #[serde(default)]
    preview: bool,
}

/// How they are removed.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct How {
    /// Only say what it would come to.
    #[serde(default)]
    preview: bool,
    /// Those that cannot go now are drained first, and removed once they are free.
    #[serde(default)]
    drain: bool,
}

/// A server that is drained, and removed once it is free.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServerDrained)]
struct DrainedView {
    server: String,
    /// Who owns it still; null: it is free.
    reservation: Option<String>,
    /// How far that is, for people.
    progress: String,
    /// The state of its move; null: none is under way.
    step: Option<String>,
    asked_by: String,
    asked_at: DateTime<Utc>,
    /// Why it could not be removed although it is free.
    refused: Option<String>,
}

/// By name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServersDrained)]
pub(super) struct Drained {
    servers: Vec<DrainedView>,
}

impl From<Vec<Decommission>> for Drained {
    fn from(all: Vec<Decommission>) -> Drained {
        let view = |of: Decommission| DrainedView {
            progress: of.progress().to_owned(),
            server: of.server.to_string(),
            reservation: of.reservation.as_ref().map(|name| name.to_string()),
            step: of.step,
            asked_by: of.asked_by,
            asked_at: of.asked_at,
            refused: of.refused,
        };
        Drained { servers: all.into_iter().map(view).collect() }
    }
}

/// How many more or fewer servers of a type an MSB has.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServersChange)]
pub(crate) struct ChangeView {
    pub(crate) hardware_type: String,
    pub(crate) msb: String,
    pub(crate) servers: i64,
}

/// What it came to, or would.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ServersEdited)]
pub(crate) struct EditedView {
    /// Whether it was done.
    pub(crate) applied: bool,
    pub(crate) servers: usize,
    pub(crate) new_racks: Vec<String>,
    pub(crate) new_msbs: Vec<String>,
    pub(crate) change: Vec<ChangeView>,
    /// Servers that move or are drained and belong to somebody, by reservation.
    pub(crate) held: BTreeMap<String, usize>,
    /// Servers that are drained first.
    pub(crate) draining: Vec<String>,
}

impl EditedView {
    pub(crate) fn new(of: &ServerPlan, applied: bool) -> EditedView {
        let names = |names: &std::collections::BTreeSet<Name>| {
            names.iter().map(ToString::to_string).collect()
        };
        let change = of.change.iter().map(|((hardware_type, msb), servers)| ChangeView {
            hardware_type: hardware_type.to_string(),
            msb: msb.to_string(),
            servers: *servers,
        });
        EditedView {
            applied,
            servers: of.servers,
            new_racks: names(&of.new_racks),
            new_msbs: names(&of.new_msbs),
            change: change.collect(),
            held: of.held.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
            draining: names(&of.draining),
        }
    }
}

/// Reads a list row by row; names every row that is not what is meant.
fn rows<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        servers: Vec<Value>,
    }
    let List { servers } = asked::json(body)?;
    let mut wrong = Vec::new();
    let mut read = Vec::new();
    for (nr, row) in servers.into_iter().enumerate() {
        match serde_json::from_value(row) {
            Ok(row) => read.push(row),
            Err(error) => {
                let field = format!("servers[{nr}]");
                wrong.push(WrongField::new(field, "malformed", error.to_string()));
            }
        }
    }
    if wrong.is_empty() {
        return Ok(read);
    }
    let detail = format!("{} rows are not what is meant", wrong.len());
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
    Err(problem.with("errors", errors(&wrong)))
}

/// Does it, or says what it would come to.
pub(crate) async fn edit(
    site: &Site,
    actor: &str,
    edit: &ServerEdit,
    dry: bool,
    key: Option<broker::KeyClaim>,
) -> Result<EditedView, Problem> {
    let answer = |plan: &ServerPlan| {
        Answer::new(StatusCode::OK, None, json!(EditedView::new(plan, true))).json()
    };
    let key = key.map(|claim| (claim, &answer as &(dyn Fn(&ServerPlan) -> Value + Sync)));
    let late =
        |_| Problem::unavailable("postgres_unavailable", "the region is not changed in time");
    let edited = timeout(WITHIN, site.broker.edit_servers(actor, edit, dry, key)).await;
    Ok(EditedView::new(&edited.map_err(late)??, !dry))
}

async fn asked_for(
    site: &Site,
    caller: &Caller,
    headers: &HeaderMap,
    asked: (&str, &[u8]),
    which: &Which,
    servers: ServerEdit,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    if which.preview {
        return Ok(Json(edit(site, &actor, &servers, true, None).await?).into_response());
    }
    let edit = async |claim| edit(site, &actor, &servers, false, claim).await.map(Json);
    once(site, &actor, headers, asked, edit).await
}

/// Racks servers: all of the list or none
///
/// They are free; the next solve can give them to somebody.
#[utoipa::path(post, path = "/servers", operation_id = "add_servers",
    params(Which,
        ("Idempotency-Key" = Option<String>, Header, description = "asks once, however often it is sent")),
    request_body = AddBody,
    responses(
        (status = 200, description = "they are there, or would be", body = EditedView),
        (status = 422, description = "fields are wrong; `errors` names every one of every server")))]
pub(super) async fn add(
    State(site): State<Site>,
    caller: Caller,
    Asked(which): Asked<Which>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let servers = ServerEdit::Add(rows::<Racked>(&body)?);
    asked_for(&site, &caller, &headers, ("/ops/v1/servers", &body), &which, servers).await
}

/// Decommissions servers: all of the list or none
///
/// A server that belongs to a reservation, is in use, lent or on its way is refused, and what must happen
/// first is said; with `drain` it is moved out first, under the limits and contracts of moves, and removed once it is
/// free. The next solve replaces it.
#[utoipa::path(post, path = "/servers/remove", operation_id = "remove_servers",
    params(How,
        ("Idempotency-Key" = Option<String>, Header, description = "asks once, however often it is sent")),
    request_body = RemoveBody,
    responses(
        (status = 200, description = "they are gone, or would be", body = EditedView),
        (status = 422, description = "servers cannot go; `errors` names each and says what must happen")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Asked(How { preview, drain }): Asked<How>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let names = rows::<Name>(&body)?;
    let (path, servers) = if drain {
        ("/ops/v1/servers/remove?drain=true", ServerEdit::Drain(names))
    } else {
        ("/ops/v1/servers/remove", ServerEdit::Remove(names))
    };
    asked_for(&site, &caller, &headers, (path, &body), &Which { preview }, servers).await
}

/// Servers that are drained, and removed once they are free
#[utoipa::path(get, path = "/drained-servers", operation_id = "list_drained_servers",
    responses((status = 200, description = "by name", body = Drained)))]
pub(super) async fn drained(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Drained>, Problem> {
    caller.reads_region()?;
    Ok(Json(in_time(site.broker.decommissions()).await?.into()))
}

/// Keeps servers that were to be drained: all of the list or none
///
/// Those that were moved out already stay free.
#[utoipa::path(post, path = "/servers/keep", operation_id = "keep_servers",
    request_body = RemoveBody,
    responses(
        (status = 200, description = "those that are drained still", body = Drained),
        (status = 422, description = "servers are not drained; `errors` names each")))]
pub(super) async fn keep(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Drained>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.keep_servers(&actor, &rows::<Name>(&body)?)).await?;
    Ok(Json(in_time(site.broker.decommissions()).await?.into()))
}

/// Moves servers to other racks: all of the list or none
///
/// A server in use, lent or on its way is refused. A solve under way skips servers that moved.
#[utoipa::path(post, path = "/servers/move", operation_id = "move_servers",
    params(Which,
        ("Idempotency-Key" = Option<String>, Header, description = "asks once, however often it is sent")),
    request_body = MoveBody,
    responses(
        (status = 200, description = "they stand there, or would", body = EditedView),
        (status = 422, description = "fields are wrong; `errors` names every one of every server")))]
pub(super) async fn relocate(
    State(site): State<Site>,
    caller: Caller,
    Asked(which): Asked<Which>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let servers = ServerEdit::Move(rows::<Relocated>(&body)?);
    asked_for(&site, &caller, &headers, ("/ops/v1/servers/move", &body), &which, servers).await
}
