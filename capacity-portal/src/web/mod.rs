//! Pages for people, written here and served by themselves: nothing is fetched from elsewhere.

mod sign_in;

use crate::api::Site;
use axum::Router;
use axum::routing::{get, post};

/// The routes of pages.
pub(crate) fn routes() -> Router<Site> {
    Router::new()
        .route("/sign-in", get(sign_in::page).post(sign_in::sign_in))
        .route("/sign-out", post(sign_in::sign_out))
}
