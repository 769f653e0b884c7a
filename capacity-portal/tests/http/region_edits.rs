//! What operators change over HTTP, on a real Postgres: and that a region made so is the region that an
//! import of the same rows would be.

use crate::place::{Place, ROOT, answer, region, tokens};
use crate::who_may::token;
use broker::{ImportOptions, Missing};
use capacity_portal::{Authority, PortalSettings};
use fleet::{RegionSnapshot, SnapshotParts};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

async fn ask(place: &Place, method: Method, path: &str, body: &Value) -> (StatusCode, Value) {
    let request = place.client.request(method, format!("{}{path}", place.base)).bearer_auth(ROOT);
    let request = request.header("If-Match", "*").body(body.to_string());
    answer(request.send().await.expect("an answer")).await
}

/// The rows of the region, as a snapshot of it has them, by the names of what they are about.
async fn rows(place: &Place) -> SnapshotParts {
    let mut parts = place.broker.export(None).await.expect("exported").parts;
    parts.taken_at = chrono::DateTime::UNIX_EPOCH;
    parts.reservations.sort_by(|a, b| a.reservation_id.cmp(&b.reservation_id));
    parts.rru.sort_by(|a, b| {
        (&a.reservation_id, &a.hardware_type).cmp(&(&b.reservation_id, &b.hardware_type))
    });
    parts
}

