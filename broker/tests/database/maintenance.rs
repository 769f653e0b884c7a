//! Planned maintenance: what is refused and why, and how windows go on.

use crate::harness::Database;
use crate::regions::{reservation, server};
use broker::{
    Broker, Epoch, ImportOptions, MaintenanceError, MaintenanceId, MaintenanceLeft,
    MaintenanceReason, MaintenanceRefusal, MaintenanceRequest, MaintenanceState, MaintenanceWindow,
    MoveOrigin, MoveState, MoverError, MoverInstance, Seq, WindowId,
};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    RegionSnapshot, Rru, RruRow, Scope, SnapshotParts, UnavailabilityKind, UnavailabilityRow,
    Weights,
};
use serde_json::json;
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use testkit::postgres::json_of;

const HOUR: Duration = Duration::from_secs(3_600);

/// Three MSBs of eight racks of two servers: `web` has the first of each rack, of which the first
/// eight are in use, and `ads` the second; web can spare three of its 24.
fn region() -> RegionSnapshot {
    let servers = (0..48).map(|number| {
        let mut row = server(number);
        row.msb = format!("msb{}", number / 16).into();
        row.datacenter = "dc".into();
        row.rack = format!("rack{:02}", number / 2).into();
        row.hardware_type = "type".into();
        let owner = if number.is_multiple_of(2) { "web" } else { "ads" };
        row.current_reservation = Some(owner.into());
        row.in_use = number < 16 && number.is_multiple_of(2);
        row
    });
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "type".into(), rru: 1.0 };
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: servers.collect(),
        reservations: vec![
            reservation("web", "guaranteed", 21.0),
            reservation("ads", "guaranteed", 4.0),
        ],
        rru: vec![value("web"), value("ads")],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::<UnavailabilityRow>::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

struct Place {
    database: Database,
    epoch: Epoch,
}

impl Place {
    async fn new() -> Place {
        let database = Database::new().await;
        database.broker.load("test", &region(), ImportOptions::default()).await.expect("loaded");
        let epoch = database
            .broker
            .lease_mover(&MoverInstance::new("m"), HOUR)
            .await
            .expect("asked")
            .expect("free");
        Place { database, epoch }
    }

    fn broker(&self) -> &Broker {
        &self.database.broker
    }

    async fn now(&self) -> DateTime<Utc> {
        self.broker().clock().await.expect("asked")
    }

    /// Plans maintenance after a preview of it.
    async fn plan(&self, request: &MaintenanceRequest) -> Vec<MaintenanceWindow> {
        let preview = self.broker().preview_maintenance(request).await.expect("looked");
        let planned = self.broker().plan_maintenance("ann", request).await.expect("planned");
        let windows = preview.windows.iter().map(|of| (of.scope, &of.name));
        assert!(windows.eq(planned.iter().map(|of| (of.scope, &of.name))), "{preview:?}");
        // By another clock reading, but not for longer.
        for (shown, window) in preview.windows.iter().zip(&planned) {
            assert_eq!(shown.ends_at - shown.starts_at, window.ends_at - window.starts_at);
            assert_eq!(shown.starts_at - shown.drains_at, window.starts_at - window.drains_at());
        }
        assert_eq!(preview.servers, planned.iter().map(|of| of.servers).sum::<u64>());
        assert_eq!(preview.in_use, planned.iter().map(|of| of.in_use).sum::<u64>());
        planned
    }

    /// Why it is refused; a look says the same, but for the time.
    async fn refused(&self, request: &MaintenanceRequest) -> MaintenanceRefusal {
        let looked = self.broker().preview_maintenance(request).await;
        let planned = self.broker().plan_maintenance("ann", request).await;
        match (looked, planned) {
            (Err(MaintenanceError::Refused(looked)), Err(MaintenanceError::Refused(refusal))) => {
                assert_eq!(looked.code(), refusal.code());
                refusal
            }
            other => panic!("{other:?}"),
        }
    }

    /// Looks twice: the second time nothing happens.
    async fn look(&self) {
        self.broker().advance_maintenance("m", self.epoch).await.expect("looked");
        let again = self.broker().advance_maintenance("m", self.epoch).await.expect("looked");
        assert_eq!(again, 0, "once is enough");
    }

