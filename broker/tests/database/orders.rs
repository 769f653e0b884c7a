//! Orders of hardware: entered, changed, arrived, cancelled.

use crate::harness::Database;
use crate::regions::small;
use broker::{
    EditError, HardwareOrder, HardwareOrderAsked, HardwareOrderChange, HardwareOrderState,
    ImportOptions, Seq,
};
use chrono::{Days, NaiveDate, Utc};
use testkit::postgres::json_of;

/// The day, as the database counts it.
#[expect(clippy::disallowed_methods, reason = "orders are dated by the clock of the database")]
fn today() -> NaiveDate {
    Utc::now().date_naive()
}

async fn with_small() -> Database {
    let database = Database::new().await;
    let loaded = database.broker.load("test", &small(), ImportOptions::default()).await;
    loaded.expect("loaded");
    database
}

/// An order of the region's first type and datacenter.
fn asked(servers: u32, expected_on: NaiveDate) -> HardwareOrderAsked {
    let region = small();
    HardwareOrderAsked {
        hardware_type: region.hardware_types[0].clone(),
        datacenter: region.datacenters[0].id.clone(),
        servers,
        expected_on,
    }
}

fn wrong(error: EditError) -> Vec<String> {
    let EditError::Wrong(wrong) = error else { panic!("{error}") };
    wrong.into_iter().map(|of| of.field).collect()
}

#[tokio::test]
async fn an_order_is_open_until_it_arrives_or_is_cancelled() {
    let database = with_small().await;
    let broker = &database.broker;
    let today = today();
    let orders = [asked(8, today + Days::new(9)), asked(4, today - Days::new(1))];
    let added = broker.add_hardware_orders("ann", &orders, None).await.expect("added");
    let [late, open] = &added[..] else { panic!("by day: {added:?}") };
    assert!(late.is_late && !open.is_late, "{added:?}");
    let ids = |all: &[HardwareOrder]| all.iter().map(|of| of.id).collect::<Vec<_>>();
    assert_eq!(ids(&broker.expected_hardware().await.expect("read")), [late.id, open.id]);

    // A change of an older version is refused.
    let id = open.id.to_string();
    let fewer = HardwareOrderChange::Terms { servers: Some(6), expected_on: None };
    let version = open.version();
    let changed = broker.change_hardware_order("ann", &id, fewer, Some(&version), None);
    let changed = changed.await.expect("changed");
    assert_eq!((changed.of.servers, changed.of.expected_on), (6, open.of.expected_on));
    let again = broker.change_hardware_order("bob", &id, fewer, Some(&version), None).await;
    assert!(matches!(again, Err(EditError::Stale { .. })), "{again:?}");

    // What arrived today is not in the history yet; what was cancelled is expected no more.
    let to = HardwareOrderChange::Arrived;
    let arrived = broker.change_hardware_order("ann", &id, to, None, None).await.expect("arrived");
    assert_eq!(arrived.state, HardwareOrderState::Arrived);
    let to = HardwareOrderChange::Cancelled;
    let late_id = late.id.to_string();
    broker.change_hardware_order("ann", &late_id, to, None, None).await.expect("cancelled");
    assert_eq!(ids(&broker.expected_hardware().await.expect("read")), [open.id]);
    assert_eq!(broker.hardware_orders().await.expect("read").len(), 2);
    let ended = broker.change_hardware_order("ann", &id, fewer, None, None).await;
    assert!(matches!(ended, Err(EditError::OrderEnded { .. })), "{ended:?}");

    let trail = broker.trail_of(&id, Seq(0), 10).await.expect("read");
    let actions: Vec<&str> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["hardware_ordered", "hardware_order_changed", "hardware_order_arrived"]);
    assert_eq!(json_of(&trail[1].detail)["after"]["servers"], 6);
}

#[tokio::test]
async fn invalid_orders_are_refused_as_a_whole() {
    let database = with_small().await;
    let broker = &database.broker;
    let day = today();
    let good = asked(1, day);
    let orders = [
        good.clone(),
        HardwareOrderAsked { servers: 0, ..good.clone() },
        HardwareOrderAsked { hardware_type: "X".into(), datacenter: "x\0".into(), ..good.clone() },
        HardwareOrderAsked { expected_on: NaiveDate::MAX, ..good.clone() },
    ];
    let error = broker.add_hardware_orders("ann", &orders, None).await.expect_err("invalid");
    let expected = [
        "orders[1].servers",
        "orders[2].hardware_type",
        "orders[2].datacenter",
        "orders[3].expected_on",
    ];
    assert_eq!(wrong(error), expected);
    let error = broker.add_hardware_orders("ann", &[], None).await.expect_err("none");
    assert_eq!(wrong(error), ["orders"]);
    assert_eq!(broker.hardware_orders().await.expect("read"), []);
    for id in ["x", &uuid::Uuid::nil().to_string()] {
        let to = HardwareOrderChange::Arrived;
        let error = broker.change_hardware_order("ann", id, to, None, None).await;
        assert!(matches!(error, Err(EditError::UnknownOrder { .. })), "{error:?}");
    }
}

/// A type with an open order is in use: its servers are on their way.
#[tokio::test]
async fn a_type_with_an_open_order_is_not_removed() {
    let database = with_small().await;
    let broker = &database.broker;
    broker.add_hardware_types("ann", &["new".into()]).await.expect("added");
    let order =
        HardwareOrderAsked { hardware_type: "new".into(), ..asked(3, today() + Days::new(3)) };
    let added = broker.add_hardware_orders("ann", &[order], None).await.expect("added");
    let error = broker.remove_hardware_type("ann", &"new".into()).await.expect_err("in use");
    assert!(error.to_string().contains("1 open orders use it: cancel them"), "{error}");
    broker.rename_hardware_type("ann", &"new".into(), &"newer".into()).await.expect("renamed");
    let id = added[0].id.to_string();
    let found = broker.hardware_order(&id).await.expect("read").expect("there");
    assert_eq!(&*found.of.hardware_type, "newer");
    let to = HardwareOrderChange::Cancelled;
    broker.change_hardware_order("ann", &id, to, None, None).await.expect("cancelled");
    broker.remove_hardware_type("ann", &"newer".into()).await.expect("unused");
}
