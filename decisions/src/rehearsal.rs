//! The loss of an MSB, rehearsed on a snapshot: what the mover would decide, by the very functions that
//! decide it. Nothing is written, so there is nothing that could be forgotten to be taken back.

use crate::elastic::{self, Elastic, Loan, LoanGroup, LoanView};
use crate::give_way::{self, GiveWay, HeldGroup, Holder, RegionHeld, Standing};
use crate::place::PlaceLimits;
use fleet::audit::{Maintained, maintained};
use fleet::{MsbIx, Name, RegionSnapshot, Reservation, ReservationKind, Server};
use std::collections::BTreeMap;
use std::time::Duration;

/// What would be decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rehearsal {
    /// Loans that come back at once.
    pub recalled: Vec<Loan>,
    /// The rest of what guaranteed reservations lent, which comes back after a while.
    pub recalled_later: Vec<Loan>,
    /// Who could give way to whom: of those who are short or less important.
    pub give_way: Vec<GiveWay>,
    /// What each reservation that is short or gives way has before and after that.
    pub standings: Vec<Standing>,
}

/// Rehearses the loss of an MSB.
pub fn rehearse(region: &RegionSnapshot, lost: MsbIx) -> Rehearsal {
    let view = loans(region, lost);
    let settings = Elastic::default();
    let recalled = elastic::plan(&view, &settings).recall;
    let later = LoanView {
        loans: without(&view.loans, &recalled),
        outage: Some((Duration::MAX, 0)),
        ..view
    };
    let recalled_later = elastic::plan(&later, &settings).recall;
    let (give_way, standings) = give_way::plan(&held(region, lost));
    Rehearsal { recalled, recalled_later, give_way, standings }
}

