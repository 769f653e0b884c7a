//! The folder of a private Postgres: its owner, integrity and lock.

use crate::binaries::Binaries;
use crate::error::PrivateError;
use crate::pid_file::{self, LOOK_EVERY};
use crate::user::User;
use std::fs::{self, File, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The owner of the database.
pub(crate) const ROLE: &str = "ras";

/// The folder of Postgres' data, within ours.
pub(crate) const DATA: &str = "data";

/// The folder of the socket, within ours.
pub(crate) const SOCKET: &str = "socket";

/// The folder's contents. `data.unfinished` exists while `data` is being created; a remaining one is incomplete
/// and created again.
const OURS: [&str; 6] = [DATA, "data.unfinished", SOCKET, "postgres.log", "postgres.log.1", "lock"];

/// The longest path of a unix socket on Linux, in bytes (`sun_path` without its terminator).
const SOCKET_PATH_MAX: usize = 107;

/// The largest log at a start; a larger one is renamed, replacing the previous one.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// How long to wait for the folder's lock. Its holder may just have ended while it forked another program,
/// which has a copy of the lock until its exec.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct Folder {
    path: PathBuf,
    /// Held for our lifetime; the system releases it when we end in any way.
    _lock: File,
}

/// Locks a folder's file.
async fn take(lock: &File, folder: &Path) -> Result<(), PrivateError> {
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) if Instant::now() < until => sleep(LOOK_EVERY).await,
            Err(TryLockError::WouldBlock) => {
                return Err(PrivateError::InUse { folder: folder.to_owned() });
            }
            Err(TryLockError::Error(error)) => {
                return Err(PrivateError::system(folder, "cannot be locked")(error));
            }
        }
    }
}

impl Folder {
    /// Opens a folder, created if missing, and locks it against other processes of this program.
    pub(crate) async fn open(path: &Path, user: Option<&User>) -> Result<Folder, PrivateError> {
        fs::create_dir_all(path).map_err(PrivateError::system(path, "cannot be made"))?;
        let path = path.canonicalize().map_err(PrivateError::system(path, "cannot be found"))?;
        let socket = path.join(SOCKET).join(".s.PGSQL.5432");
        let over = socket.as_os_str().as_bytes().len().saturating_sub(SOCKET_PATH_MAX);
        if over > 0 {
            return Err(PrivateError::PathTooLong { folder: path, over });
        }
        let cannot = |doing| PrivateError::system(&path, doing);
        for entry in fs::read_dir(&path).map_err(cannot("cannot be read"))? {
            let name = entry.map_err(cannot("cannot be read"))?.file_name();
            let name = name.to_string_lossy();
            if !OURS.contains(&name.as_ref()) {
                let stranger = name.into_owned();
                return Err(PrivateError::Occupied { folder: path, stranger });
            }
        }
        let lock = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path.join("lock"))
            .map_err(cannot("cannot be written to"))?;
        take(&lock, &path).await?;
        let folder = Folder { path, _lock: lock };
        folder.own(&folder.path, user)?;
        folder.reachable(user)?;
        fs::create_dir_all(folder.socket()).map_err(folder.cannot("cannot be written to"))?;
        folder.own(&folder.socket(), user)?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    pub(crate) fn cannot(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> PrivateError {
        PrivateError::system(&self.path, doing)
    }

    /// Gives a path to the user of the server, and to no other user.
    fn own(&self, path: &Path, user: Option<&User>) -> Result<(), PrivateError> {
        if let Some(user) = user {
            chown(path, Some(user.uid), Some(user.gid)).map_err(self.cannot("cannot be given"))?;
        }
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, mode).map_err(self.cannot("cannot be closed to others"))
    }