/// Everything that can be made piece by piece, made so; then its rows imported into an empty store.
#[tokio::test]
async fn region_built_over_http_exports_like_an_import() {
    let place = Place::new().await;
    for (method, path, body) in [
        (
            "PATCH",
            "/ops/v1/region",
            json!({ "move_in_use": 20.0, "msb_alpha": 0.5, "shared_buffer_fraction": 0.25 }),
        ),
        ("POST", "/ops/v1/hardware-types", json!({ "hardware_types": ["new", "other"] })),
        (
            "POST",
            "/ops/v1/servers",
            json!({ "servers": [
            { "server": "n0", "datacenter": "dc2", "msb": "msb9", "rack": "rack90", "hardware_type": "new", "power_watts": 350.5 },
            { "server": "n1", "rack": "rack90", "hardware_type": "new" },
            { "server": "n2", "rack": "rack0", "hardware_type": "type" },
        ] }),
        ),
        ("PUT", "/ops/v1/shared-buffers/new", json!({ "servers": 1 })),
        (
            "PUT",
            "/ops/v1/elastic-reservations/batch",
            json!({ "owner": "lab", "rru": { "new": 2.5 },
            "hardware_types": ["type"], "priority": 3, "host_profile": "linux" }),
        ),
        (
            "POST",
            "/ops/v1/servers/move",
            json!({ "servers": [
            { "server": "s20", "rack": "rack91", "msb": "msb9" }, { "server": "s08", "rack": "rack1" },
        ] }),
        ),
        ("POST", "/ops/v1/servers/remove", json!({ "servers": ["s21", "s22"] })),
    ] {
        let (status, said) = ask(&place, method.parse().expect("a method"), path, &body).await;
        assert_eq!(status, 200, "{method} {path}: {said}");
    }
    // The rows as an operator writes them by hand.
    let mut parts = region().to_parts();
    parts.weights.move_in_use = 20.0;
    parts.weights.msb_alpha = Some(0.5);
    parts.shared_buffer_fraction = Some(0.25);
    let free = |name: &str, datacenter: &str, msb: &str, rack: &str, ty: &str| fleet::ServerRow {
        server_id: name.into(),
        datacenter: datacenter.into(),
        msb: msb.into(),
        rack: rack.into(),
        hardware_type: ty.into(),
        current_reservation: None,
        target_reservation: None,
        target_pending: false,
        in_use: false,
        loaned_to: None,
        power_watts: (name == "n0").then_some(350.5),
    };
    parts.servers.retain(|row| !["s21", "s22"].contains(&&*row.server_id));
    parts.servers.push(free("n0", "dc2", "msb9", "rack90", "new"));
    parts.servers.push(free("n1", "dc2", "msb9", "rack90", "new"));
    parts.servers.push(free("n2", "dc", "msb0", "rack0", "type"));
    for row in &mut parts.servers {
        match &*row.server_id {
            "s20" => {
                (row.rack, row.msb, row.datacenter) =
                    ("rack91".into(), "msb9".into(), "dc2".into());
            }
            "s08" => (row.rack, row.msb) = ("rack1".into(), "msb1".into()),
            _ => {}
        }
    }
    let plain = parts.reservations[0].clone();
    let row = |id: &str, owner: &str, kind: &str| fleet::ReservationRow {
        reservation_id: id.into(),
        owner: owner.into(),
        kind: kind.into(),
        capacity_rru: 0.0,
        msb_buffer: false,
        priority: 0,
        ..plain.clone()
    };
    parts.reservations.push(fleet::ReservationRow {
        priority: 3,
        host_profile: Some("linux".into()),
        ..row("batch", "lab", "elastic")
    });
    parts.reservations.push(fleet::ReservationRow {
        capacity_rru: 1.0,
        ..row("shared-buffer/new", "shared-buffer", "shared_buffer")
    });
    let value = |id: &str, ty: &str, rru: f64| fleet::RruRow {
        reservation_id: id.into(),
        hardware_type: ty.into(),
        rru,
    };
    parts.rru.push(value("batch", "new", 2.5));
    parts.rru.push(value("batch", "type", 1.0));
    parts.rru.push(value("shared-buffer/new", "new", 1.0));
    let wanted = RegionSnapshot::new(parts).expect("a snapshot");
    let other = Place::of(Some(&wanted), capacity_portal::PortalSettings::default()).await;
    assert_eq!(rows(&place).await, rows(&other).await);
    // And importing that changes nothing.
    let options = ImportOptions { missing: Missing::Remove, ..ImportOptions::default() };
    let loaded = place.broker.load("test", &wanted, options).await.expect("loaded");
    assert!(loaded.plan.is_empty() && !loaded.plan.lacks_something(), "{:?}", loaded.plan);
    assert_eq!(place.broker.check().await.expect("checked"), [""; 0]);
    let (_, trail) = place.get("/ops/v1/trail?actor=root").await;
    let actions: Vec<&str> = trail["entries"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|of| of["action"].as_str())
        .collect();
    assert_eq!(
        actions,
        [
            "servers_decommissioned",
            "servers_relocated",
            "elastic_set",
            "shared_buffer_set",
            "servers_racked",
            "hardware_type_added",
            "hardware_type_added",
            "region_settings_set"
        ],
        "{trail}"
    );
}

