//! The connection: where Postgres is, whether it will do, and the schema in it.

use crate::infra::error::{DbError, Doing};
use crate::promises::terms::KeptValues;
use crate::views::page_cache::KeptPages;
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

/// Connections of one [`Broker`]: enough for the readers of one process beside a publication, few
/// enough that ten processes fit into a server's usual hundred.
const CONNECTIONS_MAX: u32 = 8;

/// How long to wait for one of them. An operation that cannot begin by then says so.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection that was in use such a short time ago is still there, or was lost just now.
const SURELY_THERE: Duration = Duration::from_millis(100);

/// The same for connections of one who bears that they are lost.
const STEADY: Duration = Duration::from_secs(30);

/// How often and after what pause a server is asked that nobody listens for yet, or that recovers.
const START_ATTEMPTS: u32 = 50;
const START_PAUSE: Duration = Duration::from_millis(200);

pub(crate) mod sql {
    crate::statements! {
        SERVER_VERSION = "SELECT current_setting('server_version_num')::int";
        /// Plans that hold for any argument. Planning for the argument at hand reads the whole of a
        /// large reservation and sorts it for one page (42 ms instead of 4, of 32,000 servers), and
        /// takes longer than most of our statements run.
        /// For the same reason no helpers and no compiler, which are started for a guess of many rows (26 ms for
        /// what takes 10).
        /// And whoever freezes within a transaction holds its locks no longer than that: a job whose row is
        /// locked is taken by nobody, however long its lease is over.
        PLAN_ONCE = "SELECT set_config('plan_cache_mode', 'force_generic_plan', false), \
            set_config('max_parallel_workers_per_gather', '0', false), set_config('jit', 'off', false), \
            set_config('idle_in_transaction_session_timeout', '30s', false)";
        /// The first is asked first: a database that was never migrated has no such table.
        IS_MIGRATED = "SELECT to_regclass('_sqlx_migrations') IS NOT NULL";
        MIGRATION = "SELECT coalesce(max(version), 0) FROM _sqlx_migrations WHERE success";
        BEGIN = "BEGIN";
        /// One instant for every statement that follows, and nothing is written.
        BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        PROCESS = "SELECT pg_backend_pid()";
        CURRENT_DATABASE = "SELECT current_database()::text";
    }
}

/// Where a Postgres is.
#[derive(Clone, Debug)]
pub struct Address(PgConnectOptions);

impl Address {
    /// Reads a URL: `postgres://user:password@host:port/database`, or
    /// `postgres://user@localhost/database?host=/folder` for a unix socket.
    ///
    /// # Errors
    /// [`OpenError::Url`].
    pub fn from_url(url: &str) -> Result<Address, OpenError> {
        PgConnectOptions::from_str(url).map(Address).map_err(OpenError::Url)
    }

    /// The unix socket in a folder.
    pub fn socket(folder: &Path, user: &str, database: &str) -> Address {
        let options = PgConnectOptions::new_without_pgpass();
        Address(options.socket(folder).port(5432).username(user).database(database))
    }

    /// Another database of the same server.
    #[must_use]
    pub fn with_database(self, database: &str) -> Address {
        Address(self.0.database(database))
    }

