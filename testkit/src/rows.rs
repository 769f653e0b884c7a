//! Rows of the snapshot format for small regions. Everything that a test is not about has a default.

use chrono::{DateTime, TimeDelta, Utc};
use fleet::{
    RegionSnapshot, ReservationRow, RruRow, ServerRow, SnapshotParts, UnavailabilityRow, Weights,
};

/// The instant of every snapshot made here: noon of the first day of 2026.
pub fn noon() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_268_800, 0).expect("a valid instant")
}

/// A region without any rows and without shared buffers, at the default prices.
pub fn parts() -> SnapshotParts {
    SnapshotParts {
        region: "region-a".into(),
        taken_at: noon(),
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: Vec::new(),
        reservations: Vec::new(),
        rru: Vec::new(),
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
        crossing: fleet::PartitionParts::default(),
    }
}

/// A free, idle server. `place`: datacenter, MSB, rack.
pub fn server(id: &str, place: (&str, &str, &str), hardware_type: &str) -> ServerRow {
    ServerRow {
        server_id: id.into(),
        datacenter: place.0.into(),
        msb: place.1.into(),
        rack: place.2.into(),
        hardware_type: hardware_type.into(),
        current_reservation: None,
        target_reservation: None,
        target_pending: false,
        in_use: false,
        loaned_to: None,
        power_watts: None,
    }
}

/// A guaranteed reservation with embedded buffer, at priority 0, of the owner `owner`.
pub fn reservation(id: &str, capacity_rru: f64) -> ReservationRow {
    ReservationRow {
        reservation_id: id.into(),
        owner: "owner".into(),
        kind: "guaranteed".into(),
        capacity_rru,
        msb_buffer: true,
        priority: 0,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    }
}

/// The worth of one server of a hardware type for a reservation.
pub fn rru(id: &str, hardware_type: &str, rru: f64) -> RruRow {
    RruRow { reservation_id: id.into(), hardware_type: hardware_type.into(), rru }
}

/// An event without end that began an hour before [`noon`].
pub fn event(number: usize, scope: &str, scope_id: &str, kind: &str) -> UnavailabilityRow {
    UnavailabilityRow {
        event_id: format!("event-{number}").into(),
        scope: scope.into(),
        scope_id: scope_id.into(),
        kind: kind.into(),
        started_at: noon() - TimeDelta::hours(1),
        ended_at: None,
        recall_minutes: None,
    }
}

/// Validates rows.
///
/// # Panics
/// If they break a rule of the format.
pub fn snapshot(parts: &SnapshotParts) -> RegionSnapshot {
    RegionSnapshot::new(parts.clone()).expect("a valid region")
}

/// 24 servers of one type in six racks and three MSBs: eight of each reservation, four of the first
/// one's in use, and eight free. Both request `capacity_rru` at `worth` RRU a server.
pub fn two_reservations(names: [&str; 2], capacity_rru: f64, worth: f64) -> SnapshotParts {
    let servers = (0..24).map(|number: usize| {
        let (msb, rack) = (format!("msb{}", number % 3), format!("rack{}", number % 6));
        ServerRow {
            current_reservation: names.get(number / 8).map(|name| (*name).into()),
            in_use: number < 4,
            ..server(&format!("s{number:02}"), ("dc", &msb, &rack), "type")
        }
    });
    let reservations = names.map(|name| ReservationRow {
        owner: name.into(),
        priority: 1,
        ..reservation(name, capacity_rru)
    });
    SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        servers: servers.collect(),
        reservations: reservations.into(),
        rru: names.map(|name| rru(name, "type", worth)).into(),
        ..parts()
    }
}

/// 64 RRU of `web`, which requests `capacity_rru`, in eight MSBs of four racks of two servers.
pub fn full_of_web(capacity_rru: f64) -> SnapshotParts {
    let servers = (0..64).map(|number: usize| {
        let msb = format!("m{}", number / 8);
        let rack = format!("{msb}-r{}", number % 8 / 2);
        ServerRow {
            current_reservation: Some("web".into()),
            ..server(&format!("{msb}-s{}", number % 8), ("dc", &msb, &rack), "type")
        }
    });
    SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        servers: servers.collect(),
        reservations: vec![ReservationRow {
            owner: "web".into(),
            ..reservation("web", capacity_rru)
        }],
        rru: vec![rru("web", "type", 1.0)],
        ..parts()
    }
}

/// A region for benchmarks: racks of forty servers in 36 MSBs, a third of the servers in use.
/// `reservations` each request one RRU, and each type is worth one RRU to all of them. `holder`
/// names the reservation of a server by its number.
pub fn large(
    servers: usize,
    types: usize,
    reservations: impl IntoIterator<Item = String>,
    holder: impl Fn(usize) -> String,
) -> SnapshotParts {
    let type_of = |number: usize| format!("type{}", number % types);
    let servers = (0..servers).map(|number| {
        let place =
            ("dc", &*format!("msb{:02}", number / 40 % 36), &*format!("rack{:05}", number / 40));
        ServerRow {
            current_reservation: Some(holder(number).into()),
            in_use: number.is_multiple_of(3),
            ..server(&format!("s{number:07}"), place, &type_of(number))
        }
    });
    let mut parts = SnapshotParts {
        region: "region".into(),
        taken_at: DateTime::UNIX_EPOCH,
        servers: servers.collect(),
        ..parts()
    };
    for name in reservations {
        parts.rru.extend((0..types).map(|number| rru(&name, &type_of(number), 1.0)));
        let owner = name.as_str().into();
        parts.reservations.push(ReservationRow { owner, priority: 1, ..reservation(&name, 1.0) });
    }
    parts
}
