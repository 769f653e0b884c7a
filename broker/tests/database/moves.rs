//! Moves: opened, superseded, bound, given up; and that only the mover that acts can do it.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::small;
use broker::{
    EndedMoves, Epoch, ImportOptions, Machine, MoveOrigin, MoveReason, MoveState, MoverError,
    MoverInstance, OpenMove, Opened, State as _, Stopped, StuckCount,
};
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::postgres::json_of;

const LONG: Duration = Duration::from_secs(600);

/// The small region, with two open moves: s006 to web, s007 to free.
async fn with_small() -> (Database, Epoch) {
    let database = Database::new().await;
    let loaded = database.broker.load("test", &small(), ImportOptions::default()).await;
    loaded.expect("loaded");
    let epoch =
        lease(&database, &MoverInstance::new("mover")).await.expect("no other mover is active");
    (database, epoch)
}

async fn lease(database: &Database, mover: &MoverInstance) -> Option<Epoch> {
    database.broker.lease_mover(mover, LONG).await.expect("asked")
}

async fn under_way(database: &Database) -> Vec<OpenMove> {
    let mut moves = database.broker.moves_under_way().await.expect("listed");
    moves.sort_by(|a, b| a.server.cmp(&b.server));
    moves
}

async fn publish(database: &Database, number: u128, parent: i64, server: &str, to: Option<&str>) {
    let sql = format!("SELECT generation FROM servers WHERE server = '{server}'");
    let generation = database.number(&sql).await;
    let publication = publication(number, parent, vec![target(server, generation, to)]);
    let published = database.broker.publish("test", &publication).await.expect("published");
    assert_eq!(published.taken, 1);
}

async fn open(database: &Database, epoch: Epoch) -> Opened {
    database.broker.open_moves("mover", epoch, broker::Wanted::All).await.expect("opened")
}

async fn stopped(database: &Database) -> Option<Stopped> {
    database.broker.mover_status().await.expect("asked").stopped
}

async fn at_rest(database: &Database) {
    assert_eq!(database.broker.check().await.expect("asked"), [""; 0]);
    assert!(database.broker.trail_is_whole().await.expect("asked"));
}

#[tokio::test]
async fn targets_become_moves_and_then_owners() {
    let (database, epoch) = with_small().await;
    assert_eq!(open(&database, epoch).await, Opened { opened: 2, superseded: 0 });
    assert_eq!(open(&database, epoch).await, Opened::default(), "again: nothing");
    let moves = under_way(&database).await;
    let brief: Vec<_> = moves
        .iter()
        .map(|m| (&*m.server, m.source.as_deref(), m.target.as_deref(), m.host_profile.as_deref()))
        .collect();
    assert_eq!(
        brief,
        [("s006", None, Some("web"), Some("profile")), ("s007", Some("web"), None, None)]
    );
    assert!(moves.iter().all(|m| m.state == MoveState::Pending && m.origin == MoveOrigin::Targets));
    assert_eq!((&*moves[0].rack, &*moves[0].msb), ("rack1", "msb0"));

    let broker = &database.broker;
    let id = moves[0].id;
    database
        .execute("UPDATE moves SET state_at = state_at - interval '3 h' WHERE server = 's006'")
        .await;
    let read = broker.metrics().await.expect("read");
    assert_eq!(read.moves, BTreeMap::from([(MoveState::Pending, 2)]));
    let stuck = broker.stuck().await.expect("read");
    assert_eq!(
        stuck.iter().map(|of| (of.machine, &*of.subject)).collect::<Vec<_>>(),
        [(Machine::Moves, "s006")]
    );
    let pending =
        StuckCount { machine: Machine::Moves, state: MoveState::Pending.as_str(), count: 1 };
    assert!(read.stuck.contains(&pending), "{:?}", read.stuck);
    assert!(read.mover_acts && !read.mover_stopped);
    let now = broker.clock().await.expect("asked");
    assert!(under_way(&database).await[0].is_stuck(now) && !moves[1].is_stuck(now));
    let step = [(id, MoveState::Pending, MoveState::Reconfiguring)];
    let advanced = broker.advance_moves(epoch, &step).await.expect("advanced");
    assert!(advanced.keys().eq([&id]));
    // A move in another state than assumed is not returned.
    assert!(broker.advance_moves(epoch, &step).await.expect("asked").is_empty());
    let ids = [id, moves[1].id];
    assert_eq!(broker.bind_moves("mover", epoch, &ids).await.expect("bound"), ids);
    assert!(broker.bind_moves("mover", epoch, &ids).await.expect("asked").is_empty());
    let owner = |server: &str| {
        let owned = "count(*) FILTER (WHERE reservation = 'web' AND NOT target_pending)";
        format!(
            "SELECT {owned} FROM servers LEFT JOIN reservations \
             ON reservation_id = current_reservation_id WHERE server = '{server}'"
        )
    };
    assert_eq!(database.number(&owner("s006")).await, 1);
    assert_eq!(database.number(&owner("s007")).await, 0);
    let trail = broker.trail_of("s006", broker::Seq(0), 10).await.expect("read");
    assert_eq!(trail.len(), 1);
    assert_eq!(
        (trail[0].action.as_str(), &json_of(&trail[0].detail)["target"]),
        ("server_bound", &"web".into())
    );
    let begun = broker.recently_begun(LONG).await.expect("counted");
    assert_eq!(begun.iter().map(|(_, count)| count).sum::<u64>(), 2);
    assert!(broker.metrics().await.expect("read").moves.is_empty());
    assert_eq!(
        broker.moves_ended().await.expect("counted"),
        [EndedMoves { state: MoveState::Bound, reason: None, count: 2 }]
    );
    assert!(under_way(&database).await.is_empty());
    at_rest(&database).await;
}

