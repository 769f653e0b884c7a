//! Static files of the pages, embedded in the binary: style sheet, script, chart library, icon.
//!
//! A path contains the digest of its file, so browsers may cache it for ever and still load a new
//! version at once.

use axum::Router;
use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

/// Bytes of the digest in a path.
const DIGEST_BYTES: usize = 6;

/// A static file.
pub(super) struct Asset {
    content: &'static str,
    kind: &'static str,
    /// Path with the digest.
    path: LazyLock<String>,
}

impl Asset {
    /// Path with the digest.
    pub(super) fn path(&self) -> &str {
        &self.path
    }
}

fn path(stem: &str, content: &str, ending: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    format!("/assets/{stem}.{}.{ending}", HEXLOWER.encode(&digest[..DIGEST_BYTES]))
}

macro_rules! assets {
    ($($(#[$doc:meta])* $name:ident = $stem:literal, $ending:literal, $kind:literal, $content:expr;)+) => {
        $($(#[$doc])* pub(super) static $name: Asset = Asset {
            content: $content,
            kind: $kind,
            path: LazyLock::new(|| path($stem, $content, $ending)),
        };)+
        static ALL: &[&Asset] = &[$(&$name),+];
    };
}

assets! {
    /// The style sheet.
    STYLE = "ras", "css", "text/css; charset=utf-8", include_str!("../../assets/ras.css");
    /// Charts, keyboard scrolling of wide tables, and the plan shown while a request is typed. Pages are
    /// complete without it.
    SCRIPT = "ras", "js", "text/javascript; charset=utf-8", include_str!("../../assets/ras.js");
    /// Replaces parts of pages when the region has changed. Pages are complete without it.
    LIVE = "live", "js", "text/javascript; charset=utf-8", include_str!("../../assets/live.js");
    /// The theme that the reader has chosen, applied before a page is painted.
    THEME = "theme", "js", "text/javascript; charset=utf-8", include_str!("../../assets/theme.js");
    /// What makes pages easier to read: local times, sorting, CSV, copying, keys. Pages are complete without it.
    READER = "reader", "js", "text/javascript; charset=utf-8", include_str!("../../assets/reader.js");
    /// Control of heat maps by pointer and keyboard.
    HEAT_MAPS = "charts", "js", "text/javascript; charset=utf-8", report::CHART_SCRIPT;
    /// The chart library.
    CHARTS = "uplot", "js", "text/javascript; charset=utf-8", include_str!("../../assets/vendor/uPlot.iife.min.js");
    /// The style sheet of the chart library.
    CHARTS_STYLE = "uplot", "css", "text/css; charset=utf-8", include_str!("../../assets/vendor/uPlot.min.css");
    /// The icon.
    ICON = "icon", "svg", "image/svg+xml", include_str!("../../assets/icon.svg");
}

/// Routes of all static files.
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
