//! Snapshots in, snapshots out.

use crate::harness::Database;
use crate::regions::{at, changed, generated, reservation, server, small, small_parts};
use broker::{Action, ExportError, ImportOptions, LoadError, Missing, Seq, TargetVersion};
use fleet::{AllowedDatacenterRow, Coverage, RegionSnapshot, RruRow, SnapshotParts};
use testkit::postgres::json_of;

const PLAIN: ImportOptions = ImportOptions {
    missing: Missing::Keep,
    accept_contradictions: false,
    force: false,
    coverage: Coverage::WHOLE,
};

/// What the store gives back, checked by the rules of snapshots.
async fn exported(database: &Database) -> SnapshotParts {
    let export = database.broker.export(Some(at(0))).await.expect("exported");
    assert_eq!(export.generations.len(), export.parts.servers.len());
    RegionSnapshot::new(export.parts.clone()).expect("what is stored is a snapshot");
    export.parts
}

#[tokio::test]
async fn import_and_export_agree() {
    for snapshot in [small(), generated(1), generated(2)] {
        let database = Database::new().await;
        let loaded = database.broker.load("test", &snapshot, PLAIN).await.expect("loaded");
        assert!(loaded.plan.first);
        assert_eq!((loaded.version, loaded.seq), (TargetVersion(1), Some(Seq(1))));
        let export = database.broker.export(Some(snapshot.taken_at)).await.expect("exported");
        assert_eq!((export.version, export.seq), (TargetVersion(1), Seq(1)));
        let mut wanted = snapshot.to_parts();
        wanted.unavailability.sort_by(|a, b| a.event_id.cmp(&b.event_id));
        assert_eq!(export.parts.servers, wanted.servers);
        assert_eq!(export.parts, wanted);
        assert_eq!(RegionSnapshot::new(export.parts).expect("a snapshot"), snapshot);

        // Again: nothing to do, and nothing is done.
        let again = database.broker.load("test", &snapshot, PLAIN).await.expect("loaded");
        assert!(again.plan.is_empty() && !again.plan.first, "{}", again.plan);
        assert_eq!((again.version, again.seq), (TargetVersion(1), None));
    }
}

#[tokio::test]
async fn export_of_empty_store_is_refused() {
    let database = Database::new().await;
    let error = database.broker.export(None).await.expect_err("empty");
    assert!(matches!(error, ExportError::NothingLoaded));
    assert_eq!(database.broker.last_seq().await.expect("a number"), Seq(0));
}

#[tokio::test]
async fn export_instant_defaults_to_database_clock() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let first = database.broker.export(None).await.expect("exported").parts.taken_at;
    let second = database.broker.export(None).await.expect("exported").parts.taken_at;
    assert!(first > at(0) && second > first);
}

#[tokio::test]
async fn import_writes_only_differences() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let next = changed(|parts| {
        parts.weights.buffer_tau = 7.0;
        parts.servers.push(server(30));
        let s010 = parts.servers.iter_mut().find(|row| row.server_id.as_ref() == "s010");
        let s010 = s010.expect("there");
        s010.current_reservation = Some("web".into());
        s010.power_watts = Some(100.0);
        let web = parts.reservations.iter_mut().find(|row| row.reservation_id.as_ref() == "web");
        web.expect("there").capacity_rru = 9.0;
        let mut batch = reservation("batch", "guaranteed", 1.0);
        (batch.replicas, batch.replicas_per_msb) = (Some(3), Some(2));
        parts.reservations.push(batch);
        let (reservation_id, datacenter) = ("batch".into(), "dc1".into());
        parts.allowed_datacenters.push(AllowedDatacenterRow { reservation_id, datacenter });
        let (reservation_id, hardware_type) = ("batch".into(), "odd".into());
        parts.rru.push(RruRow { reservation_id, hardware_type, rru: 0.5 });
        parts.unavailability[0].ended_at = Some(at(1));
    });
    let plan = database.broker.plan(&next, Coverage::WHOLE).await.expect("planned");
    let loaded = database.broker.load("test", &next, PLAIN).await.expect("loaded");
    assert_eq!(loaded.plan, plan, "what is planned is what is done");
    assert_eq!((plan.servers.added.len(), plan.servers.changed.len()), (1, 1));
    assert_eq!((plan.reservations.added.len(), plan.reservations.changed.len()), (1, 1));
    assert_eq!((plan.unavailability.changed.len(), plan.bindings_changed), (1, 1));
    assert!(plan.weights_changed && !plan.lacks_something() && !plan.contradicts());
    assert_eq!(loaded.version, TargetVersion(2));
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), next);

    // The promise of `web` has a second version, and the first is still there.
    let versions = "SELECT count(*) FROM promises WHERE reservation = 'web'";
    assert_eq!(database.number(versions).await, 2);
    let generation = "SELECT generation FROM servers WHERE server = 's010'";
    assert_eq!(database.number(generation).await, 2);
    let trail = database.broker.trail(Seq(1), 10).await.expect("a trail");
    assert_eq!(trail[0].action, Action::SnapshotLoaded.into());
    assert_eq!(json_of(&trail[0].detail)["servers"]["changed"], 1);
    let of_region = database.broker.trail_of("region-a", Seq(0), 10).await.expect("a trail");
    assert_eq!(of_region.len(), 2);
    assert!(of_region[0].at <= of_region[1].at);
}

