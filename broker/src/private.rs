//! A Postgres of our own: the machine's programs, our data folder, a unix socket, no network port.
//!
//! Everything lies in one folder: `data` (Postgres' own), `socket`, `postgres.log` and `lock`. The
//! folder is the user's alone, and so is the socket: whoever reaches it is let in without a
//! password, and nobody else reaches it. `fsync` stays on: what was committed survives the machine.
//!
//! Postgres refuses to run as root. Where we are root, it runs as `postgres` or else `nobody`, and
//! the folder belongs to that user; [`PrivatePostgres::user`] says which.
//!
//! The server is our child and ends with us, even if we are killed (where `setpriv` of util-linux
//! is at hand; elsewhere it is found again by its pid file and waited for).

mod binaries;
mod error;
mod folder;
mod process;
mod user;

pub use error::PrivateError;

use crate::infra::connection::Address;
use crate::infra::error::Doing;
use binaries::Binaries;
use folder::Folder;
use process::Server;
use sqlx::{Connection, PgConnection};
use std::path::PathBuf;
use std::time::Duration;
use user::User;

/// The database in it, and its owner.
const DATABASE: &str = "region";
const ROLE: &str = "ras";

/// Postgres' own folder and that of the socket, in ours.
const DATA: &str = "data";
const SOCKET: &str = "socket";

/// How long a server that is ending, or recovering from a crash, is waited for.
const START_TIMEOUT: Duration = Duration::from_secs(60);

mod sql {
    pub(super) const HAS_DATABASE: &str = "SELECT count(*) FROM pg_database WHERE datname = $1";
    pub(super) const CREATE_DATABASE: &str = "CREATE DATABASE region";
}

/// Where a private Postgres keeps its data, and which programs run it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateOptions {
    /// Its folder; made if it is not there. The path is short: a socket's has 107 bytes at most.
    pub folder: PathBuf,
    /// The folder of `postgres` and `initdb`; `None`: where systems put them, the newest.
    pub programs: Option<PathBuf>,
}

impl PrivateOptions {
    /// With the machine's programs.
    pub fn new(folder: impl Into<PathBuf>) -> PrivateOptions {
        PrivateOptions { folder: folder.into(), programs: None }
    }

    /// Where it is while it runs, whoever started it.
    pub fn address(&self) -> Address {
        let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        Address::socket(&folder.join(SOCKET), ROLE, DATABASE)
    }

    /// Whether its data is there: it was started before.
    pub fn has_data(&self) -> bool {
        self.folder.join(DATA).join("PG_VERSION").exists()
    }
}

/// A running Postgres of our own.
pub struct PrivatePostgres {
    server: Server,
    folder: Folder,
    user: Option<User>,
    major: u32,
}

impl PrivatePostgres {
    /// Starts it; the first time, makes its data folder. Returns when it takes connections.
    ///
    /// # Errors
    /// [`PrivateError`]: which of the many things that can be wrong is.
    pub async fn start(options: &PrivateOptions) -> Result<PrivatePostgres, PrivateError> {
        let user = user::unprivileged()?;
        let folder = Folder::open(&options.folder, user.as_ref()).await?;
        let binaries = Binaries::find(options.programs.as_deref(), folder.major()?)?;
        if let Some(user) = &user {
            tracing::info!(user = user.name, "running Postgres as another user: it refuses root");
        }
        if !folder.is_initialised() {
            folder.initialise(&binaries, user.as_ref()).await?;
        }
        folder.wait_for_predecessor(START_TIMEOUT).await?;
        let server = Server::start(&binaries, &folder, user.as_ref(), START_TIMEOUT).await?;
        let started = PrivatePostgres { server, folder, user, major: binaries.major };
        started.make_database().await?;
        tracing::info!(pid = started.server.pid(), major = started.major, "Postgres runs");
        Ok(started)
    }

    /// Where it is.
    pub fn address(&self) -> Address {
        Address::socket(&self.folder.socket(), ROLE, DATABASE)
    }

    /// The system's user it runs as, where that is not ours because we are root.
    pub fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    /// Its major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// What it says, in a file.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Waits until it ends by itself: it was stopped or killed by somebody else.
    pub async fn ended(&mut self) {
        self.server.ended().await;
    }

    /// Stops it: connections are closed, what is committed is on disk. The data stays.
    ///
    /// # Errors
    /// [`PrivateError::NotStopping`], if it had to be stopped the hard way; nothing is lost then
    /// either, but the next start recovers first.
    pub async fn stop(mut self) -> Result<(), PrivateError> {
        self.server.stop().await
    }

    async fn make_database(&self) -> Result<(), PrivateError> {
        let doing = "making the database";
        let options = self.address().with_database("postgres").options();
        let mut db = PgConnection::connect_with(&options).await.doing(doing)?;
        let found: i64 = sqlx::query_scalar(sql::HAS_DATABASE)
            .bind(DATABASE)
            .fetch_one(&mut db)
            .await
            .doing(doing)?;
        if found == 0 {
            sqlx::query(sql::CREATE_DATABASE).execute(&mut db).await.doing(doing)?;
        }
        db.close().await.doing(doing)?;
        Ok(())
    }
}
