//! A thing has one JSON shape, however it is reached.

use crate::owners::{server, types, url};
use crate::place::Place;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Members whose names are data.
const MAPS: [&str; 10] = [
    // As submitted, and a grant or a refusal: see below.
    "asked",
    "answer",
    "affinity",
    "by_datacenter",
    "by_hardware_type",
    "by_msb",
    "counts",
    "labels",
    "rru",
    "config",
];

/// The names of the members of a document, with those inside. What is null or empty here has no members to compare.
fn names(document: &Value, within: &str, found: &mut BTreeSet<String>) {
    for (name, value) in document.as_object().into_iter().flatten() {
        let path = format!("{within}/{name}");
        match value {
            _ if MAPS.contains(&name.as_str()) => {}
            Value::Array(rows) => {
                rows.iter().take(1).for_each(|row| names(row, &path, found));
            }
            _ => names(value, &path, found),
        }
        found.insert(path);
    }
}

/// What differs between two ways, where both have something.
fn differing(one: &BTreeSet<String>, other: &BTreeSet<String>) -> Vec<String> {
    let open = |of: &BTreeSet<String>, path: &str| {
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        parent.is_empty() || of.iter().any(|of| of.starts_with(&format!("{parent}/")))
    };
    let missing = one.symmetric_difference(other);
    missing.filter(|path| open(one, path) && open(other, path)).cloned().collect()
}

