//! This program, to be started again.

use std::io::Result;
use std::path::PathBuf;

/// Where Linux keeps what a process runs, whatever became of its file.
const RUNNING: &str = "/proc/self/exe";

/// The program that runs, also when its file was replaced or removed meanwhile: an update must not
/// keep a solve from starting HiGHS.
///
/// # Errors
/// If the system does not say.
pub fn this() -> Result<PathBuf> {
    let named = std::env::current_exe()?;
    // Linux names a file that is gone "... (deleted)".
    let running = PathBuf::from(RUNNING);
    Ok(if named.exists() || !running.exists() { named } else { running })
}
