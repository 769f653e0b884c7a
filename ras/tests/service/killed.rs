//! The service with the mover in it is killed (`kill -9`) in the middle of work that changes hosts; the
//! next one ends it.

use crate::fenced::{Automation, automation};
use crate::place::{PATIENCE, Place, Running, until_true};
use broker::{
    Action, Broker, ImportOptions, MaintenanceRequest, MaintenanceState, MoveId, MoveState,
    Publication, PublicationId, Recorded, Seq, TargetRow, WindowId,
};
use chrono::{DateTime, Utc};
use fleet::{
    Name, RegionSnapshot, ReservationRow, RruRow, Scope, ServerName, ServerRow, SnapshotParts,
    UnavailabilityKind, Weights,
};
use private_postgres::{PrivateOptions, PrivatePostgres};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use testkit::health::{Health, Occurrence};
use testkit::postgres::json_of;
use tokio::runtime::Runtime;

/// Eight MSBs of four racks of two servers of `web`, and 80 servers more of `app`, some in use.
fn region(profile: &str) -> RegionSnapshot {
    let server = |number: usize| {
        let (msb, web) = (number % 8, number < 64);
        ServerRow {
            server_id: format!("s{number:03}").into(),
            datacenter: "dc".into(),
            msb: format!("m{msb}").into(),
            rack: format!("m{msb}-r{}", if web { number / 16 } else { 4 + number % 16 / 8 }).into(),
            hardware_type: "type".into(),
            current_reservation: Some(if web { "web" } else { "app" }.into()),
            target_reservation: None,
            target_pending: false,
            in_use: !web && number % 5 < 2,
            loaned_to: None,
            power_watts: None,
        }
    };
    let reservation = |id: &str, capacity_rru: f64, profile: &str| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: "guaranteed".into(),
        capacity_rru,
        msb_buffer: true,
        priority: 0,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: Some(profile.into()),
        replicas: None,
        replicas_per_msb: None,
    };
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "type".into(), rru: 1.0 };
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: (0..144).map(server).collect(),
        reservations: vec![reservation("web", 40.0, "web-host"), reservation("app", 60.0, profile)],
        rru: vec![value("web"), value("app")],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// A Postgres with that region, automation, and the binary on both.
struct Region {
    place: Place,
    runtime: Runtime,
    postgres: Option<PrivatePostgres>,
    broker: Broker,
    all: Arc<Mutex<Automation>>,
    service: String,
}

impl Region {
    fn new() -> Region {
        let (place, runtime) = (Place::new(), Runtime::new().expect("a runtime"));
        let options = PrivateOptions::new(place.path("postgres"));
        let postgres = runtime.block_on(PrivatePostgres::start(&options)).expect("it starts");
        let broker = runtime.block_on(Broker::open(&postgres.address())).expect("opened");
        let at_once = "{ at_once = 8 }";
        let limits = format!("region = {{ idle = {at_once}, in_use = {at_once} }}");
        let settings = format!("[mover]\nsettle = \"100ms\"\n[mover.limits]\n{limits}\n");
        fs::write(place.path("ras.toml"), settings).expect("written");
        let (url, all) = automation();
        let socket = place.path("postgres/socket");
        let service = format!(
            "up --database-url postgres://ras@localhost/region?host={} --data data --config ras.toml \
             --listen none --schedule never --no-worker --agent {url} --agent-unsigned",
            socket.display()
        );
        let of = Region { place, runtime, postgres: Some(postgres), broker, all, service };
        of.load("older");
        of
    }

    fn load(&self, profile: &str) {
        let region = region(profile);
        let loaded = self.broker.load("test", &region, ImportOptions::default());
        self.runtime.block_on(loaded).expect("loaded");
    }

    fn start(&self) -> Running {
        self.place.start(&self.service)
    }

    /// Kills the process, and lets the next mover act at once: it is certain that this one does not.
    fn kill(&self, mut running: Running) {
        running.signal("-KILL");
        running.child.wait().expect("it ended");
        let freed = async {
            let status = self.broker.mover_status().await.expect("asked");
            self.broker.release_mover(status.epoch).await.expect("released");
        };
        self.runtime.block_on(freed);
    }

    fn automation<T>(&self, look: impl FnOnce(&Automation) -> T) -> T {
        look(&self.all.lock().expect("whole"))
    }

    /// How many orders of a step arrived.
    fn received(&self, step: &str) -> usize {
        self.automation(|all| all.received.iter().filter(|order| order.step == step).count())
    }

    fn wait(&self, what: &str, look: impl FnMut() -> bool) {
        until_true(what, Instant::now() + PATIENCE, look);
    }

