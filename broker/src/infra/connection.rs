//! The connection to Postgres: its address, checks of its version, and the schema.

use crate::infra::error::{DbError, Doing};
use crate::promises::terms::PromiseTermsCache;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{Connection, Executor, PgConnection, Postgres, Transaction};
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// The schema: every migration of `migrations/`, compiled in.
pub static MIGRATOR: Migrator = sqlx::migrate!("../migrations");

/// The oldest major version of Postgres this crate works with.
pub const POSTGRES_MIN: u32 = 14;

/// Connections of one [`Broker`]: enough for the readers of one process beside a publication, and few enough
/// that ten processes fit into a server's usual hundred.
const CONNECTIONS_MAX: u32 = 8;

/// How long an operation waits for a connection of the pool before it fails.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection idle for less than this is taken from the pool without a ping.
const SURELY_THERE: Duration = Duration::from_millis(100);

/// Idle time without a ping of [`Broker::steady`], whose caller tolerates lost connections.
const STEADY: Duration = Duration::from_secs(30);

/// Attempts to connect to a server that is starting or recovering.
const START_ATTEMPTS: u32 = 50;
const START_PAUSE: Duration = Duration::from_millis(200);

pub(crate) mod sql {
    crate::statements! {
        SERVER_VERSION = "SELECT current_setting('server_version_num')::int";
        /// Generic plans. A custom plan for one page reads and sorts the whole of a large reservation (42 ms
        /// instead of 4, for 32,000 servers), and planning takes longer than most of our statements run. For
        /// the same reason no parallel workers and no JIT, which start when the planner overestimates rows (26
        /// ms for a query of 10). The idle timeout within a transaction limits how long a frozen client holds
        /// its locks: a locked job cannot be claimed, even after its lease has expired.
        PLAN_ONCE = "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), \
            set_config('max_parallel_workers_per_gather', '0', false), set_config('jit', 'off', false), \
            set_config('idle_in_transaction_session_timeout', '30s', false)";
        /// Asked before `MIGRATION`: a database that was never migrated has no such table.
        IS_MIGRATED = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
        MIGRATION = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success";
        BEGIN = "BEGIN";
        /// One snapshot for all following statements, read-only.
        BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        PROCESS = "SELECT pg_backend_pid()";
        HAS_DATABASE = "SELECT count(*) FROM pg_database WHERE datname = $1";
        CURRENT_DATABASE = "SELECT current_database()::text";
    }
}

/// The database of a private Postgres.
pub const REGION: &str = "region";

/// Not in the list of statements: Postgres cannot prepare it.
const CREATE_REGION: &str = "CREATE DATABASE region";

/// The address of a Postgres database.
#[derive(Clone, Debug)]
pub struct Address(PgConnectOptions);

impl Address {
    /// Parses a URL: `postgres://user:password@host:port/database`, or
    /// `postgres://user@localhost/database?host=/folder` for a unix socket.
    ///
    /// # Errors
    /// [`OpenError::Url`].
    pub fn from_url(url: &str) -> Result<Address, OpenError> {
        PgConnectOptions::from_str(url).map(Address).map_err(OpenError::Url)
    }

    /// The address of a unix socket in a folder.
    pub fn socket(folder: &Path, user: &str, database: &str) -> Address {
        let options = PgConnectOptions::new_without_pgpass();
        Address(options.socket(folder).port(5432).username(user).database(database))
    }

    /// The address of another database of the same server.
    #[must_use]
    pub fn with_database(self, database: &str) -> Address {
        Address(self.0.database(database))
    }