#[tokio::test]
async fn invalid_edit_lists_fields_and_writes_nothing() {
    let place = Place::new().await;
    let seq = place.broker.last_seq().await.expect("asked");
    for (method, path, body, fields) in [
        (
            "PATCH",
            "/ops/v1/region",
            json!({ "move_in_use": -1, "rack_alpha": 1.5, "shared_buffer_fraction": 1 }),
            vec![
                ("move_in_use", "out_of_range", json!(0.0)),
                ("rack_alpha", "out_of_range", json!(1.0)),
                ("shared_buffer_fraction", "out_of_range", json!(0.999_999)),
            ],
        ),
        (
            "PUT",
            "/ops/v1/shared-buffers/type",
            json!({ "servers": 30 }),
            vec![("servers", "out_of_range", json!(24.0))],
        ),
        (
            "PUT",
            "/ops/v1/shared-buffers/none",
            json!({ "servers": 0.5 }),
            vec![
                ("hardware_type", "unknown_hardware_type", Value::Null),
                ("servers", "out_of_range", json!(0.0)),
            ],
        ),
        (
            "PUT",
            "/ops/v1/elastic-reservations/a",
            json!({ "owner": "", "rru": { "none": 0 }, "priority": -1, "share": 0 }),
            vec![
                ("share", "out_of_range", json!(1.0)),
                ("owner", "length", Value::Null),
                ("reservation", "other_kind", Value::Null),
                ("priority", "out_of_range", json!(0.0)),
                ("rru.none", "unknown_hardware_type", Value::Null),
                ("rru.none", "out_of_range", json!(0.000_001)),
            ],
        ),
        (
            "POST",
            "/ops/v1/servers",
            json!({ "servers": [
            { "server": "s00", "rack": "rack0", "hardware_type": "none", "power_watts": -1 },
            { "server": "x", "rack": "rack0", "msb": "msb2", "hardware_type": "type" },
            { "server": "x", "rack": "new", "hardware_type": "type" },
            { "server": "y", "rack": "new", "msb": "new", "hardware_type": "type" },
        ] }),
            vec![
                ("servers[2].server", "duplicate", Value::Null),
                ("servers[0].server", "exists", Value::Null),
                ("servers[0].hardware_type", "unknown_hardware_type", Value::Null),
                ("servers[0].power_watts", "out_of_range", json!(0.0)),
                ("servers[1].msb", "rack_in_other_msb", Value::Null),
                ("servers[2].msb", "missing", Value::Null),
                ("servers[3].datacenter", "missing", Value::Null),
            ],
        ),
        (
            "POST",
            "/ops/v1/servers",
            json!({ "servers": [{ "server": "x" }, { "rack": 3 }] }),
            vec![
                ("servers[0]", "malformed", Value::Null),
                ("servers[1]", "malformed", Value::Null),
            ],
        ),
        (
            "POST",
            "/ops/v1/servers/remove",
            json!({ "servers": ["s00", "s05", "none"] }),
            vec![
                ("servers[0].server", "in_use", Value::Null),
                ("servers[1].server", "held", Value::Null),
                ("servers[2].server", "unknown_server", Value::Null),
            ],
        ),
        (
            "POST",
            "/ops/v1/servers/move",
            json!({ "servers": [{ "server": "s01", "rack": "rack0" }] }),
            vec![("servers[0].server", "in_use", Value::Null)],
        ),
        (
            "POST",
            "/ops/v1/hardware-types",
            json!({ "hardware_types": [""] }),
            vec![("hardware_types[0]", "length", Value::Null)],
        ),
    ] {
        let (status, problem) = ask(&place, method.parse().expect("a method"), path, &body).await;
        assert_eq!(
            (status.as_u16(), &problem["code"]),
            (422, &"invalid".into()),
            "{path}: {problem}"
        );
        let said: Vec<(String, String, Value)> = problem["errors"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|of| {
                (
                    of["field"].as_str().expect("text").to_owned(),
                    of["reason"].as_str().expect("text").to_owned(),
                    of["nearest"].clone(),
                )
            })
            .collect();
        let wanted: Vec<(String, String, Value)> = fields
            .into_iter()
            .map(|(field, reason, nearest)| (field.to_owned(), reason.to_owned(), nearest))
            .collect();
        assert_eq!(said, wanted, "{method} {path}: {problem}");
    }
    assert_eq!(place.broker.last_seq().await.expect("asked"), seq, "nothing was written");
}