    /// As if so much time had passed for every window.
    async fn later(&self, minutes: i64) {
        let earlier = format!("- interval '{minutes} min'");
        self.database
            .execute(&format!(
                "UPDATE maintenance SET starts_at = starts_at {earlier}, ends_at = ends_at {earlier}, \
                    drained_at = drained_at {earlier}; \
                 UPDATE unavailability SET started_at = started_at {earlier}, ended_at = ended_at {earlier}"
            ))
            .await;
    }

    async fn window(&self, id: WindowId) -> MaintenanceWindow {
        self.broker().maintenance(true, Some(id.into()), 9).await.expect("listed").remove(0)
    }

    async fn state(&self, id: WindowId) -> (MaintenanceState, Option<MaintenanceReason>) {
        let window = self.window(id).await;
        (window.state, window.reason)
    }

    async fn cordoned(&self) -> i64 {
        self.database.number("SELECT count(*) FROM cordoned_servers").await
    }

    /// Servers that a planned event takes out of use now.
    async fn out(&self) -> i64 {
        let sql = "SELECT count(*) FROM unavailable_servers WHERE kind = 'planned_maintenance'";
        self.database.number(sql).await
    }

    /// Does the drains there are.
    async fn end_drains(&self) {
        let moves = self.broker().moves_under_way().await.expect("listed");
        let drains = moves.iter().filter(|of| of.origin == MoveOrigin::Drain);
        let ids: Vec<_> = drains.map(|of| of.id).collect();
        let steps: Vec<_> =
            ids.iter().map(|id| (*id, MoveState::Pending, MoveState::Preempting)).collect();
        self.broker().advance_moves(self.epoch, &steps).await.expect("advanced");
        let bound = self.broker().bind_moves("m", self.epoch, &ids).await.expect("bound");
        assert_eq!(bound.len(), ids.len());
    }

    async fn outage(&self) {
        self.database
            .execute(
                "INSERT INTO outages (outage_id, msb_id, msb, reason, servers, lent) \
                 SELECT gen_random_uuid(), msb_id, msb, 'reported', 16, 0 FROM msbs WHERE msb = 'msb2'",
            )
            .await;
    }

    async fn outage_over(&self) {
        self.database.execute("UPDATE outages SET ended_at = clock_timestamp()").await;
    }

    async fn at_rest(&self) {
        assert_eq!(self.broker().check().await.expect("asked"), [""; 0]);
        assert!(self.broker().trail_is_whole().await.expect("asked"));
    }
}

fn request(scope: Scope, name: &str) -> MaintenanceRequest {
    MaintenanceRequest {
        accept_short: None,
        scope,
        name: name.into(),
        starts_at: None,
        length: HOUR,
        drain: Duration::from_secs(600),
        share_micro: None,
        recall_minutes: None,
        why: "new fans".to_owned(),
    }
}

fn rack(number: usize) -> MaintenanceRequest {
    request(Scope::Rack, &format!("rack{number:02}"))
}

#[tokio::test]
async fn window_passes_all_states() {
    let place = Place::new().await;
    let broker = place.broker();
    let MaintenanceWindow { id, plan, .. } = place.plan(&rack(0)).await.remove(0);
    assert_eq!(WindowId::from(plan), id, "a window requested alone");
    let planned = place.window(id).await;
    assert_eq!((planned.state, planned.servers, planned.in_use), (MaintenanceState::Planned, 2, 1));
    assert_eq!((planned.plan, &*planned.msb, &*planned.requested_by), (plan, "msb0", "ann"));
    assert_eq!(planned.ends_at - planned.starts_at, TimeDelta::hours(1));
    place.look().await;
    assert_eq!(place.state(id).await, (MaintenanceState::Draining, None));
    assert_eq!((place.cordoned().await, place.out().await), (2, 0));
    assert!(broker.moves_under_way().await.expect("listed").is_empty(), "it may end by itself");
    place.later(10).await;
    place.look().await;
    assert_eq!(place.state(id).await.0, MaintenanceState::Draining, "something runs there");
    let drains = broker.moves_under_way().await.expect("listed");
    assert_eq!(drains.len(), 1, "what is idle needs no drain");
    assert_eq!((&*drains[0].server, drains[0].origin), ("s000", MoveOrigin::Drain));
    place.end_drains().await;
    place.look().await;
    assert_eq!(place.state(id).await, (MaintenanceState::Active, None));
    assert_eq!((place.cordoned().await, place.out().await), (2, 2));
    assert_eq!(place.window(id).await.in_use, 0);
    let owner = "SELECT count(*) FROM servers s JOIN reservations r \
        ON r.reservation_id = s.current_reservation_id WHERE s.server = 's000' AND r.reservation = 'web'";
    assert_eq!(place.database.number(owner).await, 1, "it stays whose it was");
    place.later(60).await;
    assert_eq!(place.out().await, 0, "the event knows its end");
    place.look().await;
    assert_eq!(place.state(id).await, (MaintenanceState::Done, None));
    assert_eq!((place.cordoned().await, place.out().await), (0, 0));
    assert!(broker.maintenance(false, None, 9).await.expect("listed").is_empty());
    let trail = broker.trail_of(&id.to_string(), Seq(0), 20).await.expect("read");
    let said: Vec<_> = trail.iter().map(|entry| json_of(&entry.detail)["state"].clone()).collect();
    assert_eq!(json!(said), json!([null, "draining", "active", "done"]));
    assert_eq!(json_of(&trail[1].detail)["servers"], json!(["s000", "s001"]));
    let trail = broker.trail_of(&format!("maintenance/{id}"), Seq(0), 9).await.expect("read");
    assert_eq!(trail.len(), 2, "the event began and ended");
    place.at_rest().await;
}

