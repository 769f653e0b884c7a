//! The model as text and in numbers, so that a change of it is seen.

use crate::world::{config, empty, event, reservation, rru, server, snapshot, solved};
use async_solver::baselines::raw::RawModel;
use fleet::{AffinityRow, SnapshotParts};

/// Two reservations over three MSBs in two datacenters, with something for every expression:
/// `web` holds servers in use, idle, on the move and unavailable, has affinity and is short;
/// `batch` has no embedded buffer and its own spread limit; `lent` holds servers worth zero to it.
fn village() -> SnapshotParts {
    let mut parts = SnapshotParts { shared_buffer_fraction: Some(0.2), ..empty() };
    let places = [("dc0", "m0", "m0-r0"), ("dc0", "m1", "m1-r0"), ("dc1", "m2", "m2-r0")];
    for place in places {
        for (number, hardware_type) in ["t0", "t0", "t1"].into_iter().enumerate() {
            let id = format!("{}-{number}", place.1);
            parts.servers.push(server(&id, place, hardware_type));
        }
    }
    let servers = &mut parts.servers;
    servers[0].current_reservation = Some("web".into());
    servers[0].in_use = true;
    servers[1].current_reservation = Some("web".into());
    servers[3].current_reservation = Some("web".into());
    servers[3].target_pending = true;
    servers[3].target_reservation = Some("batch".into());
    servers[4].current_reservation = Some("lent".into());
    servers[6].current_reservation = Some("web".into());
    parts.unavailability.push(event(0, "server", "m2-0", "random_failure"));
    parts.reservations.push(reservation("web", 3.0));
    parts.reservations.push(reservation("batch", 2.5));
    parts.reservations.push(reservation("lent", 0.0));
    parts.reservations[1].msb_buffer = false;
    parts.reservations[1].msb_alpha = Some(0.5);
    parts.reservations[1].priority = 1;
    parts.reservations[2].kind = "elastic".into();
    parts.rru.extend([rru("web", "t0", 1.0), rru("web", "t1", 1.25), rru("batch", "t0", 1.0)]);
    for (datacenter, share) in [("dc0", 0.7), ("dc1", 0.3)] {
        let (reservation_id, datacenter) = ("web".into(), datacenter.into());
        parts.affinity.push(AffinityRow { reservation_id, datacenter, share });
    }
    parts
}

#[test]
fn raw_model_matches_its_golden_text() {
    let dump = RawModel::build(&snapshot(&village())).dump();
    expectorate::assert_contents("tests/golden/raw_model.txt", &dump);
}

#[test]
fn model_sizes_of_a_known_region() {
    let sizes = solved(&snapshot(&village()), &config()).stats.sizes;
    assert_eq!(sizes.servers, 9);
    // web, batch, lent and a shared buffer for each of the two types.
    assert_eq!(sizes.reservations, 5);
    // m0: t0 in use by web, t0 idle in web, t1. m1: t0 on the move to batch, t0 lent, t1.
    // m2: t0 free (the other is unavailable), t1.
    assert_eq!(sizes.classes, 8);
    let columns = [
        // web: of t0, kept in use and kept idle in m0 and new in m1 and m2; of t1, new in each MSB;
        // below and above the spread limit in each MSB; the largest share; short; below in dc1;
        // and which MSB has the largest share.
        2 + 2 + 3 + 6 + 1 + 1 + 1 + 3,
        // batch: new in each MSB, and what it keeps in m1; the spread again; short.
        3 + 1 + 6 + 1,
        // lent: what it keeps.
        1,
        // shared buffers of t0 and t1: new in each MSB; short.
        (3 + 1) + (3 + 1),
    ];
    assert_eq!(sizes.phase1_columns, columns.iter().sum::<usize>());
    let rows = [
        // Six pools: two types in three MSBs.
        6,
        // web: capacity, both bounds of two datacenters (the buffer is in the upper ones), balance
        // and largest share of three MSBs.
        // and which MSB has the largest share, one of them.
        1 + 2 * 2 + 3 + 3 + 3 + 1,
        // batch: capacity and the balance of three MSBs.
        1 + 3,
        // lent and the shared buffers: capacity.
        3,
    ];
    assert_eq!(sizes.phase1_rows, rows.iter().sum::<usize>());
}

/// Classes grow with what tells servers apart, not with their number.
#[test]
fn pooled_model_size_is_independent_of_server_count() {
    let small = solved(&snapshot(&village()), &config()).stats.sizes;
    let mut parts = village();
    let once = parts.servers.clone();
    for copy in 1..10 {
        parts.servers.extend(once.iter().map(|row| fleet::ServerRow {
            server_id: format!("{}-copy{copy}", row.server_id).into(),
            ..row.clone()
        }));
    }
    parts.unavailability[0].scope_id = "m2-0".into();
    for copy in 1..10 {
        parts.unavailability.push(event(copy, "server", &format!("m2-0-copy{copy}"), "software"));
    }
    parts.reservations[0].capacity_rru *= 10.0;
    parts.reservations[1].capacity_rru *= 10.0;
    let large = solved(&snapshot(&parts), &config()).stats.sizes;
    assert_eq!(large.servers, 90);
    assert_eq!(large.classes, small.classes);
    assert_eq!(large.phase1_columns, small.phase1_columns);
    assert_eq!(large.phase1_rows, small.phase1_rows);
    assert_eq!(large.phase1_nonzeros, small.phase1_nonzeros);
}
