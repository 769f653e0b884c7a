//! What hosts are told to be.

use broker::{Broker, DbError, MoveState, OpenMove};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

/// Takes over the profiles that were fixed when moves began to reconfigure their hosts: the promise may
/// have changed since the look that these moves are of.
pub(super) async fn told(
    broker: &Broker,
    moves: &mut BTreeMap<Uuid, OpenMove>,
    advanced: &BTreeSet<Uuid>,
) -> Result<(), DbError> {
    let begun = |id: &Uuid| moves.get(id).is_some_and(|of| of.state == MoveState::Reconfiguring);
    let begun: Vec<Uuid> = advanced.iter().copied().filter(begun).collect();
    if begun.is_empty() {
        return Ok(());
    }
    for (id, profile) in broker.ordered_profiles(&begun).await? {
        if let Some(of) = moves.get_mut(&id) {
            of.host_profile = profile;
        }
    }
    Ok(())
}
