//! Fault domains that cross MSBs: in, out, changed, kept and removed.

use crate::harness::Database;
use crate::load::inventory;
use crate::regions::{at, changed, generated, server, small};
use broker::{Action, ImportOptions, LoadError, MergeError, Missing, PlanError, Seq};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{
    Coverage, PartitionColumn, PartitionParts, RegionSnapshot, ReservationColumns, ServerName,
    ServerRow, SnapshotParts, SurvivesRow,
};
use testkit::postgres::json_of;

const PLAIN: ImportOptions = ImportOptions {
    missing: Missing::Keep,
    accept_contradictions: false,
    force: false,
    coverage: Coverage::WHOLE,
};

fn survives(partition: &str) -> SurvivesRow {
    SurvivesRow { reservation_id: "web".into(), partition: partition.into() }
}

/// Every fifth server is in no domain.
fn column(parts: &SnapshotParts, name: &str, domains: usize) -> PartitionColumn {
    let of = |(position, row): (usize, &fleet::ServerRow)| {
        let domain = format!("{name} {}", position % domains).into();
        (!position.is_multiple_of(5)).then(|| (row.server_id.clone(), domain))
    };
    PartitionColumn {
        name: name.into(),
        domains: parts.servers.iter().enumerate().filter_map(of).collect(),
    }
}

/// The small region with switches, which `web` survives, and feeds.
fn crossed(change: impl FnOnce(&mut SnapshotParts)) -> RegionSnapshot {
    changed(|parts| {
        let partitions = vec![column(parts, "feed", 2), column(parts, "switch", 3)];
        parts.crossing = PartitionParts { partitions, survives: vec![survives("switch")] };
        change(parts);
    })
}

async fn exported(database: &Database) -> RegionSnapshot {
    let export = database.broker.export(Some(at(0))).await.expect("exported");
    RegionSnapshot::new(export.parts).expect("what is stored is a snapshot")
}

#[tokio::test]
async fn domains_are_imported_and_exported() {
    let options =
        GenerateOptions { state: State::Steady, switches: Some(9), ..GenerateOptions::new(1_000) };
    let switched = RegionSnapshot::new(generate(&options).expect("a region")).expect("a snapshot");
    assert!(switched.crossing_reservation().is_some());
    for snapshot in [crossed(|_| {}), switched] {
        let database = Database::new().await;
        let loaded = database.broker.load("test", &snapshot, PLAIN).await.expect("loaded");
        assert_eq!(loaded.plan.domains_changed, 0, "all servers are new");
        let export = database.broker.export(Some(snapshot.taken_at)).await.expect("exported");
        assert_eq!(export.parts.crossing, snapshot.to_parts().crossing);
        assert_eq!(
            RegionSnapshot::new(export.parts).expect("a snapshot").partitions,
            snapshot.partitions
        );
        let again = database.broker.load("test", &snapshot, PLAIN).await.expect("loaded");
        assert!(again.plan.is_empty() && again.seq.is_none(), "{}", again.plan);
        assert_eq!(database.broker.check().await.expect("asked"), [""; 0]);
    }
}

#[tokio::test]
async fn domains_alone_can_change() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    assert_eq!(exported(&database).await, crossed(|_| {}));
    let next = crossed(|parts| {
        let [feed, switch] = &mut parts.crossing.partitions[..] else { unreachable!() };
        // One in both partitions, one in another domain, one in none any more, one in a domain for the first time.
        (feed.domains[0].1, switch.domains[0].1) = ("feed 9".into(), "switch 9".into());
        switch.domains[1].1 = "switch 9".into();
        feed.domains.remove(2);
        feed.domains.push((parts.servers[5].server_id.clone(), "feed 0".into()));
    });
    let generations = "SELECT sum(generation)::bigint FROM servers";
    let (generation, version) = (
        database.number(generations).await,
        database.number("SELECT count(*) FROM promises").await,
    );
    let plan = database.broker.plan(&next, Coverage::WHOLE).await.expect("planned");
    let loaded = database.broker.load("test", &next, PLAIN).await.expect("loaded");
    assert_eq!(loaded.plan, plan, "what is planned is what is done");
    assert_eq!(
        (plan.domains_changed, plan.servers.changed.len(), plan.bindings_changed),
        (4, 4, 0)
    );
    assert!(!plan.is_empty() && plan.reservations.changed.is_empty());
    assert!(plan.to_string().contains("fault domains: changed for 4 servers"), "{plan}");
    assert_eq!(exported(&database).await, next);
    // Solves that are under way do not know the new domains.
    assert_eq!(database.number(generations).await, generation + 4);
    assert_eq!(database.number("SELECT count(*) FROM promises").await, version);
    let trail = database.broker.trail(Seq(loaded.seq.expect("written").0 - 1), 10).await;
    let trail = trail.expect("a trail");
    assert_eq!(trail[0].action, Action::SnapshotLoaded.into());
    assert_eq!(json_of(&trail[0].detail)["domains_changed"], 4);
}