#[tokio::test]
async fn newer_target_supersedes_and_restores() {
    let (database, epoch) = with_small().await;
    let broker = &database.broker;
    open(&database, epoch).await;
    let moves = under_way(&database).await;
    let (to_web, away) = (moves[0].id, moves[1].id);
    let step = [(away, MoveState::Pending, MoveState::CleaningUp)];
    broker.advance_moves(epoch, &step).await.expect("advanced");
    // s006 becomes free, which it is; s007 stays with web after all.
    publish(&database, 1, 1, "s006", None).await;
    publish(&database, 2, 2, "s007", Some("web")).await;
    assert!(broker.bind_moves("mover", epoch, &[to_web, away]).await.expect("asked").is_empty());
    assert_eq!(open(&database, epoch).await, Opened { opened: 1, superseded: 2 });
    let restore = under_way(&database).await.remove(0);
    assert_eq!((&*restore.server, restore.origin), ("s007", MoveOrigin::Restore));
    assert_eq!((restore.source.as_deref(), restore.target.as_deref()), (Some("web"), Some("web")));
    // Before that is done, it is wanted elsewhere, twice.
    publish(&database, 3, 3, "s007", None).await;
    assert_eq!(open(&database, epoch).await, Opened { opened: 1, superseded: 1 });
    publish(&database, 4, 4, "s007", Some("odd buffer")).await;
    assert_eq!(open(&database, epoch).await, Opened { opened: 1, superseded: 1 });
    let last = under_way(&database).await.remove(0);
    assert_eq!((last.target.as_deref(), last.version.0), (Some("odd buffer"), 5));
    assert_eq!(broker.bind_moves("mover", epoch, &[last.id]).await.expect("bound"), [last.id]);
    at_rest(&database).await;
}

#[tokio::test]
async fn failed_move_leaves_server_with_its_owner() {
    let (database, epoch) = with_small().await;
    let broker = &database.broker;
    open(&database, epoch).await;
    let moves = under_way(&database).await;
    for (m, reason, state) in [
        (&moves[0], MoveReason::HostRefused, "failed"),
        (&moves[1], MoveReason::TookTooLong, "expired"),
    ] {
        let give_up = async || {
            broker.give_move_up("mover", epoch, m.id, reason, "no power").await.expect("asked")
        };
        assert!(give_up().await);
        assert!(!give_up().await, "it has ended");
        let count = format!(
            "SELECT count(*) FROM moves WHERE state = '{state}' AND detail = 'no power' \
             AND server = '{}'",
            m.server
        );
        assert_eq!(database.number(&count).await, 1);
    }
    assert_eq!(database.number("SELECT count(*) FROM servers WHERE target_pending").await, 0);
    assert_eq!(open(&database, epoch).await, Opened::default(), "nothing is tried again by itself");
    at_rest(&database).await;
}

