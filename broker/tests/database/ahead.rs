//! What an export says of the time until the next solve.

use crate::harness::Database;
use crate::regions::small;
use broker::{Contract, HORIZON, ImportOptions, MaintenanceRequest, MoverInstance, QuietTime};
use chrono::TimeDelta;
use fleet::pace::{Caps, Limits, ScopeLimits};
use fleet::{AheadParts, Coverage, MoveBudgetRow, RegionSnapshot, Scope};
use std::time::Duration;

async fn ahead(database: &Database) -> AheadParts {
    database.broker.export(None).await.expect("exported").parts.ahead
}

fn budget(scope: &str, scope_id: &str, in_use: bool, moves: i64, because: &str) -> MoveBudgetRow {
    let (scope, scope_id, because) = (scope.into(), scope_id.into(), because.into());
    MoveBudgetRow { scope, scope_id, in_use: Some(in_use), moves, because }
}

#[tokio::test]
async fn snapshot_ahead_has_contracts_and_limits() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let nothing = AheadParts { horizon_minutes: 60, budgets: Vec::new() };
    assert_eq!(ahead(&database).await, nothing, "no contract, and no mover has acted");

    let contract = |share: u32, quiet: &[(u16, u16)]| Contract {
        in_use_micro: share,
        window: Duration::from_secs(86_400),
        quiet: quiet.iter().filter_map(|(from, until)| QuietTime::new(*from, *until)).collect(),
        zone: "Europe/Berlin".to_owned(),
    };
    broker.set_contract("ann", "web", &contract(400_000, &[]), None, None).await.expect("set");
    let two = budget("reservation", "web", true, 2, "contract");
    assert_eq!(
        ahead(&database).await.budgets,
        std::slice::from_ref(&two),
        "two fifths of six in use"
    );
    broker
        .set_contract("ann", "web", &contract(400_000, &[(0, 1_440)]), None, None)
        .await
        .expect("set");
    let never = budget("reservation", "web", true, 0, "never");
    assert_eq!(ahead(&database).await.budgets, [never], "quiet all day");
    let minute = u16::try_from(
        database.number("SELECT minute_of_day(now(), 'Europe/Berlin')::bigint").await,
    );
    let minute = minute.expect("a minute of the day");
    let three_hours = ((minute + 1_380) % 1_440, (minute + 120) % 1_440);
    broker
        .set_contract("ann", "web", &contract(400_000, &[three_hours]), None, None)
        .await
        .expect("set");
    let quiet = budget("reservation", "web", true, 0, "quiet_time");
    assert_eq!(ahead(&database).await.budgets, [quiet], "for two hours more");
    broker.set_contract("ann", "web", &contract(400_000, &[]), None, None).await.expect("set");

    // Idle servers: one at once in each MSB; a move is taken to last five minutes until some are done.
    let caps = |at_once| Caps { at_once, per_window: None };
    let free = ScopeLimits { in_use: caps(None), idle: caps(None) };
    let limits = Limits {
        region: ScopeLimits { idle: Caps { at_once: None, per_window: Some(15) }, ..free },
        msb: ScopeLimits { idle: caps(Some(0)), ..free },
        rack: free,
        reservation: free,
        window_seconds: 3_600,
    };
    let epoch = broker.lease_mover(&MoverInstance::new("m"), HORIZON).await.expect("asked");
    let epoch = epoch.expect("free");
    broker.note_mover_settings(epoch, None, &limits).await.expect("noted");
    let budgets = ahead(&database).await.budgets;
    let expected = [
        // Two of the fifteen are taken by targets that are there already.
        budget("region", "region-a", false, 13, "limit"),
        budget("msb", "msb0", false, 0, "limit"),
        budget("msb", "msb1", false, 0, "limit"),
        budget("msb", "msb2", false, 0, "limit"),
        two,
    ];
    assert_eq!(budgets, expected);
    let export = broker.export(None).await.expect("exported");
    RegionSnapshot::new(export.parts).expect("what is exported keeps the rules");
}

