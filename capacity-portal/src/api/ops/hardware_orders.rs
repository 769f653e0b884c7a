//! `/ops/v1/hardware-orders`: servers on order.

use crate::http::auth::{Caller, Role};
use crate::http::idempotency::{StoredResponse, once};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match};
use crate::http::{Problem, Site, body, in_time};
use api_types::hardware_orders::{
    HardwareOrder, HardwareOrderAsked, HardwareOrderPatch, HardwareOrders, HardwareOrdersAdded,
    HardwareOrdersAsked,
};
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use broker::{EditError, HardwareOrderAnswer, HardwareOrderChange, KeyClaim, State as _};
use serde_json::json;

const ORDERS: ListKind =
    ListKind { rows: "orders", key: &["order"], order: "expected_on", page: WHOLE };

const PATH: &str = "/ops/v1/hardware-orders";

/// An order, as it is sent.
pub(crate) fn view(of: broker::HardwareOrder) -> HardwareOrder {
    HardwareOrder {
        order: of.id.to_string(),
        hardware_type: of.of.hardware_type.to_string(),
        datacenter: of.of.datacenter.to_string(),
        servers: of.of.servers,
        expected_on: of.of.expected_on,
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        late: of.is_late,
        ordered_by: of.ordered_by,
        ordered_at: of.ordered_at,
    }
}

fn added(orders: &[broker::HardwareOrder]) -> HardwareOrdersAdded {
    HardwareOrdersAdded { orders: orders.iter().cloned().map(view).collect() }
}

/// Servers on order, and orders that have ended
#[utoipa::path(get, path = "/hardware-orders", operation_id = "list_hardware_orders",
    params(ListQuery),
    responses((status = 200, description = "a page, by the day on which they are expected", body = HardwareOrders)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let all = in_time(site.broker.hardware_orders()).await?;
    let page = list.page_of(ORDERS, &filters, all.into_iter().map(view))?;
    Ok(page.response(&HardwareOrders { orders: Vec::new(), next_page_token: None }))
}

/// [`add`], for a page.
pub(crate) async fn added_for(
    site: &Site,
    caller: &Caller,
    orders: Vec<HardwareOrderAsked>,
    key: Option<(KeyClaim, HardwareOrderAnswer<'_>)>,
) -> Result<HardwareOrdersAdded, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let asked: Vec<broker::HardwareOrderAsked> = (orders.into_iter())
        .map(|of| broker::HardwareOrderAsked {
            hardware_type: of.hardware_type.into(),
            datacenter: of.datacenter.into(),
            servers: of.servers,
            expected_on: of.expected_on,
        })
        .collect();
    let done = in_time(site.broker.add_hardware_orders(&actor, &asked, key)).await?;
    Ok(added(&done))
}

/// Enters orders: all of the list or none
///
/// The date on which a hardware type runs out counts them from their day on.
#[utoipa::path(post, path = "/hardware-orders", operation_id = "add_hardware_orders",
    params(("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = HardwareOrdersAsked,
    responses(
        (status = 201, description = "the orders", body = HardwareOrdersAdded),
        (status = 422, description = "fields are invalid; `errors` lists those of every order")))]
pub(super) async fn add(
    State(site): State<Site>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let HardwareOrdersAsked { orders } = body::json(&body)?;
    once(&site, &actor, &headers, (PATH, &body), async |claim| {
        let answer = |all: &[broker::HardwareOrder]| {
            StoredResponse::new(StatusCode::CREATED, None, json!(added(all))).document()
        };
        let key = claim.map(|claim| (claim, &answer as HardwareOrderAnswer<'_>));
        let done = added_for(&site, &caller, orders, key).await?;
        Ok((StatusCode::CREATED, Json(done)))
    })
    .await
}

/// One order
#[utoipa::path(get, path = "/hardware-orders/{id}", operation_id = "get_hardware_order",
    params(("id" = String, Path, description = "the order")),
    responses(
        (status = 200, description = "the order", body = HardwareOrder),
        (status = 404, description = "there is no such order")))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let found = in_time(site.broker.hardware_order(&id)).await?;
    let of = found.ok_or_else(|| EditError::UnknownOrder { id })?;
    let version = of.version();
    Ok(etag(Json(view(of)), &version))
}