    fn end(mut self) {
        assert_eq!(self.runtime.block_on(self.broker.check()).expect("asked"), [""; 0]);
        let postgres = self.postgres.take().expect("it runs");
        self.runtime.block_on(postgres.stop()).expect("it stops");
    }
}

/// Killed while orders are on their way, while answers are, and while servers are bound. One of the
/// servers under reconfiguration gets another owner while no mover runs.
#[test]
fn rolling_reconfiguration_survives_repeated_kills() {
    let begun = Instant::now();
    let region = Region::new();
    region.load("newer");
    let mut taken: Option<(Name, MoveId, usize)> = None;
    let outdated = || {
        let card = region.runtime.block_on(region.broker.reservation_summary("app")).expect("read");
        card.expect("there").rollout.expect("it changed").outdated
    };
    let mut left = vec![outdated()];
    // After this number of reconfigurations, and this much later.
    for (more, later) in [(1, 0), (8, 320), (4, 150), (12, 305), (6, 340)] {
        let running = region.start();
        let before = region.received("reconfigure");
        region.wait("it reconfigures", || region.received("reconfigure") >= before + more);
        std::thread::sleep(Duration::from_millis(later));
        region.kill(running);
        left.push(outdated());
        if taken.is_none() {
            let moves = region.runtime.block_on(region.broker.moves_under_way()).expect("listed");
            let of = moves.into_iter().find(|of| of.state == MoveState::Reconfiguring);
            let of = of.expect("one was being reconfigured");
            region.runtime.block_on(give(&region.broker, &of.server, "web"));
            taken = Some((of.server.into(), of.id, region.automation(|all| all.received.len())));
        }
    }
    let killed = left.len() - 1;
    assert!(left.windows(2).all(|two| two[0] >= two[1]) && left[killed] > 0, "{left:?}");
    // The last one takes over when the lease of the one before has run out, as it is without help.
    let mut running = region.start();
    let before = region.received("reconfigure");
    region.wait("it reconfigures", || region.received("reconfigure") > before);
    running.signal("-KILL");
    running.child.wait().expect("it ended");
    let running = region.start();
    let open = || region.runtime.block_on(region.broker.moves_under_way()).expect("listed").len();
    region.wait("all are reconfigured", || outdated() == 0 && open() == 0);
    running.stop();

    let (server, old, at) = taken.expect("one was taken");
    let export = region.runtime.block_on(region.broker.export(None)).expect("exported").parts;
    let app: Vec<&ServerRow> = (export.servers.iter())
        .filter(|row| row.current_reservation.as_deref() == Some("app"))
        .collect();
    assert_eq!(app.len(), 79);
    let all = region.all.lock().expect("whole");
    let last: BTreeMap<&str, Option<&str>> = (all.done.iter())
        .filter(|order| order.step == "reconfigure")
        .map(|order| (&*order.server, order.host_profile.as_deref()))
        .collect();
    for row in app {
        assert_eq!(last.get(&*row.server_id), Some(&Some("newer")), "{}", row.server_id);
    }
    assert_eq!(last.get(&*server), Some(&Some("web-host")), "{server} has the host profile");
    let late = |order: &&crate::fenced::Order| order.id == old.to_string();
    assert_eq!(all.received[at..].iter().filter(late).count(), 0, "orders of a move that is moot");
    // Containers in use were ended before, and nothing was ordered for what was bound.
    let preempted: BTreeSet<&str> = (all.done.iter())
        .filter(|order| order.step == "preempt")
        .map(|order| &*order.server)
        .collect();
    assert!((64..144).filter(|n| n % 5 < 2).all(|n| preempted.contains(&*format!("s{n:03}"))));
    let bound = region.runtime.block_on(bound_at(&region.broker));
    assert!(bound.len() >= 80, "{} moves bound", bound.len());
    let after = |(order, at): &(&crate::fenced::Order, &DateTime<Utc>)| {
        bound.get(&order.id).is_some_and(|bound| *at > bound)
    };
    let orders = all.received.iter().zip(&all.received_at);
    let after: Vec<_> = orders.filter(after).collect();
    assert!(after.is_empty(), "ordered for a server that was bound: {after:?}");
    let (orders, epochs) = (all.received.len(), all.epochs.values().max().copied());
    println!("{killed} kills, {left:?} left at each, {orders} orders, last epoch {epochs:?}");
    drop(all);
    region.end();
    println!("in {:?}", begun.elapsed());
}