/// The clock is set forward by an hour and a half while work is done: it goes on for as long as it was to.
#[tokio::test]
async fn clock_jump_ends_no_window_early() {
    let place = Place::new().await;
    let request = MaintenanceRequest { drain: Duration::ZERO, ..rack(12) };
    let id = place.plan(&request).await.remove(0).id;
    while place.state(id).await.0 != MaintenanceState::Active {
        place.broker().advance_maintenance("m", place.epoch).await.expect("looked");
    }
    place.later(90).await;
    assert_eq!(place.out().await, 0, "by the clock its end has passed");
    let jump = TimeDelta::minutes(90);
    let put_off = place.broker().clock_jumped("m", place.epoch, jump).await.expect("put off");
    assert_eq!((put_off, place.out().await), (1, 2));
    place.look().await;
    assert_eq!(place.state(id).await, (MaintenanceState::Active, None));
    place.later(60).await;
    place.look().await;
    assert_eq!(place.state(id).await, (MaintenanceState::Done, None));
    assert_eq!(place.broker().clock_jumped("m", place.epoch, jump).await.expect("looked"), 0);
    place.at_rest().await;
}

#[tokio::test]
async fn invalid_maintenance_is_refused_with_numbers() {
    let place = Place::new().await;
    let now = place.now().await;
    for (scope, name) in [
        (Scope::Server, "unknown"),
        (Scope::Rack, "s000"),
        (Scope::Msb, "a\0b"),
        (Scope::Datacenter, "dc"),
    ] {
        let refusal = place.refused(&request(scope, name)).await;
        assert_eq!(refusal, MaintenanceRefusal::UnknownScope { scope, name: name.into() });
    }
    let at = |starts_at| MaintenanceRequest { starts_at: Some(starts_at), ..rack(0) };
    let past = place.refused(&at(now - TimeDelta::minutes(1))).await;
    assert!(matches!(past, MaintenanceRefusal::InThePast { .. }), "{past}");
    for starts_at in [DateTime::<Utc>::MIN_UTC, DateTime::<Utc>::MAX_UTC] {
        let refusal = place.refused(&at(starts_at)).await;
        assert!(matches!(refusal.code(), "in_the_past" | "length"), "{refusal}");
    }
    for (length, drain) in [
        (Duration::ZERO, Duration::ZERO),
        (168 * HOUR + Duration::from_secs(1), Duration::ZERO),
        (HOUR, Duration::MAX),
    ] {
        let refusal = place.refused(&MaintenanceRequest { length, drain, ..rack(0) }).await;
        assert_eq!(refusal.code(), "length");
    }
    // Five racks of an MSB are more than a quarter of it.
    let share = MaintenanceRequest { share_micro: Some(100_000), ..rack(0) };
    let refused = MaintenanceRefusal::Share {
        msb: "msb0".into(),
        out: 2,
        servers: 16,
        most: 1,
        instead: vec![],
    };
    assert_eq!(place.refused(&share).await.without_instead(), refused);
    for number in [0, 1] {
        place.plan(&rack(number)).await;
    }
    let refused = MaintenanceRefusal::Share {
        msb: "msb0".into(),
        out: 6,
        servers: 16,
        most: 4,
        instead: vec![],
    };
    let said = place.refused(&rack(2)).await;
    assert_eq!(said.clone().without_instead(), refused);
    let MaintenanceRefusal::Share { most: 4, instead, .. } = &said else { panic!("{said}") };
    assert!(instead[0].starts_at.is_some(), "{said}");
    place.plan(&at(now + TimeDelta::hours(3))).await;
    let later = MaintenanceRequest { name: "rack02".into(), ..at(now + TimeDelta::hours(2)) };
    place.plan(&later).await;
    // A third of web's servers in another MSB, and a fourth.
    place.plan(&rack(8)).await;
    let left = MaintenanceLeft {
        reservation: "web".into(),
        lost: None,
        needed_at_once: Rru::units(21),
        left_at_once: Rru::units(20),
        needed: Rru::units(21),
        left: Rru::units(20),
    };
    let refused = MaintenanceRefusal::Guarantee {
        left: Box::new(left),
        msb: "msb2".into(),
        blocking: Box::default(),
        instead: vec![],
    };
    assert_eq!(place.refused(&rack(16)).await.without_instead(), refused);
    assert_eq!(
        refused.to_string(),
        "reservation \"web\" needs 21 RRU and would have 20 while servers of MSB \"msb2\" are out"
    );
    place.plan(&request(Scope::Server, "s033")).await;
    place.outage().await;
    let refused = MaintenanceRefusal::OutageNow { msb: "msb2".into() };
    assert_eq!(place.refused(&request(Scope::Server, "s047")).await, refused);
    place
        .plan(&MaintenanceRequest { name: "rack10".into(), ..at(now + TimeDelta::hours(9)) })
        .await;
    place.at_rest().await;
}

