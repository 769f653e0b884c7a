//! What stands beside a request: the version that was seen, a key that makes it safe to send again, and
//! that it is a draft.

use crate::jobs::with_small;
use crate::requests::{create, resize};
use broker::{
    Document, Key, OperationId, RequestFilter, RequestId, RequestState, Submission, SubmitError,
};
use serde_json::json;
use std::time::Duration;
use testkit::postgres::json_of;

const LONG: Duration = Duration::from_secs(600);

#[tokio::test]
async fn repeated_key_gets_the_first_answer() {
    let database = with_small().await;
    let broker = &database.broker;
    let claim = |actor: &'static str, digest: u8| broker.claim_key(actor, "key", [digest; 32]);
    let Key::Ours(first) = claim("a", 1).await.expect("claimed") else { panic!("it is new") };
    assert_eq!(claim("a", 1).await.expect("asked"), Key::Running);
    assert_eq!(claim("a", 2).await.expect("asked"), Key::Other);
    assert!(matches!(claim("b", 2).await.expect("claimed"), Key::Ours(_)), "another actor's");
    broker.release_key(first).await.expect("released");
    let Key::Ours(second) = claim("a", 2).await.expect("claimed") else { panic!("released") };
    let said = Document::of(&json!({ "status": 202, "body": {} }));
    let wanted = create("new", 2.0);
    let submission = |key| Submission {
        id: RequestId::now_v7(),
        operation: Some(OperationId::now_v7()),
        asking: &wanted,
        expected: None,
        key: Some(key),
    };
    let error = broker.submit_request("a", &submission((first, &said))).await;
    assert!(matches!(error, Err(SubmitError::KeyLost)), "{error:?}");
    assert!(broker.requests(&RequestFilter::default(), None, 9).await.expect("read").is_empty());
    broker.submit_request("a", &submission((second, &said))).await.expect("submitted");
    let Key::Answered(again) = claim("a", 2).await.expect("asked") else {
        panic!("it is answered")
    };
    assert_eq!(json_of(&again), json_of(&said));
    assert_eq!(claim("a", 1).await.expect("asked"), Key::Other);
    // The claim expired; and after a day the key is unknown.
    let Key::Ours(_) = broker.claim_key("a", "lost", [3; 32]).await.expect("claimed") else {
        panic!("it is new")
    };
    database
        .execute("UPDATE idempotency_keys SET claimed_at = claimed_at - interval '2 min'")
        .await;
    let again = broker.claim_key("a", "lost", [4; 32]).await.expect("claimed");
    assert!(matches!(again, Key::Ours(_)), "{again:?}");
    assert!(matches!(claim("a", 2).await.expect("asked"), Key::Answered(_)));
    database.execute("UPDATE idempotency_keys SET claimed_at = claimed_at - interval '25 h'").await;
    assert!(matches!(claim("a", 5).await.expect("claimed"), Key::Ours(_)));
    assert_eq!(broker.forget_keys().await.expect("forgotten"), 2);
}

#[tokio::test]
async fn draft_waits_for_its_submission() {
    let database = with_small().await;
    let broker = &database.broker;
    let (id, draft) = (RequestId::now_v7(), create("new", 3.0));
    let submission = Submission { id, operation: None, asking: &draft, expected: None, key: None };
    broker.submit_request("asker", &submission).await.expect("stored");
    assert!(broker.take_request("worker", LONG).await.expect("asked").is_none());
    broker.submit_draft("asker", id, Some(1), OperationId::now_v7()).await.expect("submitted");
    let taken = broker.take_request("worker", LONG).await.expect("asked").expect("one");
    assert_eq!((taken.id, taken.state), (id, RequestState::Submitted));
    let again = broker.submit_draft("asker", id, None, OperationId::now_v7()).await;
    assert!(matches!(again, Err(SubmitError::Over { .. })));
}

/// What is written against a version that was seen is refused where it is another by now.
#[tokio::test]
async fn outdated_version_is_refused() {
    let database = with_small().await;
    let broker = &database.broker;
    let card = broker.reservation_summary("web").await.expect("read").expect("there");
    let wanted = resize("web", 7.0);
    let submission = |expected| Submission {
        id: RequestId::now_v7(),
        operation: Some(OperationId::now_v7()),
        asking: &wanted,
        expected: Some(expected),
        key: None,
    };
    broker.submit_request("asker", &submission(&card.version)).await.expect("it is the version");
    let now = broker.reservation_summary("web").await.expect("read").expect("there");
    assert_ne!(now.version, card.version);
    assert_eq!(now.open.map(|of| of.state), Some(RequestState::Submitted));
    let error = broker.submit_request("asker", &submission(&card.version)).await;
    let Err(SubmitError::Stale { current }) = error else { panic!("{error:?}") };
    assert_eq!(current, now.version);
}
