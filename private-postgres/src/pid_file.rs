//! The pid file of a Postgres, and whether its process runs.

use rustix::process::{Pid, test_kill_process};
use std::fs;
use std::path::Path;
use std::time::Duration;

/// The polling interval for things without a notification.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The process that a pid file names.
pub(crate) fn recorded(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

/// Whether the eighth line of the pid file, the state, is `ready`.
pub(crate) fn says_ready(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.lines().nth(7).map(str::trim) == Some("ready"))
}

/// Whether a process is a Postgres on this data folder: its working directory. On systems that do not tell, any
/// running process counts.
pub(crate) fn is_server_of(pid: i32, data: &Path) -> bool {
    let Some(process) = Pid::from_raw(pid).filter(|_| pid > 0) else { return false };
    if test_kill_process(process) == Err(rustix::io::Errno::SRCH) {
        return false;
    }
    match fs::read_link(format!("/proc/{pid}/cwd")) {
        Ok(folder) => folder == data,
        Err(_) => !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{pid}")).exists(),
    }
}
