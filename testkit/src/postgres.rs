//! Regions in a private Postgres. The tests of a program share one server, which is migrated once; each
//! test has a database of its own. Tests that stop the server start their own.

use crate::proxy::Proxy;
use broker::{Address, Broker, Document, ImportOptions};
use fleet::RegionSnapshot;
use private_postgres::{PrivateOptions, PrivatePostgres};
use sqlx::{Connection, PgConnection};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use tempfile::TempDir;
use tokio::sync::Mutex;

/// A stored document, to look into.
///
/// # Panics
/// If it is not JSON.
pub fn json_of(of: &Document) -> serde_json::Value {
    of.read().expect("a document is JSON")
}

/// A Postgres and, last, its folder: fields are dropped in this order.
pub struct Server {
    postgres: Option<PrivatePostgres>,
    address: Address,
    folder: TempDir,
}

impl Server {
    /// Starts a server for tests and migrates its database `region`. It does not sync files: its data is
    /// thrown away, and the checkpoint of a shutdown would sync every file of every test's database.
    ///
    /// # Panics
    /// If Postgres is not installed or does not start.
    pub async fn start() -> Server {
        let server = Server::start_in("/tmp").await;
        let mut db = connect(&server.address()).await;
        for statement in ["ALTER SYSTEM SET fsync = off", "SELECT pg_reload_conf()"] {
            execute(&mut db, statement).await;
        }
        server
    }

    /// Starts a server below a folder, for benchmarks: they write much, and `/tmp` may be memory. The
    /// path of a socket is short, so it is not in a build's folder.
    ///
    /// # Panics
    /// If Postgres is not installed or does not start.
    pub async fn start_in(parent: &str) -> Server {
        let folder = tempfile::Builder::new().prefix("ras-pg-").tempdir_in(parent);
        let folder = folder.expect("a folder");
        let postgres = PrivatePostgres::start(&PrivateOptions::new(folder.path())).await;
        let postgres = postgres.expect("a machine that runs these tests has Postgres");
        let address = postgres.address();
        let broker = Broker::open(&address).await.expect("opened");
        broker.close().await;
        Server { postgres: Some(postgres), address, folder }
    }

    /// The address of the database `region`, whether the server runs or not.
    pub fn address(&self) -> Address {
        self.address.clone()
    }

    /// The folder of its socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// The major version of Postgres, while it runs.
    pub fn major(&self) -> Option<u32> {
        self.postgres.as_ref().map(PrivatePostgres::major)
    }

    /// Stops it. The data stays.
    ///
    /// # Panics
    /// If it does not run, or does not stop.
    pub async fn stop(&mut self) {
        self.postgres.take().expect("it runs").stop().await.expect("it stops");
    }

    /// Starts it again on its data.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_again(&mut self) {
        let started = PrivatePostgres::start(&PrivateOptions::new(self.folder.path())).await;
        self.postgres = Some(started.expect("it starts"));
    }
}

impl Drop for Server {
    /// Waits for its end before the folder goes.
    fn drop(&mut self) {
        let Some(postgres) = self.postgres.take() else { return };
        let stop = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(postgres.stop()).expect("it stops");
        });
        stop.join().expect("it stops");
        assert!(!self.folder.path().join("data/postmaster.pid").exists(), "it is gone");
    }
}

/// The server that the tests of this program share, as long as any of them runs.
static SHARED: Mutex<Weak<Server>> = Mutex::const_new(Weak::new());
static DATABASES: AtomicU32 = AtomicU32::new(0);

async fn shared() -> Arc<Server> {
    let mut shared = SHARED.lock().await;
    if let Some(running) = shared.upgrade() {
        return running;
    }
    let server = Arc::new(Server::start().await);
    *shared = Arc::downgrade(&server);
    server
}

/// A proxy and the folder of its socket.
pub struct Proxied {
    /// The proxy.
    pub proxy: Proxy,
    _folder: TempDir,
}

/// A database of its own for one test.
pub struct Database {
    /// The store in it.
    pub broker: Broker,
    /// Where it is.
    pub address: Address,
    name: String,
    server: Arc<Server>,
}

impl Database {
    /// An empty, migrated database.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn new() -> Database {
        let (server, name) = create("test", " TEMPLATE region").await;
        let address = server.address().with_database(&name);
        let broker = Broker::open(&address).await.expect("it can be opened");
        Database { broker, address, name, server }
    }

    /// A database with a region loaded by the actor `test`.
    ///
    /// # Panics
    /// If it cannot be made or loaded.
    pub async fn with(region: &RegionSnapshot) -> Database {
        let database = Database::new().await;
        let options = ImportOptions::default();
        database.broker.load("test", region, options).await.expect("loaded");
        database
    }

    /// A database without tables.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn bare() -> Database {
        let (server, name) = create("bare", "").await;
        let address = server.address().with_database(&name);
        let broker = Broker::connect(&address, 4).await.expect("it can be connected to");
        Database { broker, address, name, server }
    }

    /// Its name in the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The folder of the server's socket.
    pub fn socket(&self) -> PathBuf {
        self.server.socket()
    }

    /// A proxy in front of it, and another broker that goes through the proxy.
    ///
    /// # Panics
    /// If it cannot be connected to.
    pub async fn behind_a_proxy(&self) -> (Proxied, Broker) {
        let folder = folder();
        let proxy = Proxy::start(&folder.path().join("proxy"), &self.socket());
        let address = Address::socket(proxy.folder(), "ras", &self.name);
        let broker = Broker::connect(&address, 4).await.expect("it can be connected to");
        (Proxied { proxy, _folder: folder }, broker)
    }

    /// A connection that the broker does not know of.
    ///
    /// # Panics
    /// If it cannot be connected to.
    pub async fn connect(&self) -> PgConnection {
        connect(&self.address).await
    }

    /// Runs statements that must succeed.
    ///
    /// # Panics
    /// If one fails.
    pub async fn execute(&self, sql: &str) {
        execute(&mut self.connect().await, sql).await;
    }

    /// The first column of the first row.
    ///
    /// # Panics
    /// If the statement fails or returns no number.
    pub async fn number(&self, sql: &str) -> i64 {
        let mut db = self.connect().await;
        let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.to_owned()));
        query.fetch_one(&mut db).await.unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

/// Makes a database in the shared server.
async fn create(prefix: &str, template: &str) -> (Arc<Server>, String) {
    let server = shared().await;
    let name = format!("{prefix}_{}", DATABASES.fetch_add(1, Ordering::Relaxed));
    let mut db = connect(&server.address().with_database("postgres")).await;
    execute(&mut db, &format!("CREATE DATABASE {name}{template}")).await;
    (server, name)
}

/// A folder for a server, with a short path.
///
/// # Panics
/// If it cannot be made.
pub fn folder() -> TempDir {
    tempfile::Builder::new().prefix("ras-pg-").tempdir_in("/tmp").expect("a folder")
}

/// Connects to a database.
///
/// # Panics
/// If it cannot be connected to.
pub async fn connect(address: &Address) -> PgConnection {
    PgConnection::connect_with(&address.options()).await.expect("it can be connected to")
}

/// Runs statements that must succeed.
///
/// # Panics
/// If one fails.
pub async fn execute(db: &mut PgConnection, sql: &str) {
    let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
    query.execute(db).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}
