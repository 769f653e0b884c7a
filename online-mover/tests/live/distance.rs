//! The mover far away from Postgres.

use crate::place::{Place, poll, town, until};
use broker::{Broker, ReplacementState};
use fleet::{RegionSnapshot, Scope, UnavailabilityKind};
use online_mover::agent::simulated::SimulatedAgent;
use online_mover::{Mover, MoverSettings};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use testkit::health::{Health, Occurrence};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};

/// The file name of Postgres' socket.
const SOCKET: &str = ".s.PGSQL.5432";

/// A proxy in front of Postgres' socket that delays all bytes, in both directions.
struct Distance {
    folder: tempfile::TempDir,
    database: String,
    /// Messages that clients sent.
    sent: Arc<AtomicUsize>,
    /// Opened connections.
    connections: Arc<AtomicUsize>,
}

impl Distance {
    fn to(place: &Place, each_way: Duration) -> Distance {
        let (socket, database) = place.socket();
        let socket = socket.join(SOCKET);
        let folder = tempfile::Builder::new().prefix("ras-far-").tempdir_in("/tmp");
        let folder = folder.expect("a folder");
        let listener = UnixListener::bind(folder.path().join(SOCKET)).expect("bound");
        let (sent, connections) = (Arc::default(), Arc::default());
        let of = Distance { folder, database, sent, connections };
        let (sent, connections) = (Arc::clone(&of.sent), Arc::clone(&of.connections));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let Ok(server) = UnixStream::connect(&socket).await else { continue };
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(pass(from_client, to_server, each_way, Some(Arc::clone(&sent))));
                tokio::spawn(pass(from_server, to_client, each_way, None));
            }
        });
        of
    }

    async fn broker(&self) -> Broker {
        let address = broker::Address::socket(self.folder.path(), "ras", &self.database);
        Broker::attach(&address).await.expect("attached")
    }
}

/// Forwards bytes after a delay.
async fn pass(
    mut from: impl AsyncRead + Unpin + Send + 'static,
    mut to: impl AsyncWrite + Unpin,
    later: Duration,
    count: Option<Arc<AtomicUsize>>,
) {
    let (late, mut due) = mpsc::unbounded_channel::<(Instant, Vec<u8>)>();
    tokio::spawn(async move {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            if let Some(count) = &count {
                count.fetch_add(1, Ordering::Relaxed);
            }
            if late.send((Instant::now() + later, buffer[..read].to_vec())).is_err() {
                return;
            }
        }
    });
    while let Some((at, bytes)) = due.recv().await {
        sleep_until(at).await;
        if to.write_all(&bytes).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}

/// Limit of the time from a failure to the bound spare with default settings, in one-way delays. It takes about
/// 140; statements that are sent for the first time take another round trip.
const REPLACED_WITHIN: u32 = 300;

/// The town without elastic reservations.
fn without_loans() -> RegionSnapshot {
    let mut parts = town().to_parts();
    parts.reservations.retain(|row| &*row.kind != "elastic");
    parts.rru.retain(|row| !["batch", "trial"].contains(&&*row.reservation_id));
    RegionSnapshot::new(parts).expect("a snapshot")
}

#[tokio::test]
async fn failed_server_is_replaced_with_postgres_100_ms_away() {
    replaced_over(Duration::from_millis(100)).await;
}

#[tokio::test]
async fn failed_server_is_replaced_with_postgres_500_ms_away() {
    replaced_over(Duration::from_millis(500)).await;
}

async fn replaced_over(each_way: Duration) {
    let place = Place::with(&without_loans()).await;
    let distance = Distance::to(&place, each_way);
    let agent = SimulatedAgent::default();
    let settings = MoverSettings::default();
    let mover = Mover::new(distance.broker().await, &agent, settings, "far".to_owned());
    let status = async || place.broker.mover_status().await.expect("asked");
    let looked = async || status().await.distance.is_some_and(|of| of.pass.is_some());
    let (begun, mut failed, mut messages) = (Instant::now(), None, 0);
    let sent = || distance.sent.load(Ordering::Relaxed);
    let replaced = async {
        poll(looked).await;
        let event = Occurrence {
            event: "broken".into(),
            scope: Scope::Server,
            scope_id: "s000".into(),
            kind: UnavailabilityKind::RandomFailure,
            started_at: place.broker.clock().await.expect("asked"),
        };
        (failed, messages) = (Some(begun.elapsed()), sent());
        place.broker.record_unavailability("monitor", &event).await.expect("recorded");
        let bound = [ReplacementState::Bound];
        poll(async || !place.broker.replacements(&bound, 1).await.expect("listed").is_empty())
            .await;
    };
    let done = timeout(each_way * REPLACED_WITHIN + Duration::from_secs(60), async {
        tokio::select! {
            never = mover.run() => never,
            () = replaced => {}
        }
    });
    done.await.expect("it is replaced");
    let looked = failed.expect("it looked");
    let (took, status) = (begun.elapsed() - looked, status().await);
    let said = status.distance.expect("measured");
    let (more, connections) = (sent() - messages, distance.connections.load(Ordering::Relaxed));
    println!(
        "looked after {looked:?}, replaced after {took:?} and {more} messages, {connections} connections, {said:?}"
    );
    assert_eq!(status.epoch.0, 1, "the lease was kept");
    assert!(took < each_way * REPLACED_WITHIN, "{took:?}");
    assert!((2..4).contains(&(said.round_trip.as_millis() / each_way.as_millis())), "{said:?}");
    assert_eq!(said.cannot_act(), None);
    place.at_rest().await;
}

/// At this distance no lease can be renewed in time: no mover acts, and the status gives the reason.
#[tokio::test]
async fn mover_too_far_from_postgres_reports_that_it_cannot_act() {
    let place = Place::with(&without_loans()).await;
    let distance = Distance::to(&place, Duration::from_millis(400));
    let agent = SimulatedAgent::default();
    let settings = MoverSettings { lease: Duration::from_secs(1), ..MoverSettings::default() };
    let mover = Mover::new(distance.broker().await, &agent, settings, "far".to_owned());
    let said = async || place.broker.mover_status().await.expect("asked").distance?.cannot_act();
    until(mover.run(), async || said().await.is_some()).await;
    let said = said().await.expect("said");
    println!("{said}");
    let whole = said.starts_with("cannot act: Postgres is ") && said.ends_with(" the lease is 1 s");
    assert!(whole && agent.asked() == 0, "{said}");
}
