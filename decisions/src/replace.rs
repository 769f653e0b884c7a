//! Spares that replace failed servers (RAS section 3.4).
//!
//! Spares are the servers of shared buffers. A spare fits if the reservation values its hardware type at
//! least as much as the failed server, and if the placement rules of the reservation allow it in its MSB.
//! Reservations are served by priority, then by the age of the failure. The best fitting spare is, in this
//! order: one that is not lent; the one with which the reservation's share in the MSB is smallest, because
//! the loss of an MSB costs at most the largest share (eq. 4, 6); the least valuable, so that better spares
//! remain for reservations that need them; the first by name. If all fitting spares are taken, a
//! reservation that can use another one passes its own on (an augmenting path). So the number of replaced
//! servers of each priority is the largest possible without replacing fewer of a higher priority.

mod view;

use fleet::{HardwareTypeName, MsbName, ReservationName, Rru, ServerName};
use std::collections::{BTreeMap, VecDeque};
pub use view::{Failed, Spare, SpareContext};

/// A failed server and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The failed server.
    pub failed: ServerName,
    /// The reservation that gets the spare.
    pub reservation: ReservationName,
    /// The spare.
    pub spare: ServerName,
}

/// Whether spares are lent, their MSB and hardware type. Spares of one kind differ only in name; there are few
/// kinds and many spares.
type Kind<'a> = (bool, &'a MsbName, &'a HardwareTypeName);

/// A server of a shared buffer that was replaced when it failed and works again, and the spare in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The server.
    pub server: ServerName,
    /// Its MSB.
    pub msb: MsbName,
    /// Its hardware type.
    pub hardware_type: HardwareTypeName,
    /// The reservation that held it.
    pub reservation: ReservationName,
    /// C of the reservation.
    pub capacity: Rru,
    /// Whether it must keep C when any one MSB is lost.
    pub msb_buffer: bool,
    /// The idle spare that the reservation got instead.
    pub spare: ServerName,
    /// The MSB of the spare.
    pub spare_msb: MsbName,
    /// The hardware type of the spare.
    pub spare_hardware_type: HardwareTypeName,
}

/// The repaired servers that should return to their reservations, in place of their spares: those with which as much
/// of C is guaranteed as with the spare. Then the shared buffer gets its spare back, and both are spread as before
/// the failure.
pub fn returning<'a>(repaired: &'a [Repaired], context: &SpareContext) -> Vec<&'a Repaired> {
    let mut held: BTreeMap<&ReservationName, BTreeMap<&MsbName, Rru>> = BTreeMap::new();
    for ((reservation, msb), amount) in &context.held {
        held.entry(reservation).or_default().insert(msb, *amount);
    }
    let goes = |of: &&'a Repaired| {
        let value = |ty: &HardwareTypeName| {
            context.values.get(&(of.reservation.clone(), ty.clone())).copied().unwrap_or_default()
        };
        let guaranteed = |held: &BTreeMap<&MsbName, Rru>| {
            let all: Rru = held.values().copied().sum();
            let largest = held.values().copied().max().unwrap_or_default();
            let left = if of.msb_buffer { all - largest } else { all };
            left.min(of.capacity)
        };
        let held = held.entry(&of.reservation).or_default();
        let mut after = held.clone();
        *after.entry(&of.msb).or_default() += value(&of.hardware_type);
        let fits = context.fits(&of.reservation, &of.msb, after[&of.msb]);
        *after.entry(&of.spare_msb).or_default() -= value(&of.spare_hardware_type);
        let goes = fits && guaranteed(&after) >= guaranteed(held);
        if goes {
            *held = after;
        }
        goes
    };
    repaired.iter().filter(goes).collect()
}

struct Choice<'a> {
    worth: &'a SpareContext,
    /// Remaining spares of each kind, in descending order of name.
    left: BTreeMap<Kind<'a>, Vec<&'a ServerName>>,
    /// RRU by reservation and MSB, chosen spares included.
    held: BTreeMap<(ReservationName, MsbName), Rru>,
    /// The chosen spares.
    chosen: Vec<(&'a Failed, Kind<'a>, &'a ServerName)>,
}

