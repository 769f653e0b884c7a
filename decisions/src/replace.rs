//! Spares that replace failed servers (RAS section 3.4).
//!
//! Spares are the servers of shared buffers. A spare fits if the reservation values its hardware type at
//! least as much as the failed server, and if the placement rules of the reservation allow it in its MSB.
//! Reservations are served by priority, then by the age of the failure. The best fitting spare is, in this
//! order: one that is not lent; the one with which the reservation's share in the MSB is smallest, because
//! the loss of an MSB costs at most the largest share (eq. 4, 6); the least valuable, so that better spares
//! remain for reservations that need them; the first by name. For a reservation that survives the loss of domains of other partitions, its
//! share in those counts as its share in an MSB does ([`crate::domains`]). If it would exceed a limit of a policy, the best of those
//! goes first that keep every limit and leave the largest share no larger ([`crate::limits`]). If all fitting spares are taken, a
//! reservation that can use another one passes its own on (an augmenting path). So the number of replaced
//! servers of each priority is the largest possible without replacing fewer of a higher priority.

mod view;

use crate::domains::{Domain, Shares};
use crate::limits::Room;
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
    /// The limits of policies that this exceeds, by name.
    pub exceeds: Vec<String>,
}

/// Spares that differ only in name: there are few kinds and many spares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind<'a> {
    lent: bool,
    msb: &'a MsbName,
    hardware_type: &'a HardwareTypeName,
    domains: &'a [Domain],
    /// Their kind in limits.
    limits: u32,
}

/// A server of a shared buffer that was replaced when it failed and works again, and the spare in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repaired {
    /// The server.
    pub server: ServerName,
    /// Its MSB.
    pub msb: MsbName,
    /// Its domains of the partitions that the reservation survives.
    pub domains: Vec<Domain>,
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
    /// The domains of the spare.
    pub spare_domains: Vec<Domain>,
    /// The hardware type of the spare.
    pub spare_hardware_type: HardwareTypeName,
}

/// The repaired servers that should return to their reservations, in place of their spares: those with which as much
/// of C is guaranteed as with the spare, and no limit is exceeded further. Then the shared buffer gets its spare back, and
/// both are spread as before the failure.
pub fn returning<'a>(
    repaired: &'a [Repaired],
    context: &SpareContext,
    room: &mut Room,
) -> Vec<&'a Repaired> {
    let mut held = context.held.clone();
    let goes = |of: &&'a Repaired| {
        let value = |ty: &HardwareTypeName| {
            context.values.get(&(of.reservation.clone(), ty.clone())).copied().unwrap_or_default()
        };
        let guaranteed = |held: &Shares| {
            let in_msb =
                if of.msb_buffer { held.largest_in_msb(&of.reservation) } else { Rru::ZERO };
            let lost = in_msb.max(held.largest_in_domain(&of.reservation));
            (held.total(&of.reservation) - lost).min(of.capacity)
        };
        let exchange = |held: &mut Shares, sign: i64| {
            let arrives = Rru(sign * value(&of.hardware_type).0);
            let leaves = Rru(-sign * value(&of.spare_hardware_type).0);
            held.add(&of.reservation, &of.msb, &of.domains, arrives);
            let there = held.in_msb(&of.reservation, &of.msb);
            held.add(&of.reservation, &of.spare_msb, &of.spare_domains, leaves);
            there
        };
        let before = guaranteed(&held);
        let there = exchange(&mut held, 1);
        let serves = context.fits(&of.reservation, &of.msb, there) && guaranteed(&held) >= before;
        let mut then = room.clone();
        then.becomes_spare(&of.spare);
        then.goes(&of.server, Some(&of.reservation));
        let goes = serves && then.exceeded_since(room, [(&of.server, &of.reservation)]).is_empty();
        if goes {
            *room = then;
        } else {
            exchange(&mut held, -1);
        }
        goes
    };
    repaired.iter().filter(goes).collect()
}

struct Choice<'a> {
    worth: &'a SpareContext,
    /// Remaining spares of each kind, in descending order of name.
    left: BTreeMap<Kind<'a>, Vec<&'a ServerName>>,
    /// What reservations hold, chosen spares included.
    held: Shares,
    /// The chosen spares.
    chosen: Vec<(&'a Failed, Kind<'a>, &'a ServerName)>,
    room: Room,
}