/// Shares stored before they were of the capacity counted the buffer: they are kept in proportion.
#[tokio::test]
async fn stored_spread_shares_become_shares_of_capacity() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let shares = "SELECT a.share FROM affinities a JOIN reservations r USING (promise_id) \
        JOIN datacenters d USING (datacenter_id) WHERE r.reservation = 'web' ORDER BY d.datacenter";
    let stored = async || -> Vec<f64> {
        sqlx::query_scalar(shares).fetch_all(&mut database.connect().await).await.expect("read")
    };
    assert_eq!(stored().await, [0.5, 0.25]);
    let wide = "INSERT INTO affinities (promise_id, datacenter_id, share) \
        SELECT r.promise_id, d.datacenter_id, 0.75 FROM reservations r, datacenters d \
        WHERE r.reservation = 'web' AND d.datacenter = 'dc1'";
    database.execute(wide).await;
    let migration = include_str!("../../../migrations/0038_shares_of_capacity.sql");
    database.execute(migration).await;
    let third = 1.0 / 3.0;
    let found = stored().await;
    let near = |(found, wanted): (&f64, f64)| (found - wanted).abs() < 1e-12;
    assert!(found.iter().zip([third, 0.5, third / 2.0]).all(near), "{found:?}");
    // Rows of a promise are what they are again.
    let update = "UPDATE affinities SET share = 0";
    assert!(sqlx::query(update).execute(&mut database.connect().await).await.is_err());
}

#[tokio::test]
async fn import_deletes_nothing_implicitly() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let without = changed(|parts| {
        parts.servers.retain(|row| row.server_id.as_ref() != "s010");
        parts.unavailability.retain(|row| row.event_id.as_ref() != "e1");
    });
    let kept = database.broker.load("test", &without, PLAIN).await.expect("loaded");
    assert_eq!(kept.plan.servers.missing, ["s010".into()]);
    assert_eq!(kept.seq, None, "nothing was to be done");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());

    // A move under way on a server that goes ends with it.
    database
        .execute(
            "INSERT INTO moves (move_id, server_id, server, target_version, state) SELECT \
             gen_random_uuid(), server_id, server, 1, 'pending' FROM servers WHERE server = 's010'",
        )
        .await;
    let remove = ImportOptions { missing: Missing::Remove, ..PLAIN };
    let removed = database.broker.load("test", &without, remove).await.expect("loaded");
    assert!(removed.seq.is_some());
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), without);
    let ended = "SELECT count(*) FROM moves WHERE reason = 'server_removed' AND server = 's010'";
    assert_eq!(database.number(ended).await, 1);
}

#[tokio::test]
async fn import_with_many_missing_rows_needs_force() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let cut = changed(|parts| {
        parts.servers.truncate(20);
        parts.unavailability.clear();
    });
    for options in [PLAIN, ImportOptions { missing: Missing::Remove, ..PLAIN }] {
        let error = database.broker.load("test", &cut, options).await.expect_err("cut short");
        assert_eq!(
            error.to_string(),
            "the snapshot lacks 4 of 24 servers; more than 5 % must be forced"
        );
    }
    let forced = ImportOptions { missing: Missing::Remove, force: true, ..PLAIN };
    database.broker.load("test", &cut, forced).await.expect("forced");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), cut);
}

