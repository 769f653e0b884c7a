//! Errors of the server.

use crate::http::tls::TlsError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// HTTP cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum PortalError {
    /// The address cannot be bound.
    #[error("http://{at} cannot be served")]
    Bind {
        /// The address.
        at: SocketAddr,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The unix socket of this machine's administrators cannot be served.
    #[error("unix socket {} cannot be served", path.display())]
    Socket {
        /// Its path.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The certificate or the key is invalid.
    #[error("TLS")]
    Tls(#[from] TlsError),
    /// The server failed.
    #[error("serving HTTP")]
    Serve(#[source] std::io::Error),
}
