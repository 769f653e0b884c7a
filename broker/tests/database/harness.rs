//! One private Postgres for as long as any test needs it, and a fresh database for each test.

use crate::proxy::Proxy;
use broker::private::{PrivateOptions, PrivatePostgres};
use broker::{Address, Broker};
use sqlx::{Connection, PgConnection};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// A server of our own and, last, its folder: fields are dropped in this order.
struct Cluster {
    postgres: Option<PrivatePostgres>,
    folder: TempDir,
}

static CLUSTER: Mutex<Weak<Cluster>> = Mutex::const_new(Weak::new());
static DATABASES: AtomicU32 = AtomicU32::new(0);

impl Cluster {
    async fn shared() -> Arc<Cluster> {
        let mut shared = CLUSTER.lock().await;
        if let Some(running) = shared.upgrade() {
            return running;
        }
        let folder = folder();
        let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path()))
            .await
            .expect("a machine that tests the broker has Postgres");
        // The template of every test's database: migrated once.
        let broker = Broker::open(&postgres.address()).await.expect("it can be opened");
        broker.close().await;
        let cluster = Arc::new(Cluster { postgres: Some(postgres), folder });
        *shared = Arc::downgrade(&cluster);
        cluster
    }

    fn address(&self) -> Address {
        self.postgres.as_ref().expect("until it is dropped").address()
    }
}

impl Drop for Cluster {
    /// Waits for the end of the server before the folder goes.
    fn drop(&mut self) {
        let postgres = self.postgres.take().expect("dropped once");
        let stop = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(postgres.stop()).expect("it stops");
        });
        stop.join().expect("it stops");
        assert!(!self.folder.path().join("data/postmaster.pid").exists(), "it is gone");
    }
}

/// A folder for a server. The path of a socket is short, so it is not in a build's folder.
pub fn folder() -> TempDir {
    tempfile::Builder::new().prefix("ras-pg-").tempdir_in("/tmp").expect("a folder")
}

/// A proxy and the folder of its socket.
pub struct Proxied {
    pub proxy: Proxy,
    _folder: TempDir,
}

/// A database of its own for one test.
pub struct Database {
    pub broker: Broker,
    pub address: Address,
    name: String,
    cluster: Arc<Cluster>,
}

impl Database {
    /// An empty one, migrated.
    pub async fn new() -> Database {
        let cluster = Cluster::shared().await;
        let name = format!("test_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let mut db = connect(&cluster.address().with_database("postgres")).await;
        execute(&mut db, &format!("CREATE DATABASE {name} TEMPLATE region")).await;
        let address = cluster.address().with_database(&name);
        let broker = Broker::open(&address).await.expect("it can be opened");
        Database { broker, address, name, cluster }
    }

    /// One without anything in it.
    pub async fn bare() -> Database {
        let cluster = Cluster::shared().await;
        let name = format!("bare_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
        let mut db = connect(&cluster.address().with_database("postgres")).await;
        execute(&mut db, &format!("CREATE DATABASE {name}")).await;
        let address = cluster.address().with_database(&name);
        let broker = Broker::connect(&address, 4).await.expect("it can be connected to");
        Database { broker, address, name, cluster }
    }

    /// Its name in its Postgres.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the socket of its Postgres.
    pub fn socket(&self) -> PathBuf {
        self.cluster.folder.path().join("socket")
    }

    /// The same by way of a proxy, and another broker that goes this way.
    pub async fn behind_a_proxy(&self) -> (Proxied, Broker) {
        let folder = folder();
        let proxy = Proxy::start(&folder.path().join("proxy"), &self.socket());
        let address = Address::socket(proxy.folder(), "ras", &self.name);
        let broker = Broker::connect(&address, 4).await.expect("it can be connected to");
        (Proxied { proxy, _folder: folder }, broker)
    }

    /// A connection behind the broker's back.
    pub async fn connect(&self) -> PgConnection {
        connect(&self.address).await
    }

    /// Runs statements that must succeed.
    pub async fn execute(&self, sql: &str) {
        execute(&mut self.connect().await, sql).await;
    }

    /// The first column of the first row.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut db = self.connect().await;
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()));
        query.fetch_one(&mut db).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

pub async fn connect(address: &Address) -> PgConnection {
    PgConnection::connect_with(&address.options()).await.expect("it can be connected to")
}

pub async fn execute(db: &mut PgConnection, sql: &str) {
    let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
    query.execute(db).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// An error and its causes, on one line.
pub fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |said, cause| format!("{said}: {cause}"))
}
