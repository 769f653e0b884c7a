//! Shared buffers beside failures, headroom for growth, and shared buffers that follow failures.

use crate::http::auth::{Caller, Role};
use crate::http::list::{ListKind, ListQuery, ListRequest, WHOLE};
use crate::http::preconditions::{etag, optional_if_match};
use crate::http::{Problem, Site, body, field, in_time};
use crate::warm_capacity::{CHANCE, CHANCES, PlaceUse, WarmCapacity};
use api_types::buffers::{
    BufferAutosize, BufferAutosizeAsked, BufferAutosizeRemoved, BufferAutosizeSettings,
    BufferDecision, BufferNeed, BufferNeeds, Headroom, HeadroomPage,
};
use api_types::problem::FieldError;
use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use broker::{BufferAutosizeState, EditError, HardwareType, NO_AUTOSIZE};
use fleet::HardwareTypeName;
use forecast::autosize::COOLDOWN;
use forecast::buffers::{Settings, SettingsError};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::IntoParams;

pub(crate) const BUFFERS: ListKind = ListKind {
    rows: "shared_buffers",
    key: &["hardware_type"],
    order: "hardware_type",
    page: WHOLE,
};

const HEADROOM: ListKind = ListKind {
    rows: "headroom",
    key: &["hardware_type", "datacenter"],
    order: "missing desc",
    page: WHOLE,
};

/// For which chance.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ChanceQuery {
    /// The accepted chance of a shortfall: 0.001, 0.005, 0.01 or 0.05; absent: 0.01.
    #[param(minimum = 0.001, maximum = 0.05)]
    chance: Option<f64>,
}

/// One of the chances that are computed.
pub(crate) fn chance(asked: Option<f64>) -> Result<f64, Problem> {
    let asked = asked.unwrap_or(CHANCE);
    if CHANCES.contains(&asked) {
        return Ok(asked);
    }
    let known = CHANCES.map(|of| of.to_string()).join(", ");
    Err(Problem::bad_request("malformed", format!("chance must be one of {known}")))
}

/// The shared buffer of each hardware type.
pub(crate) fn needs(
    types: &[HardwareType],
    followed: &[BufferAutosizeState],
    warm: Option<&WarmCapacity>,
    chance: f64,
) -> Vec<BufferNeed> {
    let row = |of: &HardwareType| {
        let known = warm.and_then(|warm| warm.down.of_type(&of.hardware_type));
        let wanted = of.buffer.as_ref().map(|buffer| buffer.wanted);
        let spares = usize::try_from(wanted.unwrap_or(0)).unwrap_or(usize::MAX);
        let follows = followed.iter().find(|set| set.hardware_type == of.hardware_type);
        BufferNeed {
            hardware_type: of.hardware_type.to_string(),
            servers: of.servers,
            wanted,
            held: of.buffer.as_ref().map(|buffer| buffer.held),
            listed: of.buffer.as_ref().map(|buffer| buffer.listed),
            recommended: known.map(|of| of.down.quantile(1.0 - chance) as u64),
            chance_short: known.map(|of| of.down.chance_above(spares)),
            mean_down: known.map(|of| of.down.mean()),
            down_now: known.map_or(0, |of| of.down_now as u64),
            failures: known.map_or(0, |of| of.failures as u64),
            follows: follows.is_some(),
            decision: follows.and_then(|of| of.decision.as_ref()).map(|decision| {
                let to = decision.to.map_or_else(String::new, |to| format!(" to {to} servers"));
                format!("{}{to}: {}", decision.action.as_str(), decision.reason)
            }),
        }
    };
    types.iter().map(row).collect()
}

/// The headroom of each hardware type in each datacenter.
pub(crate) fn headroom(warm: &WarmCapacity, chance: f64) -> Vec<Headroom> {
    let row = |of: &PlaceUse| Headroom {
        hardware_type: of.hardware_type.clone(),
        datacenter: of.datacenter.clone(),
        used: of.count.used,
        idle: of.count.idle,
        free: of.count.free,
        growth: of.growth(chance),
        missing: of.missing(chance),
    };
    warm.places.iter().map(row).collect()
}

