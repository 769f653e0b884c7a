//! `/ops/v1/hardware-types` and `/ops/v1/shared-buffers`: hardware types and their shared buffers.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match};
use crate::http::{Problem, Site, body, in_time};
use api_types::region::{
    HardwareType, HardwareTypeRemoved, HardwareTypeRenamed, HardwareTypes, HardwareTypesAdded,
    HardwareTypesAsked, SharedBuffer, SharedBufferAsked,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use fleet::HardwareTypeName;

const TYPES: ListKind = ListKind {
    rows: "hardware_types",
    key: &["hardware_type"],
    order: "hardware_type",
    page: WHOLE,
};

/// A hardware type, as it is sent.
fn view(of: broker::HardwareType) -> HardwareType {
    HardwareType {
        hardware_type: of.hardware_type.to_string(),
        servers: of.servers,
        shared_buffer: of.buffer.map(|of| SharedBuffer {
            reservation: of.reservation.to_string(),
            servers: of.wanted,
            held: of.held,
            listed: of.listed,
        }),
    }
}

/// Hardware types with their servers and shared buffers
#[utoipa::path(get, path = "/hardware-types", operation_id = "list_hardware_types",
    params(ListQuery),
    responses((status = 200, description = "a page", body = HardwareTypes)))]
pub(super) async fn list_types(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.hardware_types()).await?;
    let page = list.page_of(TYPES, &filters, all.into_iter().map(view))?;
    Ok(page.response(&HardwareTypes { hardware_types: Vec::new(), next_page_token: None }))
}

/// Adds hardware types, so that servers of them can be racked
#[utoipa::path(post, path = "/hardware-types", operation_id = "add_hardware_types",
    request_body = HardwareTypesAsked,
    responses(
        (status = 200, description = "the new types; empty if repeated", body = HardwareTypesAdded),
        (status = 422, description = "names are invalid; `errors` lists them")))]
pub(super) async fn add_types(
    State(site): State<Site>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<HardwareTypesAdded>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let HardwareTypesAsked { hardware_types } = body::json(&body)?;
    let names: Vec<HardwareTypeName> =
        hardware_types.into_iter().map(HardwareTypeName::from).collect();
    let added = in_time(site.broker.add_hardware_types(&actor, &names)).await?;
    Ok(Json(HardwareTypesAdded { added: added.iter().map(ToString::to_string).collect() }))
}

/// Renames a hardware type
///
/// References follow: servers, RRU values of reservations, its shared buffer, open requests, RRU profiles and quotas. A
/// running solve that assigns servers to its shared buffer is not published; the next one is.
#[utoipa::path(patch, path = "/hardware-types/{name}", operation_id = "rename_hardware_type",
    params(("name" = String, Path, description = "its name")),
    request_body = HardwareTypeRenamed,
    responses(
        (status = 200, description = "the renamed type", body = HardwareType),
        (status = 404, description = "there is no such type"),
        (status = 422, description = "the new name is invalid or already used; see `errors`")))]
pub(super) async fn rename_type(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let HardwareTypeRenamed { name: to } = body::json(&body)?;
    let (from, new) = (HardwareTypeName::from(name), HardwareTypeName::from(to.as_str()));
    in_time(site.broker.rename_hardware_type(&actor, &from, &new)).await?;
    one_type(&site, &to).await
}

/// Removes an unused hardware type
#[utoipa::path(delete, path = "/hardware-types/{name}", operation_id = "remove_hardware_type",
    params(("name" = String, Path, description = "its name")),
    responses(
        (status = 200, description = "the type is removed", body = HardwareTypeRemoved),
        (status = 404, description = "there is no such type"),
        (status = 422, description = "the type is used; `errors` lists by what, and what to do first")))]
pub(super) async fn remove_type(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<HardwareTypeRemoved>, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let removed = HardwareTypeName::from(name.as_str());
    in_time(site.broker.remove_hardware_type(&actor, &removed)).await?;
    Ok(Json(HardwareTypeRemoved { removed: name }))
}

async fn one_type(site: &Site, name: &str) -> Result<Response, Problem> {
    let mut all = in_time(site.broker.hardware_types()).await?;
    all.retain(|of| *of.hardware_type == *name);
    let of = all.pop().ok_or_else(|| {
        let detail = format!("the region has no hardware type {name:?}");
        Problem::new(StatusCode::NOT_FOUND, "unknown_hardware_type", detail)
    })?;
    let version = of.version();
    Ok(etag(Json(view(of)), &version))
}

/// One hardware type and its shared buffer
#[utoipa::path(get, path = "/shared-buffers/{hardware_type}", operation_id = "get_shared_buffer",
    params(("hardware_type" = String, Path, description = "the hardware type")),
    responses(
        (status = 200, description = "the shared buffer", body = HardwareType),
        (status = 404, description = "there is no such type")))]
pub(super) async fn find_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    one_type(&site, &name).await
}

/// Sets the size of the shared buffer of a hardware type, in servers
///
/// It then no longer follows from the region's fraction. With `If-Match`, only if it has not changed.
#[utoipa::path(put, path = "/shared-buffers/{hardware_type}", operation_id = "set_shared_buffer",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = SharedBufferAsked,
    responses(
        (status = 200, description = "the size is set", body = HardwareType),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them, with the nearest valid number")))]
pub(super) async fn set_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let SharedBufferAsked { servers } = body::json(&body)?;
    let (seen, ty) = (optional_if_match(&headers)?, HardwareTypeName::from(name.as_str()));
    in_time(site.broker.set_shared_buffer(&actor, &ty, Some(servers), seen.as_deref(), None))
        .await?;
    one_type(&site, &name).await
}

/// Makes the size of the shared buffer of a hardware type follow from the region's fraction again
#[utoipa::path(delete, path = "/shared-buffers/{hardware_type}", operation_id = "remove_shared_buffer",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "the shared buffer", body = HardwareType),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "it is not possible now; see `errors`")))]
pub(super) async fn remove_buffer(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let (seen, ty) = (optional_if_match(&headers)?, HardwareTypeName::from(name.as_str()));
    in_time(site.broker.set_shared_buffer(&actor, &ty, None, seen.as_deref(), None)).await?;
    one_type(&site, &name).await
}
