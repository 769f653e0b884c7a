//! What solves left behind, as far as whoever runs the portal lets it be read.

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::fmt;

/// Where snapshots and results of solves are kept. The broker knows their URLs and nothing else.
pub trait Archive: fmt::Debug + Send + Sync {
    /// The files kept under a URL, in order of name; none: nothing is kept there.
    fn files<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<ArchivedFile>, ArchiveError>>;

    /// A file of those; `None`: it is gone.
    fn read<'a>(
        &'a self,
        url: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Chunks>, ArchiveError>>;
}

/// A file, piece by piece.
pub type Chunks = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// A file that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Its name, without a folder.
    pub name: String,
    /// How large it is.
    pub bytes: u64,
}

/// The archive does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the archive does not answer: {0}")]
pub struct ArchiveError(pub String);
