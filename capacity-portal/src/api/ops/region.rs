//! `/ops/v1/region`, `/shared-buffers`, `/hardware-types`, `/elastic-reservations`: what operators change of
//! a region beside guaranteed reservations.

use crate::api::asked;
use crate::api::authority::{Caller, Role};
use crate::api::conditions::{etag, if_match, seen, stale};
use crate::api::problem::Problem;
use crate::api::{Site, in_time};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use broker::{EditError, Elastic, ElasticEnd, HardwareType, StoredSettings};
use fleet::edit::{ElasticAsked, RegionSettings, WrongField};
use fleet::{Name, Weights};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Prices of the model, default limits, and the buffer fraction.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RegionSettings)]
pub(super) struct SettingsView {
    region: String,
    /// Price of moving a server in use: M of expression 1.
    move_in_use: f64,
    /// Price of moving an idle server: M of expression 1.
    move_idle: f64,
    /// Price per RRU beyond a spread limit: beta of expressions 2 and 3.
    spread_beta: f64,
    /// Price per RRU of the largest MSB share: tau of expression 4.
    buffer_tau: f64,
    /// Largest share wanted in one MSB, where a reservation has none of its own; null: the default rule.
    msb_alpha: Option<f64>,
    /// Largest share wanted in one rack, likewise.
    rack_alpha: Option<f64>,
    /// Tolerance of datacenter shares: theta of eq. 7, where a reservation has none of its own.
    affinity_theta: f64,
    /// Share of each hardware type kept as its shared buffer, where none is listed.
    shared_buffer_fraction: f64,
}

impl From<StoredSettings> for SettingsView {
    fn from(of: StoredSettings) -> SettingsView {
        let weights = of.settings.weights;
        SettingsView {
            region: of.region.to_string(),
            move_in_use: weights.move_in_use,
            move_idle: weights.move_idle,
            spread_beta: weights.spread_beta,
            buffer_tau: weights.buffer_tau,
            msb_alpha: weights.msb_alpha,
            rack_alpha: weights.rack_alpha,
            affinity_theta: weights.affinity_theta,
            shared_buffer_fraction: of.settings.shared_buffer_fraction,
        }
    }
}

/// Tells a member that is null from one that is not there.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// What to change; members left out stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
#[schema(as = RegionSettingsAsked)]
pub(crate) struct SettingsBody {
    #[schema(minimum = 0)]
    pub(crate) move_in_use: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) move_idle: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) spread_beta: Option<f64>,
    #[schema(minimum = 0)]
    pub(crate) buffer_tau: Option<f64>,
    /// Null: the default rule.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)]
    pub(crate) msb_alpha: Option<Option<f64>>,
    /// Null: the default rule.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<f64>, exclusive_minimum = 0, maximum = 1)]
    pub(crate) rack_alpha: Option<Option<f64>>,
    #[schema(minimum = 0)]
    pub(crate) affinity_theta: Option<f64>,
    #[schema(minimum = 0, exclusive_maximum = 1)]
    pub(crate) shared_buffer_fraction: Option<f64>,
}

impl SettingsBody {
    /// What is set then.
    pub(crate) fn on(&self, now: &RegionSettings) -> RegionSettings {
        let old = &now.weights;
        RegionSettings {
            weights: Weights {
                move_in_use: self.move_in_use.unwrap_or(old.move_in_use),
                move_idle: self.move_idle.unwrap_or(old.move_idle),
                spread_beta: self.spread_beta.unwrap_or(old.spread_beta),
                buffer_tau: self.buffer_tau.unwrap_or(old.buffer_tau),
                msb_alpha: self.msb_alpha.unwrap_or(old.msb_alpha),
                rack_alpha: self.rack_alpha.unwrap_or(old.rack_alpha),
                affinity_theta: self.affinity_theta.unwrap_or(old.affinity_theta),
            },
            shared_buffer_fraction: self
                .shared_buffer_fraction
                .unwrap_or(now.shared_buffer_fraction),
        }
    }
}

/// Every wrong field, as problems say it.
pub(super) fn errors(wrong: &[WrongField]) -> Value {
    let of = |of: &WrongField| json!({ "field": of.field, "reason": of.reason, "detail": of.detail, "nearest": of.nearest });
    wrong.iter().map(of).collect()
}