/// An owner for a server, as a solve would want it.
async fn give(broker: &Broker, server: &ServerName, to: &str) {
    let export = broker.export(None).await.expect("exported");
    let number = export.parts.servers.iter().position(|row| row.server_id == *server);
    let generation = export.generations[number.expect("it is there")];
    let target = TargetRow { server: server.clone(), generation, target: Some(to.into()) };
    let (id, parent) = (PublicationId::now_v7(), export.version);
    let publication = Publication { id, parent, solve: None, targets: vec![target] };
    assert_eq!(broker.publish("test", &publication).await.expect("published").skipped, 0);
}

/// When each move was bound.
async fn bound_at(broker: &Broker) -> BTreeMap<String, DateTime<Utc>> {
    let mut bound = BTreeMap::new();
    for server in 0..144 {
        let name = format!("s{server:03}");
        for entry in broker.trail_of(&name, Seq(0), 1_000).await.expect("read") {
            if entry.action == Recorded::Known(Action::ServerBound) {
                let id = json_of(&entry.detail)["move"].as_str().expect("an id").to_owned();
                bound.insert(id, entry.at);
            }
        }
    }
    bound
}

/// Killed before the loss was seen, while hosts are asked, and while they say that they are back.
#[test]
fn recall_survives_repeated_kills() {
    let begun = Instant::now();
    let region = Region::new();
    let mut running = region.start();
    let windows: Vec<WindowId> = (0..4)
        .map(|msb| {
            let request = MaintenanceRequest {
                accept_short: None,
                scope: Scope::Rack,
                name: format!("m{msb}-r0").into(),
                starts_at: None,
                length: Duration::from_secs(86_400),
                drain: Duration::ZERO,
                share_micro: None,
                recall_minutes: Some(20),
                why: "new fans".to_owned(),
            };
            let planned = region.broker.plan_maintenance("ann", &request);
            region.runtime.block_on(planned).expect("planned").remove(0).id
        })
        .collect();
    let all_are = |state: MaintenanceState| {
        windows.iter().all(|id| {
            let found =
                region.runtime.block_on(region.broker.maintenance(true, Some((*id).into()), 1));
            found.expect("listed").remove(0).state == state
        })
    };
    region.wait("work begins", || all_are(MaintenanceState::Active));
    // Each host takes seconds, and says meanwhile that it is under way.
    region.all.lock().expect("whole").busy = 4;
    let lost = Occurrence {
        event: "power".into(),
        scope: Scope::Msb,
        scope_id: "m7".into(),
        kind: UnavailabilityKind::CorrelatedFailure,
        started_at: region.runtime.block_on(region.broker.clock()).expect("asked"),
    };
    let recorded = region.broker.record_unavailability("monitor", &lost);
    region.runtime.block_on(recorded).expect("recorded");
    region.kill(running);
    let mut open = Vec::new();
    // After this number of orders, and this much later.
    for (more, later) in [(1, 0), (8, 150), (8, 305), (8, 200), (8, 310)] {
        running = region.start();
        let before = region.received("end_maintenance");
        region.wait("it recalls", || {
            region.received("end_maintenance") >= before + more
                || all_are(MaintenanceState::Cancelled)
        });
        std::thread::sleep(Duration::from_millis(later));
        region.kill(running);
        let left = region.runtime.block_on(region.broker.recalls_under_way());
        open.push(left.expect("listed").len());
    }
    assert!(open[..4].iter().all(|left| *left > 0), "{open:?}");
    let running = region.start();
    region.wait("all are recalled", || all_are(MaintenanceState::Cancelled));
    let received = region.received("end_maintenance");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(region.received("end_maintenance"), received, "what is back is not asked again");
    running.stop();
    for id in &windows {
        let found = region.runtime.block_on(region.broker.maintenance(true, Some((*id).into()), 1));
        let recall = found.expect("listed").remove(0).recall.expect("it was recalled");
        assert_eq!((recall.servers, recall.returned, recall.refused), (2, 2, 0));
    }
    let all = region.all.lock().expect("whole");
    let asked: BTreeMap<&str, BTreeSet<&str>> =
        all.received.iter().fold(BTreeMap::new(), |mut asked, order| {
            asked.entry(&*order.server).or_default().insert(&*order.id);
            asked
        });
    assert_eq!(
        asked.len(),
        8,
        "those of m7 and of the window without a holder are left alone: {asked:?}"
    );
    assert!(asked.values().all(|ids| ids.len() == 1), "each is recalled once: {asked:?}");
    let done: BTreeSet<&str> = all.done.iter().map(|order| &*order.server).collect();
    assert!(done.iter().eq(asked.keys()), "{done:?}");
    let (orders, took) = (all.received.len(), begun.elapsed());
    println!("{open:?} open at each kill, {orders} orders for 8 servers, in {took:?}");
    drop(all);
    region.end();
}
