//! Postgres as a child process.

use crate::binaries::{Binaries, harmless};
use crate::error::PrivateError;
use crate::folder::Folder;
use crate::pid_file::{LOOK_EVERY, recorded, says_ready};
use crate::user::User;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Settings that differ from Postgres' defaults. `fsync` and `synchronous_commit` keep theirs: on.
const SETTINGS: [&str; 10] = [
    // A unix socket only, for the user and root only.
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "port=5432",
    // Postgres waits this long, even while stopping, for a client that connects and sends nothing. The default
    // is the whole time of a clean stop.
    "authentication_timeout=10s",
    // Enough for several brokers.
    "max_connections=100",
    // A million servers and their indexes are about 500 MB.
    "shared_buffers=256MB",
    "work_mem=32MB",
    "maintenance_work_mem=128MB",
    // An import of a region writes about 1 GB of log; a checkpoint in the middle would double that.
    "max_wal_size=4GB",
    // Compiling a query takes longer than running any of ours.
    "jit=off",
];

/// The time limit of a clean stop: a checkpoint of all dirty memory, on a slow disk.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) struct Server {
    pid: Pid,
    /// Becomes true when the process has ended.
    gone: watch::Receiver<bool>,
}

impl Server {
    /// Starts Postgres and waits until it accepts connections.
    pub(crate) async fn start(
        binaries: &Binaries,
        folder: &Folder,
        user: Option<&User>,
        limit: Duration,
    ) -> Result<Server, PrivateError> {
        let late = || PrivateError::NotStarting {
            folder: folder.path().to_owned(),
            seconds: limit.as_secs(),
        };
        let attempts = async {
            loop {
                let (log, begin) = folder.open_log()?;
                let mut server = Server::spawn(command(binaries, folder, user), log).await?;
                if server.ready(folder).await {
                    return Ok(server);
                }
                let said = tail(folder, begin);
                // Processes of a killed server may take a moment to end.
                let lingering = ["\"postmaster.pid\" already exists", "pre-existing shared memory"];
                if !lingering.iter().any(|words| said.contains(words)) {
                    return Err(PrivateError::said(folder.path(), "postgres", &said));
                }
                tokio::time::sleep(LOOK_EVERY * 10).await;
            }
        };
        tokio::time::timeout(limit, attempts).await.unwrap_or_else(|_| Err(late()))
    }

    /// Runs a command from a thread of its own that waits for its end: the parent-death signal is sent at the
    /// end of the thread that started the child.
    async fn spawn(mut command: Command, log: File) -> Result<Server, PrivateError> {
        let program = Path::new(command.get_program()).to_owned();
        let (started, starting) = oneshot::channel::<std::io::Result<u32>>();
        let (end, gone) = watch::channel(false);
        let keep = move || {
            let spawned = log
                .try_clone()
                .and_then(|out| command.stdin(Stdio::null()).stdout(out).stderr(log).spawn());
            match spawned {
                Ok(mut child) => {
                    let _ = started.send(Ok(Child::id(&child)));
                    let _ = child.wait();
                    let _ = end.send(true);
                }
                Err(error) => drop(started.send(Err(error))),
            }
        };
        let cannot = || PrivateError::system(&program, "cannot be run");
        std::thread::Builder::new().name("postgres".to_owned()).spawn(keep).map_err(cannot())?;
        let pid = starting.await.map_err(std::io::Error::other).and_then(|pid| pid);
        let pid = pid.map_err(cannot())?;
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a child has a pid");
        Ok(Server { pid, gone })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until the server accepts connections; false: it ended first.
    async fn ready(&mut self, folder: &Folder) -> bool {
        let file = folder.data().join("postmaster.pid");
        loop {
            if *self.gone.borrow() {
                return false;
            }
            if recorded(&file) == Some(self.pid.as_raw_nonzero().get()) && says_ready(&file) {
                return true;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    pub(crate) async fn ended(&mut self) {
        // An error means that the thread has ended, and with it the child.
        let _ = self.gone.wait_for(|gone| *gone).await;
    }

    pub(crate) async fn stop(&mut self) -> Result<(), PrivateError> {
        // Fast shutdown: does not wait for clients, but writes a checkpoint.
        self.signal(Signal::INT);
        if tokio::time::timeout(STOP_TIMEOUT, self.ended()).await.is_ok() {
            return Ok(());
        }
        self.signal(Signal::QUIT);
        self.ended().await;
        Err(PrivateError::NotStopping { pid: self.pid(), seconds: STOP_TIMEOUT.as_secs() })
    }

    /// Signals the child. Its process id stays valid until it is waited for.
    fn signal(&self, signal: Signal) {
        if !*self.gone.borrow() {
            let _ = kill_process(self.pid, signal);
        }
    }
}

impl Drop for Server {
    /// The server stops on its own; this does not wait.
    fn drop(&mut self) {
        self.signal(Signal::INT);
    }
}

fn command(binaries: &Binaries, folder: &Folder, user: Option<&User>) -> Command {
    let program = binaries.folder.join("postgres");
    let mut command = match dies_with_us() {
        Some(mut wrapper) => {
            wrapper.arg("--").arg(program);
            wrapper
        }
        None => Command::new(program),
    };
    harmless(&mut command);
    // Ctrl-C in a terminal goes to the whole process group. It is meant for us; we stop Postgres when we no
    // longer need it.
    command.process_group(0);
    command.arg("-D").arg(folder.data());
    let mut socket = std::ffi::OsString::from("unix_socket_directories=");
    socket.push(folder.socket());
    command.arg("-c").arg(socket);
    for setting in SETTINGS {
        command.arg("-c").arg(setting);
    }
    if let Some(user) = user {
        user.runs(&mut command);
    }
    command
}

/// A wrapper that has the system end the program when we end, if it is installed.
fn dies_with_us() -> Option<Command> {
    let works = Command::new("setpriv").args(["--pdeathsig", "INT", "--", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    works.then(|| {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        command
    })
}

/// The log from this position on, at most its last 64 KiB.
fn tail(folder: &Folder, begin: u64) -> String {
    let read = || -> std::io::Result<String> {
        let mut log = File::open(folder.log())?;
        let begin = begin.max(log.metadata()?.len().saturating_sub(64 << 10));
        log.seek(SeekFrom::Start(begin))?;
        let mut said = Vec::new();
        log.read_to_end(&mut said)?;
        Ok(String::from_utf8_lossy(&said).into_owned())
    };
    read().unwrap_or_default()
}
