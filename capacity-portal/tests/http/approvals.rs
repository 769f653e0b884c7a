//! Requests and plans that move more servers in use of others than the settings allow.

use crate::allocator::Allocator;
use crate::pages::{page, send};
use crate::place::{Place, READER, ROOT, tokens};
use crate::requests::{OWNER_A, two};
use crate::stored_plans::psql;
use broker::{PlanId, RequestId};
use capacity_portal::{Authority, PortalSettings, Role, Token};
use control::{PlanDeadline, Planner};
use fleet::RegionSnapshot;
use fleet::quote::Quote;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A place without approval limit (`None`) decides nothing; one with a limit makes plans.
async fn place(approval_above: Option<u64>) -> Place {
    let mut tokens = tokens();
    tokens.push(Token::scoped("owner-a", &[Role::Owner], Some("a"), OWNER_A).expect("a token"));
    let authority = Authority::new(tokens, true).expect("tokens");
    let planner = approval_above.map(|_| Arc::new(Allocator) as _);
    let settings = PortalSettings { authority, planner, approval_above, ..Default::default() };
    Place::set(settings).await
}

/// A quote for the request, made by the planner of these tests.
async fn quote(place: &Place) -> Quote {
    let parts = place.broker.export(None).await.expect("exported").parts;
    let region = RegionSnapshot::new(parts).expect("valid");
    let mut change = two();
    change.as_object_mut().expect("an object").remove("labels");
    let change = serde_json::from_value(change).expect("a request");
    let planned = Allocator.plan(&region, &[change], PlanDeadline::default(), &|| false);
    planned.expect("planned").quotes.remove(0)
}

/// A request that awaits approval, as the admission worker leaves it.
async fn awaiting(place: &Place) -> RequestId {
    let (status, accepted) = place.make(&two()).await;
    assert_eq!(status, 202, "{accepted}");
    let broker = &place.broker;
    let request = broker.take_request("worker", Duration::from_secs(60)).await.expect("asked");
    let id = request.expect("submitted").id;
    let (plan, quote) = (PlanId::now_v7(), quote(place).await);
    let awaits = broker.await_request_approval("requests", "worker", id, plan, &quote, 7).await;
    assert!(awaits.expect("asked"));
    id
}

async fn post(place: &Place, path: &str, token: &str, body: Value) -> (u16, Value) {
    let (status, answer) = place.ask((Method::POST, path), token, &[], &body).await;
    (status.as_u16(), answer)
}

#[tokio::test]
async fn request_is_approved_and_rejected_by_operators() {
    let place = place(None).await;
    let id = awaiting(&place).await;
    let at = format!("/v1/requests/{id}");
    let found = place.look(&at).await;
    assert_eq!(
        (&found["state"], &found["awaits_in_use"]),
        (&json!("awaiting_approval"), &json!(7))
    );
    // Shown to its owner, decided by operators.
    for (token, decides) in [(OWNER_A, false), (READER, false), (ROOT, true)] {
        for path in [format!("/requests/{id}"), "/requests".to_owned()] {
            let (_, shown) = page(&place, &path, Some(token)).await;
            assert!(shown.contains("Awaiting approval") && shown.contains("7 servers"), "{shown}");
        }
        let (_, shown) = page(&place, &format!("/requests/{id}"), Some(token)).await;
        assert_eq!(shown.contains(&format!("/requests/{id}/approve")), decides, "{token}: {shown}");
        let (status, _) =
            post(&place, &format!("/ops/v1/requests/{id}/approve"), token, json!({})).await;
        assert_eq!(status, if decides { 200 } else { 403 }, "{token}");
    }
    let found = place.look(&at).await;
    let state = (&found["state"], &found["awaits_in_use"], &found["approved_in_use"]);
    assert_eq!(state, (&json!("submitted"), &Value::Null, &json!(7)));
    let (status, problem) =
        post(&place, &format!("/ops/v1/requests/{id}/reject"), ROOT, json!({ "why": "late" }))
            .await;
    assert_eq!((status, &problem["code"]), (409, &json!("not_awaiting")));

    // A plan that moves more than was approved awaits approval again, and is rejected.
    let taken = place.broker.take_request("worker", Duration::from_secs(60)).await.expect("asked");
    assert_eq!(taken.expect("submitted").approved_in_use, Some(7));
    let quote = quote(&place).await;
    let broker = &place.broker;
    let plan = PlanId::now_v7();
    assert!(
        broker
            .await_request_approval("requests", "worker", id, plan, &quote, 8)
            .await
            .expect("asked")
    );
    let reject = format!("/ops/v1/requests/{id}/reject");
    let (status, problem) = post(&place, &reject, ROOT, json!({ "why": " " })).await;
    assert_eq!((status, &problem["pointer"]), (422, &json!("#/why")));
    let sent = send(&place, &format!("/requests/{id}/reject"), ROOT, "why=the+sale").await;
    assert!(sent.status().is_success() || sent.status().is_redirection(), "{}", sent.status());
    let found = place.look(&at).await;
    assert_eq!(
        (&found["state"], &found["answer"]["code"]),
        (&json!("refused"), &json!("rejected"))
    );
    let operation = found["operation"].as_str().expect("an id");
    assert_eq!(place.look(&format!("/v1/operations/{operation}")).await["state"], "failed");
    let (_, shown) = page(&place, &format!("/requests/{id}"), Some(OWNER_A)).await;
    assert!(shown.contains("an operator rejected it: the sale"), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn owner_submits_a_plan_that_only_an_operator_may_apply() {
    let place = place(Some(0)).await;
    let plan = place.plan(json!([two()])).await;
    assert_eq!(plan["needs_approval"], false);
    let id = plan["plan"].as_str().expect("an id");
    // The planner of these tests takes only what is free, so a move of the stored plan is made one from `b/ü`.
    let from_other =
        "UPDATE plans SET answers = jsonb_set(jsonb_set(answers, '{0,moves,0,from}', '\"b/ü\"'),
        '{0,moves,0,in_use}', 'true') WHERE plan_id = :'id'";
    psql(&place.socket(), &[("id", id)], from_other);
    assert_eq!(place.look(&format!("/v1/plans/{id}")).await["needs_approval"], true);
    let apply = format!("/v1/plans/{id}/apply");
    for path in [format!("{apply}?dry_run=validate"), apply.clone()] {
        let (status, problem) = post(&place, &path, OWNER_A, Value::Null).await;
        assert_eq!((status, &problem["code"]), (403, &json!("approval_required")), "{path}");
    }
    let (_, shown) = page(&place, &format!("/plans/{id}"), Some(OWNER_A)).await;
    assert!(
        shown.contains("An operator must approve this") && !shown.contains("/apply"),
        "{shown}"
    );
    assert_eq!(post(&place, &apply, ROOT, Value::Null).await.0, 202);
}
