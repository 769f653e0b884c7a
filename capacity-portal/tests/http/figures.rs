//! The figures of promises: pages, API and metrics say the same of one instant, and agree with the certificate.

use crate::pages::page;
use crate::place::{Place, ROOT};
use broker::{Epoch, MoverInstance, Seq, Wanted};
use decisions::outage::{MsbHealth, OutageReason};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// A number as pages show it: with two places.
fn number(of: &Value) -> String {
    ((of.as_f64().unwrap_or_else(|| panic!("no number: {of}")) * 100.0).round() / 100.0).to_string()
}

/// The text of the cells with numbers of a row.
fn cells(row: &str) -> Vec<String> {
    let cell = |cell: &str| {
        let text = cell.split("</td>").next().unwrap_or_default();
        text.split('<').map(|part| part.split('>').next_back().unwrap_or_default()).collect()
    };
    row.split("<td")
        .skip(1)
        .filter_map(|rest| rest.split_once('>'))
        .filter(|(tag, _)| tag.contains("class=\"n"))
        .map(|(_, rest)| cell(rest))
        .collect()
}

/// The value of a tile.
fn tile(text: &str, title: &str) -> String {
    let after = text.split(&format!("<dt>{title}</dt>")).nth(1);
    let after = after.unwrap_or_else(|| panic!("no tile {title}: {text}"));
    let value = after.split("class=\"value\">").nth(1).expect("a value");
    value.split('<').next().expect("text").to_owned()
}