#[tokio::test]
async fn maintenance_counts_failures_and_other_work() {
    let place = Place::new().await;
    let broker = place.broker();
    let started_at = place.now().await - TimeDelta::minutes(5);
    let record = async |event: &str, scope, name: &str, kind| {
        let (event, scope_id) = (event.into(), name.into());
        let occurrence = Occurrence { event, scope, scope_id, kind, started_at };
        broker.record_unavailability("monitor", &occurrence).await.expect("recorded");
    };
    record("e1", Scope::Rack, "rack23", UnavailabilityKind::RandomFailure).await;
    record("e2", Scope::Rack, "rack00", UnavailabilityKind::PlannedMaintenance).await;
    // 24, one failed, one under recorded maintenance: one more may go.
    place.plan(&rack(23)).await;
    place.plan(&rack(8)).await;
    let refused = place.refused(&rack(16)).await;
    assert!(
        matches!(&refused, MaintenanceRefusal::Guarantee { left, .. } if left.left == Rru::units(20)),
        "{refused}"
    );
    let refused =
        place.refused(&MaintenanceRequest { share_micro: Some(200_000), ..rack(1) }).await;
    let instead = vec![];
    assert_eq!(
        refused.without_instead(),
        MaintenanceRefusal::Share { msb: "msb0".into(), out: 4, servers: 16, most: 3, instead }
    );
    record("e3", Scope::Server, "s046", UnavailabilityKind::Software).await;
    place.look().await;
    assert_eq!(place.cordoned().await, 4, "both begin");
}

#[tokio::test]
async fn preview_names_holders_and_writes_nothing() {
    let place = Place::new().await;
    let seq = place.broker().last_seq().await.expect("asked");
    let looked = place.broker().preview_maintenance(&request(Scope::Msb, "msb0")).await;
    let looked = looked.expect("looked");
    assert_eq!((&*looked.msb, looked.msb_servers, looked.share_micro), ("msb0", 16, 250_000));
    assert_eq!((looked.windows.len(), looked.servers, looked.in_use), (8, 16, 8));
    assert_eq!(looked.at_once, 4, "two racks of two");
    let holders: Vec<_> = (looked.holders.iter())
        .map(|of| (&*of.reservation, of.servers, of.at_once, of.capacity, of.available))
        .collect();
    let units = Rru::units;
    assert_eq!(
        holders,
        [("ads", 8, units(2), units(4), units(24)), ("web", 8, units(2), units(21), units(24)),]
    );
    assert_eq!(place.broker().last_seq().await.expect("asked"), seq);
    assert!(place.broker().maintenance(true, None, 9).await.expect("listed").is_empty());
}

