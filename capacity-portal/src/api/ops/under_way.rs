//! `GET /ops/v1/moves/under-way`: moves under way, why they wait, and what is stuck.

use crate::api::views::{stop_switch, stuck_thing};
use crate::http::auth::Caller;
use crate::http::query::{self, StrictQuery};
use crate::http::{Problem, Site, in_time};
use api_types::moves::{EndedMoves, MoveUnderWay, MovesUnderWay};
use axum::Json;
use axum::extract::State;
use broker::{ContractUse, Machine, MoveId, OpenMove, State as _};
use decisions::admission::{MoveView, Wait, admit, concerned};
use serde::Deserialize;
use utoipa::IntoParams;

/// Default and maximum number of moves in one answer.
const ROWS: u32 = 100;
const ROWS_MAX: u32 = 10_000;

/// Filters of moves under way.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only moves that are stuck.
    #[serde(default)]
    stuck: bool,
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<u32>,
}

/// Moves under way, why they wait, and what is stuck
#[utoipa::path(get, path = "/moves/under-way", operation_id = "list_moves_under_way", params(Which),
    responses((status = 200, description = "the oldest first", body = MovesUnderWay)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    StrictQuery(which): StrictQuery<Which>,
) -> Result<Json<MovesUnderWay>, Problem> {
    caller.reads_region()?;
    let limit = query::limit(which.limit, ROWS, ROWS_MAX)?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let broker = &site.broker;
    let moves = in_time(broker.moves_under_way()).await?;
    let views: Vec<MoveView<MoveId>> = moves.iter().map(OpenMove::view).collect();
    let contracts = in_time(broker.contracts(Some(&concerned(&views)))).await?;
    let contracts: Vec<_> = contracts.iter().map(ContractUse::view).collect();
    let recent = in_time(broker.recently_begun(site.move_limits.window())).await?;
    let waits = admit(&site.move_limits, &contracts, &views, &recent).wait;
    let now = in_time(broker.clock()).await?;
    let mover = in_time(broker.mover_status()).await?;
    let ended = in_time(broker.moves_ended()).await?;
    let also = in_time(broker.stuck()).await?;
    // A wait that the reservation agreed to is expected, however long it takes.
    let agreed =
        |of: &OpenMove| matches!(waits.get(&of.id), Some(Wait::Contract | Wait::QuietTime));
    let stuck = |of: &OpenMove| of.is_stuck(now) && !agreed(of);
    let under_way = moves.len();
    let count = moves.iter().filter(|of| stuck(of)).count();
    let listed = moves.iter().filter(|of| !which.stuck || stuck(of)).take(limit);
    let view = |of: &OpenMove| MoveUnderWay {
        id: of.id.into(),
        server: of.server.to_string(),
        rack: of.rack.to_string(),
        msb: of.msb.to_string(),
        from: of.source.as_ref().map(ToString::to_string),
        to: of.target.as_ref().map(ToString::to_string),
        version: of.version.0,
        state: of.state.as_str().to_owned(),
        state_at: of.state_at,
        opened_at: of.opened_at,
        origin: of.origin.as_str().to_owned(),
        in_use: of.in_use,
        stuck: stuck(of),
        waits_for: waits.get(&of.id).map(|why| why.as_str().to_owned()),
    };
    Ok(Json(MovesUnderWay {
        acting: mover.acting,
        stopped: mover.stopped.map(stop_switch),
        cannot_act: mover.distance.and_then(|of| of.cannot_act()),
        now,
        under_way,
        stuck: count,
        ended: (ended.into_iter())
            .map(|(state, reason, count)| EndedMoves { state, reason, count })
            .collect(),
        moves: listed.map(view).collect(),
        // Moves are in the list above.
        also_stuck: (also.into_iter())
            .filter(|of| of.machine != Machine::Moves)
            .map(stuck_thing)
            .collect(),
    }))
}
