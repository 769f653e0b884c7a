//! The unix socket of a server: HTTP for the commands of this machine's administrators.
//!
//! The caller is the user that the kernel reports for the connection (`SO_PEERCRED`), never one that it
//! claims. The socket admits the user that the server runs as, and root: both own the region's files. They
//! have the role `admin`, checked where the roles of tokens are checked.

use crate::error::PortalError;
use crate::http::auth::authority::{Role, Token};
use axum::Router;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use broker::LOCAL_ACTOR_PREFIX;
use nix::unistd::{Uid, User};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};

/// Folder of the socket, in the data folder. It has one of its own because the user of a private Postgres
/// must be able to enter the data folder.
const FOLDER: &str = "server";
const SOCKET: &str = "ras.sock";
const LOCK: &str = "lock";

/// Wait for the lock: a killed server holds it until a child that it was starting has replaced its program.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
const LOCK_EVERY: Duration = Duration::from_millis(20);

/// Pause after a connection could not be accepted, for example because too many files are open.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Path of the socket of the server that uses a data folder.
pub fn socket_path(data: &Path) -> PathBuf {
    data.join(FOLDER).join(SOCKET)
}

/// Actor of the audit trail for a user of this machine: `local:` and the user's name, or its number if it
/// has no name.
pub fn local_actor(uid: u32) -> String {
    let user = User::from_uid(Uid::from_raw(uid)).ok().flatten();
    let name = user.map_or_else(|| uid.to_string(), |user| user.name);
    format!("{LOCAL_ACTOR_PREFIX}{name}")
}

/// Caller of a connection to the socket.
#[derive(Clone, Debug)]
pub(crate) struct LocalCaller(Arc<str>);

impl LocalCaller {
    /// Its identity, as a token without a secret.
    pub(crate) fn token(&self) -> Token {
        Token {
            name: self.0.clone(),
            roles: [Role::Admin].into(),
            owner: None,
            expires_at: None,
            digest: Default::default(),
        }
    }
}

impl Connected<IncomingStream<'_, Admitting>> for LocalCaller {
    fn connect_info(stream: IncomingStream<'_, Admitting>) -> LocalCaller {
        stream.remote_addr().clone()
    }
}

/// A unix socket that is listened on. Its file is removed when this is dropped.
#[derive(Debug)]
pub struct LocalSocket {
    listener: Admitting,
    file: SocketFile,
    /// Held until the process ends, however it ends: a socket whose lock is free has no server.
    lock: File,
}

/// Removes the socket's file when dropped, so that clients find no server instead of a dead one.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A file that is left is replaced at the next start.
        let _ = fs::remove_file(&self.0);
    }
}

impl LocalSocket {
    /// Listens in a data folder, with mode 0600 in a folder with mode 0700. `None`: another process serves
    /// this data folder.
    ///
    /// # Errors
    /// [`PortalError::Socket`] if the folder belongs to another user or cannot be written, or the path
    /// exceeds 107 bytes.
    pub async fn bind(data: &Path) -> Result<Option<LocalSocket>, PortalError> {
        let path = socket_path(data);
        bind(&path).await.map_err(|source| PortalError::Socket { path, source })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.file.0
    }

    /// Answers until dropped.
    pub(crate) async fn serve(self, router: Router) -> io::Result<()> {
        // Dropped in this order: the file is removed while the lock is held.
        let LocalSocket { listener, file: _file, lock: _lock } = self;
        axum::serve(listener, router.into_make_service_with_connect_info::<LocalCaller>()).await
    }
}

async fn bind(path: &Path) -> io::Result<Option<LocalSocket>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let own = Uid::effective().as_raw();
    if fs::symlink_metadata(folder)?.uid() != own {
        return Err(io::Error::other(format!("{} belongs to another user", folder.display())));
    }
    fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
    match timeout(LOCK_PATIENCE, take(&lock)).await {
        Ok(taken) => taken?,
        Err(_) => return Ok(None),
    }
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    let listener = Admitting { listener, callers: admitted(own) };
    Ok(Some(LocalSocket { listener, file: SocketFile(path.to_owned()), lock }))
}

/// Waits for the lock of a socket's folder.
async fn take(lock: &File) -> io::Result<()> {
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => sleep(LOCK_EVERY).await,
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// The callers that the socket of a server that runs as `own` admits, by user.
fn admitted(own: u32) -> BTreeMap<u32, LocalCaller> {
    [own, 0].map(|uid| (uid, LocalCaller(local_actor(uid).into()))).into()
}

/// Accepts connections of the admitted users only.
#[derive(Debug)]
struct Admitting {
    listener: UnixListener,
    callers: BTreeMap<u32, LocalCaller>,
}

impl Listener for Admitting {
    type Io = UnixStream;
    type Addr = LocalCaller;

    async fn accept(&mut self) -> (UnixStream, LocalCaller) {
        loop {
            let peer = match self.listener.accept().await {
                Ok((stream, _)) => stream.peer_cred().map(|peer| (stream, peer.uid())),
                Err(error) => Err(error),
            };
            match peer {
                Ok((stream, uid)) => match self.callers.get(&uid) {
                    Some(caller) => return (stream, caller.clone()),
                    None => tracing::warn!(uid, "another user is refused at the unix socket"),
                },
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection at the unix socket");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<LocalCaller> {
        let own = Uid::effective().as_raw();
        self.callers.get(&own).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

#[cfg(test)]
mod tests {
    use super::{LocalSocket, admitted, local_actor, socket_path};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn socket_admits_its_owner_and_root_only() {
        let users = |own| admitted(own).into_keys().collect::<Vec<_>>();
        assert_eq!((users(1000), users(0)), (vec![0, 1000], vec![0]));
    }

    #[test]
    fn local_actor_is_the_name_of_the_user() {
        assert_eq!(local_actor(0), "local:root");
        assert_eq!(local_actor(u32::MAX - 7), format!("local:{}", u32::MAX - 7));
    }

    #[tokio::test]
    async fn socket_is_private_and_belongs_to_one_process() {
        let data = tempfile::tempdir().expect("a folder");
        let path = socket_path(data.path());
        let folder = path.parent().expect("a folder");
        // A killed server left its socket, in a folder that others could enter.
        fs::create_dir(folder).expect("created");
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("set");
        drop(UnixListener::bind(&path).expect("bound"));
        let bound = LocalSocket::bind(data.path()).await.expect("bound").expect("free");
        let mode = |of| fs::metadata(of).expect("there").permissions().mode() & 0o777;
        assert_eq!((mode(folder), mode(&path)), (0o700, 0o600));
        assert!(LocalSocket::bind(data.path()).await.expect("looked at").is_none());
        drop(bound);
        assert!(LocalSocket::bind(data.path()).await.expect("bound").is_some());
    }
}
