//! Replaces a whole folder atomically: no reader sees half of it.

use crate::error::{ReadError, WriteError};
use crate::read::read_json;
use serde::Serialize;
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// A kind of folder that this crate writes, and may therefore replace.
pub(crate) struct FolderKind {
    /// What people call it.
    pub(crate) what: &'static str,
    /// The file that says which format it is.
    pub(crate) marker: &'static str,
    /// The formats it may say.
    pub(crate) formats: &'static [&'static str],
    /// Every file it may hold. A folder with other files is not ours to replace.
    pub(crate) files: &'static [&'static str],
}

/// Writes a folder: `fill` writes into a temporary sibling, which then takes the place of `dir`.
///
/// An earlier folder of the same kind is replaced, in one step where the system can. Anything
/// else in the way stays, and is an error. After an error nothing has changed.
pub(crate) fn write_folder(
    dir: &Path,
    kind: &FolderKind,
    fill: impl FnOnce(&Path) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    // A link to a folder stays a link: the folder behind it is replaced.
    let dir = &if dir.exists() {
        dir.canonicalize().map_err(WriteError::system(dir))?
    } else {
        dir.to_owned()
    };
    let replaces = occupant(dir, kind)?;
    let name = dir.file_name().ok_or_else(|| {
        let source = std::io::Error::new(ErrorKind::InvalidInput, "not the name of a folder");
        WriteError::system(dir)(source)
    })?;
    let parent = match dir.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    fs::create_dir_all(parent).map_err(WriteError::system(parent))?;
    let mut builder = tempfile::Builder::new();
    let prefix = format!(".{}.writing-", name.to_string_lossy());
    builder.prefix(&prefix);
    #[cfg(unix)]
    {
        // As any other folder the user makes: the umask decides.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o777));
    }
    let temporary = builder.tempdir_in(parent).map_err(WriteError::system(parent))?;
    fill(temporary.path())?;
    if replaces {
        exchange(temporary.path(), dir).map_err(WriteError::system(dir))?;
        if let Err(error) = temporary.close() {
            tracing::warn!(%error, folder = %dir.display(), "the replaced folder is left over");
        }
    } else {
        fs::rename(temporary.path(), dir).map_err(WriteError::system(dir))?;
        // It is not temporary any more.
        let _ = temporary.keep();
    }
    #[cfg(unix)]
    File::open(parent).and_then(|parent| parent.sync_all()).map_err(WriteError::system(parent))?;
    Ok(())
}

/// Whether `dir` holds an earlier folder of this kind; an error if it is anything else but absent
/// or empty.
fn occupant(dir: &Path, kind: &FolderKind) -> Result<bool, WriteError> {
    let occupied = |reason: String| WriteError::Occupied { path: dir.to_owned(), reason };
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            // Either it is a file, or a folder above it is: then it is not there either.
            return match dir.symlink_metadata() {
                Ok(_) => Err(occupied("it is not a folder".to_owned())),
                Err(_) => Ok(false),
            };
        }
        Err(error) => return Err(WriteError::system(dir)(error)),
    };
    let mut names: Vec<String> = Vec::new();
    for entry in entries {
        let entry = entry.map_err(WriteError::system(dir))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    if names.is_empty() {
        return Ok(false);
    }
    if let Some(stranger) = names.iter().find(|name| !kind.files.contains(&name.as_str())) {
        return Err(occupied(format!("{stranger} is not part of a {}", kind.what)));
    }
    match read_json::<serde::de::IgnoredAny>(&dir.join(kind.marker), kind.formats) {
        Ok(_) => Ok(true),
        Err(ReadError::Format { found, .. }) => {
            Err(occupied(format!("{} says that it is {found:?}", kind.marker)))
        }
        Err(_) => Err(occupied(format!("it is not a {}", kind.what))),
    }
}

/// Swaps two folders of one parent.
fn exchange(new: &Path, old: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, new, CWD, old, RenameFlags::EXCHANGE) {
            // Not every file system can: NFS and some FUSE ones refuse the flag.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {}
            other => return Ok(other?),
        }
    }
    let aside: PathBuf = new.with_extension("old");
    fs::rename(old, &aside)?;
    if let Err(error) = fs::rename(new, old) {
        fs::rename(&aside, old)?;
        return Err(error);
    }
    fs::rename(&aside, new)
}

/// Writes a JSON file, one member a line.
pub(crate) fn write_json(file: &Path, value: &impl Serialize) -> Result<(), WriteError> {
    let mut text = serde_json::to_string_pretty(value)
        .map_err(|source| WriteError::Json { path: file.to_owned(), source })?;
    text.push('\n');
    let mut handle = File::create(file).map_err(WriteError::system(file))?;
    handle
        .write_all(text.as_bytes())
        .and_then(|()| handle.sync_all())
        .map_err(WriteError::system(file))
}
