//! Reservations that survive the loss of fault domains which cross MSBs.

use crate::place::{Place, deciding, region};
use crate::requests::{ADMIN, OWNER_A, two};
use fleet::{PartitionColumn, RegionSnapshot, SurvivesRow};
use reqwest::Method;
use serde_json::{Value, json};

/// The region of these tests with four switches over its racks, and feeds that are not known yet; `a` survives both.
fn switched() -> RegionSnapshot {
    let mut parts = region().to_parts();
    let of = |(position, row): (usize, &fleet::ServerRow)| {
        (row.server_id.clone(), format!("switch{}", position % 4).into())
    };
    let domains = parts.servers.iter().enumerate().map(of).collect();
    let (name, partition) = ("switch".into(), "switch".into());
    parts.crossing.partitions = vec![
        PartitionColumn { name: "feed".into(), domains: Vec::new() },
        PartitionColumn { name, domains },
    ];
    parts.crossing.survives = ["feed".into(), partition]
        .map(|partition| SurvivesRow { reservation_id: "a".into(), partition })
        .into();
    RegionSnapshot::new(parts).expect("a snapshot")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fault_domains_are_survived_promised_and_lifted() {
    let place = Place::of(Some(&switched()), deciding()).await;
    let mut asked = two();
    asked["survives"] = json!(["switch"]);
    for (survives, detail) in [
        (json!(["rack"]), "the region has no partition \"rack\"; it has feed, switch"),
        (json!(["switch", "switch"]), "it is listed twice"),
        (json!("switch"), "it is not a list of partitions"),
    ] {
        let mut body = two();
        body["survives"] = survives;
        let (status, problem) = place.make(&body).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["errors"][0]["field"].as_str().expect("a field").starts_with("survives"));
        assert!(problem["detail"].as_str().expect("a text").contains(detail), "{problem}");
    }
    let quote = &place.plan(json!([asked])).await["changes"][0]["answer"];
    assert_eq!(quote["survives"], json!(["switch"]));
    assert_eq!(place.ended(place.make(&asked).await).await["state"], "done");
    let at = "/v1/reservations/new";
    assert_eq!(place.look(at).await["survives"], json!(["switch"]));
    place.carry_out().await;
    // 1.25 RRU a server, so that of three servers at three switches 2.5 RRU are left.
    place.until(at, |new| new["owned"]["servers"] == 3 && new["standing"] == "guaranteed").await;
    let certificate = place.look("/v1/reservations/new/certificate").await;
    let domains = json!({
        "partitions": ["switch"], "largest_rru": 1.25, "left_rru": 2.5, "left_at_once_rru": 2.5,
        "holds": true,
    });
    assert_eq!((&certificate["domains"], &certificate["holds"]), (&domains, &json!(true)));
    let (_, region) =
        place.ask((Method::GET, "/ops/v1/certificate"), ADMIN, &[], &Value::Null).await;
    let rows = region["reservations"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["reservation"] == name).expect("there");
    assert_eq!(row("new")["domains"], domains);
    assert_eq!(row("a")["domains"]["partitions"], json!(["feed", "switch"]));
    assert_eq!(row("b/ü").get("domains"), None);
    let form = place.client.get(format!("{}/request?reservation=new", place.base));
    let form = form.header("Authorization", format!("Bearer {OWNER_A}")).send().await;
    let form = form.expect("an answer").text().await.expect("a page");
    assert!(form.contains("name=\"survives.switch\" checked"), "{form}");
    assert!(form.contains("name=\"survives.feed\""), "{form}");
    let page = place.client.get(format!("{}/reservations/new", place.base));
    let page = page.header("Authorization", format!("Bearer {OWNER_A}")).send().await;
    let page = page.expect("an answer").text().await.expect("a page");
    assert!(page.contains("survives the loss of any one switch"), "{page}");
    assert!(page.contains("Any one switch lost: at least 2.5 RRU left"), "{page}");

    // A drill of one switch says what is left of it, and changes nothing.
    let drill =
        async |body: Value| place.ask((Method::POST, "/ops/v1/drills"), ADMIN, &[], &body).await;
    let of = json!({ "partition": "switch", "domain": "switch1" });
    let (status, played) = drill(json!({ "domain": of })).await;
    assert_eq!((status.as_u16(), &played["domain"], &played["msb"]), (200, &of, &Value::Null));
    assert!(played["servers_lost"].as_u64() > Some(1) && played["mover"].is_null(), "{played}");
    let rows = played["reservations"].as_array().expect("rows");
    let row = |name: &str| rows.iter().find(|row| row["reservation"] == name).expect("there");
    assert_eq!((&row("new")["kept"], &row("new")["covered"]), (&json!(true), &json!(true)));
    let left = row("new")["left_rru"].as_f64();
    assert!(left == Some(2.5) || left == Some(3.75), "{played}");
    assert_eq!(row("b/ü")["covered"], false);
    for (body, code) in [
        (json!({ "domain": { "partition": "switch", "domain": "no" } }), "unknown_domain"),
        (json!({ "domain": of, "msb": "msb0" }), "malformed"),
        (json!({}), "malformed"),
    ] {
        assert_eq!(drill(body).await.1["code"], code);
    }
    let page = place.client.get(format!("{}/drills?msb=switch%3Dswitch1", place.base));
    let page = page.header("Authorization", format!("Bearer {ADMIN}")).send().await;
    let page = page.expect("an answer").text().await.expect("a page");
    assert!(page.contains("The loss of switch switch1 takes"), "{page}");

    let lifted = json!({ "survives": [] });
    assert_eq!(place.ended(place.change("new", "*", &lifted).await).await["state"], "done");
    assert_eq!(place.look(at).await["survives"], json!([]));
    let history = place.look("/v1/reservations/new/history").await;
    assert_eq!(history["promises"][0]["survives"], json!([]));
    assert_eq!(history["promises"][1]["survives"], json!(["switch"]));
    // Another change leaves what a reservation survives as it is.
    let smaller = json!({ "capacity_rru": 1.25 });
    assert_eq!(place.ended(place.change("a", "*", &smaller).await).await["state"], "done");
    assert_eq!(place.look("/v1/reservations/a").await["survives"], json!(["feed", "switch"]));
    assert_eq!(place.broker.check().await.expect("asked"), [""; 0]);
}
