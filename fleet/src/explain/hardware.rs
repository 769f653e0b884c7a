//! Sets of hardware types, what is there of them and what is asked of them.
//!
//! A reservation that may use several types competes with others that may use some of them and
//! more besides, so "its types are exhausted" is a statement about a *set* of types: everything
//! asked by reservations that can use nothing outside the set, against everything there is in it
//! (Hall's condition). The smallest set that shows a shortage explains it best.

use super::ledger::{Ledger, eligible_types};
use super::text::{amount, amounts, count, counted, set_name};
use crate::audit::{as_rru, from_rru, required, unit, usable_beside};
use crate::id::{HardwareTypeIx, HardwareTypeName, ReservationIx, ReservationName};
use crate::reservation::{Reservation, ReservationKind};
use crate::rru::Rru;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Unions with one other reservation's types that are tried, at most, the smallest first: a wide
/// union explains little, and each costs a pass over the reservations.
const UNIONS_MAX: usize = 32;

/// Where demands saturate: a few of them can still be added up.
const DEMAND_MAX: Rru = Rru(i64::MAX / 8);

/// Types, supply and demand of a set of hardware types.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HardwareSet {
    /// What people call it: the models of its types.
    pub name: String,
    /// The types.
    pub hardware_types: Vec<HardwareTypeName>,
    /// In whose values the amounts below are; `None`: in servers.
    #[serde(deserialize_with = "required")]
    pub in_values_of: Option<ReservationName>,
    /// Available servers.
    pub servers: usize,
    /// Servers that are not available.
    pub unavailable_servers: usize,
    /// What the available servers are worth.
    #[serde(rename = "supply_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub supply: Rru,
    /// What of it is left, at best, after the loss of any one MSB.
    #[serde(rename = "usable_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub usable: Rru,
    /// The sum of C of guaranteed reservations that can use nothing outside the set.
    #[serde(rename = "asked_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub asked: Rru,
    /// Those reservations.
    pub asked_by: Vec<ReservationName>,
    /// The sum of C of shared buffers of its types.
    #[serde(
        rename = "shared_buffer_rru",
        serialize_with = "as_rru",
        deserialize_with = "from_rru"
    )]
    pub shared_buffer: Rru,
    /// All of this in whole servers, with the smallest embedded buffer that each reservation can
    /// do with.
    #[serde(rename = "with_buffers_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub with_buffers: Rru,
    #[serde(skip)]
    single_type: bool,
    #[serde(skip)]
    servers_are_the_unit: bool,
}

impl HardwareSet {
    /// Supply and demand in a sentence: "type T4: 842 servers, 714 usable after losing any one
    /// MSB, 1,028 requested by 3 reservations".
    pub fn sentence(&self) -> String {
        let [supply, usable, asked] = amounts([self.supply, self.usable, self.asked]);
        let kind = if self.single_type { "type" } else { "types" };
        let there = if self.servers_are_the_unit {
            format!("{} server{}", supply, if self.servers == 1 { "" } else { "s" })
        } else {
            format!("{supply} RRU on {}", counted(self.servers, "server"))
        };
        let by = counted(self.asked_by.len(), "reservation");
        let mut text = format!(
            "{kind} {}: {there}, {usable} usable after losing any one MSB, {asked} requested by {by}",
            self.name
        );
        if self.shared_buffer > Rru::ZERO {
            text += &format!(", {} in the shared buffer", amount(self.shared_buffer));
        }
        if self.with_buffers > self.supply && self.asked + self.shared_buffer <= self.supply {
            let [needed, _] = amounts([self.with_buffers, self.supply]);
            text += &format!(", {needed} with the smallest embedded buffers");
        }
        if self.unavailable_servers > 0 {
            text += &format!("; {} more unavailable", count(self.unavailable_servers));
        }
        text
    }
}

/// What a set shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    /// Gone once the unavailable servers are back.
    Unavailable,
    /// More is asked than is there.
    Total,
    /// More is asked than is left after the loss of any one MSB, or than embedded buffers leave.
    AfterLoss,
}

/// The set of a reservation's own types.
pub(super) fn own(ledger: &Ledger, ix: ReservationIx) -> HardwareSet {
    let types = eligible_types(&ledger.snapshot.reservations[ix.ix()]);
    Account::of(ledger, ix, &types).report(ledger)
}

