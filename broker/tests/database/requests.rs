//! Requests: asked, taken back, planned, applied in one transaction or not at all, refused, ended.

use crate::harness::Database;
use crate::jobs::{self, end, with_small};
use crate::publish::{publication, target};
use broker::{
    Action, Applied, ApplyError, ApplyPlan, Contract, Document, Epoch, Export, GrantPolicy,
    JobKind, Key, MoveOrigin, MoverInstance, NewPlan, OperationId, OperationState,
    OperationSubject, PlanId, PlanPatch, PlanState, QuietTime, Refused, RequestChangeKind,
    RequestFilter, RequestGrant, RequestId, RequestSpec, RequestState, Seq, SolveBasis, Submission,
    SubmitError, SummaryFilter, Wanted,
};
use fleet::quote::Quote;
use fleet::{CapacityRequest, RegionSnapshot, Rru, Targets};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use testkit::postgres::json_of;

const LONG: Duration = Duration::from_secs(600);

fn asking(kind: RequestChangeKind, change: CapacityRequest) -> RequestSpec {
    RequestSpec {
        kind,
        owner: "owner".into(),
        change,
        policy: GrantPolicy::All,
        starts_at: None,
        ends_at: None,
        labels: None,
        contract: None,
        why: None,
    }
}

pub fn create(name: &str, rru: f64) -> RequestSpec {
    let change = CapacityRequest {
        reservation_id: name.into(),
        owner: Some("owner".into()),
        capacity_rru: Some(rru),
        msb_buffer: Some(false),
        rru: Some(BTreeMap::from([("even".into(), 1.0), ("odd".into(), 1.25)])),
        ..CapacityRequest::default()
    };
    asking(RequestChangeKind::Create, change)
}

pub fn resize(name: &str, rru: f64) -> RequestSpec {
    let change = CapacityRequest {
        reservation_id: name.into(),
        capacity_rru: Some(rru),
        ..CapacityRequest::default()
    };
    asking(RequestChangeKind::Change, change)
}

fn remove(name: &str) -> RequestSpec {
    let change =
        CapacityRequest { reservation_id: name.into(), remove: true, ..CapacityRequest::default() };
    asking(RequestChangeKind::Remove, change)
}

/// A submission and the ids it has.
pub async fn submit(
    database: &Database,
    asking: &RequestSpec,
) -> Result<(RequestId, OperationId), SubmitError> {
    let (id, operation) = (RequestId::now_v7(), OperationId::now_v7());
    let submission =
        Submission { id, operation: Some(operation), asking, expected: None, key: None };
    database.broker.submit_request("asker", &submission).await.map(|_| (id, operation))
}

/// A look at the region.
pub struct Look {
    export: Export,
    region: RegionSnapshot,
}

pub async fn look(database: &Database) -> Look {
    let export = database.broker.export(None).await.expect("exported");
    let region = RegionSnapshot::new(export.parts.clone()).expect("a snapshot");
    Look { export, region }
}

/// A plan that was stored: these servers go to the reservation (or are freed from it, where `to` is
/// false), and the change is made.
pub async fn plan(
    database: &Database,
    look: &Look,
    asking: &RequestSpec,
    servers: &[&str],
    to: bool,
) -> PlanPatch {
    let (after, _) = asking.change.apply(&look.region).expect("it fits");
    let name = asking.reservation().clone();
    let ix = after.reservation(&name).expect("in it");
    let mut holders = Targets::unchanged(&after).holders().to_vec();
    for server in servers {
        let at = after.servers.iter().position(|row| row.id.as_ref() == *server).expect("there");
        holders[at] = to.then_some(ix);
    }
    let targets = Targets::new(&after, holders);
    let id = PlanId::now_v7();
    let new = NewPlan {
        id,
        changes: vec![asking.clone()],
        base: look.export.version,
        seq: look.export.seq,
        taken_at: look.region.taken_at,
        quotes: vec![quote(asking, &after)],
        targets: servers.iter().map(|s| ((*s).into(), to.then(|| name.clone()))).collect(),
    };
    database.broker.store_plan("asker", &new, None).await.expect("stored");
    PlanPatch::new(id, &look.region, &look.export.generations, &after, &targets, &[name])
}

