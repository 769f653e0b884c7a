//! Publishing targets.

use crate::harness::Database;
use crate::regions::{at, generated, reservation, server, small, small_parts};
use broker::{
    Action, Cause, Export, Fault, ImportOptions, Lease, Publication, PublicationId, PublishError,
    Published, Report, Reported, Seq, SolveEnd, SolveId, TargetRow, TargetVersion, Withheld,
};
use chrono::DateTime;
use fleet::{
    RegionSnapshot, ReservationName, ReservationRow, RruRow, Scope, ServerRow, SnapshotParts,
    Targets, UnavailabilityKind, Weights,
};
use testkit::postgres::json_of;

pub fn target(server: &str, generation: i64, target: Option<&str>) -> TargetRow {
    TargetRow { server: server.into(), generation, target: target.map(Into::into) }
}

pub fn publication(id: u128, parent: i64, targets: Vec<TargetRow>) -> Publication {
    let (id, parent) = (PublicationId::from_u128(id), TargetVersion(parent));
    Publication { id, parent, solve: None, targets }
}

async fn with_small() -> Database {
    let database = Database::new().await;
    let options = ImportOptions::default();
    database.broker.load("test", &small(), options).await.expect("loaded");
    database
}

async fn export(database: &Database) -> Export {
    database.broker.export(Some(at(0))).await.expect("exported")
}

/// Owner, move under way and target of a server.
async fn binding(
    database: &Database,
    server: &str,
) -> (Option<ReservationName>, bool, Option<ReservationName>) {
    let parts = export(database).await.parts;
    let row = parts.servers.into_iter().find(|row| row.server_id.as_ref() == server);
    let row = row.expect("a server");
    (row.current_reservation, row.target_pending, row.target_reservation)
}

#[tokio::test]
async fn published_targets_become_pending() {
    let database = with_small().await;
    let web = Some(ReservationName::from("web"));
    let published = database
        .broker
        .publish(
            "solver",
            &publication(
                1,
                1,
                vec![
                    target("s000", 1, None),
                    target("s010", 1, Some("web")),
                    // A pending move to web returns to free, and the other way round.
                    target("s006", 1, None),
                    target("s007", 1, Some("web")),
                ],
            ),
        )
        .await
        .expect("published");
    let version = TargetVersion(2);
    assert_eq!(
        published,
        Published {
            version,
            taken: 4,
            skipped: 0,
            skipped_servers: vec![],
            kept_back: 0,
            kept_back_servers: vec![],
            seq: Some(Seq(2)),
        }
    );
    assert_eq!(binding(&database, "s000").await, (web.clone(), true, None));
    assert_eq!(binding(&database, "s010").await, (None, true, web.clone()));
    assert_eq!(binding(&database, "s006").await, (None, false, None));
    assert_eq!(binding(&database, "s007").await, (web, false, None));
    assert_eq!(database.broker.version().await.expect("a version"), version);
    let entry = database.broker.trail(Seq(1), 1).await.expect("a trail").remove(0);
    assert_eq!(
        (entry.action.as_str(), entry.actor.as_str()),
        (Action::TargetsPublished.as_str(), "solver")
    );
    assert_eq!(
        (entry.subject.as_deref(), &json_of(&entry.detail)["taken"]),
        (Some("2"), &4.into())
    );
}

#[tokio::test]
async fn published_solve_is_in_the_next_snapshot() {
    let database = Database::new().await;
    let snapshot = generated(3);
    database.broker.load("test", &snapshot, ImportOptions::default()).await.expect("loaded");
    let export_before = export(&database).await;
    let snapshot = RegionSnapshot::new(export_before.parts.clone()).expect("a snapshot");
    // Every third server changes places with its neighbour.
    let mut holders = Targets::unchanged(&snapshot).holders().to_vec();
    for position in (0..holders.len() - 1).step_by(3) {
        holders.swap(position, position + 1);
    }
    let targets = Targets::new(&snapshot, holders);
    let publication = Publication::new(
        PublicationId::from_u128(7),
        export_before.version,
        &export_before.generations,
        &snapshot,
        &targets,
    );
    assert!(publication.targets.len() > 100, "{}", publication.targets.len());
    let published = database.broker.publish("solver", &publication).await.expect("published");
    assert_eq!(published.taken, publication.targets.len() as u64);
    let after = RegionSnapshot::new(export(&database).await.parts).expect("a snapshot");
    assert_eq!(Targets::unchanged(&after), targets, "who holds what is what was published");
    let moved = (after.servers.iter().zip(&snapshot.servers)).all(|(a, b)| a.current == b.current);
    assert!(moved, "and no server was moved yet");
}

