//! The folder of a private Postgres: whose it is, whether it is whole, who else is in it.

use super::binaries::Binaries;
use super::error::PrivateError;
use super::user::User;
use super::{DATA, ROLE, SOCKET, process};
use std::fs::{self, File, TryLockError};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// What lies in the folder. `data.unfinished` is there while `data` is being made; one that is left
/// was never finished, and is made anew.
const OURS: [&str; 6] = [DATA, "data.unfinished", SOCKET, "postgres.log", "postgres.log.1", "lock"];

/// The longest path of a unix socket on Linux, in bytes (`sun_path` without its end).
const SOCKET_PATH_MAX: usize = 107;

/// How large a log may be at a start; a larger one is put aside, over the one before.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// How long the lock of a folder is waited for. Whoever held it may just have ended while it started another
/// program, which has a copy of the lock until it is that program.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// How often something is looked at that tells nobody when it changes.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) struct Folder {
    path: PathBuf,
    /// Held as long as we are there; the system lets go of it when we end, however that is.
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
    /// Opens a folder, made if need be, and keeps others of us out.
    pub(super) async fn open(path: &Path, user: Option<&User>) -> Result<Folder, PrivateError> {
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

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    pub(super) fn log(&self) -> PathBuf {
        self.path.join("postgres.log")
    }

    pub(super) fn cannot(
        &self,
        doing: &'static str,
    ) -> impl FnOnce(std::io::Error) -> PrivateError {
        PrivateError::system(&self.path, doing)
    }

    /// Gives something to whoever runs Postgres, and to nobody else.
    fn own(&self, path: &Path, user: Option<&User>) -> Result<(), PrivateError> {
        if let Some(user) = user {
            chown(path, Some(user.uid), Some(user.gid)).map_err(self.cannot("cannot be given"))?;
        }
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(path, mode).map_err(self.cannot("cannot be closed to others"))
    }

    /// Root reaches everything; the user Postgres runs as must too.
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

    pub(super) fn is_initialised(&self) -> bool {
        self.data().exists()
    }

    /// The major version the data is of, if there is any.
    pub(super) fn major(&self) -> Result<Option<(PathBuf, u32)>, PrivateError> {
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

    /// Makes the data folder under another name, so that it has its own only when it is whole.
    pub(super) async fn initialise(
        &self,
        binaries: &Binaries,
        user: Option<&User>,
    ) -> Result<(), PrivateError> {
        let unfinished = self.path.join("data.unfinished");
        if unfinished.exists() {
            tracing::warn!("the data folder was never finished; making it anew");
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
        // The new name is on disk before anything is in the data.
        let parent = File::open(&self.path).map_err(self.cannot("cannot be opened"))?;
        parent.sync_all().map_err(self.cannot("cannot be synced"))
    }

    /// Waits for a server of an earlier process of ours that is still ending, and clears away the
    /// pid file of one that is gone. Nobody else of us is here: we hold the lock.
    pub(super) async fn wait_for_predecessor(&self, limit: Duration) -> Result<(), PrivateError> {
        let file = self.data().join("postmaster.pid");
        let waited = tokio::time::timeout(limit, async {
            loop {
                let Some(pid) = process::recorded(&file) else { return };
                if !process::is_server_of(pid, &self.data()) {
                    // Postgres would refuse to start if another program had this number by now.
                    tracing::warn!(pid, "removing the pid file of a Postgres that is gone");
                    let _ = fs::remove_file(&file);
                    return;
                }
                tokio::time::sleep(LOOK_EVERY).await;
            }
        });
        waited.await.map_err(|_| PrivateError::StillRunning {
            folder: self.path.clone(),
            pid: process::recorded(&file).unwrap_or(0),
        })
    }

    /// Opens the log, and says where what comes now begins.
    pub(super) fn open_log(&self) -> Result<(File, u64), PrivateError> {
        let path = self.log();
        let size = fs::metadata(&path).map_or(0, |meta| meta.len());
        if size > LOG_BYTES_MAX {
            let aside = self.path.join("postgres.log.1");
            fs::rename(&path, aside).map_err(self.cannot("cannot be tidied"))?;
        }
        let log = File::options().create(true).append(true).open(&path);
        let log = log.map_err(self.cannot("cannot be written to"))?;
        let begin = log.metadata().map_err(self.cannot("cannot be looked at"))?.len();
        Ok((log, begin))
    }
}
