//! What can be wrong with the file of a cluster.

use crate::error::{ReadError, WriteError};
use std::io;
use std::path::{Path, PathBuf};

/// A file cannot be read as a cluster, or an answer not be written: which file, which place in it,
/// which rule.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The file is missing, the system refuses it, or it is damaged gzip.
    #[error("{}: cannot be read", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file cannot be written.
    #[error("{}: cannot be written", file.display())]
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
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
    /// A line of a text file breaks a rule of the format.
    #[error("{}: line {line}: {rule}", file.display())]
    Line {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The rule.
        rule: String,
    },
    /// A member of a JSON file breaks a rule of the format.
    #[error("{}: {at}: {rule}", file.display())]
    Member {
        /// The file.
        file: PathBuf,
        /// The member.
        at: String,
        /// The rule.
        rule: String,
    },
    /// A table cannot be read.
    #[error(transparent)]
    Table(#[from] ReadError),
    /// A folder of tables cannot be written.
    #[error(transparent)]
    Folder(#[from] WriteError),
}

impl ClusterError {
    pub(super) fn file(file: &Path) -> impl FnOnce(io::Error) -> ClusterError + '_ {
        |source| ClusterError::File { file: file.to_owned(), source }
    }

    pub(super) fn written(file: &Path) -> impl FnOnce(io::Error) -> ClusterError + '_ {
        |source| ClusterError::Write { file: file.to_owned(), source }
    }
}