/// The smallest set of types around those of a reservation that is short of hardware, and how.
/// Without a shortage, the set of its own types.
pub(super) fn tightest(ledger: &Ledger, ix: ReservationIx) -> (HardwareSet, Option<Shortage>) {
    let types = eligible_types(&ledger.snapshot.reservations[ix.ix()]);
    for types in candidates(ledger, &types) {
        let account = Account::of(ledger, ix, &types);
        if let Some(shortage) = account.shortage() {
            return (account.report(ledger), Some(shortage));
        }
    }
    (own(ledger, ix), None)
}

/// Sets of types that contain a reservation's own, the smaller first: its own; with the types of
/// one other that holds any of them; and with those of all that hold any, step by step until
/// no reservation inside can use a type outside.
fn candidates(ledger: &Ledger, own: &[HardwareTypeIx]) -> Vec<Vec<HardwareTypeIx>> {
    let reservations = &ledger.snapshot.reservations;
    let others = |types: &BTreeSet<HardwareTypeIx>| -> BTreeSet<Vec<HardwareTypeIx>> {
        let holders: BTreeSet<ReservationIx> = types
            .iter()
            .flat_map(|&ty| ledger.held(ty).iter().filter_map(|entry| entry.holder))
            .collect();
        holders.into_iter().map(|other| eligible_types(&reservations[other.ix()])).collect()
    };
    let own: BTreeSet<HardwareTypeIx> = own.iter().copied().collect();
    let with_own = |other: Vec<HardwareTypeIx>| own.iter().copied().chain(other).collect();
    let unions: BTreeSet<BTreeSet<HardwareTypeIx>> =
        others(&own).into_iter().map(with_own).collect();
    let mut unions: Vec<BTreeSet<HardwareTypeIx>> = unions.into_iter().collect();
    unions.sort_by_key(BTreeSet::len);
    unions.truncate(UNIONS_MAX);
    let mut sets = BTreeSet::from([own.clone()]);
    sets.extend(unions);
    let mut level = own.clone();
    loop {
        let wider: BTreeSet<HardwareTypeIx> =
            level.iter().copied().chain(others(&level).into_iter().flatten()).collect();
        if wider == level {
            break;
        }
        sets.insert(wider.clone());
        level = wider;
    }
    let mut sets: Vec<Vec<HardwareTypeIx>> =
        sets.into_iter().map(|set| set.into_iter().collect()).collect();
    sets.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    sets
}

/// Supply and demand of one set, in one unit.
struct Account {
    types: Vec<HardwareTypeIx>,
    reference: Option<ReservationIx>,
    servers: usize,
    unavailable_servers: usize,
    /// By MSB, available; and with the unavailable ones back.
    worth: Vec<Rru>,
    worth_restored: Vec<Rru>,
    asked: Rru,
    asked_by: Vec<ReservationIx>,
    shared_buffer: Rru,
    /// In whole servers: what must survive the loss of an MSB, what need not, and the smallest
    /// embedded buffers.
    buffered: Rru,
    unbuffered: Rru,
    embedded: Rru,
    servers_are_the_unit: bool,
}

impl Account {
    fn of(ledger: &Ledger, ix: ReservationIx, types: &[HardwareTypeIx]) -> Account {
        let snapshot = ledger.snapshot;
        let inside: Vec<ReservationIx> = (ledger.families().iter())
            .filter(|(family, _)| family.iter().all(|ty| types.binary_search(ty).is_ok()))
            .flat_map(|(_, members)| members.iter().copied())
            .collect();
        let reference = reference(ledger, ix, types, &inside);
        let value = |ty: HardwareTypeIx| {
            let own = reference.and_then(|ix| snapshot.reservations[ix.ix()].value(ty));
            own.unwrap_or(Rru::units(1))
        };
        let mut account = Account {
            types: types.to_vec(),
            reference,
            servers: 0,
            unavailable_servers: 0,
            worth: vec![Rru::ZERO; snapshot.msbs.len()],
            worth_restored: Vec::new(),
            asked: Rru::ZERO,
            asked_by: Vec::new(),
            shared_buffer: Rru::ZERO,
            buffered: Rru::ZERO,
            unbuffered: Rru::ZERO,
            embedded: Rru::ZERO,
            servers_are_the_unit: types.iter().all(|&ty| value(ty) == Rru::units(1)),
        };
        for &ty in types {
            for (msb, &servers) in ledger.available(ty).iter().enumerate() {
                account.servers += servers;
                account.worth[msb] += value(ty).times(servers);
            }
        }
        account.worth_restored = account.worth.clone();
        for &ty in types {
            for (msb, &servers) in ledger.unavailable(ty).iter().enumerate() {
                account.unavailable_servers += servers;
                account.worth_restored[msb] += value(ty).times(servers);
            }
        }
        for other in inside {
            account.add(ledger, other, value);
        }
        account.asked_by.sort_unstable();
        account
    }

