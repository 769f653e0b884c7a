//! Policies: versions, conditions, and the solves that keep them.

use crate::harness::Database;
use crate::regions::small;
use broker::{
    Broker, Document, ImportOptions, JobKind, PoliciesEdition, PolicyChange, PolicyChanges,
    PolicyError, PolicyVersion, Publication, PublicationId, PublishError, Seq, SolveBasis,
    SolveEnd, TargetVersion,
};
use std::time::Duration;
use testkit::postgres::json_of;

const LEASE: Duration = Duration::from_secs(60);

/// Changes policies as one who has seen those in force.
async fn change(
    broker: &Broker,
    changes: &[(&str, Option<&str>)],
) -> Result<Vec<PolicyVersion>, PolicyError> {
    let changes: Vec<PolicyChange<'_>> =
        changes.iter().map(|&(policy, sql)| PolicyChange { policy, sql }).collect();
    let checked = broker.policies().await.expect("read").edition;
    let of = PolicyChanges { changes: &changes, why: "breakers", checked, seen: None };
    broker.change_policies("ann", of, None).await
}

async fn in_force(broker: &Broker) -> Vec<(String, String)> {
    let policies = broker.policies().await.expect("read");
    policies.in_force().map(|(name, sql)| (name.to_string(), sql.to_owned())).collect()
}

fn rows(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|(name, sql)| ((*name).to_owned(), (*sql).to_owned())).collect()
}

#[tokio::test]
async fn policies_have_versions_that_stay_readable() {
    let database = Database::new().await;
    let broker = &database.broker;
    assert_eq!(broker.policies().await.expect("read").edition, PoliciesEdition(0));
    change(broker, &[("power", Some("one")), ("age", Some("old"))]).await.expect("set");
    change(broker, &[("power", Some("two"))]).await.expect("replaced");
    assert_eq!(in_force(broker).await, rows(&[("age", "old"), ("power", "two")]));
    let gone = change(broker, &[("power", None)]).await.expect("withdrawn").remove(0);
    assert_eq!((gone.version, gone.edition, gone.sql), (3, PoliciesEdition(4), None));
    assert_eq!(in_force(broker).await, rows(&[("age", "old")]));
    let versions = broker.policy_versions("power").await.expect("read");
    let texts: Vec<Option<&str>> = versions.iter().map(|of| of.sql.as_deref()).collect();
    assert_eq!(texts, [None, Some("two"), Some("one")]);
    change(broker, &[("power", Some("again"))]).await.expect("set again");
    assert_eq!(broker.policy_versions("power").await.expect("read")[0].version, 4);
    let trail = broker.trail_of("power", Seq(0), 10).await.expect("read");
    let actions: Vec<&str> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(actions, ["policy_set", "policy_set", "policy_withdrawn", "policy_set"]);
    assert_eq!((&*trail[0].actor, &json_of(&trail[0].detail)["why"]), ("ann", &"breakers".into()));
    assert!(broker.policy_versions("none").await.expect("read").is_empty());
    let update = "UPDATE policy_versions SET sql = 'other'";
    let refused = sqlx::query(update).execute(&mut database.connect().await).await;
    refused.expect_err("versions stay as they are");
}

#[tokio::test]
async fn wrong_changes_of_policies_change_nothing() {
    let database = Database::new().await;
    let broker = &database.broker;
    let long = "a".repeat(64);
    for name in ["", "Power", "1st", "a-b", "a/b", "ä", &long] {
        let refused = change(broker, &[("age", Some("old")), (name, Some("one"))]).await;
        assert!(matches!(refused, Err(PolicyError::Name { .. })), "{name:?}: {refused:?}");
    }
    let large = "x".repeat(broker::POLICY_BYTES_MAX + 1);
    for text in ["", &large] {
        let refused = change(broker, &[("power", Some(text))]).await;
        assert!(matches!(refused, Err(PolicyError::Length { .. })), "{refused:?}");
    }
    let refused = change(broker, &[("power", Some("a\0b"))]).await;
    assert!(matches!(refused, Err(PolicyError::Nul { .. })), "{refused:?}");
    let refused = change(broker, &[("power", Some("a")), ("power", None)]).await;
    assert!(matches!(refused, Err(PolicyError::Twice { .. })), "{refused:?}");
    let refused = change(broker, &[("age", Some("old")), ("power", None)]).await;
    assert!(matches!(refused, Err(PolicyError::Unknown { .. })), "{refused:?}");
    assert_eq!(broker.policies().await.expect("read").last, []);
    assert_eq!(broker.last_seq().await.expect("read"), Seq(0));
}

#[tokio::test]
async fn a_change_of_policies_rests_on_what_its_author_saw() {
    let database = Database::new().await;
    let broker = &database.broker;
    change(broker, &[("power", Some("one"))]).await.expect("set");
    change(broker, &[("power", Some("two"))]).await.expect("replaced");
    let changes = [PolicyChange { policy: "power", sql: Some("three") }];
    let of = |checked: i32, seen| PolicyChanges {
        changes: &changes,
        why: "",
        checked: PoliciesEdition(checked),
        seen,
    };
    let stale = broker.change_policies("bob", of(2, Some("1")), None).await;
    assert!(
        matches!(stale, Err(PolicyError::Stale { ref current }) if current == "2"),
        "{stale:?}"
    );
    let late = broker.change_policies("bob", of(1, None), None).await;
    assert!(matches!(late, Err(PolicyError::Meanwhile)), "{late:?}");
    // Of several at once, all of whom have seen the same, one changes something.
    let tries = (0..4).map(|_| broker.change_policies("bob", of(2, Some("2")), None));
    let made: Vec<_> = futures_util::future::join_all(tries).await;
    assert_eq!(made.iter().filter(|made| made.is_ok()).count(), 1, "{made:?}");
    assert_eq!(in_force(broker).await, rows(&[("power", "three")]));
}

#[tokio::test]
async fn a_solve_that_kept_other_policies_is_not_published() {
    let database = Database::new().await;
    let broker = &database.broker;
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    for (kept, changed) in [(true, false), (true, true)] {
        change(broker, &[("power", Some("one"))]).await.expect("set");
        let id = broker::SolveId::now_v7();
        broker.request_solve("test", id, broker::Cause::Demand, None).await.expect("asked");
        let job = broker.claim("worker", &[JobKind::Solve], LEASE).await.expect("asked");
        let lease = job.expect("the solve").lease;
        let parent = TargetVersion(broker.status().await.expect("read").version.0);
        let basis = SolveBasis {
            parent,
            seq: broker.last_seq().await.expect("read"),
            snapshot_url: "file:///snapshot".to_owned(),
            config: Document::of(&serde_json::json!({})),
            policies: broker.policies().await.expect("read").edition,
        };
        assert_eq!(broker.describe_solve(lease, &basis).await.expect("described"), kept);
        if changed {
            change(broker, &[("power", Some("two"))]).await.expect("replaced");
        }
        let end = SolveEnd {
            lease,
            result_url: "file:///r".to_owned(),
            report: Document::of(&serde_json::json!({})),
        };
        let publication = Publication {
            id: PublicationId::now_v7(),
            parent,
            solve: Some(end),
            targets: Vec::new(),
        };
        let published = broker.publish("worker", &publication).await;
        match published {
            Ok(_) => assert!(!changed),
            Err(error) => {
                assert!(
                    changed && matches!(error, PublishError::PoliciesChanged { .. }),
                    "{error}"
                );
            }
        }
    }
}
