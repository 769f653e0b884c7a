//! Preemption: less important reservations give servers to more important ones when more than one MSB is lost.
//!
//! RAS treats all reservations alike in that case, as a first solution (section 5.4). Here the declared
//! priority decides. The most important reservation that is short is served first: from free servers, then
//! from shared buffers, then from less important reservations, the least important first, idle servers
//! before servers in use. A preempted reservation may be short, and then preempts less important ones in its
//! turn. If no server is left for a reservation that is short, more important reservations may exchange
//! servers that were assigned to them for equivalent ones. Such an exchange may end with a server that a
//! reservation of the same priority can spare. Loans to elastic reservations are recalled when an MSB is
//! lost, before any reservation is preempted.

mod view;

use chrono::{DateTime, Utc};
use fleet::{HardwareTypeName, MsbName, ReservationName, Rru};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;
pub use view::{HeldGroup, Holder, RegionHeld};

/// The number of lost MSBs from which reservations are preempted: embedded buffers cover the loss of one.
pub const PREEMPTION_LOST_MIN: usize = 2;

/// Servers that move from one holder to another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preemption {
    /// The reservation that loses them; `None`: they are free.
    pub source: Option<ReservationName>,
    /// The reservation that gets them.
    pub target: ReservationName,
    /// Their MSB.
    pub msb: MsbName,
    /// Their hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether containers run on them.
    pub in_use: bool,
    /// Number of servers.
    pub count: u64,
}

/// The holdings of a reservation, before and after preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The reservation.
    pub reservation: ReservationName,
    /// 0 is the most important.
    pub priority: i32,
    /// C.
    pub capacity: Rru,
    /// RRU of its working servers.
    pub before: Rru,
    /// RRU of its working servers after the plan.
    pub after: Rru,
}

/// Decides which servers move, and gives the holdings of each reservation that is short or whose holdings
/// change.
pub fn plan(held: &RegionHeld) -> (Vec<Preemption>, Vec<Standing>) {
    let by_name: BTreeMap<&ReservationName, &Holder> =
        held.holders.iter().map(|holder| (&holder.reservation, holder)).collect();
    let mut has: BTreeMap<&ReservationName, Rru> =
        by_name.keys().map(|name| (*name, Rru::ZERO)).collect();
    let mut in_msb: BTreeMap<(&ReservationName, &MsbName), Rru> = BTreeMap::new();
    for group in &held.groups {
        if let Some(holder) = group.holder.as_ref().and_then(|name| by_name.get(name)) {
            let amount = times(value(holder, group), group.held);
            *has.entry(&holder.reservation).or_default() += amount;
            *in_msb.entry((&holder.reservation, &group.msb)).or_default() += amount;
        }
    }
    let before = has.clone();
    let left: Vec<u64> = held.groups.iter().map(|group| group.takable).collect();
    let mut order: Vec<&Holder> = held.holders.iter().collect();
    order.sort_by_key(|holder| (holder.priority, &holder.reservation));
    let taken = BTreeMap::new();
    let mut taking = Taking { held, by_name: &by_name, has, in_msb, left, taken };
    for holder in order {
        taking.take(holder);
        while taking.missing(holder) > Rru::ZERO && taking.pass_on(holder) {}
    }
    let Taking { has, taken, .. } = taking;
    let mut rows: Vec<(i32, Preemption)> = Vec::new();
    for (&(target, g), &count) in taken.iter().filter(|&(_, &count)| count > 0) {
        let group = &held.groups[g];
        let of = Preemption {
            source: group.holder.clone(),
            target: target.clone(),
            msb: group.msb.clone(),
            hardware_type: group.hardware_type.clone(),
            in_use: group.in_use,
            count,
        };
        rows.push((by_name[target].priority, of));
    }
    let place = |of: &Preemption| {
        let same = |g: &usize| {
            let group = &held.groups[*g];
            (&group.holder, &group.msb, &group.hardware_type, group.in_use)
                == (&of.source, &of.msb, &of.hardware_type, of.in_use)
        };
        let g = (0..held.groups.len()).find(same).expect("it is of a group");
        rank(by_name[&of.target], g, held, &by_name)
    };
    rows.sort_by(|(a, one), (b, other)| {
        (a, &one.target, place(one)).cmp(&(b, &other.target, place(other)))
    });
    let rows = rows.into_iter().map(|(_, of)| of).collect();
    let standing = |holder: &Holder| Standing {
        reservation: holder.reservation.clone(),
        priority: holder.priority,
        capacity: holder.capacity,
        before: before[&holder.reservation],
        after: has[&holder.reservation],
    };
    let mut standings: Vec<Standing> = held.holders.iter().map(standing).collect();
    standings.retain(|of| of.before != of.after || of.before < of.capacity);
    standings.sort_by(|a, b| (a.priority, &a.reservation).cmp(&(b.priority, &b.reservation)));
    (rows, standings)
}

