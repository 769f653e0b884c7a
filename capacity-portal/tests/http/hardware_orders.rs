//! Servers on order: entered and changed over HTTP and on the page Supply, and counted by the supply of the region.

use crate::pages::{page, send};
use crate::place::{Place, READER, ROOT};
use crate::supply::{HISTORY, date, of_type};
use chrono::{Days, NaiveDate};
use reqwest::Method;
use serde_json::{Value, json};

const PATH: &str = "/ops/v1/hardware-orders";

/// The region, whose history has types and a datacenter that it must have for orders.
const NAMES: &str = "; INSERT INTO hardware_types (hardware_type) VALUES ('C4'), ('C6'), ('C9'); \
    INSERT INTO datacenters (datacenter) VALUES ('dc2')";

async fn place() -> Place {
    let place = Place::after(&format!("{HISTORY}{NAMES}")).await;
    place.ready().await;
    place
}

async fn order(place: &Place, ty: &str, servers: u32, day: NaiveDate) -> Value {
    let one =
        json!({ "hardware_type": ty, "datacenter": "dc2", "servers": servers, "expected_on": day });
    let body = json!({ "orders": [one] });
    let (status, added) = place.ask((Method::POST, PATH), ROOT, &[], &body).await;
    assert_eq!(status, 201, "{added}");
    added["orders"][0].clone()
}

fn path(order: &Value, action: &str) -> String {
    format!("{PATH}/{}{action}", order["order"].as_str().expect("an id"))
}

#[tokio::test]
async fn a_type_runs_out_later_by_what_is_on_order() {
    let place = place().await;
    let before = of_type(&place, "", "C4").await;
    let (_, supply) = place.get("/ops/v1/supply").await;
    let today = date(&supply["last_day"]) + Days::new(1);
    let short_on = date(&before["runs_out_on"]);
    assert_eq!((&before["on_order"], &before["late"]), (&0.into(), &0.into()), "{before}");

    // One more is needed each day, and the quantile rises faster than the median: seven that arrive in time last for days longer.
    let added = order(&place, "C4", 7, short_on - Days::new(1)).await;
    let later = of_type(&place, "", "C4").await;
    let days = (date(&later["runs_out_on"]) - short_on).num_days();
    assert!((3..=7).contains(&days), "{days} days later: {later}");
    assert_eq!((&later["on_order"], &later["free"]), (&7.into(), &10.into()), "{later}");
    assert_eq!(date(&later["next_arrival_on"]), short_on - Days::new(1), "{later}");
    // What arrives after the first short day moves no date.
    let to = json!({ "expected_on": short_on + Days::new(1) });
    let (status, changed) = place.ask((Method::PATCH, &path(&added, "")), ROOT, &[], &to).await;
    assert_eq!(status, 200, "{changed}");
    let of = of_type(&place, "", "C4").await;
    assert_eq!(date(&of["runs_out_on"]), short_on, "{of}");

    // A late order does not count, and is named.
    let to = json!({ "expected_on": today - Days::new(2) });
    let (_, changed) = place.ask((Method::PATCH, &path(&added, "")), ROOT, &[], &to).await;
    assert_eq!(changed["late"], true, "{changed}");
    let late = of_type(&place, "", "C4").await;
    assert_eq!((&late["on_order"], &late["late"]), (&0.into(), &7.into()), "{late}");
    assert_eq!(date(&late["runs_out_on"]), short_on, "{late}");
    let sentence = format!(
        "C4 runs out in dc2 on {short_on} (Q70); 7 servers on order did not arrive on the day expected"
    );
    assert_eq!(late["sentence"], sentence.as_str());
    let metrics = place.send(Method::GET, "/metrics", Some(READER), "").await;
    let metrics = metrics.text().await.expect("text");
    let line = "ras_servers_late{datacenter=\"dc2\",hardware_type=\"C4\"} 7";
    assert!(metrics.lines().any(|of| of == line), "{metrics}");

    // What arrives today is not in the history of yesterday, and counts.
    let (status, arrived) =
        place.ask((Method::POST, &path(&added, "/arrive")), ROOT, &[], &json!(null)).await;
    assert_eq!((status.as_u16(), &arrived["state"]), (200, &"arrived".into()), "{arrived}");
    let of = of_type(&place, "", "C4").await;
    assert!(date(&of["runs_out_on"]) > short_on && of["late"] == 0, "{of}");

    // Of a type without a free server the next arrival is named; a type without a server has a row at once.
    order(&place, "C6", 3, today + Days::new(4)).await;
    let full = of_type(&place, "", "C6").await;
    let sentence = format!(
        "No server of C6 is free in dc2; the next are expected on {}",
        today + Days::new(4)
    );
    assert_eq!((&full["state"], &full["sentence"]), (&"out".into(), &sentence.into()), "{full}");
    order(&place, "C9", 3, today + Days::new(4)).await;
    let new = of_type(&place, "", "C9").await;
    assert_eq!((&new["state"], &new["servers"]), (&"unknown".into(), &0.into()), "{new}");
    // The types of the region have rows although no day of their history has ended.
    let (_, supply) = place.get("/ops/v1/supply?filter=hardware_type=type").await;
    let of = &supply["supply"][0];
    assert_eq!((&of["servers"], &of["known_days"]), (&24.into(), &0.into()), "{supply}");
}

