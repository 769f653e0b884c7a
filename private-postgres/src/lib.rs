//! A private Postgres server: the machine's programs, a data folder of our own, a unix socket, no network port.
//!
//! Everything is in one folder: `data` (of Postgres), `socket`, `postgres.log` and `lock`. Only the user can
//! enter the folder and reach the socket, so connections need no password. `fsync` stays on: committed data
//! survives a crash of the machine.
//!
//! Postgres refuses to run as root. For a root user it runs as `postgres` or else as `nobody`, who then owns
//! the folder; [`PrivatePostgres::user`] tells which.
//!
//! The server is a child process and ends with this one, even if this one is killed (if `setpriv` of util-linux
//! is installed; otherwise the next start finds it by its pid file and waits for its end).

mod binaries;
mod error;
mod folder;
mod pid_file;
mod process;
mod user;

pub use error::PrivateError;

use binaries::Binaries;
use broker::{Address, REGION};
use folder::{DATA, Folder, ROLE, SOCKET};
use process::Server;
use std::path::PathBuf;
use std::time::Duration;
use user::User;

/// How long to wait for a server that is stopping or recovering.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The data folder and the programs of a private Postgres.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateOptions {
    /// The folder, created if missing. Its path must be short: a socket's path has at most 107 bytes.
    pub folder: PathBuf,
    /// The folder of `postgres` and `initdb`; `None`: the newest in the usual places.
    pub programs: Option<PathBuf>,
}

impl PrivateOptions {
    /// Options with the machine's programs.
    pub fn new(folder: impl Into<PathBuf>) -> PrivateOptions {
        PrivateOptions { folder: folder.into(), programs: None }
    }

    /// The address of the server while it runs, whichever process started it.
    pub fn address(&self) -> Address {
        let folder = self.folder.canonicalize().unwrap_or_else(|_| self.folder.clone());
        Address::socket(&folder.join(SOCKET), ROLE, REGION)
    }

    /// Whether the folder has data of an earlier start.
    pub fn has_data(&self) -> bool {
        self.folder.join(DATA).join("PG_VERSION").exists()
    }
}

/// A running private Postgres.
pub struct PrivatePostgres {
    server: Server,
    folder: Folder,
    user: Option<User>,
    major: u32,
}

impl PrivatePostgres {
    /// Starts the server; the first start creates the data folder. Returns when it accepts connections.
    ///
    /// # Errors
    /// [`PrivateError`], with the cause.
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
        started.address().create_region().await?;
        tracing::info!(pid = started.server.pid(), major = started.major, "Postgres runs");
        Ok(started)
    }

    /// The server's address.
    pub fn address(&self) -> Address {
        Address::socket(&self.folder.socket(), ROLE, REGION)
    }

    /// The system user it runs as, if that differs from ours because we are root.
    pub fn user(&self) -> Option<&str> {
        self.user.as_ref().map(|user| user.name.as_str())
    }

    /// The server's major version.
    pub fn major(&self) -> u32 {
        self.major
    }

    /// The path of the server's log.
    pub fn log(&self) -> PathBuf {
        self.folder.log()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    /// Waits until the server ends by itself: another process stopped or killed it.
    pub async fn ended(&mut self) {
        self.server.ended().await;
    }

    /// Stops the server: closes connections and writes a checkpoint. The data stays.
    ///
    /// # Errors
    /// [`PrivateError::NotStopping`] if it had to be killed; no data is lost, but the next start recovers
    /// first.
    pub async fn stop(mut self) -> Result<(), PrivateError> {
        self.server.stop().await
    }
}
