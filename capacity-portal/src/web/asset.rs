//! What pages load: style, script, the chart library and an icon, all from this program.
//!
//! A file's name carries the digest of its content, so browsers may keep it for ever and still see
//! a new version at once.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Bytes of the digest that stand in a name.
const DIGEST_BYTES: usize = 6;

/// A file that pages load.
pub(super) struct Asset {
    content: &'static str,
    kind: &'static str,
    /// Its path, with the digest.
    path: LazyLock<String>,
}

impl Asset {
    /// Where it is.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

fn path(stem: &str, content: &str, ending: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    format!("/assets/{stem}.{}.{ending}", HEXLOWER.encode(&digest[..DIGEST_BYTES]))
}

macro_rules! assets {
    ($($(#[$doc:meta])* $name:ident = $stem:literal, $ending:literal, $kind:literal, $file:literal;)+) => {
        $($(#[$doc])* pub(super) static $name: Asset = Asset {
            content: include_str!(concat!("../../assets/", $file)),
            kind: $kind,
            path: LazyLock::new(|| {
                path($stem, include_str!(concat!("../../assets/", $file)), $ending)
            }),
        };)+
        static ALL: &[&Asset] = &[$(&$name),+];
    };
}

assets! {
    /// How pages look.
    STYLE = "ras", "css", "text/css; charset=utf-8", "ras.css";
    /// What pages do where scripts run; without, they say the same.
    SCRIPT = "ras", "js", "text/javascript; charset=utf-8", "ras.js";
    /// The chart library.
    CHARTS = "uplot", "js", "text/javascript; charset=utf-8", "vendor/uPlot.iife.min.js";
    /// Its style.
    CHARTS_STYLE = "uplot", "css", "text/css; charset=utf-8", "vendor/uPlot.min.css";
    /// The icon.
    ICON = "icon", "svg", "image/svg+xml", "icon.svg";
}

/// The routes of all of them.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/assets/{file}", get(file))
}

async fn file(Path(file): Path<String>) -> Response {
    let name = |asset: &&&Asset| asset.path().strip_prefix("/assets/") == Some(file.as_str());
    let Some(asset) = ALL.iter().find(name) else { return StatusCode::NOT_FOUND.into_response() };
    let headers =
        [(CONTENT_TYPE, asset.kind), (CACHE_CONTROL, "public, max-age=31536000, immutable")];
    (headers, asset.content).into_response()
}