#[tokio::test]
async fn removed_reservation_keeps_its_promises() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let without = changed(|parts| {
        let web = "web".into();
        for row in &mut parts.servers {
            if row.current_reservation.as_ref() == Some(&web) {
                row.current_reservation = None;
            }
            if row.target_reservation.as_ref() == Some(&web) {
                row.target_reservation = None;
            }
        }
        parts.reservations.retain(|row| row.reservation_id != web);
        parts.rru.retain(|row| row.reservation_id != web);
        parts.affinity.clear();
    });
    let options = ImportOptions {
        missing: Missing::Remove,
        force: true,
        accept_contradictions: true,
        ..PLAIN
    };
    database.broker.load("test", &without, options).await.expect("loaded");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), without);
    // And when it comes back, its promises count on.
    database.broker.load("test", &small(), options).await.expect("loaded");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());
    let versions = "SELECT max(version)::bigint FROM promises WHERE reservation = 'web'";
    assert_eq!(database.number(versions).await, 2);
}

#[tokio::test]
async fn made_buffer_becomes_listed_and_back() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let listed = changed(|parts| {
        parts.reservations.push(reservation("shared-buffer/even", "shared_buffer", 3.0));
        let (reservation_id, hardware_type) = ("shared-buffer/even".into(), "even".into());
        parts.rru.push(RruRow { reservation_id, hardware_type, rru: 1.0 });
    });
    database.broker.load("test", &listed, PLAIN).await.expect("loaded");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), listed);
    // Left out, it would be made again, but it keeps its promise: a snapshot removes nothing by omission.
    let lists = |parts: &SnapshotParts| parts.reservations.len();
    let plan = database.broker.plan(&small(), Coverage::WHOLE).await.expect("planned");
    assert_eq!(plan.reservations.missing.len(), 1);
    let forced = ImportOptions { force: true, ..PLAIN };
    let other = changed(|parts| parts.weights.buffer_tau = 9.0);
    database.broker.load("test", &other, forced).await.expect("loaded");
    assert_eq!(lists(&exported(&database).await), 4);
    let remove = ImportOptions { missing: Missing::Remove, force: true, ..PLAIN };
    database.broker.load("test", &small(), remove).await.expect("loaded");
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());
}

/// A listed buffer that is kept and one that the snapshot makes of the same type cannot both be.
#[tokio::test]
async fn kept_buffer_excludes_a_made_one() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let forced = ImportOptions { force: true, ..PLAIN };
    let unlist = |used: bool| {
        changed(|parts| {
            parts.reservations.retain(|row| row.reservation_id.as_ref() != "odd buffer");
            parts.rru.retain(|row| row.reservation_id.as_ref() != "odd buffer");
            let s023 = parts.servers.iter_mut().find(|row| row.server_id.as_ref() == "s023");
            s023.expect("there").current_reservation = used.then(|| "shared-buffer/odd".into());
            parts.weights.buffer_tau = 9.0;
        })
    };
    let error = database.broker.load("test", &unlist(true), forced).await.expect_err("two");
    assert!(matches!(error, LoadError::KeptBuffer { .. }), "{error}");
    database.broker.load("test", &unlist(false), forced).await.expect("the listed one stays");
    assert_eq!(exported(&database).await.reservations.len(), 3);
    let remove = ImportOptions { missing: Missing::Remove, ..forced };
    database.broker.load("test", &unlist(true), remove).await.expect("removed");
    let snapshot = RegionSnapshot::new(exported(&database).await).expect("a snapshot");
    assert_eq!(snapshot, unlist(true));
}

#[tokio::test]
async fn shared_buffers_may_swap_types() {
    let buffers = |first: &str, second: &str| {
        changed(|parts| {
            parts.servers[8].current_reservation = None;
            parts.reservations.push(reservation("second", "shared_buffer", 1.0));
            parts.rru.retain(|row| row.reservation_id.as_ref() != "odd buffer");
            for (reservation, ty) in [("odd buffer", first), ("second", second)] {
                let (reservation_id, hardware_type) = (reservation.into(), ty.into());
                parts.rru.push(RruRow { reservation_id, hardware_type, rru: 1.0 });
            }
            for row in &mut parts.servers {
                if row.current_reservation.as_deref() == Some("shared-buffer/even") {
                    row.current_reservation = None;
                }
            }
        })
    };
    let database = Database::new().await;
    for snapshot in [buffers("odd", "even"), buffers("even", "odd")] {
        database.broker.load("test", &snapshot, PLAIN).await.expect("loaded");
        assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), snapshot);
    }
}

