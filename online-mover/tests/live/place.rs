//! A private Postgres with a small region.

use broker::{
    Broker, Epoch, ImportOptions, MoverInstance, OrderId, Publication, PublicationId, TargetRow,
    TargetVersion,
};
use fleet::{RegionSnapshot, ReservationRow, ServerName, ServerRow, SnapshotParts};
use online_mover::MoverSettings;
use online_mover::agent::simulated::SimulatedAgent;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use testkit::postgres::{Database, Server};
use testkit::rows::{parts, reservation, rru, server, snapshot, two_reservations};

pub use testkit::wait::{Crashes, poll, until};

const LEASE: Duration = Duration::from_secs(600);

pub fn settings() -> MoverSettings {
    MoverSettings {
        lease: Duration::from_secs(1),
        look_every: Duration::from_millis(100),
        pause: Duration::from_millis(5),
        pause_max: Duration::from_millis(20),
        ..MoverSettings::default()
    }
}

/// A region in the Postgres of the tests, or in one of its own.
pub struct Place {
    pub broker: Broker,
    postgres: Postgres,
}

enum Postgres {
    Shared(Box<Database>),
    Own(Box<Server>),
}

/// 24 servers in six racks and three MSBs: eight of `a`, eight of `b`, eight free.
pub fn region() -> RegionSnapshot {
    let mut parts = two_reservations(["a", "b"], 4.0, 1.0);
    for row in &mut parts.reservations {
        row.host_profile = Some(format!("profile of {}", row.reservation_id).into());
    }
    snapshot(&parts)
}

/// 120 servers of the types x and y in three MSBs of four racks; `web` and `ads` have 50 each, the shared
/// buffers four of each type, and the rest is free. Two elastic reservations borrow nothing yet.
pub fn town() -> RegionSnapshot {
    let reserved = |id: &str, kind: &str, priority: i32, capacity_rru: f64| ReservationRow {
        owner: id.into(),
        kind: kind.into(),
        msb_buffer: kind == "guaranteed",
        priority,
        ..reservation(id, capacity_rru)
    };
    let servers = (0..120).map(|number: usize| {
        let ty = ["x", "y"][number % 2];
        let (msb, rack) = (format!("msb{}", number / 2 % 3), format!("rack{:02}", number / 2 % 12));
        ServerRow {
            current_reservation: match number {
                0..50 => Some("web".into()),
                50..100 => Some("ads".into()),
                100..108 => Some(format!("shared-buffer/{ty}").into()),
                _ => None,
            },
            in_use: number < 100 && number % 50 < 30,
            ..server(&format!("s{number:03}"), ("dc", &msb, &rack), ty)
        }
    });
    snapshot(&SnapshotParts {
        region: "town".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        shared_buffer_fraction: Some(4.0 / 60.0),
        servers: servers.collect(),
        reservations: vec![
            reserved("web", "guaranteed", 0, 40.0),
            reserved("ads", "guaranteed", 1, 25.0),
            reserved("batch", "elastic", 9, 0.0),
            reserved("trial", "elastic", 9, 0.0),
        ],
        rru: vec![
            rru("web", "x", 1.0),
            rru("web", "y", 2.0),
            rru("ads", "x", 1.0),
            rru("batch", "x", 1.0),
            rru("batch", "y", 1.0),
            rru("trial", "x", 1.0),
            rru("trial", "y", 1.0),
            rru("ads", "y", 1.0),
        ],
        ..parts()
    })
}

impl Place {
    /// 24 servers in six racks and three MSBs: eight of `a`, eight of `b`, eight free.
    pub async fn new() -> Place {
        Place::with(&region()).await
    }

    /// A region in a database of its own.
    pub async fn with(region: &RegionSnapshot) -> Place {
        let database = Database::with(region).await;
        Place { broker: database.broker.clone(), postgres: Postgres::Shared(Box::new(database)) }
    }

