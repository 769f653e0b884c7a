//! Contents of pages: racks by view, the heat map of a solve, arriving servers, hardware with
//! explanations.

use crate::pages::page;
use crate::place::{PATIENCE, Place, ROOT, answer, region};
use broker::{JobKind, Publication, PublicationId, SolveBasis, SolveEnd, SolveStep};
use capacity_portal::PortalSettings;
use fleet::RegionSnapshot;
use reqwest::Method;
use serde_json::{Value, json};
use std::time::Duration;

/// The list of racks on the page of an MSB.
fn racks(text: &str) -> &str {
    let from = text.split("<ul class=\"racks\"").nth(1).expect("racks");
    from.split("</ul>").next().expect("an end")
}

#[tokio::test]
async fn msb_page_orders_racks_by_view() {
    let place = Place::new().await;
    // Of rack0: s00 in use, s06 and s12 idle, s18 free; of rack3: s03, s09 and s15, s21.
    for (view, class, each) in [
        ("in_use", "in-use", "1 of 4"),
        ("idle", "idle", "2 of 4"),
        ("shared", "shared", "0 of 4"),
        ("free", "free", "1 of 4"),
        ("down", "down", "0 of 4"),
    ] {
        let (status, text) = page(&place, &format!("/msbs/msb0?show={view}"), None).await;
        assert_eq!(status, 200);
        let racks = racks(&text);
        assert_eq!(racks.matches(each).count(), 2, "{view}: {racks}");
        for other in ["in-use", "idle", "shared", "free", "down"] {
            let drawn = racks.contains(&format!("rect class=\"{other}\""));
            assert_eq!(drawn, other == class && !each.starts_with('0'), "{view}, {other}: {racks}");
        }
        assert!(text.contains(&format!("?show={view}#map\" aria-current=\"true\"")), "{text}");
    }
    let (_, all) = page(&place, "/msbs/msb0", None).await;
    for part in ["in-use", "idle", "free"] {
        assert!(racks(&all).contains(&format!("rect class=\"{part}\"")), "{part}: {all}");
    }
    // The rack with the most servers of the use is first.
    let (_, before) = page(&place, "/msbs/msb0?show=in_use", None).await;
    let first = |text: &str| racks(text).find("rack0") < racks(text).find("rack3");
    assert!(first(&before), "by name where they are equal");
    let usage = [("s00".into(), false), ("s09".into(), true), ("s15".into(), true)];
    place.broker.report_usage("watch", &usage).await.expect("reported");
    until(&place, "/msbs/msb0?show=in_use", |text| !first(text)).await;
}

