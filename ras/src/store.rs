//! The store of the region: an existing Postgres or a private one.

use crate::cli::StoreOptions;
use crate::nice;
use crate::settings::{self, StoreFile};
use anyhow::{Context, Result, anyhow, ensure};
use broker::{Address, Broker, Fault, OpenError};
use private_postgres::{PrivateError, PrivateOptions, PrivatePostgres};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Timeout for a private Postgres that another process is starting.
const WAIT_FOR_ANOTHER: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Timeout for running statements when a store is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Subfolders of the data folder.
const POSTGRES: &str = "postgres";
const ARCHIVE: &str = "archive";

/// Access of a subcommand to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Create it if it does not exist, and migrate its schema.
    Made,
    /// It must exist, with this program's schema.
    There,
}

/// The location of a store.
#[derive(Clone, Debug)]
pub struct Places {
    /// The URL of an existing Postgres; `None` for a private one.
    pub database_url: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// Whether it was given explicitly.
    named: bool,
    programs: Option<PathBuf>,
}

impl Places {
    /// Merges command line, environment and `ras.toml`.
    ///
    /// # Errors
    /// If the settings file cannot be read.
    pub fn of(options: &StoreOptions) -> Result<Places> {
        let StoreFile { database_url, data } = settings::file(options.config.as_deref())?.store;
        let named = options.data.clone().or(data);
        Ok(Places {
            database_url: options.database_url.clone().or(database_url),
            named: named.is_some(),
            data: named.unwrap_or_else(|| default_folder(options.state_home.as_deref())),
            // Absolute, because Postgres is started in another folder.
            programs: options.postgres_programs.as_deref().map(std::path::absolute).transpose()?,
        })
    }

    /// The private Postgres of the data folder.
    pub fn private(&self) -> PrivateOptions {
        PrivateOptions { folder: self.data.join(POSTGRES), programs: self.programs.clone() }
    }

    /// The default archive of solves.
    pub fn archive(&self) -> PathBuf {
        self.data.join(ARCHIVE)
    }

    /// Creates the data folder. The default one has a predictable name in a world-writable folder,
    /// so it must belong to this user.
    fn make(&self) -> Result<()> {
        let name = || format!("data folder {}", self.data.display());
        std::fs::create_dir_all(&self.data).with_context(name)?;
        #[cfg(unix)]
        if !self.named {
            use std::os::unix::fs::MetadataExt;
            let owner = std::fs::symlink_metadata(&self.data).with_context(name)?;
            let ours = owner.is_dir() && owner.uid() == rustix::process::geteuid().as_raw();
            ensure!(ours, "{} belongs to another user; choose a folder with --data", name());
        }
        Ok(())
    }
}

/// The default data folder. For root it is not below its home folder: Postgres then runs as another user, which
/// cannot access that.
pub fn default_folder(state_home: Option<&Path>) -> PathBuf {
    let user = rustix::process::geteuid();
    match state_home.filter(|_| !user.is_root()) {
        Some(state_home) => state_home.join("ras"),
        None => PathBuf::from(format!("/var/tmp/ras-{}", user.as_raw())),
    }
}

/// An open store.
pub struct Store {
    /// The region.
    pub broker: Broker,
    /// Its location, without a password.
    pub place: String,
    beside: Option<Broker>,
    postgres: Option<PrivatePostgres>,
}

impl Store {
    /// Opens the store.
    ///
    /// # Errors
    /// If it does not exist and must not be created, or it cannot be used, with the
    /// reason.
    pub async fn open(places: &Places, need: Need) -> Result<Store> {
        if let Some(url) = &places.database_url {
            let address = Address::from_url(url)?;
            let broker = open(&address, need).await.context("opening the store")?;
            return Ok(Store {
                broker,
                place: without_password(url),
                beside: None,
                postgres: None,
            });
        }
        let private = places.private();
        let place = format!("private, in {}", private.folder.display());
        if need == Need::There {
            ensure!(
                private.has_data(),
                "no store in {}; create one with `ras up`, or choose another with --data or --database-url",
                private.folder.display()
            );
        } else {
            places.make()?;
        }
        match PrivatePostgres::start(&private).await {
            Ok(postgres) => match open(&postgres.address(), need).await {
                Ok(broker) => Ok(Store { broker, place, beside: None, postgres: Some(postgres) }),
                Err(error) => {
                    postgres.stop().await.context("stopping the private Postgres")?;
                    Err(error).context("opening the store")
                }
            },
            // Another process runs it, usually `ras up`. Connect to that one.
            Err(PrivateError::InUse { .. }) => {
                let broker = open_patiently(&private.address(), need).await;
                Ok(Store {
                    broker: broker.context("opening the store")?,
                    place,
                    beside: None,
                    postgres: None,
                })
            }
            Err(error) => Err(error).context("starting the private Postgres"),
        }
    }