/// Whether the mover preempts without an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Too few MSBs are lost.
    No,
    /// Enough MSBs are lost, but not for long enough before this instant.
    At(DateTime<Utc>),
    /// Enough MSBs have been lost since this instant.
    Now(DateTime<Utc>),
}

/// Whether preemption is due: [`PREEMPTION_LOST_MIN`] MSBs have been lost at the same time for the duration
/// `after`. `began` has the start of each outage that has not ended.
pub fn due(mut began: Vec<DateTime<Utc>>, now: DateTime<Utc>, after: Duration) -> Due {
    began.sort_unstable();
    let Some(since) = began.get(PREEMPTION_LOST_MIN - 1).copied() else { return Due::No };
    // A delay beyond the calendar never ends.
    let at =
        chrono::TimeDelta::from_std(after).ok().and_then(|after| since.checked_add_signed(after));
    match at {
        None => Due::No,
        Some(at) if at <= now => Due::Now(since),
        Some(at) => Due::At(at),
    }
}

/// The state of the assignment.
struct Taking<'a> {
    held: &'a RegionHeld,
    by_name: &'a BTreeMap<&'a ReservationName, &'a Holder>,
    /// RRU of each reservation.
    has: BTreeMap<&'a ReservationName, Rru>,
    /// RRU of each reservation in each MSB.
    in_msb: BTreeMap<(&'a ReservationName, &'a MsbName), Rru>,
    /// Remaining servers of each group.
    left: Vec<u64>,
    /// Servers by the reservation that takes them, and group.
    taken: BTreeMap<(&'a ReservationName, usize), u64>,
}

impl<'a> Taking<'a> {
    fn missing(&self, holder: &Holder) -> Rru {
        holder.capacity - self.has[&holder.reservation]
    }

    fn worth(&self, holder: &Holder, g: usize) -> Rru {
        value(holder, &self.held.groups[g])
    }

