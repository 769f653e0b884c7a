//! Snapshots that contradict what is stored.

use crate::harness::Database;
use crate::regions::{changed, small};
use broker::{Elsewhere, ImportOptions, LoadError};
use expect::said;
use fleet::RegionSnapshot;

mod expect {
    /// The plan as people read it, without the lines that count nothing.
    pub fn said(plan: &broker::ImportPlan) -> String {
        let text = plan.to_string();
        let lines = text.lines().filter(|line| line.starts_with("contradiction"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[tokio::test]
async fn contradictions_are_listed_and_need_acceptance() {
    let database = Database::new().await;
    let plain = ImportOptions::default();
    database.broker.load("test", &small(), plain).await.expect("loaded");
    let moved = changed(|parts| {
        for row in &mut parts.servers {
            // The rack moves with everything in it; msb2 changes its datacenter.
            if row.rack.as_ref() == "rack1" {
                row.msb = "msb1".into();
            }
            if row.msb.as_ref() == "msb2" {
                row.datacenter = "dc0".into();
            }
            match row.server_id.as_ref() {
                "s020" => {
                    row.rack = "rack0".into();
                    row.msb = "msb0".into();
                    row.datacenter = "dc0".into();
                }
                "s021" => row.hardware_type = "even".into(),
                _ => {}
            }
        }
        // Its datacenter would be gone.
        parts.unavailability.retain(|row| row.event_id.as_ref() != "e4");
    });
    let plan = database.broker.plan(&moved, fleet::Coverage::WHOLE).await.expect("planned");
    assert_eq!(
        said(&plan),
        "contradiction: MSB msb2: stored dc1, snapshot dc0\n\
         contradiction: hardware type of server s021: stored odd, snapshot even\n\
         contradiction: rack rack1: stored msb0, snapshot msb1\n\
         contradiction: server s020: stored rack5, snapshot rack0"
    );
    let error = database.broker.load("test", &moved, plain).await.expect_err("contradicts");
    assert!(matches!(&error, LoadError::Contradicts { count: 4, .. }), "{error}");
    let accept = ImportOptions { accept_contradictions: true, ..plain };
    database.broker.load("test", &moved, accept).await.expect("accepted");
    let remove = ImportOptions { missing: broker::Missing::Remove, ..accept };
    database.broker.load("test", &moved, remove).await.expect("removed");
    let export = database.broker.export(Some(moved.taken_at)).await.expect("exported");
    assert_eq!(RegionSnapshot::new(export.parts).expect("a snapshot"), moved);
    let generation = "SELECT generation FROM servers WHERE server = 's020'";
    assert_eq!(database.number(generation).await, 2, "a decision made before rests on nothing now");
}

#[tokio::test]
async fn missing_type_in_use_is_a_contradiction() {
    let database = Database::new().await;
    let plain = ImportOptions::default();
    let lone = changed(|parts| {
        let row = parts.servers.iter_mut().find(|row| row.server_id.as_ref() == "s023");
        row.expect("there").hardware_type = "lone".into();
    });
    database.broker.load("test", &lone, plain).await.expect("loaded");
    let without = {
        let mut parts = lone.to_parts();
        parts.servers.retain(|row| row.server_id.as_ref() != "s023");
        RegionSnapshot::new(parts).expect("a snapshot")
    };
    let plan = database.broker.plan(&without, fleet::Coverage::WHOLE).await.expect("planned");
    assert_eq!(plan.types_missing, [("lone".into(), 1)]);
    assert_eq!(
        said(&plan),
        "contradiction: hardware type lone: 1 servers stored, unknown to the snapshot"
    );
    let error = database.broker.load("test", &without, plain).await.expect_err("contradicts");
    assert!(matches!(error, LoadError::Contradicts { count: 1, .. }), "{error}");
}

#[tokio::test]
async fn changed_kind_is_a_contradiction() {
    let database = Database::new().await;
    let plain = ImportOptions::default();
    database.broker.load("test", &small(), plain).await.expect("loaded");
    let other = changed(|parts| {
        let web = parts.reservations.iter_mut().find(|row| row.reservation_id.as_ref() == "web");
        let web = web.expect("there");
        (web.kind, web.msb_buffer, web.capacity_rru) = ("elastic".into(), false, 0.0);
    });
    let plan = database.broker.plan(&other, fleet::Coverage::WHOLE).await.expect("planned");
    let [Elsewhere { what, name, .. }] = &plan.contradictions[..] else { panic!("{plan}") };
    assert_eq!((*what, name.as_ref()), ("kind of reservation", "web"));
    let accept = ImportOptions { accept_contradictions: true, ..plain };
    database.broker.load("test", &other, accept).await.expect("accepted");
    let export = database.broker.export(Some(other.taken_at)).await.expect("exported");
    assert_eq!(RegionSnapshot::new(export.parts).expect("a snapshot"), other);
}
