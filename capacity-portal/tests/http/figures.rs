//! What the pages of a reservation and of an MSB say of the certificate.

use crate::pages::page;
use crate::place::{Place, ROOT};
use serde_json::{Value, json};
use std::time::Duration;

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
    assert_ne!(said["needed_at_once_rru"], said["requested_rru"]);
    // Pages have two places.
    let number =
        |of: &Value| ((of.as_f64().expect("a number") * 100.0).round() / 100.0).to_string();
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
    tile("Left within 30 minutes", "left_rru", "requested_rru");
    let cells = |row: &str| -> Vec<String> {
        let cell = |cell: &str| {
            let text = cell.split("</td>").next().unwrap_or_default();
            let words = text.split('<').map(|part| part.split('>').next_back().unwrap_or_default());
            words.collect()
        };
        row.split("<td class=\"n\">").skip(1).map(cell).collect()
    };
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
        assert_eq!([&found[0], &found[2], &found[3]], wanted.each_ref(), "{name}: {found:?}");
        let line = format!(
            "{} of {} RRU at once, {} of {} RRU within 30 minutes",
            wanted[1],
            number(&said["needed_at_once_rru"]),
            wanted[2],
            number(&said["requested_rru"])
        );
        assert_eq!(shown.contains(&line), msb["holds"] == false, "{name}: {line}");
    }
}
