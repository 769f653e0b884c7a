//! Quotes as text.

use chrono::DateTime;
use fleet::quote::{HIDDEN, Quote, QuotedArrival, net_moves};
use serde_json::{Value, json};

fn quote(moves: &[(Option<&str>, Option<&str>)]) -> Quote {
    let moves: Vec<Value> = moves
        .iter()
        .map(|(from, to)| {
            json!({ "server_id": "s", "hardware_type": "t", "msb": "m", "from": from, "to": to,
                "in_use": false })
        })
        .collect();
    let document = json!({
        "format": "ras-plan/1", "reservation_id": "web", "change": "changed", "granted": "in_full",
        "capacity_rru": 2.0, "guaranteed_today_rru": 0.0, "granted_rru": 2.0, "msb_buffer": false,
        "sources": [], "moves": moves, "arrival": null, "refusal": null,
        "cost": { "in_use": 0, "idle": 0, "acquired": 0, "own_in_use": 0, "own_idle": 0, "lent": 0,
            "price": 0.0 },
        "reservation": { "servers": 0, "assigned_rru": 0.0, "largest_msb": null,
            "largest_msb_rru": 0.0, "guaranteed_rru": 0.0, "datacenters": [] },
        "primal": 0.0, "shortfall_cost": 0.0, "dual_bound": 0.0, "surely_missing_rru": 0.0,
        "complete": true, "audit_clean": true, "seconds": { "read": 0.0, "total": 0.0 },
    });
    serde_json::from_value(document).expect("a quote")
}

#[test]
fn destinations_say_where_every_server_goes() {
    assert_eq!(quote(&[]).destinations(), None);
    let one = quote(&[(None, Some("web"))]).destinations();
    assert_eq!(one.as_deref(), Some("1 server moves in all: 1 to web"));
    let moves = [
        (None, Some("web")),
        (Some("feed"), Some("web")),
        (None, Some("feed")),
        (Some("web"), None),
    ];
    let text = "4 servers move in all: 2 to web, 1 to other reservations for what those give up or lack, 1 becomes free";
    assert_eq!(quote(&moves).destinations().as_deref(), Some(text));
}

#[test]
fn net_moves_count_each_server_once() {
    // The second change moves the server on, the third moves it back.
    let on = quote(&[(Some("feed"), Some("web"))]);
    let further = quote(&[(Some("web"), Some("ads"))]);
    let back = quote(&[(Some("ads"), Some("feed"))]);
    let moved = net_moves([&on, &further]);
    let ends: Vec<_> = moved.iter().map(|of| (of.from.as_deref(), of.to.as_deref())).collect();
    assert_eq!(ends, [(Some("feed"), Some("ads"))]);
    assert_eq!(net_moves([&on, &further, &back]), []);
    // Holders that the reader may not see may differ.
    let hidden = quote(&[(Some(HIDDEN), Some(HIDDEN))]);
    assert_eq!(net_moves([&hidden]).len(), 1);
}

#[test]
fn arrival_counts_servers_that_come_later() {
    let arrival = |servers, later| {
        let by = Some(DateTime::UNIX_EPOCH);
        QuotedArrival { servers, by, later, steps: Vec::new(), limit: None, limit_of: None }
            .to_string()
    };
    assert_eq!(arrival(286, 0), "by 1970-01-01 00:00 UTC, 286 servers");
    let some = "by 1970-01-01 00:00 UTC, 200 of 286 servers, the others not within 31 days";
    assert_eq!(arrival(286, 86), some);
}

#[test]
fn limit_of_a_hidden_reservation_is_hidden() {
    let limited = |names: &[&str]| {
        let mut of = quote(&[(Some("feed"), Some("web"))]);
        let (limit, limit_of) = (Some("churn contract".to_owned()), Some("feed".into()));
        let steps = Vec::new();
        of.arrival = Some(QuotedArrival { servers: 1, by: None, later: 1, steps, limit, limit_of });
        of.hide(|name| names.contains(&&**name));
        of.arrival.expect("an arrival").to_string()
    };
    assert!(limited(&["web", "feed"]).ends_with("; limit: churn contract of feed"));
    assert!(limited(&["web"]).ends_with("; limit: churn contract of another reservation"));
}
