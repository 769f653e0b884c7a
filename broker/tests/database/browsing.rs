//! What people page through, and what is known of one server and one promise.

use crate::harness::Database;
use crate::publish::{publication, target};
use crate::regions::{at, changed, small};
use broker::{
    Action, Cause, EventsAsked, FailureReason, ImportOptions, JobKind, MoveOrigin, MoveState,
    MoverInstance, MovesAsked, PageEnd, PastKind, Seq, SolveId, SolveState, SolvesAsked,
    TrailAsked, Wanted,
};
use fleet::{Rru, Scope, UnavailabilityKind};
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use testkit::postgres::json_of;

async fn with_small() -> Database {
    let database = Database::new().await;
    database.broker.load("loader", &small(), ImportOptions::default()).await.expect("loaded");
    database
}

#[tokio::test]
async fn pages_list_each_row_once_newest_first() {
    let database = with_small().await;
    let broker = &database.broker;
    // Each ends before the next is asked for: one that waits would be it.
    for number in 1..=5 {
        let id = SolveId::from_u128(number);
        broker
            .request_solve("operator", id, Cause::Demand, None)
            .await
            .expect("asked")
            .expect("new");
        let lease = Duration::from_secs(60);
        let job = broker.claim("w", &[JobKind::Solve], lease).await.expect("asked").expect("a job");
        broker.fail_solve(job.lease, FailureReason::Crashed, "x").await.expect("ended");
    }
    let mut asked = SolvesAsked { state: Some(SolveState::Failed), ..SolvesAsked::default() };
    let mut found = Vec::new();
    loop {
        let page = broker.solves_page(&asked, 2).await.expect("listed");
        let Some(last) = page.last() else { break };
        asked.before = Some(PageEnd { at: last.requested_at, id: last.id });
        found.extend(page.iter().map(|solve| solve.id));
    }
    assert_eq!(found, [5, 4, 3, 2, 1].map(SolveId::from_u128));
    let none = SolvesAsked { cause: Some(Cause::Event), ..SolvesAsked::default() };
    assert!(broker.solves_page(&none, 10).await.expect("listed").is_empty());

    let open = EventsAsked { open: Some(true), ..EventsAsked::default() };
    let names = async |asked: &EventsAsked| {
        let page = broker.events_page(asked, 10).await.expect("listed");
        page.iter().map(|of| of.event.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&EventsAsked::default()).await,
        ["e4", "e3", "e2", "e1"],
        "one start: by name"
    );
    assert_eq!(names(&open).await.last().map(String::as_str), Some("e1"));
    let after = EventsAsked {
        before: Some(PageEnd { at: at(-30), id: "e3".into() }),
        ..EventsAsked::default()
    };
    assert_eq!(names(&after).await, ["e2", "e1"]);
    let rack = EventsAsked { scope: Some(Scope::Rack), ..EventsAsked::default() };
    assert_eq!(names(&rack).await, ["e2"]);
    let about = EventsAsked { scope_id: Some("dc1".into()), ..EventsAsked::default() };
    assert_eq!(names(&about).await, ["e4"]);
    let kind = Some(UnavailabilityKind::RandomFailure);
    assert_eq!(names(&EventsAsked { kind, ..EventsAsked::default() }).await, ["e1"]);

    let trail = async |asked: TrailAsked| {
        let page = broker.trail_page(&asked, 10).await.expect("read");
        page.iter().map(|entry| entry.seq.0).collect::<Vec<_>>()
    };
    let occurrence = Occurrence {
        event: "mine".into(),
        scope: Scope::Server,
        scope_id: "s012".into(),
        kind: UnavailabilityKind::Software,
        started_at: at(0),
    };
    broker.record_unavailability("watch", &occurrence).await.expect("recorded");
    broker.stop_mover("root", "a drill").await.expect("stopped");
    assert_eq!(trail(TrailAsked::default()).await, [8, 7, 6, 5, 4, 3, 2, 1]);
    let by = |actor: &str| TrailAsked { actor: Some(actor.into()), ..TrailAsked::default() };
    assert_eq!(trail(by("watch")).await, [7]);
    assert_eq!(trail(by("operator")).await, [6, 5, 4, 3, 2], "each solve that was asked for");
    assert_eq!(trail(TrailAsked { subject: Some("mine".into()), ..by("watch") }).await, [7]);
    assert_eq!(trail(TrailAsked { subject: Some("mine".into()), ..by("root") }).await, [0; 0]);
    let action = TrailAsked { action: Some(Action::MoverStopped), ..TrailAsked::default() };
    assert_eq!(trail(action).await, [8]);
    assert_eq!(trail(TrailAsked { before: Some(Seq(3)), ..TrailAsked::default() }).await, [2, 1]);
}

