//! The small region that comes with the project, solved and solved again.

use fleet::{Name, RegionSnapshot, ReservationName, ServerName, Targets, holder_name};
use scenarios::{Solved, solve};
use std::path::Path;
use std::sync::OnceLock;

fn region() -> &'static RegionSnapshot {
    static REGION: OnceLock<RegionSnapshot> = OnceLock::new();
    REGION.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../datasets/data/small-region");
        datasets::read_snapshot(&folder).expect("the committed region is a valid snapshot")
    })
}

fn solved() -> &'static Solved {
    static SOLVED: OnceLock<Solved> = OnceLock::new();
    SOLVED.get_or_init(|| solve(region()))
}

#[test]
fn every_guarantee_holds() {
    let audit = &solved().audit;
    assert_eq!(solved().objections, [] as [String; 0]);
    let short: Vec<&ReservationName> = audit.short().map(|row| &row.reservation_id).collect();
    assert_eq!(short, [] as [&ReservationName; 0], "the generator promises that all requests fit");
    for loss in &audit.msb_losses {
        assert_eq!(loss.below, [], "losing {} leaves every reservation its capacity", loss.msb);
    }
}

#[test]
fn the_answer_is_near_its_bound() {
    let phase1 = &solved().stats.phase1;
    assert!(phase1.dual_bound > 0.0, "{phase1:?}");
    assert!(phase1.primal <= phase1.initial_primal, "{phase1:?}");
    assert!(phase1.gap <= GAP_MAX, "{phase1:?}");
}

/// About twice what it is: small regions are the hard ones for the bound.
const GAP_MAX: f64 = 0.02;

#[test]
fn solving_again_moves_nothing() {
    let parts = solved().targets.apply(region());
    let next = RegionSnapshot::new(parts).expect("targets carried out are a valid region");
    let again = solve(&next);
    let moved: Vec<_> = again.targets.diff(&next).collect();
    assert_eq!(moved, []);
}

#[test]
fn the_order_of_rows_does_not_matter() {
    let mut parts = region().to_parts();
    parts.servers.reverse();
    let middle = parts.servers.len() / 3;
    parts.servers.rotate_left(middle);
    parts.reservations.reverse();
    parts.rru.reverse();
    parts.affinity.reverse();
    parts.unavailability.reverse();
    let shuffled = RegionSnapshot::new(parts).expect("the same rows");
    let answer = solve(&shuffled);
    assert_eq!(by_name(&shuffled, &answer.targets), by_name(region(), &solved().targets));
}

fn by_name(snapshot: &RegionSnapshot, targets: &Targets) -> Vec<(ServerName, Name)> {
    let pair =
        |(server, &holder): (&fleet::Server, _)| (server.id.clone(), holder_name(snapshot, holder));
    snapshot.servers.iter().zip(targets.holders()).map(pair).collect()
}
