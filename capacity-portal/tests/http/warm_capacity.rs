//! Warm capacity: what failures and growth need, over HTTP, on the page and as metrics; shared buffers that follow failures.

use crate::pages::{page, send};
use crate::place::{PATIENCE, Place, READER, ROOT, deciding};
use crate::requests::{ADMIN, OWNER_A, place};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::timeout;

const AT: &str = "/ops/v1/shared-buffers/type/autosize";

/// Two of 24 servers fail together on each of 60 days, for six hours.
const FAILURES: &str = "INSERT INTO unavailability (event_id, server_id, kind, started_at, ended_at) \
    SELECT 'e' || n || '-' || k, s.server_id, 'random_failure', clock_timestamp() - n * interval '1 day', \
        clock_timestamp() - n * interval '1 day' + interval '6 hours' \
    FROM generate_series(1, 60) n, generate_series(0, 1) k, \
        (SELECT server_id, row_number() OVER (ORDER BY server) - 1 AS at FROM servers) s \
    WHERE s.at = (2 * n + k) % 24";

/// Two days of samples: four of eight servers of `a` in use, six in the last hours of each day.
const USE: &str = "
    INSERT INTO usage_samples SELECT date_bin('5 minutes', clock_timestamp(), to_timestamp(0)) - n * interval '5 minutes'
        FROM generate_series(0, 575) n;
    INSERT INTO usage_cells (reservation, owner, hardware_type, datacenter, value_micro) VALUES ('a', 'a', 'type', 'dc', 1250000);
    INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent)
        SELECT cell_id, at, 0, 8, CASE WHEN row_number() OVER (ORDER BY at) % 288 < 200 THEN 4 ELSE 6 END, 0
        FROM usage_samples, usage_cells";

async fn row(place: &Place, query: &str) -> Value {
    let (status, found) = place.get(&format!("/ops/v1/shared-buffers{query}")).await;
    assert_eq!(status, 200, "{found}");
    let rows = found["shared_buffers"].as_array().expect("rows");
    assert_eq!(rows.len(), 1, "{found}");
    rows[0].clone()
}

#[tokio::test]
async fn failures_say_how_many_servers_a_shared_buffer_needs() {
    let place = Place::after(&format!("{FAILURES}; {USE}")).await;
    place.ready().await;
    let found = row(&place, "").await;
    // A burst of two lasts for a quarter of the time: Poisson of mean a quarter, of which 2.6 % are above one burst and 0.2 %
    // above two.
    assert_eq!((&found["recommended"], &found["follows"]), (&json!(4), &json!(false)), "{found}");
    assert_eq!((&found["failures"], &found["down_now"]), (&json!(120), &json!(0)), "{found}");
    let mean = found["mean_down"].as_f64().expect("a number");
    assert!((mean - 0.5).abs() < 0.15, "{found}");
    let short = found["chance_short"].as_f64().expect("a number");
    assert!((short - 0.22).abs() < 0.05, "no buffer: short whenever a server is down: {found}");
    assert_eq!(row(&place, "?chance=0.05").await["recommended"], 2);
    let strict = row(&place, "?chance=0.001").await;
    assert!(strict["recommended"].as_u64() >= Some(6), "{strict}");
    let (status, problem) = place.get("/ops/v1/shared-buffers?chance=0.02").await;
    assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("malformed")));

    // Four or six servers are used, so at most six within the hour; the others of `a`, `b` and eight free ones wait.
    let (status, found) = place.get("/ops/v1/headroom").await;
    assert_eq!(status, 200, "{found}");
    let of = &found["headroom"][0];
    let count = |name: &str| of[name].as_u64().unwrap_or_else(|| panic!("no {name}: {found}"));
    assert!(count("growth") + count("used") >= 6, "{found}");
    assert_eq!((count("used") + count("idle"), count("free"), count("missing")), (16, 8, 0));

    let metrics = place.send(Method::GET, "/metrics", Some(READER), "").await;
    let metrics = metrics.text().await.expect("text");
    let line = "ras_shared_buffer_recommended_servers{hardware_type=\"type\"} 4";
    assert!(metrics.lines().any(|of| of == line), "{metrics}");
    assert!(
        metrics
            .contains("ras_headroom_missing_servers{datacenter=\"dc\",hardware_type=\"type\"} 0")
    );
    let chance = "ras_shared_buffer_short_chance{hardware_type=\"type\"} ";
    let shown = metrics.lines().find_map(|of| of.strip_prefix(chance)).expect("a chance");
    assert!((shown.parse::<f64>().expect("a number") - short).abs() < 1e-9, "{shown}");

    let (status, text) = page(&place, "/warm-capacity", None).await;
    assert_eq!(status, 200);
    assert!(text.contains("it needs <strong>4</strong>") && text.contains("Headroom"), "{text}");
    let (_, text) = page(&place, "/warm-capacity?chance=0.05", None).await;
    assert!(text.contains("it needs <strong>2</strong>"), "{text}");
    assert_eq!(page(&place, "/warm-capacity?chance=x", None).await.0, 400);
}