    /// A second connection pool for background work, closed together with this store. In a private
    /// Postgres its backends run at lower priority than those that serve requests.
    pub fn beside(&mut self) -> Broker {
        let told: Option<fn(i32)> = if self.is_ours() { Some(nice::of_postgres) } else { None };
        self.beside.get_or_insert_with(|| self.broker.apart(told)).clone()
    }

    /// Whether the Postgres is private and this process started it.
    pub fn is_ours(&self) -> bool {
        self.postgres.is_some()
    }

    /// Waits until the private Postgres ends by itself, and returns the error; waits forever if
    /// Postgres is external.
    pub async fn ended(&mut self) -> anyhow::Error {
        match &mut self.postgres {
            Some(postgres) => {
                postgres.ended().await;
                anyhow!(
                    "the private Postgres ended: it was stopped, or {} has the reason",
                    postgres.log().display()
                )
            }
            None => std::future::pending().await,
        }
    }

    /// Closes connections, and stops the Postgres that this process started.
    ///
    /// # Errors
    /// If Postgres had to be killed.
    pub async fn close(self) -> Result<()> {
        // Connections that do not answer are left until this process ends.
        let closed = async {
            if let Some(beside) = &self.beside {
                beside.close().await;
            }
            self.broker.close().await;
        };
        if timeout(CLOSE_WITHIN, closed).await.is_err() {
            tracing::warn!("Postgres does not finish running statements");
        }
        match self.postgres {
            Some(postgres) => postgres.stop().await.context("stopping the private Postgres"),
            None => Ok(()),
        }
    }
}

async fn open(address: &Address, need: Need) -> Result<Broker, OpenError> {
    match need {
        Need::Made => Broker::open(address).await,
        Need::There => Broker::attach(address).await,
    }
}

/// Waits for another process that has locked the data folder and may be starting Postgres.
async fn open_patiently(address: &Address, need: Need) -> Result<Broker, OpenError> {
    let until = Instant::now() + WAIT_FOR_ANOTHER;
    loop {
        match open(address, need).await {
            Err(OpenError::Db(error))
                if error.fault == Fault::Unreachable && Instant::now() < until =>
            {
                tokio::time::sleep(LOOK_EVERY).await;
            }
            other => return other,
        }
    }
}

/// The URL without its password.
/// The URL without its password.
pub fn without_password(url: &str) -> String {
    let hidden = || {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (user, host) = rest[..end].rsplit_once('@')?;
        let user = user.split_once(':').map_or(user, |(user, _)| user);
        // A parameter may have one, too.
        let path = rest[end..].split('?').next().unwrap_or_default();
        Some(format!("{scheme}://{user}@{host}{path}"))
    };
    hidden().unwrap_or_else(|| url.split('?').next().unwrap_or_default().to_owned())
}

/// Actor in the audit trail of this process's own changes: the user that it runs as.
pub fn actor() -> String {
    capacity_portal::local_actor(rustix::process::geteuid().as_raw())
}

/// Runs a future on a new runtime.
///
/// # Errors
/// If no threads can be started; else errors of the work.
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("starting threads")?.block_on(work)
}

/// Opens a store, runs work on it, and closes it even if the work fails.
///
/// # Errors
/// Errors of opening, of the work, and of closing.
pub fn with_store<T>(
    options: &StoreOptions,
    need: Need,
    work: impl AsyncFnOnce(&Store) -> Result<T>,
) -> Result<T> {
    run(async {
        let store = Store::open(&Places::of(options)?, need).await?;
        let outcome = work(&store).await;
        let closed = store.close().await;
        outcome.and_then(|outcome| closed.map(|()| outcome))
    })
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn a_password_is_not_shown() {
        for (url, shown) in [
            ("postgres://ras:secret@db/region", "postgres://ras@db/region"),
            ("postgres://ras@db:5432/region", "postgres://ras@db:5432/region"),
            ("postgres://ras:a@b@db/region?password=secret", "postgres://ras@db/region"),
            ("postgres:///region?host=/run&password=secret", "postgres:///region"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}