    fn add(&mut self, ledger: &Ledger, ix: ReservationIx, value: impl Fn(HardwareTypeIx) -> Rru) {
        let reservation = &ledger.snapshot.reservations[ix.ix()];
        let unit = unit(reservation).0;
        let whole = Rru((reservation.capacity.0 + unit - 1) / unit * unit);
        let into = |amount: Rru| converted(amount, reservation, &value);
        if reservation.kind == ReservationKind::SharedBuffer {
            add(&mut self.shared_buffer, into(reservation.capacity));
        } else {
            add(&mut self.asked, into(reservation.capacity));
            self.asked_by.push(ix);
        }
        if reservation.msb_buffer {
            add(&mut self.buffered, into(whole));
            add(&mut self.embedded, into(ledger.buffer_alone(ix)));
        } else {
            add(&mut self.unbuffered, into(whole));
        }
    }

    fn shortage(&self) -> Option<Shortage> {
        let found = self.shortage_of(&self.worth)?;
        let restored =
            self.unavailable_servers > 0 && self.shortage_of(&self.worth_restored).is_none();
        Some(if restored { Shortage::Unavailable } else { found })
    }

    fn shortage_of(&self, worth: &[Rru]) -> Option<Shortage> {
        let supply: Rru = worth.iter().copied().sum();
        let asked = self.buffered + self.unbuffered;
        if asked > supply {
            return Some(Shortage::Total);
        }
        let usable = usable_beside(worth, self.unbuffered);
        let after_loss = self.buffered > usable || asked + self.embedded > supply;
        after_loss.then_some(Shortage::AfterLoss)
    }

    fn report(self, ledger: &Ledger) -> HardwareSet {
        let snapshot = ledger.snapshot;
        let id = |ix: &ReservationIx| snapshot.reservations[ix.ix()].id.clone();
        HardwareSet {
            name: set_name(&snapshot.hardware_types, &self.types),
            hardware_types: (self.types.iter())
                .map(|ty| snapshot.hardware_types[ty.ix()].clone())
                .collect(),
            in_values_of: self.reference.as_ref().map(id),
            servers: self.servers,
            unavailable_servers: self.unavailable_servers,
            supply: self.worth.iter().copied().sum(),
            usable: usable_beside(&self.worth, Rru::ZERO),
            asked: self.asked,
            asked_by: self.asked_by.iter().map(id).collect(),
            shared_buffer: self.shared_buffer,
            with_buffers: self.buffered + self.unbuffered + self.embedded,
            single_type: self.types.len() == 1,
            servers_are_the_unit: self.servers_are_the_unit,
        }
    }
}

/// Whose values measure a set: the reservation's own if it may use all of it, else those of the
/// largest reservation inside that may. With none the unit is one server.
fn reference(
    ledger: &Ledger,
    ix: ReservationIx,
    types: &[HardwareTypeIx],
    inside: &[ReservationIx],
) -> Option<ReservationIx> {
    let reservation = |ix: &ReservationIx| &ledger.snapshot.reservations[ix.ix()];
    let covers = |ix: &ReservationIx| types.iter().all(|&ty| reservation(ix).value(ty).is_some());
    if covers(&ix) {
        return Some(ix);
    }
    let covering = inside.iter().copied().filter(|ix| covers(ix));
    covering.max_by_key(|ix| (reservation(ix).capacity, std::cmp::Reverse(*ix)))
}

/// An amount of one reservation in other values: its minimum over the types it can be made of, so
/// that a shortage in converted amounts is a shortage.
fn converted(amount: Rru, reservation: &Reservation, value: impl Fn(HardwareTypeIx) -> Rru) -> Rru {
    let least = (reservation.rru.iter())
        .map(|&(ty, own)| i128::from(amount.0) * i128::from(value(ty).0) / i128::from(own.0))
        .min();
    least.map_or(Rru::ZERO, |least| Rru(i64::try_from(least).unwrap_or(DEMAND_MAX.0)))
}

/// Adds a demand. Converted to other values, demands may exceed all bounds of a snapshot; one so
/// large that it does not fit is a shortage all the same.
fn add(sum: &mut Rru, demand: Rru) {
    *sum = Rru(sum.0.saturating_add(demand.0)).min(DEMAND_MAX);
}
