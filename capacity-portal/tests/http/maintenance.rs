//! Planned maintenance over HTTP.

use crate::place::{Place, READER, ROOT, WATCH, answer};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn post(place: &Place, path: &str, body: &Value) -> (StatusCode, Value) {
    answer(place.send(Method::POST, path, Some(ROOT), body.to_string()).await).await
}

fn server(name: &str) -> Value {
    json!({ "scope": "server", "scope_id": name, "length_seconds": 3600, "recall_minutes": 10, "why": "new fans" })
}

#[tokio::test]
async fn maintenance_is_planned_listed_ended_and_cancelled() {
    let place = Place::new().await;
    let mut body = server("s00");
    body["drain_seconds"] = 600.into();
    let (status, planned) = post(&place, "/ops/v1/maintenance", &body).await;
    assert_eq!(status, 201, "{planned}");
    let id = planned["plan"].as_str().expect("an id");
    let window = &planned["windows"][0];
    assert_eq!((&window["window"], &window["state"]), (&id.into(), &"planned".into()));
    assert_eq!(window["requested_by"], "root", "whose token it is");
    let path = format!("/ops/v1/maintenance/{id}");
    let (status, found) = place.get(&path).await;
    assert_eq!((status.as_u16(), &found["windows"][0]), (200, window));
    assert_eq!(place.get("/ops/v1/maintenance").await.1, found);
    let (status, early) = post(&place, &format!("{path}/end"), &json!({})).await;
    assert_eq!((status.as_u16(), &early["code"]), (409, &"not_active".into()));
    let (status, cancelled) = post(&place, &format!("{path}/cancel"), &json!({})).await;
    assert_eq!((status.as_u16(), cancelled), (200, json!({ "cancelled": [id] })));
    let (status, again) = post(&place, &format!("{path}/cancel"), &json!({})).await;
    assert_eq!((status.as_u16(), &again["code"]), (409, &"over".into()));
    assert_eq!(
        place.get("/ops/v1/maintenance").await.1,
        json!({ "windows": [], "next_page_token": null })
    );
    let all = place.get("/ops/v1/maintenance?all=true&limit=1").await.1;
    assert_eq!(all["windows"][0]["reason"], "asked");
    // Work that has begun is ended.
    let (_, planned) = post(&place, "/ops/v1/maintenance", &server("s00")).await;
    let epoch = place
        .broker
        .lease_mover(&broker::MoverInstance::new("m"), std::time::Duration::from_secs(60))
        .await;
    let epoch = epoch.expect("asked").expect("free");
    while place.get("/ops/v1/maintenance").await.1["windows"][0]["state"] != "active" {
        place.broker.advance_maintenance("m", epoch).await.expect("looked");
        let drains = place.broker.moves_under_way().await.expect("listed");
        let ids: Vec<_> = drains.iter().map(|of| of.id).collect();
        place.broker.bind_moves("m", epoch, &ids).await.expect("bound");
    }
    let id = planned["plan"].as_str().expect("an id");
    let (status, ended) = post(&place, &format!("/ops/v1/maintenance/{id}/end"), &json!({})).await;
    assert_eq!((status.as_u16(), ended), (200, json!({ "ended": [id] })));
}

#[tokio::test]
async fn maintenance_refusal_has_numbers() {
    let place = Place::new().await;
    // Two of the eight servers of an MSB are a quarter.
    for name in ["s00", "s03"] {
        assert_eq!(post(&place, "/ops/v1/maintenance", &server(name)).await.0, 201);
    }
    let (status, refused) = post(&place, "/ops/v1/maintenance", &server("s06")).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &"share".into()));
    assert_eq!(
        (&refused["msb"], &refused["out"], &refused["most"]),
        (&"msb0".into(), &3.into(), &2.into())
    );
    // Of the eight servers of a, at 1.25 RRU, rack1 has two.
    let mut rack = server("rack1");
    rack["scope"] = "rack".into();
    rack["share"] = 1.0.into();
    let (status, refused) = post(&place, "/ops/v1/maintenance", &rack).await;
    assert_eq!((status.as_u16(), &refused["code"]), (409, &"guarantee".into()), "{refused}");
    // Without msb2 six are left, less the four that would be out; within 30 minutes they are back.
    for (member, value) in [
        ("reservation", json!("a")),
        ("msb", json!("msb1")),
        ("lost_msb", json!("msb2")),
        ("needed_at_once_rru", json!(3.5625)),
        ("left_at_once_rru", json!(2.5)),
        ("needed_rru", json!(4.5)),
        ("left_rru", json!(7.5)),
    ] {
        assert_eq!(refused[member], value, "{member}: {refused}");
    }
    assert!(refused["instead"][0]["starts_at"].is_string(), "{refused}");
    assert_eq!(refused["field"], Value::Null, "no field is wrong");
    for (name, value, code) in [
        ("scope_id", json!("unknown"), "unknown_scope"),
        ("starts_at", json!("2020-01-01T00:00:00Z"), "in_the_past"),
        ("length_seconds", json!(0), "length"),
        ("drain_seconds", json!(u32::MAX), "length"),
        ("starts_at", json!("2999-01-01T00:00:00Z"), "length"),
    ] {
        let mut body = server("s20");
        body[name] = value;
        let (status, refused) = post(&place, "/ops/v1/maintenance", &body).await;
        assert_eq!((status.as_u16(), &refused["code"]), (422, &code.into()), "{refused}");
        assert_eq!(refused["field"], name, "{refused}");
    }
}

#[tokio::test]
async fn missing_token_differs_from_missing_role() {
    let place = Place::new().await;
    for body in [
        json!({ "scope": "server" }),
        json!({ "scope": "datacenter", "scope_id": "dc", "length_seconds": 1, "why": "x" }),
        json!({ "scope": "server", "scope_id": "s20", "length_seconds": 1, "why": "x", "more": 1 }),
        json!({ "scope": "server", "scope_id": "s20", "length_seconds": 1, "why": "x", "share": 2 }),
        json!({ "scope": "server", "scope_id": "s20", "length_seconds": -1, "why": "x" }),
        json!([]),
    ] {
        let (status, problem) = post(&place, "/ops/v1/maintenance", &body).await;
        assert_eq!((status.as_u16(), &problem["code"]), (400, &"malformed".into()), "{body}");
    }
    let nil = "00000000-0000-0000-0000-000000000000";
    for id in [nil, "17"] {
        for path in
            [format!("/ops/v1/maintenance/{id}/end"), format!("/ops/v1/maintenance/{id}/cancel")]
        {
            let (status, problem) = post(&place, &path, &json!({})).await;
            assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_maintenance".into()));
        }
        assert_eq!(place.get(&format!("/ops/v1/maintenance/{id}")).await.0, 404);
    }
    for limit in ["0", "1001", "many"] {
        assert_eq!(place.get(&format!("/ops/v1/maintenance?limit={limit}")).await.0, 400);
    }
    let paths = [
        "/ops/v1/maintenance".to_owned(),
        format!("/ops/v1/maintenance/{nil}/end"),
        format!("/ops/v1/maintenance/{nil}/cancel"),
    ];
    for path in paths {
        for (token, code) in [(None, 401), (Some(READER), 403), (Some(WATCH), 403)] {
            let body = server("s20").to_string();
            assert_eq!(place.send(Method::POST, &path, token, body).await.status(), code);
        }
    }
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "nothing was written");
}
