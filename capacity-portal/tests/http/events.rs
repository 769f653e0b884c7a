//! Health and use, from those who know it.

use crate::place::{PATIENCE, Place, WATCH};
use broker::Seq;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn event(name: &str, server: &str) -> Value {
    json!({ "event": name, "scope": "server", "scope_id": server, "kind": "software",
        "started_at": "2026-01-05T10:00:00Z" })
}

fn outcomes(answer: &Value) -> Vec<&str> {
    let results = answer["results"].as_array().expect("a list").iter();
    results.map(|row| row["outcome"].as_str().expect("a word")).collect()
}

#[tokio::test]
async fn each_reported_event_has_a_result() {
    let place = Place::new().await;
    let (status, answer) = place.post("/ops/v1/events", &event("one", "s01")).await;
    assert_eq!((status.as_u16(), outcomes(&answer)), (200, vec!["recorded"]), "{answer}");
    let mut ended = event("one", "s01");
    ended["ended_at"] = "2026-01-05T12:00:00+01:00".into();
    let mut unknown_field = event("two", "s02");
    unknown_field["severity"] = "high".into();
    let mut bad_kind = event("three", "s03");
    bad_kind["kind"] = "bad luck".into();
    let batch = json!([
        event("one", "s01"),
        ended,
        unknown_field,
        bad_kind,
        event("four", "nowhere"),
        event("five", "s05"),
        "six",
    ]);
    let (status, answer) = place.post("/ops/v1/events", &batch).await;
    assert_eq!(status, 200);
    assert_eq!(
        outcomes(&answer),
        ["unchanged", "ended", "refused", "refused", "refused", "recorded", "refused"],
        "{answer}"
    );
    let results = &answer["results"];
    assert_eq!(results[2]["code"], "malformed");
    assert!(results[2]["reason"].as_str().expect("why").contains("severity"));
    assert_eq!(results[4]["code"], "unknown_scope");
    assert_eq!(answer["refused"], 4);
    // Whether work can be recalled is said of windows, which are admitted under the guarantee.
    for minutes in [json!(20), json!(-1), json!("soon"), Value::Null] {
        let mut work = event("six", "s06");
        work["kind"] = "planned_maintenance".into();
        work["recall_minutes"] = minutes;
        let (status, problem) = place.post("/ops/v1/events", &work).await;
        let result = &problem["results"][0];
        assert_eq!(
            (status.as_u16(), &result["code"]),
            (422, &"not_recallable".into()),
            "{problem}"
        );
        let said = result["reason"].as_str().expect("why");
        assert!(said.contains("/ops/v1/maintenance with recall_minutes"), "{said}");
    }
    let none = json!([event("four", "nowhere"), { "event": "x" }]);
    let (status, problem) = place.post("/ops/v1/events", &none).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &"all_refused".into()));
    assert_eq!(problem["results"][0]["code"], "unknown_scope");
    for (body, status, code) in [
        ("{", 400, "malformed"),
        ("3", 400, "malformed"),
        (&format!("[{}]", vec!["{}"; 1_001].join(",")), 413, "too_many_rows"),
    ] {
        let sent = place.send(Method::POST, "/ops/v1/events", Some(WATCH), body.to_owned()).await;
        let (found, problem) = crate::place::answer(sent).await;
        assert_eq!((found.as_u16(), problem["code"].as_str()), (status, Some(code)));
    }
    let trail = place.broker.trail(Seq(1), 10).await.expect("read");
    assert!(trail.iter().all(|entry| entry.actor == "watch"), "the token's name: {trail:?}");
    assert_eq!(trail.len(), 3);
}

/// Many requests at once are few transactions, and each has its own answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_reports_share_transactions() {
    let place = Place::new().await;
    let requests = (0..400).map(|number| {
        let server = if number % 10 == 9 { "nowhere" } else { "s01" };
        let body = event(&format!("event {}", number % 200), server);
        let place = &place;
        async move { (number, place.post("/ops/v1/events", &body).await) }
    });
    let answers = tokio::time::timeout(PATIENCE, futures_util::future::join_all(requests));
    let mut recorded = 0;
    for (number, (status, answer)) in answers.await.expect("in time") {
        let expected = if number % 10 == 9 { 422 } else { 200 };
        assert_eq!(status.as_u16(), expected, "{number}: {answer}");
        recorded += answer["recorded"].as_i64().unwrap_or(0);
    }
    assert_eq!(recorded, 180);
    let trail = place.broker.trail(Seq(1), 1_000).await.expect("read");
    assert_eq!(trail.len(), 180);
    let transactions: BTreeSet<_> = trail.iter().map(|entry| entry.at).collect();
    assert!(transactions.len() <= 60, "{} transactions", transactions.len());
    assert_eq!(place.broker.check().await.expect("asked"), [""; 0]);
}

