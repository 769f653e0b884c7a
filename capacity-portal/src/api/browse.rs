//! `/openapi.json`, the OpenAPI description, `/api`, a page to browse it, and `/problems/CODE`, which explains the
//! problems of the API. The files of the pages are in the binary; browsers fetch nothing from other servers.

use super::schemas;
use crate::http::problem_types::meaning;
use crate::http::{Problem, Site};
use axum::Router;
use axum::extract::Path;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use maud::{DOCTYPE, html};
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
    page.layer(from_fn(within_policy))
        .route("/openapi.json", description)
        .route("/problems/{code}", get(problem_type))
        .merge(schemas::routes())
}

/// What a code of a problem means; its path is the `type` of problems.
async fn problem_type(Path(code): Path<String>) -> Result<Html<String>, Problem> {
    let meaning = meaning(&code).ok_or_else(|| {
        Problem::new(StatusCode::NOT_FOUND, "not_found", format!("there is no code {code:?}"))
    })?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head { meta charset="utf-8"; title { (code) } }
            body { h1 { (code) } p { (meaning) } p { a href="/api" { "The API" } } }
        }
    };
    Ok(Html(page.into_string()))
}

async fn within_policy(request: Request<axum::body::Body>, next: Next) -> Response {
    let mut response = next.run(request).await;
    let policy = HeaderValue::from_static(PAGE_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}
