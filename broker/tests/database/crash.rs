//! A Postgres that crashes, again and again, while everybody works.

use crate::harness::folder;
use crate::publish::{publication, target};
use crate::regions::small;
use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{Action, Broker, DbError, ImportOptions, PublishError, Seq, TargetVersion};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(60);
const CRASHES: u32 = 3;

/// What everybody has to do with.
struct World {
    broker: Broker,
    over: AtomicBool,
    /// Publications that were acknowledged.
    published: AtomicU64,
    /// Faults of Postgres that somebody saw.
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

    /// Waits for ten more publications.
    async fn ten_more(&self) {
        let before = self.published.load(Ordering::Relaxed);
        let more = async {
            while self.published.load(Ordering::Relaxed) < before + 10 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, more).await.expect("something is published");
    }

    /// Publishes on what there is; what was not answered is asked again. Gives the versions made.
    async fn publish(&self, publisher: u128) -> Vec<(Uuid, TargetVersion)> {
        let mut made = Vec::new();
        let mut id = publisher << 64;
        while !self.is_over() {
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

    /// Follows the trail to its end; a subscription that breaks is made anew where it was.
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
                        let known = [Action::SnapshotLoaded, Action::TargetsPublished];
                        assert!(known.iter().any(|action| action.as_str() == entry.action));
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
async fn a_postgres_that_crashes_under_load_loses_nothing_that_was_acknowledged() {
    let folder = folder();
    let options = PrivateOptions::new(folder.path());
    let mut postgres = Some(PrivatePostgres::start(&options).await.expect("it starts"));
    let broker = Broker::open(&options.address()).await.expect("opened");
    broker.load("test", &small(), ImportOptions::default()).await.expect("loaded");
    let (over, published, faults) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let world = World { broker, over, published, faults };
    let crashes = async {
        for _ in 0..CRASHES {
            world.ten_more().await;
            // What `pg_ctl stop -m immediate` does: no checkpoint, the next start recovers.
            let mut crashing = postgres.take().expect("it runs");
            let pid = crashing.pid().to_string();
            assert!(Command::new("kill").args(["-QUIT", &pid]).status().expect("kill").success());
            crashing.ended().await;
            drop(crashing);
            postgres = Some(PrivatePostgres::start(&options).await.expect("it recovers"));
        }
        world.ten_more().await;
        world.over.store(true, Ordering::Relaxed);
    };
    let ((), a, b, looked, _, seen) = tokio::join!(
        crashes,
        world.publish(1),
        world.publish(2),
        world.read(),
        world.read(),
        world.follow()
    );
    assert!(world.faults.load(Ordering::Relaxed) >= u64::from(CRASHES), "they were noticed");
    assert!(looked > 0);
    assert_eq!(world.broker.check().await.expect("asked"), [""; 0]);
    let head = world.broker.version().await.expect("asked");
    // Every version is somebody's, and everybody's are there: none lost, none twice.
    let mut versions: Vec<i64> = a.iter().chain(&b).map(|(_, version)| version.0).collect();
    versions.sort_unstable();
    assert_eq!(versions, (2..=head.0).collect::<Vec<_>>());
    let whole: Vec<Seq> = (1..=head.0).map(Seq).collect();
    assert_eq!(seen, whole, "whoever follows has heard of each once, in order");
    world.broker.close().await;
    postgres.expect("it runs").stop().await.expect("it stops");
}