#[tokio::test]
async fn snapshot_ahead_has_windows_before_the_next_solve() {
    let database = Database::new().await;
    let broker = &database.broker;
    let region = {
        let mut parts = small().to_parts();
        parts.unavailability.clear();
        for row in &mut parts.servers {
            (row.target_pending, row.target_reservation) = (false, None);
        }
        RegionSnapshot::new(parts).expect("a snapshot")
    };
    broker.load("test", &region, ImportOptions::default()).await.expect("loaded");
    let now = broker.clock().await.expect("asked");
    let window = |server: &str, minutes: i64, drain_seconds: u64| MaintenanceRequest {
        accept_short: None,
        scope: Scope::Server,
        name: server.into(),
        starts_at: Some(now + TimeDelta::minutes(minutes)),
        length: Duration::from_secs(3_600),
        drain: Duration::from_secs(drain_seconds),
        share_micro: Some(1_000_000),
        recall_minutes: Some(20),
        why: "firmware".to_owned(),
    };
    for (server, minutes, drain) in [("s016", 30, 600), ("s017", 90, 600), ("s018", 300, 18_000)] {
        broker.plan_maintenance("ann", &window(server, minutes, drain)).await.expect("planned");
    }
    let epoch = broker.lease_mover(&MoverInstance::new("m"), HORIZON).await.expect("asked");
    broker.advance_maintenance("m", epoch.expect("free")).await.expect("advanced");
    let export = broker.export(None).await.expect("exported");
    let snapshot = RegionSnapshot::new(export.parts).expect("a snapshot");
    let pinned = |snapshot: &RegionSnapshot| -> Vec<String> {
        let pinned = snapshot.servers.iter().filter(|server| server.pinned);
        pinned.map(|server| server.id.to_string()).collect()
    };
    assert_eq!(pinned(&snapshot), [""; 0], "nothing is out yet");
    let expected = ["s016", "s018"];
    assert_eq!(pinned(&snapshot.ahead()), expected, "one begins in 30 minutes, one is drained");
    // An hour on nothing was written, and the second window is near.
    let current = broker.is_current(snapshot.taken_at, export.seq).await.expect("asked");
    assert!(current);
    let hour_ago = snapshot.taken_at - TimeDelta::hours(1);
    assert!(!broker.is_current(hour_ago, export.seq).await.expect("asked"));
}

/// What an export says of a window that is planned is no event: loaded back, it goes with its window.
#[tokio::test]
async fn reimported_export_drops_cancelled_windows() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let events = "SELECT count(*) FROM unavailability WHERE event_id LIKE 'maintenance/%'";
    let now = broker.clock().await.expect("asked");
    let request = MaintenanceRequest {
        accept_short: None,
        scope: Scope::Server,
        name: "s016".into(),
        starts_at: Some(now + TimeDelta::minutes(30)),
        length: Duration::from_secs(3_600),
        drain: Duration::ZERO,
        share_micro: Some(1_000_000),
        recall_minutes: None,
        why: "firmware".to_owned(),
    };
    let planned = broker.plan_maintenance("ann", &request).await.expect("planned");
    let maintained = async || {
        let parts = broker.export(None).await.expect("exported").parts;
        let planned =
            parts.unavailability.iter().filter(|row| row.event_id.contains("maintenance/"));
        (planned.count(), RegionSnapshot::new(parts).expect("a snapshot"))
    };
    let (known, exported) = maintained().await;
    assert_eq!(known, 1, "it begins before the next solve");
    let changes = broker.plan(&exported, Coverage::WHOLE).await.expect("compared");
    assert!(changes.is_empty(), "its own export changes nothing: {changes:?}");
    broker.load("test", &exported, ImportOptions::default()).await.expect("loaded back");
    assert_eq!(database.number(events).await, 0, "no event while it is planned");
    broker.cancel_maintenance("ann", planned[0].id).await.expect("cancelled");
    assert_eq!(maintained().await.0, 0, "it is cancelled");
    broker.load("test", &exported, ImportOptions::default()).await.expect("loaded late");
    assert_eq!((database.number(events).await, maintained().await.0), (0, 0), "nor afterwards");
}