    /// A region in a Postgres of its own, which the test may stop.
    pub async fn alone(region: &RegionSnapshot) -> Place {
        let server = Server::start().await;
        let broker = Broker::open(&server.address()).await.expect("opened");
        broker.load("test", region, ImportOptions::default()).await.expect("loaded");
        Place { broker, postgres: Postgres::Own(Box::new(server)) }
    }

    /// The folder of the socket of its Postgres, and the name of its database.
    pub fn socket(&self) -> (PathBuf, String) {
        match &self.postgres {
            Postgres::Shared(database) => (database.socket(), database.name().to_owned()),
            Postgres::Own(server) => (server.socket(), "region".to_owned()),
        }
    }

    /// Publishes targets on top of the current version; gives the holder of each server afterwards.
    pub async fn publish(
        &self,
        rows: &[(usize, Option<&str>)],
    ) -> BTreeMap<String, Option<String>> {
        let export = self.broker.export(None).await.expect("exported");
        let targets = rows.iter().map(|(number, to)| TargetRow {
            server: export.parts.servers[*number].server_id.clone(),
            generation: export.generations[*number],
            target: to.map(Into::into),
        });
        let (id, parent, targets) = (PublicationId::now_v7(), export.version, targets.collect());
        let publication = Publication { id, parent, solve: None, targets };
        let published = self.broker.publish("test", &publication).await.expect("published");
        assert_eq!(published.skipped, 0);
        assert_eq!(published.version, TargetVersion(parent.0 + 1));
        let export = self.broker.export(None).await.expect("exported");
        let holders = export.parts.servers.into_iter().map(|row| {
            let holder =
                if row.target_pending { row.target_reservation } else { row.current_reservation };
            (row.server_id.to_string(), holder.map(|name| name.to_string()))
        });
        holders.collect()
    }

    /// The owner of each server now.
    pub async fn owners(&self) -> BTreeMap<String, Option<String>> {
        let export = self.broker.export(None).await.expect("exported");
        let owners = export.parts.servers.into_iter().map(|row| {
            let owner = row.current_reservation.map(|name| name.to_string());
            (row.server_id.to_string(), owner)
        });
        owners.collect()
    }

    /// Asserts that the database is consistent.
    pub async fn at_rest(&self) {
        assert_eq!(self.broker.check().await.expect("asked"), [""; 0]);
    }

    /// Stops Postgres while clients are connected.
    pub async fn stop_postgres(&mut self) {
        self.own().stop().await;
    }

    /// Starts Postgres again.
    pub async fn start_postgres(&mut self) {
        self.own().start_again().await;
    }

    fn own(&mut self) -> &mut Server {
        match &mut self.postgres {
            Postgres::Own(server) => server,
            Postgres::Shared(_) => panic!("other tests use this Postgres: ask for Place::alone"),
        }
    }

    /// Ends the current lease, as if its holder had been silent for long.
    pub async fn free_the_lease(&self) {
        let status = self.broker.mover_status().await.expect("asked");
        self.broker.release_mover(status.epoch).await.expect("released");
    }

    /// Takes the lease from its holder.
    pub async fn take_the_lease(&self, name: &str) -> Epoch {
        self.free_the_lease().await;
        let leased =
            self.broker.lease_mover(&MoverInstance::new(name), LEASE).await.expect("asked");
        leased.expect("it is free")
    }

    /// Asserts that no host executed a step of an older version after one of a newer, or an earlier step of
    /// a move after a later one.
    pub fn no_step_backwards(&self, agent: &SimulatedAgent) {
        let mut last: BTreeMap<ServerName, (i64, OrderId, online_mover::steps::Step)> =
            BTreeMap::new();
        for done in agent.done() {
            if let Some((version, id, step)) = last.get(&done.server) {
                assert!(*version <= done.version, "{done:?} after version {version}");
                assert!(*id != done.order_id || *step < done.step, "{done:?} after {step:?}");
            }
            last.insert(done.server.clone(), (done.version, done.order_id, done.step));
        }
    }
}
