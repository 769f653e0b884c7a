//! Answers that are lost, late or never come.

use crate::harness::Database;
use crate::jobs::{claim, cut_off, end, with_small};
use crate::proxy::{Proxy, Way};
use crate::publish::{publication, target};
use crate::regions::{at, small};
use broker::{
    BatchId, Broker, Cause, DbError, Document, FailureReason, Fault, ImportOptions, JobId, JobKind,
    LoadError, OpenError, PublishError, Seq, SolveBasis, SolveId, TargetVersion,
};
use serde_json::json;
use std::time::Duration;
use testkit::health::{Health, NotReported};

const PATIENCE: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(600);
const LOST: Way = Way::LoseCommitAfter("");

fn unreachable(error: &DbError) {
    assert_eq!(error.fault, Fault::Unreachable, "{error:?}");
    assert!(error.is_passing());
}

/// The commit happened without an answer. A repetition reports it and does nothing.
#[tokio::test]
async fn unanswered_commit_takes_effect_once() {
    let database = Database::new().await;
    let (proxied, broker) = database.behind_a_proxy().await;
    let lost = || proxied.proxy.set(LOST);
    // Checks that it was a commit that was lost.
    let reached = || proxied.proxy.wait_until_reached(PATIENCE);

    lost();
    let load = async || broker.load("test", &small(), ImportOptions::default()).await;
    let Err(LoadError::Db(error)) = load().await else { panic!("its answer is lost") };
    unreachable(&error);
    reached();
    let again = load().await.expect("loaded before");
    assert_eq!((again.version, again.seq), (TargetVersion(1), None));

    lost();
    let occurrence = testkit::health::Occurrence {
        event: "power".into(),
        scope: fleet::Scope::Msb,
        scope_id: "msb0".into(),
        kind: fleet::UnavailabilityKind::CorrelatedFailure,
        started_at: at(0),
    };
    let record = async || broker.record_unavailability("test", &occurrence).await;
    let Err(NotReported::Db(error)) = record().await else { panic!("lost") };
    unreachable(&error);
    reached();
    assert_eq!(record().await.expect("recorded before"), None);

    lost();
    let id = SolveId::from_u128(77);
    let ask = async || broker.request_solve("test", id, Cause::Demand, None).await;
    unreachable(&ask().await.expect_err("lost"));
    reached();
    assert_eq!(ask().await.expect("asked"), Some((id, false)));

    lost();
    let take = async || broker.claim("worker", &[JobKind::Solve], LONG).await;
    unreachable(&take().await.expect_err("lost"));
    reached();
    assert_eq!(take().await.expect("asked"), None, "it is taken until the lease ends");
    assert_eq!(ask().await.expect("asked"), Some((id, false)), "asked for once, taken or not");
    let unknown = broker::Lease { job: id.into(), attempt: 1 };
    cut_off(&database, unknown).await;
    let lease = take().await.expect("asked").expect("its lease ran out").lease;
    assert_eq!((lease.job, lease.attempt), (id.into(), 2));

    lost();
    unreachable(&broker.give_back(lease).await.expect_err("lost"));
    reached();
    assert!(!broker.give_back(lease).await.expect("asked"), "nothing to give back any more");
    let lease = take().await.expect("asked").expect("given back").lease;
    lost();
    let basis = SolveBasis {
        parent: TargetVersion(1),
        seq: Seq(2),
        snapshot_url: "memory:///".to_owned(),
        config: Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    unreachable(&broker.describe_solve(lease, &basis).await.expect_err("lost"));
    reached();
    assert!(broker.describe_solve(lease, &basis).await.expect("described again"));

    lost();
    let mut targets = publication(1, 1, vec![target("s010", 1, Some("web"))]);
    targets.solve = end(lease);
    let publish = async || broker.publish("worker", &targets).await;
    let Err(PublishError::Db(error)) = publish().await else { panic!("lost") };
    unreachable(&error);
    reached();
    let again = publish().await.expect("published before");
    assert_eq!((again.version, again.taken, again.seq), (TargetVersion(2), 1, None));

    let second = SolveId::from_u128(78);
    broker.request_solve("test", second, Cause::Demand, None).await.expect("asked");
    let lease = take().await.expect("asked").expect("a job").lease;
    lost();
    let fail = async || broker.fail_solve(lease, FailureReason::Crashed, "boom").await;
    unreachable(&fail().await.expect_err("lost"));
    reached();
    assert!(!fail().await.expect("asked"), "it has ended");
    lost();
    unreachable(&broker.forget_solve(second).await.expect_err("lost"));
    reached();
    broker.forget_solve(second).await.expect("forgotten again");

    let batch = BatchId::from_u128(79);
    let jobs = [80, 81].map(|id| (JobId::from_u128(id), Document::of(&json!({}))));
    for _ in 0..2 {
        broker.request_replays(batch, &jobs).await.expect("asked");
    }
    assert_eq!(broker.batch(batch).await.expect("asked").len(), 2);

    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
    assert_eq!(broker.last_seq().await.expect("asked"), Seq(5), "one entry for each change");
    assert_eq!(database.number("SELECT count(*) FROM solves").await, 2);
    assert_eq!(database.number("SELECT count(*) FROM jobs").await, 4);
}

/// Cut before the commit was sent: nothing happened, and the same again does it.
#[tokio::test(flavor = "multi_thread")]
async fn change_cut_before_commit_has_no_effect() {
    let database = with_small().await;
    let (proxied, broker) = database.behind_a_proxy().await;
    for (version, at) in [
        (1_i64, "INSERT INTO target_versions"),
        (2, "COPY staged_targets"),
        (3, "WITH taken AS"),
        (4, "INSERT INTO audit_trail"),
        (5, "COMMIT\0"),
    ] {
        let targets = publication(
            version.unsigned_abs().into(),
            version,
            vec![target("s013", version, None)],
        );
        // On a connection that has not sent it before.
        proxied.proxy.set(Way::Refused);
        // The pool takes a connection it has just used for granted; a moment later it asks.
        tokio::time::sleep(Duration::from_millis(300)).await;
        proxied.proxy.set(Way::Hold { after: "", at });
        let publisher = broker.clone();
        let held = targets.clone();
        let publishing = tokio::spawn(async move { publisher.publish("solver", &held).await });
        proxied.proxy.wait_until_reached(PATIENCE);
        // While it hangs with its locks, readers read.
        assert_eq!(database.broker.version().await.expect("asked"), TargetVersion(version));
        proxied.proxy.set(Way::Refused);
        let cut = publishing.await.expect("no panic");
        let Err(PublishError::Db(error)) = cut else { panic!("{at}: {cut:?}") };
        unreachable(&error);
        assert_eq!(database.broker.version().await.expect("asked"), TargetVersion(version));
        proxied.proxy.set(Way::Open);
        let published = broker.publish("solver", &targets).await.expect("published");
        assert_eq!(published.version, TargetVersion(version + 1), "{at}");
        assert!(published.seq.is_some(), "for the first time");
    }
    // Cut after the commit: only the publisher does not know of it.
    let targets = publication(6, 6, vec![target("s014", 1, Some("web"))]);
    proxied.proxy.set(Way::HoldAnswer { after: "" });
    let (publisher, held) = (broker.clone(), targets.clone());
    let publishing = tokio::spawn(async move { publisher.publish("solver", &held).await });
    proxied.proxy.wait_until_reached(PATIENCE);
    assert_eq!(database.broker.version().await.expect("asked"), TargetVersion(7));
    proxied.proxy.set(Way::Open);
    publishing.await.expect("no panic").expect_err("cut");
    let again = broker.publish("solver", &targets).await.expect("published before");
    assert_eq!((again.version, again.seq), (TargetVersion(7), None));
    assert_eq!(broker.check().await.expect("asked"), [""; 0]);
    assert!(claim(&database, "worker", JobKind::Solve).await.is_none());
}

#[tokio::test]
async fn faults_are_reported_in_time() {
    let database = with_small().await;
    let (proxied, broker) = database.behind_a_proxy().await;
    let soon = Duration::from_millis(300);
    let fault = async || broker.answers(soon).await.err().map(|error| error.fault);
    let address = broker::Address::socket(
        proxied.proxy.folder(),
        "ras",
        &broker.database().await.expect("a name"),
    );
    assert_eq!(fault().await, None);
    proxied.proxy.set(Way::Slow(Duration::from_millis(20)));
    assert_eq!(fault().await, None, "slow is not gone");
    proxied.proxy.set(Way::Silent);
    assert_eq!(fault().await, Some(Fault::Late));
    // Connections that were silent stay so; each is found out once.
    proxied.proxy.leave_behind();
    let found_out = async { while fault().await.is_some() {} };
    tokio::time::timeout(PATIENCE, found_out).await.expect("a new one");
    proxied.proxy.set(Way::Refused);
    assert_eq!(fault().await, Some(Fault::Unreachable));
    let refused = Broker::connect(&address, 1).await.expect_err("refused");
    assert!(matches!(&refused, OpenError::Db(error) if error.fault == Fault::Unreachable));
    proxied.proxy.set(Way::Open);
    assert_eq!(fault().await, None, "it is there again, and so are we");
    // Those of a superuser are not limited.
    let (name, role) = (broker.database().await.expect("a name"), "one_of_many");
    database
        .execute(&format!("CREATE ROLE {role} LOGIN; ALTER DATABASE {name} CONNECTION LIMIT 0"))
        .await;
    let app = broker::Address::socket(proxied.proxy.folder(), role, &name);
    let refused = Broker::connect(&app, 1).await.expect_err("full");
    assert_eq!(refused.to_string(), "connecting: Postgres has no connection free");
    database.execute(&format!("DROP ROLE {role}")).await;
}

/// There is no listener yet, as while a server starts.
#[tokio::test]
async fn connect_waits_for_a_starting_server() {
    let database = with_small().await;
    let (proxied, broker) = database.behind_a_proxy().await;
    let folder = crate::harness::folder();
    let socket = folder.path().join(".s.PGSQL.5432");
    // What is left of a listener refuses.
    drop(std::os::unix::net::UnixListener::bind(&socket).expect("bound"));
    let name = broker.database().await.expect("a name");
    let address = broker::Address::socket(folder.path(), "ras", &name);
    let refused =
        std::os::unix::net::UnixStream::connect(&socket).expect_err("there is no listener");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
    let start = async {
        std::fs::remove_file(&socket).expect("removed");
        Proxy::start(folder.path(), proxied.proxy.folder())
    };
    // The first attempt comes before it, on this one thread.
    let (connected, _proxy) = tokio::join!(Broker::connect(&address, 1), start);
    let version = connected.expect("waited for").version().await.expect("asked");
    assert_eq!(version, TargetVersion(1));
}