    /// Creates the database `region` if the server does not have it.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn create_region(&self) -> Result<(), DbError> {
        let doing = "creating the database";
        let options = self.options().database("postgres");
        let mut db = PgConnection::connect_with(&options).await.doing(doing)?;
        let found: i64 = sqlx::query_scalar(sql::HAS_DATABASE)
            .bind(REGION)
            .fetch_one(&mut db)
            .await
            .doing(doing)?;
        if found == 0 {
            sqlx::query(CREATE_REGION).execute(&mut db).await.doing(doing)?;
        }
        db.close().await.doing(doing)
    }

    /// The driver's options, for test connections beside the broker.
    #[doc(hidden)]
    pub fn options(&self) -> PgConnectOptions {
        self.0.clone().application_name("ras broker")
    }
}

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The address is not a valid URL.
    #[error("the address of Postgres is not a URL of the form postgres://user@host/database")]
    Url(#[source] sqlx::Error),
    /// The server is older than [`POSTGRES_MIN`].
    #[error("this is Postgres {found}; {POSTGRES_MIN} or newer is needed")]
    TooOld {
        /// Its major version.
        found: u32,
    },
    /// A newer program has migrated the database.
    #[error(
        "the database has migration {version}, which this program does not know; it is older than the schema"
    )]
    SchemaNewer {
        /// The first migration that this program does not know.
        version: i64,
    },
    /// A migration that ran differs from the one compiled in.
    #[error(
        "migration {version} of the database differs from this program's; it was edited after it ran"
    )]
    SchemaDiffers {
        /// The number of the migration.
        version: i64,
    },
    /// The schema is missing or older than this program's.
    #[error(
        "the schema of the database is at migration {found}, this program needs {needed}; \
         `ras up` and `ras snapshot load` bring it up to date"
    )]
    SchemaOlder {
        /// The last applied migration; 0 if there are no migrations.
        found: i64,
        /// The last migration compiled in.
        needed: i64,
    },
    /// A migration failed.
    #[error("bringing the schema up to date")]
    Migrate(#[source] MigrateError),
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A region in Postgres. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) pool: PgPool,
    pub(crate) address: Address,
    pub(crate) terms: Arc<PromiseTermsCache>,
}

impl Broker {
    /// Connects, checks the server's version and migrates the schema.
    ///
    /// # Errors
    /// [`OpenError`]. Migrations before a failed one stay applied.
    pub async fn open(address: &Address) -> Result<Broker, OpenError> {
        let broker = Broker::connect(address, CONNECTIONS_MAX).await?;
        broker.migrate().await?;
        Ok(broker)
    }

    /// Connects to a database whose schema is this program's, without migrating it.
    ///
    /// # Errors
    /// [`OpenError::SchemaOlder`], [`OpenError::SchemaNewer`], and the errors of [`Broker::connect`].
    pub async fn attach(address: &Address) -> Result<Broker, OpenError> {
        let broker = Broker::connect(address, CONNECTIONS_MAX).await?;
        let doing = "asking for the version of the schema";
        let migrated: bool =
            sqlx::query_scalar(sql::IS_MIGRATED).fetch_one(&broker.pool).await.doing(doing)?;
        let found: i64 = if migrated {
            sqlx::query_scalar(sql::MIGRATION).fetch_one(&broker.pool).await.doing(doing)?
        } else {
            0
        };
        let needed = MIGRATOR.iter().map(|migration| migration.version).max().unwrap_or(0);
        match found.cmp(&needed) {
            std::cmp::Ordering::Less => Err(OpenError::SchemaOlder { found, needed }),
            std::cmp::Ordering::Greater => Err(OpenError::SchemaNewer { version: found }),
            std::cmp::Ordering::Equal => Ok(broker),
        }
    }

    /// Connects and checks the server's version, but not the schema.
    ///
    /// # Errors
    /// [`OpenError::TooOld`], [`OpenError::Db`].
    pub async fn connect(address: &Address, connections: u32) -> Result<Broker, OpenError> {
        let mut first = first_connection(address).await?;
        let version: i32 = sqlx::query_scalar(sql::SERVER_VERSION)
            .fetch_one(&mut first)
            .await
            .doing("asking for the version of Postgres")?;
        check_version(version)?;
        // Closed early to free its slot; an unclean close does no harm.
        let _ = first.close().await;
        Ok(Broker::over(address, connections, SURELY_THERE, None))
    }

    fn over(address: &Address, connections: u32, sure: Duration, told: Option<fn(i32)>) -> Broker {
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .acquire_timeout(ACQUIRE_TIMEOUT)
            .after_connect(move |connection, _| {
                Box::pin(async move {
                    connection.execute(sql::PLAN_ONCE).await?;
                    if let Some(told) = told {
                        told(sqlx::query_scalar(sql::PROCESS).fetch_one(connection).await?);
                    }
                    Ok(())
                })
            })
            // A ping before each use would cost every read a round trip.
            .test_before_acquire(false)
            .before_acquire(move |connection, of| {
                Box::pin(async move { Ok(of.idle_for < sure || connection.ping().await.is_ok()) })
            })
            .connect_lazy_with(address.options());
        Broker { pool, address: address.clone(), terms: Arc::default() }
    }