#[tokio::test]
async fn stale_parent_is_refused() {
    let database = with_small().await;
    let free = || vec![target("s000", 1, None)];
    for parent in [0, 2, 77, -1, i64::MAX - 1] {
        let refused = database.broker.publish("solver", &publication(1, parent, free())).await;
        let error = refused.expect_err("not the head");
        let head = TargetVersion(1);
        let expected = TargetVersion(parent);
        let is_stale = matches!(error, PublishError::Stale { parent, head: h } if parent == expected && h == head);
        assert!(is_stale, "{parent}: {error}");
    }
    database.broker.publish("solver", &publication(1, 1, free())).await.expect("published");
    let error = database.broker.publish("solver", &publication(2, 1, free())).await;
    let error = error.expect_err("second");
    assert_eq!(error.to_string(), "the targets were made on version 1; the region is at 2");
    assert_eq!(
        database.broker.last_seq().await.expect("a number"),
        Seq(2),
        "refusals leave no entry"
    );
}

#[tokio::test]
async fn changed_servers_are_skipped_and_counted() {
    let database = with_small().await;
    // An emergency took one, another was removed, a third moved and came back.
    database
        .execute(
            "UPDATE servers SET current_reservation_id = \
                 (SELECT reservation_id FROM reservations WHERE reservation = 'web') WHERE server = 's011'; \
             DELETE FROM servers WHERE server = 's012'; \
             UPDATE servers SET current_reservation_id = NULL WHERE server = 's001'; \
             UPDATE servers SET current_reservation_id = \
                 (SELECT reservation_id FROM reservations WHERE reservation = 'web') WHERE server = 's001'",
        )
        .await;
    let rows = ["s001", "s011", "s012", "s013"].map(|server| target(server, 1, None));
    let mut rows = rows.to_vec();
    // The audit allows it without the others.
    rows[3].target = Some("odd buffer".into());
    let publication = publication(1, 1, rows);
    let published = database.broker.publish("solver", &publication).await.expect("published");
    assert_eq!((published.taken, published.skipped), (1, 3));
    assert_eq!(published.skipped_servers, ["s001".into(), "s011".into(), "s012".into()]);
    let web = Some(ReservationName::from("web"));
    assert_eq!(binding(&database, "s001").await, (web, false, None));
    let buffer = Some(ReservationName::from("odd buffer"));
    assert_eq!(binding(&database, "s013").await, (None, true, buffer));
    let kept = "SELECT count(*) FROM target_changes WHERE version = 2 AND NOT taken";
    assert_eq!(database.number(kept).await, 3);
}

/// A commit whose answer was lost: asking again says what happened, and does nothing.
#[tokio::test]
async fn repeated_publication_takes_effect_once() {
    let database = with_small().await;
    let publication = publication(1, 1, vec![target("s000", 1, None), target("s001", 9, None)]);
    let first = database.broker.publish("solver", &publication).await.expect("published");
    let again = database.broker.publish("solver", &publication).await.expect("published before");
    assert_eq!(again, Published { seq: None, ..first });
    assert_eq!(database.broker.version().await.expect("a version"), TargetVersion(2));
    assert_eq!(database.broker.last_seq().await.expect("a number"), Seq(2));
}

#[tokio::test]
async fn invalid_targets_are_refused_as_a_whole() {
    let database = with_small().await;
    let rows = vec![target("s000", 1, None), target("s013", 1, Some("unknown"))];
    let error = database.broker.publish("solver", &publication(1, 1, rows)).await;
    let error = error.expect_err("unknown");
    assert_eq!(
        error.to_string(),
        "server \"s013\": its target \"unknown\" is not a reservation of the region"
    );
    let rows = vec![target("s000", 1, None), target("s000", 1, Some("web"))];
    let error = database.broker.publish("solver", &publication(1, 1, rows)).await;
    assert!(matches!(error.expect_err("two"), PublishError::Twice { .. }));
    assert_eq!(database.broker.version().await.expect("a version"), TargetVersion(1));
    assert_eq!(binding(&database, "s000").await, (Some("web".into()), false, None));
}

#[tokio::test]
async fn publication_creates_missing_shared_buffer() {
    let database = with_small().await;
    let before = "SELECT count(*) FROM reservations WHERE reservation = 'shared-buffer/none yet'";
    assert_eq!(database.number(before).await, 0);
    let rows = vec![target("s013", 1, Some("shared-buffer/none yet"))];
    database.broker.publish("solver", &publication(1, 1, rows)).await.expect("published");
    let buffer: ReservationName = "shared-buffer/none yet".into();
    assert_eq!(binding(&database, "s013").await, (None, true, Some(buffer)));
    let parts = export(&database).await.parts;
    assert_eq!(parts.reservations.len(), 3, "it is still not a listed one");
    RegionSnapshot::new(parts).expect("a snapshot");
    let rows = vec![target("s013", 1, Some("shared-buffer/unheard of"))];
    let error = database.broker.publish("solver", &publication(2, 2, rows)).await;
    assert!(matches!(error.expect_err("no type"), PublishError::UnknownReservation { .. }));
}