    /// For connections behind the broker's back, in tests.
    #[doc(hidden)]
    pub fn options(&self) -> PgConnectOptions {
        self.0.clone().application_name("ras broker")
    }
}

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL is none.
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
        /// The first migration that is not known here.
        version: i64,
    },
    /// A migration that ran differs from the one compiled in.
    #[error(
        "migration {version} of the database differs from this program's; it was edited after it ran"
    )]
    SchemaDiffers {
        /// The migration.
        version: i64,
    },
    /// The schema was never made, or is older than this program's.
    #[error(
        "the schema of the database is at migration {found}, this program needs {needed}; \
         `ras up` and `ras snapshot load` bring it up to date"
    )]
    SchemaOlder {
        /// The last migration that ran; 0: none.
        found: i64,
        /// The last one compiled in.
        needed: i64,
    },
    /// A migration failed.
    #[error("bringing the schema up to date")]
    Migrate(#[source] MigrateError),
    /// Postgres fails.
    #[error(transparent)]
    Db(#[from] DbError),
}

/// A region in Postgres. Cheap to clone; clones share their connections.
#[derive(Clone, Debug)]
pub struct Broker {
    pub(crate) pool: PgPool,
    pub(crate) address: Address,
    pub(crate) kept: Arc<KeptPages>,
    pub(crate) valued: Arc<KeptValues>,
}

impl Broker {
    /// Connects, checks the server's version and brings the schema up to date.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was changed then but migrations that ran before one that failed.
    pub async fn open(address: &Address) -> Result<Broker, OpenError> {
        let broker = Broker::connect(address, CONNECTIONS_MAX).await?;
        broker.migrate().await?;
        Ok(broker)
    }

    /// Connects to a database whose schema is this program's, and leaves it as it is.
    ///
    /// # Errors
    /// [`OpenError::SchemaOlder`], [`OpenError::SchemaNewer`], and those of connecting.
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

    /// Connects and checks the server's version; the schema is taken as it is.
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
        // Its place may be needed by the next; that it was closed well does not matter.
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
            // To ask each time whether it is still there is a round trip for every read.
            .test_before_acquire(false)
            .before_acquire(move |connection, of| {
                Box::pin(async move { Ok(of.idle_for < sure || connection.ping().await.is_ok()) })
            })
            .connect_lazy_with(address.options());
        Broker { pool, address: address.clone(), kept: Arc::default(), valued: Arc::default() }
    }

    /// The same region over connections of its own, so that nobody waits until others give theirs back. `told`
    /// hears the number of each process of Postgres that serves one.
    pub fn apart(&self, told: Option<fn(i32)>) -> Broker {
        Broker::over(&self.address, CONNECTIONS_MAX, SURELY_THERE, told)
    }

    /// The same for one who asks one thing after another, far away maybe, and bears that a connection is
    /// lost: it is not asked each time whether it is still there.
    pub fn steady(&self) -> Broker {
        Broker::over(&self.address, CONNECTIONS_MAX, STEADY, None)
    }

    /// Runs the migrations the database has not seen. Safe to run by several processes at once.
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

    /// Begins a transaction, in a task of its own: a driver's `begin` that is dropped half-way leaves
    /// a connection with an open transaction in the pool, and whoever gets it next writes into that
    /// (sqlx 0.9: `BEGIN` is sent, and its depth is not yet counted). A task is not dropped with us,
    /// and the transaction it gives to nobody is rolled back.
    pub(crate) async fn begin(&self) -> Result<Transaction<'static, Postgres>, sqlx::Error> {
        self.begin_with(sql::BEGIN).await
    }

    /// Begins a transaction that sees everything as of one instant, and writes nothing.
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

    /// Closes the connections, after what is under way.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

/// The connection that says what is wrong. A server that is just starting is waited for.
async fn first_connection(address: &Address) -> Result<PgConnection, DbError> {
    for _ in 0..START_ATTEMPTS {
        match connect(address, ACQUIRE_TIMEOUT).await {
            Err(error) if error.is_starting() => tokio::time::sleep(START_PAUSE).await,
            other => return other,
        }
    }
    connect(address, ACQUIRE_TIMEOUT).await
}

/// A connection beside the pool's, which tries again and again and then says only that it was in
/// vain.
pub(crate) async fn connect(address: &Address, within: Duration) -> Result<PgConnection, DbError> {
    let doing = "connecting";
    let connected = timeout(within, PgConnection::connect_with(&address.options())).await;
    connected.map_err(|_| DbError::late(doing))?.doing(doing)
}

/// Takes `server_version_num`: the major version times 10,000, plus the minor one.
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
        check_version(140_000).expect("14 will do");
        check_version(180_004).expect("18 will do");
    }

    #[test]
    fn what_is_no_url_is_refused() {
        assert!(matches!(Address::from_url("somewhere"), Err(OpenError::Url(_))));
        Address::from_url("postgres://ras@localhost/region?host=/run/ras").expect("a URL");
    }
}