impl From<EditError> for Problem {
    fn from(error: EditError) -> Problem {
        let detail = error.to_string();
        match error {
            EditError::NothingLoaded => Problem::new(StatusCode::CONFLICT, "no_region", detail),
            EditError::Wrong(wrong) => {
                let problem = Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail);
                problem.with("errors", errors(&wrong))
            }
            EditError::UnknownType { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_hardware_type", detail)
            }
            EditError::UnknownElastic { .. } => {
                Problem::new(StatusCode::NOT_FOUND, "unknown_reservation", detail)
            }
            EditError::Stale { current } => stale(&current),
            EditError::KeyLost => Problem::new(StatusCode::CONFLICT, "key_in_use", detail),
            EditError::Db(error) => error.into(),
        }
    }
}

async fn settings(site: &Site) -> Result<Response, Problem> {
    let stored = in_time(site.broker.region_settings()).await?;
    let version = stored.version();
    Ok(etag(Json(SettingsView::from(stored)), &version))
}

/// Prices of the model, default limits, and the buffer fraction
#[utoipa::path(get, path = "/region", operation_id = "get_region_settings",
    responses(
        (status = 200, description = "what the next solve uses", body = SettingsView),
        (status = 409, description = "no region is loaded")))]
pub(super) async fn find_settings(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    settings(&site).await
}

/// Changes prices, default limits, and the buffer fraction
///
/// The rules are those of `region.json` of a snapshot; the next solve uses them. Members left out stay.
#[utoipa::path(patch, path = "/region", operation_id = "set_region_settings",
    params(("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = SettingsBody,
    responses(
        (status = 200, description = "what is set now", body = SettingsView),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each, with the nearest number"),
        (status = 428, description = "If-Match is missing")))]
pub(super) async fn set_settings(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: SettingsBody = asked::json(&body)?;
    let said = if_match(&headers)?;
    let now = in_time(site.broker.region_settings()).await?;
    // What was left out stays as it was seen.
    let seen = said.unwrap_or_else(|| now.version());
    let wanted = body.on(&now.settings);
    in_time(site.broker.set_region_settings(&actor, &wanted, Some(&seen))).await?;
    settings(&site).await
}

/// The shared buffer of a hardware type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SharedBuffer)]
struct BufferView {
    reservation: String,
    /// Servers it is to have.
    servers: u64,
    /// Servers it has.
    held: u64,
    /// Whether it is listed; else the region's fraction makes it.
    listed: bool,
}

/// A hardware type.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HardwareType)]
pub(super) struct TypeView {
    hardware_type: String,
    /// Servers of it.
    servers: u64,
    /// Null: it has none.
    shared_buffer: Option<BufferView>,
}

impl From<HardwareType> for TypeView {
    fn from(of: HardwareType) -> TypeView {
        TypeView {
            hardware_type: of.hardware_type.to_string(),
            servers: of.servers,
            shared_buffer: of.buffer.map(|of| BufferView {
                reservation: of.reservation.to_string(),
                servers: of.wanted,
                held: of.held,
                listed: of.listed,
            }),
        }
    }
}

/// By name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HardwareTypes)]
pub(super) struct Types {
    hardware_types: Vec<TypeView>,
}

/// Hardware types that are to be known.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HardwareTypesAsked)]
pub(super) struct TypesBody {
    /// Their names.
    hardware_types: Vec<String>,
}

/// Which of them are new.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HardwareTypesAdded)]
pub(super) struct TypesAdded {
    added: Vec<String>,
}

/// Hardware types with their servers and shared buffers
#[utoipa::path(get, path = "/hardware-types", operation_id = "list_hardware_types",
    responses((status = 200, description = "by name", body = Types)))]
pub(super) async fn list_types(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<Types>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.hardware_types()).await?;
    Ok(Json(Types { hardware_types: all.into_iter().map(TypeView::from).collect() }))
}

/// Adds hardware types, so that servers of them can be racked
#[utoipa::path(post, path = "/hardware-types", operation_id = "add_hardware_types",
    request_body = TypesBody,
    responses(
        (status = 200, description = "those that are new; asked again, none is", body = TypesAdded),
        (status = 422, description = "names are wrong; `errors` names each")))]
pub(super) async fn add_types(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<TypesAdded>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let TypesBody { hardware_types } = asked::json(&body)?;
    let names: Vec<Name> = hardware_types.into_iter().map(Name::from).collect();
    let added = in_time(site.broker.add_hardware_types(&actor, &names)).await?;
    Ok(Json(TypesAdded { added: added.iter().map(ToString::to_string).collect() }))
}

/// Another name of a hardware type.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = HardwareTypeRenamed)]
pub(super) struct RenameBody {
    /// The new name.
    name: String,
}

