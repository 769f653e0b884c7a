use super::{Loan, simulate};
use fleet::{MsbIx, RegionSnapshot, ReservationRow, Rru, ServerRow, SnapshotParts};
use testkit::rows::{parts, reservation, rru, server, snapshot};

/// Two MSBs of eight servers: `web` has four in each and wants six, `ads`, less important, two in
/// each; of `ads` all four, of `web` four in m1 are lent.
fn region() -> RegionSnapshot {
    let servers = (0..16).map(|number: usize| {
        let (msb, place) = (number / 8, number % 8);
        let owner = ["web", "web", "web", "web", "ads", "ads"].get(place);
        let lent = owner == Some(&"ads") || (owner == Some(&"web") && msb == 1);
        let at = ("dc", &*format!("m{msb}"), &*format!("m{msb}-rack"));
        ServerRow {
            current_reservation: owner.map(|name| (*name).into()),
            loaned_to: lent.then(|| "batch".into()),
            ..server(&format!("s{number:02}"), at, "t")
        }
    });
    let ads = ReservationRow { priority: 1, ..reservation("ads", 2.0) };
    let batch = ReservationRow { kind: "elastic".into(), ..reservation("batch", 0.0) };
    snapshot(&SnapshotParts {
        servers: servers.collect(),
        reservations: vec![reservation("web", 7.0), ads, batch],
        rru: ["web", "ads", "batch"].map(|name| rru(name, "t", 1.0)).into(),
        ..parts()
    })
}

#[test]
fn simulated_loss_recalls_loans_and_offers_preemption() {
    let found = simulate(&region(), MsbIx::new(0));
    // Eight were lent, two may stay; of the six that are left in m1, four come back.
    let count = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>();
    assert_eq!((count(&found.recalled), count(&found.recalled_later)), (4, 2));
    assert!(found.recalled.iter().all(|loan| &*loan.msb == "m1"), "m0 is gone with its loans");
    // Web lacks three: two free ones, then one of ads, which lacks it then and has no reservation below it.
    let rows: Vec<(Option<&str>, &str, u64)> = (found.preemptions.iter())
        .map(|of| (of.source.as_deref(), &*of.target, of.count))
        .collect();
    assert_eq!(rows, [(None, "web", 2), (Some("ads"), "web", 1)]);
    let stands: Vec<(&str, Rru, Rru)> =
        (found.standings.iter()).map(|of| (&*of.reservation, of.before, of.after)).collect();
    let rru = Rru::units;
    assert_eq!(stands, [("web", rru(4), rru(7)), ("ads", rru(2), rru(1))]);
}