/// What a plan says of a change that is granted.
pub fn quote(asking: &RequestSpec, after: &RegionSnapshot) -> Quote {
    let name = asking.reservation();
    let ix = after.reservation(name).expect("in it");
    let document = json!({
        "format": "ras-plan/1", "reservation_id": name, "change": "changed", "granted": "in_full",
        "capacity_rru": after.reservations[ix.ix()].capacity.to_f64(), "guaranteed_today_rru": 0.0,
        "granted_rru": 0.0, "msb_buffer": false, "sources": [], "moves": [], "arrival": null, "refusal": null,
        "cost": {
            "in_use": 0, "idle": 0, "acquired": 0, "own_in_use": 0, "own_idle": 0, "lent": 0,
            "price": 0.0,
        },
        "reservation": {
            "servers": 0, "assigned_rru": 0.0, "largest_msb": null, "largest_msb_rru": 0.0,
            "guaranteed_rru": 0.0, "datacenters": [],
        },
        "primal": 0.0, "shortfall_cost": 0.0, "dual_bound": 0.0, "surely_missing_rru": 0.0,
        "complete": true, "audit_clean": true, "seconds": { "read": 0.0, "total": 0.0 },
    });
    serde_json::from_value(document).expect("a quote")
}

fn granting(asking: &RequestSpec) -> RequestGrant<'_> {
    let state = match asking.kind {
        RequestChangeKind::Remove => RequestState::Shrinking,
        _ => RequestState::Granted,
    };
    let granted = asking.change.capacity_rru.and_then(Rru::from_f64).unwrap_or_default();
    RequestGrant {
        request: RequestId::now_v7(),
        asking,
        worker: None,
        state,
        granted,
        answer: None,
    }
}

/// Applies a plan by id, without a submitted request.
pub async fn apply(
    database: &Database,
    asking: &RequestSpec,
    application: &PlanPatch,
) -> Result<Applied, ApplyError> {
    let grants = [granting(asking)];
    let operation = Some(OperationId::now_v7());
    let applying = ApplyPlan { application, grants: &grants, operation, key: None };
    database.broker.apply_plan("asker", &applying).await
}

pub async fn at_rest(database: &Database) {
    assert_eq!(database.broker.check().await.expect("asked"), [""; 0]);
    assert!(database.broker.trail_is_whole().await.expect("asked"));
}

/// Everything an apply may write, as text.
pub async fn everything(database: &Database) -> String {
    let mut db = database.connect().await;
    sqlx::query_scalar(
        "SELECT concat_ws('|', \
            (SELECT string_agg(s::text, ',' ORDER BY server_id) FROM servers s), \
            (SELECT string_agg(p::text, ',' ORDER BY promise_id) FROM promises p), \
            (SELECT string_agg(r::text, ',' ORDER BY reservation_id) FROM reservations r), \
            (SELECT string_agg(q::text, ',' ORDER BY request_id) FROM capacity_requests q), \
            (SELECT string_agg(o::text, ',' ORDER BY operation_id) FROM operations o), \
            (SELECT string_agg(l.plan_id::text || l.state, ',' ORDER BY plan_id) FROM plans l), \
            (SELECT string_agg(k::text, ',' ORDER BY key) FROM idempotency_keys k), \
            (SELECT seq::text FROM trail_clock))",
    )
    .fetch_one(&mut db)
    .await
    .expect("text")
}

async fn epoch(database: &Database) -> Epoch {
    let leased =
        database.broker.lease_mover(&MoverInstance::new("mover"), LONG).await.expect("asked");
    leased.expect("no other mover is active")
}

