//! Churn contracts: set, used up, removed.

use crate::harness::Database;
use crate::regions::small;
use broker::{Contract, ContractError, Epoch, ImportOptions, MoveState, MoverInstance, QuietTime};
use std::time::Duration;
use testkit::postgres::json_of;

async fn with_small() -> Database {
    let database = Database::new().await;
    let loaded = database.broker.load("test", &small(), ImportOptions::default()).await;
    loaded.expect("loaded");
    database
}

fn contract(in_use_micro: u32, quiet: &[(u16, u16)]) -> Contract {
    Contract {
        in_use_micro,
        window: Duration::from_secs(86_400),
        quiet: quiet.iter().map(|(a, b)| QuietTime::new(*a, *b).expect("a time")).collect(),
        zone: "Europe/Berlin".to_owned(),
    }
}

#[tokio::test]
async fn contract_is_the_last_one_set() {
    let database = with_small().await;
    let broker = &database.broker;
    assert_eq!(broker.contracts(None).await.expect("read"), []);
    let first = contract(20_000, &[(480, 1_080), (1_320, 360), (480, 1_080)]);
    broker.set_contract("ann", "web", &first, None, None).await.expect("set");
    let read = broker.contracts(None).await.expect("read").remove(0);
    assert_eq!((&*read.reservation, &*read.set_by), ("web", "ann"));
    assert_eq!(read.contract.quiet, contract(0, &[(480, 1_080), (1_320, 360)]).quiet, "once each");
    assert_eq!((read.in_use, read.left, read.leaving, read.allowed()), (6, 0, 0, 1));
    let second = Contract { zone: "UTC".to_owned(), ..contract(500_000, &[]) };
    broker.set_contract("bob", "web", &second, None, None).await.expect("set");
    let read = broker.contracts(Some(&["web".into(), "ads".into()])).await.expect("read").remove(0);
    assert_eq!((read.contract.clone(), read.allowed(), read.quiet_now), (second, 3, false));
    assert!(broker.contracts(Some(&["ads".into()])).await.expect("read").is_empty());
    broker.remove_contract("bob", "web", None, None).await.expect("removed");
    assert!(broker.contracts(None).await.expect("read").is_empty());
    let trail = broker.trail_of("web", broker::Seq(0), 10).await.expect("read");
    let actions: Vec<&str> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["contract_set", "contract_set", "contract_removed"]);
    assert_eq!(json_of(&trail[0].detail)["quiet"][0], "08:00-18:00");
}

#[tokio::test]
async fn contract_change_changes_reservation_version() {
    let database = with_small().await;
    let broker = &database.broker;
    let version = async || {
        let card = broker.reservation_summary("web").await.expect("read");
        card.expect("it is there").version
    };
    let mut seen = vec![version().await];
    broker.set_contract("ann", "web", &contract(20_000, &[]), None, None).await.expect("set");
    seen.push(version().await);
    broker.set_contract("ann", "web", &contract(30_000, &[]), None, None).await.expect("set");
    seen.push(version().await);
    broker.remove_contract("ann", "web", None, None).await.expect("removed");
    seen.push(version().await);
    broker.remove_contract("ann", "web", None, None).await.expect_err("none is left");
    assert_eq!(version().await, seen[3], "nothing happened");
    let different: std::collections::BTreeSet<&String> = seen.iter().collect();
    assert_eq!(different.len(), 4, "{seen:?}");
    // Two who set it at once take turns.
    let (one, other) = (contract(10_000, &[]), contract(40_000, &[]));
    let (a, b) = tokio::join!(
        broker.set_contract("ann", "web", &one, None, None),
        broker.set_contract("bob", "web", &other, None, None)
    );
    a.and(b).expect("one waits for the other");
}

#[tokio::test]
async fn invalid_contract_is_refused() {
    let database = with_small().await;
    let broker = &database.broker;
    let set = async |reservation: &str, contract: Contract| {
        broker.set_contract("ann", reservation, &contract, None, None).await.expect_err("refused")
    };
    let fine = || contract(20_000, &[]);
    let error = set("unknown", fine()).await;
    assert!(matches!(error, ContractError::UnknownReservation { .. }), "{error}");
    let error = set("a\0b", fine()).await;
    assert!(matches!(error, ContractError::UnknownReservation { .. }), "{error}");
    let error = set("spare", fine()).await;
    assert!(matches!(error, ContractError::NotGuaranteed { .. }), "{error}");
    let error = set("web", contract(1_000_001, &[])).await;
    assert!(matches!(error, ContractError::Share), "{error}");
    for zone in ["Mars/Olympus", "", "a\0b", "+02:00"] {
        let error = set("web", Contract { zone: zone.to_owned(), ..fine() }).await;
        assert!(matches!(error, ContractError::UnknownZone { .. }), "{error}");
    }
    for seconds in [0, 59, 2_678_401, u64::MAX] {
        let window = Duration::from_secs(seconds);
        let error = set("web", Contract { window, ..fine() }).await;
        assert!(matches!(error, ContractError::Window), "{error}");
    }
    for reservation in ["web", "unknown", "a\0b"] {
        let error = broker.remove_contract("ann", reservation, None, None).await.expect_err("none");
        assert!(matches!(error, ContractError::NoContract { .. }), "{error}");
    }
    assert!(broker.contracts(None).await.expect("read").is_empty());
}

