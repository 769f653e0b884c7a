//! Quotas over HTTP: what they refuse, in a validation as in the decision, and the priorities that they allow.

use crate::requests::{ADMIN, OWNER_A, place, two};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn quota_refusal_differs_and_policy_grants_a_part() {
    let place = place().await;
    let set = |owner: &'static str, token: &'static str, rru: Value| {
        let body = match rru {
            Value::Null => json!({ "limits": [] }),
            rru => json!({ "limits": [{ "profile": "base", "rru": rru }] }),
        };
        let path = format!("/ops/v1/quotas/{owner}");
        let place = &place;
        async move { place.ask((Method::PUT, &path), token, &[], &body).await }
    };
    let values = json!({ "rru": { "type": 1.25 } });
    let made = place.ask((Method::PUT, "/ops/v1/rru-profiles/base"), ADMIN, &[], &values).await;
    assert_eq!(made.0, 200, "{}", made.1);
    assert_eq!(set("a", OWNER_A, json!(100)).await.0, 403);
    let (status, quota) = set("a", ADMIN, json!(6.5)).await;
    assert_eq!((status.as_u16(), &quota["limits"][0]["promised"]), (200, &json!(4.5)), "{quota}");
    let refused = place.ended(place.make(&two()).await).await;
    let result = &refused["result"];
    // A validation knows quotas, and answers what the decision answers.
    for (path, body) in [
        ("/v1/reservations?dry_run=validate", two()),
        ("/v1/plans?dry_run=validate", json!({ "changes": [two()] })),
    ] {
        let (status, problem) = place.ask((Method::POST, path), OWNER_A, &[], &body).await;
        assert_eq!(status, 409, "{path}: {problem}");
        for (member, said) in result.as_object().expect("an object") {
            assert_eq!((member, &problem[member]), (member, said), "{path}");
        }
    }
    assert_eq!(
        (&result["code"], &result["reasons"]),
        (&json!("quota_exceeded"), &json!(["quota_exceeded"]))
    );
    assert_eq!((&result["left_rru"], &result["quotas"][0]["limit"]), (&json!(2.0), &json!(6.5)));
    assert_eq!(result["quotas"][0]["quota"], "RRU of profile \"base\"");
    assert_eq!(result["alternatives"][0]["request"]["capacity_rru"], 2.0);
    let plan = place.plan(json!([two()])).await;
    assert_eq!(
        (&plan["applicable"], &plan["changes"][0]["quota"]["code"]),
        (&json!(false), &json!("quota_exceeded"))
    );
    let (status, problem) = place.apply(&plan).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("quota_exceeded")));
    assert_eq!((&problem["left_rru"], &problem["limits"]), (&json!(2.0), &json!([])));
    assert_eq!(problem["alternatives"][0]["request"]["capacity_rru"], 2.0);
    let at = "/ops/v1/quotas/a";
    let (status, problem) = place.ask((Method::PUT, at), ADMIN, &[], &json!({})).await;
    assert_eq!((status.as_u16(), &problem["errors"][0]["pointer"]), (422, &json!("#/limits")));
    let said = problem["errors"][0]["detail"].as_str().expect("text");
    assert!(said.contains("send a list of limits") && said.contains("DELETE"), "{said}");
    let remove = async || place.ask((Method::DELETE, at), ADMIN, &[], &Value::Null).await;
    assert_eq!(remove().await, (StatusCode::OK, json!({ "removed": "a" })));
    let (status, problem) = remove().await;
    assert_eq!((status.as_u16(), &problem["code"]), (404, &json!("unknown_quota")));
    let dry = (Method::POST, "/v1/reservations?dry_run=validate");
    assert_eq!(place.ask(dry, OWNER_A, &[], &two()).await.0, 200, "no quota any more");

    let mut much = two();
    much["capacity_rru"] = json!(20);
    let plan = place.plan(json!([much])).await;
    let (status, problem) = place.apply(&plan).await;
    assert_eq!((status.as_u16(), &problem["code"]), (409, &json!("not_granted")));
    assert_eq!(problem["reasons"], json!(["insufficient_hardware", "region"]));
    let limit = json!({
        "limit": "region", "without_rru": 20.0, "sentence": "there is no more", "reservation": "new",
    });
    assert_eq!(problem["limits"], json!([limit]));
    let short = json!({
        "reservation": "new", "asked_rru": 20.0, "grantable_rru": 10.0, "missing_rru": 10.0,
    });
    assert_eq!(problem["short"], json!([short]));
    much["grant_policy"] = json!({ "at_least_rru": 12 });
    assert_eq!(place.ended(place.make(&much).await).await["state"], "failed");
    much["grant_policy"] = json!("best_effort");
    let done = place.ended(place.make(&much).await).await;
    assert_eq!(done["result"]["requests"][0]["granted_rru"], 10.0);
    let new = place.look("/v1/reservations/new").await;
    assert_eq!((&new["promised_rru"], &new["requested_rru"]), (&json!(10.0), &json!(20.0)));
    place.until("/v1/reservations/new", |new| new["state"] == "partially_granted").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owners_request_the_priorities_that_their_quota_allows() {
    let place = place().await;
    let done = place.ended(place.make(&two()).await).await;
    assert_eq!(done["state"], "done", "{done}");
    assert_eq!(place.look("/v1/reservations/new").await["priority"], 5, "not the most important");

    let any = [("If-Match", "*")];
    let change = "/v1/reservations/new?dry_run=validate";
    let set = async |token, priority: i32| {
        place.ask((Method::PATCH, change), token, &any, &json!({ "priority": priority })).await
    };
    let refused = async |most: i32| {
        let (status, problem) = set(OWNER_A, most - 1).await;
        assert_eq!(
            (status.as_u16(), &problem["errors"][0]["pointer"]),
            (422, &json!("#/priority"))
        );
        let said = problem["errors"][0]["detail"].as_str().expect("text");
        assert!(
            said.contains(&format!("may request {most}")) && said.contains("max_priority"),
            "{said}"
        );
        assert_eq!(set(OWNER_A, most).await.0, 200);
    };
    refused(5).await;
    assert_eq!(set(ADMIN, 0).await.0, 200, "operators set any");
    let mut first = two();
    (first["reservation"], first["priority"]) = ("other".into(), 0.into());
    let plan = json!({ "changes": [first] });
    let (status, problem) = place.ask((Method::POST, "/v1/plans"), OWNER_A, &[], &plan).await;
    assert_eq!(
        (status.as_u16(), &problem["errors"][0]["pointer"]),
        (422, &json!("#/changes/0/priority"))
    );

    let quota = |body: Value| {
        let place = &place;
        async move { place.ask((Method::PUT, "/ops/v1/quotas/a"), ADMIN, &[], &body).await }
    };
    let (status, problem) = quota(json!({ "limits": [], "max_priority": -1 })).await;
    assert_eq!(
        (status.as_u16(), &problem["errors"][0]["pointer"]),
        (422, &json!("#/max_priority"))
    );
    let (status, set_to) = quota(json!({ "limits": [], "max_priority": 2 })).await;
    assert_eq!((status.as_u16(), &set_to["max_priority"]), (200, &json!(2)));
    refused(2).await;
    let to_two = place.change("new", "*", &json!({ "priority": 2 })).await;
    assert_eq!(place.ended(to_two).await["state"], "done");

    // A reservation keeps the priority that it has; a new one gets at most what its owner may request.
    assert_eq!(quota(json!({ "limits": [], "max_priority": 7 })).await.0, 200);
    assert_eq!(set(OWNER_A, 2).await.0, 200);
    assert_eq!(set(OWNER_A, 3).await.0, 422);
    let mut second = two();
    second["reservation"] = "second".into();
    assert_eq!(place.ended(place.make(&second).await).await["state"], "done");
    assert_eq!(place.look("/v1/reservations/second").await["priority"], 7);
    let trail =
        place.ask((Method::GET, "/ops/v1/trail?action=quota_set"), ADMIN, &[], &Value::Null);
    let (_, trail) = trail.await;
    assert_eq!(trail["entries"][0]["detail"]["max_priority"], 7, "{trail}");
}
