//! A private Postgres with a small region.

use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{
    Broker, Epoch, ImportOptions, MoverInstance, Publication, PublicationId, TargetRow,
    TargetVersion,
};
use fleet::{Name, RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, Weights};
use online_mover::MoverSettings;
use online_mover::agent::simulated::SimulatedAgent;
use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

/// Time limit of a wait. A machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(100);

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

/// A region in a private Postgres. Fields are dropped in order, the folder last.
pub struct Place {
    pub broker: Broker,
    pub postgres: Option<PrivatePostgres>,
    folder: tempfile::TempDir,
}

impl Drop for Place {
    /// Stops the server before its folder is removed.
    fn drop(&mut self) {
        let Some(postgres) = self.postgres.take() else { return };
        let stop = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(postgres.stop()).expect("it stops");
        });
        stop.join().expect("it stops");
    }
}

pub fn region() -> RegionSnapshot {
    let reservation = |id: &str| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: "guaranteed".into(),
        capacity_rru: 4.0,
        msb_buffer: true,
        priority: 1,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: Some(format!("profile of {id}").into()),
        replicas: None,
        replicas_per_msb: None,
    };
    let server = |number: usize| ServerRow {
        server_id: format!("s{number:02}").into(),
        datacenter: "dc".into(),
        msb: format!("msb{}", number % 3).into(),
        rack: format!("rack{}", number % 6).into(),
        hardware_type: "type".into(),
        current_reservation: match number {
            0..8 => Some("a".into()),
            8..16 => Some("b".into()),
            _ => None,
        },
        target_reservation: None,
        target_pending: false,
        in_use: number < 4,
        loaned_to: None,
        power_watts: None,
    };
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "type".into(), rru: 1.0 };
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: (0..24).map(server).collect(),
        reservations: vec![reservation("a"), reservation("b")],
        rru: vec![value("a"), value("b")],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// 120 servers of the types x and y in three MSBs of four racks; `web` and `ads` have 50 each, the shared
/// buffers four of each type, and the rest is free. Two elastic reservations borrow nothing yet.
pub fn town() -> RegionSnapshot {
    let reservation = |id: &str, kind: &str, priority: i32, capacity_rru: f64| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: kind.into(),
        capacity_rru,
        msb_buffer: kind == "guaranteed",
        priority,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    };
    let server = |number: usize| {
        let ty = ["x", "y"][number % 2];
        ServerRow {
            server_id: format!("s{number:03}").into(),
            datacenter: "dc".into(),
            msb: format!("msb{}", number / 2 % 3).into(),
            rack: format!("rack{:02}", number / 2 % 12).into(),
            hardware_type: ty.into(),
            current_reservation: match number {
                0..50 => Some("web".into()),
                50..100 => Some("ads".into()),
                100..108 => Some(format!("shared-buffer/{ty}").into()),
                _ => None,
            },
            target_reservation: None,
            target_pending: false,
            in_use: number < 100 && number % 50 < 30,
            loaned_to: None,
            power_watts: None,
        }
    };
    let value = |id: &str, ty: &str, rru: f64| RruRow {
        reservation_id: id.into(),
        hardware_type: ty.into(),
        rru,
    };
    let parts = SnapshotParts {
        region: "town".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(4.0 / 60.0),
        servers: (0..120).map(server).collect(),
        reservations: vec![
            reservation("web", "guaranteed", 0, 40.0),
            reservation("ads", "guaranteed", 1, 25.0),
            reservation("batch", "elastic", 9, 0.0),
            reservation("trial", "elastic", 9, 0.0),
        ],
        rru: vec![
            value("web", "x", 1.0),
            value("web", "y", 2.0),
            value("ads", "x", 1.0),
            value("batch", "x", 1.0),
            value("batch", "y", 1.0),
            value("trial", "x", 1.0),
            value("trial", "y", 1.0),
            value("ads", "y", 1.0),
        ],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

impl Place {
    /// 24 servers in six racks and three MSBs: eight of `a`, eight of `b`, eight free.
    pub async fn new() -> Place {
        Place::with(&region()).await
    }

    /// A given region.
    pub async fn with(region: &RegionSnapshot) -> Place {
        // The path of a socket is short, so it is not in a build's folder.
        let folder = tempfile::Builder::new().prefix("ras-mv-").tempdir_in("/tmp");
        let folder = folder.expect("a folder");
        let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await;
        let postgres = postgres.expect("a machine that tests the mover has Postgres");
        let broker = Broker::open(&postgres.address()).await.expect("opened");
        broker.load("test", region, ImportOptions::default()).await.expect("loaded");
        Place { broker, postgres: Some(postgres), folder }
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
            target: to.map(Name::from),
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
        self.postgres.take().expect("it runs").stop().await.expect("it stops");
    }

    /// Starts Postgres again.
    pub async fn start_postgres(&mut self) {
        let started = PrivatePostgres::start(&PrivateOptions::new(self.folder.path())).await;
        self.postgres = Some(started.expect("it starts"));
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
        let mut last: BTreeMap<Name, (i64, uuid::Uuid, online_mover::steps::Step)> =
            BTreeMap::new();
        for done in agent.done() {
            if let Some((version, id, step)) = last.get(&done.server) {
                assert!(*version <= done.version, "{done:?} after version {version}");
                assert!(*id != done.move_id || *step < done.step, "{done:?} after {step:?}");
            }
            last.insert(done.server.clone(), (done.version, done.move_id, done.step));
        }
    }
}

/// A future that is dropped after a number of polls: a crash at that await.
pub struct Crashes<F> {
    pub future: F,
    pub polls: u64,
}

impl<F: Future + Unpin> Future for Crashes<F> {
    /// The output; `None`: the future was dropped first.
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        let polled = Pin::new(&mut self.future).poll(context);
        if self.polls == 0 && polled.is_pending() {
            return Poll::Ready(None);
        }
        polled.map(Some)
    }
}

/// Waits for a condition, checking every few milliseconds.
pub async fn poll(mut look: impl AsyncFnMut() -> bool) {
    while !look().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Runs a future without end until a condition holds.
pub async fn until<T>(run: impl Future<Output = T>, look: impl AsyncFnMut() -> bool) {
    let waited = tokio::time::timeout(PATIENCE, async {
        tokio::select! {
            _ = run => unreachable!("it has no end"),
            () = poll(look) => {}
        }
    });
    waited.await.expect("it takes too long");
}