#[tokio::test]
async fn edits_check_versions_previews_and_keys() {
    let place = Place::new().await;
    let sent = place.send(Method::GET, "/ops/v1/region", None, "").await;
    let etag = sent.headers()["etag"].to_str().expect("text").to_owned();
    let set = async |seen: Option<&str>, tau: f64| {
        let path = format!("{}/ops/v1/region", place.base);
        let mut request = place.client.patch(path).bearer_auth(ROOT);
        if let Some(seen) = seen {
            request = request.header("If-Match", seen);
        }
        let body = json!({ "buffer_tau": tau }).to_string();
        answer(request.body(body).send().await.expect("an answer")).await
    };
    assert_eq!(set(None, 7.0).await.0, 428);
    let (status, changed) = set(Some(&etag), 7.0).await;
    assert_eq!((status.as_u16(), &changed["buffer_tau"]), (200, &7.0.into()));
    assert_eq!(set(Some(&etag), 8.0).await.1["code"], "version_stale");

    let seq = place.broker.last_seq().await.expect("asked");
    let body = json!({ "servers": [{ "server": "n", "rack": "rack0", "hardware_type": "type" }] });
    let (status, preview) = ask(&place, Method::POST, "/ops/v1/servers?preview=true", &body).await;
    assert_eq!((status.as_u16(), &preview["applied"]), (200, &false.into()), "{preview}");
    assert_eq!(
        preview["change"],
        json!([{ "hardware_type": "type", "msb": "msb0", "servers": 1 }])
    );
    assert_eq!(place.broker.last_seq().await.expect("asked"), seq, "a preview writes nothing");
    let once = async || {
        let request = place.client.post(format!("{}/ops/v1/servers", place.base)).bearer_auth(ROOT);
        let request = request.header("Idempotency-Key", "k").body(body.to_string());
        answer(request.send().await.expect("an answer")).await
    };
    let first = once().await;
    assert_eq!((first.0.as_u16(), &first.1["applied"]), (200, &true.into()));
    assert_eq!(once().await, first, "asked again, the first answer");
    assert_eq!(place.broker.last_seq().await.expect("asked").0, seq.0 + 1, "racked once");

    // A solve under way skips what moved: its generation has.
    let generation = async |name: &str| {
        let export = place.broker.export(None).await.expect("exported");
        let at = export.parts.servers.iter().position(|row| *row.server_id == *name);
        export.generations[at.expect("there")]
    };
    let (before, other) = (generation("s20").await, generation("s19").await);
    let body = json!({ "servers": [{ "server": "s20", "rack": "rack1" }] });
    assert_eq!(ask(&place, Method::POST, "/ops/v1/servers/move", &body).await.0, 200);
    assert_eq!((generation("s20").await, generation("s19").await), (before + 1, other));
    let version = place.broker.version().await.expect("asked");
    assert_eq!(version.0, 1, "the targets keep their version: a solve under way is published");
}

#[tokio::test]
async fn elastic_reservation_is_created_changed_and_ended() {
    let place = Place::new().await;
    let path = "/ops/v1/elastic-reservations/batch";
    let body = json!({ "owner": "lab", "hardware_types": ["type"], "share": 2.0 });
    let put = async |body: &Value| {
        answer(place.send(Method::PUT, path, Some(ROOT), body.to_string()).await).await
    };
    let (status, made) = put(&body).await;
    assert_eq!(
        (status.as_u16(), &made["share"], &made["rru"]),
        (200, &2.0.into(), &json!({ "type": 1.0 }))
    );
    assert_eq!((&made["borrows"], &made["ending"]), (&0.into(), &false.into()));
    let shown = place.get("/v1/reservations/batch").await.1;
    assert_eq!(shown["kind"], "elastic", "{shown}");
    let (_, changed) = put(&json!({ "owner": "lab", "rru": { "type": 3.5 } })).await;
    assert_eq!((&changed["rru"]["type"], &changed["share"]), (&3.5.into(), &Value::Null));

    // It borrows two servers; ended, it goes once they are back.
    let epoch = place
        .broker
        .lease_mover(&broker::MoverInstance::new("m"), std::time::Duration::from_secs(60))
        .await;
    let epoch = epoch.expect("asked").expect("free");
    let lend = |view: &decisions::elastic::LoanView| {
        let group = view.groups.iter().find(|group| group.idle > 0).expect("something idle");
        let loan = decisions::elastic::Loan {
            borrower: "batch".into(),
            owner: group.owner.clone(),
            msb: group.msb.clone(),
            hardware_type: group.hardware_type.clone(),
            count: 1,
        };
        decisions::elastic::LoanPlan { lend: vec![loan], recall: Vec::new() }
    };
    let lent = place.broker.balance_loans("m", epoch, lend).await.expect("lent");
    assert_eq!(lent.lent, 1);
    assert_eq!(place.get(path).await.1["borrows"], 1);
    let (status, ending) = answer(place.send(Method::DELETE, path, Some(ROOT), "").await).await;
    assert_eq!((status.as_u16(), &ending["returning"]), (202, &1.into()), "{ending}");
    assert_eq!(place.get(path).await.1["ending"], true);
    let none = |view: &decisions::elastic::LoanView| {
        assert!(view.borrowers.is_empty(), "it is lent nothing more");
        decisions::elastic::LoanPlan::default()
    };
    let recalled = place.broker.balance_loans("m", epoch, none).await.expect("looked");
    assert_eq!(recalled.recalled, 1, "what it has comes back");
    let (status, _) = put(&json!({ "owner": "lab", "rru": { "none": 1 } })).await;
    assert_eq!(status, 422);
    // Another that borrows nothing goes at once.
    let other = "/ops/v1/elastic-reservations/trial";
    let sent = place.send(Method::PUT, other, Some(ROOT), body.to_string()).await;
    assert_eq!(sent.status(), 200);
    let (status, gone) = answer(place.send(Method::DELETE, other, Some(ROOT), "").await).await;
    assert_eq!((status.as_u16(), &gone["returning"]), (200, &0.into()));
    assert_eq!(place.get(other).await.1["code"], "unknown_reservation");
}

