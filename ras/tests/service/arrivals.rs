//! What cannot be carried out is neither decided nor promised: a churn contract on the service, its solves
//! and its plans.

use crate::place::{PATIENCE, Place, Running, until_true};
use chrono::DateTime;
use fleet::{RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, Weights};
use std::fs;
use std::time::Instant;

const ROOT: &str = "0123456789-of-root";

/// Servers of four MSBs, each in use by whom `held` says, and reservations with what they ask for.
pub fn region_of(
    held: &[Option<&str>],
    reservations: impl IntoIterator<Item = (&'static str, f64)>,
) -> RegionSnapshot {
    let server = |(number, holder): (usize, &Option<&str>)| ServerRow {
        server_id: format!("s{number:02}").into(),
        datacenter: "dc".into(),
        msb: format!("m{}", number % 4).into(),
        rack: format!("m{}-r{}", number % 4, number / 16).into(),
        hardware_type: "type".into(),
        current_reservation: holder.map(Into::into),
        target_reservation: None,
        target_pending: false,
        in_use: holder.is_some(),
        loaned_to: None,
        power_watts: None,
    };
    let reservation = |id: &str, capacity_rru: f64| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: "guaranteed".into(),
        capacity_rru,
        msb_buffer: false,
        priority: 0,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    };
    let value =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "type".into(), rru: 1.0 };
    let asked: Vec<(&str, f64)> = reservations.into_iter().collect();
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: held.iter().enumerate().map(server).collect(),
        reservations: asked.iter().map(|(id, rru)| reservation(id, *rru)).collect(),
        rru: asked.iter().map(|(id, _)| value(id)).collect(),
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    };
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// 48 servers, all in use by `feed`, which requests eight of them; `web` requests no capacity yet.
fn up(place: &Place) -> Running {
    let region = region_of(&[Some("feed"); 48], [("feed", 8.0), ("web", 0.0)]);
    datasets::write_snapshot(&place.path("region"), &region).expect("written");
    fs::write(place.path("root.token"), ROOT).expect("written");
    // No mover acts: what is decided stays as it was decided.
    let settings = "[[portal.tokens]]\nname = \"root\"\nroles = [\"admin\"]\n\
        token_file = \"root.token\"\n";
    fs::write(place.path("ras.toml"), settings).expect("written");
    place.start("up region --data data --listen 127.0.0.1:0 --config ras.toml --schedule never")
}

/// Targets of the store that take a server in use from `feed`.
fn leave_feed(place: &Place) -> usize {
    place.ras("snapshot export exported --data data").code(0);
    let parts = datasets::read_parts(&place.path("exported")).expect("read");
    fs::remove_dir_all(place.path("exported")).expect("removed");
    let leaves =
        |row: &&ServerRow| row.current_reservation.as_deref() == Some("feed") && row.target_pending;
    parts.servers.iter().filter(leaves).count()
}

#[test]
fn contract_limits_solves_and_dates_plan_arrival() {
    let place = Place::new();
    let up = up(&place);
    place.ras("ops contract set feed --in-use 12.5% --per 1h --data data").code(0);

    // Forty are surplus. Of 48 in use six may leave within an hour.
    let address = up.said.split("http://").nth(1).and_then(|rest| rest.split('/').next());
    let url = format!("http://{}", address.expect("it says where"));
    place.ras(&format!("login --server {url} --token-file root.token")).code(0);
    let plan = |file: &str| place.json(&format!("plan --request {file}"));
    fs::write(place.path("web.yaml"), "reservation: web\ncapacity_rru: 24\n").expect("written");
    let answer = plan("web.yaml");
    let arrival = &answer["changes"][0]["answer"]["arrival"];
    assert_eq!((&arrival["servers"], &arrival["later"]), (&24.into(), &0.into()), "{answer}");
    assert_eq!(arrival["limit"], "churn contract", "{arrival}");
    assert_eq!(arrival["limit_of"], "feed", "{arrival}");
    let counts: Vec<u64> = arrival["steps"]
        .as_array()
        .expect("steps")
        .iter()
        .map(|step| step["servers"].as_u64().expect("a number"))
        .collect();
    assert_eq!(counts, [6, 12, 18, 24], "six an hour");
    let text = place.ras("plan --request web.yaml").stdout();
    assert!(text.contains("arrives by ") && text.contains("24 servers"), "{text}");
    assert!(text.contains("limit: churn contract of feed"), "{text}");
    assert!(
        text.contains("24 servers move in all: 24 to web"),
        "they are those that arrive: {text}"
    );

    // All are in use by `feed` now, surplus or not: the plan says so, and can be applied.
    let cost = &answer["changes"][0]["answer"]["cost"];
    assert_eq!((&cost["in_use"], &cost["acquired"]), (&24.into(), &0.into()), "{cost}");
    assert_eq!(answer["servers_in_use"], 24, "{answer}");
    fs::write(place.path("two.yaml"), "reservation: web\ncapacity_rru: 2\n").expect("written");
    place.ras("apply --request two.yaml --yes").code(0);
    assert_eq!(leave_feed(&place), 2);

    // A contract of nothing: what never comes is not promised.
    place.ras("ops contract set feed --in-use 0% --data data").code(0);
    let answer = plan("web.yaml");
    let of = &answer["changes"][0];
    assert_eq!(of["answer"]["granted_rru"], 2.0, "no more than it has: {answer}");
    assert_eq!(answer["servers"], 0, "{answer}");

    place.ras("ops contract set feed --in-use 12.5% --per 1h --data data").code(0);
    let (code, body) = up.post("/ops/v1/solves", ROOT, "{}");
    assert_eq!(code, 202, "{body}");
    until_true("the solve is published", Instant::now() + PATIENCE, || {
        let solves = place.json("list solves");
        assert!(!solves.to_string().contains("failed"), "{solves}");
        solves.to_string().contains("published")
    });
    assert_eq!(leave_feed(&place), 6, "those of the plan, and four of 38 that are surplus");
    up.stop();
}
