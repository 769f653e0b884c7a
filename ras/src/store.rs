//! Where the region is kept: a Postgres that is there, or a private one of our own.

use crate::cli::StoreOptions;
use crate::give_way;
use crate::settings::{self, StoreFile};
use anyhow::{Context, Result, anyhow, ensure};
use broker::private::{PrivateError, PrivateOptions, PrivatePostgres};
use broker::{Address, Broker, Fault, OpenError};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// How long a private Postgres that another process is just starting is waited for.
const WAIT_FOR_ANOTHER: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long the end of what is under way is waited for when a store is closed.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Folders of a data folder.
const POSTGRES: &str = "postgres";
const ARCHIVE: &str = "archive";

/// What a subcommand needs of the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It is made where there is none, and its schema is brought up to date.
    Made,
    /// It is there, and its schema is this program's.
    There,
}

/// Where everything is.
#[derive(Clone, Debug)]
pub struct Places {
    /// The Postgres that was named; `None`: a private one.
    pub database_url: Option<String>,
    /// The data folder.
    pub data: PathBuf,
    /// Whether somebody named it.
    named: bool,
    programs: Option<PathBuf>,
}

impl Places {
    /// Puts command line, environment and `ras.toml` together.
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
            // Postgres is started in another folder.
            programs: options.postgres_programs.as_deref().map(std::path::absolute).transpose()?,
        })
    }

    /// The private Postgres of the data folder.
    pub fn private(&self) -> PrivateOptions {
        PrivateOptions { folder: self.data.join(POSTGRES), programs: self.programs.clone() }
    }

    /// Where solves leave what they did, unless told otherwise.
    pub fn archive(&self) -> PathBuf {
        self.data.join(ARCHIVE)
    }

    /// Makes the data folder. The default one has a name that anybody can know beforehand, in a
    /// folder where anybody may make it: it must be ours.
    fn make(&self) -> Result<()> {
        let name = || format!("data folder {}", self.data.display());
        std::fs::create_dir_all(&self.data).with_context(name)?;
        #[cfg(unix)]
        if !self.named {
            use std::os::unix::fs::MetadataExt;
            let owner = std::fs::symlink_metadata(&self.data).with_context(name)?;
            let ours = owner.is_dir() && owner.uid() == rustix::process::geteuid().as_raw();
            ensure!(ours, "{}: belongs to another user; name one with --data", name());
        }
        Ok(())
    }
}

/// Not below a home folder for root: Postgres, which then runs as another user, cannot reach it.
fn default_folder(state_home: Option<&Path>) -> PathBuf {
    let user = rustix::process::geteuid();
    match state_home.filter(|_| !user.is_root()) {
        Some(state_home) => state_home.join("ras"),
        None => PathBuf::from(format!("/var/tmp/ras-{}", user.as_raw())),
    }
}

/// A region that can be worked on.
pub struct Store {
    /// The region.
    pub broker: Broker,
    /// Where it is, without a password.
    pub place: String,
    beside: Option<Broker>,
    postgres: Option<PrivatePostgres>,
}

impl Store {
    /// Opens it.
    ///
    /// # Errors
    /// If there is none and it is not to be made, or it cannot be used: which of the many reasons.
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
                "there is no store in {}; `ras up` makes one, --data or --database-url names another",
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
            // Another of us has it: `ras up`, mostly. It is there for everybody who may reach it.
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

    /// The same region for work that nobody waits for, over connections of its own, which are closed with this.
    /// In a Postgres of our own the processes that do that work give way to those that answer people.
    pub fn beside(&mut self) -> Broker {
        let told: Option<fn(i32)> = if self.is_ours() { Some(give_way::of_postgres) } else { None };
        self.beside.get_or_insert_with(|| self.broker.apart(told)).clone()
    }

    /// Whether the Postgres is private and this process started it.
    pub fn is_ours(&self) -> bool {
        self.postgres.is_some()
    }

    /// Waits until a Postgres of our own ends by itself; for ever, if there is none. It gives the
    /// error that this is.
    pub async fn ended(&mut self) -> anyhow::Error {
        match &mut self.postgres {
            Some(postgres) => {
                postgres.ended().await;
                anyhow!(
                    "the private Postgres ended: somebody stopped it, or {} says why",
                    postgres.log().display()
                )
            }
            None => std::future::pending().await,
        }
    }

    /// Closes connections, and stops what this process started.
    ///
    /// # Errors
    /// If Postgres had to be stopped the hard way.
    pub async fn close(self) -> Result<()> {
        // Connections on which nobody answers are left to the end of this process.
        let closed = async {
            if let Some(beside) = &self.beside {
                beside.close().await;
            }
            self.broker.close().await;
        };
        if timeout(CLOSE_WITHIN, closed).await.is_err() {
            tracing::warn!("Postgres does not end what is under way");
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

/// Whoever has the data folder may be just starting.
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

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    let hidden = || {
        let (scheme, rest) = url.split_once("://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (user, host) = rest[..end].rsplit_once('@')?;
        let user = user.split_once(':').map_or(user, |(user, _)| user);
        // A parameter may hold one, too.
        let path = rest[end..].split('?').next().unwrap_or_default();
        Some(format!("{scheme}://{user}@{host}{path}"))
    };
    hidden().unwrap_or_else(|| url.split('?').next().unwrap_or_default().to_owned())
}

/// Runs what waits for Postgres.
///
/// # Errors
/// If the system gives no threads; else those of the work.
pub fn run<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("starting threads")?.block_on(work)
}

/// Opens a store, works on it, and closes it whatever came of the work.
///
/// # Errors
/// Those of opening, of the work, and of closing.
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
