//! `/schemas/capacity-request.json`: requests for capacity as files, for editors that check them.

use super::{Site, v1};
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

/// The routes.
pub(super) fn routes() -> Router<Site> {
    let text = capacity_request();
    let schema = get(async move || ([(CONTENT_TYPE, "application/schema+json")], text.clone()));
    Router::new().route("/schemas/capacity-request.json", schema)
}

/// The schema of a file of requests for capacity, as it is served and committed.
pub fn capacity_request() -> String {
    let mut text =
        serde_json::to_string_pretty(&v1::file_of_requests()).expect("it is JSON already");
    text.push('\n');
    text
}