    /// The rank of a group for a reservation, if the reservation may take its servers and values them.
    fn rank(&self, holder: &Holder, g: usize) -> Option<Rank<'a>> {
        rank(holder, g, self.held, self.by_name).filter(|_| self.worth(holder, g) > Rru::ZERO)
    }

    /// The number of servers of a group that the replica rule of a reservation still allows.
    fn room(&self, holder: &Holder, g: usize) -> u64 {
        let msb = &self.held.groups[g].msb;
        let there = self.in_msb.get(&(&holder.reservation, msb)).copied().unwrap_or_default();
        let room = holder.place.msb_max(Rru::ZERO) - there;
        u64::try_from(room.0 / self.worth(holder, g).0.max(1)).unwrap_or(0)
    }

    fn source(&self, g: usize) -> Option<&'a Holder> {
        self.held.groups[g].holder.as_ref().and_then(|name| self.by_name.get(name)).copied()
    }

    /// Assigns servers of a group to a reservation, or returns them.
    fn shift(&mut self, holder: &'a Holder, g: usize, count: u64, back: bool) {
        let sign = if back { -1 } else { 1 };
        let worth = times(self.worth(holder, g), count);
        *self.has.entry(&holder.reservation).or_default() += Rru(sign * worth.0);
        let msb = &self.held.groups[g].msb;
        *self.in_msb.entry((&holder.reservation, msb)).or_default() += Rru(sign * worth.0);
        if let Some(source) = self.source(g) {
            let lost = times(self.worth(source, g), count);
            *self.has.entry(&source.reservation).or_default() -= Rru(sign * lost.0);
            *self.in_msb.entry((&source.reservation, msb)).or_default() -= Rru(sign * lost.0);
        }
        let taken = self.taken.entry((&holder.reservation, g)).or_default();
        if back {
            (*taken, self.left[g]) = (*taken - count, self.left[g] + count);
        } else {
            (*taken, self.left[g]) = (*taken + count, self.left[g] - count);
        }
    }

    /// Takes from one group after another until the reservation is not short.
    fn take(&mut self, holder: &'a Holder) {
        let mut sources: Vec<(Rank, usize)> =
            (0..self.held.groups.len()).filter_map(|g| Some((self.rank(holder, g)?, g))).collect();
        sources.sort();
        for (_, g) in sources {
            let missing = self.missing(holder);
            if missing <= Rru::ZERO {
                return;
            }
            let worth = self.worth(holder, g);
            let enough = u64::try_from((missing.0 + worth.0 - 1) / worth.0).unwrap_or(0);
            let count = enough.min(self.left[g]).min(self.room(holder, g));
            if count > 0 {
                self.shift(holder, g, count, false);
            }
        }
    }

    /// Takes one server that is assigned to or owned by another reservation, which takes an equivalent one
    /// instead: the shortest chain of such exchanges (an augmenting path) that leaves no reservation of the
    /// same priority below its capacity. Returns whether there was one.
    fn pass_on(&mut self, holder: &'a Holder) -> bool {
        let mut reached: BTreeMap<usize, Option<Link<'a>>> = BTreeMap::new();
        let mut open: VecDeque<usize> = VecDeque::new();
        let is_own =
            |g: usize| self.source(g).is_some_and(|of| of.reservation == holder.reservation);
        // Servers that the reservation itself lost may return to it.
        let counts = |g: usize| {
            self.rank(holder, g).is_some() || is_own(g) && self.worth(holder, g) > Rru::ZERO
        };
        for g in (0..self.held.groups.len()).filter(|&g| counts(g) && self.room(holder, g) > 0) {
            reached.insert(g, None);
            open.push_back(g);
        }
        while let Some(from) = open.pop_front() {
            for (who, back) in self.users(holder, from) {
                let worth = self.worth(who, from);
                let mut others: Vec<(Rank, usize)> = (0..self.held.groups.len())
                    .filter(|g| !reached.contains_key(g) && self.worth(who, *g) >= worth)
                    .filter_map(|g| Some((self.rank(who, g)?, g)))
                    .collect();
                others.sort();
                for (_, other) in others {
                    reached.insert(other, Some(Link { who, from, back }));
                    if self.left[other] > 0 && self.gives(holder, other) {
                        self.exchange(holder, other, &reached);
                        return true;
                    }
                    open.push_back(other);
                }
            }
        }
        false
    }

    /// Whether a chain for `holder` may end with a server of a group: its owner can spare it, or is less
    /// important.
    fn gives(&self, holder: &Holder, g: usize) -> bool {
        self.source(g).is_none_or(|of| {
            let worth = self.worth(of, g);
            of.priority > holder.priority
                || worth == Rru::ZERO
                || self.missing(of) + worth <= Rru::ZERO
        })
    }

    /// The reservations that could exchange a server of a group: those to which some are assigned, which
    /// return them, and the owner, while it has any left.
    fn users(&self, holder: &Holder, g: usize) -> Vec<(&'a Holder, bool)> {
        let takers = self.taken.iter().filter(|((_, of), count)| *of == g && **count > 0);
        let takers = takers.map(|((name, _), _)| (self.by_name[name], true));
        let owner = self.source(g).filter(|_| self.left[g] > 0).map(|of| (of, false));
        // A reservation with a replica rule exchanges no servers.
        takers
            .chain(owner)
            .filter(|(of, _)| of.reservation != holder.reservation && of.place.rule.is_none())
            .collect()
    }

    /// Executes a chain, from the group with remaining servers back to the one for `holder`.
    fn exchange(
        &mut self,
        holder: &'a Holder,
        mut g: usize,
        reached: &BTreeMap<usize, Option<Link<'a>>>,
    ) {
        while let Some(Some(Link { who, from, back })) = reached.get(&g) {
            self.shift(who, g, 1, false);
            if *back {
                self.shift(who, *from, 1, true);
            }
            g = *from;
        }
        if self.source(g).is_none_or(|of| of.reservation != holder.reservation) {
            self.shift(holder, g, 1, false);
        }
    }
}

/// One exchange of a chain: a reservation gives up a server of a group for one of another.
struct Link<'a> {
    who: &'a Holder,
    from: usize,
    /// Whether the server was assigned to it and is returned; else the reservation owns it.
    back: bool,
}

/// Free, of a shared buffer or of a reservation; the negated priority; in use; names for a total order.
type Rank<'a> = (u8, i32, bool, Option<&'a ReservationName>, &'a MsbName, &'a HardwareTypeName);

/// The rank of a group in the order in which a reservation takes servers; `None`: it may not take them.
fn rank<'a>(
    holder: &Holder,
    g: usize,
    held: &'a RegionHeld,
    by_name: &BTreeMap<&ReservationName, &'a Holder>,
) -> Option<Rank<'a>> {
    let group = &held.groups[g];
    let (step, priority) = match group.holder.as_ref().map(|name| by_name.get(name)) {
        None => (0, 0),
        Some(None) if group.shared => (1, 0),
        // A larger number is less important, and comes first.
        Some(Some(source)) if source.priority > holder.priority => (2, -source.priority),
        Some(_) => return None,
    };
    let name = group.holder.as_ref();
    Some((step, priority, group.in_use, name, &group.msb, &group.hardware_type))
}

/// The value of a server of a group to a reservation; zero outside its allowed datacenters.
fn value(holder: &Holder, group: &HeldGroup) -> Rru {
    let worth = holder.values.get(&group.hardware_type).filter(|_| holder.place.allows(&group.msb));
    worth.copied().unwrap_or_default()
}

fn times(value: Rru, count: u64) -> Rru {
    value.times(usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