#[tokio::test]
async fn quiet_times_follow_the_database_clock() {
    let database = with_small().await;
    let quiet = async |at: &str, zone: &str, from: u16, until: u16| {
        let sql = format!("SELECT is_quiet('{at}', '{zone}', {from}, {until})::int::bigint");
        database.number(&sql).await == 1
    };
    // Berlin is two hours ahead in summer and one in winter.
    assert!(quiet("2026-07-01 06:00Z", "Europe/Berlin", 480, 1_080).await);
    assert!(!quiet("2026-01-01 06:59Z", "Europe/Berlin", 480, 1_080).await);
    assert!(quiet("2026-01-01 07:00Z", "Europe/Berlin", 480, 1_080).await);
    assert!(quiet("2026-01-01 16:59Z", "Europe/Berlin", 480, 1_080).await);
    assert!(!quiet("2026-01-01 17:00Z", "Europe/Berlin", 480, 1_080).await, "the end is not in it");
    for (at, is) in [("21:59", false), ("22:00", true), ("02:00", true), ("06:00", false)] {
        assert_eq!(quiet(&format!("2026-01-01 {at}Z"), "UTC", 1_320, 360).await, is, "{at}");
    }
    assert!(quiet("2026-01-01 23:59:59Z", "UTC", 0, 1_440).await);
    assert!(
        quiet("2026-01-01 12:00Z", "gone/elsewhere", 0, 1).await,
        "the time in an unknown zone is unknown"
    );

    let broker = &database.broker;
    broker
        .set_contract("ann", "web", &contract(20_000, &[(0, 1_440)]), None, None)
        .await
        .expect("set");
    assert!(broker.contracts(None).await.expect("read")[0].quiet_now);
    database.execute("UPDATE churn_contracts SET zone = 'gone/elsewhere'").await;
    assert!(broker.contracts(None).await.expect("read")[0].quiet_now, "and is no error");
}

#[tokio::test]
async fn recent_departures_use_up_the_contract() {
    let database = with_small().await;
    let broker = &database.broker;
    broker.set_contract("ann", "web", &contract(300_000, &[]), None, None).await.expect("set");
    let epoch: Epoch = broker
        .lease_mover(&MoverInstance::new("m"), Duration::from_secs(600))
        .await
        .expect("asked")
        .expect("free");
    // Two of web's six servers in use shall leave, and one that is idle.
    database
        .execute(
            "UPDATE servers SET target_pending = true, target_version = 1 \
             WHERE server IN ('s000', 's001')",
        )
        .await;
    broker.open_moves("m", epoch, broker::Wanted::All).await.expect("opened");
    let used = async || {
        let read = broker.contracts(None).await.expect("read").remove(0);
        (read.in_use, read.left, read.leaving, read.allowed())
    };
    assert_eq!(used().await, (6, 0, 0, 1), "what waits is not counted");
    let moves = broker.moves_under_way().await.expect("listed");
    let of = |server: &str| moves.iter().find(|of| &*of.server == server).expect("it moves").id;
    let steps = [of("s000"), of("s007")].map(|id| (id, MoveState::Pending, MoveState::Preempting));
    broker.advance_moves(epoch, &steps).await.expect("advanced");
    assert_eq!(used().await, (6, 0, 1, 1), "nor is what was idle");
    broker.bind_moves("m", epoch, &[of("s000"), of("s007")]).await.expect("bound");
    assert_eq!(used().await, (5, 1, 0, 1));
    // What waits for its contract is not stuck, however long.
    database.execute("UPDATE moves SET state_at = state_at - interval '3 h' WHERE open").await;
    let stuck = async || broker.stuck().await.expect("read").len();
    assert_eq!(stuck().await, 1, "s006 is idle");
    broker.remove_contract("ann", "web", None, None).await.expect("removed");
    assert_eq!(stuck().await, 2);
}