#[tokio::test]
async fn usage_report_has_a_result_for_each_row() {
    let place = Place::new().await;
    let rows = json!([
        { "server": "s00", "in_use": false }, { "server": "s01", "in_use": true },
        { "server": "nowhere", "in_use": true }, { "server": "s02" },
    ]);
    let (status, answer) = place.post("/ops/v1/usage", &rows).await;
    assert_eq!(status, 200);
    assert_eq!(outcomes(&answer), ["changed", "unchanged", "refused", "refused"], "{answer}");
    let (status, _) = place.post("/ops/v1/usage", &json!({ "server": "no", "in_use": true })).await;
    assert_eq!(status, 422);
    let (_, list) = place.list("a").await;
    assert_eq!((&list["s00"]["in_use"], &list["s01"]["in_use"]), (&false.into(), &true.into()));
}

fn alert(status: &str, labels: Value, starts: &str, ends: &str) -> Value {
    json!({ "status": status, "labels": labels, "annotations": { "summary": "text" },
        "startsAt": starts, "endsAt": ends, "generatorURL": "http://prometheus/graph",
        "fingerprint": "c0ffee0123456789", "new in version 4.1": true })
}

fn notification(alerts: Vec<Value>) -> Value {
    json!({ "version": "4", "groupKey": "{}:{alertname=\"down\"}", "truncatedAlerts": 2,
        "status": "firing", "receiver": "ras", "groupLabels": {}, "commonLabels": {},
        "commonAnnotations": {}, "externalURL": "http://alertmanager", "alerts": alerts })
}

#[tokio::test]
async fn alerts_become_events() {
    const NEVER: &str = "0001-01-01T00:00:00Z";
    let place = Place::new().await;
    let instance = json!({ "alertname": "down", "instance": "s01:9100" });
    let first = "2026-01-05T10:00:00.123Z";
    let (second, end) = ("2026-01-05T11:00:00Z", "2026-01-05T10:30:00Z");
    let send = async |alerts: Vec<Value>| {
        let (status, answer) = place.post("/ops/v1/alertmanager", &notification(alerts)).await;
        assert_eq!(status, 200, "{answer}");
        outcomes(&answer).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let firing = alert("firing", instance.clone(), first, NEVER);
    assert_eq!(send(vec![firing.clone()]).await, ["recorded"]);
    assert_eq!(send(vec![firing.clone()]).await, ["unchanged"], "it is repeated every few hours");
    let resolved = alert("resolved", instance.clone(), first, end);
    assert_eq!(send(vec![resolved.clone()]).await, ["ended"]);
    assert_eq!(send(vec![firing]).await, ["unchanged"], "late, and taken for no new failure");
    assert_eq!(send(vec![alert("firing", instance, second, NEVER)]).await, ["recorded"]);
    let unknown = alert("firing", json!({ "instance": "elsewhere:9100" }), first, NEVER);
    let no_place = alert("firing", json!({ "alertname": "slow" }), first, NEVER);
    let rack = json!({ "rack": "rack2", "msb": "msb2", "ras_kind": "correlated_failure" });
    let mut rack = alert("firing", rack, first, NEVER);
    rack["fingerprint"] = "of the rack".into();
    let said = send(vec![unknown, no_place, rack, json!({ "status": "firing" })]).await;
    assert_eq!(said, ["refused", "refused", "recorded", "refused"]);
    let (_, list) = place.list("a").await;
    let down: Vec<&str> = list
        .values()
        .filter(|row| row["state"] == "unavailable")
        .filter_map(|row| row["server"].as_str())
        .collect();
    assert_eq!(down, ["s01", "s02"], "s02 of rack2");
    let mut old = notification(Vec::new());
    old["version"] = "3".into();
    assert_eq!(place.post("/ops/v1/alertmanager", &old).await.0, 422);
    assert_eq!(place.broker.check().await.expect("asked"), [""; 0]);
}

/// Alertmanager tries again after 503, and gives up after anything below 500.
#[tokio::test]
async fn reports_fail_while_postgres_is_down() {
    let mut place = Place::alone().await;
    place.stop_postgres().await;
    let body = notification(vec![alert(
        "firing",
        json!({ "server": "s01" }),
        "2026-01-05T10:00:00Z",
        "0001-01-01T00:00:00Z",
    )]);
    let usage = json!({ "server": "s01", "in_use": true });
    let answers = tokio::join!(
        place.post("/ops/v1/alertmanager", &body),
        place.post("/ops/v1/usage", &usage),
        place.get("/v1/reservations/a/servers"),
        place.get("/v1/reservations/a/changes?from=1"),
    );
    for (status, problem) in [answers.0, answers.1, answers.2, answers.3] {
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (503, &"postgres_unavailable".into()),
            "{problem}"
        );
    }
}
