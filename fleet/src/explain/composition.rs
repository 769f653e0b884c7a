//! Why a reservation is made of the hardware it is made of (RAS, SOSP'21, section 5.3): for each type that
//! it accepts, what it holds, who has the rest, and what keeps it from taking what is free.

use super::ledger::{Held, Ledger};
use super::relax::ask;
use super::text::{amount, count};
use crate::audit::as_rru;
use crate::id::{HardwareTypeIx, HardwareTypeName, ReservationIx};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use serde::Serialize;

/// Why a reservation takes no more of a hardware type: a closed list, the first that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TypeReason {
    /// The region has none of it.
    NoneThere,
    /// All of it is out of use.
    Unavailable,
    /// Others and it hold all of it.
    NoneFree,
    /// All free servers are in MSBs where one more would be beyond its spread limit (eq. 3).
    MsbSpread,
    /// All free servers are in datacenters where one more would be beyond its share (eq. 7).
    Affinity,
    /// All free servers are in such MSBs or in such datacenters.
    Place,
    /// What it holds is all it asks for.
    Enough,
    /// The reservation is short, and may take what is free.
    Open,
}

/// What a reservation has of a hardware type that it accepts. Servers are available ones, unless
/// something else is said.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeUse {
    /// The type.
    pub hardware_type: HardwareTypeName,
    /// V: what one server is worth to it.
    #[serde(rename = "value_rru", serialize_with = "as_rru")]
    pub value: Rru,
    /// Those it holds.
    pub servers: usize,
    /// What they are worth.
    #[serde(rename = "rru", serialize_with = "as_rru")]
    pub amount: Rru,
    /// Servers without a holder.
    pub free: usize,
    /// Of these, those in MSBs where one more would be beyond its spread limit or its replica rule.
    pub free_beyond_spread: usize,
    /// Of these, those in datacenters that it is not allowed in, or where one more would be beyond
    /// its share.
    pub free_beyond_affinity: usize,
    /// Of these, those in neither.
    pub free_within: usize,
    /// Those of other guaranteed reservations.
    pub held_by_others: usize,
    /// Of these, those of more important ones.
    pub held_by_more_important: usize,
    /// Those of shared buffers.
    pub shared_buffer: usize,
    /// Unavailable servers of any holder.
    pub unavailable: usize,
    /// Why it takes no more.
    pub reason: TypeReason,
    /// The reason with its numbers, for people.
    pub sentence: String,
}

/// The types that a reservation accepts, those it has most RRU of first, then those worth most.
/// `msb_limit` is alpha^F C of eq. 3; `None`: it has no spread goals.
pub(super) fn composition(
    ledger: &Ledger,
    ix: ReservationIx,
    msb_limit: Option<Rru>,
) -> Vec<TypeUse> {
    let snapshot = ledger.snapshot;
    let reservation = &snapshot.reservations[ix.ix()];
    let mut msbs = vec![Rru::ZERO; snapshot.msbs.len()];
    for &(ty, value) in &reservation.rru {
        for entry in ledger.held_by(ix, ty).iter().filter(|of| ledger.allows(ix, of.msb)) {
            msbs[entry.msb.ix()] += value.times(entry.servers);
        }
    }
    let mut datacenters = vec![Rru::ZERO; snapshot.datacenters.len()];
    for (msb, amount) in snapshot.msbs.iter().zip(&msbs) {
        datacenters[msb.datacenter.ix()] += *amount;
    }
    let total: Rru = msbs.iter().copied().sum();
    let lost = msbs.iter().copied().max().unwrap_or_default();
    let guaranteed = if reservation.msb_buffer { total - lost } else { total };
    let ask = ask(ledger, ix);
    let buffer = if reservation.msb_buffer { lost } else { Rru::ZERO };
    let limits = Limits {
        ix,
        msb_limit,
        msb_max: reservation.msb_max(),
        most: most(&ask.affinity, reservation.capacity, buffer),
        msbs,
        datacenters,
    };
    let enough = guaranteed >= reservation.capacity;
    let mut all: Vec<TypeUse> = (reservation.rru.iter())
        .map(|&(ty, value)| type_use(ledger, ix, (ty, value), &limits, enough))
        .collect();
    all.sort_by(|a, b| {
        (b.amount, b.value, &a.hardware_type).cmp(&(a.amount, a.value, &b.hardware_type))
    });
    all
}

/// What it holds by place, and how much it may.
struct Limits {
    ix: ReservationIx,
    msb_limit: Option<Rru>,
    /// By its replica rule.
    msb_max: Option<Rru>,
    /// By datacenter; `None`: it has no affinity.
    most: Option<Vec<f64>>,
    msbs: Vec<Rru>,
    datacenters: Vec<Rru>,
}

/// (A + theta) C by datacenter, and the embedded buffer where A is not zero, in RRU.
fn most(affinity: &Option<(Vec<f64>, f64)>, capacity: Rru, buffer: Rru) -> Option<Vec<f64>> {
    let (shares, theta) = affinity.as_ref()?;
    let most = |share: &f64| {
        let beside = if *share > 0.0 { buffer.to_f64() } else { 0.0 };
        (share + theta) * capacity.to_f64() + beside
    };
    Some(shares.iter().map(most).collect())
}