/// Days of failures that are known.
pub(crate) fn known_days(warm: Option<&WarmCapacity>) -> f64 {
    warm.map_or(0.0, |warm| warm.down.known() as f64 / 86_400.0)
}

/// The shared buffer of each hardware type beside the failures of its servers
///
/// Every ten minutes the failures of up to 400 days say how many servers of each type are down at an instant, in bursts as they
/// were; `recommended` is the fewest spares that keep the chance. As solves refill a shared buffer from free servers, a
/// shortfall is rarer than that.
#[utoipa::path(get, path = "/shared-buffers", operation_id = "list_shared_buffers",
    params(ChanceQuery, ListQuery),
    responses((status = 200, description = "a page", body = BufferNeeds)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<ChanceQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let chance = chance(filters.chance)?;
    let warm = in_time(site.warm.current(&site.broker, &site.region)).await?;
    let types = in_time(site.broker.hardware_types()).await?;
    let followed = in_time(site.broker.buffer_autosizes()).await?;
    let rows = needs(&types, &followed, warm.as_deref(), chance);
    let page = list.page_of(BUFFERS, &filters, rows)?;
    Ok(page.response(&BufferNeeds {
        chance,
        computed_at: warm.as_ref().map(|of| of.computed_at),
        known_days: known_days(warm.as_deref()),
        shared_buffers: Vec::new(),
        next_page_token: None,
    }))
}

/// Servers that wait for growth within the next hour, by hardware type and datacenter
///
/// Every ten minutes the peak of servers with running containers in the next hour is forecast from the last 14 days, as
/// `ras forecast warm` does. What is neither idle in reservations nor free is `missing`.
#[utoipa::path(get, path = "/headroom", operation_id = "list_headroom",
    params(ChanceQuery, ListQuery),
    responses((status = 200, description = "a page", body = HeadroomPage)))]
pub(super) async fn list_headroom(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters, list }: ListRequest<ChanceQuery>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    let chance = chance(filters.chance)?;
    let warm = in_time(site.warm.current(&site.broker, &site.region)).await?;
    let rows = warm.as_deref().map_or_else(Vec::new, |warm| headroom(warm, chance));
    let page = list.page_of(HEADROOM, &filters, rows)?;
    Ok(page.response(&HeadroomPage {
        chance,
        computed_at: warm.map(|of| of.computed_at),
        headroom: Vec::new(),
        next_page_token: None,
    }))
}

/// Converts a body to settings, or names its invalid field.
fn read(asked: &BufferAutosizeAsked) -> Result<broker::BufferAutosize, Problem> {
    let BufferAutosizeAsked { chance, min_servers: min, max_servers: max, .. } = *asked;
    let cooldown = asked.cooldown_seconds.unwrap_or(COOLDOWN);
    Settings { chance, min, max, cooldown }.check().map_err(|error| {
        let name = match error {
            SettingsError::Chance(_) => "chance",
            SettingsError::Limits { .. } => "max_servers",
            SettingsError::Cooldown(_) => "cooldown_seconds",
        };
        field::invalid(&[FieldError::new(name.to_owned(), error.to_string().as_str())])
    })?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 0.5")]
    let chance_micro = (chance * 1e6).round() as u32;
    let cooldown = Duration::from_secs(cooldown.into());
    Ok(broker::BufferAutosize { chance_micro, min, max, cooldown })
}

/// The settings, as they are sent.
pub(crate) fn view(of: BufferAutosizeState) -> BufferAutosize {
    let decision = of.decision.zip(of.looked_at).map(|(decision, at)| BufferDecision {
        at,
        action: decision.action.as_str().to_owned(),
        to_servers: decision.to,
        reason: decision.reason,
    });
    let settings = BufferAutosizeSettings {
        chance: f64::from(of.autosize.chance_micro) / 1e6,
        min_servers: of.autosize.min,
        max_servers: of.autosize.max,
        cooldown_seconds: of.autosize.cooldown.as_secs(),
        set_by: of.set_by,
        set_at: of.set_at,
    };
    BufferAutosize {
        hardware_type: of.hardware_type.to_string(),
        settings: Some(settings),
        decision,
    }
}

