//! Requests that follow demand: set, decided, granted, refused, removed.

use crate::place::{PATIENCE, Place};
use crate::requests::{ADMIN, OWNER_A, OWNER_B, place};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const AT: &str = "/v1/reservations/a/autosize";

/// Two days in which four of eight servers of `a` were in use, 5 RRU.
async fn two_days_in_use(place: &Place) {
    place
        .execute(
            "INSERT INTO usage_samples SELECT date_bin('5 minutes', clock_timestamp(), to_timestamp(0)) \
             - n * interval '5 minutes' FROM generate_series(1, 576) n",
        )
        .await;
    place
        .execute(
            "INSERT INTO usage_cells (reservation, owner, hardware_type, datacenter, value_micro) \
             VALUES ('a', 'a', 'type', 'dc', 1250000) ON CONFLICT DO NOTHING",
        )
        .await;
    place
        .execute(
            "INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent) \
             SELECT cell_id, clock_timestamp() - interval '3 days', 0, 8, 4, 0 FROM usage_cells \
             WHERE reservation = 'a' AND hardware_type = 'type'",
        )
        .await;
}

async fn set(place: &Place, max_rru: f64) -> Value {
    let body = json!({ "quantile": 0.9, "min_rru": 1, "max_rru": max_rru });
    let (status, set) = place.ask((Method::PUT, AT), OWNER_A, &[], &body).await;
    assert_eq!(status, 200, "{set}");
    set
}

/// Waits until the last decision or request is like this.
async fn until(place: &Place, is: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            let found = place.look(AT).await;
            if is(&found) {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    match timeout(PATIENCE, found).await {
        Ok(found) => found,
        Err(_) => panic!("{}", place.look(AT).await),
    }
}

fn says(found: &Value, word: &str) -> bool {
    found["decision"]["reason"].as_str().is_some_and(|reason| reason.contains(word))
}

async fn promised(place: &Place) -> f64 {
    place.look("/v1/reservations/a").await["promised_rru"].as_f64().expect("a number")
}

#[tokio::test]
async fn a_request_follows_demand_through_the_door_of_all() {
    let place = place().await;
    place.ready().await;
    two_days_in_use(&place).await;
    assert_eq!(promised(&place).await, 4.5);
    let first = set(&place, 6.0).await;
    assert_eq!(
        (&first["settings"]["metric"], &first["settings"]["cooldown_seconds"]),
        (&json!("used_rru"), &json!(86_400))
    );

    // The demand of 5 RRU exceeds the promise of 4.5.
    let found = until(&place, |found| found["request"]["state"] == "granted").await;
    assert_eq!(
        (&found["decision"]["action"], &found["decision"]["to_rru"]),
        (&json!("grow"), &json!(5.0))
    );
    assert_eq!(promised(&place).await, 5.0);
    let id = found["request"]["request"].as_str().expect("an id");
    let request = place.look(&format!("/v1/requests/{id}")).await;
    assert_eq!(
        (&request["created_by"], &request["asked"]["capacity_rru"]),
        (&json!("autosize"), &json!(5.0))
    );
    assert_eq!(request["why"], found["decision"]["reason"]);
    let trail = place.look("/v1/reservations/a/history").await;
    let entries = trail["entries"].as_array().expect("entries");
    let submitted = entries.iter().find(|of| of["action"] == "request_submitted").expect("one");
    assert_eq!(
        (&submitted["actor"], &submitted["detail"]["asking"]["why"]),
        (&json!("autosize"), &request["why"])
    );
    assert!(entries.iter().any(|of| of["action"] == "autosize_set" && of["actor"] == "owner-a"));

    // It does not shrink within the cooldown.
    set(&place, 4.0).await;
    until(&place, |found| found["decision"]["action"] == "keep" && says(found, "cooldown")).await;

    // A refusal by the quota is visible with its reason, and not repeated at once.
    let quota = json!({ "limits": [{ "profile": "base", "rru": 5.2 }] });
    let profile = json!({ "rru": { "type": 1.25 } });
    let (status, said) =
        place.ask((Method::PUT, "/ops/v1/rru-profiles/base"), ADMIN, &[], &profile).await;
    assert!(status.is_success(), "{said}");
    let (status, said) = place.ask((Method::PUT, "/ops/v1/quotas/a"), ADMIN, &[], &quota).await;
    assert_eq!(status, 200, "{said}");
    place
        .execute(
            "INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent) \
             SELECT cell_id, (SELECT max(at) FROM usage_samples), 0, 8, 8, 0 FROM usage_cells \
             WHERE reservation = 'a' AND hardware_type = 'type' \
             ON CONFLICT (cell_id, at) DO UPDATE SET used = 8",
        )
        .await;
    set(&place, 9.0).await;
    let found = until(&place, |found| found["request"]["state"] == "refused").await;
    assert_eq!(found["request"]["answer"]["code"], "quota_exceeded", "{found}");
    assert_eq!(found["decision"]["to_rru"], 9.0, "{found}");
    assert_eq!(promised(&place).await, 5.0);
    set(&place, 9.0).await;
    until(&place, |found| says(found, "refused less than an hour ago")).await;

    let remove = (Method::DELETE, AT);
    assert_eq!(place.ask(remove.clone(), OWNER_B, &[], &Value::Null).await.0, 404);
    assert_eq!(place.ask(remove.clone(), OWNER_A, &[], &Value::Null).await.0, 200);
    assert_eq!(place.ask(remove, OWNER_A, &[], &Value::Null).await.0, 200);
    assert_eq!(place.look(AT).await["settings"], Value::Null);
    assert_eq!(promised(&place).await, 5.0, "the request stays");
}

#[tokio::test]
async fn settings_out_of_range_name_their_field() {
    let place = place().await;
    for (body, field) in [
        (json!({ "quantile": 1.0, "min_rru": 1, "max_rru": 2 }), "quantile"),
        (json!({ "quantile": 0.9, "min_rru": 3, "max_rru": 2 }), "max_rru"),
        (json!({ "quantile": 0.9, "min_rru": 1, "max_rru": 1e12 }), "max_rru"),
        (
            json!({ "quantile": 0.9, "min_rru": 1, "max_rru": 2, "cooldown_seconds": 60 }),
            "cooldown_seconds",
        ),
        (json!({ "quantile": 0.9, "min_rru": 1, "max_rru": 2, "metric": "held" }), "metric"),
    ] {
        let (status, problem) = place.ask((Method::PUT, AT), OWNER_A, &[], &body).await;
        assert_eq!(
            (status.as_u16(), &problem["errors"][0]["field"]),
            (422, &json!(field)),
            "{problem}"
        );
    }
    let body = json!({ "quantile": 0.9, "min_rru": 1, "max_rru": 2 });
    assert_eq!(place.ask((Method::PUT, AT), OWNER_B, &[], &body).await.0, 404);
    assert_eq!(place.look(AT).await["settings"], Value::Null);
}
