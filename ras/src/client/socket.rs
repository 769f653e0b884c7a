//! Connects to the unix socket of a server on this machine.

use super::login::LocalServer;
use crate::mistake::Hinted;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustix::process::geteuid;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::UnixStream;
use tower_service::Service;

/// Connects to one socket, regardless of the URL.
#[derive(Clone, Debug)]
pub(super) struct SocketConnector(LocalServer);

impl SocketConnector {
    pub(super) fn new(local: LocalServer) -> SocketConnector {
        SocketConnector(local)
    }
}

impl Service<Uri> for SocketConnector {
    type Response = TokioIo<UnixStream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<UnixStream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let local = self.0.clone();
        Box::pin(async move {
            let stream = UnixStream::connect(local.path()).await?;
            let server = stream.peer_cred()?.uid();
            if trusts(geteuid().as_raw(), server, local.named) {
                return Ok(TokioIo::new(stream));
            }
            Err(io::Error::other(format!("it belongs to another user ({server})")))
        })
    }
}

/// Whether this user trusts a server that runs as another. The default data folder has a predictable name
/// in a world-writable folder, so another user may have put a server there; root may name any folder.
fn trusts(own: u32, server: u32, named: bool) -> bool {
    server == own || server == 0 || (own == 0 && named)
}

/// The error of a socket that cannot be reached.
pub(super) fn explain(error: anyhow::Error, local: &LocalServer) -> anyhow::Error {
    let (data, path) = (local.data.display(), local.path());
    let kind =
        error.chain().find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match kind {
        Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            let start =
                if local.named { format!("ras up --data {data}") } else { "ras up".to_owned() };
            let what = format!("no server runs for data folder {data}");
            Hinted::new(
                what,
                format!("start it with `{start}`, or name a server: --server, `ras login`"),
            )
            .into()
        }
        Some(io::ErrorKind::PermissionDenied) => Hinted::new(
            format!("the server of data folder {data} belongs to another user"),
            "ask it over the network with a token (--server)",
        )
        .into(),
        _ => error.context(format!("cannot reach the server at {}", path.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::trusts;

    #[test]
    fn server_of_another_user_is_not_trusted() {
        for (own, server, named, trusted) in [
            (1000, 1000, false, true),
            (1000, 0, false, true),
            (1000, 1001, true, false),
            (0, 1001, false, false),
            (0, 1001, true, true),
        ] {
            assert_eq!(trusts(own, server, named), trusted, "{own} {server} {named}");
        }
    }
}
