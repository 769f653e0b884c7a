//! What the policies in force leave room for, kept up to date for decisions between solves: they do not compile and do not wait.

use super::plan_policies::PlanPolicies;
use async_solver::GroupLimits;
use broker::{Broker, PoliciesEdition};
use control::{CachedRegion, RegionCache};
use decisions::limits::{RegionLimits, Room};
use fleet::{RegionSnapshot, ReservationIx, Server, ServerIx};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

/// Interval between looks at region and policies: both are read by others.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The limits of a region, with the names and holders of its servers.
#[derive(Debug)]
struct Compiled {
    region: Arc<CachedRegion>,
    limits: Arc<GroupLimits>,
}

impl RegionLimits for Compiled {
    fn region(&self) -> &RegionSnapshot {
        &self.region.snapshot
    }

    fn limit(&self, row: u32) -> (&str, i64) {
        let of = &self.limits.limits()[row as usize];
        (&of.name, of.most)
    }

    fn kind(&self, server: ServerIx) -> u32 {
        self.limits.kind(server.ix() as u32)
    }

    fn counts(&self, server: ServerIx, holder: ReservationIx) -> &[(u32, i64)] {
        self.limits.rows_of(server.ix(), holder)
    }
}

/// Sends the room of the policies in force until dropped. `shared`: the region as this process reads it for others; without
/// it the region is read here while there are policies.
pub(super) async fn keep(
    policies: &PlanPolicies,
    broker: &Broker,
    shared: Option<RegionCache>,
    room: &watch::Sender<Room>,
) {
    let mut own = None;
    let mut sent: Option<(PoliciesEdition, Arc<CachedRegion>)> = None;
    loop {
        sleep(LOOK_EVERY).await;
        let Some(edition) = policies.edition() else {
            if sent.take().is_some() {
                room.send_replace(Room::default());
            }
            own = None;
            continue;
        };
        let cache = shared.clone().unwrap_or_else(|| {
            own.get_or_insert_with(|| RegionCache::standalone(broker.clone())).clone()
        });
        let Some(region) = cache.latest() else { continue };
        let is_sent = |(of, at): &(PoliciesEdition, Arc<CachedRegion>)| {
            *of == edition && Arc::ptr_eq(at, &region)
        };
        if sent.as_ref().is_some_and(is_sent) {
            continue;
        }
        let (of, at) = (policies.clone(), Arc::clone(&region));
        let made = spawn_blocking(move || made(&of, at)).await;
        sent = Some((edition, region));
        match made {
            Ok(Ok(made)) => drop(room.send_replace(made)),
            Ok(Err(error)) => {
                tracing::warn!(error, "decisions between solves do not know the policies in force");
                room.send_replace(Room::default());
            }
            Err(error) => tracing::error!(%error, "the limits of policies could not be made"),
        }
    }
}

/// The same in a process that has nothing but a mover: it reads policies and region itself.
pub async fn keep_alone(broker: &Broker, room: &watch::Sender<Room>) {
    let policies = PlanPolicies::default();
    tokio::join!(policies.keep(broker), keep(&policies, broker, None, room));
}

fn made(policies: &PlanPolicies, region: Arc<CachedRegion>) -> Result<Room, String> {
    let limits = policies.limits(&region.snapshot)?;
    let used = limits.usage(region.snapshot.servers.iter().map(Server::holder));
    Ok(Room::new(Arc::new(Compiled { region, limits }), used))
}
