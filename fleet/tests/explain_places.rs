//! Why reservations are short that are held to datacenters, or whose replicas are to MSBs.

use crate::world::{World, find};
use fleet::Targets;
use fleet::explain::{Explanation, Relaxation, ShortfallReason, explain};

fn explained(world: World, id: &str) -> Explanation {
    let snapshot = world.build();
    explain(&snapshot, &Targets::unchanged(&snapshot), find(&snapshot, id))
}

#[test]
fn hardware_outside_the_allowed_datacenters_is_a_reason_of_its_own() {
    // Ten free in each of two MSBs of dc0 and of dc1: 10 survive in dc0, and 15 are asked.
    let world = World::new()
        .servers("dc0/m0", "t0", 10)
        .servers("dc0/m1", "t0", 10)
        .servers("dc1/m2", "t0", 10)
        .servers("dc1/m3", "t0", 10)
        .reservation("web", 15.0, &["t0"])
        .allow("web", "dc0");
    let found = explained(world, "web");
    assert_eq!(
        found.shortfall.as_ref().expect("it is short").reason,
        ShortfallReason::AllowedDatacenters
    );
    let short = found.shortfall.as_ref().expect("it is short");
    assert_eq!(short.evidence.not_allowed_servers, 20);
    assert_eq!(
        short.sentence,
        "it is allowed only in dc0, where 10 of 15 RRU are within reach; 20 servers of its types are \
         free in other datacenters"
    );
    let more = Relaxation::OneMoreDatacenter { datacenter: "dc1".into() };
    assert!(found.relaxations.contains(&more), "{:?}", found.relaxations);
    assert_eq!(more.to_string(), "allowing datacenter dc1 as well");
}

#[test]
fn a_replica_rule_is_a_reason_of_its_own() {
    let world = World::new()
        .servers("dc0/m0", "t0", 20)
        .servers("dc0/m1", "t0", 20)
        .reservation("store", 12.0, &["t0"])
        .change("store", |row| {
            row.msb_buffer = false;
            (row.replicas, row.replicas_per_msb) = (Some(3), Some(1));
        });
    let found = explained(world, "store");
    assert_eq!(found.shortfall.as_ref().expect("it is short").reason, ShortfallReason::ReplicaRule);
    let short = found.shortfall.as_ref().expect("it is short");
    assert_eq!(
        short.sentence,
        "at most 1 of its 3 replicas, 4 RRU, may be in one MSB: 0 of 12 RRU are within reach under this rule"
    );
    let looser = Relaxation::MoreReplicasPerMsb { replicas: 3, per_msb: 1, needed_per_msb: 2 };
    assert!(found.relaxations.contains(&looser), "{:?}", found.relaxations);
}
