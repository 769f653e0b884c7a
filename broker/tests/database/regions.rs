//! Regions to test with.

use chrono::{DateTime, Utc};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::{
    AffinityRow, RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts,
    UnavailabilityRow, Weights,
};

pub fn at(minute: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_225_600 + 60 * minute, 0).expect("a time")
}

pub fn reservation(id: &str, kind: &str, capacity_rru: f64) -> ReservationRow {
    ReservationRow {
        reservation_id: id.into(),
        owner: "owner with marks".into(),
        kind: kind.into(),
        capacity_rru,
        msb_buffer: kind == "guaranteed",
        priority: 1,
        msb_alpha: Some(0.1 + 0.2),
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    }
}

pub fn server(number: usize) -> ServerRow {
    let msb = number / 8 % 3;
    ServerRow {
        server_id: format!("s{number:03}").into(),
        datacenter: format!("dc{}", msb / 2).into(),
        msb: format!("msb{msb}").into(),
        rack: format!("rack{}", number / 4).into(),
        hardware_type: if number.is_multiple_of(2) { "even" } else { "odd" }.into(),
        current_reservation: None,
        target_reservation: None,
        target_pending: false,
        in_use: false,
        loaned_to: None,
        power_watts: None,
    }
}

/// 24 servers in two datacenters, three MSBs and six racks, with something of everything.
pub fn small_parts() -> SnapshotParts {
    let mut servers: Vec<ServerRow> = (0..24).map(server).collect();
    servers[3].server_id = "tab new/line.N ü".into();
    for row in &mut servers[0..6] {
        row.current_reservation = Some("web".into());
        row.in_use = true;
    }
    servers[6].target_pending = true;
    servers[6].target_reservation = Some("web".into());
    servers[7].current_reservation = Some("web".into());
    servers[7].target_pending = true;
    servers[8].current_reservation = Some("shared-buffer/even".into());
    servers[8].loaned_to = Some("spare".into());
    servers[9].power_watts = Some(312.5);
    let event = |id: &str, scope: &str, scope_id: &str, kind: &str, ended: Option<i64>| {
        let (event_id, scope, scope_id) = (id.into(), scope.into(), scope_id.into());
        let (started_at, ended_at) = (at(-30), ended.map(at));
        UnavailabilityRow {
            event_id,
            scope,
            scope_id,
            kind: kind.into(),
            started_at,
            ended_at,
            recall_minutes: (kind == "planned_maintenance").then_some(20),
        }
    };
    let mut listed = reservation("odd buffer", "shared_buffer", 2.0);
    listed.msb_alpha = None;
    let mut web = reservation("web", "guaranteed", 6.958_984);
    web.host_profile = Some("profile".into());
    let value = |reservation: &str, ty: &str, rru| RruRow {
        reservation_id: reservation.into(),
        hardware_type: ty.into(),
        rru,
    };
    let share = |datacenter: &str, share| AffinityRow {
        reservation_id: "web".into(),
        datacenter: datacenter.into(),
        share,
    };
    SnapshotParts {
        region: "region-a".into(),
        taken_at: at(0),
        weights: Weights { msb_alpha: Some(0.3), ..Weights::default() },
        shared_buffer_fraction: Some(0.2),
        servers,
        reservations: vec![web, reservation("spare", "elastic", 0.0), listed],
        rru: vec![
            value("web", "even", 1.0),
            value("web", "odd", 1.25),
            value("web", "none yet", 2.0),
            value("odd buffer", "odd", 1.0),
        ],
        affinity: vec![share("dc0", 0.5), share("dc9", 0.25)],
        allowed_datacenters: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
        unavailability: vec![
            event("e1", "server", "s010", "random_failure", None),
            event("e2", "rack", "rack2", "software", Some(-10)),
            event("e3", "msb", "msb1", "planned_maintenance", Some(90)),
            event("e4", "datacenter", "dc1", "correlated_failure", Some(-20)),
        ],
    }
}

pub fn small() -> RegionSnapshot {
    RegionSnapshot::new(small_parts()).expect("a snapshot")
}

pub fn changed(change: impl FnOnce(&mut SnapshotParts)) -> RegionSnapshot {
    let mut parts = small().to_parts();
    change(&mut parts);
    RegionSnapshot::new(parts).expect("a snapshot")
}

/// A made-up region of 1,000 servers, mostly bound.
pub fn generated(seed: u64) -> RegionSnapshot {
    let options = GenerateOptions { seed, state: State::Steady, ..GenerateOptions::new(1_000) };
    RegionSnapshot::new(generate(&options).expect("a region")).expect("a snapshot")
}