fn type_use(
    ledger: &Ledger,
    ix: ReservationIx,
    (ty, value): (HardwareTypeIx, Rru),
    limits: &Limits,
    enough: bool,
) -> TypeUse {
    let snapshot = ledger.snapshot;
    let own = &snapshot.reservations[ix.ix()];
    let mut row = TypeUse {
        hardware_type: snapshot.hardware_types[ty.ix()].clone(),
        value,
        servers: 0,
        amount: Rru::ZERO,
        free: 0,
        free_beyond_spread: 0,
        free_beyond_affinity: 0,
        free_within: 0,
        held_by_others: 0,
        held_by_more_important: 0,
        shared_buffer: 0,
        unavailable: ledger.unavailable(ty).iter().sum(),
        reason: TypeReason::Open,
        sentence: String::new(),
    };
    for entry in ledger.held(ty) {
        match entry.holder {
            Some(holder) if holder == ix => row.servers += entry.servers,
            Some(holder) => {
                let other = &snapshot.reservations[holder.ix()];
                if other.kind == ReservationKind::SharedBuffer {
                    row.shared_buffer += entry.servers;
                } else {
                    row.held_by_others += entry.servers;
                    if other.priority < own.priority {
                        row.held_by_more_important += entry.servers;
                    }
                }
            }
            None => free(&mut row, ledger, entry, limits),
        }
    }
    row.amount = value.times(row.servers);
    row.reason = reason(&row, enough);
    let msb_limit = [limits.msb_limit, limits.msb_max].into_iter().flatten().min();
    let is_held = !own.allowed_datacenters.is_empty();
    row.sentence = sentence(&row, msb_limit, is_held);
    row
}

fn free(row: &mut TypeUse, ledger: &Ledger, entry: &Held, limits: &Limits) {
    let datacenter = ledger.snapshot.msbs[entry.msb.ix()].datacenter.ix();
    let in_msb = limits.msbs[entry.msb.ix()] + row.value;
    let beyond_spread =
        [limits.msb_limit, limits.msb_max].into_iter().flatten().any(|limit| in_msb > limit);
    let with_one = (limits.datacenters[datacenter] + row.value).to_f64();
    let beyond_affinity = !ledger.allows(limits.ix, entry.msb)
        || limits.most.as_ref().is_some_and(|most| with_one > most[datacenter]);
    row.free += entry.servers;
    if beyond_spread {
        row.free_beyond_spread += entry.servers;
    }
    if beyond_affinity {
        row.free_beyond_affinity += entry.servers;
    }
    if !beyond_spread && !beyond_affinity {
        row.free_within += entry.servers;
    }
}

fn reason(row: &TypeUse, enough: bool) -> TypeReason {
    let available = row.servers + row.free + row.held_by_others + row.shared_buffer;
    if available + row.unavailable == 0 {
        TypeReason::NoneThere
    } else if available == 0 {
        TypeReason::Unavailable
    } else if row.free == 0 {
        TypeReason::NoneFree
    } else if enough {
        TypeReason::Enough
    } else if row.free_beyond_spread == row.free {
        TypeReason::MsbSpread
    } else if row.free_beyond_affinity == row.free {
        TypeReason::Affinity
    } else if row.free_within == 0 {
        TypeReason::Place
    } else {
        TypeReason::Open
    }
}

/// `is_restricted`: the reservation is restricted to datacenters.
fn sentence(row: &TypeUse, msb_limit: Option<Rru>, is_restricted: bool) -> String {
    let spread = || {
        let limit =
            msb_limit.map_or_else(String::new, |limit| format!(" of {} RRU", amount(limit)));
        format!("in MSBs at its spread limit{limit}")
    };
    let shares = if is_restricted {
        "in datacenters that are not allowed or have reached its share"
    } else {
        "in datacenters that have reached its share"
    };
    let free = if row.free == 1 {
        "1 is free".to_owned()
    } else {
        format!("{} are free", count(row.free))
    };
    let all = if row.free == 1 { "" } else { "all " };
    match row.reason {
        TypeReason::NoneThere => "the region has no server of this type".to_owned(),
        TypeReason::Unavailable => format!("all {} are unavailable", count(row.unavailable)),
        TypeReason::NoneFree => {
            let mut parts = Vec::new();
            if row.held_by_others > 0 {
                let important = match row.held_by_more_important {
                    0 => String::new(),
                    held => format!(" ({} by more important reservations)", count(held)),
                };
                parts.push(format!(
                    "{} held by other reservations{important}",
                    count(row.held_by_others)
                ));
            }
            if row.shared_buffer > 0 {
                parts.push(format!("{} in the shared buffer", count(row.shared_buffer)));
            }
            if row.unavailable > 0 {
                parts.push(format!("{} unavailable", count(row.unavailable)));
            }
            if parts.is_empty() {
                "the reservation holds all of them".to_owned()
            } else {
                format!("no free server: {}", parts.join(", "))
            }
        }
        TypeReason::MsbSpread => format!("{free}, {all}{}", spread()),
        TypeReason::Affinity => format!("{free}, {all}{shares}"),
        TypeReason::Place => format!(
            "{free}: {} {}, {} {shares}",
            count(row.free_beyond_spread),
            spread(),
            count(row.free_beyond_affinity)
        ),
        TypeReason::Enough => format!("{free}; the request is satisfied"),
        TypeReason::Open => {
            format!("{free}, {} within its limits", count(row.free_within))
        }
    }
}
