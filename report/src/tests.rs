//! Tests of the page of a solve: well-formed, self-contained, correct numbers, unusual regions.

use super::SolveReport;
use chrono::DateTime;
use fleet::{
    AffinityRow, RegionSnapshot, ReservationIx, ReservationRow, ServerRow, SnapshotParts, Targets,
};
use serde_json::{Value, json};
use testkit::rows::{parts, reservation, rru, server};

/// Elements that have no end tag.
const VOID: [&str; 4] = ["meta", "br", "input", "link"];

/// Every element of the page. A name that became markup would add others.
const ELEMENTS: [&str; 46] = [
    "a", "body", "br", "button", "caption", "circle", "details", "div", "g", "h1", "h2", "h3",
    "head", "header", "html", "i", "input", "label", "li", "line", "main", "meta", "nav", "ol",
    "p", "path", "rect", "script", "section", "span", "strong", "style", "summary", "svg", "table",
    "tbody", "td", "text", "th", "thead", "title", "tr", "ul", "dl", "dt", "dd",
];

/// Parses a page as strictly as XML: every start tag has its end tag, in order. Returns the names of
/// all elements.
pub(crate) fn elements(page: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    let mut seen = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").expect("a page begins with its doctype");
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let end = tag_end(rest);
        let tag = &rest[..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "end tag out of order");
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap_or_default();
        assert!(ELEMENTS.contains(&name), "unexpected element <{tag}>");
        seen.push(name.to_owned());
        if VOID.contains(&name) {
            continue;
        }
        if ["style", "script"].contains(&name) {
            let close = format!("</{name}>");
            let end = rest.find(&close).expect("raw text ends");
            rest = &rest[end + close.len()..];
            continue;
        }
        open.push(name.to_owned());
    }
    assert!(open.is_empty(), "left open: {open:?}");
    seen
}

/// Position of the end of a tag: the first `>` outside quotes.
fn tag_end(tag: &str) -> usize {
    let mut quoted = false;
    for (at, byte) in tag.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b'>' if !quoted => return at,
            _ => (),
        }
    }
    panic!("a tag without end: {tag:.40}")
}

fn render(snapshot: &RegionSnapshot, targets: &Targets, report: &Value) -> String {
    super::render(snapshot, targets, &SolveReport::read(report).expect("a report"))
}

fn check(page: &str) {
    elements(page);
    for outside in ["http:", "https:", "src=", "url(", "@import", "<link", "//cdn"] {
        assert!(!page.contains(outside), "the page loads or names {outside}");
    }
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
}

/// `msbs` MSBs in two datacenters with `each` servers of one type, all free, and no reservation.
fn world(msbs: usize, each: usize) -> SnapshotParts {
    let servers = (0..msbs * each).map(|ix| {
        let msb = ix / each;
        let (datacenter, name) = (format!("dc{}", 2 * msb / msbs), format!("msb{msb}"));
        let place = (&*datacenter, &*name, &*format!("rack{msb}-{}", ix % 2));
        ServerRow { power_watts: Some(400.0), ..server(&format!("s{ix:06}"), place, "T1") }
    });
    SnapshotParts { taken_at: DateTime::UNIX_EPOCH, servers: servers.collect(), ..parts() }
}

fn ask(parts: &mut SnapshotParts, id: &str, owner: &str, capacity_rru: f64) {
    let owner = owner.into();
    parts.reservations.push(ReservationRow { owner, ..reservation(id, capacity_rru) });
    parts.rru.push(rru(id, "T1", 1.0));
}

fn snapshot(parts: SnapshotParts) -> RegionSnapshot {
    RegionSnapshot::new(parts).expect("the world keeps the rules")
}

/// Assigns the servers to the reservations in turn.
fn dealt(snapshot: &RegionSnapshot) -> Targets {
    let reservations = snapshot.reservations.len();
    let deal = |ix: usize| (reservations > 0).then(|| ReservationIx::new(ix % reservations));
    Targets::new(snapshot, (0..snapshot.servers.len()).map(deal).collect())
}