/// Gives a hardware type another name
///
/// What refers to it follows: servers, what a server is worth to reservations, its shared buffer, requests that are not
/// decided, RRU profiles and quotas. A solve under way that gives servers to its shared buffer is not published; the
/// next is.
#[utoipa::path(patch, path = "/hardware-types/{name}", operation_id = "rename_hardware_type",
    params(("name" = String, Path, description = "its name")),
    request_body = RenameBody,
    responses(
        (status = 200, description = "it has the new name", body = TypeView),
        (status = 404, description = "there is no such type"),
        (status = 422, description = "the new name is none or taken; `errors` says which")))]
pub(super) async fn rename_type(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let RenameBody { name: to } = asked::json(&body)?;
    let (from, new) = (Name::from(name), Name::from(to.as_str()));
    in_time(site.broker.rename_hardware_type(&actor, &from, &new)).await?;
    one_type(&site, &to).await
}

/// A hardware type that was removed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = HardwareTypeRemoved)]
pub(super) struct TypeRemoved {
    removed: String,
}

/// Removes a hardware type that nothing uses
#[utoipa::path(delete, path = "/hardware-types/{name}", operation_id = "remove_hardware_type",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "it is not offered any more", body = TypeRemoved),
        (status = 404, description = "there is no such type"),
        (status = 422, description = "it is used; `errors` says by what, and what to do first")))]
pub(super) async fn remove_type(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<TypeRemoved>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let removed = Name::from(name.as_str());
    in_time(site.broker.remove_hardware_type(&actor, &removed)).await?;
    Ok(Json(TypeRemoved { removed: name }))
}

/// How many servers a shared buffer is to have.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SharedBufferAsked)]
pub(super) struct BufferBody {
    /// Whole servers, at most as many as there are of the type.
    #[schema(minimum = 0)]
    servers: f64,
}

async fn one_type(site: &Site, name: &str) -> Result<Response, Problem> {
    let mut all = in_time(site.broker.hardware_types()).await?;
    all.retain(|of| *of.hardware_type == *name);
    let of = all.pop().ok_or_else(|| {
        let detail = format!("the region has no hardware type {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_hardware_type", detail)
    })?;
    let version = of.version();
    Ok(etag(Json(TypeView::from(of)), &version))
}

/// One hardware type and its shared buffer
#[utoipa::path(get, path = "/shared-buffers/{hardware_type}", operation_id = "get_shared_buffer",
    params(("hardware_type" = String, Path, description = "the hardware type")),
    responses(
        (status = 200, description = "what it is to have and has", body = TypeView),
        (status = 404, description = "there is no such type")))]
pub(super) async fn find_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    one_type(&site, &name).await
}

/// Lists the shared buffer of a hardware type, in servers
///
/// It is then this many, whatever the region's fraction. With `If-Match` only if it is as it was seen.
#[utoipa::path(put, path = "/shared-buffers/{hardware_type}", operation_id = "set_shared_buffer",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = BufferBody,
    responses(
        (status = 200, description = "it is set", body = TypeView),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each, with the nearest number")))]
pub(super) async fn set_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let BufferBody { servers } = asked::json(&body)?;
    let (seen, ty) = (seen(&headers)?, Name::from(name.as_str()));
    in_time(site.broker.set_shared_buffer(&actor, &ty, Some(servers), seen.as_deref())).await?;
    one_type(&site, &name).await
}

/// Has the region's fraction make the shared buffer of a hardware type again
#[utoipa::path(delete, path = "/shared-buffers/{hardware_type}", operation_id = "remove_shared_buffer",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "what it is now", body = TypeView),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "it cannot be now; `errors` says why")))]
pub(super) async fn remove_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let (seen, ty) = (seen(&headers)?, Name::from(name.as_str()));
    in_time(site.broker.set_shared_buffer(&actor, &ty, None, seen.as_deref())).await?;
    one_type(&site, &name).await
}

/// An elastic reservation: it is given no server, and borrows idle buffers.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ElasticAsked)]
pub(super) struct ElasticBody {
    /// The business unit.
    owner: String,
    /// What a server of each eligible hardware type is worth to it.
    #[serde(default)]
    rru: BTreeMap<String, f64>,
    /// Eligible hardware types, where all are worth 1; beside `rru` those it does not name.
    #[serde(default)]
    hardware_types: Vec<String>,
    /// 0 is the most important, and the default.
    #[serde(default)]
    priority: i32,
    /// The OS configuration of its servers; null: any.
    #[serde(default)]
    host_profile: Option<String>,
    /// The share by which it is served beside other borrowers; null: what the mover's settings say, else 1.
    #[serde(default)]
    share: Option<f64>,
}