    /// A handle to the same region with its own connections, so that its work does not wait for the pool of
    /// `self`. `told` receives the process id of each Postgres backend that serves one.
    pub fn apart(&self, told: Option<fn(i32)>) -> Broker {
        Broker::over(&self.address, CONNECTIONS_MAX, SURELY_THERE, told)
    }

    /// A handle with its own connections for a caller that sends one statement after another, possibly over a
    /// slow network, and tolerates a lost connection: idle connections are not pinged before use.
    pub fn steady(&self) -> Broker {
        Broker::over(&self.address, CONNECTIONS_MAX, STEADY, None)
    }

    /// Runs the migrations that the database lacks. Several processes may run it at once.
    ///
    /// # Errors
    /// [`OpenError::SchemaNewer`], [`OpenError::SchemaDiffers`], [`OpenError::Migrate`].
    pub async fn migrate(&self) -> Result<(), OpenError> {
        MIGRATOR.run(&self.pool).await.map_err(|error| match error {
            MigrateError::VersionMissing(version) => OpenError::SchemaNewer { version },
            MigrateError::VersionMismatch(version) => OpenError::SchemaDiffers { version },
            other => OpenError::Migrate(other),
        })
    }

    /// Begins a transaction in its own task. In sqlx 0.9 a dropped `begin` can leave a connection with an open
    /// transaction in the pool (`BEGIN` is sent, its depth not yet counted), and the next user would write into
    /// it. The task is not dropped with the caller, and a transaction without a receiver is rolled back.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.begin_with(sql::BEGIN).await
    }

    /// Begins a read-only transaction on one snapshot.
    pub(crate) async fn begin_reading(
        &self,
    ) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.begin_with(sql::BEGIN_READING).await
    }

    async fn begin_with(
        &self,
        statement: &'static str,
    ) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        let pool = self.pool.clone();
        let begun = tokio::spawn(async move { pool.begin_with(statement).await });
        begun.await.map_err(|ended| sqlx::Error::Io(std::io::Error::other(ended)))?
    }

    /// The name of the database.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn database(&self) -> Result<String, DbError> {
        let name = sqlx::query_scalar(sql::CURRENT_DATABASE).fetch_one(&self.pool).await;
        name.doing("asking for the database's name")
    }

    /// Closes the connections after running operations have ended.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// Connects once, to report a precise error. Waits for a server that is starting.
async fn first_connection(address: &Address) -> Result<PgConnection, DbError> {
    for _ in 0..START_ATTEMPTS {
        match connect(address, ACQUIRE_TIMEOUT).await {
            Err(error) if error.is_starting() => tokio::time::sleep(START_PAUSE).await,
            other => return other,
        }
    }
    connect(address, ACQUIRE_TIMEOUT).await
}

/// Opens a connection outside the pool. The pool retries until its timeout and does not report the cause.
pub(crate) async fn connect(address: &Address, within: Duration) -> Result<PgConnection, DbError> {
    let doing = "connecting";
    let connected = timeout(within, PgConnection::connect_with(&address.options())).await;
    connected.map_err(|_| DbError::late(doing))?.doing(doing)
}

/// Checks `server_version_num`: the major version times 10,000, plus the minor one.
fn check_version(number: i32) -> Result<(), OpenError> {
    let found = u32::try_from(number / 10_000).unwrap_or(0);
    if found < POSTGRES_MIN { Err(OpenError::TooOld { found }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::{Address, OpenError, check_version};

    #[test]
    fn an_old_server_is_refused() {
        let error = check_version(130_014).expect_err("13 is too old");
        assert!(matches!(error, OpenError::TooOld { found: 13 }));
        assert_eq!(error.to_string(), "this is Postgres 13; 14 or newer is needed");
        check_version(140_000).expect("14 is supported");
        check_version(180_004).expect("18 is supported");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        assert!(matches!(Address::from_url("somewhere"), Err(OpenError::Url(_))));
        Address::from_url("postgres://ras@localhost/region?host=/run/ras").expect("a URL");
    }
}
