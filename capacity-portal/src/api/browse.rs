//! `/openapi.json`, the OpenAPI description, and `/api`, a page to browse it. The page's files are in the
//! binary; browsers fetch nothing from other servers.

use super::schemas;
use crate::http::Site;
use axum::Router;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, Request};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use utoipa_swagger_ui::{Config, SwaggerUi};

/// Content security policy of the page: Swagger UI has inline styles and images as data URLs.
pub(crate) const PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; \
    style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes. `openapi`: the description.
pub(crate) fn routes(openapi: String) -> Router<Site> {
    let config = Config::from("/openapi.json").use_base_layout().persist_authorization(false);
    let page: Router<Site> = SwaggerUi::new("/api").config(config).into();
    let description =
        get(async move || ([(CONTENT_TYPE, "application/json")], openapi.clone()).into_response());
    page.layer(from_fn(within_policy)).route("/openapi.json", description).merge(schemas::routes())
}

async fn within_policy(request: Request<axum::body::Body>, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}
