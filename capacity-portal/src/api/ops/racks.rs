//! `/ops/v1/servers`: racks, decommissions and moves servers; of a list all or none.

use crate::http::auth::{Caller, Role};
use crate::http::idempotency::{StoredResponse, once};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::query::StrictQuery;
use crate::http::{Problem, Site, body, in_time};
use api_types::inventory::{ServerDrained, ServersChange, ServersDrained, ServersEdited};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{Decommission, Document, State as _};
use fleet::ServerName;
use fleet::edit::{Racked, Relocated, ServerEdit, ServerPlan, WrongField};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use utoipa::{IntoParams, ToSchema};

/// Timeout of a change of a large region.
const EDIT_WITHIN: Duration = Duration::from_secs(60);

const DRAINED: ListKind =
    ListKind { rows: "servers", key: &["server"], order: "server", page: WHOLE };

/// A server to rack.
#[derive(ToSchema)]
#[schema(as = ServerRacked)]
#[expect(dead_code, reason = "schema of the body, which is read row by row")]
struct RackedBody {
    server: String,
    /// Absent: that of its MSB.
    datacenter: Option<String>,
    /// Absent: that of its rack.
    msb: Option<String>,
    rack: String,
    /// An existing type: see `/ops/v1/hardware-types`.
    hardware_type: String,
    /// Typical power draw under load.
    power_watts: Option<f64>,
    /// Fault domains by partition, null for none; absent: those that all servers of the rack share.
    #[schema(required = false)]
    domains: BTreeMap<String, Option<String>>,
}

/// Servers to rack.
#[derive(ToSchema)]
#[schema(as = ServersAdded)]
#[expect(dead_code, reason = "schema of the body, which is read row by row")]
pub(super) struct AddBody {
    servers: Vec<RackedBody>,
}

/// Servers to decommission.
#[derive(ToSchema)]
#[schema(as = ServersRemoved)]
#[expect(dead_code, reason = "schema of the body, which is read row by row")]
pub(super) struct RemoveBody {
    /// Names.
    servers: Vec<String>,
}

/// A server to move.
#[derive(ToSchema)]
#[schema(as = ServerMoved)]
#[expect(dead_code, reason = "schema of the body, which is read row by row")]
struct MovedBody {
    server: String,
    /// Absent: that of the MSB.
    datacenter: Option<String>,
    /// Absent: that of the rack.
    msb: Option<String>,
    rack: String,
    /// Fault domains by partition, null for none; absent: those that all servers of the rack share.
    #[schema(required = false)]
    domains: BTreeMap<String, Option<String>>,
}

/// Servers to move to other racks.
#[derive(ToSchema)]
#[schema(as = ServersMoved)]
#[expect(dead_code, reason = "schema of the body, which is read row by row")]
pub(super) struct MoveBody {
    servers: Vec<MovedBody>,
}

/// Query of a change.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EditQuery {
    /// Only return the effect, and change nothing.
    #[serde(default)]
    preview: bool,
}

/// Query of a removal.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RemoveQuery {
    /// Only return the effect, and change nothing.
    #[serde(default)]
    preview: bool,
    /// Drain servers that cannot be removed now, and remove them when they are free.
    #[serde(default)]
    drain: bool,
}

/// A drained server, as it is sent.
fn drained_view(of: Decommission) -> ServerDrained {
    ServerDrained {
        progress: of.progress().to_owned(),
        server: of.server.to_string(),
        reservation: of.reservation.as_ref().map(|name| name.to_string()),
        step: of.step.map(|step| step.as_str().to_owned()),
        asked_by: of.asked_by,
        asked_at: of.asked_at,
        refused: of.refused,
    }
}

fn names<N: ToString>(of: &std::collections::BTreeSet<N>) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// The effect of a change, as it is sent.
fn edited_view(of: &ServerPlan, applied: bool) -> ServersEdited {
    let change = of.change.iter().map(|((hardware_type, msb), servers)| ServersChange {
        hardware_type: hardware_type.to_string(),
        msb: msb.to_string(),
        servers: *servers,
    });
    ServersEdited {
        applied,
        servers: of.servers,
        new_racks: names(&of.new_racks),
        new_msbs: names(&of.new_msbs),
        change: change.collect(),
        held: of.held.iter().map(|(name, count)| (name.to_string(), *count)).collect(),
        draining: names(&of.draining),
    }
}