/// Chooses a spare for each failed server. For servers that are missing in the result no spare fits. Each
/// spare is used once.
pub fn choose(failed: &[Failed], spares: &[Spare], worth: &SpareContext) -> Vec<Swap> {
    let mut left: BTreeMap<Kind, Vec<&ServerName>> = BTreeMap::new();
    for spare in spares {
        let kind = (spare.lent, &spare.msb, &spare.hardware_type);
        left.entry(kind).or_default().push(&spare.server);
    }
    for names in left.values_mut() {
        names.sort_unstable_by(|a, b| b.cmp(a));
    }
    let mut choice = Choice { worth, left, held: worth.held.clone(), chosen: Vec::new() };
    let mut waiting: Vec<&Failed> = failed.iter().collect();
    waiting.sort_by(|a, b| (a.priority, a.since, &a.server).cmp(&(b.priority, b.since, &b.server)));
    for of in waiting {
        if let Some(kind) = choice.best(of) {
            choice.give(of, kind);
        } else {
            choice.pass_on(of);
        }
    }
    let swap = |(of, _, spare): (&Failed, Kind, &ServerName)| Swap {
        failed: of.server.clone(),
        reservation: of.reservation.clone(),
        spare: spare.clone(),
    };
    choice.chosen.into_iter().map(swap).collect()
}

impl<'a> Choice<'a> {
    fn value(&self, of: &Failed, ty: &HardwareTypeName) -> Option<Rru> {
        self.worth.values.get(&(of.reservation.clone(), ty.clone())).copied()
    }

    /// The value of a spare of a kind, if it fits.
    fn fits(&self, of: &Failed, kind: Kind) -> Option<Rru> {
        let least = self.value(of, &of.hardware_type).unwrap_or(Rru::ZERO);
        let key = (of.reservation.clone(), kind.1.clone());
        let share = self.held.get(&key).copied().unwrap_or(Rru::ZERO);
        let fits = |worth: &Rru| self.worth.fits(&of.reservation, kind.1, share + *worth);
        self.value(of, kind.2).filter(|worth| *worth >= least && *worth > Rru::ZERO).filter(fits)
    }

    /// The best fitting kind with remaining spares.
    fn best(&self, of: &Failed) -> Option<Kind<'a>> {
        let fitting = self.left.iter().filter_map(|(&kind, names)| {
            let worth = self.fits(of, kind)?;
            let name = *names.last()?;
            let key = (of.reservation.clone(), kind.1.clone());
            let share = self.held.get(&key).copied().unwrap_or(Rru::ZERO);
            Some(((kind.0, share + worth, worth, name), kind))
        });
        Some(fitting.min()?.1)
    }

    fn hold(&mut self, of: &Failed, kind: Kind, sign: i64) {
        let worth = self.value(of, kind.2).unwrap_or(Rru::ZERO);
        *self.held.entry((of.reservation.clone(), kind.1.clone())).or_default() +=
            Rru(sign * worth.0);
    }

    fn give(&mut self, of: &'a Failed, kind: Kind<'a>) {
        let name = self.left.get_mut(&kind).and_then(Vec::pop).expect("it was just looked at");
        self.hold(of, kind, 1);
        self.chosen.push((of, kind, name));
    }

    /// Finds a spare by exchanges if no fitting one remains: the shortest chain in which each reservation
    /// gives up its spare for one of another kind.
    fn pass_on(&mut self, of: &'a Failed) {
        // How each kind was reached: the choice that gives up a spare for one of this kind, and its old kind.
        let mut reached: BTreeMap<Kind, Option<(usize, Kind)>> = BTreeMap::new();
        let mut open: VecDeque<Kind> = VecDeque::new();
        for &kind in self.left.keys().filter(|&&kind| self.fits(of, kind).is_some()) {
            reached.insert(kind, None);
            open.push_back(kind);
        }
        while let Some(kind) = open.pop_front() {
            for (number, &(holder, held, _)) in self.chosen.iter().enumerate() {
                // A reservation with a replica rule keeps its spare.
                let places = self.worth.places.get(&holder.reservation);
                if held != kind || places.is_some_and(|of| of.rule.is_some()) {
                    continue;
                }
                for (&other, names) in &self.left {
                    if reached.contains_key(&other) || self.fits(holder, other).is_none() {
                        continue;
                    }
                    reached.insert(other, Some((number, kind)));
                    if !names.is_empty() {
                        return self.shift(of, other, &reached);
                    }
                    open.push_back(other);
                }
            }
        }
    }

    /// Executes a chain, from the kind with remaining spares back to the one for `of`.
    fn shift(
        &mut self,
        of: &'a Failed,
        mut kind: Kind<'a>,
        reached: &BTreeMap<Kind<'a>, Option<(usize, Kind<'a>)>>,
    ) {
        let mut name = self.left.get_mut(&kind).and_then(Vec::pop).expect("it has one left");
        while let Some(Some((number, from))) = reached.get(&kind) {
            let holder = self.chosen[*number].0;
            self.hold(holder, *from, -1);
            self.hold(holder, kind, 1);
            let passed = std::mem::replace(&mut self.chosen[*number], (holder, kind, name));
            (kind, name) = (*from, passed.2);
        }
        self.hold(of, kind, 1);
        self.chosen.push((of, kind, name));
    }
}

#[cfg(test)]
mod tests;
