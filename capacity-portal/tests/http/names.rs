//! Names follow one rule where things are created; what has an older name stays within reach.

use crate::place::{Place, ROOT, answer};
use crate::who_may::token;
use broker::Role;
use reqwest::Method;
use serde_json::{Value, json};

/// Breaks the rule of names in each way.
const BAD: [&str; 6] = ["..", "a\nb", "\u{1b}[31m", " a", "a//b", "web/./x"];

#[tokio::test]
async fn new_names_follow_the_rule() {
    let place = Place::new().await;
    place.ready().await;
    let admin = token(&place, "admin", Role::Admin, None).await;
    let request = |name: &str, owner: &str| json!({ "reservation": name, "owner": owner, "capacity_rru": 1.0, "rru": { "type": 1.0 } });
    let server = |name: &str, rack: &str| json!({ "servers": [{ "server": name, "rack": rack, "msb": "msb0", "hardware_type": "type" }] });
    for bad in BAD {
        let path = |before: &str| format!("{before}/{}", encoded(bad));
        for (method, path, body, pointer) in [
            ("POST", "/v1/reservations".to_owned(), request(bad, "a"), "#/reservation"),
            ("POST", "/v1/reservations".to_owned(), request("new", bad), "#/owner"),
            (
                "POST",
                "/v1/plans".to_owned(),
                json!({ "changes": [request(bad, "a")] }),
                "#/changes/0/reservation",
            ),
            ("POST", "/ops/v1/servers".to_owned(), server(bad, "rack0"), "#/servers/0/server"),
            ("POST", "/ops/v1/servers".to_owned(), server("new", bad), "#/servers/0/rack"),
            (
                "POST",
                "/ops/v1/hardware-types".to_owned(),
                json!({ "hardware_types": [bad] }),
                "#/hardware_types/0",
            ),
            ("PATCH", "/ops/v1/hardware-types/type".to_owned(), json!({ "name": bad }), "#/name"),
            (
                "PUT",
                path("/ops/v1/elastic-reservations"),
                json!({ "owner": "a", "rru": { "type": 1.0 } }),
                "#/reservation",
            ),
            ("PUT", path("/ops/v1/rru-profiles"), json!({ "rru": { "type": 1.0 } }), "#/name"),
            ("PUT", path("/ops/v1/quotas"), json!({ "limits": [{ "servers": 1 }] }), "#/owner"),
            (
                "POST",
                "/ops/v1/tokens".to_owned(),
                json!({ "name": bad, "role": "viewer" }),
                "#/name",
            ),
            (
                "POST",
                "/ops/v1/tokens".to_owned(),
                json!({ "name": "new", "role": "owner", "owner": bad }),
                "#/owner",
            ),
        ] {
            let method = method.parse::<Method>().expect("a method");
            let sent = place.send(method, &path, Some(&admin), body.to_string()).await;
            let (status, problem) = answer(sent).await;
            assert_eq!(status, 422, "{path} {bad:?}: {problem}");
            let errors = problem["errors"].as_array().cloned();
            let errors = errors.unwrap_or_else(|| vec![problem.clone()]);
            let of = errors.iter().find(|error| error["pointer"] == pointer);
            let detail = of.unwrap_or_else(|| panic!("{path}: {problem}"))["detail"].as_str();
            assert!(
                detail.is_some_and(|said| said.contains(fleet::NAME_RULE)),
                "{path}: {problem}"
            );
        }
    }
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 2, "load and token: nothing else");
    for good in ["team/web.2", "数据", "Dell R740"] {
        let sent = place.send(
            Method::POST,
            "/v1/reservations",
            Some(&admin),
            request(good, "a").to_string(),
        );
        let (status, answered) = answer(sent.await).await;
        assert_eq!(status, 202, "{answered}");
    }
}

/// A segment as clients send it: `.` and `..` encoded twice.
fn encoded(name: &str) -> String {
    let once: String = name.bytes().map(|byte| format!("%{byte:02X}")).collect();
    if name == ".." { once.replace('%', "%25") } else { once }
}

#[tokio::test]
async fn older_names_stay_within_reach() {
    let place = Place::after(
        "WITH p AS (INSERT INTO promises (reservation, version, kind, owner, capacity_micro, \
                    msb_buffer, priority) \
                VALUES ('..', 1, 'guaranteed', E'o\\nld', 0, true, 0) RETURNING promise_id), \
            v AS (INSERT INTO rru_values SELECT promise_id, hardware_type_id, 1000000 \
                FROM p, hardware_types) \
            INSERT INTO reservations (reservation, kind, promise_id, made) \
                SELECT '..', 'guaranteed', promise_id, false FROM p",
    )
    .await;
    place.ready().await;
    let path = "/v1/reservations/%252E%252E";
    let (status, found) = place.get(path).await;
    assert_eq!((status.as_u16(), &found["reservation"]), (200, &json!("..")), "{found}");
    let page = place.send(Method::GET, "/reservations/%252E%252E", None, "").await;
    assert_eq!(page.status(), 200);
    let list = place.send(Method::GET, "/reservations", None, "").await.text().await.expect("text");
    assert!(list.contains("href=\"/reservations/%252E%252E\""), "{list}");
    let send = async |method: Method, body: Value| {
        let request = place.client.request(method, format!("{}{path}", place.base));
        let request = request.header("Authorization", format!("Bearer {ROOT}"));
        let request = request.header("If-Match", "*").header("Content-Type", "application/json");
        answer(request.body(body.to_string()).send().await.expect("an answer")).await
    };
    let (status, changed) = send(Method::PATCH, json!({ "labels": { "old": "yes" } })).await;
    assert_eq!(status, 202, "{changed}");
    let operation =
        format!("/v1/operations/{}?wait=10s", changed["operation"].as_str().expect("an id"));
    place.get(&operation).await;
    place
        .execute(
            "UPDATE capacity_requests SET state = 'cancelled' WHERE reservation = '..' AND open",
        )
        .await;
    let (status, removed) = send(Method::DELETE, json!({})).await;
    assert_eq!((status.as_u16(), &removed["reservation"]), (202, &json!("..")), "{removed}");
}