    /// Checks that the user of the server can reach the folder; root can in any case.
    fn reachable(&self, user: Option<&User>) -> Result<(), PrivateError> {
        let Some(user) = user else { return Ok(()) };
        for above in self.path.ancestors().skip(1) {
            let meta = fs::metadata(above).map_err(self.cannot("cannot be looked at"))?;
            let bit = if meta.uid() == user.uid {
                0o100
            } else if meta.gid() == user.gid {
                0o010
            } else {
                0o001
            };
            if meta.mode() & bit == 0 {
                let (folder, at) = (self.path.clone(), above.to_owned());
                return Err(PrivateError::OutOfReach { folder, at, user: user.name.clone() });
            }
        }
        Ok(())
    }

    pub(crate) fn is_initialised(&self) -> bool {
        self.data().exists()
    }

    /// The major version of existing data.
    pub(crate) fn major(&self) -> Result<Option<(PathBuf, u32)>, PrivateError> {
        if !self.is_initialised() {
            return Ok(None);
        }
        let file = self.data().join("PG_VERSION");
        let text = fs::read_to_string(&file)
            .map_err(PrivateError::system(&file, "cannot be read; the data folder is damaged"))?;
        let major = text.trim().parse().map_err(|_| PrivateError::Program {
            folder: self.data(),
            program: "postgres",
            said: format!("PG_VERSION is {:?}; the data folder is damaged", text.trim()),
        })?;
        Ok(Some((self.path.clone(), major)))
    }

    /// Creates the data folder under a temporary name, so that `data` exists only when it is complete.
    pub(crate) async fn initialise(
        &self,
        binaries: &Binaries,
        user: Option<&User>,
    ) -> Result<(), PrivateError> {
        let unfinished = self.path.join("data.unfinished");
        if unfinished.exists() {
            tracing::warn!("the data folder is incomplete; creating it again");
            fs::remove_dir_all(&unfinished).map_err(self.cannot("cannot be cleared"))?;
        }
        let mut command = binaries.program("initdb");
        command.arg("-D").arg(&unfinished);
        // Trust: the socket's folder is closed to others. C: names are ordered bytewise anyway.
        command.args(["-U", ROLE, "--auth=trust", "--encoding=UTF8", "--no-locale"]);
        command.arg("--data-checksums");
        if let Some(user) = user {
            user.runs(&mut command);
        }
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output
            .map_err(std::io::Error::other)
            .and_then(|output| output)
            .map_err(PrivateError::system(&binaries.folder.join("initdb"), "cannot be run"))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(PrivateError::said(&self.path, "initdb", &said));
        }
        fs::rename(&unfinished, self.data()).map_err(self.cannot("cannot be finished"))?;
        // The rename is on disk before any data is written.
        let parent = File::open(&self.path).map_err(self.cannot("cannot be opened"))?;
        parent.sync_all().map_err(self.cannot("cannot be synced"))
    }

    /// Waits for the server of an earlier process that is still stopping, and removes a stale pid file. No
    /// other process of ours is here: we hold the lock.
    pub(crate) async fn wait_for_predecessor(&self, limit: Duration) -> Result<(), PrivateError> {
        let file = self.data().join("postmaster.pid");
        let waited = tokio::time::timeout(limit, async {
            loop {
                let Some(pid) = pid_file::recorded(&file) else { return };
                if !pid_file::is_server_of(pid, &self.data()) {
                    // Postgres would refuse to start if another program had this process id by now.
                    tracing::warn!(pid, "removing the pid file of a Postgres that is gone");
                    let _ = fs::remove_file(&file);
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        waited.await.map_err(|_| PrivateError::StillRunning {
            folder: self.path.clone(),
            pid: pid_file::recorded(&file).unwrap_or(0),
        })
    }

    /// Opens the log; also returns its length, where new output begins.
    pub(crate) fn open_log(&self) -> Result<(File, u64), PrivateError> {
        let path = self.log();
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        if size > LOG_BYTES_MAX {
            let aside = self.path.join("postgres.log.1");
            fs::rename(&path, aside).map_err(self.cannot("cannot be renamed"))?;
        }
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(self.cannot("cannot be written to"))?;
        let begin = log.metadata().map_err(self.cannot("cannot be looked at"))?.len();
        Ok((log, begin))
    }
}