#[tokio::test]
async fn nothing_is_recommended_without_failures() {
    let place = Place::new().await;
    place.ready().await;
    let found = row(&place, "").await;
    for unknown in ["recommended", "chance_short", "mean_down"] {
        assert_eq!(found[unknown], Value::Null, "{found}");
    }
    let (_, found) = place.get("/ops/v1/headroom").await;
    assert_eq!(found["headroom"][0]["growth"], Value::Null, "{found}");
}

/// What an operator reads.
async fn read(place: &Place, path: &str) -> Value {
    let (status, found) = place.ask((Method::GET, path), ADMIN, &[], &Value::Null).await;
    assert_eq!(status, 200, "{path}: {found}");
    found
}

async fn set(place: &Place, max: u32, chance: f64) -> Value {
    let body = json!({ "chance": chance, "min_servers": 1, "max_servers": max });
    let (status, set) = place.ask((Method::PUT, AT), ADMIN, &[], &body).await;
    assert_eq!(status, 200, "{set}");
    set
}

/// Waits until the last decision is this action, with this in its reason.
async fn until(place: &Place, action: &str, reason: &str) -> Value {
    let found = async {
        loop {
            let found = read(place, AT).await;
            let decision = &found["decision"];
            if decision["action"] == action
                && decision["reason"].as_str().is_some_and(|of| of.contains(reason))
            {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    match timeout(PATIENCE, found).await {
        Ok(found) => found,
        Err(_) => panic!("{}", read(place, AT).await),
    }
}

async fn wanted(place: &Place) -> Value {
    read(place, "/ops/v1/shared-buffers/type").await["shared_buffer"]["servers"].clone()
}

#[tokio::test]
async fn a_shared_buffer_follows_failures_within_its_limits() {
    let place = Place::set_after(FAILURES, deciding()).await;
    place.ready().await;
    assert_eq!(read(&place, AT).await["settings"], Value::Null);

    set(&place, 3, 0.01).await;
    let found = until(&place, "grow", "failures need 4 servers").await;
    assert_eq!(found["decision"]["to_servers"], 3, "{found}");
    assert_eq!(wanted(&place).await, 3);
    let trail = read(&place, "/ops/v1/trail?action=shared_buffer_set").await;
    let entry = &trail["entries"][0];
    assert_eq!(
        (&entry["actor"], &entry["detail"]["why"], &entry["detail"]["servers"]),
        (&json!("autosize"), &found["decision"]["reason"], &json!(3.0)),
        "{trail}"
    );

    // The next decision is due at once after each change of the settings.
    set(&place, 3, 0.01).await;
    until(&place, "keep", "max is reached").await;
    set(&place, 9, 0.01).await;
    until(&place, "grow", "failures need 4 servers").await;
    assert_eq!(wanted(&place).await, 4);
    set(&place, 9, 0.5).await;
    until(&place, "keep", "less than a cooldown ago").await;
    assert_eq!(wanted(&place).await, 4);
    // Two days pass; promises are never changed otherwise.
    place
        .execute(
            "BEGIN; SET LOCAL session_replication_role = replica; \
             UPDATE promises SET promised_at = promised_at - interval '2 days'; COMMIT",
        )
        .await;
    set(&place, 9, 0.5).await;
    until(&place, "shrink", "failures need 0 servers").await;
    assert_eq!(wanted(&place).await, 3, "a tenth, one server at least");

    // Its last size stays.
    let answer = place.ask((Method::DELETE, AT), ADMIN, &[("if-match", "\"1\"")], &Value::Null);
    assert_eq!(answer.await.0, 412);
    let answer = place.ask((Method::DELETE, AT), ADMIN, &[], &Value::Null).await;
    assert_eq!((answer.0.as_u16(), &answer.1["removed"]), (200, &json!("type")));
    assert_eq!(
        (wanted(&place).await, &read(&place, AT).await["settings"]),
        (json!(3), &Value::Null)
    );
}

#[tokio::test]
async fn wrong_settings_name_their_field() {
    let place = place().await;
    place.ready().await;
    for (body, field) in [
        (json!({ "chance": 0, "min_servers": 1, "max_servers": 2 }), "chance"),
        (json!({ "chance": 0.01, "min_servers": 3, "max_servers": 2 }), "max_servers"),
        (
            json!({ "chance": 0.01, "min_servers": 1, "max_servers": 2, "cooldown_seconds": 60 }),
            "cooldown_seconds",
        ),
    ] {
        let (status, problem) = place.ask((Method::PUT, AT), ADMIN, &[], &body).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!(field)));
    }
    let body = json!({ "chance": 0.01, "min_servers": 1, "max_servers": 2 });
    assert_eq!(place.ask((Method::PUT, AT), OWNER_A, &[], &body).await.0, 403);
    let unknown = (Method::PUT, "/ops/v1/shared-buffers/none/autosize");
    assert_eq!(place.ask(unknown, ADMIN, &[], &body).await.0, 404);
    let unknown = (Method::GET, "/ops/v1/shared-buffers/none/autosize");
    assert_eq!(place.ask(unknown, ADMIN, &[], &Value::Null).await.0, 404);
}

#[tokio::test]
async fn operators_set_it_on_the_page() {
    let place = Place::new().await;
    place.ready().await;
    let set = "/warm-capacity/type/autosize";
    let form = "chance=1&min_servers=1&max_servers=5&cooldown_seconds=24&version=0";
    assert_eq!(send(&place, set, READER, form).await.status(), 403);
    let done = send(&place, set, ROOT, form).await;
    assert_eq!((done.status().as_u16(), done.url().path()), (200, "/warm-capacity"));
    let (_, shown) = page(&place, "/warm-capacity", Some(ROOT)).await;
    assert!(shown.contains("1 to 5 servers, cooldown") && shown.contains("Switch off"), "{shown}");
    let (_, shown) = page(&place, "/warm-capacity", Some(READER)).await;
    assert!(shown.contains("1 to 5 servers") && !shown.contains("Switch off"), "{shown}");
    // Another version, and no numbers.
    assert_eq!(send(&place, set, ROOT, form).await.status(), 412);
    let wrong = "chance=x&min_servers=1&max_servers=-5&cooldown_seconds=24&version=0";
    let refused = send(&place, set, ROOT, wrong).await;
    assert_eq!(refused.status(), 422);
    let text = refused.text().await.expect("text");
    assert!(text.contains("not a number") && text.contains("not a number of servers"), "{text}");
    let settings = place.get(AT).await.1;
    let at = settings["settings"]["set_at"].as_str().expect("a time");
    let version = chrono::DateTime::parse_from_rfc3339(at).expect("a time").timestamp_micros();
    let remove = format!("{set}/remove");
    assert_eq!(send(&place, &remove, ROOT, &format!("version={version}")).await.status(), 200);
    assert_eq!(place.get(AT).await.1["settings"], Value::Null);
}