async fn carry_out(database: &Database, epoch: Epoch) {
    let broker = &database.broker;
    broker.open_moves("mover", epoch, Wanted::BetweenSolves).await.expect("opened");
    let moves = broker.moves_under_way().await.expect("listed");
    let plans = moves.iter().filter(|of| of.origin == MoveOrigin::Plan);
    let ids: Vec<_> = plans.map(|of| of.id).collect();
    assert!(!ids.is_empty(), "{moves:?}");
    assert_eq!(broker.bind_moves("mover", epoch, &ids).await.expect("bound").len(), ids.len());
}

#[tokio::test]
async fn request_is_submitted_once_and_can_be_cancelled() {
    let database = with_small().await;
    let broker = &database.broker;
    let (id, operation) = submit(&database, &create("new", 3.0)).await.expect("submitted");
    let found = broker.request(id).await.expect("read").expect("there");
    assert_eq!((found.state, found.version), (RequestState::Submitted, 1));
    assert_eq!(found.asking, create("new", 3.0));
    let running = broker.operation(operation).await.expect("read").expect("there");
    assert_eq!(
        (running.state, running.subject),
        (OperationState::Running, OperationSubject::Request(id))
    );
    assert_eq!(running.owner.as_deref(), Some("owner"));

    let error = submit(&database, &create("new", 4.0)).await.expect_err("one waits");
    assert!(matches!(&error, SubmitError::Open { request, .. } if *request == id), "{error}");
    let error = submit(&database, &create("web", 4.0)).await.expect_err("there");
    assert!(matches!(error, SubmitError::Exists { .. }), "{error}");
    let error = submit(&database, &resize("unknown", 4.0)).await.expect_err("not there");
    assert!(matches!(error, SubmitError::UnknownReservation { .. }), "{error}");
    let error = submit(&database, &resize("spare", 4.0)).await.expect_err("elastic");
    assert!(matches!(error, SubmitError::NotGuaranteed { .. }), "{error}");

    let error = broker.cancel_request("asker", id, Some(7)).await.expect_err("another version");
    assert!(matches!(error, SubmitError::Stale { .. }), "{error}");
    broker.cancel_request("asker", id, Some(1)).await.expect("cancelled");
    let ended = broker.operation(operation).await.expect("read").expect("there");
    assert_eq!(ended.state, OperationState::Failed);
    assert_eq!(json_of(&ended.result.expect("a result"))["code"], "cancelled");
    let error = broker.cancel_request("asker", id, None).await.expect_err("over");
    assert!(matches!(error, SubmitError::Over { state: RequestState::Cancelled, .. }), "{error}");
    let (second, _) = submit(&database, &create("new", 4.0)).await.expect("nothing waits");

    let all = broker.requests(&RequestFilter::default(), None, 10).await.expect("listed");
    assert_eq!(all.iter().map(|of| of.id).collect::<Vec<_>>(), [second, id], "the youngest first");
    let page = broker.requests(&RequestFilter::default(), Some(second), 10).await.expect("listed");
    assert_eq!(page.len(), 1);
    let filter = RequestFilter { state: Some(RequestState::Submitted), ..RequestFilter::default() };
    assert_eq!(broker.requests(&filter, None, 10).await.expect("listed")[0].id, second);
    let filter = RequestFilter { owner: Some("else".into()), ..RequestFilter::default() };
    assert!(broker.requests(&filter, None, 10).await.expect("listed").is_empty());
    let trail = broker.trail_of("new", Seq(0), 10).await.expect("read");
    let told: Vec<&str> = trail.iter().map(|entry| entry.action.as_str()).collect();
    assert_eq!(told, ["request_submitted", "request_cancelled", "request_submitted"]);
    at_rest(&database).await;
}

