//! The view of a decision about loans.

use crate::region::Region;
use fleet::audit::Maintained;
use fleet::{
    HardwareTypeIx, HardwareTypeName, MsbIx, MsbName, ReservationIx, ReservationKind,
    ReservationName, Rru,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// Servers of one owner, MSB and hardware type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoanGroup {
    /// The reservation that owns them.
    pub owner: ReservationName,
    /// Whether the owner is a shared buffer.
    pub shared: bool,
    /// The owner's priority; 0 is the most important.
    pub priority: i32,
    /// Their MSB.
    pub msb: MsbName,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// The value of one server to its owner.
    pub value: Rru,
    /// Number of servers, whether or not they work.
    pub total: u64,
    /// Servers that can be lent.
    pub idle: u64,
    /// Servers that are lent, those on their way back included.
    pub lent: u64,
    /// Whether the MSB counts as lost.
    pub lost: bool,
    /// Whether the owner lends: its embedded buffer covers the loss of an MSB and of nothing else.
    pub lends: bool,
}

/// Servers of one group that one reservation borrows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loan {
    /// The elastic reservation.
    pub borrower: ReservationName,
    /// The reservation that owns them.
    pub owner: ReservationName,
    /// Their MSB.
    pub msb: MsbName,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// Number of servers.
    pub count: u64,
}

/// The view of a decision about loans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoanView {
    /// Servers of guaranteed reservations and shared buffers, by owner, MSB and hardware type.
    pub groups: Vec<LoanGroup>,
    /// Lent servers that are not on their way back.
    pub loans: Vec<Loan>,
    /// V of each elastic reservation, by hardware type.
    pub borrowers: BTreeMap<ReservationName, BTreeMap<HardwareTypeName, Rru>>,
    /// Stored shares of elastic reservations. They override [`super::Elastic::shares`].
    pub shares: BTreeMap<ReservationName, f64>,
    /// The time since the first outage began, and the number of lent servers of guaranteed reservations
    /// at that time; `None`: no MSB is lost.
    pub outage: Option<(Duration, u64)>,
}

impl LoanView {
    /// The view of a region, after loans of failed servers ended and loans that cannot go on are on
    /// their way back: servers that the owner uses, that are maintained or drained, or of a type that the
    /// borrower cannot use.
    ///
    /// A snapshot holds no stored shares.
    pub fn of(region: &Region, outage: Option<(Duration, u64)>) -> LoanView {
        let snapshot = region.snapshot;
        let name = |ix: ReservationIx| region.reservation(ix).id.clone();
        let mut groups: BTreeMap<(ReservationIx, MsbIx, HardwareTypeIx), LoanGroup> =
            BTreeMap::new();
        let mut loans: BTreeMap<_, u64> = BTreeMap::new();
        for (server, state, msb) in region.servers() {
            let Some(owner) = state.owner.filter(|_| state.target.is_none()) else { continue };
            let owns = region.reservation(owner);
            if owns.kind == ReservationKind::Elastic {
                continue;
            }
            let ty = server.hardware_type;
            let borrower = state.borrower.filter(|_| state.down.is_none());
            let group = groups.entry((owner, msb, ty)).or_insert_with(|| LoanGroup {
                owner: owns.id.clone(),
                shared: owns.kind == ReservationKind::SharedBuffer,
                priority: owns.priority,
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: snapshot.hardware_types[ty.ix()].clone(),
                value: owns.value(ty).unwrap_or_default(),
                total: 0,
                idle: 0,
                lent: 0,
                lost: region.lost.contains(&msb),
                lends: owns.survives.is_empty(),
            });
            group.total += 1;
            group.lent += u64::from(borrower.is_some());
            let idle = !state.in_use && borrower.is_none() && state.is_available();
            group.idle += u64::from(idle);
            let Some(borrower) = borrower else { continue };
            let overdue = state.in_use
                || state.maintained > Maintained::InService
                || state.cordoned
                || region.reservation(borrower).value(ty).is_none();
            if !overdue && state.staying_move.is_none() {
                *loans.entry((borrower, owner, msb, ty)).or_default() += 1;
            }
        }
        let loan =
            |((borrower, owner, msb, ty), count): ((_, _, MsbIx, HardwareTypeIx), u64)| Loan {
                borrower: name(borrower),
                owner: name(owner),
                msb: snapshot.msbs[msb.ix()].id.clone(),
                hardware_type: snapshot.hardware_types[ty.ix()].clone(),
                count,
            };
        let elastic = snapshot.reservations.iter();
        let elastic =
            elastic.filter(|of| of.kind == ReservationKind::Elastic && !of.rru.is_empty());
        let values = |of: &fleet::Reservation| {
            let name = |ty: HardwareTypeIx| snapshot.hardware_types[ty.ix()].clone();
            of.rru.iter().map(|&(ty, value)| (name(ty), value)).collect()
        };
        LoanView {
            groups: groups.into_values().collect(),
            loans: loans.into_iter().map(loan).collect(),
            borrowers: elastic.map(|of| (of.id.clone(), values(of))).collect(),
            shares: BTreeMap::new(),
            outage,
        }
    }
}
