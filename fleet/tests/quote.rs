//! Quotes as text.

use fleet::quote::Quote;
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
