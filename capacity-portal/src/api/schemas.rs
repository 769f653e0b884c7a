//! `/schemas/capacity-request.json`: the schema of request files, for editors that check them.

use super::v1::change::schema::file;
use crate::http::Site;
use axum::Router;
use axum::http::header::CONTENT_TYPE;
use axum::routing::get;

/// The routes.
pub(super) fn routes() -> Router<Site> {
    let text = capacity_request();
    let schema = get(async move || ([(CONTENT_TYPE, "application/schema+json")], text.clone()));
    Router::new().route("/schemas/capacity-request.json", schema)
}

/// The schema of a request file, as served and as committed in the repository.
pub fn capacity_request() -> String {
    let mut text = serde_json::to_string_pretty(&file()).expect("it is JSON already");
    text.push('\n');
    text
}