#[tokio::test]
async fn outdated_mover_writes_nothing() {
    let (database, before) = with_small().await;
    let broker = &database.broker;
    broker.release_mover(before).await.expect("released");
    // Under one name: a lease belongs to an instance.
    let [one, other, third, fourth] = ["mover"; 4].map(MoverInstance::new);
    let first = lease(&database, &one).await.expect("it is free");
    assert_eq!(first.0, before.0 + 1);
    assert_eq!(lease(&database, &one).await, Some(first), "renewed");
    assert_eq!(lease(&database, &other).await, None, "one at a time");
    open(&database, first).await;
    let id = under_way(&database).await[0].id;
    let status = broker.mover_status().await.expect("asked");
    assert_eq!((status.epoch, status.acting.as_deref()), (first, Some("mover")));
    database.execute("UPDATE mover SET lease_until = clock_timestamp() - interval '1 s'").await;
    assert_eq!(broker.mover_status().await.expect("asked").acting, None);
    let second = lease(&database, &other).await.expect("the lease ran out");
    assert_eq!(second.0, first.0 + 1);
    assert_eq!(lease(&database, &one).await, None);
    let step = [(id, MoveState::Pending, MoveState::Preempting)];
    for refused in [
        broker.open_moves("first", first, broker::Wanted::All).await.map(|_| ()),
        broker.advance_moves(first, &step).await.map(|_| ()),
        broker.bind_moves("first", first, &[id]).await.map(|_| ()),
        broker.give_move_up("first", first, id, MoveReason::TookTooLong, "").await.map(|_| ()),
    ] {
        assert!(matches!(refused, Err(MoverError::TakenOver)), "{refused:?}");
    }
    assert_eq!(under_way(&database).await[0].state, MoveState::Pending);
    broker.advance_moves(second, &step).await.expect("advanced");
    broker.release_mover(second).await.expect("released");
    assert_eq!(lease(&database, &third).await, Some(Epoch(second.0 + 1)), "at once");
    // By a clock that was a day ahead and has been set back.
    database.execute("UPDATE mover SET lease_until = clock_timestamp() + interval '1 day'").await;
    assert_eq!(lease(&database, &fourth).await, Some(Epoch(second.0 + 2)), "it does not count");
    at_rest(&database).await;
}

#[tokio::test]
async fn stop_switch_is_set_once_and_recorded() {
    let (database, _) = with_small().await;
    let broker = &database.broker;
    assert_eq!(stopped(&database).await, None);
    assert!(broker.resume_mover("ann").await.expect("asked").is_none(), "it is not pulled");
    assert!(broker.stop_mover("ann", "power work").await.expect("stopped").is_some());
    assert!(broker.stop_mover("bob", "me too").await.expect("asked").is_none());
    let pulled = stopped(&database).await.expect("it is pulled");
    assert_eq!((pulled.by.as_str(), pulled.why.as_str()), ("ann", "power work"));
    assert!(broker.resume_mover("bob").await.expect("resumed").is_some());
    assert_eq!(stopped(&database).await, None);
    at_rest(&database).await;
}

/// A decision may take longer than the lease: what it holds must not keep the mover from renewing.
#[tokio::test]
async fn running_decision_blocks_takeover_not_renewal() {
    let (database, before) = with_small().await;
    let broker = &database.broker;
    broker.release_mover(before).await.expect("released");
    let [one, other] = ["one", "other"].map(MoverInstance::new);
    let epoch = lease(&database, &one).await.expect("it is free");
    let mut deciding = database.connect().await;
    let still_ours = "SELECT EXISTS (SELECT FROM mover WHERE epoch = $1 FOR KEY SHARE)";
    sqlx::raw_sql("BEGIN").execute(&mut deciding).await.expect("begun");
    let ours: bool =
        sqlx::query_scalar(still_ours).bind(epoch.0).fetch_one(&mut deciding).await.expect("asked");
    assert!(ours);
    let soon = Duration::from_secs(5);
    let renewed = tokio::time::timeout(soon, lease(&database, &one)).await;
    assert_eq!(renewed.expect("a renewal does not wait"), Some(epoch));
    database.execute("UPDATE mover SET lease_until = '-infinity'").await;
    let taken = tokio::time::timeout(Duration::from_secs(1), lease(&database, &other)).await;
    assert!(taken.is_err(), "taking over waits for the decision: {taken:?}");
    sqlx::raw_sql("COMMIT").execute(&mut deciding).await.expect("committed");
    // The one that was given up may be served first, and then this one sees the lease as it was.
    let mut taken = None;
    while taken.is_none() {
        taken = lease(&database, &other).await;
    }
    assert_eq!(taken, Some(Epoch(epoch.0 + 1)));
}
