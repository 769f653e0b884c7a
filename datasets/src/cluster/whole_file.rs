//! Files that appear whole or not at all.

use super::ClusterError;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes a file through `write`; its folder is made if it is missing.
pub(super) fn write_whole(
    file: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), ClusterError> {
    let folder = match file.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    fs::create_dir_all(folder).map_err(ClusterError::written(folder))?;
    let written = tempfile::NamedTempFile::new_in(folder).and_then(|temporary| {
        let mut writer = BufWriter::new(temporary.as_file());
        write(&mut writer)?;
        writer.flush()?;
        drop(writer);
        temporary.as_file().sync_all()?;
        temporary.persist(file).map_err(|error| error.error)
    });
    written.map(drop).map_err(ClusterError::written(file))
}
