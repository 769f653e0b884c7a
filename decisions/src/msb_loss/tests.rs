use super::{Loan, simulate};
use fleet::{
    MsbIx, RegionSnapshot, ReservationRow, Rru, RruRow, ServerRow, SnapshotParts, Weights,
};

/// Two MSBs of eight servers: `web` has four in each and wants six, `ads`, less important, two in
/// each; of `ads` all four, of `web` four in m1 are lent.
fn region() -> RegionSnapshot {
    let reservation = |id: &str, kind: &str, capacity_rru, priority| ReservationRow {
        reservation_id: id.into(),
        owner: id.into(),
        kind: kind.into(),
        capacity_rru,
        msb_buffer: true,
        priority,
        msb_alpha: None,
        rack_alpha: None,
        affinity_theta: None,
        host_profile: None,
        replicas: None,
        replicas_per_msb: None,
    };
    let server = |number: usize| {
        let (msb, place) = (number / 8, number % 8);
        let owner = ["web", "web", "web", "web", "ads", "ads"].get(place);
        let lent = owner == Some(&"ads") || (owner == Some(&"web") && msb == 1);
        ServerRow {
            server_id: format!("s{number:02}").into(),
            datacenter: "dc".into(),
            msb: format!("m{msb}").into(),
            rack: format!("m{msb}-rack").into(),
            hardware_type: "t".into(),
            current_reservation: owner.map(|name| (*name).into()),
            target_reservation: None,
            target_pending: false,
            in_use: false,
            loaned_to: lent.then(|| "batch".into()),
            power_watts: None,
        }
    };
    let worth =
        |id: &str| RruRow { reservation_id: id.into(), hardware_type: "t".into(), rru: 1.0 };
    let parts = SnapshotParts {
        region: "region".into(),
        taken_at: chrono::DateTime::UNIX_EPOCH,
        weights: Weights::default(),
        shared_buffer_fraction: Some(0.0),
        servers: (0..16).map(server).collect(),
        reservations: vec![
            reservation("web", "guaranteed", 7.0, 0),
            reservation("ads", "guaranteed", 2.0, 1),
            reservation("batch", "elastic", 0.0, 0),
        ],
        rru: vec![worth("web"), worth("ads"), worth("batch")],
        affinity: Vec::new(),
        allowed_datacenters: Vec::new(),
        unavailability: Vec::new(),
        ahead: fleet::AheadParts::default(),
    };
    RegionSnapshot::new(parts).expect("a region")
}

#[test]
fn simulated_loss_recalls_loans_and_offers_preemption() {
    let found = simulate(&region(), MsbIx::new(0));
    // Eight were lent, two may stay; of the six that are left in m1, four come back.
    let count = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>();
    assert_eq!((count(&found.recalled), count(&found.recalled_later)), (4, 2));
    assert!(found.recalled.iter().all(|loan| &*loan.msb == "m1"), "m0 is gone with its loans");
    // Web lacks three: two free ones, then one of ads, which lacks it then and has no reservation below it.
    let rows: Vec<(Option<&str>, &str, u64)> =
        (found.give_way.iter()).map(|of| (of.source.as_deref(), &*of.target, of.count)).collect();
    assert_eq!(rows, [(None, "web", 2), (Some("ads"), "web", 1)]);
    let stands: Vec<(&str, Rru, Rru)> =
        (found.standings.iter()).map(|of| (&*of.reservation, of.before, of.after)).collect();
    let rru = Rru::units;
    assert_eq!(stands, [("web", rru(4), rru(7)), ("ads", rru(2), rru(1))]);
}