/// What works within 30 minutes of the loss: in another MSB, and neither out of use nor in maintenance
/// that cannot be recalled by then.
fn works<'a>(
    region: &'a RegionSnapshot,
    lost: MsbIx,
) -> impl Iterator<Item = (&'a Server, MsbIx)> + 'a {
    let servers = region.servers.iter().zip(maintained(region));
    let there = servers.filter(|(server, out)| server.available && *out != Maintained::Stays);
    let placed = there.map(|(server, _)| (server, region.msb_of(server)));
    placed.filter(move |(_, msb)| *msb != lost)
}

/// What is lent, as the mover counts it right after an outage began.
fn loans(region: &RegionSnapshot, lost: MsbIx) -> LoanView {
    let of = |ix: fleet::ReservationIx| &region.reservations[ix.ix()];
    let mut groups: BTreeMap<(fleet::ReservationIx, MsbIx, usize), LoanGroup> = BTreeMap::new();
    for server in region.servers.iter().filter(|server| server.pending.is_none()) {
        let (Some(owner), msb) = (server.current, region.msb_of(server)) else { continue };
        let owns = of(owner);
        if owns.kind == ReservationKind::Elastic {
            continue;
        }
        let ty = server.hardware_type;
        let group = groups.entry((owner, msb, ty.ix())).or_insert_with(|| LoanGroup {
            owner: owns.id.clone(),
            shared: owns.kind == ReservationKind::SharedBuffer,
            priority: owns.priority,
            msb: region.msbs[msb.ix()].id.clone(),
            hardware_type: region.hardware_types[ty.ix()].clone(),
            value: owns.value(ty).unwrap_or_default(),
            total: 0,
            idle: 0,
            lent: 0,
            lost: msb == lost,
        });
        let works = server.available && msb != lost;
        group.total += 1;
        group.lent += u64::from(server.loaned_to.is_some());
        group.idle += u64::from(works && !server.in_use && server.loaned_to.is_none());
    }
    let lent_of = |server: &&Server| server.loaned_to.is_some();
    let guaranteed = |server: &&Server| {
        server.current.is_some_and(|owner| of(owner).kind == ReservationKind::Guaranteed)
    };
    let lent = region.servers.iter().filter(lent_of).filter(guaranteed).count();
    let mut loans: BTreeMap<(Name, Name, Name, Name), u64> = BTreeMap::new();
    for (server, msb) in works(region, lost).filter(|(server, _)| server.pending.is_none()) {
        let (Some(borrower), Some(owner)) = (server.loaned_to, server.current) else { continue };
        let key = (
            of(borrower).id.clone(),
            of(owner).id.clone(),
            region.msbs[msb.ix()].id.clone(),
            region.hardware_types[server.hardware_type.ix()].clone(),
        );
        *loans.entry(key).or_default() += 1;
    }
    let loan = |((borrower, owner, msb, hardware_type), count)| Loan {
        borrower,
        owner,
        msb,
        hardware_type,
        count,
    };
    LoanView {
        shares: BTreeMap::new(),
        groups: groups.into_values().collect(),
        loans: loans.into_iter().map(loan).collect(),
        borrowers: BTreeMap::new(),
        outage: Some((Duration::ZERO, lent as u64)),
    }
}

/// Loans less those that come back.
fn without(loans: &[Loan], back: &[Loan]) -> Vec<Loan> {
    let same = |a: &Loan, b: &Loan| {
        (&a.borrower, &a.owner, &a.msb, &a.hardware_type)
            == (&b.borrower, &b.owner, &b.msb, &b.hardware_type)
    };
    let left = loans.iter().map(|loan| {
        let gone: u64 = back.iter().filter(|of| same(of, loan)).map(|of| of.count).sum();
        Loan { count: loan.count.saturating_sub(gone), ..loan.clone() }
    });
    left.filter(|loan| loan.count > 0).collect()
}

/// Who holds what works, as it is counted before reservations give way.
fn held(region: &RegionSnapshot, lost: MsbIx) -> RegionHeld {
    let name = |ty: fleet::HardwareTypeIx| region.hardware_types[ty.ix()].clone();
    let guaranteed = |of: &&Reservation| of.kind == ReservationKind::Guaranteed;
    let holder = |of: &Reservation| Holder {
        reservation: of.id.clone(),
        priority: of.priority,
        capacity: of.capacity,
        values: of.rru.iter().map(|&(ty, value)| (name(ty), value)).collect(),
        place: PlaceLimits::of(region, of),
    };
    let mut groups: BTreeMap<_, HeldGroup> = BTreeMap::new();
    for (server, msb) in works(region, lost) {
        let key = (server.holder(), msb, server.hardware_type, server.in_use);
        let group = groups.entry(key).or_insert_with(|| {
            let holder = server.holder().map(|ix| &region.reservations[ix.ix()]);
            HeldGroup {
                holder: holder.map(|of| of.id.clone()),
                shared: holder.is_some_and(|of| of.kind == ReservationKind::SharedBuffer),
                msb: region.msbs[msb.ix()].id.clone(),
                hardware_type: name(server.hardware_type),
                in_use: server.in_use,
                held: 0,
                takable: 0,
            }
        });
        group.held += 1;
        group.takable += u64::from(server.pending.is_none());
    }
    RegionHeld {
        holders: region.reservations.iter().filter(guaranteed).map(holder).collect(),
        groups: groups.into_values().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Loan, rehearse};
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
    fn loans_come_back_and_the_less_important_could_give_way() {
        let found = rehearse(&region(), MsbIx::new(0));
        // Eight were lent, two may stay; of the six that are left in m1, four come back.
        let count = |loans: &[Loan]| loans.iter().map(|loan| loan.count).sum::<u64>();
        assert_eq!((count(&found.recalled), count(&found.recalled_later)), (4, 2));
        assert!(found.recalled.iter().all(|loan| &*loan.msb == "m1"), "m0 is gone with its loans");
        // Web lacks three: two free ones, then one of ads, which lacks it then and has no reservation below it.
        let rows: Vec<(Option<&str>, &str, u64)> = (found.give_way.iter())
            .map(|of| (of.source.as_deref(), &*of.target, of.count))
            .collect();
        assert_eq!(rows, [(None, "web", 2), (Some("ads"), "web", 1)]);
        let stands: Vec<(&str, Rru, Rru)> =
            (found.standings.iter()).map(|of| (&*of.reservation, of.before, of.after)).collect();
        let rru = Rru::units;
        assert_eq!(stands, [("web", rru(4), rru(7)), ("ads", rru(2), rru(1))]);
    }
}
