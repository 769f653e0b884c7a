//! Every route for every role, and what is of another owner.

use crate::place::{Place, answer, tokens};
use broker::{NewToken, Role};
use capacity_portal::{Authority, Secret};
use reqwest::Method;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// Who may use a route.
#[derive(Clone, Copy, Debug)]
enum Who {
    /// Every caller, with or without a token.
    Anyone,
    /// Callers that may read.
    Reads,
    /// Callers that may read data of the whole region: no token limited to an owner.
    ReadsRegion,
    /// Tokens with the role.
    Has(Role),
}

use Who::{Anyone, Has, Reads, ReadsRegion};

/// Each route and who may use it. A route that is not here fails the test: say who may, and mean it.
const ROUTES: &[(&str, &str, Who)] = &[
    ("get", "/live", Anyone),
    ("get", "/ready", Anyone),
    ("get", "/status", Anyone),
    ("get", "/metrics", Anyone),
    ("get", "/v1/whoami", Has(Role::Viewer)),
    ("get", "/v1/changes", Reads),
    ("get", "/v1/reservations", Reads),
    ("post", "/v1/reservations", Has(Role::Owner)),
    ("get", "/v1/reservations/{name}", Reads),
    ("patch", "/v1/reservations/{name}", Has(Role::Owner)),
    ("delete", "/v1/reservations/{name}", Has(Role::Owner)),
    ("get", "/v1/reservations/{name}/certificate", Reads),
    ("get", "/v1/reservations/{name}/servers", Reads),
    ("get", "/v1/reservations/{name}/changes", Reads),
    ("get", "/v1/reservations/{name}/history", Reads),
    ("get", "/v1/history/usage", Reads),
    ("get", "/v1/reservations/{name}/autosize", Reads),
    ("put", "/v1/reservations/{name}/autosize", Has(Role::Owner)),
    ("delete", "/v1/reservations/{name}/autosize", Has(Role::Owner)),
    ("get", "/v1/requests", Reads),
    ("get", "/v1/requests/{id}", Reads),
    ("post", "/v1/requests/{id}/cancel", Has(Role::Owner)),
    ("post", "/v1/requests/{id}/submit", Has(Role::Owner)),
    ("get", "/v1/operations/{id}", Reads),
    ("post", "/v1/plans", Has(Role::Owner)),
    ("get", "/v1/plans/{id}", Reads),
    ("post", "/v1/plans/{id}/apply", Has(Role::Owner)),
    ("get", "/v1/policies", ReadsRegion),
    ("post", "/v1/policies", Has(Role::Operator)),
    ("get", "/v1/policies/{name}", ReadsRegion),
    ("put", "/v1/policies/{name}", Has(Role::Operator)),
    ("delete", "/v1/policies/{name}", Has(Role::Operator)),
    ("get", "/v1/policies/{name}/versions", ReadsRegion),
    ("get", "/v1/policies/{name}/versions/{version}", ReadsRegion),
    ("get", "/ops/v1/certificate", ReadsRegion),
    ("post", "/ops/v1/drills", Has(Role::Operator)),
    ("get", "/ops/v1/quotas", Reads),
    ("put", "/ops/v1/quotas/{owner}", Has(Role::Admin)),
    ("delete", "/ops/v1/quotas/{owner}", Has(Role::Admin)),
    ("get", "/ops/v1/rru-profiles", Reads),
    ("get", "/ops/v1/rru-profiles/{name}", Reads),
    ("put", "/ops/v1/rru-profiles/{name}", Has(Role::Operator)),
    ("delete", "/ops/v1/rru-profiles/{name}", Has(Role::Operator)),
    ("post", "/ops/v1/alertmanager", Has(Role::Health)),
    ("post", "/ops/v1/events", Has(Role::Health)),
    ("post", "/ops/v1/usage", Has(Role::Health)),
    ("get", "/ops/v1/emergencies", ReadsRegion),
    ("post", "/ops/v1/emergencies", Has(Role::Emergency)),
    ("get", "/ops/v1/emergencies/preview", Has(Role::Emergency)),
    ("get", "/ops/v1/emergencies/{id}", ReadsRegion),
    ("post", "/ops/v1/emergencies/{id}/end", Has(Role::Emergency)),
    ("get", "/ops/v1/maintenance", ReadsRegion),
    ("post", "/ops/v1/maintenance", Has(Role::Operator)),
    ("get", "/ops/v1/maintenance/{id}", ReadsRegion),
    ("post", "/ops/v1/maintenance/{id}/cancel", Has(Role::Operator)),
    ("post", "/ops/v1/maintenance/{id}/end", Has(Role::Operator)),
    ("get", "/ops/v1/replacements", ReadsRegion),
    ("get", "/ops/v1/outages", ReadsRegion),
    ("get", "/ops/v1/loans", ReadsRegion),
    ("get", "/ops/v1/give-way", ReadsRegion),
    ("post", "/ops/v1/give-way", Has(Role::Operator)),
    ("get", "/ops/v1/check", Has(Role::Operator)),
    ("get", "/ops/v1/contracts", ReadsRegion),
    ("put", "/ops/v1/contracts/{reservation}", Has(Role::Operator)),
    ("delete", "/ops/v1/contracts/{reservation}", Has(Role::Operator)),
    ("get", "/ops/v1/mover", ReadsRegion),
    ("get", "/ops/v1/moves", ReadsRegion),
    ("get", "/ops/v1/moves/under-way", ReadsRegion),
    ("post", "/ops/v1/moves/stop", Has(Role::Operator)),
    ("post", "/ops/v1/moves/resume", Has(Role::Operator)),
    ("post", "/ops/v1/rollouts/{reservation}/pause", Has(Role::Operator)),
    ("post", "/ops/v1/rollouts/{reservation}/resume", Has(Role::Operator)),
    ("get", "/ops/v1/servers", ReadsRegion),
    ("get", "/ops/v1/racks", ReadsRegion),
    ("get", "/ops/v1/msbs", ReadsRegion),
    ("post", "/ops/v1/servers", Has(Role::Operator)),
    ("post", "/ops/v1/servers/remove", Has(Role::Operator)),
    ("post", "/ops/v1/servers/move", Has(Role::Operator)),
    ("post", "/ops/v1/servers/keep", Has(Role::Operator)),
    ("get", "/ops/v1/drained-servers", ReadsRegion),
    ("get", "/ops/v1/region", ReadsRegion),
    ("patch", "/ops/v1/region", Has(Role::Operator)),
    ("get", "/ops/v1/hardware-types", ReadsRegion),
    ("post", "/ops/v1/hardware-types", Has(Role::Operator)),
    ("patch", "/ops/v1/hardware-types/{name}", Has(Role::Operator)),
    ("delete", "/ops/v1/hardware-types/{name}", Has(Role::Operator)),
    ("get", "/ops/v1/hardware-orders", ReadsRegion),
    ("post", "/ops/v1/hardware-orders", Has(Role::Operator)),
    ("get", "/ops/v1/hardware-orders/{id}", ReadsRegion),
    ("patch", "/ops/v1/hardware-orders/{id}", Has(Role::Operator)),
    ("post", "/ops/v1/hardware-orders/{id}/arrive", Has(Role::Operator)),
    ("post", "/ops/v1/hardware-orders/{id}/cancel", Has(Role::Operator)),
    ("get", "/ops/v1/shared-buffers", ReadsRegion),
    ("get", "/ops/v1/headroom", ReadsRegion),
    ("get", "/ops/v1/shared-buffers/{hardware_type}/autosize", ReadsRegion),
    ("put", "/ops/v1/shared-buffers/{hardware_type}/autosize", Has(Role::Operator)),
    ("delete", "/ops/v1/shared-buffers/{hardware_type}/autosize", Has(Role::Operator)),
    ("get", "/ops/v1/shared-buffers/{hardware_type}", ReadsRegion),
    ("put", "/ops/v1/shared-buffers/{hardware_type}", Has(Role::Operator)),
    ("delete", "/ops/v1/shared-buffers/{hardware_type}", Has(Role::Operator)),
    ("get", "/ops/v1/elastic-reservations", ReadsRegion),
    ("get", "/ops/v1/elastic-reservations/{name}", ReadsRegion),
    ("put", "/ops/v1/elastic-reservations/{name}", Has(Role::Operator)),
    ("delete", "/ops/v1/elastic-reservations/{name}", Has(Role::Operator)),
    ("get", "/ops/v1/servers/{name}", ReadsRegion),
    ("get", "/ops/v1/servers/{name}/history", ReadsRegion),
    ("get", "/ops/v1/solves", ReadsRegion),
    ("post", "/ops/v1/solves", Has(Role::Operator)),
    ("get", "/ops/v1/solves/{id}", ReadsRegion),
    ("post", "/ops/v1/solves/{id}/approve", Has(Role::Operator)),
    ("post", "/ops/v1/solves/{id}/reject", Has(Role::Operator)),
    ("post", "/ops/v1/solves/{id}/cancel", Has(Role::Operator)),
    ("post", "/ops/v1/requests/{id}/approve", Has(Role::Operator)),
    ("post", "/ops/v1/requests/{id}/reject", Has(Role::Operator)),
    ("get", "/ops/v1/solves/{id}/report", ReadsRegion),
    ("get", "/ops/v1/solves/{id}/files", ReadsRegion),
    ("get", "/ops/v1/solves/{id}/files/{part}/{name}", ReadsRegion),
    ("get", "/ops/v1/history", ReadsRegion),
    ("get", "/ops/v1/supply", ReadsRegion),
    ("get", "/ops/v1/stuck", ReadsRegion),
    ("get", "/ops/v1/trail", ReadsRegion),
    ("get", "/ops/v1/unavailability", ReadsRegion),
    ("get", "/ops/v1/tokens", Has(Role::Admin)),
    ("post", "/ops/v1/tokens", Has(Role::Admin)),
    ("post", "/ops/v1/tokens/{token}/revoke", Has(Role::Admin)),
];