#[tokio::test]
async fn solve_publishes_only_while_running() {
    let database = with_small().await;
    let solve = SolveId::from_u128(5);
    database
        .execute(&format!(
            "INSERT INTO solves (solve_id, state, cause, parent) VALUES ('{solve}', 'requested', 'schedule', 1); \
             INSERT INTO jobs (job_id, kind, task, state) VALUES ('{solve}', 'solve', '{{}}', 'waiting'); \
             UPDATE jobs SET state = 'running', attempt = 1, worker = 'w', lease_until = now()"
        ))
        .await;
    let mut publication = publication(1, 1, vec![target("s000", 1, None)]);
    publication.solve = Some(SolveEnd {
        lease: Lease { job: solve.into(), attempt: 1 },
        result_url: String::new(),
        report: broker::Document::of(&serde_json::json!({})),
    });
    let error = database.broker.publish("solver", &publication).await.expect_err("not running");
    assert!(matches!(error, PublishError::SolveNotRunning { .. }), "{error}");
    assert_eq!(database.broker.version().await.expect("a version"), TargetVersion(1));
    database.execute("UPDATE solves SET state = 'running'").await;
    database.broker.publish("solver", &publication).await.expect("published");
    let published = "SELECT version FROM solves WHERE state = 'published'";
    assert_eq!(database.number(published).await, 2);
}

#[tokio::test]
async fn read_only_server_is_reported() {
    let database = with_small().await;
    let name = database.broker.database().await.expect("a name");
    database
        .execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"))
        .await;
    let broker = broker::Broker::connect(&database.address, 2).await.expect("connected");
    let publication = publication(1, 1, vec![target("s000", 1, None)]);
    let error = broker.publish("solver", &publication).await.expect_err("read-only");
    let PublishError::Db(error) = error else { panic!("{error}") };
    assert_eq!(error.fault, Fault::ReadOnly);
    assert_eq!(error.to_string(), "adding a version of the targets: Postgres is read-only");
    broker.export(None).await.expect("reading still works");
}

/// Twelve servers of one type, no buffers: `web` holds four and is promised four RRU, `batch` is
/// promised two and holds none.
async fn with_two_owners() -> Database {
    let row = |id: &str, capacity| ReservationRow {
        msb_buffer: false,
        msb_alpha: None,
        ..reservation(id, "guaranteed", capacity)
    };
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "even".into(), rru: 1.0 };
    let servers = (0..12).map(|number| ServerRow {
        current_reservation: (number < 4).then(|| "web".into()),
        hardware_type: "even".into(),
        ..server(number)
    });
    let parts = SnapshotParts {
        shared_buffer_fraction: Some(0.0),
        weights: Weights::default(),
        servers: servers.collect(),
        reservations: vec![row("web", 4.0), row("batch", 2.0), row("other", 0.0)],
        rru: vec![value("web"), value("batch"), value("other")],
        affinity: Vec::new(),
        unavailability: Vec::new(),
        ..small_parts()
    };
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let database = Database::new().await;
    database.broker.load("test", &region, ImportOptions::default()).await.expect("loaded");
    database
}

/// Servers that a reservation holds once all moves are carried out, counted by hand.
async fn held(database: &Database, reservation: &str) -> usize {
    let rows = export(database).await.parts.servers;
    let holder = |row: &ServerRow| match row.target_pending {
        true => row.target_reservation.clone(),
        false => row.current_reservation.clone(),
    };
    rows.iter().filter(|row| holder(row).as_deref() == Some(reservation)).count()
}

