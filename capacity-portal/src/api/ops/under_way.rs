//! `GET /ops/v1/moves/under-way`: moves under way, why they wait, and what is stuck.

use crate::api::views::{stop_switch, stuck_thing};
use crate::http::auth::Caller;
use crate::http::list::{ListKind, ListQuery, ListRequest, PAGE};
use crate::http::{Problem, Site, in_time};
use api_types::moves::{EndedMoves, MoveUnderWay, MovesUnderWay};
use axum::extract::State;
use axum::response::Response;
use broker::{ContractUse, Machine, MoveId, OpenMove, State as _};
use decisions::admission::{MoveView, Wait, admit, concerned};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

const MOVES: ListKind = ListKind { rows: "moves", key: &["move"], order: "opened_at", page: PAGE };

/// Filters of moves under way.
#[derive(Debug, Deserialize, Serialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Which {
    /// Only moves that are stuck.
    #[serde(default)]
    stuck: bool,
}

/// Moves under way, why they wait, and what is stuck
#[utoipa::path(get, path = "/moves/under-way", operation_id = "list_moves_under_way",
    params(Which, ListQuery),
    responses((status = 200, description = "a page, the oldest first", body = MovesUnderWay)))]
pub(super) async fn list(
    State(site): State<Site>,
    caller: Caller,
    ListRequest { filters: which, list }: ListRequest<Which>,
) -> Result<Response, Problem> {
    caller.reads_region()?;
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
    let listed = moves.iter().filter(|of| !which.stuck || stuck(of));
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
    let page = list.page_of(MOVES, &which, listed.map(view))?;
    Ok(page.response(&MovesUnderWay {
        acting: mover.acting,
        stopped: mover.stopped.map(stop_switch),
        cannot_act: mover.distance.and_then(|of| of.cannot_act()),
        under_way,
        stuck: count,
        ended: (ended.into_iter())
            .map(|of| EndedMoves {
                state: of.state.as_str().to_owned(),
                reason: of.reason.map(|reason| reason.as_str().to_owned()),
                count: of.count,
            })
            .collect(),
        moves: Vec::new(),
        next_page_token: None,
        // Moves are in the list above.
        also_stuck: (also.into_iter())
            .filter(|of| of.machine != Machine::Moves)
            .map(stuck_thing)
            .collect(),
    }))
}
