//! Errors of a private Postgres.

use broker::{DbError, POSTGRES_MIN};
use std::path::PathBuf;

/// A private Postgres cannot be started or stopped.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PrivateError {
    #[error(
        "no Postgres is installed ({looked}); install one (Debian, Ubuntu: apt-get install \
         postgresql), name the folder of its programs, or give the URL of one that runs"
    )]
    NotInstalled { looked: String },
    #[error("{}: this is Postgres {found}; {POSTGRES_MIN} or newer is needed", programs.display())]
    TooOld { programs: PathBuf, found: u32 },
    #[error(
        "{}: the data is of Postgres {data}, installed is {found}; install version {data}, or \
         move the data with pg_dump", folder.display()
    )]
    OtherMajor { folder: PathBuf, data: u32, found: String },
    #[error("{}: is not empty and not ours: it holds {stranger:?}", folder.display())]
    Occupied { folder: PathBuf, stranger: String },
    #[error("{}: is in use by another process of this program", folder.display())]
    InUse { folder: PathBuf },
    #[error(
        "{}: a Postgres that we did not start still runs on it, process {pid}; stop it first",
        folder.display()
    )]
    StillRunning { folder: PathBuf, pid: i32 },
    #[error("{}: the path is too long for a unix socket by {over} bytes", folder.display())]
    PathTooLong { folder: PathBuf, over: usize },
    #[error(
        "{}: user {user}, as whom Postgres runs because we are root, cannot reach it through {}",
        folder.display(), at.display()
    )]
    OutOfReach { folder: PathBuf, at: PathBuf, user: String },
    #[error("Postgres does not run as root, and there is neither a user postgres nor nobody")]
    NoUser,
    #[error("{}: the disk is full", folder.display())]
    DiskFull { folder: PathBuf },
    #[error("{}: {program} fails: {said}", folder.display())]
    Program { folder: PathBuf, program: &'static str, said: String },
    #[error("{}: Postgres did not take connections within {seconds} s", folder.display())]
    NotStarting { folder: PathBuf, seconds: u64 },
    #[error("process {pid}: Postgres did not stop within {seconds} s and was stopped the hard way")]
    NotStopping { pid: u32, seconds: u64 },
    #[error("{}: {doing}", path.display())]
    System {
        path: PathBuf,
        doing: &'static str,
        #[source]
        source: std::io::Error,
    },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl PrivateError {
    /// Classifies the message of a failed program.
    pub(crate) fn said(
        folder: &std::path::Path,
        program: &'static str,
        output: &str,
    ) -> PrivateError {
        let folder = folder.to_owned();
        if output.contains("No space left on device") {
            return PrivateError::DiskFull { folder };
        }
        let telling = |line: &&str| {
            ["FATAL", "PANIC", "error:", "could not"].iter().any(|word| line.contains(word))
        };
        let lines = || output.lines().map(str::trim).filter(|line| !line.is_empty());
        let said = lines().find(telling).or_else(|| lines().next_back()).unwrap_or("nothing");
        PrivateError::Program { folder, program, said: said.to_owned() }
    }

    pub(crate) fn system(
        path: &std::path::Path,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> PrivateError {
        let path = path.to_owned();
        move |source| match source.kind() {
            std::io::ErrorKind::StorageFull => PrivateError::DiskFull { folder: path },
            _ => PrivateError::System { path, doing, source },
        }
    }
}
