//! Plans that are applied: by two at once, cut off in the middle, beyond a quota.

use crate::jobs::with_small;
use crate::requests::{apply, at_rest, create, everything, look, plan, resize};
use broker::{ApplyError, QuotaAsked};
use fleet::Rru;
use std::time::Duration;

/// Two plans that want the same servers, at the same time: exactly one gets them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn competing_plans_apply_only_once() {
    let database = with_small().await;
    for (round, servers) in
        [["s013", "s014", "s015"], ["s016", "s017", "s018"], ["s019", "s020", "s021"]]
            .into_iter()
            .enumerate()
    {
        let seen = look(&database).await;
        let one = create(&format!("one {round}"), 2.0);
        let two = create(&format!("two {round}"), 2.0);
        let a = plan(&database, &seen, &one, &servers[..2], true).await;
        let b = plan(&database, &seen, &two, &servers[1..], true).await;
        let (a, b) = tokio::join!(apply(&database, &one, &a), apply(&database, &two, &b));
        let lost = match (a, b) {
            (Ok(_), Err(lost)) | (Err(lost), Ok(_)) => lost,
            both => panic!("round {round}: {both:?}"),
        };
        let both_want = servers[1].into();
        assert!(matches!(&lost, ApplyError::Stale { servers, .. } if *servers == [both_want]));
        let rounds = i64::try_from(round).expect("few") + 1;
        let pending = "SELECT count(*) FROM servers WHERE target_origin = 'plan'";
        assert_eq!(database.number(pending).await, 2 * rounds);
        let there = "SELECT count(*) FROM reservations \
            WHERE reservation LIKE 'one %' OR reservation LIKE 'two %'";
        assert_eq!(database.number(there).await, rounds);
    }
    at_rest(&database).await;
}

/// The connection is cut in the middle of the transaction, after promises were written.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_during_apply_changes_nothing() {
    let database = with_small().await;
    let seen = look(&database).await;
    let wanted = create("new", 2.0);
    let application = plan(&database, &seen, &wanted, &["s013"], true).await;
    let before = everything(&database).await;
    // The clock of the trail is the last thing a change needs.
    let mut other = database.connect().await;
    crate::harness::execute(&mut other, "BEGIN; SELECT seq FROM trail_clock FOR UPDATE").await;
    let cut = async {
        let waiting = "SELECT coalesce(max(pid), 0)::bigint FROM pg_stat_activity \
            WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let mut pid = 0;
        while pid == 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
            pid = database.number(waiting).await;
        }
        database.execute(&format!("SELECT pg_terminate_backend({pid})")).await;
    };
    let (applied, ()) = tokio::join!(apply(&database, &wanted, &application), cut);
    let error = applied.expect_err("cut off");
    assert!(matches!(&error, ApplyError::Db(error) if error.is_passing()), "{error:?}");
    crate::harness::execute(&mut other, "ROLLBACK").await;
    assert_eq!(everything(&database).await, before, "nothing was changed");
    apply(&database, &wanted, &application).await.expect("the same again does");
    at_rest(&database).await;
}

#[tokio::test]
async fn quota_limits_growth_and_keeps_promises() {
    let database = with_small().await;
    let broker = &database.broker;
    let servers = |count: f64| {
        let limit = Rru::from_f64(count).expect("an amount");
        [QuotaAsked { profile: None, hardware_type: None, limit }]
    };
    broker.set_quota("admin", "owner", &servers(3.0), None).await.expect("set");
    let first = create("one", 2.0);
    let plan_one = plan(&database, &look(&database).await, &first, &["s013", "s014"], true).await;
    apply(&database, &first, &plan_one).await.expect("within");
    let second = create("two", 1.5);
    let plan_two = plan(&database, &look(&database).await, &second, &["s015", "s016"], true).await;
    let before = everything(&database).await;
    let error = apply(&database, &second, &plan_two).await.expect_err("beyond");
    let ApplyError::Quota { owner, of, limit, promised } = error else { panic!("{error}") };
    // Both are worth 1 RRU a server.
    assert_eq!((&*owner, &*of), ("owner", "servers"));
    assert_eq!((limit, promised), (Rru(3_000_000), Rru(3_500_000)));
    assert_eq!(everything(&database).await, before);
    // Less quota than is promised already: what is promised stays, and may shrink.
    broker.set_quota("admin", "owner", &servers(1.0), None).await.expect("set");
    let less = resize("one", 1.5);
    let shrinking = plan(&database, &look(&database).await, &less, &[], true).await;
    apply(&database, &less, &shrinking).await.expect("less than before");
    let quotas = broker.quotas(Some("owner")).await.expect("read");
    let of = &quotas[0].limits[0];
    assert_eq!((of.limit, of.promised), (Rru(1_000_000), Rru(1_500_000)));
    broker.set_quota("admin", "owner", &[], None).await.expect("removed");
    assert_eq!(broker.quotas(Some("owner")).await.expect("read")[0].limits, []);
    at_rest(&database).await;
}
