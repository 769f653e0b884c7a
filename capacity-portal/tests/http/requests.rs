//! Requests for capacity over HTTP: validated, decided, planned, applied, refused, ended.

use crate::place::{Place, READER, ROOT, answer, deciding};
use broker::{MoveOrigin, MoverInstance, RequestFilter, Wanted};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;

pub const OWNER_A: &str = "secret-of-the-owner-a";
pub const OWNER_B: &str = "secret-of-the-owner-b";
pub const ADMIN: &str = "secret-of-an-admin---";

pub async fn place() -> Place {
    Place::set(deciding()).await
}

impl Place {
    /// Asks with headers.
    pub async fn ask(
        &self,
        (method, path): (Method, &str),
        token: &str,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> (StatusCode, Value) {
        let mut request = self.client.request(method, format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = request.header("Authorization", format!("Bearer {token}")).body(body);
        answer(request.send().await.expect("an answer")).await
    }

    pub async fn look(&self, path: &str) -> Value {
        let (status, body) = self.ask((Method::GET, path), OWNER_A, &[], &Value::Null).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub async fn make(&self, body: &Value) -> (StatusCode, Value) {
        self.ask((Method::POST, "/v1/reservations"), OWNER_A, &[], body).await
    }

    pub async fn change(&self, name: &str, version: &str, body: &Value) -> (StatusCode, Value) {
        let path = format!("/v1/reservations/{name}");
        self.ask((Method::PATCH, &path), OWNER_A, &[("If-Match", version)], body).await
    }

    /// Waits for the operation of what was accepted.
    pub async fn ended(&self, (status, accepted): (StatusCode, Value)) -> Value {
        assert_eq!(status, 202, "{accepted}");
        let operation = accepted["operation"].as_str().expect("an id");
        for _ in 0..3 {
            let found = self.look(&format!("/v1/operations/{operation}?wait=20s")).await;
            if found["state"] != "running" {
                return found;
            }
        }
        panic!("not decided: {accepted}")
    }

    pub async fn plan(&self, changes: Value) -> Value {
        let body = json!({ "changes": changes });
        let (status, plan) = self.ask((Method::POST, "/v1/plans"), OWNER_A, &[], &body).await;
        assert_eq!(status, 201, "{plan}");
        plan
    }

    pub async fn apply(&self, plan: &Value) -> (StatusCode, Value) {
        let path = format!("/v1/plans/{}/apply", plan["plan"].as_str().expect("an id"));
        self.ask((Method::POST, &path), OWNER_A, &[], &Value::Null).await
    }

    /// Does what the mover does of a plan's moves.
    pub async fn carry_out(&self) {
        let broker = &self.broker;
        let epoch = broker
            .lease_mover(&MoverInstance::new("mover"), Duration::from_secs(600))
            .await
            .expect("asked");
        let epoch = epoch.expect("no other mover acts");
        broker.open_moves("mover", epoch, Wanted::BetweenSolves).await.expect("opened");
        let moves = broker.moves_under_way().await.expect("listed");
        let plans = moves.iter().filter(|of| of.origin == MoveOrigin::Plan);
        let ids: Vec<_> = plans.map(|of| of.id).collect();
        broker.bind_moves("mover", epoch, &ids).await.expect("bound");
        // The next one is another instance.
        broker.release_mover(epoch).await.expect("released");
    }

    /// Looks until it is so.
    pub async fn until(&self, path: &str, so: impl Fn(&Value) -> bool) -> Value {
        for _ in 0..200 {
            let (_, body) = self.ask((Method::GET, path), OWNER_A, &[], &Value::Null).await;
            if so(&body) {
                return body;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{path}: {}", self.look(path).await)
    }
}

/// Two servers' worth, without a buffer.
pub fn two() -> Value {
    json!({
        "reservation": "new", "owner": "a", "capacity_rru": 2.5, "rru": { "type": 1.25 },
        "msb_buffer": false, "labels": { "team": "green" },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reservation_is_requested_granted_changed_and_removed() {
    let place = place().await;
    let done = place.ended(place.make(&two()).await).await;
    assert_eq!(
        (&done["state"], &done["result"]["requests"][0]["state"]),
        (&json!("done"), &json!("granted"))
    );
    let at = "/v1/reservations/new";
    let new = place.until(at, |new| new["arriving"]["servers"] == 2).await;
    assert_eq!(
        (&new["promised_rru"], &new["state"], &new["guaranteed_rru"]),
        (&json!(2.5), &json!("granted"), &json!(0.0))
    );
    place.carry_out().await;
    let new = place.until(at, |new| new["owned"]["servers"] == 2).await;
    assert_eq!(
        (&new["guaranteed_rru"], &new["conditions"][0]["holds"]),
        (&json!(2.5), &json!(true))
    );
    assert_eq!(new["by_hardware_type"]["type"]["rru"], 2.5);

    // Too much: refused with reasons and alternatives; the promise stays.
    let refused =
        place.ended(place.change("new", "*", &json!({ "capacity_rru": 100 })).await).await;
    assert_eq!(refused["state"], "failed");
    let result = &refused["result"];
    assert_eq!(result["reasons"], json!(["insufficient_hardware", "region"]));
    assert_eq!(place.look(at).await["promised_rru"], 2.5);
    // The alternative is granted, as a plan.
    let wanted = result["alternatives"][0]["request"].clone();
    assert_eq!(wanted["capacity_rru"], 10.0, "two of its own, and six that are free");
    let plan = place.plan(json!([wanted])).await;
    assert_eq!((&plan["applicable"], &plan["servers"]), (&json!(true), &json!(6)));
    let applied = place.ended(place.apply(&plan).await).await;
    assert_eq!(applied["kind"], "apply");
    assert_eq!(place.look(at).await["promised_rru"], 10.0);
    let (status, problem) = place.apply(&plan).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("plan_over")));
    place.carry_out().await;

    let (status, accepted) =
        place.ask((Method::DELETE, at), OWNER_A, &[("If-Match", "*")], &Value::Null).await;
    assert_eq!(place.ended((status, accepted)).await["state"], "done");
    place.until(at, |new| new["state"] == "shrinking").await;
    place.carry_out().await;
    let gone = place.until(at, |new| new["code"] == "unknown_reservation").await;
    assert_eq!(gone["status"], 404);
    let requests = place.look("/v1/requests?reservation=new").await;
    let states: Vec<&Value> =
        requests["requests"].as_array().expect("a list").iter().map(|of| &of["state"]).collect();
    assert_eq!(states, ["expired", "expired", "refused", "expired"]);
    assert_eq!(place.broker.check().await.expect("asked"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn placement_rules_are_promised_changed_and_lifted() {
    let place = place().await;
    let mut asked = two();
    asked["allowed_datacenters"] = json!(["dc"]);
    (asked["replicas"], asked["replicas_per_msb"]) = (json!(3), json!(3));
    let wrong = |members: Value| {
        let mut body = two();
        for (name, value) in members.as_object().expect("members") {
            body[name] = value.clone();
        }
        body
    };
    for (members, detail) in [
        (json!({ "allowed_datacenters": ["dc9"] }), "the region has no datacenter \"dc9\""),
        (json!({ "allowed_datacenters": ["dc", "dc"] }), "it is listed twice"),
        (json!({ "replicas": 0, "replicas_per_msb": 1 }), "it must be from 1 to 1000"),
        (json!({ "replicas": 3, "replicas_per_msb": 4 }), "it is more than replicas"),
        (json!({ "replicas": 3 }), "replicas and replicas_per_msb must both be given, or neither"),
        (json!({ "affinity": { "dc": 1.1 } }), "a share must be from 0 to 1"),
    ] {
        let (status, problem) = place.make(&wrong(members)).await;
        assert_eq!(status, 422, "{problem}");
        assert!(problem["detail"].as_str().expect("a text").contains(detail), "{problem}");
    }
    assert_eq!(place.ended(place.make(&asked).await).await["state"], "done");
    let at = "/v1/reservations/new";
    let new = place.look(at).await;
    assert_eq!(new["allowed_datacenters"], json!(["dc"]));
    assert_eq!((&new["replicas"], &new["replicas_per_msb"]), (&json!(3), &json!(3)));
    let lifted = json!({ "allowed_datacenters": [], "replicas": null, "replicas_per_msb": null });
    assert_eq!(place.ended(place.change("new", "*", &lifted).await).await["state"], "done");
    let new = place.look(at).await;
    assert_eq!(new["allowed_datacenters"], json!([]));
    assert_eq!((&new["replicas"], &new["replicas_per_msb"]), (&Value::Null, &Value::Null));
    // What was promised before stays written down.
    let history = place.look("/v1/reservations/new/history").await;
    let first = &history["promises"][1];
    assert_eq!((&first["allowed_datacenters"], &first["replicas"]), (&json!(["dc"]), &json!(3)));
    assert_eq!(place.broker.check().await.expect("asked"), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stale_plan_is_answered_with_a_new_one() {
    let place = place().await;
    let plan = place.plan(json!([two()])).await;
    assert_eq!(plan["changes"][0]["granted"], "in_full");
    let taken = plan["changes"][0]["answer"]["moves"][0]["server_id"].as_str().expect("a server");
    // Something else happens, which a plan tolerates.
    place.publish(23, Some("b/ü")).await;
    let dry = format!("/v1/plans/{}/apply?dry_run=validate", plan["plan"].as_str().expect("an id"));
    let (status, said) = place.ask((Method::POST, &dry), OWNER_A, &[], &Value::Null).await;
    assert_eq!((status.as_u16(), &said["valid"]), (200, &json!(true)));
    // And then one of its servers fails.
    let event = json!({
        "event": "e1", "scope": "server", "scope_id": taken, "kind": "random_failure",
        "started_at": place.broker.clock().await.expect("asked"),
    });
    let (status, said) =
        place.ask((Method::POST, "/ops/v1/events"), crate::place::WATCH, &[], &event).await;
    assert!(status.is_success(), "{said}");
    let (status, problem) = place.apply(&plan).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("plan_stale")), "{problem}");
    let fresh = &problem["plan"];
    assert_eq!(fresh["applicable"], true);
    assert_ne!(fresh["changes"][0]["answer"]["moves"][0]["server_id"], taken);
    assert_eq!(
        place.look(&format!("/v1/plans/{}", plan["plan"].as_str().expect("an id"))).await["state"],
        "stale"
    );
    place.ended(place.apply(fresh).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_request_lists_fields_and_stores_nothing() {
    let place = place().await;
    let fields = |problem: &Value| -> Vec<String> {
        let errors = problem["errors"].as_array().expect("errors");
        errors.iter().map(|error| error["field"].as_str().expect("a field").to_owned()).collect()
    };
    let wrong = json!({
        "reservation": "x", "owner": "a", "capacity_rru": 1.000_000_1, "rru": { "gpu": 1 },
        "priority": "high", "size": 3,
    });
    let (status, problem) = place.make(&wrong).await;
    assert_eq!(status, 422, "{problem}");
    assert_eq!(fields(&problem), ["capacity_rru", "rru.gpu", "priority", "size"]);
    let mut zone = two();
    zone["churn_contract"] =
        json!({ "in_use_percent": 2, "window_seconds": 3600, "zone": "Mars/Base" });
    let (status, problem) = place.make(&zone).await;
    assert_eq!((status.as_u16(), fields(&problem)), (422, vec!["churn_contract.zone".to_owned()]));
    let body = json!({ "changes": [two(), { "reservation": "a", "priority": -1 }] });
    let (status, problem) = place.ask((Method::POST, "/v1/plans"), OWNER_A, &[], &body).await;
    assert_eq!((status.as_u16(), fields(&problem)), (422, vec!["changes[1].priority".to_owned()]));
    for deadline in
        [json!(0), json!(0.4), json!(30.5), json!(-1), json!(1e300), json!("5 s"), json!([])]
    {
        let body = json!({ "changes": [two()], "deadline_seconds": deadline });
        let (status, problem) = place.ask((Method::POST, "/v1/plans"), OWNER_A, &[], &body).await;
        let named = (status.as_u16(), fields(&problem));
        assert_eq!(named, (422, vec!["deadline_seconds".to_owned()]), "{deadline}");
    }
    for deadline in [json!(0.5), json!(30), Value::Null] {
        let body = json!({ "changes": [two()], "deadline_seconds": deadline });
        let path = "/v1/plans?dry_run=validate";
        let (status, said) = place.ask((Method::POST, path), OWNER_A, &[], &body).await;
        assert_eq!((status.as_u16(), &said["valid"]), (200, &json!(true)), "{deadline}: {said}");
    }
    for body in ["", "[]", "{", "null", "{\"changes\": 3}"] {
        let response = place.send(Method::POST, "/v1/plans", Some(OWNER_A), body).await;
        assert_eq!(answer(response).await.0, 400, "{body}");
    }
    let path = "/v1/reservations?dry_run=validate";
    let (status, said) = place.ask((Method::POST, path), OWNER_A, &[], &two()).await;
    assert_eq!((status.as_u16(), &said["valid"]), (200, &json!(true)));
    let path = "/v1/reservations?dry_run=maybe";
    assert_eq!(place.ask((Method::POST, path), OWNER_A, &[], &two()).await.0, 400);
    let stored = place.broker.requests(&RequestFilter::default(), None, 9).await.expect("listed");
    assert!(stored.is_empty(), "{stored:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_checks_idempotency_key_and_version() {
    let place = place().await;
    let key = [("Idempotency-Key", "k1")];
    let post = (Method::POST, "/v1/reservations");
    let first = place.ask(post.clone(), OWNER_A, &key, &two()).await;
    place.ended(first.clone()).await;
    let again = place.ask(post.clone(), OWNER_A, &key, &two()).await;
    assert_eq!(first, again, "the first answer");
    let mut other = two();
    other["capacity_rru"] = json!(1.25);
    let (status, problem) = place.ask(post.clone(), OWNER_A, &key, &other).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("key_reused")));
    let (status, problem) = place.make(&two()).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("exists")));

    let smaller = json!({ "capacity_rru": 1.25 });
    let at = (Method::PATCH, "/v1/reservations/new");
    let (status, problem) = place.ask(at, OWNER_A, &[], &smaller).await;
    assert_eq!((status.as_u16(), &problem["code"]), (428, &json!("version_required")));
    let version = format!(
        "\"{}\"",
        place.look("/v1/reservations/new").await["version"].as_str().expect("one")
    );
    let done = place.ended(place.change("new", &version, &smaller).await).await;
    assert_eq!(done["state"], "done", "{done}");
    let (status, mut problem) = place.change("new", &version, &smaller).await;
    assert_eq!((status.as_u16(), &problem["code"]), (412, &json!("version_stale")));
    // What an operator sets beside it is no less of a change.
    let contract = broker::Contract {
        in_use_micro: 20_000,
        window: Duration::from_secs(86_400),
        quiet: Vec::new(),
        zone: "UTC".to_owned(),
    };
    for set in [Some(&contract), Some(&contract), None] {
        let seen = problem["etag"].as_str().expect("one").to_owned();
        match set {
            Some(contract) => {
                let set = place.broker.set_contract("root", "new", contract, None, None);
                set.await.map(drop)
            }
            None => place.broker.remove_contract("root", "new", None, None).await.map(drop),
        }
        .expect("set");
        let taken = json!({ "churn_contract": null });
        let (status, stale) = place.change("new", &seen, &taken).await;
        assert_eq!(status, 412, "{stale}");
        let now = place.look("/v1/reservations/new").await["version"].clone();
        assert_eq!(stale["etag"], format!("\"{}\"", now.as_str().expect("one")));
        problem = stale;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_uses_current_values_of_a_profile() {
    let place = place().await;
    let at = "/ops/v1/rru-profiles/general";
    let set = async |token: &'static str, body: Value| {
        place.ask((Method::PUT, at), token, &[], &body).await
    };
    let values = json!({ "rru": { "type": 1.25 } });
    assert_eq!(set(OWNER_A, values.clone()).await.0, 403);
    let (status, profile) = set(ROOT, values).await;
    assert_eq!((status.as_u16(), &profile["set_by"]), (200, &json!("root")), "{profile}");
    for (body, field) in [
        (json!({ "rru": { "abacus": 1 } }), "rru.abacus"),
        (json!({ "rru": { "type": 0 } }), "rru.type"),
        (json!({ "rru": {} }), "rru"),
        (json!({}), "rru"),
        (json!({ "rru": { "type": 1 }, "size": 3 }), "size"),
    ] {
        let (status, problem) = set(ROOT, body).await;
        assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!(field)));
    }
    // Owners read it, and ask with it.
    assert_eq!(place.look(at).await["rru"], json!({ "type": 1.25 }));
    let mut asked = two();
    let members = asked.as_object_mut().expect("an object");
    members.remove("rru");
    members.insert("profile".to_owned(), json!("generous"));
    let (status, problem) = place.make(&asked).await;
    assert_eq!((status.as_u16(), &problem["errors"][0]["field"]), (422, &json!("profile")));
    asked["profile"] = json!("general");
    let plan = place.plan(json!([asked])).await;
    assert_eq!(plan["applicable"], true, "{plan}");
    assert_eq!(place.ended(place.make(&asked).await).await["state"], "done");
    let path = "/v1/reservations/new";
    assert_eq!(place.look(path).await["rru"], json!({ "type": 1.25 }));
    // Promises stay when the profile changes.
    assert_eq!(set(ROOT, json!({ "rru": { "type": 9 } })).await.0, 200);
    assert_eq!(place.look(path).await["rru"], json!({ "type": 1.25 }));
    // With If-Match a write does not overwrite a concurrent one.
    let body = json!({ "rru": { "type": 3 } });
    let (status, problem) =
        place.ask((Method::PUT, at), ROOT, &[("If-Match", "\"1\"")], &body).await;
    assert_eq!((status.as_u16(), &problem["code"]), (412, &json!("version_stale")), "{problem}");
    let now = problem["etag"].as_str().expect("an ETag").to_owned();
    let (status, _) = place.ask((Method::PUT, at), ROOT, &[("If-Match", &now)], &body).await;
    assert_eq!(status, 200);
    let remove = async || place.ask((Method::DELETE, at), ROOT, &[], &Value::Null).await;
    assert_eq!(remove().await.0, 200);
    let (status, problem) = remove().await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("unknown_profile")));
    let (_, listed) =
        place.ask((Method::GET, "/ops/v1/rru-profiles"), OWNER_A, &[], &Value::Null).await;
    assert_eq!(listed, json!({ "profiles": [], "next_page_token": null }));
    assert_eq!(place.look(path).await["rru"], json!({ "type": 1.25 }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_sees_and_changes_only_its_own() {
    let place = place().await;
    let list = place.look("/v1/reservations").await;
    let names = |list: &Value| -> Vec<String> {
        let all = list["reservations"].as_array().expect("a list");
        all.iter().map(|of| of["reservation"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&list), ["a"]);
    let of = |token: &'static str, path: &'static str| {
        place.ask((Method::GET, path), token, &[], &Value::Null)
    };
    assert_eq!(of(OWNER_A, "/v1/reservations?owner=b/%C3%BC").await.0, 403);
    assert_eq!(of(OWNER_A, "/v1/reservations/b%2F%C3%BC").await.0, 404);
    let (_, all) = of(READER, "/v1/reservations?limit=1").await;
    assert_eq!(names(&all), ["a"]);
    let token = all["next_page_token"].as_str().expect("another page");
    let path = format!("/v1/reservations?limit=1&page_token={token}");
    let (_, next) = place.ask((Method::GET, &path), READER, &[], &Value::Null).await;
    assert_eq!((names(&next), &next["next_page_token"]), (vec!["b/ü".to_owned()], &Value::Null));
    let path = format!("/v1/reservations?limit=1&kind=guaranteed&page_token={token}");
    let (status, problem) = place.ask((Method::GET, &path), READER, &[], &Value::Null).await;
    assert_eq!((status.as_u16(), &problem["code"]), (400, &json!("page_token")));

    // RequestSpec for another owner, changing what is another's, or with a token that only reads.
    let (status, accepted) =
        place.ask((Method::POST, "/v1/reservations"), OWNER_B, &[], &two()).await;
    assert_eq!((status.as_u16(), &accepted["code"]), (403, &json!("other_owner")));
    assert_eq!(place.ask((Method::POST, "/v1/reservations"), READER, &[], &two()).await.0, 403);
    let accepted = place.make(&two()).await;
    let operation = format!("/v1/operations/{}", accepted.1["operation"].as_str().expect("an id"));
    let request = format!("/v1/requests/{}", accepted.1["request"].as_str().expect("an id"));
    place.ended(accepted).await;
    for path in [&operation, &request, "/v1/reservations/new"] {
        assert_eq!(
            place.ask((Method::GET, path), OWNER_B, &[], &Value::Null).await.0,
            404,
            "{path}"
        );
        assert_eq!(place.ask((Method::GET, path), ROOT, &[], &Value::Null).await.0, 200, "{path}");
    }
    let any = [("If-Match", "*")];
    let path = "/v1/reservations/new";
    assert_eq!(
        place.ask((Method::PATCH, path), OWNER_B, &any, &json!({ "priority": 3 })).await.0,
        404
    );
    assert_eq!(place.ask((Method::DELETE, path), OWNER_B, &any, &Value::Null).await.0, 404);
    let give = json!({ "owner": "b/ü" });
    assert_eq!(place.ask((Method::PATCH, path), OWNER_A, &any, &give).await.0, 403);
    let body = json!({ "changes": [{ "reservation": "new", "priority": 3 }] });
    assert_eq!(place.ask((Method::POST, "/v1/plans"), OWNER_B, &[], &body).await.0, 404);
    let labelled = place.look("/v1/reservations?label=team=green&state=granted").await;
    assert_eq!(names(&labelled), ["new"]);
    assert!(names(&place.look("/v1/reservations?label=team=red").await).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn drafts_and_later_starts_wait_and_can_be_withdrawn() {
    let place = place().await;
    let mut draft = two();
    draft["draft"] = json!(true);
    let (status, written) = place.make(&draft).await;
    assert_eq!((status.as_u16(), &written["operation"]), (201, &Value::Null));
    let at = format!("/v1/requests/{}", written["request"].as_str().expect("an id"));
    assert_eq!(place.look(&at).await["state"], "draft");
    let submit = format!("{at}/submit");
    let none = &Value::Null;
    assert_eq!(place.ask((Method::POST, &submit), OWNER_A, &[], none).await.0, 428);
    let accepted =
        place.ask((Method::POST, &submit), OWNER_A, &[("If-Match", "\"1\"")], none).await;
    assert_eq!(place.ended(accepted).await["state"], "done");
    let mut later = two();
    later["reservation"] = json!("later");
    later["starts_at"] = json!("2126-01-01T00:00:00Z");
    let (status, accepted) = place.make(&later).await;
    assert_eq!(status, 202);
    // Every response about it has the notice.
    let notice = json!(
        "no capacity is reserved until 2126-01-01T00:00:00Z: the request is decided then, on the region as it is \
        then"
    );
    assert_eq!(accepted["notice"], notice);
    let request = accepted["request"].as_str().expect("an id");
    assert_eq!(place.look(&format!("/v1/requests/{request}")).await["notice"], notice);
    let operation = accepted["operation"].as_str().expect("an id");
    let operation = place.look(&format!("/v1/operations/{operation}")).await;
    assert_eq!((&operation["state"], &operation["notice"]), (&json!("running"), &notice));
    let (_, page) = crate::pages::page(&place, "/reservations", Some(OWNER_A)).await;
    assert!(page.contains(notice.as_str().expect("text")), "{page}");
    let (_, others) = crate::pages::page(&place, "/reservations", Some(OWNER_B)).await;
    assert!(!others.contains("no capacity is reserved"), "of another owner: {others}");
    // Nothing is set aside for it: all free servers can be promised to another.
    let mut rest = two();
    (rest["reservation"], rest["capacity_rru"]) = ("rest".into(), 7.5.into());
    assert_eq!(place.ended(place.make(&rest).await).await["state"], "done");
    assert_eq!(place.look(&format!("/v1/requests/{request}")).await["state"], "submitted");
    // A plan cannot have a later start.
    let changes = json!({ "changes": [later] });
    let (status, problem) = place.ask((Method::POST, "/v1/plans"), OWNER_A, &[], &changes).await;
    assert_eq!((status.as_u16(), &problem["code"]), (422, &json!("invalid")), "{problem}");
    assert_eq!(problem["errors"][0]["field"], "changes[0].starts_at", "{problem}");
    let cancel = format!("/v1/requests/{}/cancel", accepted["request"].as_str().expect("an id"));
    let any = [("If-Match", "*")];
    let (status, cancelled) = place.ask((Method::POST, &cancel), OWNER_A, &any, none).await;
    assert_eq!((status.as_u16(), &cancelled["state"]), (200, &json!("cancelled")));
    let (status, problem) = place.ask((Method::POST, &cancel), OWNER_A, &any, none).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("over")));
    assert_eq!(place.ended((StatusCode::ACCEPTED, accepted)).await["state"], "failed");
    // Labels and contracts need no plan.
    let words = json!({
        "labels": { "team": "blue" },
        "churn_contract": { "in_use_percent": 2, "window_seconds": 3600, "quiet": ["22:00-06:00"] },
    });
    let done = place.ended(place.change("new", "*", &words).await).await;
    assert_eq!((&done["state"], &done["result"]["servers"]), (&json!("done"), &json!(0)));
    let new = place.look("/v1/reservations/new").await;
    assert_eq!((&new["labels"]["team"], &new["promise_version"]), (&json!("blue"), &json!(1)));
    assert_eq!(new["churn_contract"]["quiet"], json!(["22:00-06:00"]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_has_plans_grants_and_emergencies_with_their_actors() {
    let place = place().await;
    assert_eq!(place.ended(place.make(&two()).await).await["state"], "done");
    let mut more = two();
    more["reservation"] = "more".into();
    let changes = json!({ "changes": [{ "reservation": "new", "capacity_rru": 3.75 }, more] });
    let plan = place.ask((Method::POST, "/v1/plans"), ADMIN, &[], &changes).await.1;
    let apply = format!("/v1/plans/{}/apply", plan["plan"].as_str().expect("an id"));
    let none = &Value::Null;
    assert_eq!(place.ask((Method::POST, &apply), ADMIN, &[], none).await.0, 202, "{plan}");
    let emergency =
        json!({ "reservation": "new", "rru": 1.25, "why": "site outage", "max_servers": 9 });
    let asked = place.ask((Method::POST, "/ops/v1/emergencies"), ADMIN, &[], &emergency).await;
    assert_eq!(asked.0, 202, "{}", asked.1);

    let history = place.look("/v1/reservations/new/history").await;
    let entries = history["entries"].as_array().expect("a list");
    let of = |entry: &Value| {
        let text = |member: &str| entry[member].as_str().expect("text").to_owned();
        (text("action"), text("actor"))
    };
    let wanted = [
        ("emergency_asked", "admin"),
        ("plan_applied", "admin"),
        ("plan_applied", "owner-a"),
        ("request_submitted", "owner-a"),
    ];
    let wanted: Vec<_> = wanted.map(|(action, actor)| (action.to_owned(), actor.to_owned())).into();
    assert_eq!(entries.iter().map(of).collect::<Vec<_>>(), wanted, "{history}");
    let numbers: Vec<_> = entries.iter().map(|entry| entry["seq"].as_i64()).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "newest first: {numbers:?}");
    // Of a plan for several reservations, only its part.
    let promised =
        json!({ "promises": [{ "reservation": "new", "before_rru": 2.5, "rru": 3.75 }] });
    assert_eq!(entries[1]["detail"], promised);
    let (_, page) = crate::pages::page(&place, "/reservations/new", Some(OWNER_A)).await;
    for said in ["emergency asked", "plan applied", "request submitted", "owner-a", "admin"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    // Page by page.
    let first = place.look("/v1/reservations/new/history?limit=3").await;
    let next = first["next_page_token"].as_str().expect("more");
    let rest = place.look(&format!("/v1/reservations/new/history?limit=3&page_token={next}")).await;
    assert_eq!(of(&rest["entries"][0]).0, "request_submitted");
}

#[tokio::test]
async fn change_to_what_it_has_makes_no_request() {
    let place = place().await;
    place.ended(place.make(&two()).await).await;
    let requests = async || {
        let list = place.look("/v1/requests?reservation=new").await;
        list["requests"].as_array().expect("rows").len()
    };
    for _ in 0..2 {
        let (status, said) = place.change("new", "*", &json!({ "capacity_rru": 2.5 })).await;
        let expected =
            json!({ "valid": true, "reservation": "new", "unchanged": true, "notice": null });
        assert_eq!((status.as_u16(), &said), (200, &expected));
    }
    assert_eq!(requests().await, 1, "no other request is stored");
    let (status, said) = place.change("new", "\"0\"", &json!({ "capacity_rru": 2.5 })).await;
    assert_eq!((status.as_u16(), &said["code"]), (412, &json!("version_stale")), "{said}");
    let changed = place.change("new", "*", &json!({ "capacity_rru": 3.75 })).await;
    assert_eq!(changed.0, 202, "{changed:?}");
}