#[tokio::test]
async fn unstorable_snapshot_is_refused() {
    let database = Database::new().await;
    let mut parts = small_parts();
    parts.servers[1].server_id = "zero\0".into();
    let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
    let error = database.broker.load("test", &snapshot, PLAIN).await.expect_err("zero");
    assert_eq!(error.to_string(), "\"zero\\0\": a name with a zero character cannot be stored");
    let mut parts = small_parts();
    parts.unavailability[0].started_at += chrono::Duration::nanoseconds(1);
    let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
    let error = database.broker.load("test", &snapshot, PLAIN).await.expect_err("too fine");
    assert!(matches!(error, LoadError::Time { .. }), "{error}");
    let error = database.broker.load("", &small(), PLAIN).await.expect_err("no actor");
    assert!(matches!(error, LoadError::Db(_)), "{error}");
    assert_eq!(database.broker.last_seq().await.expect("a number"), Seq(0));
}

#[tokio::test]
async fn import_of_another_region_is_refused() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let other = changed(|parts| parts.region = "region-b".into());
    let options = ImportOptions {
        missing: Missing::Remove,
        force: true,
        accept_contradictions: true,
        ..PLAIN
    };
    let error = database.broker.load("test", &other, options).await.expect_err("another");
    assert!(matches!(error, LoadError::OtherRegion { .. }), "{error}");
}

/// An inventory that knows where servers stand, and nothing of who holds them.
pub fn inventory(change: impl FnOnce(&mut SnapshotParts)) -> RegionSnapshot {
    changed(|parts| {
        for row in &mut parts.servers {
            row.current_reservation = None;
            row.target_reservation = None;
            row.target_pending = false;
            row.in_use = false;
            row.loaned_to = None;
            row.power_watts = None;
        }
        parts.unavailability.clear();
        parts.weights = fleet::Weights::default();
        parts.reservations.clear();
        parts.rru.clear();
        parts.affinity.clear();
        change(parts);
    })
}

#[tokio::test]
async fn unknown_inventory_columns_keep_stored_values() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let places = ImportOptions { coverage: Coverage::PLACES, ..PLAIN };
    let again = database.broker.load("test", &inventory(|_| {}), places).await.expect("loaded");
    assert_eq!(again.seq, None, "{}", again.plan);

    let grown = inventory(|parts| parts.servers.push(server(30)));
    let loaded = database.broker.load("test", &grown, places).await.expect("loaded");
    assert_eq!((loaded.plan.servers.added.len(), loaded.plan.servers.changed.len()), (1, 0));
    assert_eq!((loaded.plan.bindings_changed, loaded.plan.bindings_freed), (0, 0));
    let mut parts = exported(&database).await;
    parts.servers.retain(|row| row.server_id.as_ref() != "s030");
    assert_eq!(RegionSnapshot::new(parts).expect("a snapshot"), small());

    // One column that it knows is taken, and no other.
    let mut coverage = Coverage::PLACES;
    coverage.servers.power_watts = true;
    let watts =
        inventory(|parts| parts.servers.iter_mut().for_each(|row| row.power_watts = Some(7.0)));
    let options = ImportOptions { coverage, ..PLAIN };
    database.broker.load("test", &watts, options).await.expect("loaded");
    let mut parts = exported(&database).await;
    assert!(
        parts
            .servers
            .iter()
            .filter(|row| row.server_id.as_ref() != "s030")
            .all(|row| row.power_watts == Some(7.0))
    );
    parts.servers.retain(|row| row.server_id.as_ref() != "s030");
    for (row, old) in parts.servers.iter_mut().zip(small().to_parts().servers) {
        row.power_watts = old.power_watts;
    }
    assert_eq!(RegionSnapshot::new(parts).expect("a snapshot"), small());
}

#[tokio::test]
async fn unknown_racks_of_inventory_stay() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let places = ImportOptions { coverage: Coverage::PLACES, ..PLAIN };
    let no_racks = inventory(|parts| {
        parts.servers.iter_mut().for_each(|row| row.rack = (*row.msb).into());
    });
    let loaded = database.broker.load("test", &no_racks, places).await.expect("loaded");
    assert_eq!(loaded.seq, None, "{}", loaded.plan);
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());

    // The other way round, a rack that becomes known contradicts nothing.
    let database = Database::new().await;
    let unknown = changed(|parts| {
        parts.servers.iter_mut().for_each(|row| row.rack = (*row.msb).into());
        parts.unavailability.retain(|row| row.scope.as_ref() != "rack");
    });
    database.broker.load("test", &unknown, PLAIN).await.expect("loaded");
    database.broker.load("test", &inventory(|_| {}), places).await.expect("no contradiction");
    let racks: Vec<_> = exported(&database).await.servers.into_iter().map(|row| row.rack).collect();
    assert_eq!(
        racks,
        small().to_parts().servers.into_iter().map(|row| row.rack).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn import_that_drops_bindings_needs_force() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let stored = small().to_parts().servers;
    let stored = stored.iter().filter(|row| row.current_reservation.is_some()).count();
    let freed = changed(|parts| {
        parts.servers.iter_mut().for_each(|row| row.current_reservation = None);
    });
    let error = database.broker.load("test", &freed, PLAIN).await.expect_err("all of them");
    assert_eq!(
        error.to_string(),
        format!("the snapshot lacks {stored} of {stored} bindings; more than 5 % must be forced")
    );
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());
    let forced = ImportOptions { force: true, ..PLAIN };
    database.broker.load("test", &freed, forced).await.expect("forced");
    assert!(exported(&database).await.servers.iter().all(|row| row.current_reservation.is_none()));
}

