//! The interface to the files of solves.

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::fmt;

/// Archive of snapshots and results of solves. The broker stores only their URLs.
pub trait Archive: fmt::Debug + Send + Sync {
    /// Files under a URL, by name; may be empty.
    fn files<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<Vec<ArchivedFile>, ArchiveError>>;

    /// One of these files; `None`: it was removed.
    fn read<'a>(
        &'a self,
        url: &'a str,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Chunks>, ArchiveError>>;
}

/// Content of a file, in chunks.
pub type Chunks = BoxStream<'static, Result<Bytes, std::io::Error>>;

/// An archived file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Name, without a folder.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
}

/// The archive does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the archive does not answer: {0}")]
pub struct ArchiveError(pub String);