#[tokio::test]
async fn unknown_domains_keep_stored_values() {
    let database = Database::new().await;
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    let places = ImportOptions { coverage: Coverage::PLACES, ..PLAIN };
    let loaded = database.broker.load("test", &inventory(|_| {}), places).await.expect("loaded");
    assert_eq!(loaded.seq, None, "{}", loaded.plan);

    // A column that it has is taken, and the others stay; reservations survive what they did.
    let known = ReservationColumns { owner: true, affinity: true, ..ReservationColumns::NONE };
    let coverage = Coverage { reservations: Some(known), ..Coverage::PLACES };
    let recabled = changed(|parts| {
        parts.crossing.partitions = vec![column(parts, "switch", 4)];
        parts.servers.push(server(30));
    });
    let options = ImportOptions { coverage, ..PLAIN };
    database.broker.load("test", &recabled, options).await.expect("loaded");
    let wanted = crossed(|parts| {
        parts.crossing.partitions[1] = column(parts, "switch", 4);
        parts.servers.push(server(30));
    });
    assert_eq!(exported(&database).await, wanted);

    // A source that knows what reservations survive says that it is nothing.
    let known = ReservationColumns { survives: true, ..known };
    let coverage = Coverage { reservations: Some(known), ..coverage };
    let options = ImportOptions { coverage, ..PLAIN };
    let loaded = database.broker.load("test", &recabled, options).await.expect("loaded");
    assert_eq!(loaded.plan.reservations.changed, ["web".into()]);
    let [feed, switch] = &exported(&database).await.to_parts().crossing.partitions[..] else {
        panic!("partitions stay")
    };
    assert_eq!((feed.domains.len(), switch.domains.len()), (19, 19));
    assert!(exported(&database).await.crossing_reservation().is_none());
}

/// A server in no domain would seem to survive every loss.
#[tokio::test]
async fn new_server_has_the_domain_of_its_rack_or_is_refused() {
    let by_rack = |parts: &SnapshotParts| {
        let domains = parts.servers.iter();
        let domains = domains.map(|row| (row.server_id.clone(), (*row.rack).into())).collect();
        PartitionColumn { name: "switch".into(), domains }
    };
    let more = inventory(|parts| {
        parts.servers.push(ServerRow { server_id: "s030".into(), ..server(0) });
    });
    let places = ImportOptions { coverage: Coverage::PLACES, ..PLAIN };
    let database = Database::new().await;
    let switched = changed(|parts| {
        let partitions = vec![by_rack(parts)];
        parts.crossing = PartitionParts { partitions, survives: vec![survives("switch")] };
    });
    database.broker.load("test", &switched, PLAIN).await.expect("loaded");
    database.broker.load("test", &more, places).await.expect("loaded");
    let now = exported(&database).await.to_parts();
    assert_eq!(now.crossing.partitions, [by_rack(&now)]);

    // Its rack has servers behind several switches.
    let database = Database::new().await;
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    let refused = database.broker.load("test", &more, places).await.expect_err("refused");
    assert!(matches!(&refused, LoadError::Merged(MergeError::NoDomain { .. })), "{refused:?}");
    let planned = database.broker.plan(&more, Coverage::PLACES).await.expect_err("refused");
    assert!(matches!(planned, PlanError::Merged(MergeError::NoDomain { .. })), "{planned:?}");
    assert_eq!(exported(&database).await, crossed(|_| {}));
}

#[tokio::test]
async fn import_that_drops_fault_domains_needs_force() {
    let database = Database::new().await;
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    let refused = database.broker.load("test", &small(), PLAIN).await.expect_err("refused");
    let LoadError::Vanishing { what, missing, stored, .. } = refused else { panic!("{refused}") };
    assert_eq!((what, missing, stored), ("fault domains of servers", 38, 38));
    assert_eq!(exported(&database).await, crossed(|_| {}));
    let force = ImportOptions { force: true, ..PLAIN };
    database.broker.load("test", &small(), force).await.expect("loaded");
    assert_eq!(exported(&database).await, small());
}