#[tokio::test]
async fn msb_maintenance_takes_a_quarter_at_a_time() {
    let place = Place::new().await;
    let windows = place.plan(&request(Scope::Msb, "msb1")).await;
    assert_eq!(windows.len(), 8);
    let plan = windows[0].plan;
    let begin = windows[0].starts_at;
    for (number, window) in windows.iter().enumerate() {
        assert_eq!((window.plan, window.asked_for, window.scope), (plan, Scope::Msb, Scope::Rack));
        let batch = i32::try_from(number / 2).expect("few");
        assert_eq!(window.starts_at, begin + TimeDelta::hours(1) * batch, "{}", window.name);
    }
    place.look().await;
    assert_eq!(place.cordoned().await, 4);
    place.later(10).await;
    place.look().await;
    assert_eq!((place.cordoned().await, place.out().await), (4, 4));
    place.later(55).await;
    place.look().await;
    assert_eq!((place.cordoned().await, place.out().await), (8, 4), "the next ones drain");
    place.later(5).await;
    place.look().await;
    assert_eq!((place.cordoned().await, place.out().await), (4, 4));
    let ended = place.broker().end_maintenance("ann", plan).await.expect("ended");
    assert_eq!(ended.len(), 2, "those under way");
    let cancelled = place.broker().cancel_maintenance("ann", plan).await.expect("cancelled");
    assert_eq!(cancelled.len(), 4, "those to come");
    assert_eq!((place.cordoned().await, place.out().await), (0, 0));
    place.look().await;
    let share = MaintenanceRequest { share_micro: Some(500_000), ..request(Scope::Msb, "msb1") };
    let refused = place.refused(&share).await;
    assert_eq!(refused.code(), "guarantee", "no share makes a guarantee break");
    place.at_rest().await;
}

#[tokio::test]
async fn window_can_be_cancelled_in_any_state() {
    use MaintenanceState::{Active, Cancelled, Draining, Paused, Planned};
    for state in [Planned, Draining, Active, Paused] {
        let place = Place::new().await;
        let id = place.plan(&rack(0)).await.remove(0).id;
        if state == Paused {
            place.outage().await;
        }
        if state != Planned {
            place.later(10).await;
            place.look().await;
        }
        if state == Active {
            place.end_drains().await;
            place.look().await;
        }
        assert_eq!(place.state(id).await.0, state);
        let drains = i64::from(state == Draining);
        let open = "SELECT count(*) FROM moves WHERE open AND origin = 'drain'";
        assert_eq!(place.database.number(open).await, drains);
        let cancelled = place.broker().cancel_maintenance("bob", id).await.expect("cancelled");
        assert_eq!(cancelled, [id]);
        assert_eq!(place.state(id).await, (Cancelled, Some(MaintenanceReason::Asked)));
        assert_eq!((place.cordoned().await, place.out().await), (0, 0), "{state:?}");
        assert_eq!(place.database.number(open).await, 0, "what runs goes on");
        let ended = "SELECT count(*) FROM moves WHERE reason = 'maintenance_over'";
        assert_eq!(place.database.number(ended).await, drains);
        place.look().await;
        let again = place.broker().cancel_maintenance("bob", id).await;
        assert!(matches!(again, Err(MaintenanceError::Over { .. })), "{again:?}");
        place.at_rest().await;
    }
}

#[tokio::test]
async fn outage_holds_back_unstarted_windows() {
    use MaintenanceState::{Active, Cancelled, Draining, Paused, Planned};
    let place = Place::new().await;
    let works = place.plan(&request(Scope::Server, "s017")).await.remove(0).id;
    place.later(10).await;
    place.look().await;
    let drains = place.plan(&rack(0)).await.remove(0).id;
    let soon = MaintenanceRequest { drain: Duration::ZERO, ..rack(1) };
    let soon =
        MaintenanceRequest { starts_at: Some(place.now().await + TimeDelta::minutes(5)), ..soon };
    let comes = place.plan(&soon).await.remove(0).id;
    place.look().await;
    place.outage().await;
    place.look().await;
    assert_eq!(place.state(works).await.0, Active, "work that has begun goes on");
    assert_eq!(place.state(drains).await, (Paused, Some(MaintenanceReason::Outage)));
    assert_eq!(place.state(comes).await, (Planned, None), "its time is to come");
    assert_eq!(place.cordoned().await, 1);
    place.later(10).await;
    place.look().await;
    assert_eq!(place.state(comes).await.0, Paused);
    place.outage_over().await;
    place.look().await;
    assert_eq!(place.state(drains).await.0, Draining);
    assert_eq!(place.state(comes).await.0, Draining, "what runs there is ending");
    place.outage().await;
    place.look().await;
    place.later(61).await;
    place.look().await;
    let missed = (Cancelled, Some(MaintenanceReason::Missed));
    assert_eq!((place.state(drains).await, place.state(comes).await), (missed, missed));
    assert_eq!(place.state(works).await.0, MaintenanceState::Done);
    place.at_rest().await;
}