#[tokio::test]
async fn applied_plan_writes_promise_targets_and_trail() {
    let database = with_small().await;
    let broker = &database.broker;
    let mut wanted = create("new", 2.25);
    wanted.labels = Some(BTreeMap::from([("team".into(), "green".into())]));
    wanted.contract = Some(Some(Contract {
        in_use_micro: 20_000,
        window: Duration::from_secs(3600),
        quiet: vec![QuietTime::new(480, 1_080).expect("a time")],
        zone: "UTC".into(),
    }));
    let (id, operation) = submit(&database, &wanted).await.expect("submitted");
    let taken = broker.take_request("worker", LONG).await.expect("asked").expect("due");
    assert_eq!(taken.id, id);
    assert!(broker.take_request("other", LONG).await.expect("asked").is_none(), "it is taken");
    let seen = look(&database).await;
    let application = plan(&database, &seen, &taken.asking, &["s013", "s014"], true).await;
    assert!(broker.note_planned("worker", id, application.plan()).await.expect("noted"));
    assert!(!broker.note_planned("other", id, application.plan()).await.expect("asked"));
    let grants = [RequestGrant { request: id, worker: Some("worker"), ..granting(&taken.asking) }];
    let Key::Ours(claim) = broker.claim_key("asker", "k", [1; 32]).await.expect("claimed") else {
        panic!("it is new")
    };
    let said = Document::of(&json!({ "status": 202 }));
    let applying = ApplyPlan {
        application: &application,
        grants: &grants,
        operation: None,
        key: Some((claim, &said)),
    };
    let applied = broker.apply_plan("worker", &applying).await.expect("applied");
    assert_eq!(applied.servers, 2);

    let found = broker.request(id).await.expect("read").expect("there");
    assert_eq!((found.state, found.granted), (RequestState::Granted, Rru::from_f64(2.25)));
    assert_eq!(found.plan, Some(application.plan()));
    let done = broker.operation(operation).await.expect("read").expect("there");
    assert_eq!(done.state, OperationState::Done);
    assert_eq!(json_of(&done.result.expect("a result"))["requests"][0]["state"], "granted");
    let card = broker.reservation_summary("new").await.expect("read").expect("there");
    assert_eq!((card.capacity, card.promise_version), (Rru(2_250_000), 1));
    assert_eq!(card.labels["team"], "green");
    assert_eq!(card.contract, wanted.contract.clone().flatten());
    assert_eq!(card.in_force.map(|of| of.request), Some(id));
    assert_eq!(card.terms.rru["odd"], Rru(1_250_000));
    let stored = broker.stored_plan(application.plan()).await.expect("read").expect("there");
    let stored = stored.expect("readable");
    assert_eq!(stored.state, PlanState::Applied);
    assert_eq!(stored.owners, ["owner"]);
    let trail = broker.trail_of(&application.plan().to_string(), Seq(0), 9).await.expect("read");
    assert_eq!(trail[0].action, Action::PlanApplied.into());
    assert_eq!(json_of(&trail[0].detail)["servers"], json!(["s013", "s014"]));
    assert_eq!(json_of(&trail[0].detail)["promises"][0]["rru"], 2.25);
    let again = broker.claim_key("asker", "k", [1; 32]).await.expect("asked");
    assert!(matches!(&again, Key::Answered(of) if json_of(of) == json_of(&said)), "{again:?}");

    let at_13 = "SELECT generation FROM servers WHERE server = 's013'";
    assert_eq!(database.number(at_13).await, 2, "a solve under way skips it");
    carry_out(&database, epoch(&database).await).await;
    let held = broker.servers_of("new", "", 10).await.expect("listed");
    assert_eq!(held.len(), 2);
    // Again: it was applied.
    let error = broker.apply_plan("worker", &applying).await.expect_err("once");
    assert!(matches!(error, ApplyError::NotApplicable { .. }), "{error}");

    let labels = BTreeMap::from([("team".to_owned(), "green".to_owned())]);
    let filter = SummaryFilter { labels, ..SummaryFilter::default() };
    let cards = broker.reservation_summaries(&filter, "", 10).await.expect("listed");
    assert_eq!(cards.iter().map(|card| &*card.reservation).collect::<Vec<_>>(), ["new"]);
    let all =
        broker.reservation_summaries(&SummaryFilter::default(), "new", 10).await.expect("listed");
    assert!(all.iter().all(|card| &*card.reservation > "new"));
    at_rest(&database).await;
}