/// An elastic reservation, and what it borrows.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticReservation)]
pub(super) struct ElasticView {
    reservation: String,
    owner: String,
    /// What a server of each eligible hardware type is worth to it.
    rru: BTreeMap<String, f64>,
    priority: i32,
    host_profile: Option<String>,
    share: Option<f64>,
    /// Whether it was ended: it goes once it borrows nothing.
    ending: bool,
    /// Servers it borrows.
    borrows: u64,
    promise_version: i32,
}

impl From<Elastic> for ElasticView {
    fn from(of: Elastic) -> ElasticView {
        let rru = of.asked.rru.iter().map(|(ty, value)| (ty.to_string(), *value)).collect();
        ElasticView {
            reservation: of.reservation.to_string(),
            owner: of.asked.owner.to_string(),
            rru,
            priority: of.asked.priority,
            host_profile: of.asked.host_profile.map(|name| name.to_string()),
            share: of.share,
            ending: of.ending,
            borrows: of.borrows,
            promise_version: of.promise_version,
        }
    }
}

/// By name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticReservations)]
pub(super) struct ElasticList {
    elastic_reservations: Vec<ElasticView>,
}

/// What became of one that was ended.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ElasticEnded)]
pub(super) struct ElasticEnded {
    ended: String,
    /// Servers that come back first; 0: it is gone.
    returning: u64,
}

async fn one_elastic(site: &Site, name: &str) -> Result<Response, Problem> {
    let found = in_time(site.broker.elastic_reservations(Some(name))).await?.pop();
    let of = found.ok_or_else(|| EditError::UnknownElastic { name: name.into() })?;
    let version = of.version();
    Ok(etag(Json(ElasticView::from(of)), &version))
}

/// Elastic reservations and what they borrow
#[utoipa::path(get, path = "/elastic-reservations", operation_id = "list_elastic_reservations",
    responses((status = 200, description = "by name", body = ElasticList)))]
pub(super) async fn list_elastic(
    State(site): State<Site>,
    caller: Caller,
) -> Result<Json<ElasticList>, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.elastic_reservations(None)).await?;
    let all = all.into_iter().map(ElasticView::from).collect();
    Ok(Json(ElasticList { elastic_reservations: all }))
}

/// One elastic reservation
#[utoipa::path(get, path = "/elastic-reservations/{name}", operation_id = "get_elastic_reservation",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "what it may borrow and borrows", body = ElasticView),
        (status = 404, description = "there is none of this name")))]
pub(super) async fn find_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    one_elastic(&site, &name).await
}

/// Makes an elastic reservation, or changes the one of this name
///
/// Types that are not eligible any more come back. With `If-Match` only if it is as it was seen.
#[utoipa::path(put, path = "/elastic-reservations/{name}", operation_id = "set_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    request_body = ElasticBody,
    responses(
        (status = 200, description = "it is set", body = ElasticView),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are wrong; `errors` names each, with the nearest number")))]
pub(super) async fn set_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let body: ElasticBody = asked::json(&body)?;
    let seen = seen(&headers)?;
    let (asked, share) = read(body);
    let stored = Name::from(name.as_str());
    in_time(site.broker.set_elastic(&actor, &stored, &asked, share, seen.as_deref())).await?;
    one_elastic(&site, &name).await
}

fn read(body: ElasticBody) -> (ElasticAsked, Option<f64>) {
    let types = body.hardware_types.into_iter().map(|ty| (Name::from(ty), 1.0));
    let mut rru: BTreeMap<Name, f64> = types.collect();
    rru.extend(body.rru.into_iter().map(|(ty, value)| (Name::from(ty), value)));
    let (owner, host_profile) = (body.owner.into(), body.host_profile.map(Into::into));
    (ElasticAsked { owner, rru, priority: body.priority, host_profile }, body.share)
}

/// Ends an elastic reservation
///
/// What it borrows comes back first; it is lent nothing more.
#[utoipa::path(delete, path = "/elastic-reservations/{name}", operation_id = "end_elastic_reservation",
    params(
        ("name" = String, Path, description = "its name"),
        ("If-Match" = Option<String>, Header, description = "the ETag that was seen, or *")),
    responses(
        (status = 200, description = "it is gone", body = ElasticEnded),
        (status = 202, description = "it goes once its servers are back", body = ElasticEnded),
        (status = 404, description = "there is none of this name"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn end_elastic(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = seen(&headers)?;
    let end = in_time(site.broker.end_elastic(&actor, &name, seen.as_deref())).await?;
    let (status, returning) = match end {
        ElasticEnd::Gone => (StatusCode::OK, 0),
        ElasticEnd::Returning(servers) => (StatusCode::ACCEPTED, servers),
    };
    Ok((status, Json(ElasticEnded { ended: name, returning })).into_response())
}