#[tokio::test]
async fn orders_have_versions_and_keys_and_all_fields_are_checked() {
    let place = place().await;
    let day = NaiveDate::from_ymd_opt(2098, 3, 4).expect("a date");
    let one = |servers: Value| json!({ "hardware_type": "C4", "datacenter": "dc2", "servers": servers, "expected_on": day });
    let body = json!({ "orders": [one(json!(5))] });
    let key = [("Idempotency-Key", "first")];
    let (status, added) = place.ask((Method::POST, PATH), ROOT, &key, &body).await;
    assert_eq!(status, 201, "{added}");
    let again = place.ask((Method::POST, PATH), ROOT, &key, &body).await;
    assert_eq!(again, (status, added.clone()), "entered once");
    let (_, listed) = place.get(&format!("{PATH}?filter=state=open")).await;
    assert_eq!(listed["orders"], added["orders"]);

    let at = path(&added["orders"][0], "");
    let found = place.send(Method::GET, &at, Some(READER), "").await;
    let etag = found.headers()["etag"].to_str().expect("text").to_owned();
    let seen = [("If-Match", etag.as_str())];
    let (status, changed) =
        place.ask((Method::PATCH, &at), ROOT, &seen, &json!({ "servers": 4 })).await;
    assert_eq!((status.as_u16(), &changed["servers"]), (200, &4.into()), "{changed}");
    for (method, path, body) in [
        (Method::PATCH, at.clone(), json!({ "servers": 3 })),
        (Method::POST, format!("{at}/arrive"), Value::Null),
        (Method::POST, format!("{at}/cancel"), Value::Null),
    ] {
        let (status, stale) = place.ask((method, &path), ROOT, &seen, &body).await;
        assert_eq!((status.as_u16(), &stale["code"]), (412, &"version_stale".into()), "{path}");
    }
    let cancel = format!("{at}/cancel");
    let (status, cancelled) = place.ask((Method::POST, &cancel), ROOT, &[], &Value::Null).await;
    assert_eq!((status.as_u16(), &cancelled["state"]), (200, &"cancelled".into()));
    let (status, ended) = place.ask((Method::POST, &cancel), ROOT, &[], &Value::Null).await;
    assert_eq!((status.as_u16(), &ended["code"]), (409, &"not_open".into()), "{ended}");

    let wrong = json!({ "orders": [one(json!(0)), { "hardware_type": "X", "datacenter": "y", "servers": 1, "expected_on": day }] });
    let (status, problem) = place.ask((Method::POST, PATH), ROOT, &[], &wrong).await;
    let fields: Vec<&str> = problem["errors"]
        .as_array()
        .expect("errors")
        .iter()
        .filter_map(|of| of["field"].as_str())
        .collect();
    assert_eq!(status, 422, "{problem}");
    assert_eq!(fields, ["orders[0].servers", "orders[1].hardware_type", "orders[1].datacenter"]);
    let (status, problem) = place.get(&format!("{PATH}/x")).await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_order".into()));
}

#[tokio::test]
async fn orders_are_entered_and_changed_on_the_page_supply() {
    let place = place().await;
    let form = "hardware_type=C4&datacenter=dc2&servers=12&expected_on=2098-03-04";
    assert_eq!(send(&place, "/supply/orders", READER, form).await.status(), 403);
    let entered = send(&place, "/supply/orders", ROOT, form).await;
    assert_eq!((entered.status().as_u16(), entered.url().path()), (200, "/supply"));
    let (_, listed) = place.get(PATH).await;
    let order = &listed["orders"][0];
    assert_eq!((&order["servers"], &order["ordered_by"]), (&12.into(), &"root".into()), "{order}");
    let id = order["order"].as_str().expect("an id");
    let (_, shown) = page(&place, "/supply", Some(ROOT)).await;
    assert!(shown.contains("2098-03-04") && shown.contains("Enter an order"), "{shown}");
    let (_, shown) = page(&place, "/supply", Some(READER)).await;
    assert!(shown.contains("2098-03-04") && !shown.contains("Enter an order"), "{shown}");

    let change = format!("/supply/orders/{id}/change");
    let form = "version=0&servers=10&expected_on=2098-03-05";
    assert_eq!(send(&place, &change, ROOT, form).await.status(), 200);
    assert_eq!(send(&place, &change, ROOT, form).await.status(), 412, "it has changed since");
    let wrong = send(&place, &change, ROOT, "version=1&servers=x&expected_on=soon").await;
    assert_eq!(wrong.status(), 422);
    let wrong = wrong.text().await.expect("text");
    assert!(wrong.contains("a number of servers") && wrong.contains("is not a date"), "{wrong}");
    let cancel = format!("/supply/orders/{id}/cancel");
    assert_eq!(send(&place, &cancel, ROOT, "version=1").await.status(), 200);
    let (_, shown) = page(&place, "/supply", Some(ROOT)).await;
    assert!(shown.contains("No servers are on order."), "{shown}");
}