/// What a plan rests on is compared under locks; where it moved, nothing is written.
#[tokio::test]
async fn outdated_plan_changes_nothing() {
    let database = with_small().await;
    let broker = &database.broker;
    let seen = look(&database).await;
    let wanted = create("new", 2.0);
    let application = plan(&database, &seen, &wanted, &["s013", "s014"], true).await;
    let grown = resize("web", 8.0);
    let growth = plan(&database, &seen, &grown, &["s016"], true).await;
    // A mover binds s014, and an owner changes the promise of web.
    database
        .execute(
            "UPDATE servers SET current_reservation_id = (SELECT reservation_id FROM reservations \
             WHERE reservation = 'web') WHERE server = 's014'",
        )
        .await;
    let shrunk = resize("web", 6.0);
    let shrinking = plan(&database, &look(&database).await, &shrunk, &[], true).await;
    apply(&database, &shrunk, &shrinking).await.expect("applied");

    let before = everything(&database).await;
    let error = apply(&database, &wanted, &application).await.expect_err("stale");
    let ApplyError::Stale { servers, reservations } = error else { panic!("{error}") };
    assert_eq!((servers, reservations), (vec!["s014".into()], vec![]));
    let error = apply(&database, &grown, &growth).await.expect_err("stale");
    let ApplyError::Stale { servers, reservations } = error else { panic!("{error}") };
    assert_eq!((servers, reservations), (vec![], vec!["web".into()]));
    assert_eq!(everything(&database).await, before, "nothing was changed");
    broker.note_stale(growth.plan()).await.expect("noted");
    let stored = broker.stored_plan(growth.plan()).await.expect("read").expect("there");
    let stored = stored.expect("readable");
    assert_eq!(stored.state, PlanState::Stale);
}

/// What was promised before holds until more is granted: a refusal leaves it as it was.
#[tokio::test]
async fn refused_growth_keeps_the_promise() {
    let database = with_small().await;
    let broker = &database.broker;
    let before = broker.reservation_summary("web").await.expect("read").expect("there");
    let (id, operation) = submit(&database, &resize("web", 1_000.0)).await.expect("submitted");
    broker.take_request("worker", LONG).await.expect("asked").expect("due");
    let (code, reasons) = ("refused".to_owned(), vec!["insufficient_hardware".to_owned()]);
    let answer = json!({ "code": code, "reasons": reasons });
    let refusal = Refused { code, reasons, answer: Document::of(&answer) };
    assert!(!broker.refuse_request("other", "other", id, &refusal).await.expect("asked"));
    assert!(broker.refuse_request("worker", "worker", id, &refusal).await.expect("refused"));
    let after = broker.reservation_summary("web").await.expect("read").expect("there");
    assert_eq!((after.capacity, after.promise_version), (before.capacity, before.promise_version));
    assert!(after.open.is_none() && after.in_force.is_none());
    let found = broker.request(id).await.expect("read").expect("there");
    let said = found.answer.as_ref().map(json_of);
    assert_eq!((found.state, said.as_ref()), (RequestState::Refused, Some(&answer)));
    let ended = broker.operation(operation).await.expect("read").expect("there");
    let said = ended.result.as_ref().map(json_of);
    assert_eq!((ended.state, said), (OperationState::Failed, Some(answer)));
    at_rest(&database).await;
}

