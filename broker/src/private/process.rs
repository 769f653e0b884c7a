//! Postgres as our child.

use super::binaries::{Binaries, harmless};
use super::error::PrivateError;
use super::folder::{Folder, LOOK_EVERY};
use super::user::User;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// Settings that differ from Postgres' own. `fsync` and `synchronous_commit` stay as they are: on.
const SETTINGS: [&str; 10] = [
    // A unix socket alone, and only for the user and root.
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "port=5432",
    // Postgres waits that long, also when it stops, for a client that connects and then says nothing. Its own
    // value is all the time a clean stop may take.
    "authentication_timeout=10s",
    // A few brokers' worth of connections.
    "max_connections=100",
    // A million servers and their indexes are about 500 MB.
    "shared_buffers=256MB",
    "work_mem=32MB",
    "maintenance_work_mem=128MB",
    // Loading a region writes about 1 GB of log; checkpoints in the middle would double that.
    "max_wal_size=4GB",
    // Compiling a query takes longer than any of ours runs.
    "jit=off",
];

/// How long a clean stop may take: a checkpoint of everything in memory, on a slow disk.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub(super) struct Server {
    pid: Pid,
    /// Turns true when the process is gone.
    gone: watch::Receiver<bool>,
}

impl Server {
    /// Starts Postgres and waits until it takes connections.
    pub(super) async fn start(
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
                // Processes of a server that was killed may take a moment to go.
                let lingering = ["\"postmaster.pid\" already exists", "pre-existing shared memory"];
                if !lingering.iter().any(|words| said.contains(words)) {
                    return Err(PrivateError::said(folder.path(), "postgres", &said));
                }
                tokio::time::sleep(LOOK_EVERY * 10).await;
            }
        };
        tokio::time::timeout(limit, attempts).await.unwrap_or_else(|_| Err(late()))
    }

    /// Runs a command in a thread of its own that lives as long as it: the system's signal at our
    /// death is one at the death of the thread that started the child.
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

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Waits until it takes connections; false: it ended instead.
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

    pub(super) async fn ended(&mut self) {
        // An error means that the thread is gone, and so is the child it waited for.
        let _ = self.gone.wait_for(|gone| *gone).await;
    }

    pub(super) async fn stop(&mut self) -> Result<(), PrivateError> {
        // Fast shutdown: no waiting for clients, but a checkpoint.
        self.signal(Signal::INT);
        if tokio::time::timeout(STOP_TIMEOUT, self.ended()).await.is_ok() {
            return Ok(());
        }
        self.signal(Signal::QUIT);
        self.ended().await;
        Err(PrivateError::NotStopping { pid: self.pid(), seconds: STOP_TIMEOUT.as_secs() })
    }

    /// Signals the child, which has its number until we have waited for it.
    fn signal(&self, signal: Signal) {
        if !*self.gone.borrow() {
            let _ = kill_process(self.pid, signal);
        }
    }
}

impl Drop for Server {
    /// It stops by itself after this; nobody waits.
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
    // Ctrl-C in a terminal goes to every process of the group: it is for us, and we stop Postgres
    // when we no longer need it.
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

/// A wrapper that has the system end the program when we end, if there is one.
fn dies_with_us() -> Option<Command> {
    let works = Command::new("setpriv").args(["--pdeathsig", "INT", "--", "true"]).output();
    let works = works.is_ok_and(|output| output.status.success());
    works.then(|| {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "INT"]);
        command
    })
}

/// What the log says from here on, the last 64 KiB of it at most.
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

/// The process a pid file names.
pub(super) fn recorded(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

/// Whether the pid file's eighth line, the state, says so.
fn says_ready(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.lines().nth(7).map(str::trim) == Some("ready"))
}

/// Whether a process is a Postgres on this data folder: it works in it. Where the system does not
/// tell, one that runs at all is taken for it.
pub(super) fn is_server_of(pid: i32, data: &Path) -> bool {
    let Some(process) = Pid::from_raw(pid).filter(|_| pid > 0) else { return false };
    if test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => folder == data,
        Err(_) => !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{pid}")).exists(),
    }
}
