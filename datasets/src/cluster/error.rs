//! What can be wrong with the file of a cluster.

use std::path::{Path, PathBuf};

/// A file cannot be read as a cluster: which file, which place in it, which rule.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The file is missing, the system refuses it, or it is not gzip.
    #[error("{}: cannot be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// A number breaks a rule of the format.
    #[error("{}: number {position}: {rule}", file.display())]
    Number {
        /// The file.
        file: PathBuf,
        /// Which number of the file, from 1.
        position: usize,
        /// The rule.
        rule: String,
    },
}

impl ClusterError {
    pub(super) fn file(file: &Path) -> impl FnOnce(std::io::Error) -> ClusterError + '_ {
        |source| ClusterError::File { file: file.to_owned(), source }
    }
}