#[tokio::test]
async fn new_promise_holds_a_window_back() {
    let place = Place::new().await;
    let id = place.plan(&rack(0)).await.remove(0).id;
    let other = place.plan(&request(Scope::Server, "s018")).await.remove(0).id;
    let mut parts = region().to_parts();
    parts.reservations.iter_mut().for_each(|of| of.capacity_rru = 23.0);
    let grown = RegionSnapshot::new(parts).expect("a snapshot");
    place.broker().load("test", &grown, ImportOptions::default()).await.expect("loaded");
    place.look().await;
    assert_eq!(place.state(id).await.0, MaintenanceState::Draining, "one may go");
    let paused = (MaintenanceState::Paused, Some(MaintenanceReason::Guarantee));
    assert_eq!(place.state(other).await, paused);
    let detail = place.window(other).await.detail.expect("numbers");
    assert!(detail.contains("needs 23 RRU and would have 22"), "{detail}");
    place.broker().cancel_maintenance("ann", id).await.expect("cancelled");
    place.look().await;
    assert_eq!(place.state(other).await.0, MaintenanceState::Draining);
}

#[tokio::test]
async fn endless_drain_is_waited_for_within_limits() {
    let place = Place::new().await;
    let id = place.plan(&rack(0)).await.remove(0).id;
    place.look().await;
    place.later(10).await;
    place.look().await;
    place.later(29).await;
    place.look().await;
    assert_eq!(place.state(id).await.0, MaintenanceState::Draining);
    place.later(1).await;
    place.look().await;
    assert_eq!(place.state(id).await.0, MaintenanceState::Active);
    assert_eq!(place.window(id).await.in_use, 1, "the window reports use");
    // A drain that failed is not opened again.
    let drain = place.broker().moves_under_way().await.expect("listed").remove(0).id;
    let why = broker::MoveReason::HostRefused;
    place.broker().give_move_up("m", place.epoch, drain, why, "no").await.expect("given up");
    place.look().await;
    assert!(place.broker().moves_under_way().await.expect("listed").is_empty());
}

#[tokio::test]
async fn removed_server_cancels_its_windows() {
    let place = Place::new().await;
    let id = place.plan(&request(Scope::Server, "s001")).await.remove(0).id;
    let other = place.plan(&rack(0)).await.remove(0).id;
    let mut parts = region().to_parts();
    parts.servers.remove(1);
    let fewer = RegionSnapshot::new(parts).expect("a snapshot");
    let options = ImportOptions { missing: broker::Missing::Remove, ..ImportOptions::default() };
    place.broker().load("test", &fewer, options).await.expect("loaded");
    place.look().await;
    let gone = (MaintenanceState::Cancelled, Some(MaintenanceReason::Gone));
    assert_eq!(place.state(id).await, gone);
    assert_eq!(place.state(other).await.0, MaintenanceState::Draining);
    place.at_rest().await;
}

#[tokio::test]
async fn outdated_mover_changes_no_window() {
    let place = Place::new().await;
    let broker = place.broker();
    let id = place.plan(&rack(0)).await.remove(0).id;
    let late = broker.advance_maintenance("late", Epoch(place.epoch.0 - 1)).await;
    assert!(matches!(late, Err(MoverError::TakenOver)), "{late:?}");
    let early = broker.end_maintenance("ann", id).await;
    assert!(matches!(early, Err(MaintenanceError::NotActive { .. })), "{early:?}");
    let unknown = broker.cancel_maintenance("ann", MaintenanceId::nil()).await;
    assert!(matches!(unknown, Err(MaintenanceError::Unknown { .. })), "{unknown:?}");
    assert_eq!(place.state(id).await.0, MaintenanceState::Planned);
    // Of many at once that together are too much, some are refused.
    let requests: Vec<_> = (1..8).map(rack).collect();
    let plans = requests.iter().map(|request| broker.plan_maintenance("all", request));
    let planned = futures_util::future::join_all(plans).await;
    assert_eq!(planned.iter().filter(|planned| planned.is_ok()).count(), 1);
    place.at_rest().await;
}
