//! Temporary folders of running solves and replays. A killed process leaves its folder behind, with
//! a snapshot in it; creating the next folder removes leftovers.

use anyhow::{Context, Result};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

const PREFIX: &str = "ras-work-";

/// A file locked by the process that uses the folder.
const LOCK: &str = "lock";

/// A temporary folder; dropping it deletes it.
pub(super) struct Scratch {
    folder: TempDir,
    _held: File,
}

impl Scratch {
    /// Creates one in the system's temporary folder.
    pub(super) fn new() -> Result<Scratch> {
        Scratch::within(&std::env::temp_dir())
    }

    fn within(parent: &Path) -> Result<Scratch> {
        sweep(parent);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent);
        let folder = folder.with_context(|| format!("a folder in {}", parent.display()))?;
        let hold = || -> std::io::Result<File> {
            let unnamed = folder.path().join("unnamed");
            let held = File::create(&unnamed)?;
            held.lock()?;
            // Renamed only once it is locked: others would take an unlocked one for a leftover.
            fs::rename(unnamed, folder.path().join(LOCK))?;
            Ok(held)
        };
        let held = hold().with_context(|| format!("holding {}", folder.path().display()))?;
        Ok(Scratch { folder, _held: held })
    }

    /// The path of a file or folder in it.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Removes leftover folders. Those that cannot be read or removed stay.
fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_folder = entry.file_type().is_ok_and(|of| of.is_dir());
        if !is_folder || !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let left = File::open(entry.path().join(LOCK)).is_ok_and(|lock| lock.try_lock().is_ok());
        if left {
            match fs::remove_dir_all(entry.path()) {
                Ok(()) => {
                    tracing::info!(folder = %entry.path().display(), "removed a leftover folder")
                }
                Err(error) => {
                    tracing::debug!(%error, folder = %entry.path().display(), "left behind")
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{LOCK, PREFIX, Scratch};
    use std::fs;

    #[test]
    fn what_is_left_behind_is_removed_and_what_is_worked_in_stays() {
        let parent = tempfile::tempdir().expect("a folder");
        let left = |name: &str| {
            let folder = parent.path().join(name);
            fs::create_dir(&folder).expect("made");
            fs::write(folder.join(LOCK), "").expect("written");
            folder
        };
        let (killed, other) = (left(&format!("{PREFIX}killed")), left("another process's"));
        let new = parent.path().join(format!("{PREFIX}new"));
        fs::create_dir(&new).expect("made");
        let one = Scratch::within(parent.path()).expect("made");
        fs::write(one.path("snapshot"), "rows").expect("written");
        let another = Scratch::within(parent.path()).expect("made");
        assert!(!killed.exists(), "no process holds it");
        assert!(other.exists() && new.exists() && one.path("snapshot").exists());
        let ended = one.path("");
        drop(one);
        assert!(!ended.exists() && another.path("").exists());
    }
}
