//! Real data sets, which lie beside the project.

use std::path::{Path, PathBuf};

/// The folder of a data set. Tests of it carry
/// `#[cfg_attr(not(shared_data), ignore = "...")]`, so that its absence is reported by name.
///
/// # Panics
/// If it is absent: a test that needs it has failed then, it has not passed.
pub fn data(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data").join(name);
    assert!(folder.is_dir(), "{} is absent", folder.display());
    folder
}