#[tokio::test]
async fn snapshot_without_domains_removes_them() {
    let database = Database::new().await;
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    let rows = "SELECT count(*) FROM server_domains";
    assert_eq!(database.number(rows).await, 38);
    // A server that is removed is in no domain either.
    let gone: ServerName = "s012".into();
    let fewer = crossed(|parts| {
        parts.servers.retain(|row| row.server_id != gone);
        for column in &mut parts.crossing.partitions {
            column.domains.retain(|(server, _)| *server != gone);
        }
    });
    database.broker.load("test", &fewer, PLAIN).await.expect("loaded");
    assert_eq!(exported(&database).await, crossed(|_| {}), "what is missing stays");
    let remove = ImportOptions { missing: Missing::Remove, ..PLAIN };
    database.broker.load("test", &fewer, remove).await.expect("loaded");
    assert_eq!(exported(&database).await, fewer);
    assert_eq!(database.number(rows).await, 36);

    // A reservation that is missing and stays still survives the partition, in which no server is.
    let without = changed(|parts| {
        parts.servers.retain(|row| row.server_id != gone);
        parts.servers.iter_mut().for_each(|row| {
            (row.current_reservation, row.target_reservation) = (None, None);
            (row.target_pending, row.loaned_to) = (false, None);
        });
        parts.reservations.retain(|row| &*row.reservation_id != "web");
        parts.rru.retain(|row| &*row.reservation_id != "web");
        parts.affinity.retain(|row| &*row.reservation_id != "web");
    });
    let force = ImportOptions { force: true, ..PLAIN };
    database.broker.load("test", &without, force).await.expect("loaded");
    assert_eq!(database.number(rows).await, 0);
    let kept = exported(&database).await.to_parts().crossing;
    let empty = PartitionColumn { name: "switch".into(), domains: Vec::new() };
    assert_eq!(
        kept,
        PartitionParts { partitions: vec![empty], survives: vec![survives("switch")] }
    );
    let remove = ImportOptions { missing: Missing::Remove, ..force };
    database.broker.load("test", &without, remove).await.expect("loaded");
    assert_eq!(exported(&database).await, without);
    assert_eq!(database.broker.check().await.expect("asked"), [""; 0]);
}

#[tokio::test]
async fn what_a_promise_survives_has_a_history() {
    let database = Database::new().await;
    database.broker.load("test", &crossed(|_| {}), PLAIN).await.expect("loaded");
    let both =
        crossed(|parts| parts.crossing.survives = vec![survives("feed"), survives("switch")]);
    let none = crossed(|parts| parts.crossing.survives.clear());
    for next in [&both, &none] {
        let loaded = database.broker.load("test", next, PLAIN).await.expect("loaded");
        assert_eq!(loaded.plan.reservations.changed, ["web".into()]);
        assert_eq!((loaded.plan.domains_changed, loaded.plan.servers.changed.len()), (0, 0));
        assert_eq!(exported(&database).await, *next);
    }
    let versions = database.broker.promise_versions("web", None, 10).await.expect("read");
    let survives: Vec<Vec<String>> =
        (versions.iter()).map(|of| of.survives.iter().map(ToString::to_string).collect()).collect();
    assert_eq!(survives, [vec![], vec!["feed", "switch"], vec!["switch"]]);
    let update = "DELETE FROM survives";
    assert!(sqlx::query(update).execute(&mut database.connect().await).await.is_err());
}

#[tokio::test]
async fn names_of_domains_follow_the_rule() {
    let database = Database::new().await;
    let named = |name: &str, domain: &str| {
        changed(|parts| {
            let domains = vec![(parts.servers[0].server_id.clone(), domain.into())];
            parts.crossing.partitions = vec![PartitionColumn { name: name.into(), domains }];
        })
    };
    for snapshot in [named("swi\0tch", "one"), named("switch", "o\0ne")] {
        let error = database.broker.load("test", &snapshot, PLAIN).await.expect_err("refused");
        assert!(matches!(error, LoadError::ZeroCharacter { .. }), "{error}");
    }
    for (snapshot, what) in
        [(named("..", "one"), "partition"), (named("switch", ".."), "fault domain")]
    {
        let error = database.broker.load("test", &snapshot, PLAIN).await.expect_err("refused");
        assert!(error.to_string().starts_with(&format!("{what} \"..\": ")), "{error}");
    }
    // Most regions have no partitions.
    database.broker.load("test", &generated(3), PLAIN).await.expect("loaded");
    assert_eq!(database.number("SELECT count(*) FROM partitions").await, 0);
}