/// Changes an open order, for a page; with a version only if it still has it.
pub(crate) async fn changed_for(
    site: &Site,
    caller: &Caller,
    id: &str,
    to: HardwareOrderChange,
    seen: Option<&str>,
) -> Result<(), Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.change_hardware_order(&actor, id, to, seen, None)).await?;
    Ok(())
}

/// The same over HTTP. `asked`: path below the order, and body.
async fn change(
    site: &Site,
    caller: &Caller,
    id: &str,
    headers: &HeaderMap,
    (path, body): (&str, &[u8]),
    to: HardwareOrderChange,
) -> Result<Response, Problem> {
    let actor = caller.needs(Role::Operator)?;
    let seen = optional_if_match(headers)?;
    let path = format!("{PATH}/{id}{path}");
    once(site, &actor, headers, (&path, body), async |claim| {
        let answer = |all: &[broker::HardwareOrder]| {
            let changed = all.first().cloned().map(view);
            StoredResponse::new(StatusCode::OK, None, json!(changed)).document()
        };
        let key = claim.map(|claim| (claim, &answer as HardwareOrderAnswer<'_>));
        let done = site.broker.change_hardware_order(&actor, id, to, seen.as_deref(), key);
        let done = in_time(done).await?;
        let version = done.version();
        Ok(etag(Json(view(done)), &version))
    })
    .await
}

/// Changes the number of servers or the day of an open order
///
/// With `If-Match`, only if it has not changed.
#[utoipa::path(patch, path = "/hardware-orders/{id}", operation_id = "change_hardware_order",
    params(
        ("id" = String, Path, description = "the order"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    request_body = HardwareOrderPatch,
    responses(
        (status = 200, description = "the order", body = HardwareOrder),
        (status = 404, description = "there is no such order"),
        (status = 409, description = "it has arrived or is cancelled"),
        (status = 412, description = "it has changed since"),
        (status = 422, description = "fields are invalid; `errors` lists them")))]
pub(super) async fn patch(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let HardwareOrderPatch { servers, expected_on } = body::json(&body)?;
    let to = HardwareOrderChange::Terms { servers, expected_on };
    change(&site, &caller, &id, &headers, ("", &body), to).await
}

/// The servers of an order are racked
///
/// With `If-Match`, only if it has not changed.
#[utoipa::path(post, path = "/hardware-orders/{id}/arrive", operation_id = "arrive_hardware_order",
    params(
        ("id" = String, Path, description = "the order"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    responses(
        (status = 200, description = "the order", body = HardwareOrder),
        (status = 404, description = "there is no such order"),
        (status = 409, description = "it has arrived or is cancelled already"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn arrive(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let to = HardwareOrderChange::Arrived;
    change(&site, &caller, &id, &headers, ("/arrive", &[]), to).await
}

/// The servers of an order will not come
///
/// With `If-Match`, only if it has not changed.
#[utoipa::path(post, path = "/hardware-orders/{id}/cancel", operation_id = "cancel_hardware_order",
    params(
        ("id" = String, Path, description = "the order"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *"),
        ("Idempotency-Key" = Option<String>, Header, description = "makes retries safe")),
    responses(
        (status = 200, description = "the order", body = HardwareOrder),
        (status = 404, description = "there is no such order"),
        (status = 409, description = "it has arrived or is cancelled already"),
        (status = 412, description = "it has changed since")))]
pub(super) async fn cancel(
    State(site): State<Site>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let to = HardwareOrderChange::Cancelled;
    change(&site, &caller, &id, &headers, ("/cancel", &[]), to).await
}