async fn answer(site: &Site, hardware_type: HardwareTypeName) -> Result<Response, Problem> {
    let types = in_time(site.broker.hardware_types()).await?;
    if !types.iter().any(|of| of.hardware_type == hardware_type) {
        return Err(EditError::UnknownType { name: hardware_type }.into());
    }
    let followed = in_time(site.broker.buffer_autosizes()).await?;
    let found = followed.into_iter().find(|of| of.hardware_type == hardware_type);
    let version =
        found.as_ref().map_or_else(|| NO_AUTOSIZE.to_owned(), BufferAutosizeState::version);
    let none =
        BufferAutosize { hardware_type: hardware_type.to_string(), settings: None, decision: None };
    Ok(etag(Json(found.map_or(none, view)), &version))
}

/// Lets the shared buffer of a hardware type follow failures; with a version only if the settings still have it.
pub(crate) async fn set_for(
    site: &Site,
    caller: &Caller,
    hardware_type: &HardwareTypeName,
    asked: &BufferAutosizeAsked,
    seen: Option<&str>,
) -> Result<(), Problem> {
    let actor = caller.needs(Role::Operator)?;
    let settings = read(asked)?;
    in_time(site.broker.set_buffer_autosize(&actor, hardware_type, &settings, seen)).await
}

/// The shared buffer of a hardware type no longer follows failures; with a version only if the settings still have it.
pub(crate) async fn remove_for(
    site: &Site,
    caller: &Caller,
    hardware_type: &HardwareTypeName,
    seen: Option<&str>,
) -> Result<(), Problem> {
    let actor = caller.needs(Role::Operator)?;
    in_time(site.broker.remove_buffer_autosize(&actor, hardware_type, seen)).await
}

/// Whether the shared buffer of a hardware type follows failures, and what was decided last
///
/// The ETag changes with the settings, not with each decision.
#[utoipa::path(get, path = "/shared-buffers/{hardware_type}/autosize", operation_id = "get_buffer_autosize",
    params(("hardware_type" = String, Path, description = "the hardware type")),
    responses(
        (status = 200, description = "settings and last decision", body = BufferAutosize),
        (status = 404, description = "there is no such type")))]
pub(super) async fn find(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
    answer(&site, name.into()).await
}

/// Lets the shared buffer of a hardware type follow its failures
///
/// Every ten minutes the failures say how many servers it needs. It grows at once; it shrinks by at most a tenth, once in a
/// cooldown after any change, and only if two weeks of failures are known. Its size is then a fixed number of servers, and each
/// change is in the audit trail with its reason. With `If-Match`, only if the settings have not changed.
#[utoipa::path(put, path = "/shared-buffers/{hardware_type}/autosize", operation_id = "set_buffer_autosize",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    request_body = BufferAutosizeAsked,
    responses(
        (status = 200, description = "settings and last decision", body = BufferAutosize),
        (status = 404, description = "there is no such type"),
        (status = 412, description = "they have changed since"),
        (status = 422, description = "Fields are invalid; `errors` names each.")))]
pub(super) async fn set(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    caller.needs(Role::Operator)?;
    let (seen, ty) = (optional_if_match(&headers)?, HardwareTypeName::from(name));
    set_for(&site, &caller, &ty, &body::json(&body)?, seen.as_deref()).await?;
    answer(&site, ty).await
}

/// The shared buffer of a hardware type no longer follows failures
///
/// It keeps its size. If it does not follow failures already, nothing happens. With `If-Match`, only if the settings have not
/// changed.
#[utoipa::path(delete, path = "/shared-buffers/{hardware_type}/autosize", operation_id = "remove_buffer_autosize",
    params(
        ("hardware_type" = String, Path, description = "the hardware type"),
        ("If-Match" = Option<String>, Header, description = "the last ETag you have read, or *")),
    responses(
        (status = 200, description = "it is removed", body = BufferAutosizeRemoved),
        (status = 404, description = "there is no such type"),
        (status = 412, description = "they have changed since")))]
pub(super) async fn remove(
    State(site): State<Site>,
    caller: Caller,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Json<BufferAutosizeRemoved>, Problem> {
    let (seen, ty) = (optional_if_match(&headers)?, HardwareTypeName::from(name.as_str()));
    remove_for(&site, &caller, &ty, seen.as_deref()).await?;
    Ok(Json(BufferAutosizeRemoved { removed: name }))
}