#[tokio::test]
async fn server_detail_has_its_history() {
    let database = with_small().await;
    let broker = &database.broker;
    let epoch = broker
        .lease_mover(&MoverInstance::new("m"), Duration::from_secs(600))
        .await
        .expect("asked");
    let epoch = epoch.expect("no other mover is active");
    broker.open_moves("mover", epoch, Wanted::All).await.expect("opened");
    let moving = broker.server("s007").await.expect("asked").expect("there");
    assert_eq!((moving.current.as_deref(), moving.in_use), (Some("web"), false));
    let goes = moving.target.expect("it goes");
    assert_eq!((goes.reservation, goes.version.0), (None, 1));
    let of = moving.moving.expect("its move");
    assert_eq!((of.state, of.target, of.origin), (MoveState::Pending, None, MoveOrigin::Targets));
    let lent = broker.server("s008").await.expect("asked").expect("there");
    assert_eq!(lent.loaned_to.as_deref(), Some("spare"));
    // An event that is planned covers its whole MSB, msb1, which has s010 as well.
    let down = broker.server("s010").await.expect("asked").expect("there");
    let events: Vec<_> = down.events.iter().map(|event| (&*event.event, event.active)).collect();
    assert!(events.contains(&("e1", true)), "{events:?}");
    assert_eq!(broker.server("unknown").await.expect("asked"), None);

    let filtered = async |asked: MovesAsked| {
        let page = broker.moves_page(&asked, 10).await.expect("listed");
        page.iter().map(|of| of.server.to_string()).collect::<Vec<_>>()
    };
    let reservation = MovesAsked { reservation: Some("web".into()), ..MovesAsked::default() };
    let mut both = filtered(reservation.clone()).await;
    both.sort();
    assert_eq!(both, ["s006", "s007"], "to it and from it");
    let under_way = MovesAsked { open: Some(true), ..reservation.clone() };
    assert_eq!(filtered(under_way).await.len(), 2);
    let ended = MovesAsked { open: Some(false), ..reservation.clone() };
    assert_eq!(filtered(ended).await, [""; 0]);
    let page = broker.moves_page(&reservation, 1).await.expect("listed");
    let next = MovesAsked { before: Some(page[0].id), ..reservation };
    let next = broker.moves_page(&next, 1).await.expect("listed");
    assert!(next.len() == 1 && next[0].id < page[0].id, "the youngest first");
    let server = MovesAsked { server: Some("s006".into()), ..MovesAsked::default() };
    assert_eq!(filtered(server.clone()).await, ["s006"]);
    assert_eq!(filtered(MovesAsked { open: Some(false), ..server.clone() }).await, [""; 0]);
    broker.bind_moves("mover", epoch, &[of.id]).await.expect("bound");
    let bound = MovesAsked { state: Some(MoveState::Bound), ..MovesAsked::default() };
    assert_eq!(filtered(bound).await, ["s007"]);
    let youngest = broker.moves_page(&MovesAsked::default(), 1).await.expect("listed");
    let older = MovesAsked { before: Some(youngest[0].id), ..MovesAsked::default() };
    assert_eq!(filtered(older).await.len(), 1, "of two");

    // Retargeted, moved, failed: all of it is in its history, page by page.
    let generation = broker.server("s007").await.expect("asked").expect("there").generation;
    let rows = vec![target("s007", generation, Some("web"))];
    broker.publish("solver", &publication(1, 1, rows)).await.expect("published");
    let occurrence = Occurrence {
        event: "f".into(),
        scope: Scope::Server,
        scope_id: "s007".into(),
        kind: UnavailabilityKind::RandomFailure,
        started_at: at(0),
    };
    broker.record_unavailability("watch", &occurrence).await.expect("recorded");
    let whole = broker.server_history("s007", None, 100).await.expect("read");
    let mut kinds: Vec<&str> = whole.iter().map(|past| past.kind.as_str()).collect();
    assert!(whole.is_sorted_by(|a, b| a.at >= b.at), "{whole:?}");
    let (mut paged, mut before) = (Vec::new(), None);
    loop {
        let page = broker.server_history("s007", before.as_ref(), 1).await.expect("read");
        let Some(last) = page.last() else { break };
        before = Some(last.end());
        paged.extend(page);
    }
    assert_eq!(paged, whole);
    kinds.sort_unstable();
    assert_eq!(kinds, ["event", "move", "target", "trail"]);
    let decided = whole.iter().find(|past| past.kind == PastKind::Target).expect("found");
    assert_eq!(
        (&json_of(&decided.detail)["reservation"], &json_of(&decided.detail)["taken"]),
        (&"web".into(), &true.into())
    );
}

#[tokio::test]
async fn promise_history_has_every_version() {
    let database = with_small().await;
    let larger = changed(|parts| {
        let web = parts.reservations.iter_mut().find(|of| &*of.reservation_id == "web");
        web.expect("there").capacity_rru = 7.5;
    });
    database.broker.load("loader", &larger, ImportOptions::default()).await.expect("loaded");
    let versions = database.broker.promise_versions("web", None, 10).await.expect("read");
    let brief: Vec<_> = versions.iter().map(|of| (of.version, of.capacity)).collect();
    assert_eq!(brief, [(2, Rru(7_500_000)), (1, Rru(6_958_984))]);
    let newest = &versions[0];
    assert_eq!(newest.rru.get("odd"), Some(&Rru(1_250_000)));
    assert_eq!(newest.affinity.get("dc0"), Some(&0.5));
    assert_eq!(
        (newest.kind.as_str(), newest.host_profile.as_deref()),
        ("guaranteed", Some("profile"))
    );
    let first = database.broker.promise_versions("web", Some(2), 10).await.expect("read");
    assert_eq!(first, versions[1..]);
    assert!(database.broker.promise_versions("unknown", None, 10).await.expect("read").is_empty());
}