/// The certificate of the region as it is now. Some entries of the trail change no region, so its number may be older.
pub async fn certificate(place: &Place) -> Value {
    loop {
        let (status, said) = place.get("/ops/v1/certificate").await;
        assert_eq!(status, 200, "{said}");
        let taken_at = said["taken_at"].as_str().and_then(|at| at.parse().ok()).expect("a time");
        let seq = Seq(said["seq"].as_i64().expect("a number"));
        if place.broker.is_current(taken_at, seq).await.expect("asked") {
            return said;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Compares what every surface says of every promise; returns the certificate of the region.
async fn compared(place: &Place, phase: &str) -> Value {
    let all = certificate(place).await;
    let metrics = place.send(Method::GET, "/metrics", None, "").await.text().await.expect("text");
    let measured = |name: &str, value: &Value| {
        let line = format!("{name} {}", value.as_f64().expect("a number"));
        assert!(metrics.lines().any(|said| said == line), "{phase}: no {line:?} in\n{metrics}");
    };
    let (_, list) = page(place, "/reservations", Some(ROOT)).await;
    let (_, overview) = page(place, "/", Some(ROOT)).await;
    let rows = all["reservations"].as_array().expect("a list");
    let count = |standing: &str| rows.iter().filter(|row| row["standing"] == standing).count();
    let (short, at_risk) = (count("short"), count("at_risk"));
    assert_eq!((&all["short"], &all["at_risk"]), (&json!(short), &json!(at_risk)), "{phase}");
    measured("ras_promises{standing=\"short\"}", &all["short"]);
    measured("ras_promises{standing=\"at_risk\"}", &all["at_risk"]);
    measured("ras_promises{standing=\"guaranteed\"}", &json!(count("guaranteed")));
    measured("ras_missing_servers{when=\"now\"}", &all["missing_now_servers"]);
    measured(
        "ras_missing_servers{when=\"after_one_more_loss\"}",
        &all["missing_after_loss_servers"],
    );
    let of = rows.len();
    assert_eq!(tile(&overview, "Have what is promised"), format!("{} of {of}", of - short));
    let guaranteed = format!("{} of {of}", count("guaranteed"));
    assert_eq!(tile(&overview, "Guaranteed after one more loss"), guaranteed);
    for (missing, text) in
        [("missing_now_servers", "missing now"), ("missing_after_loss_servers", "would be missing")]
    {
        let servers = if all[missing] == 1 { "server" } else { "servers" };
        let needed = format!("at least {} {servers} {text}", number(&all[missing]));
        assert!(overview.contains(&needed), "{phase}: no {needed}: {overview}");
    }
    for row in rows {
        let name = row["reservation"].as_str().expect("text");
        let path = name.replace('/', "%2F").replace('ü', "%C3%BC");
        let (_, one) = place.get(&format!("/v1/reservations/{path}")).await;
        let (_, own) = place.get(&format!("/v1/reservations/{path}/certificate")).await;
        let said = [
            ("promised_rru", "promised_rru"),
            ("held_rru", "held_rru"),
            ("guaranteed_rru", "guaranteed_rru"),
            ("missing_now_rru", "missing_now_rru"),
            ("missing_after_loss_rru", "missing_after_loss_rru"),
            ("standing", "standing"),
        ];
        for (certified, member) in said {
            let wanted = &row[certified];
            assert_eq!(
                (wanted, wanted),
                (&own[certified], &one[member]),
                "{phase}, {name}: {member}"
            );
        }
        for (metric, member) in
            [("held", "held_rru"), ("guaranteed", "guaranteed_rru"), ("promised", "promised_rru")]
        {
            measured(
                &format!("ras_reservation_{metric}_rru{{reservation=\"{name}\"}}"),
                &one[member],
            );
        }
        let figures =
            ["promised_rru", "held_rru", "guaranteed_rru"].map(|member| number(&one[member]));
        let link = format!("<a href=\"/reservations/{path}\"");
        let line =
            list.split("<tr role=\"row\">").find(|line| line.contains(&link)).expect("a row");
        assert_eq!(cells(line)[3..], figures, "{phase}, {name}: {line}");
        let (_, shown) = page(place, &format!("/reservations/{path}"), Some(ROOT)).await;
        let tiles = ["Promised, RRU", "Held now, RRU", "Guaranteed now, RRU"];
        assert_eq!(tiles.map(|title| tile(&shown, title)), figures, "{phase}, {name}");
    }
    all
}

pub async fn lead(place: &Place) -> Epoch {
    let epoch = place.broker.lease_mover(&MoverInstance::new("m"), Duration::from_secs(60)).await;
    epoch.expect("asked").expect("free")
}

#[tokio::test]
async fn same_words_are_same_figures_everywhere() {
    let place = Place::new().await;
    let calm = compared(&place, "calm").await;
    assert_eq!((&calm["short"], &calm["at_risk"]), (&json!(0), &json!(0)), "{calm}");
    let of = |all: &Value, name: &str| -> Value {
        let rows = all["reservations"].as_array().expect("a list").iter();
        rows.clone().find(|row| row["reservation"] == name).expect("there").clone()
    };

    // An emergency raises the promise before its servers are bound.
    let asked = json!({ "reservation": "a", "rru": 4.0, "why": "site outage", "max_servers": 24 })
        .to_string();
    let asked = place.send(Method::POST, "/ops/v1/emergencies", Some(ROOT), asked).await;
    assert_eq!(asked.status(), 202);
    let epoch = lead(&place).await;
    let all = |stock: &decisions::emergency::Stock| {
        let mut groups = stock.groups.clone();
        groups.iter_mut().for_each(|group| group.servers.truncate(1));
        decisions::emergency::Picks { groups, exceeds: Vec::new() }
    };
    place.broker.grant_emergencies("m", epoch, all).await.expect("answered");
    let granted = compared(&place, "emergency").await;
    let a = of(&granted, "a");
    assert!(a["promised_rru"].as_f64() > Some(4.5), "{a}");
    assert_eq!(a["standing"], "at_risk", "{a}");

    // A move under way does not count until it is bound.
    place.publish(17, Some("a")).await;
    place.broker.open_moves("m", epoch, Wanted::All).await.expect("opened");
    let moving = compared(&place, "moves").await;
    assert_eq!(of(&moving, "a")["held_rru"], a["held_rru"], "{moving}");
    let open = place.broker.moves_under_way().await.expect("listed");
    let ids: Vec<_> = open.iter().map(|of| of.id).collect();
    place.broker.bind_moves("m", epoch, &ids).await.expect("bound");
    let bound = compared(&place, "moves done").await;
    assert!(of(&bound, "a")["held_rru"].as_f64() > a["held_rru"].as_f64(), "{bound}");

    // An MSB is lost: it holds everything it was promised, and one more loss would break it.
    let event = json!({ "event": "power", "scope": "msb", "scope_id": "msb1",
        "kind": "correlated_failure", "started_at": "2026-01-01T00:00:00Z" });
    assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    let sizes = place.broker.msb_sizes().await.expect("counted");
    let judge = |health: &[MsbHealth]| {
        let lost = health.iter().filter(|of| of.reported);
        lost.map(|of| (of.msb.clone(), OutageReason::Reported)).collect()
    };
    assert!(place.broker.note_outages("m", epoch, &sizes, judge).await.expect("noted"));
    let lost = compared(&place, "outage").await;
    let b = of(&lost, "b/ü");
    assert_eq!((&b["standing"], &b["missing_now_rru"]), (&json!("at_risk"), &json!(0.0)), "{b}");
    assert!(b["missing_after_loss_rru"].as_f64() > Some(0.0), "{b}");
    let (_, shown) = page(&place, "/msbs/msb1", Some(ROOT)).await;
    for needed in
        ["This MSB is lost", "8 servers of it are out of service", "/reservations/b%2F%C3%BC"]
    {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    assert!(!shown.contains("Its loss"), "it is lost already: {shown}");
    let row = shown.split("<tr>").find(|row| row.contains("<a href=\"/reservations/b%2F%C3%BC\""));
    let found = cells(row.expect("a row"));
    assert_eq!(found[..2], ["2", "2"], "servers here, and of these out of service");
    assert_eq!(found[4..], ["promised_rru", "held_rru", "guaranteed_rru"].map(|of| number(&b[of])));
    let (_, failures) = page(&place, "/failures", Some(ROOT)).await;
    assert!(failures.contains(">lost<") && failures.contains("goes on"), "{failures}");
    let (_, overview) = page(&place, "/", Some(ROOT)).await;
    assert!(overview.contains("after the loss of one more MSB"), "{overview}");
}

#[tokio::test]
async fn pages_agree_with_the_certificate() {
    let place = Place::new().await;
    // Work on a rack of msb0, in which `a` has two of its servers.
    let event = json!({ "event": "work", "scope": "rack", "scope_id": "rack0",
        "kind": "planned_maintenance", "started_at": "2026-01-01T00:00:00Z" });
    assert_eq!(place.post("/ops/v1/events", &event).await.0, 200);
    let seq = place.broker.last_seq().await.expect("asked").0;
    let said = loop {
        let (status, said) = place.get("/v1/reservations/a/certificate").await;
        assert_eq!(status, 200, "{said}");
        if said["seq"].as_i64() >= Some(seq) {
            break said;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(said["in_maintenance_rru"], 2.5);
    assert_ne!(said["needed_at_once_rru"], said["promised_rru"]);
    let (_, shown) = page(&place, "/reservations/a", Some(ROOT)).await;
    let tile = |title: &str, left: &str, needed: &str| {
        let after = shown.split(title).nth(1).unwrap_or_else(|| panic!("no {title}: {shown}"));
        let (left, needed) = (format!(">{}<", number(&said[left])), number(&said[needed]));
        assert!(
            after.split("<dt>").next().is_some_and(
                |tile| tile.contains(&left) && tile.contains(&format!("of {needed} needed"))
            ),
            "{title}: {after}"
        );
    };
    tile("Left at once", "left_at_once_rru", "needed_at_once_rru");
    tile("Left within 30 minutes", "left_rru", "promised_rru");
    let places = shown.split("id=\"places\"").nth(1).expect("by place");
    let msbs = said["msbs"].as_array().expect("a list");
    assert_eq!(msbs.len(), 3);
    for msb in msbs {
        let name = msb["msb"].as_str().expect("text");
        let wanted = ["rru", "left_at_once_rru", "left_rru"].map(|member| number(&msb[member]));
        let row = places.split("<tr>").find(|row| row.contains(&format!("/msbs/{name}\"")));
        assert_eq!(cells(row.expect("a row")), wanted, "{name}");
        let (_, shown) = page(&place, &format!("/msbs/{name}"), Some(ROOT)).await;
        let row = shown
            .split("<tr><th scope=\"row\">")
            .find(|row| row.starts_with("<a href=\"/reservations/a\""));
        let found = cells(row.expect("a row"));
        assert_eq!([&found[1], &found[5], &found[6]], wanted.each_ref(), "{name}: {found:?}");
        let line = format!(
            "{} of {} RRU at once, {} of {} RRU within 30 minutes",
            wanted[1],
            number(&said["needed_at_once_rru"]),
            wanted[2],
            number(&said["promised_rru"])
        );
        assert_eq!(shown.contains(&line), msb["holds"] == false, "{name}: {line}");
        // The drill of this MSB says the same, and that nothing is kept back from its verdict.
        let (_, drill) = page(&place, &format!("/drills?msb={name}"), Some(ROOT)).await;
        let row = drill
            .split("<th scope=\"row\" role=\"rowheader\">")
            .find(|row| row.starts_with("<a href=\"/reservations/a\""));
        let row = row.and_then(|row| row.split("</tr>").next()).expect("a row");
        let found = cells(row);
        assert_eq!(found[3], wanted[1], "{name}: {found:?}");
        assert_eq!(found[4], number(&said["needed_at_once_rru"]), "{name}: {found:?}");
        assert_eq!(found[5], wanted[2], "{name}: {found:?}");
        assert_eq!(row.contains("short"), msb["holds"] == false, "{name}: {row}");
        let rows = drill.split("<tbody").nth(1).and_then(|of| of.split("</tbody>").next());
        let short = rows.expect("a table").matches(">short").count();
        let verdict = match short {
            0 => "Every guarantee is kept".to_owned(),
            1 => "1 reservation would have less than is guaranteed".to_owned(),
            _ => format!("{short} reservations would have less than is guaranteed"),
        };
        assert!(drill.contains(&verdict), "{name}: {verdict}: {drill}");
    }
}