/// What must be in the query, so that what is asked can be read.
fn query(path: &str) -> &'static str {
    match path {
        "/ops/v1/emergencies/preview" => "?reservation=a&rru=1",
        _ if path.ends_with("}/changes") => "?from=1",
        _ => "",
    }
}

/// Makes a token in the store.
pub async fn token(place: &Place, name: &str, role: Role, owner: Option<&str>) -> String {
    let secret = Secret::for_token().expect("a secret");
    let owner = owner.map(str::to_owned);
    let life = Duration::from_secs(3_600);
    let token = NewToken { name: name.to_owned(), digest: secret.digest(), role, owner, life };
    place.broker.create_token("test", &token).await.expect("made");
    secret.expose().to_owned()
}

fn routes_described() -> Vec<(String, String)> {
    let document: Value = serde_json::from_str(&capacity_portal::openapi()).expect("JSON");
    let paths = document["paths"].as_object().expect("paths");
    let methods = ["get", "post", "put", "patch", "delete"];
    let described = paths.iter().flat_map(|(path, item)| {
        let there = methods.into_iter().filter(|method| item.get(method).is_some());
        there.map(|method| (method.to_owned(), path.clone()))
    });
    described.collect()
}

#[tokio::test]
async fn every_route_accepts_exactly_its_roles() {
    let table: BTreeMap<(String, String), Who> = ROUTES
        .iter()
        .map(|(method, path, who)| (((*method).to_owned(), (*path).to_owned()), *who))
        .collect();
    let place = Place::closed().await;
    let mut callers = vec![(None, None, None)];
    for role in Role::ALL {
        let owner = (role == Role::Owner).then_some("a");
        let secret = token(&place, role.as_str(), role, owner).await;
        callers.push((Some(role), owner, Some(secret)));
    }
    let limited = token(&place, "viewer of a", Role::Viewer, Some("a")).await;
    callers.push((Some(Role::Viewer), Some("a"), Some(limited)));
    let described = routes_described();
    assert_eq!(described.len(), table.len(), "the table has what there is, and nothing else");
    for (method, path) in described {
        let key = (method, path);
        let who = table.get(&key).unwrap_or_else(|| panic!("{key:?}: say who may, in ROUTES"));
        let (method, path) = &key;
        let method: Method = method.to_uppercase().parse().expect("a method");
        let filled = path.replace("{name}", "a").replace("{id}", &uuid::Uuid::nil().to_string());
        let filled = filled
            .replace("{token}", "unknown")
            .replace("{part}", "x")
            .replace("{version}", "1")
            .replace("{owner}", "a")
            .replace("{hardware_type}", "a");
        let filled = filled + query(path);
        for (role, owner, secret) in &callers {
            let expected = match (who, role) {
                (Anyone, _) => None,
                (_, None) => Some(401),
                (Reads, Some(_)) => None,
                (ReadsRegion, Some(_)) => owner.is_some().then_some(403),
                (Has(needed), Some(role)) => (!role.includes(*needed)).then_some(403),
            };
            let sent = place.send(method.clone(), &filled, secret.as_deref(), "{}").await;
            let status = sent.status().as_u16();
            let context = format!("{method} {filled} as {role:?} of {owner:?}");
            assert!(status < 500, "{context}: {status}");
            let refused = matches!(status, 401 | 403).then_some(status);
            assert_eq!(refused, expected, "{context}");
            if refused.is_some() {
                let (_, problem) = answer(sent).await;
                let code = problem["code"].as_str().expect("a code");
                let known = ["token_missing", "role_missing", "other_owner"].contains(&code);
                assert!(known, "{context}: {problem}");
            }
        }
    }
}