#[tokio::test]
async fn dropped_reservation_keeps_its_servers() {
    let database = Database::new().await;
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    let coverage =
        Coverage { reservations: Some(fleet::ReservationColumns::NONE), ..Coverage::PLACES };
    // All but `web`, and what is no guaranteed reservation an inventory of requests does not know.
    let dropped = inventory(|parts| {
        let whole = small().to_parts();
        let listed = |name: &fleet::ReservationName| name.as_ref() != "web";
        parts.reservations = whole
            .reservations
            .into_iter()
            .filter(|row| row.kind.as_ref() == "guaranteed" && listed(&row.reservation_id))
            .collect();
        let names: Vec<_> =
            parts.reservations.iter().map(|row| row.reservation_id.clone()).collect();
        parts.rru =
            whole.rru.into_iter().filter(|row| names.contains(&row.reservation_id)).collect();
    });
    let options = ImportOptions { coverage, force: true, ..PLAIN };
    let loaded = database.broker.load("test", &dropped, options).await.expect("loaded");
    assert_eq!(loaded.plan.reservations.missing, ["web".into()]);
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());
    let remove = ImportOptions { missing: Missing::Remove, ..options };
    let error = database.broker.load("test", &dropped, remove).await.expect_err("held");
    assert!(
        error.to_string().starts_with("reservation \"web\" is missing in the inventory and"),
        "{error}"
    );
    assert_eq!(RegionSnapshot::new(exported(&database).await).expect("a snapshot"), small());
}

/// A name of before the rule stays; a new one follows it.
#[tokio::test]
async fn new_names_in_a_snapshot_follow_the_rule() {
    let database = Database::new().await;
    type Rename = fn(&mut SnapshotParts);
    let renames: [(&str, Rename); 6] = [
        ("region", |parts| parts.region = "..".into()),
        ("server", |parts| parts.servers[0].server_id = "..".into()),
        ("rack", |parts| parts.servers[0].rack = "a//b".into()),
        ("hardware type", |parts| {
            let old = parts.servers[1].hardware_type.clone();
            let servers = parts.servers.iter_mut().map(|row| &mut row.hardware_type);
            let values = parts.rru.iter_mut().map(|row| &mut row.hardware_type);
            servers.chain(values).filter(|ty| **ty == old).for_each(|ty| *ty = "a\nb".into());
        }),
        ("owner", |parts| parts.reservations[0].owner = " a".into()),
        ("host profile", |parts| {
            let mut rows = parts.reservations.iter_mut();
            let row = rows.find(|row| &*row.kind == "guaranteed").expect("one");
            row.host_profile = Some("\u{1b}[31m".into());
        }),
    ];
    for (what, rename) in renames {
        let mut parts = small_parts();
        rename(&mut parts);
        let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
        let error = database.broker.load("test", &snapshot, PLAIN).await.expect_err(what);
        let said = error.to_string();
        assert!(said.starts_with(what) && said.ends_with(fleet::NAME_RULE), "{what}: {said}");
    }
    database.broker.load("test", &small(), PLAIN).await.expect("loaded");
    database
        .execute("SET session_replication_role = replica; UPDATE racks SET rack = '..' WHERE rack_id = 1")
        .await;
    let mut parts = exported(&database).await;
    parts.servers[0].power_watts = Some(7.0);
    let snapshot = RegionSnapshot::new(parts).expect("a snapshot");
    assert!(snapshot.racks.iter().any(|rack| &*rack.id == ".."));
    database.broker.load("test", &snapshot, PLAIN).await.expect("its rack was there");
}