/// The solve gives `batch` a server of `web`, and `web` a free one in its place, which another reservation
/// holds at the publication: without it `web` would have three servers for four RRU.
#[tokio::test]
async fn targets_broken_by_a_skip_are_withheld() {
    let database = with_two_owners().await;
    let moved = "UPDATE servers SET current_reservation_id = \
        (SELECT reservation_id FROM reservations WHERE reservation = 'other') WHERE server = 's009'";
    database.execute(moved).await;
    let rows = vec![
        target("s000", 1, Some("batch")),
        target("s009", 1, Some("web")),
        target("s010", 1, Some("batch")),
    ];
    let first = publication(1, 1, rows.clone());
    let published = database.broker.publish("solver", &first).await.expect("published");
    assert_eq!((held(&database, "web").await, held(&database, "batch").await), (4, 1));
    assert_eq!((published.taken, published.skipped, published.kept_back), (1, 1, 1));
    let Withheld { server, why } = &published.kept_back_servers[0];
    assert_eq!(server.as_ref(), "s000");
    assert_eq!(why, "reservation \"web\" would be 1 RRU short; today it is 0");
    let entry = database.broker.trail(Seq(1), 1).await.expect("a trail").remove(0);
    assert_eq!(json_of(&entry.detail)["kept_back"], 1);
    let again = database.broker.publish("solver", &first).await.expect("published before");
    assert_eq!(again, Published { seq: None, ..published });

    // Nothing else is in it: it is refused, and changes nothing.
    let before = (database.broker.version().await, database.broker.last_seq().await);
    let second = publication(2, 2, rows[..2].to_vec());
    let error = database.broker.publish("solver", &second).await.expect_err("nothing is left");
    assert_eq!(
        error.to_string(),
        "1 servers moved since the snapshot, and without them the targets break a rule: reservation \
         \"web\" would be 1 RRU short; today it is 0"
    );
    let after = (database.broker.version().await, database.broker.last_seq().await);
    assert_eq!(
        (after.0.expect("read"), after.1.expect("read")),
        (before.0.expect("read"), before.1.expect("read"))
    );
    assert_eq!(binding(&database, "s000").await, (Some("web".into()), false, None));
}

/// A server of `web` fails, and a solve that begins then replaces it by one that `other` uses. Another server goes to
/// `web` besides. If the failed server is back before the solve ends, `web` has all it was promised: the move is
/// withheld, as much as is back and no more.
#[tokio::test]
async fn targets_that_replace_returned_servers_are_withheld() {
    for is_back in [true, false] {
        let database = with_two_owners().await;
        database
            .execute(
                "UPDATE servers SET in_use = true, current_reservation_id = \
                    (SELECT reservation_id FROM reservations WHERE reservation = 'other') \
                 WHERE server = 's008'",
            )
            .await;
        let report = |ended_at| Report {
            event: "fire".into(),
            scope: Scope::Server,
            scope_id: "s000".into(),
            kind: UnavailabilityKind::Software,
            started_at: at(0),
            ended_at,
        };
        let now = database.broker.clock().await.expect("the time");
        let told = database.broker.report_unavailability("test", &[report(None)]).await;
        assert_eq!(told.expect("reported").rows, [Reported::Recorded]);
        let solve = SolveId::from_u128(5);
        let seq = database.broker.last_seq().await.expect("a number");
        database
            .execute(&format!(
                "INSERT INTO solves (solve_id, state, cause, parent, seq) \
                    VALUES ('{solve}', 'requested', 'schedule', 1, {seq}); \
                 UPDATE solves SET state = 'running'; \
                 INSERT INTO jobs (job_id, kind, task, state) VALUES ('{solve}', 'solve', '{{}}', 'waiting'); \
                 UPDATE jobs SET state = 'running', attempt = 1, worker = 'w', lease_until = now()"
            ))
            .await;
        if is_back {
            let told = database.broker.report_unavailability("test", &[report(Some(now))]).await;
            assert_eq!(told.expect("reported").rows, [Reported::Ended]);
        }
        let generations = export(&database).await;
        let generation = |name: &str| {
            let rows = generations.parts.servers.iter().zip(&generations.generations);
            *rows.into_iter().find(|(row, _)| &*row.server_id == name).expect("a server").1
        };
        let rows = ["s008", "s009"].map(|name| target(name, generation(name), Some("web")));
        let mut publication = publication(1, 1, rows.into());
        publication.solve = Some(SolveEnd {
            lease: Lease { job: solve.into(), attempt: 1 },
            result_url: String::new(),
            report: broker::Document::of(&serde_json::json!({})),
        });
        let published = database.broker.publish("solver", &publication).await.expect("published");
        let (taken, kept) = if is_back { (1, 1) } else { (2, 0) };
        assert_eq!((published.taken, published.kept_back), (taken, kept), "{published:?}");
        let web = Some(ReservationName::from("web"));
        assert_eq!(binding(&database, "s009").await.2, web);
        let (owner, moves, _) = binding(&database, "s008").await;
        assert_eq!((owner.as_deref(), moves), (Some("other"), !is_back));
        if is_back {
            let Withheld { server, why } = &published.kept_back_servers[0];
            assert_eq!(&**server, "s008");
            assert!(why.contains("\"web\" are back since the solve began"), "{why}");
        }
        // The next solve is of the region as it is, and need not wait for its schedule.
        let solves = database.broker.solves(DateTime::UNIX_EPOCH, 10).await.expect("read");
        let asked: Vec<Cause> =
            solves.iter().filter(|of| of.id != solve).map(|of| of.cause).collect();
        if is_back {
            assert_eq!(asked, [Cause::Event]);
        } else {
            assert_eq!(asked, []);
        }
    }
}
