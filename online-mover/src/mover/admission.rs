//! The pending moves that begin now: reads what limits and contracts depend on, and decides.

use super::instance::Ended;
use broker::{Broker, ContractUse, MoveId, OpenMove};
use decisions::admission::{MoveView, admit, concerned};
use fleet::pace::Limits;
use std::collections::BTreeMap;

/// Gives the moves that begin now, in order; `None`: the stop switch is pulled.
pub(super) async fn admissible(
    broker: &Broker,
    limits: &Limits,
    moves: &BTreeMap<MoveId, OpenMove>,
) -> Result<Option<Vec<MoveId>>, Ended> {
    let moves: Vec<MoveView<MoveId>> = moves.values().map(OpenMove::view).collect();
    let concerned = concerned(&moves);
    // Independent statements: together they take one round trip.
    let (status, begun, contracts) = tokio::try_join!(
        broker.mover_status(),
        async {
            match limits.looks_back() {
                true => broker.recently_begun(limits.window()).await,
                false => Ok(Vec::new()),
            }
        },
        async {
            match concerned.is_empty() {
                true => Ok(Vec::new()),
                false => broker.contracts(Some(&concerned)).await,
            }
        },
    )?;
    if status.stopped.is_some() {
        return Ok(None);
    }
    let contracts: Vec<_> = contracts.iter().map(ContractUse::view).collect();
    Ok(Some(admit(limits, &contracts, &moves, &begun).begin))
}