#[tokio::test]
async fn ended_reservation_is_removed_once_empty() {
    let database = with_small().await;
    let broker = &database.broker;
    let mover = epoch(&database).await;
    let wanted = create("new", 2.0);
    let made = plan(&database, &look(&database).await, &wanted, &["s013", "s014"], true).await;
    apply(&database, &wanted, &made).await.expect("applied");
    carry_out(&database, mover).await;
    let ending = remove("new");
    let ended = plan(&database, &look(&database).await, &ending, &["s013", "s014"], false).await;
    apply(&database, &ending, &ended).await.expect("applied");
    assert!(broker.sweep_reservations("worker").await.expect("asked").is_empty(), "not yet");
    let card = broker.reservation_summary("new").await.expect("read").expect("there");
    assert!(card.in_force.is_some_and(|of| of.removes && of.state == RequestState::Shrinking));
    assert_eq!(card.capacity, Rru::ZERO);
    carry_out(&database, mover).await;
    assert_eq!(broker.sweep_reservations("worker").await.expect("swept"), ["new".into()]);
    assert!(broker.reservation_summary("new").await.expect("read").is_none());
    let filter = RequestFilter { reservation: Some("new".into()), ..RequestFilter::default() };
    let asked = broker.requests(&filter, None, 10).await.expect("listed");
    assert_eq!(asked.len(), 2, "its history stays");
    assert!(asked.iter().all(|of| of.state == RequestState::Expired), "{asked:?}");
    let trail = broker.trail_of("new", Seq(0), 10).await.expect("read");
    assert_eq!(trail.last().expect("an entry").action, Action::ReservationRemoved.into());
    // The name is free again.
    let made = plan(&database, &look(&database).await, &wanted, &["s013"], true).await;
    apply(&database, &wanted, &made).await.expect("applied");
    at_rest(&database).await;
}

#[tokio::test]
async fn reservation_ends_at_its_time() {
    let database = with_small().await;
    let broker = &database.broker;
    let now = broker.clock().await.expect("asked");
    let mut wanted = create("new", 2.0);
    wanted.ends_at = Some(Some(now + chrono::TimeDelta::milliseconds(400)));
    let made = plan(&database, &look(&database).await, &wanted, &["s013"], true).await;
    apply(&database, &wanted, &made).await.expect("applied");
    let mut late = create("late", 2.0);
    (late.starts_at, late.ends_at) = (
        Some(now - chrono::TimeDelta::seconds(2)),
        Some(Some(now - chrono::TimeDelta::seconds(1))),
    );
    let (late, _) = submit(&database, &late).await.expect("submitted");
    let mut soon = create("soon", 2.0);
    soon.starts_at = Some(now + chrono::TimeDelta::hours(1));
    submit(&database, &soon).await.expect("submitted");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(broker.end_what_is_over("worker").await.expect("ended"), 2);
    assert_eq!(broker.end_what_is_over("worker").await.expect("asked"), 0);
    let state = broker.request(late).await.expect("read").expect("there").state;
    assert_eq!(state, RequestState::Expired);
    let removal = broker.take_request("worker", LONG).await.expect("asked").expect("one is due");
    assert_eq!(removal.asking.kind, RequestChangeKind::Remove);
    assert_eq!(removal.asking.reservation().as_ref(), "new");
    assert!(broker.take_request("worker", LONG).await.expect("asked").is_none(), "soon waits");
    at_rest(&database).await;
}