/// Reads a list row by row; reports every invalid row.
fn rows<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Problem> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct List {
        servers: Vec<Value>,
    }
    let List { servers } = body::json(body)?;
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
    let detail = format!("{} rows are invalid", wrong.len());
    let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
    Err(problem.with_errors(wrong.iter().map(FieldError::from)))
}

/// Does a change, or previews it.
pub(crate) async fn edit(
    site: &Site,
    actor: &str,
    edit: &ServerEdit,
    dry: bool,
    key: Option<broker::KeyClaim>,
) -> Result<ServersEdited, Problem> {
    let answer = |plan: &ServerPlan| {
        StoredResponse::new(StatusCode::OK, None, json!(edited_view(plan, true))).document()
    };
    let key = key.map(|claim| (claim, &answer as &(dyn Fn(&ServerPlan) -> Document + Sync)));
    let late =
        |_| Problem::unavailable("postgres_unavailable", "the region was not changed in time");
    let edited = timeout(EDIT_WITHIN, site.broker.edit_servers(actor, edit, dry, key)).await;
    Ok(edited_view(&edited.map_err(late)??, !dry))
}

async fn edit_once(
    site: &Site,
    caller: &Caller,
    headers: &HeaderMap,
    asked: (&str, &[u8]),
    which: &EditQuery,
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
/// They are free; the next solve can assign them.
#[utoipa::path(post, path = "/servers", operation_id = "add_servers",
    params(EditQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = AddBody,
    responses(
        (status = 200, description = "the effect", body = ServersEdited),
        (status = 422, description = "fields are invalid; `errors` lists those of every server")))]
pub(super) async fn add(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(which): StrictQuery<EditQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let servers = ServerEdit::Add(rows::<Racked>(&body)?);
    edit_once(&site, &caller, &headers, ("/ops/v1/servers", &body), &which, servers).await
}

/// Decommissions servers: all of the list or none
///
/// A server that is owned, in use, lent or moving is refused, with what must happen first. With `drain` it is moved out
/// first, under the limits and contracts of moves, and removed when it is free. The next solve replaces it.
#[utoipa::path(post, path = "/servers/remove", operation_id = "remove_servers",
    params(RemoveQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = RemoveBody,
    responses(
        (status = 200, description = "the effect", body = ServersEdited),
        (status = 422, description = "servers cannot be removed; `errors` lists them with what must happen first")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(RemoveQuery { preview, drain }): StrictQuery<RemoveQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let names = rows::<ServerName>(&body)?;
    let (path, servers) = if drain {
        ("/ops/v1/servers/remove?drain=true", ServerEdit::Drain(names))
    } else {
        ("/ops/v1/servers/remove", ServerEdit::Remove(names))
    };
    edit_once(&site, &caller, &headers, (path, &body), &EditQuery { preview }, servers).await
}

/// Servers that are drained, and removed when they are free
#[utoipa::path(get, path = "/drained-servers", operation_id = "list_drained_servers",
    params(ListQuery),
    responses((status = 200, description = "a page", body = ServersDrained)))]
pub(super) async fn drained(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.decommissions()).await?;
    let page = list.page_of(DRAINED, &filters, all.into_iter().map(drained_view))?;
    Ok(page.response(&ServersDrained { servers: Vec::new(), next_page_token: None }))
}

/// Keeps drained servers: all of the list or none
///
/// Servers that have been moved out stay free.
#[utoipa::path(post, path = "/servers/keep", operation_id = "keep_servers",
    request_body = RemoveBody,
    responses(
        (status = 200, description = "the servers that are still drained", body = ServersDrained),
        (status = 422, description = "servers are not drained; `errors` lists them")))]
pub(super) async fn keep(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<ServersDrained>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.keep_servers(&actor, &rows::<ServerName>(&body)?)).await?;
    let left = in_time(site.broker.decommissions()).await?;
    let servers = left.into_iter().map(drained_view).collect();
    Ok(Json(ServersDrained { servers, next_page_token: None }))
}

/// Moves servers to other racks: all of the list or none
///
/// A server that is in use, lent or moving is refused. A running solve skips servers that moved.
#[utoipa::path(post, path = "/servers/move", operation_id = "move_servers",
    params(EditQuery,
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = MoveBody,
    responses(
        (status = 200, description = "the effect", body = ServersEdited),
        (status = 422, description = "fields are invalid; `errors` lists those of every server")))]
pub(super) async fn relocate(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(which): StrictQuery<EditQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let servers = ServerEdit::Move(rows::<Relocated>(&body)?);
    edit_once(&site, &caller, &headers, ("/ops/v1/servers/move", &body), &which, servers).await
}