#[tokio::test]
async fn held_servers_are_drained_or_kept() {
    let place = Place::new().await;
    let path = "/ops/v1/servers/remove";
    let body = json!({ "servers": ["s00", "s20"] });
    let (status, refused) = ask(&place, Method::POST, path, &body).await;
    assert_eq!((status.as_u16(), &refused["errors"][0]["reason"]), (422, &"in_use".into()));
    assert!(refused["errors"][0]["detail"].as_str().expect("text").contains("`drain`"));
    let seq = place.broker.last_seq().await.expect("asked");
    let preview = format!("{path}?drain=true&preview=true");
    let (status, seen) = ask(&place, Method::POST, &preview, &body).await;
    assert_eq!((status.as_u16(), &seen["draining"]), (200, &json!(["s00"])), "{seen}");
    assert_eq!(place.broker.last_seq().await.expect("asked"), seq, "a preview writes nothing");
    let (status, done) = ask(&place, Method::POST, &format!("{path}?drain=true"), &body).await;
    assert_eq!((status.as_u16(), &done["held"]), (200, &json!({ "a": 1 })), "{done}");
    let (_, drained) = place.get("/ops/v1/drained-servers").await;
    let row = &drained["servers"][0];
    let said = (&row["server"], &row["reservation"], &row["progress"], &row["asked_by"]);
    let expected = (&"s00".into(), &"a".into(), &"waits for its move".into(), &"root".into());
    assert_eq!(said, expected, "{drained}");
    assert_eq!(place.get("/ops/v1/servers/s20").await.0, 404, "what was free is gone");
    // The effect counts at once: the owner has one server in service less.
    let keep = "/ops/v1/servers/keep";
    let (status, wrong) =
        ask(&place, Method::POST, keep, &json!({ "servers": ["s00", "s01"] })).await;
    assert_eq!((status.as_u16(), &wrong["errors"][0]["field"]), (422, &"servers[1]".into()));
    let (status, left) = ask(&place, Method::POST, keep, &json!({ "servers": ["s00"] })).await;
    assert_eq!((status.as_u16(), &left["servers"]), (200, &json!([])), "{left}");
    let export = place.broker.export(None).await.expect("exported");
    let s00 = export.parts.servers.iter().find(|row| *row.server_id == *"s00").expect("there");
    assert!(!s00.target_pending && s00.current_reservation.as_deref() == Some("a"));
    assert_eq!(place.broker.check().await.expect("checked"), [""; 0]);
}