/// A solve that began before something was granted takes nothing from whom it was granted to.
#[tokio::test]
async fn older_solve_takes_nothing_from_a_grant() {
    let database = with_small().await;
    let broker = &database.broker;
    jobs::request(&database).await;
    let lease = jobs::claim(&database, "solver", JobKind::Solve).await.expect("a job").lease;
    let seen = look(&database).await;
    let basis = SolveBasis {
        parent: seen.export.version,
        seq: seen.export.seq,
        snapshot_url: "memory:///".to_owned(),
        config: Document::of(&json!({})),
    };
    assert!(broker.describe_solve(lease, &basis).await.expect("described"));
    // Web is granted more, which it has already.
    let more = resize("web", 7.0);
    let made = plan(&database, &seen, &more, &[], true).await;
    apply(&database, &more, &made).await.expect("applied");
    // The solve thinks that one of its servers is too much.
    let mut targets =
        publication(1, 1, vec![target("s000", 1, None), target("s013", 1, Some("odd buffer"))]);
    targets.solve = end(lease);
    let published = broker.publish("solver", &targets).await.expect("published");
    assert_eq!((published.taken, published.skipped), (1, 1));
    assert_eq!(published.skipped_servers, ["s000".into()]);
    // One that knows may.
    let later = publication(2, 2, vec![target("s000", 1, None)]);
    assert_eq!(broker.publish("test", &later).await.expect("published").taken, 1);
    at_rest(&database).await;
}

/// A lost worker leaves its request to another, which plans it again.
#[tokio::test]
async fn lost_worker_leaves_its_request_to_another() {
    let database = with_small().await;
    let broker = &database.broker;
    let (id, _) = submit(&database, &create("new", 2.0)).await.expect("submitted");
    broker.take_request("first", LONG).await.expect("asked").expect("due");
    let seen = look(&database).await;
    let wanted = create("new", 2.0);
    let made = plan(&database, &seen, &wanted, &["s013"], true).await;
    assert!(broker.note_planned("first", id, made.plan()).await.expect("noted"));
    let past = "UPDATE capacity_requests SET lease_until = clock_timestamp() - interval '1 s'";
    database.execute(past).await;
    let taken = broker.take_request("second", LONG).await.expect("asked").expect("lost, so free");
    assert_eq!((taken.id, taken.state, taken.plan), (id, RequestState::Submitted, None));
    let grants = [RequestGrant { request: id, worker: Some("first"), ..granting(&wanted) }];
    let applying = ApplyPlan { application: &made, grants: &grants, operation: None, key: None };
    let error = broker.apply_plan("first", &applying).await.expect_err("not its own any more");
    assert!(matches!(error, ApplyError::NotOurs { .. }), "{error}");
    broker.put_request_back("second", id, Duration::ZERO).await.expect("given back");
    broker.take_request("third", LONG).await.expect("asked").expect("free");
    at_rest(&database).await;
}

#[tokio::test]
async fn reservation_states_are_recorded() {
    let database = with_small().await;
    let broker = &database.broker;
    let wanted = create("new", 2.0);
    let made = plan(&database, &look(&database).await, &wanted, &["s013"], true).await;
    apply(&database, &wanted, &made).await.expect("applied");
    let in_force = broker.requests_in_force().await.expect("read");
    assert_eq!(in_force.len(), 1);
    let id = in_force[0].id;
    let version = broker.reservation_summary("new").await.expect("read").expect("there").version;
    let degraded = [(id, RequestState::Granted, RequestState::Degraded)];
    assert_eq!(broker.note_states(&degraded).await.expect("noted"), 1);
    assert_eq!(broker.note_states(&degraded).await.expect("asked"), 0, "it was");
    let card = broker.reservation_summary("new").await.expect("read").expect("there");
    assert_eq!(card.in_force.map(|of| of.state), Some(RequestState::Degraded));
    assert_eq!(card.version, version, "no owner and no decision changed it");
    // Requests about a reservation end with it, however it ends.
    database
        .execute(
            "UPDATE servers SET target_pending = false, target_reservation_id = NULL, \
             target_version = NULL, target_origin = NULL WHERE server = 's013'; \
             DELETE FROM reservations WHERE reservation = 'new'",
        )
        .await;
    assert!(broker.sweep_reservations("worker").await.expect("swept").is_empty());
    let state = broker.request(id).await.expect("read").expect("there").state;
    assert_eq!(state, RequestState::Expired);
}
