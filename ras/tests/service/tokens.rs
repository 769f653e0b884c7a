//! Tokens by the command line, used over HTTP.

use crate::place::Place;
use crate::socket::actor;
use serde_json::Value;

#[test]
fn token_is_created_used_and_revoked() {
    let place = Place::new();
    place.region("region");
    let up = place.start("up --data data --listen 127.0.0.1:0 --schedule never --no-worker region");
    let make = "token create --data data --name web --role owner --owner web";
    place
        .ras("token create --data data --name x --role king")
        .fails_with(&["king", "viewer, owner"]);
    place.ras("token create --data data --name x --role owner").fails_with(&["names the owner"]);
    let made = place.json(make);
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    assert_eq!((&made["token"]["created_by"], &made["token"]["state"]), (&actor(), &"good".into()));
    place.ras(make).fails_with(&["already"]);

    // It says who asks, and may not say that something is out of use.
    let event = r#"{"event": "e", "scope": "rack", "scope_id": "r", "kind": "software"}"#;
    let (code, problem) = up.post("/ops/v1/events", &secret, event);
    let problem: Value = serde_json::from_str(&problem).expect("JSON");
    assert_eq!((code, &problem["code"]), (403, &"role_missing".into()));
    let listed = place.ras("token list --data data").code(0).stdout();
    assert!(listed.contains("web") && !listed.contains(&secret), "{listed}");
    assert!(!listed.contains("never"), "it was used: {listed}");

    place.ras("token revoke web --data data").code(0);
    place.ras("token revoke web --data data").fails_with(&["no token"]);
    assert!(place.ras("token list --data data").code(0).stdout().contains("no tokens"));
    let all = place.json("token list --all --data data");
    assert_eq!(
        (&all["tokens"][0]["state"], &all["tokens"][0]["revoked_by"]),
        (&"revoked".into(), &actor())
    );
    let refused = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        up.post("/ops/v1/events", &secret, event).0 == 401
    });
    assert!(refused, "within seconds");
    up.stop();
}

#[test]
fn first_admin_token_needs_no_server_and_is_the_only_one() {
    let place = Place::new();
    place.region("region");
    place.ras("snapshot load region --data data -q").code(0);
    let first = place.json("token first --name ann --data data");
    assert_eq!(
        (&first["token"]["role"], &first["token"]["created_by"]),
        (&"admin".into(), &actor())
    );
    place.ras("token first --name bob --data data").fails_with(&["has an admin token"]);
    let up = place.start("up --data data --listen 127.0.0.1:0 --schedule never --no-worker");
    let secret = first["secret"].as_str().expect("a secret");
    let (code, solve) = up.post("/ops/v1/solves", secret, "");
    assert_eq!(code, 202, "{solve}");
    up.stop();
}