/// A report with every member that the page reads.
fn report(reservation: &str) -> Value {
    json!({
        "whole": {"primal": 41.0, "gap": 0.073, "gap_in_use_moves": 0.3},
        "phase1": {"primal": 40.0, "dual_bound": 38.0, "gap": 0.05, "gap_in_use_moves": 0.2,
            "termination": "stalled", "proof": "by prices", "lp_value": 30.0, "lp_seconds": 0.2,
            "shortfall_cost": 0.0, "initial_primal": 24e6},
        "phase2": {"rack_spread_before": 3.0, "rack_spread_after": 1.0, "problems": 4},
        "handed_back": {"in_use": 0, "idle": 3},
        "seconds": {"total": 5.0, "phases": []},
        "steps": [
            {"phase": 1, "step": "ras build", "seconds": 0.5},
            {"phase": 1, "step": "mip", "seconds": 3.0},
            {"phase": 2, "step": "mip", "seconds": 1.0},
        ],
        "history": [
            {"seconds": 0.5, "phase": 1, "step": "initial state", "primal": 24e6, "dual_bound": null},
            {"seconds": 2.0, "phase": 1, "step": "mip", "primal": 40.0, "dual_bound": 38.0},
        ],
        "peak_memory_bytes": 104_857_600,
        "sizes": {"classes": 12},
        "reservations": [{"reservation_id": reservation, "reason": "msb_buffer"}],
    })
}

#[test]
fn page_of_an_ordinary_region_has_all_figures() {
    // 4 z - z >= 24: eight servers in each of four MSBs are all there is to it.
    let mut parts = world(4, 8);
    ask(&mut parts, "web", "feed", 24.0);
    for (datacenter, share) in [("dc0", 0.5), ("dc1", 0.5)] {
        let (reservation_id, datacenter) = ("web".into(), datacenter.into());
        parts.affinity.push(AffinityRow { reservation_id, datacenter, share });
    }
    let snapshot = snapshot(parts);
    let page = render(&snapshot, &dealt(&snapshot), &report("web")).replace('\u{202f}', " ");
    check(&page);
    for text in [
        "✓ holds",
        "Not synthetic.",
        "33.3 %",
        "4.2 % against 4.06 %",
        "<p class=\"value\">7.30 %",
        "of the whole objective; phase 1: 5.00 %",
        "worth 0.3 in-use moves",
        "no progress in several rounds",
        "Peak memory 100 MiB",
        "✓ All 1 reservation with affinity within tolerance.",
        "3.2 kW",
        "12 server classes",
        "by prices",
        "3 released, 32 free servers assigned",
    ] {
        assert!(page.contains(text), "no {text:?}");
    }
    assert!(!page.contains("id=\"shortfalls\"") && !page.contains("class=\"missing\""));
}

#[test]
fn shortfalls_are_listed_first_with_reasons() {
    let mut parts = world(4, 8);
    parts.region = "generated-7".into();
    ask(&mut parts, "web", "feed", 30.0);
    let snapshot = snapshot(parts);
    let page = render(&snapshot, &dealt(&snapshot), &report("web")).replace('\u{202f}', " ");
    check(&page);
    for text in
        ["! 1 short", "Synthetic region.", "at least 6 servers missing", "msb buffer", "20.0 %"]
    {
        assert!(page.contains(text), "no {text:?}");
    }
    let [short, buffer] = ["id=\"shortfalls\"", "id=\"buffer\""].map(|id| page.find(id));
    assert!(short.is_some() && short < buffer);
}

#[test]
fn page_says_which_members_a_report_lacks() {
    let mut parts = world(4, 8);
    ask(&mut parts, "web", "feed", 24.0);
    let snapshot = snapshot(parts);
    for report in [json!({}), json!({"steps": [], "history": [], "phase1": {}})] {
        let page = render(&snapshot, &dealt(&snapshot), &report);
        check(&page);
        for text in [
            "The report gives no times by step.",
            "The report gives no history of incumbent and bound.",
            "Peak memory not in the report",
            "No reservation of this region has affinity.",
        ] {
            assert!(page.contains(text), "no {text:?}");
        }
    }
}