#[tokio::test]
async fn last_server_of_allowed_datacenter_is_not_removed() {
    let mut parts = region().to_parts();
    let place_of = |row: &mut fleet::ServerRow, end: &str| {
        row.datacenter = format!("dc-{end}").into();
        row.msb = format!("msb-{end}").into();
        row.rack = format!("rack-{end}").into();
        row.current_reservation = None;
    };
    for row in parts.servers.iter_mut().filter(|row| *row.server_id == *"s23") {
        place_of(row, "far");
    }
    for row in parts.servers.iter_mut().filter(|row| *row.server_id == *"s22") {
        place_of(row, "unused");
    }
    for datacenter in ["dc", "dc-far"] {
        let row = fleet::AllowedDatacenterRow {
            reservation_id: "a".into(),
            datacenter: datacenter.into(),
        };
        parts.allowed_datacenters.push(row);
    }
    for row in parts.reservations.iter_mut().filter(|row| *row.reservation_id == *"a") {
        (row.replicas, row.replicas_per_msb) = (Some(3), Some(2));
    }
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let authority = Authority::new(tokens(), false).expect("tokens");
    let settings = PortalSettings { authority, ..PortalSettings::default() };
    let place = Place::of(Some(&region), settings).await;
    for path in ["/ops/v1/servers/remove", "/ops/v1/servers/remove?drain=true"] {
        let (status, refused) =
            ask(&place, Method::POST, path, &json!({ "servers": ["s23"] })).await;
        let error = &refused["errors"][0];
        assert_eq!((status.as_u16(), &error["reason"]), (422, &"last_of_datacenter".into()));
        let detail = error["detail"].as_str().expect("text");
        assert!(detail.contains("\"dc-far\"") && detail.contains("and a may have"), "{detail}");
    }
    let away = json!({ "servers": [{ "server": "s23", "rack": "rack0" }] });
    let (status, refused) = ask(&place, Method::POST, "/ops/v1/servers/move", &away).await;
    assert_eq!(
        (status.as_u16(), &refused["errors"][0]["reason"]),
        (422, &"last_of_datacenter".into())
    );
    // If no reservation is limited to the datacenter, its last server is removed; the rules of `a` stay.
    let (status, gone) =
        ask(&place, Method::POST, "/ops/v1/servers/remove", &json!({ "servers": ["s22"] })).await;
    assert_eq!(status, 200, "{gone}");
    let after = place.broker.export(None).await.expect("exported").parts;
    assert_eq!(after.allowed_datacenters, region.to_parts().allowed_datacenters);
    let a = after.reservations.iter().find(|row| *row.reservation_id == *"a").expect("there");
    assert_eq!((a.replicas, a.replicas_per_msb), (Some(3), Some(2)));
}

