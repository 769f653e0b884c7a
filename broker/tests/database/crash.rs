//! Repeated crashes of Postgres under load.

use crate::harness::folder;
use crate::jobs::end;
use crate::publish::{publication, target};
use crate::regions::small;
use broker::{
    Action, Broker, Cause, DbError, Document, ImportOptions, JobKind, PublicationId, PublishError,
    Recorded, Seq, SolveBasis, SolveId, TargetVersion,
};
use private_postgres::{PrivateOptions, PrivatePostgres};
use serde_json::json;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(60);
const CRASHES: u32 = 3;
const LEASE: Duration = Duration::from_secs(2);

/// State shared by all tasks.
struct World {
    broker: Broker,
    over: AtomicBool,
    /// Publications that were acknowledged.
    published: AtomicU64,
    /// Of them, those of the worker.
    solved: AtomicU64,
    /// Faults of Postgres that tasks saw.
    faults: AtomicU64,
}

impl World {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Anything else than a fault that passes is a bug.
    async fn passes(&self, error: &DbError) {
        assert!(error.is_passing(), "{error:?}");
        self.faults.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    /// Waits for ten more publications, and one more of a solve.
    async fn some_more(&self) {
        let so_far = || [&self.published, &self.solved].map(|count| count.load(Ordering::Relaxed));
        let before = so_far();
        let more = async {
            while so_far()[0] < before[0] + 10 || so_far()[1] == before[1] {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, more).await.expect("something is published");
    }

    /// Publishes on what there is; what was not answered is asked again. Gives the versions made.
    async fn publish(&self, publisher: u128) -> Vec<(PublicationId, TargetVersion)> {
        let mut made = Vec::new();
        let mut id = publisher << 64;
        while !self.is_over() {
            // Others are to be first, too.
            tokio::time::sleep(Duration::from_millis(20)).await;
            let parent = match self.broker.version().await {
                Ok(head) => head.0,
                Err(error) => {
                    self.passes(&error).await;
                    continue;
                }
            };
            id += 1;
            let wanted = id.is_multiple_of(2).then_some("web");
            let targets = publication(id, parent, vec![target("s013", 1, wanted)]);
            loop {
                match self.broker.publish("publisher", &targets).await {
                    Ok(published) => {
                        self.published.fetch_add(1, Ordering::Relaxed);
                        made.push((targets.id, published.version));
                        break;
                    }
                    Err(PublishError::Stale { .. }) => break,
                    Err(PublishError::Db(error)) => self.passes(&error).await,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        made
    }

    /// The same until it is answered.
    async fn until_answered<T>(&self, mut ask: impl AsyncFnMut() -> Result<T, DbError>) -> T {
        loop {
            match ask().await {
                Ok(answer) => return answer,
                Err(error) => self.passes(&error).await,
            }
        }
    }

    /// Asks for solves, takes them and ends them, as a worker does. Gives the versions made.
    async fn work(&self) -> Vec<(PublicationId, TargetVersion)> {
        let (broker, mut made) = (&self.broker, Vec::new());
        let mut id = 3_u128 << 64;
        while !self.is_over() {
            id += 1;
            let ask = async || {
                broker.request_solve("test", SolveId::from_u128(id), Cause::Demand, None).await
            };
            self.until_answered(ask).await;
            // One whose answer was lost is free again when its lease is over.
            let lease = loop {
                let take = async || broker.claim("worker", &[JobKind::Solve], LEASE).await;
                match self.until_answered(take).await {
                    Some(job) => break job.lease,
                    None => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            let parent = self.until_answered(async || broker.version().await).await;
            let basis = SolveBasis {
                parent,
                seq: Seq(parent.0),
                snapshot_url: "memory:///".to_owned(),
                config: Document::of(&json!({})),
                policies: broker::PoliciesEdition::default(),
            };
            if !self.until_answered(async || broker.describe_solve(lease, &basis).await).await {
                continue;
            }
            let wanted = id.is_multiple_of(2).then_some("web");
            let publication_id = (id << 8) + u128::from(lease.attempt.unsigned_abs());
            let mut targets =
                publication(publication_id, parent.0, vec![target("s014", 1, wanted)]);
            targets.solve = end(lease);
            let publish = async || match broker.publish("worker", &targets).await {
                Err(PublishError::Db(error)) => Err(error),
                other => Ok(other),
            };
            match self.until_answered(publish).await {
                Ok(published) => {
                    self.published.fetch_add(1, Ordering::Relaxed);
                    self.solved.fetch_add(1, Ordering::Relaxed);
                    made.push((targets.id, published.version));
                }
                Err(PublishError::Stale { .. }) => {
                    let stale = async || broker.end_stale_solve(lease, "late", "memory:///").await;
                    self.until_answered(stale).await;
                }
                Err(PublishError::LeaseLost { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
        made
    }

    async fn read(&self) -> u64 {
        let mut looked = 0;
        while !self.is_over() {
            match self.broker.status().await {
                Ok(status) => {
                    assert_eq!(status.servers.total, 24);
                    looked += 1;
                }
                Err(error) => self.passes(&error).await,
            }
        }
        looked
    }

    /// Follows the trail to its end; a broken subscription is opened again at its position.
    async fn follow(&self) -> Vec<Seq> {
        let mut seen = Vec::new();
        loop {
            let last = seen.last().copied().unwrap_or(Seq(0));
            if self.is_over() && self.broker.last_seq().await.is_ok_and(|end| end == last) {
                return seen;
            }
            let mut trail = match self.broker.subscribe(last).await {
                Ok(trail) => trail,
                Err(error) => {
                    self.passes(&error).await;
                    continue;
                }
            };
            loop {
                match tokio::time::timeout(Duration::from_secs(1), trail.next()).await {
                    Ok(Ok(entry)) => {
                        let known = [
                            Action::SnapshotLoaded,
                            Action::SolveRequested,
                            Action::TargetsPublished,
                        ];
                        assert!(known.map(Recorded::from).contains(&entry.action));
                        seen.push(entry.seq);
                    }
                    Ok(Err(error)) => {
                        self.passes(&error).await;
                        break;
                    }
                    Err(_) if self.is_over() => break,
                    Err(_) => {}
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crashing_postgres_keeps_acknowledged_writes() {
    let folder = folder();
    let options = PrivateOptions::new(folder.path());
    let mut postgres = Some(PrivatePostgres::start(&options).await.expect("it starts"));
    let broker = Broker::open(&options.address()).await.expect("opened");
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let [published, solved, faults] = [0; 3].map(AtomicU64::new);
    let world = World { broker, over: AtomicBool::new(false), published, solved, faults };
    let crashes = async {
        for _ in 0..CRASHES {
            world.some_more().await;
            // What `pg_ctl stop -m immediate` does: no checkpoint, the next start recovers.
            let mut crashing = postgres.take().expect("it runs");
            let pid = crashing.pid().to_string();
            assert!(Command::new("kill").args(["-QUIT", &pid]).status().expect("kill").success());
            crashing.ended().await;
            drop(crashing);
            postgres = Some(PrivatePostgres::start(&options).await.expect("it recovers"));
        }
        world.some_more().await;
        world.over.store(true, Ordering::Relaxed);
    };
    let ((), a, b, c, looked, _, seen) = tokio::join!(
        crashes,
        world.publish(1),
        world.publish(2),
        world.work(),
        world.read(),
        world.read(),
        world.follow()
    );
    assert!(world.faults.load(Ordering::Relaxed) >= u64::from(CRASHES), "they were noticed");
    assert!(looked > 0);
    assert_eq!(world.broker.check().await.expect("asked"), [""; 0]);
    let head = world.broker.version().await.expect("asked");
    // Every version has one publisher, and every publication is there exactly once.
    let mut versions: Vec<i64> =
        a.iter().chain(&b).chain(&c).map(|(_, version)| version.0).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=head.0).collect::<Vec<_>>());
    // Beside the versions stand the solves that were asked for.
    let last = world.broker.last_seq().await.expect("asked");
    assert!(last.0 > head.0, "{last:?} entries, {head:?} versions");
    let whole: Vec<Seq> = (1..=last.0).map(Seq).collect();
    assert_eq!(seen, whole, "the subscriber got each entry once, in order");
    world.broker.close().await;
    postgres.expect("it runs").stop().await.expect("it stops");
}