#[test]
fn names_are_escaped() {
    let hostile = "<script>alert(1)</script>";
    let mut parts = world(3, 4);
    for row in &mut parts.servers {
        row.msb = format!("{}'\"&<b onclick=x>", row.msb).as_str().into();
        row.rack = format!("{}<i>", row.rack).as_str().into();
        row.datacenter = format!("{}</svg><img>", row.datacenter).as_str().into();
        row.hardware_type = "</style><h1>".into();
    }
    parts.region = "</title><script>".into();
    ask(&mut parts, hostile, "\"><img onerror=alert(1)>", 9.0);
    parts.rru[0].hardware_type = "</style><h1>".into();
    let snapshot = snapshot(parts);
    let mut report = report(hostile);
    report["reservations"][0]["reason"] = json!("<b>because</b>");
    report["phase1"]["proof"] = json!("</p><marquee>");
    report["steps"][0]["step"] = json!("</svg><u>");
    let page = render(&snapshot, &dealt(&snapshot), &report);
    check(&page);
    let scripts = elements(&page).into_iter().filter(|name| name == "script").count();
    assert_eq!(scripts, 1, "the script of the page");
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
}

#[test]
fn page_of_an_unusual_region_renders() {
    let empty = snapshot(world(1, 0));
    let page = render(&empty, &Targets::unchanged(&empty), &json!({}));
    check(&page);
    for text in ["0 servers", "The region has no servers.", "The region has no reservations."] {
        assert!(page.contains(text), "no {text:?}");
    }

    let mut parts = world(1, 8);
    ask(&mut parts, "web", "feed", 4.0);
    let one_msb = snapshot(parts);
    let page = render(&one_msb, &dealt(&one_msb), &report("web"));
    check(&page);
    assert!(page.contains("The region has one MSB") && page.contains("! 1 short"));

    let mut parts = world(4, 8);
    parts.servers.iter_mut().for_each(|row| row.power_watts = None);
    ask(&mut parts, "web", "feed", 24.0);
    let unheld = snapshot(parts);
    let page = render(&unheld, &Targets::unchanged(&unheld), &report("web"));
    check(&page);
    for text in [
        "No guaranteed reservation holds a server.",
        "gives no power_watts",
        "Nothing moves",
        "none held",
    ] {
        assert!(page.contains(text), "no {text:?}");
    }

    let mut parts = world(4, 8);
    ask(&mut parts, "web", "feed", 0.0);
    let nothing_asked = snapshot(parts);
    let page = render(&nothing_asked, &dealt(&nothing_asked), &report("web"));
    check(&page);
    assert!(!page.contains("NaN") && !page.contains("inf%"));
}

#[test]
fn page_shows_claims_that_the_audit_contradicts() {
    let mut parts = world(4, 8);
    ask(&mut parts, "web", "feed", 24.0);
    let snapshot = snapshot(parts);
    let row = json!({"reservation_id": "web", "capacity_rru": 24.0, "assigned_rru": 32.0,
        "largest_msb_rru": 8.0, "guaranteed_rru": 24.0, "shortfall_rru": 0.0, "reason": null});
    let mut report = json!({
        "objective": {"total": 40.0, "stability": 0.0, "rack_spread": 0.0, "msb_spread": 0.0,
            "buffer": 40.0},
        "shortfall_rru": 0.0, "moves": {"in_use": 0, "idle": 0}, "reservations": [row],
    });
    let targets = dealt(&snapshot);
    assert!(!render(&snapshot, &targets, &report).contains("Objections of the audit"));
    report["objective"]["buffer"] = json!(35.0);
    let page = render(&snapshot, &targets, &report);
    check(&page);
    assert!(page.contains("Objections of the audit") && page.contains("objective.buffer"));
}

#[test]
fn page_of_a_large_region_is_capped_and_independent_of_row_order() {
    let mut parts = world(36, 100);
    for ix in 0..3_100 {
        ask(&mut parts, &format!("service-{ix:04}"), "infra", (ix % 7) as f64);
    }
    let mut shuffled = parts.clone();
    shuffled.servers.reverse();
    shuffled.reservations.reverse();
    shuffled.rru.reverse();
    let pages = [parts, shuffled].map(|parts| {
        let snapshot = snapshot(parts);
        render(&snapshot, &dealt(&snapshot), &json!({}))
    });
    check(&pages[0]);
    assert!(pages[0].contains("Shown: 3,000 of 3,100 reservations."));
    assert!(pages[0].contains("Show the other 803 reservations"), "30,000 cells over 36 MSBs");
    assert_eq!(pages[0], pages[1]);
}
