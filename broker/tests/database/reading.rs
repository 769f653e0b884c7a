//! Reading while others write: lists of servers, and snapshots of one instant.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::{at, generated, small};
use broker::{ImportOptions, PAGE_MAX, ReservationError};
use fleet::RegionSnapshot;

#[tokio::test]
async fn reservation_lists_its_servers() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let rows = vec![target("s001", 1, None), target("s002", 1, Some("odd buffer"))];
    broker.publish("test", &publication(1, 1, rows)).await.expect("published");
    let held = broker.servers_of("web", "", PAGE_MAX).await.expect("listed");
    let names: Vec<&str> = held.iter().map(|server| server.server.as_ref()).collect();
    assert_eq!(names, ["s000", "s001", "s002", "s004", "s005", "s007", "tab new/line.N ü"]);
    assert_eq!(held[0].leaves_for, None);
    assert_eq!(held[1].leaves_for, Some(None));
    assert_eq!(held[2].leaves_for, Some(Some("odd buffer".into())));
    let first = &held[0];
    let place = [&*first.datacenter, &*first.msb, &*first.rack, &*first.hardware_type];
    assert_eq!(place, ["dc0", "msb0", "rack0", "even"]);
    assert!(first.in_use && first.generation == 1);
    let lent = broker.servers_of("shared-buffer/even", "", 10).await.expect("listed");
    assert_eq!(lent[0].loaned_to.as_deref(), Some("spare"));
    assert!(broker.servers_of("odd buffer", "", 10).await.expect("listed").is_empty());
    let error = broker.servers_of("unknown", "", 10).await.expect_err("unknown");
    assert!(matches!(error, ReservationError::Unknown { .. }), "{error}");
}

#[tokio::test]
async fn lists_are_paged() {
    let database = Database::new().await;
    let snapshot = generated(4);
    database.broker.load("test", &snapshot, ImportOptions::default()).await.expect("loaded");
    for (position, reservation) in snapshot.reservations.iter().enumerate() {
        let current = |server: &&fleet::Server| server.current.is_some_and(|r| r.ix() == position);
        let expected: Vec<&str> =
            snapshot.servers.iter().filter(current).map(|server| server.id.as_ref()).collect();
        let (mut found, mut after) = (Vec::new(), String::new());
        loop {
            let page =
                database.broker.servers_of(&reservation.id, &after, 7).await.expect("listed");
            let Some(last) = page.last() else { break };
            assert!(page.len() <= 7);
            after = last.server.to_string();
            found.extend(page.into_iter().map(|server| server.server));
        }
        assert_eq!(found.iter().map(AsRef::as_ref).collect::<Vec<_>>(), expected);
    }
}

/// Publications flip a pair of servers together; no snapshot ever sees one without the other, and
/// each contains exactly the entries of the trail it says.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_is_of_one_instant() {
    let database = Database::new().await;
    let broker = database.broker.clone();
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let writer = tokio::spawn(async move {
        for version in 1..40 {
            let to = (version % 2 == 0).then_some("web");
            let rows = vec![target("s010", 1, to), target("s023", 1, to)];
            let id = u128::try_from(version).expect("positive");
            broker.publish("flip", &publication(id, version, rows)).await.expect("published");
        }
    });
    let mut seen = 0;
    while !writer.is_finished() {
        let export = database.broker.export(Some(at(0))).await.expect("exported");
        assert_eq!(export.version.0, export.seq.0, "one entry for each version");
        let holder = |server: &str| {
            let row = export.parts.servers.iter().find(|row| row.server_id.as_ref() == server);
            row.expect("there").target_reservation.clone()
        };
        assert_eq!(holder("s010"), holder("s023"));
        assert_eq!(holder("s010").is_some(), export.version.0 % 2 == 1 && export.version.0 > 1);
        RegionSnapshot::new(export.parts).expect("a snapshot");
        seen += 1;
    }
    writer.await.expect("it ends");
    assert!(seen > 3, "{seen}");
}