#[tokio::test]
async fn hardware_type_rename_updates_references() {
    let place = Place::new().await;
    let types = "/ops/v1/hardware-types";
    let put = async |path: &str, body: Value| ask(&place, Method::PUT, path, &body).await.0;
    assert_eq!(put("/ops/v1/shared-buffers/type", json!({ "servers": 2 })).await, 200);
    assert_eq!(put("/ops/v1/rru-profiles/general", json!({ "rru": { "type": 2 } })).await, 200);
    let body = json!({ "owner": "lab", "hardware_types": ["type"] });
    assert_eq!(put("/ops/v1/elastic-reservations/batch", body).await, 200);
    let limit = broker::QuotaAsked {
        profile: None,
        hardware_type: Some("type".into()),
        limit: fleet::Rru::units(9),
    };
    place.broker.set_quota("ann", "a", &[limit], None).await.expect("set");
    ask(&place, Method::POST, types, &json!({ "hardware_types": ["other"] })).await;
    // A request that is decided later says what servers are worth to it.
    let later = place.broker.clock().await.expect("asked") + chrono::TimeDelta::days(1);
    let asked = json!({ "reservation": "new", "owner": "lab", "capacity_rru": 2, "rru": { "type": 1 },
        "starts_at": later });
    let lab = token(&place, "lab", broker::Role::Owner, Some("lab")).await;
    let sent = place.send(Method::POST, "/v1/reservations", Some(&lab), asked.to_string()).await;
    assert_eq!(sent.status(), 202);
    let path = |name: &str| format!("{types}/{name}");
    for (name, body, status, code) in [
        ("none", json!({ "name": "x" }), 404, "unknown_hardware_type"),
        ("type", json!({ "name": "other" }), 422, "invalid"),
        ("type", json!({ "name": "" }), 422, "invalid"),
        ("type", json!({ "title": "x" }), 400, "malformed"),
    ] {
        let (found, problem) = ask(&place, Method::PATCH, &path(name), &body).await;
        assert_eq!((found.as_u16(), &problem["code"]), (status, &code.into()), "{problem}");
    }
    let before = place.broker.export(None).await.expect("exported");
    let (status, renamed) =
        ask(&place, Method::PATCH, &path("type"), &json!({ "name": "gen4" })).await;
    assert_eq!((status.as_u16(), &renamed["servers"]), (200, &24.into()), "{renamed}");
    assert_eq!(renamed["shared_buffer"]["reservation"], "shared-buffer/gen4");
    let after = place.broker.export(None).await.expect("exported");
    let text =
        |of: &fleet::SnapshotParts| format!("{:?}{:?}{:?}", of.servers, of.reservations, of.rru);
    assert_eq!(
        text(&before.parts).replace("\"type\"", "\"gen4\"").replace("/type\"", "/gen4\""),
        text(&after.parts)
    );
    assert_eq!(after.generations, before.generations);
    let profile = place.get("/ops/v1/rru-profiles/general").await.1;
    assert_eq!(profile["rru"], json!({ "gen4": 2.0 }));
    assert_eq!(
        place.broker.quotas(None).await.expect("read")[0].limits[0].measure.to_string(),
        "servers of hardware type \"gen4\""
    );
    let filter = broker::RequestFilter::default();
    let asked = place.broker.requests(&filter, None, 9).await.expect("listed").remove(0).asking;
    assert!(asked.change.rru.expect("values").contains_key("gen4"));

    let (status, used) = ask(&place, Method::DELETE, &path("gen4"), &Value::Null).await;
    assert_eq!(status, 422, "{used}");
    let said: Vec<&str> = used["errors"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|of| of["detail"].as_str())
        .collect();
    for needed in [
        "24 servers",
        "4 reservations use it",
        "a, b/ü, batch",
        "1 requests",
        "general",
        "1 quotas",
    ] {
        assert!(said.iter().any(|said| said.contains(needed)), "{needed}: {said:?}");
    }
    let (status, gone) = ask(&place, Method::DELETE, &path("other"), &Value::Null).await;
    assert_eq!((status.as_u16(), &gone["removed"]), (200, &"other".into()), "{gone}");
    let names = async || {
        let all = place.broker.hardware_types().await.expect("read");
        all.iter().map(|of| of.hardware_type.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names().await, ["gen4"]);
    assert_eq!(ask(&place, Method::DELETE, &path("other"), &Value::Null).await.0, 404);
    // The name is free again, to be added or given.
    let (status, renamed) =
        ask(&place, Method::PATCH, &path("gen4"), &json!({ "name": "other" })).await;
    assert_eq!((status.as_u16(), &renamed["hardware_type"]), (200, &"other".into()), "{renamed}");
    ask(&place, Method::POST, types, &json!({ "hardware_types": ["gen4"] })).await;
    assert_eq!(names().await, ["gen4", "other"]);
    assert_eq!(place.broker.check().await.expect("checked"), [""; 0]);
}