#[tokio::test]
async fn other_owners_objects_are_reported_as_missing() {
    let place = Place::new().await;
    let owner = token(&place, "owner of a", Role::Owner, Some("a")).await;
    let viewer = token(&place, "viewer of a", Role::Viewer, Some("a")).await;
    for (method, path, who) in ROUTES {
        let Some(rest) = path.strip_prefix("/v1/reservations/{name}") else { continue };
        let method: Method = method.to_uppercase().parse().expect("a method");
        for secret in [&owner, &viewer] {
            if matches!(who, Has(_)) && secret == &viewer {
                continue;
            }
            let send = async |name: &str| {
                let path = format!("{}/v1/reservations/{name}{rest}{}", place.base, query(path));
                let request = place.client.request(method.clone(), path).bearer_auth(secret);
                let request = request.header("If-Match", "\"1\"").body("{}");
                request.send().await.expect("an answer")
            };
            assert_ne!(send("a").await.status(), 404, "{rest}");
            // Byte for byte what is said of one that never was.
            let (status, mut other) = answer(send("b%2F%C3%BC").await).await;
            let (_, mut none) = answer(send("unknown").await).await;
            assert_eq!(status, 404, "{rest}: {other}");
            let name = "b/\u{fc}";
            let detail = other["detail"].as_str().expect("text").replace(name, "unknown");
            other["detail"] = detail.into();
            for said in [&mut other, &mut none] {
                said["request_id"] = Value::Null;
            }
            assert_eq!(other, none, "{rest}");
        }
    }
}

