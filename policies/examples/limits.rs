//! Time to compile limits of groups for a plan, and to see that they are known: `cargo run -p policies --example limits`.
//! Generated regions.
#![expect(clippy::disallowed_methods, reason = "it measures time")]

use fleet::{RegionSnapshot, ReservationRow};
use policies::{Policies, World, limits_and_reads};
use std::error::Error;
use std::time::Instant;
use testkit::rows::{parts, reservation, rru, server, snapshot};

/// Servers of a rack, MSBs, hardware types.
const RACK: usize = 20;
const MSBS: usize = 36;
const TYPES: usize = 12;

/// Power of each MSB, licences of a product, a third of a type for an owner, an owner without a type.
const FILES: [(&str, &str); 4] = [
    (
        "power",
        "-- @hard_constraint
        CREATE VIEW power AS SELECT s.msb FROM servers s WHERE s.target_reservation IS NOT NULL
        GROUP BY s.msb HAVING sum(s.power_watts) <= 600000",
    ),
    (
        "licences",
        "-- @hard_constraint
        CREATE VIEW licences AS SELECT count(*) AS used FROM servers s
        JOIN reservations r ON r.reservation_id = s.target_reservation
        WHERE r.reservation_id LIKE 'r0%' GROUP BY r.kind HAVING count(*) <= 100",
    ),
    ("share", include_str!("../library/region/owner_share_of_type.sql")),
    (
        "age",
        "-- @hard_constraint
        CREATE VIEW age AS SELECT s.server_id FROM servers s
        JOIN reservations r ON r.reservation_id = s.target_reservation
        WHERE r.owner <> 'o1' OR s.hardware_type <> 't3'",
    ),
];

fn region(servers: usize, reservations: usize) -> RegionSnapshot {
    let mut parts = parts();
    for number in 0..servers {
        let rack = number / RACK;
        let msb = format!("m{:02}", rack % MSBS);
        let ty = format!("t{}", rack / MSBS % TYPES);
        let place = ("dc0", msb.as_str(), &*format!("{msb}-k{rack:05}"));
        let mut row = server(&format!("s{number:07}"), place, &ty);
        row.power_watts = Some([350.0, 420.5, 510.0][rack / MSBS % 3]);
        parts.servers.push(row);
    }
    for number in 0..reservations {
        let name = format!("r{number:04}");
        let owner = format!("o{}", number % 40).into();
        parts.reservations.push(ReservationRow { owner, ..reservation(&name, 10.0) });
        parts.rru.extend((0..TYPES).map(|ty| rru(&name, &format!("t{ty}"), 1.0)));
    }
    snapshot(&parts)
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("| servers | reservations | tables ms | all ms | limits | known ms | sums ms |");
    for (servers, reservations) in [(1_000, 10), (10_000, 80), (100_000, 400), (1_000_000, 1_000)] {
        let region = region(servers, reservations);
        let policies = Policies::parse(FILES)?;
        let start = Instant::now();
        let ms = |start: Instant| start.elapsed().as_secs_f64() * 1e3;
        let world = World::region(&region)?;
        let tables = ms(start);
        let (limits, reads) = limits_and_reads(&policies, &world, &region)?;
        let all = ms(start);
        let start = Instant::now();
        let number = reads.fingerprint(&region);
        let known = ms(start);
        let start = Instant::now();
        let sums = limits.usage(region.servers.iter().map(fleet::Server::holder));
        let sums = (ms(start), sums.len());
        println!(
            "| {servers} | {reservations} | {tables:.0} | {all:.0} | {} | {known:.1} | {:.1} | {number:x}",
            sums.1, sums.0
        );
    }
    Ok(())
}
