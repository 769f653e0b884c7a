//! The path of this program, to start it as a child.

use std::io::Result;
use std::path::PathBuf;

/// Linux's link to the executable, valid even if its file was replaced.
const RUNNING: &str = "/proc/self/exe";

/// The running program, even if its file was replaced or removed meanwhile: an update must not
/// prevent a solve from starting HiGHS.
///
/// # Errors
/// If the system does not know the path.
pub fn path() -> Result<PathBuf> {
    let named = std::env::current_exe()?;
    // Linux names a removed file "... (deleted)".
    let running = PathBuf::from(RUNNING);
    Ok(if named.exists() || !running.exists() { named } else { running })
}