/// Chooses a spare for each failed server. For servers that are missing in the result no spare fits. Each
/// spare is used once. `room`: what limits leave, less what is chosen afterwards.
pub fn choose(
    failed: &[Failed],
    spares: &[Spare],
    worth: &SpareContext,
    room: &mut Room,
) -> Vec<Swap> {
    let before = room.clone();
    let mut left: BTreeMap<Kind, Vec<&ServerName>> = BTreeMap::new();
    for spare in spares {
        let kind = Kind {
            lent: spare.lent,
            msb: &spare.msb,
            hardware_type: &spare.hardware_type,
            domains: &spare.domains,
            limits: room.kind(&spare.server),
        };
        left.entry(kind).or_default().push(&spare.server);
    }
    for names in left.values_mut() {
        names.sort_unstable_by(|a, b| b.cmp(a));
    }
    let (held, chosen, taken) = (worth.held.clone(), Vec::new(), std::mem::take(room));
    let mut choice = Choice { worth, left, held, chosen, room: taken };
    let mut waiting: Vec<&Failed> = failed.iter().collect();
    waiting.sort_by(|a, b| (a.priority, a.since, &a.server).cmp(&(b.priority, b.since, &b.server)));
    for of in waiting {
        // A server that is replaced leaves room.
        let before = choice.room.becomes_spare(&of.server);
        let is_replaced = match choice.best(of) {
            Some(kind) => choice.give(of, kind),
            None => choice.pass_on(of),
        };
        if let (false, Some((server, holder))) = (is_replaced, before) {
            choice.room.set(server, holder);
        }
    }
    *room = choice.room;
    let swap = |(of, _, spare): (&Failed, Kind, &ServerName)| Swap {
        failed: of.server.clone(),
        reservation: of.reservation.clone(),
        spare: spare.clone(),
        exceeds: room.exceeded_since(&before, [(spare, &of.reservation)]),
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
        let share = self.held.in_msb(&of.reservation, kind.msb);
        let fits = |worth: &Rru| self.worth.fits(&of.reservation, kind.msb, share + *worth);
        let worth = self.value(of, kind.hardware_type);
        worth.filter(|worth| *worth >= least && *worth > Rru::ZERO).filter(fits)
    }

    /// The best fitting kind with remaining spares: one that keeps every limit, if it serves as well.
    fn best(&self, of: &Failed) -> Option<Kind<'a>> {
        let fitting = self.left.iter().filter_map(|(&kind, names)| {
            let worth = self.fits(of, kind)?;
            let name = *names.last()?;
            let share = self.held.at(&of.reservation, kind.msb, kind.domains);
            Some(((kind.lent, share + worth, worth, name), kind))
        });
        let mut fitting: Vec<_> = fitting.collect();
        let &(rank, best) = fitting.iter().min()?;
        if self.room.keeps(rank.3, &of.reservation) {
            return Some(best);
        }
        // A loss costs the largest share, which the best spare may set already.
        let largest = self.largest_share(&of.reservation).max(rank.1);
        fitting.retain(|((_, share, _, name), _)| {
            let serves = *share <= largest || !self.worth.survives_a_loss(&of.reservation);
            serves && self.room.keeps(name, &of.reservation)
        });
        Some(fitting.into_iter().min().map_or(best, |of| of.1))
    }

    /// What a reservation holds in the MSB or domain where it holds most.
    fn largest_share(&self, of: &ReservationName) -> Rru {
        self.held.largest_in_msb(of).max(self.held.largest_in_domain(of))
    }

    fn hold(&mut self, of: &Failed, kind: Kind, sign: i64) {
        let worth = self.value(of, kind.hardware_type).unwrap_or(Rru::ZERO);
        self.held.add(&of.reservation, kind.msb, kind.domains, Rru(sign * worth.0));
    }

    fn give(&mut self, of: &'a Failed, kind: Kind<'a>) -> bool {
        let name = self.left.get_mut(&kind).and_then(Vec::pop).expect("it was just looked at");
        self.hold(of, kind, 1);
        self.room.goes(name, Some(&of.reservation));
        self.chosen.push((of, kind, name));
        true
    }

    /// Finds a spare by exchanges if no fitting one remains: the shortest chain in which each reservation
    /// gives up its spare for one of another kind. Limits do not stop it. Returns whether there is one.
    fn pass_on(&mut self, of: &'a Failed) -> bool {
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
                        self.shift(of, other, &reached);
                        return true;
                    }
                    open.push_back(other);
                }
            }
        }
        false
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
            self.room.goes(name, Some(&holder.reservation));
            let passed = std::mem::replace(&mut self.chosen[*number], (holder, kind, name));
            (kind, name) = (*from, passed.2);
        }
        self.hold(of, kind, 1);
        self.room.goes(name, Some(&of.reservation));
        self.chosen.push((of, kind, name));
    }
}

#[cfg(test)]
mod tests;