/// Waits until a page satisfies a condition: pages are some seconds old.
async fn until(place: &Place, path: &str, says: impl Fn(&str) -> bool) -> String {
    let said = async {
        loop {
            let (_, text) = page(place, path, None).await;
            if says(&text) {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    tokio::time::timeout(PATIENCE, said).await.unwrap_or_else(|_| panic!("{path} never does"))
}

/// Publishes a solve with this report and returns the path of its page.
async fn solved(place: &Place, parent: i64, report: Value) -> String {
    let asked = place.send(Method::POST, "/ops/v1/solves", Some(ROOT), "").await;
    let (_, asked) = answer(asked).await;
    let job = place.broker.claim("w", &[JobKind::Solve], Duration::from_secs(60)).await;
    let lease = job.expect("asked").expect("a job").lease;
    let (parent, seq) = (broker::TargetVersion(parent), broker::Seq(1));
    let snapshot_url = "snapshot".to_owned();
    let basis = SolveBasis {
        parent,
        seq,
        snapshot_url,
        config: broker::Document::of(&json!({})),
        policies: broker::PoliciesEdition::default(),
    };
    assert!(place.broker.describe_solve(lease, &basis).await.expect("described"));
    let end =
        SolveEnd { lease, result_url: "result".to_owned(), report: broker::Document::of(&report) };
    let (id, targets) = (PublicationId::now_v7(), Vec::new());
    let publication = Publication { id, parent, solve: Some(end), targets };
    place.broker.publish("w", &publication).await.expect("published");
    format!("/solves/{}", asked["solve"].as_str().expect("an id"))
}

#[tokio::test]
async fn solve_page_shows_the_report_of_its_solve() {
    let place = Place::new().await;
    let report = json!({ "msb_shares": {
        "datacenters": [{ "datacenter": "dc", "msbs": ["msb0", "msb1", "old"] }],
        "reservations": [{ "reservation_id": "long gone", "msb_rru": [3.0, 1.0, 0.0] }],
        "of": 1,
    } });
    let path = solved(&place, 1, report).await;
    let (status, text) = page(&place, &path, None).await;
    assert_eq!(status, 200);
    for needed in ["long gone", "data-s=\"7500 2500 0\"", "&quot;old&quot;", "figure 13"] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    assert!(
        !text.contains("/reservations/a\""),
        "reservations of the current region are not shown: {text}"
    );
    let path = solved(&place, 2, json!({ "shortfall_rru": 0.0 })).await;
    let (_, text) = page(&place, &path, None).await;
    assert!(
        text.contains("does not list shares by MSB") && !text.contains("id=\"heat\""),
        "{text}"
    );
    // Today's assignment was the result.
    let unsolved = json!({ "ending": "unsolved", "termination": null, "whole": null,
        "phase1": { "primal": null, "gap": null, "termination": "unsolved" }, "shortfall_servers": 7512 });
    let path = solved(&place, 3, unsolved).await;
    let (_, text) = page(&place, &path, None).await;
    assert!(text.contains("ended: not solved") && text.contains("7,512"), "{text}");
    let path = solved(&place, 4, json!({ "phase1": { "gap": "wide" } })).await;
    let (_, text) = page(&place, &path, None).await;
    assert!(text.contains("cannot be shown. report.json: phase1.gap: invalid type"), "{text}");
    place
        .broker
        .forget_solve(path["/solves/".len()..].parse().expect("an id"))
        .await
        .expect("done");
    let (_, text) = page(&place, &path, None).await;
    assert!(text.contains("was deleted") && !text.contains("id=\"heat\""), "{text}");
}

#[tokio::test]
async fn running_solve_shows_its_gap_and_is_cancelled_by_operators() {
    let place = Place::new().await;
    let (_, asked) = answer(place.send(Method::POST, "/ops/v1/solves", Some(ROOT), "").await).await;
    let path = format!("/solves/{}", asked["solve"].as_str().expect("an id"));
    let (_, text) = page(&place, &path, None).await;
    assert!(text.contains("waits for a worker") && !text.contains("Cancel solve"), "{text}");
    let (_, text) = page(&place, &path, Some(ROOT)).await;
    assert!(text.contains("Cancel solve"), "{text}");
    let job = place.broker.claim("w", &[JobKind::Solve], Duration::from_secs(60)).await;
    let lease = job.expect("asked").expect("a job").lease;
    let history = json!([
        { "seconds": 0.5, "phase": 1, "step": "initial state", "primal": 300.0, "dual_bound": null },
        { "seconds": 1.5, "phase": 1, "step": "mip", "primal": 200.0, "dual_bound": 190.0 },
        { "seconds": 2.5, "phase": 2, "step": "mip", "primal": null, "dual_bound": null },
    ]);
    let noted = place
        .broker
        .note_solve(lease, SolveStep::Solve, Some(&broker::Document::of(&history)))
        .await;
    noted.expect("noted");
    let (_, text) = page(&place, &path, None).await;
    for needed in
        ["running for", "phase 2 of 2, mip", ">5.00\u{202f}%<", "\"log\":true", ">190</td>"]
    {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    let (_, detail) = place.get(&format!("/ops/v1{path}")).await;
    assert_eq!(detail["progress"]["history"], history);
    assert_eq!(detail["progress"]["step"], "solve");

    let cancel = format!("/ops/v1{path}/cancel");
    let sent = place.send(Method::POST, &cancel, Some(crate::place::READER), "").await;
    assert_eq!(sent.status(), 403);
    let (status, said) = answer(place.send(Method::POST, &cancel, Some(ROOT), "").await).await;
    assert_eq!((status.as_u16(), &said["solve"]), (200, &asked["solve"]));
    let (_, text) = page(&place, &path, Some(ROOT)).await;
    assert!(text.contains("cancelled by root") && !text.contains("Cancel solve"), "{text}");
    assert!(text.contains(">5.00\u{202f}%<"), "what it had reached stays: {text}");
    let (status, said) = answer(place.send(Method::POST, &cancel, Some(ROOT), "").await).await;
    assert_eq!((status.as_u16(), &said["code"]), (409, &"over".into()));
}

#[tokio::test]
async fn pages_show_arriving_servers_of_a_grant() {
    let mut parts = region().to_parts();
    // It has eight servers of 1.25 RRU, three in one MSB; one more in msb2 is enough.
    parts
        .reservations
        .iter_mut()
        .find(|row| &*row.reservation_id == "a")
        .expect("a")
        .capacity_rru = 7.5;
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let place = Place::of(Some(&region), PortalSettings::default()).await;
    let (_, text) = page(&place, "/reservations", None).await;
    assert!(text.contains(">at risk<") && !text.contains("state warn\">arriving"), "{text}");
    let (_, text) = page(&place, "/", None).await;
    assert!(
        text.contains("1 reservation would have less than promised after the loss of one MSB"),
        "{text}"
    );
    assert!(
        text.contains("It has all promised capacity now.")
            && !text.contains("less than promised now"),
        "{text}"
    );
    place.publish(17, Some("a")).await;
    until(&place, "/reservations", |text| text.contains("state warn\">arriving<")).await;
    let (_, text) = page(&place, "/reservations", None).await;
    assert!(
        !text.contains("state bad\">short<") && !text.contains("state warn\">at risk<"),
        "{text}"
    );
    let (_, text) = page(&place, "/", None).await;
    assert!(
        text.contains("are assigned and arriving") && text.contains("; 1 server arriving"),
        "{text}"
    );
    // It owns three servers of msb0 and two of msb2, and needs six.
    let (_, text) = page(&place, "/msbs/msb0", None).await;
    assert!(text.contains("Its loss would leave 1 reservation with less than promised."), "{text}");
    let (_, text) = page(&place, "/msbs/msb2", None).await;
    assert!(text.contains("Its loss breaks no guarantee."), "{text}");
    let (_, text) = page(&place, "/reservations/a", None).await;
    for needed in [
        "Arriving: 0 of 1 server, no mover is active",
        "<progress max=\"1\" value=\"0\"",
        "in force once all servers have arrived",
        "missing after one more MSB loss, until servers arrive",
    ] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
    let (_, other) = page(&place, "/reservations/b%2F%C3%BC", None).await;
    assert!(!other.contains("Arriving:") && !other.contains("<progress"), "{other}");
}

#[tokio::test]
async fn reservation_page_explains_its_hardware() {
    let place = Place::new().await;
    let (_, text) = page(&place, "/reservations/a", None).await;
    for needed in [
        "The reservation accepts 1 of 1 hardware type and uses 1",
        "/reservations/a/servers?hardware=type",
        "8 are free; the request is satisfied",
        "100.0\u{202f}%",
    ] {
        assert!(text.contains(needed), "{needed}: {text}");
    }
}

#[tokio::test]
async fn msb_page_ignores_reservations_without_servers_there() {
    let mut parts = region().to_parts();
    let mut row = parts.reservations[0].clone();
    row.reservation_id = "new".into();
    parts.reservations.push(row);
    let mut value = parts.rru[0].clone();
    value.reservation_id = "new".into();
    parts.rru.push(value);
    let region = RegionSnapshot::new(parts).expect("a snapshot");
    let place = Place::of(Some(&region), PortalSettings::default()).await;
    let (_, overview) = page(&place, "/", None).await;
    assert!(overview.contains("1 reservation has less than promised now"), "{overview}");
    assert!(!overview.contains("1 at risk"), "it holds no server: {overview}");
    let (_, msb) = page(&place, "/msbs/msb0", None).await;
    assert!(
        msb.contains("Its loss breaks no guarantee.") && !msb.contains("/reservations/new"),
        "{msb}"
    );
}