#[tokio::test]
async fn whoami_shows_token_until_it_expires() {
    let place = Place::new().await;
    let admin = token(&place, "ann", Role::Admin, None).await;
    let send = async |method, path: &str, token: &str, body: &str| {
        answer(place.send(method, path, Some(token), body.to_owned()).await).await
    };
    let (status, me) = send(Method::GET, "/v1/whoami", &admin, "").await;
    assert_eq!(
        (status.as_u16(), &me["name"], &me["roles"][0]),
        (200, &"ann".into(), &"admin".into())
    );
    let (status, me) = send(Method::GET, "/v1/whoami", crate::place::WATCH, "").await;
    assert_eq!((status.as_u16(), &me["roles"][0]), (200, &"health".into()));

    // Made over HTTP, used, revoked over HTTP: at once.
    let body = r#"{"name": "web", "role": "owner", "owner": "a", "days": 3}"#;
    let (status, made) = send(Method::POST, "/ops/v1/tokens", &admin, body).await;
    assert_eq!(status, 201, "{made}");
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    let (_, me) = send(Method::GET, "/v1/whoami", &secret, "").await;
    assert_eq!((&me["name"], &me["owner"]), (&"web".into(), &"a".into()));
    let (_, listed) = send(Method::GET, "/ops/v1/tokens", &admin, "").await;
    assert_eq!(listed["tokens"].as_array().expect("a list").len(), 2);
    assert!(!listed.to_string().contains(&secret));
    let (status, _) = send(Method::POST, "/ops/v1/tokens/web/revoke", &admin, "").await;
    assert_eq!(status, 200);
    assert_eq!(send(Method::GET, "/v1/whoami", &secret, "").await.0, 401);
    let (status, problem) = send(Method::POST, "/ops/v1/tokens/web/revoke", &admin, "").await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &"unknown_token".into()));

    // Revoked by another process, and expired: soon.
    let gone = token(&place, "gone", Role::Viewer, None).await;
    assert_eq!(send(Method::GET, "/v1/whoami", &gone, "").await.0, 200);
    let late = Secret::for_token().expect("a secret");
    let of_a_second = NewToken {
        name: "late".to_owned(),
        digest: late.digest(),
        role: Role::Viewer,
        owner: None,
        life: Duration::from_secs(1),
    };
    place.broker.create_token("test", &of_a_second).await.expect("made");
    place.broker.revoke_token("test", "gone").await.expect("revoked");
    for secret in [&*gone, late.expose()] {
        let over = async {
            while send(Method::GET, "/v1/whoami", secret, "").await.0 != 401 {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), over).await.expect("within seconds");
    }

    for (body, status, code) in [
        (r#"{"name": "watch", "role": "viewer"}"#, 409, "token_exists"),
        (r#"{"name": "ann", "role": "viewer"}"#, 409, "token_exists"),
        (r#"{"name": "", "role": "viewer"}"#, 422, "malformed"),
        (r#"{"name": "local:root", "role": "viewer"}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "king"}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "owner"}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "admin", "owner": "a"}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "viewer", "days": 0}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "viewer", "days": 4000000000}"#, 422, "malformed"),
        (r#"{"name": "x", "role": "viewer", "secret": "mine"}"#, 400, "malformed"),
    ] {
        let (found, problem) = send(Method::POST, "/ops/v1/tokens", &admin, body).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &code.into()), "{body}");
    }
}

#[tokio::test]
async fn almost_valid_secret_is_rejected_and_guesses_limited() {
    let place = Place::with(Authority::new(tokens(), false).expect("tokens")).await;
    let good = token(&place, "ann", Role::Viewer, None).await;
    let status = async |said: String| {
        let request = place.client.get(format!("{}/v1/whoami", place.base));
        request.header("Authorization", said).send().await.expect("an answer").status().as_u16()
    };
    assert_eq!(status(format!("Bearer {good}")).await, 200);
    assert_eq!(status(format!("bearer  {good} ")).await, 200, "the scheme is no secret");
    let mut damaged = good.clone();
    damaged.replace_range(10..11, if &good[10..11] == "a" { "b" } else { "a" });
    let other = Secret::for_token().expect("a secret");
    for said in [
        format!("Bearer {damaged}"),
        format!("Bearer {}", other.expose()),
        format!("Bearer {}", &good[..63]),
        format!("Bearer {good}a"),
        format!("Bearer {}", good.to_uppercase()),
        format!("Basic {good}"),
        good.clone(),
        "Bearer".to_owned(),
        "Bearer ' OR 1=1 --".to_owned(),
    ] {
        assert_eq!(status(said.clone()).await, 401, "{said}");
    }
    let mut waits = 0;
    for _ in 0..40 {
        let sent = place.send(Method::GET, "/v1/whoami", Some(&damaged), "").await;
        if sent.status() == 429 {
            assert!(sent.headers().contains_key("retry-after"));
            waits += 1;
        }
    }
    assert!(waits > 10, "{waits}");
    assert_eq!(status(format!("Bearer {good}")).await, 200, "others there are not kept waiting");
}