/// The ways to each thing: what was typed, and where the thing is in the document.
#[derive(Default)]
struct Ways(BTreeMap<&'static str, Vec<(String, BTreeSet<String>)>>);

impl Ways {
    fn add(&mut self, thing: &'static str, line: &str, document: &Value, at: &str) {
        let of = document.pointer(at).filter(|of| of.is_object());
        let of = of.unwrap_or_else(|| panic!("ras {line}: no object at {at:?} in {document}"));
        let mut found = BTreeSet::new();
        names(of, "", &mut found);
        self.0.entry(thing).or_default().push((format!("ras {line} ({at})"), found));
    }
}

#[test]
fn thing_has_one_shape_however_it_is_reached() {
    let place = Place::new();
    let up = server(&place, "--agent simulated --deadline 5s");
    place.ras(&format!("login --server {} --token-file root.token", url(&up))).code(0);
    let types = types(&place);
    let accepted = types.join(",");
    let values: String = types.iter().map(|ty| format!(" --value {ty}=1")).collect();
    let mut ways = Ways::default();
    let mut way = |thing, line: &str, at: &str| {
        let document = place.json(line);
        ways.add(thing, line, &document, at);
        document
    };
    let id = |document: &Value, at: &str| {
        document.pointer(at).and_then(Value::as_str).expect("an id").to_owned()
    };

    let create = format!("request create web --owner shop --servers 4 --hardware-types {accepted}");
    let created = way("request", &format!("{create} --wait"), "");
    way("request", &format!("get request {}", id(&created, "/request")), "");
    way("request", "list requests", "/requests/0");
    way("request", "list requests --data data", "/requests/0");
    way("request", "explain web", "/request");
    let later = "--start 2126-01-01T00:00:00Z --no-wait";
    let later = way("request", &format!("request resize web --rru 6 {later}"), "");
    way("request", &format!("request cancel {}", id(&later, "/request")), "");
    let refused = way("request", "request resize web --rru 90000 --wait", "");
    way("refusal", &format!("get request {}", id(&refused, "/request")), "/answer");
    way("refusal", "request resize web --rru 90000 --wait", "/answer");

    way("reservation", "get reservation web", "");
    way("reservation", "get reservation web --data data", "");
    way("reservation", "list reservations", "/reservations/0");
    way("reservation", "list reservations --data data", "/reservations/0");
    way("reservation", "explain web", "/reservation");

    fs::write(place.path("web.yaml"), "reservation: web\ncapacity_rru: 7\n").expect("written");
    let plan = way("plan", "plan --request web.yaml", "");
    way("plan", &format!("get plan {}", id(&plan, "/plan")), "");
    way("plan", "apply --request web.yaml --yes", "");
    fs::write(place.path("web.yaml"), "reservation: web\ncapacity_rru: 8\n").expect("written");
    way("plan", "apply --request web.yaml --yes --no-wait", "");
    // The same file again would change nothing, and say so instead.
    fs::write(place.path("web.yaml"), "reservation: web\ncapacity_rru: 9\n").expect("written");
    way("plan", "apply --request web.yaml --yes", "");
    way("quote", "plan --request web.yaml", "/changes/0/answer");
    way("quote", &format!("get request {}", id(&created, "/request")), "/answer");
    let request =
        format!("reservation_id: web\ncapacity_rru: 8\nowner: shop\nrru: {{{accepted}: 1}}\n");
    fs::write(place.path("alone.yaml"), request.replace(',', ": 1, ")).expect("written");
    way("quote", "snapshot plan region --request alone.yaml", "");

    let solve = way("solve", "ops solve --wait", "");
    way("solve", "list solves", "/solves/0");
    way("solve", "status", "/solves/0");
    way("solve in full", &format!("get solve {}", solve["solve"].as_str().expect("an id")), "");
    way("moves", "ops moves", "");
    way("moves", "ops moves --data data", "");
    way("status", "status --check", "");
    way("status", "status --check --data data", "");

    // Which servers "web" has, and so whether it can spare this rack, is the solver's choice.
    let why = "--from now --for 1h --recall-minutes 20 --why fans --accept-short web \
        --accept-why fans";
    let planned =
        way("window", &format!("ops maintenance plan --rack m01-r004 {why}"), "/windows/0");
    way("window", "ops maintenance list", "/windows/0");
    way("window", "list maintenance", "/windows/0");
    let one = format!("get maintenance {}", id(&planned, "/windows/0/window"));
    way("window", &one, "/windows/0");
    assert!(place.ras(&one).code(0).stdout().contains("m01-r004"));
    way("windows", "list maintenance", "");
    way("windows", "ops maintenance list", "");

    let granted = way("emergency", "ops emergency ask web --rru 1 --why fire --yes", "");
    way("emergency", &format!("get emergency {}", id(&granted, "/emergency")), "");
    way("emergency", "list emergencies", "/emergencies/0");
    way("emergency", "ops emergency list", "/emergencies/0");
    way("emergencies", "list emergencies", "");
    way("emergencies", "ops emergency list", "");

    way("contract", "ops contract set web --in-use 2% --quiet-time 00:00-01:00", "");
    way("contract", "ops contract list", "/contracts/0");
    way("quota", "region quota set shop --servers 1000", "");
    way("quota", "region quota list", "/quotas/0");
    way("quota", "list quotas", "/quotas/0");
    way("profile", &format!("region profile set all{values}"), "");
    way("profile", "region profile list", "/profiles/0");
    way("profile", "list profiles", "/profiles/0");
    way("profile", "get profile all", "");
    way("elastic", "region elastic set batch --owner data --hardware-types C5-S1", "");
    way("elastic", "region elastic list", "/elastic_reservations/0");

    let first = way("token", "token first --data data --name first", "/token");
    way("token", "token create --name another --role viewer", "/token");
    way("token", "token list", "/tokens/0");
    way("token", "list tokens", "/tokens/0");
    way("token", &format!("token revoke {}", id(&first, "/token/name")), "");
    way("tokens", "token list", "");
    way("tokens", "list tokens", "");

    let mut wrong = Vec::new();
    for (thing, ways) in &ways.0 {
        let (line, first) = &ways[0];
        for (other, names) in &ways[1..] {
            let differ = differing(first, names);
            if !differ.is_empty() {
                wrong.push(format!("{thing}: {differ:?}\n  {line}\n  {other}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // What is listed in brief is part of what is shown in full.
    let (brief, full) = (&ways.0["solve"][0].1, &ways.0["solve in full"][0].1);
    assert!(brief.is_subset(full), "{brief:?} {full:?}");
    up.stop();
}
