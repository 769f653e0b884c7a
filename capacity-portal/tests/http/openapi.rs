//! The description of the interface.

use crate::place::Place;
use reqwest::Method;
use serde_json::Value;

/// `EXPECTORATE=overwrite cargo test -p capacity-portal` rewrites it. Within a major version of a path
/// what is there stays as it is; additions are the only change.
#[test]
fn committed_documents_match_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/openapi.json");
    expectorate::assert_contents(path, &capacity_portal::openapi());
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/capacity-request.schema.json");
    expectorate::assert_contents(path, &capacity_portal::capacity_request_schema());
}

#[tokio::test]
async fn description_is_served_without_external_resources() {
    let place = Place::closed().await;
    let response = place.send(Method::GET, "/openapi.json", None, "").await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let served = response.text().await.expect("text");
    let served: Value = serde_json::from_str(&served).expect("JSON");
    assert_eq!(
        served["paths"]["/v1/reservations/{name}/servers"]["get"]["tags"][0],
        "reservations"
    );
    for path in ["/api/", "/api/swagger-ui-bundle.js", "/api/swagger-ui.css", "/api/index.css"] {
        let response = place.send(Method::GET, path, None, "").await;
        assert_eq!(response.status(), 200, "{path}");
        let policy =
            response.headers()["content-security-policy"].to_str().expect("text").to_owned();
        assert!(policy.contains("default-src 'none'") && policy.contains("script-src 'self';"));
        let page = response.text().await.expect("text");
        assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "{path}");
    }
    let schema = place.send(Method::GET, "/schemas/capacity-request.json", None, "").await;
    assert_eq!(schema.headers()["content-type"], "application/schema+json");
    assert_eq!(schema.text().await.expect("text"), capacity_portal::capacity_request_schema());
    let begin = place.send(Method::GET, "/api/swagger-initializer.js", None, "").await;
    let begin = begin.text().await.expect("text");
    assert!(begin.contains("/openapi.json"), "{begin}");
}
