//! Who may do what.

use crate::place::{Place, READER, ROOT, WATCH, answer};
use capacity_portal::Authority;
use reqwest::Method;

const WRITES: [&str; 3] = ["/ops/v1/events", "/ops/v1/usage", "/ops/v1/alertmanager"];

#[tokio::test]
async fn write_needs_a_token_with_the_role() {
    let place = Place::new().await;
    for path in WRITES {
        let send = async |token| answer(place.send(Method::POST, path, token, "[]").await).await;
        for (token, status, code) in [
            (None, 401, "token_missing"),
            (Some("anything else at all"), 401, "token_unknown"),
            (Some("secret-of-the-watcH"), 401, "token_unknown"),
            (Some(READER), 403, "role_missing"),
        ] {
            let (found, problem) = send(token).await;
            assert_eq!((found.as_u16(), problem["code"].as_str()), (status, Some(code)), "{path}");
        }
    }
    let (status, empty) =
        answer(place.send(Method::POST, "/ops/v1/events", Some(WATCH), "[]").await).await;
    assert_eq!((status.as_u16(), empty["refused"].as_i64()), (200, Some(0)));
    assert_eq!(place.get("/v1/reservations/a/servers").await.0, 200, "reading is open");
    assert_eq!(place.broker.last_seq().await.expect("asked").0, 1, "nothing was written");
}

#[tokio::test]
async fn write_without_tokens_explains_how_to_create_one() {
    let place = Place::with(Authority::default()).await;
    for path in WRITES {
        let (status, problem) = answer(place.send(Method::POST, path, None, "[]").await).await;
        assert_eq!((status.as_u16(), &problem["code"]), (401, &"token_missing".into()));
        assert!(problem["detail"].as_str().expect("text").contains("ras token create"));
        let unknown = place.send(Method::POST, path, Some("unknown"), "[]").await;
        let (status, problem) = answer(unknown).await;
        assert_eq!((status.as_u16(), &problem["code"]), (401, &"token_unknown".into()));
    }
    assert_eq!(place.get("/v1/reservations/a/servers").await.0, 200);
}

#[tokio::test]
async fn closed_region_is_read_with_any_token() {
    let place = Place::closed().await;
    for path in ["/v1/reservations/a/servers", "/v1/reservations/a/changes?from=99"] {
        let (status, problem) = place.get(path).await;
        assert_eq!((status.as_u16(), &problem["code"]), (401, &"token_missing".into()));
        for token in [READER, WATCH, ROOT] {
            assert_eq!(place.send(Method::GET, path, Some(token), "").await.status(), 200);
        }
    }
    // Probes are for balancers, which have no tokens.
    place.ready().await;
    for path in ["/live", "/ready", "/status", "/metrics"] {
        assert_eq!(place.send(Method::GET, path, None, "").await.status(), 200, "{path}");
    }
}

#[tokio::test]
async fn unknown_path_is_a_problem() {
    let place = Place::new().await;
    for (method, path, status, code) in [
        (Method::GET, "/v1/nowhere", 404, "not_found"),
        (Method::GET, "/ops/v1/events", 405, "method_not_allowed"),
        (Method::GET, "/v1/reservations/unknown/servers", 404, "unknown_reservation"),
        (Method::GET, "/v1/reservations/unknown/changes?from=1", 404, "unknown_reservation"),
        (Method::GET, "/v1/reservations/%00/servers", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/servers?after=%00", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/servers?limit=0", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/servers?limit=many", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/servers?offset=3", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/changes", 400, "malformed"),
        (Method::GET, "/v1/reservations/a/changes?from=-1", 400, "malformed"),
    ] {
        let (found, problem) = answer(place.send(method, path, None, "").await).await;
        assert_eq!((found.as_u16(), problem["code"].as_str()), (status, Some(code)), "{path}");
    }
    let large = vec![b' '; 5 << 20];
    let (status, problem) =
        answer(place.send(Method::POST, "/ops/v1/events", Some(WATCH), large).await).await;
    assert_eq!((status.as_u16(), &problem["code"]), (413, &"body_too_large".into()));
}
