//! Who gives way to whom when more than one MSB is lost.
//!
//! RAS treats all reservations alike then and says that this is not the last word (section 5.4). Here the
//! declared priority decides. The most important reservation that is short is made whole first: from
//! what nobody owns, then from shared buffers, then from reservations that are less important than it,
//! the least important first, idle servers before those in use. Who gave may be short by that, and takes
//! from those below in its turn. Where nothing is left for one that is short, a more important one that can do
//! with other servers leaves it what it was to take. What elastic reservations borrow is the owner's in any case: loans come
//! back when an MSB is lost, before anybody gives way.

use broker::{GIVE_WAY_LOST_MIN, GiveWay, HeldGroup, Holder, RegionHeld};
use chrono::{DateTime, Utc};
use fleet::{Name, Rru};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// What a reservation has, of what it wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The reservation.
    pub reservation: Name,
    /// 0 is the most important.
    pub priority: i32,
    /// C.
    pub capacity: Rru,
    /// What works of what it has.
    pub before: Rru,
    /// And would after the plan.
    pub after: Rru,
}

/// Who gives way, and how everybody who is touched or short stands before and after.
pub fn plan(held: &RegionHeld) -> (Vec<GiveWay>, Vec<Standing>) {
    let by_name: BTreeMap<&Name, &Holder> =
        held.holders.iter().map(|holder| (&holder.reservation, holder)).collect();
    let mut has: BTreeMap<&Name, Rru> = by_name.keys().map(|name| (*name, Rru::ZERO)).collect();
    let mut in_msb: BTreeMap<(&Name, &Name), Rru> = BTreeMap::new();
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
    let mut rows: Vec<(i32, GiveWay)> = Vec::new();
    for (&(target, g), &count) in taken.iter().filter(|&(_, &count)| count > 0) {
        let group = &held.groups[g];
        let of = GiveWay {
            source: group.holder.clone(),
            target: target.clone(),
            msb: group.msb.clone(),
            hardware_type: group.hardware_type.clone(),
            in_use: group.in_use,
            count,
        };
        rows.push((by_name[target].priority, of));
    }
    let place = |of: &GiveWay| {
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

/// Whether the mover lets reservations give way by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Too few MSBs are lost.
    No,
    /// Not before then.
    At(DateTime<Utc>),
    /// Now, because enough of them are lost since then.
    Now(DateTime<Utc>),
}

/// Whether reservations are to give way: when [`GIVE_WAY_LOST_MIN`] MSBs have been lost at the same
/// time for so long. `began` has the beginning of each outage that has not ended.
pub fn due(mut began: Vec<DateTime<Utc>>, now: DateTime<Utc>, after: Duration) -> Due {
    began.sort_unstable();
    let Some(since) = began.get(GIVE_WAY_LOST_MIN - 1).copied() else { return Due::No };
    // A delay that leads out of the calendar never ends.
    let at =
        chrono::TimeDelta::from_std(after).ok().and_then(|after| since.checked_add_signed(after));
    match at {
        None => Due::No,
        Some(at) if at <= now => Due::Now(since),
        Some(at) => Due::At(at),
    }
}

/// Who takes what.
struct Taking<'a> {
    held: &'a RegionHeld,
    by_name: &'a BTreeMap<&'a Name, &'a Holder>,
    /// What each reservation has.
    has: BTreeMap<&'a Name, Rru>,
    /// What each has in each MSB.
    in_msb: BTreeMap<(&'a Name, &'a Name), Rru>,
    /// What may still be taken of each group.
    left: Vec<u64>,
    /// Servers by who takes them and group.
    taken: BTreeMap<(&'a Name, usize), u64>,
}

impl<'a> Taking<'a> {
    fn missing(&self, holder: &Holder) -> Rru {
        holder.capacity - self.has[&holder.reservation]
    }

    fn worth(&self, holder: &Holder, g: usize) -> Rru {
        value(holder, &self.held.groups[g])
    }

    /// Where a group stands for a reservation, if it may be taken and counts.
    fn rank(&self, holder: &Holder, g: usize) -> Option<Rank<'a>> {
        rank(holder, g, self.held, self.by_name).filter(|_| self.worth(holder, g) > Rru::ZERO)
    }

    /// How many servers of a group a reservation may have beside what it has, by its replica rule.
    fn room(&self, holder: &Holder, g: usize) -> u64 {
        let msb = &self.held.groups[g].msb;
        let there = self.in_msb.get(&(&holder.reservation, msb)).copied().unwrap_or_default();
        let room = holder.place.msb_max(Rru::ZERO) - there;
        u64::try_from(room.0 / self.worth(holder, g).0.max(1)).unwrap_or(0)
    }

    fn source(&self, g: usize) -> Option<&'a Holder> {
        self.held.groups[g].holder.as_ref().and_then(|name| self.by_name.get(name)).copied()
    }

    /// Moves servers of a group to one who takes them, or back.
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

    /// Takes from one group after another until nothing is missing.
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

    /// Takes servers that others were to take, who take as good ones of nobody more important in their
    /// place: the shortest chain of such exchanges, one server at a time. Tells whether there was one.
    fn pass_on(&mut self, holder: &'a Holder) -> bool {
        // How each group was reached: who leaves a server of which group for one of it.
        let mut reached: BTreeMap<usize, Option<(&'a Holder, usize)>> = BTreeMap::new();
        let mut open: VecDeque<usize> = VecDeque::new();
        let is_own =
            |g: usize| self.source(g).is_some_and(|of| of.reservation == holder.reservation);
        // What it gave itself comes back to it.
        let counts = |g: usize| {
            self.rank(holder, g).is_some() || is_own(g) && self.worth(holder, g) > Rru::ZERO
        };
        for g in (0..self.held.groups.len()).filter(|&g| counts(g) && self.room(holder, g) > 0) {
            reached.insert(g, None);
            open.push_back(g);
        }
        // Nobody more important gives for it, and it gives itself only what it has no use for.
        let gives = |g: usize| match self.source(g) {
            None => true,
            Some(_) if is_own(g) => self.worth(holder, g) == Rru::ZERO,
            Some(of) => of.priority > holder.priority,
        };
        while let Some(from) = open.pop_front() {
            let takers = self.taken.iter().filter(|((_, g), count)| *g == from && **count > 0);
            let takers: Vec<&'a Holder> = takers
                .map(|((name, _), _)| self.by_name[name])
                // One whose MSBs are limited by a replica rule keeps what it was to take.
                .filter(|of| of.reservation != holder.reservation && of.place.rule.is_none())
                .collect();
            for taker in takers {
                let worth = self.worth(taker, from);
                let mut others: Vec<(Rank, usize)> = (0..self.held.groups.len())
                    .filter(|g| !reached.contains_key(g) && self.worth(taker, *g) >= worth)
                    .filter(|&g| gives(g))
                    .filter_map(|g| Some((self.rank(taker, g)?, g)))
                    .collect();
                others.sort();
                for (_, other) in others {
                    reached.insert(other, Some((taker, from)));
                    if self.left[other] > 0 {
                        self.exchange(holder, other, &reached);
                        return true;
                    }
                    open.push_back(other);
                }
            }
        }
        false
    }

    /// Carries a chain out, from the group that has servers left back to the one for `holder`.
    fn exchange(
        &mut self,
        holder: &'a Holder,
        mut g: usize,
        reached: &BTreeMap<usize, Option<(&'a Holder, usize)>>,
    ) {
        while let Some(Some((taker, from))) = reached.get(&g) {
            self.shift(taker, g, 1, false);
            self.shift(taker, *from, 1, true);
            g = *from;
        }
        if self.source(g).is_none_or(|of| of.reservation != holder.reservation) {
            self.shift(holder, g, 1, false);
        }
    }
}

/// Nobody's, a buffer's or a reservation's; its priority, turned round; in use; and names, for one order.
type Rank<'a> = (u8, i32, bool, Option<&'a Name>, &'a Name, &'a Name);

/// Where a group stands in the order it is taken for a reservation; `None`: it may not be.
fn rank<'a>(
    holder: &Holder,
    g: usize,
    held: &'a RegionHeld,
    by_name: &BTreeMap<&Name, &'a Holder>,
) -> Option<Rank<'a>> {
    let group = &held.groups[g];
    let (step, priority) = match group.holder.as_ref().map(|name| by_name.get(name)) {
        None => (0, 0),
        Some(None) if group.shared => (1, 0),
        // Less important: a larger number. The largest comes first.
        Some(Some(source)) if source.priority > holder.priority => (2, -source.priority),
        Some(_) => return None,
    };
    let name = group.holder.as_ref();
    Some((step, priority, group.in_use, name, &group.msb, &group.hardware_type))
}

/// What a server of a group is worth to a reservation: nothing where it is not allowed.
fn value(holder: &Holder, group: &HeldGroup) -> Rru {
    let worth = holder.values.get(&group.hardware_type).filter(|_| holder.place.allows(&group.msb));
    worth.copied().unwrap_or_default()
}

fn times(value: Rru, count: u64) -> Rru {
    value.times(usize::try_from(count).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::{Due, due, plan};
    use broker::{HeldGroup, Holder, PlaceLimits, RegionHeld};
    use fleet::{ReplicaRule, Rru};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn holder(name: &str, priority: i32, capacity: usize) -> Holder {
        let values = BTreeMap::from([("a".into(), Rru::units(1)), ("b".into(), Rru::units(2))]);
        let (reservation, capacity) = (name.into(), Rru::units(capacity));
        Holder { reservation, priority, capacity, values, place: PlaceLimits::default() }
    }

    fn group(holder: Option<&str>, hardware_type: &str, in_use: bool, held: u64) -> HeldGroup {
        HeldGroup {
            holder: holder.map(Into::into),
            shared: holder.is_some_and(|name| name.starts_with("shared")),
            msb: "m".into(),
            hardware_type: hardware_type.into(),
            in_use,
            held,
            takable: held,
        }
    }

    #[test]
    fn two_msbs_must_be_lost_for_the_whole_delay() {
        let at = |seconds| chrono::DateTime::from_timestamp(seconds, 0).expect("an instant");
        let due = |began: &[i64], now| {
            due(began.iter().map(|began| at(*began)).collect(), at(now), Duration::from_secs(60))
        };
        assert_eq!(due(&[], 100), Due::No);
        assert_eq!(due(&[0], 1_000), Due::No, "one lost MSB is what embedded buffers are for");
        assert_eq!(due(&[50, 10], 100), Due::At(at(110)), "the second began at 50");
        assert_eq!(due(&[50, 10], 110), Due::Now(at(50)));
        assert_eq!(due(&[90, 50, 10], 110), Due::Now(at(50)), "a third changes nothing");
        assert_eq!(super::due(vec![at(0); 2], at(9), Duration::MAX), Due::No);
    }

    fn rows(held: &RegionHeld) -> Vec<(String, String, bool, u64)> {
        let name = |name: &Option<fleet::Name>| name.as_deref().unwrap_or("-").to_owned();
        let row =
            |of: &broker::GiveWay| (name(&of.source), of.target.to_string(), of.in_use, of.count);
        plan(held).0.iter().map(row).collect()
    }

    fn row(source: &str, target: &str, in_use: bool, count: u64) -> (String, String, bool, u64) {
        (source.into(), target.into(), in_use, count)
    }

    #[test]
    fn the_least_important_gives_first_and_takes_in_its_turn() {
        let held = RegionHeld {
            holders: vec![holder("ads", 1, 10), holder("batch", 5, 10), holder("web", 0, 20)],
            groups: vec![
                group(None, "a", false, 1),
                group(Some("ads"), "a", false, 4),
                group(Some("ads"), "a", true, 6),
                group(Some("batch"), "a", false, 3),
                group(Some("batch"), "a", true, 7),
                group(Some("shared/a"), "a", false, 2),
                group(Some("web"), "a", true, 2),
            ],
        };
        // Web lacks 18: one of nobody, two of the buffer, all ten of batch, and five of ads, who has
        // nobody below it left to take from.
        let expected = [
            row("-", "web", false, 1),
            row("shared/a", "web", false, 2),
            row("batch", "web", false, 3),
            row("batch", "web", true, 7),
            row("ads", "web", false, 4),
            row("ads", "web", true, 1),
        ];
        assert_eq!(rows(&held), expected);
        let standings = plan(&held).1;
        let after: Vec<_> = standings.iter().map(|of| (&*of.reservation, of.after)).collect();
        let units = Rru::units;
        assert_eq!(after, [("web", units(20)), ("ads", units(5)), ("batch", units(0))]);
    }

    #[test]
    fn nobody_gives_to_an_equal_and_nobody_who_is_whole_takes() {
        let held = RegionHeld {
            holders: vec![holder("ads", 1, 4), holder("web", 1, 10)],
            groups: vec![group(Some("ads"), "a", false, 9), group(Some("web"), "a", true, 2)],
        };
        assert_eq!(rows(&held), []);
        let held = RegionHeld { holders: vec![holder("web", 0, 2)], groups: held.groups };
        assert_eq!(rows(&held), []);
    }

    /// The least that can be missing by priority, the most important first, over every way to hand
    /// servers one by one to somebody who may take them.
    fn least_missing(held: &RegionHeld, servers: &[(usize, u64)], got: &mut [i64]) -> Vec<i64> {
        let Some((&(g, count), rest)) = servers.split_first() else {
            let mut missing = vec![0; 3];
            for (holder, got) in held.holders.iter().zip(got.iter()) {
                let priority = usize::try_from(holder.priority).expect("0 to 2");
                missing[priority] += (holder.capacity.0 - got).max(0);
            }
            return missing;
        };
        let group = &held.groups[g];
        let owner =
            held.holders.iter().position(|of| group.holder.as_ref() == Some(&of.reservation));
        let rest_of: Vec<(usize, u64)> = if count > 1 {
            std::iter::once((g, count - 1)).chain(rest.iter().copied()).collect()
        } else {
            rest.to_vec()
        };
        let mut best: Option<Vec<i64>> = None;
        for target in 0..held.holders.len() {
            let may = match owner {
                None => true,
                Some(owner) if owner == target => true,
                Some(owner) => held.holders[owner].priority > held.holders[target].priority,
            };
            let worth = super::value(&held.holders[target], group).0;
            if may && (worth > 0 || owner == Some(target)) {
                got[target] += worth;
                let found = least_missing(held, &rest_of, got);
                got[target] -= worth;
                best = Some(best.map_or(found.clone(), |best| best.min(found)));
            }
        }
        let nobody = || least_missing(held, &rest_of, &mut got.to_vec());
        best.unwrap_or_else(nobody)
    }

    #[test]
    fn a_reservation_held_to_datacenters_takes_nothing_elsewhere() {
        let mut web = holder("web", 0, 9);
        web.place.msbs = Some(["n".into()].into());
        let there =
            |msb: &str, held| HeldGroup { msb: msb.into(), ..group(None, "a", false, held) };
        let mut held =
            RegionHeld { holders: vec![web], groups: vec![there("m", 20), there("n", 4)] };
        assert_eq!(rows(&held), [row("-", "web", false, 4)]);
        // With one of three replicas in an MSB, 3 of 9 are all that may be there.
        held.holders[0].place.rule = Some(ReplicaRule { replicas: 3, per_msb: 1 });
        held.holders[0].place.capacity = Rru::units(9);
        assert_eq!(rows(&held), [row("-", "web", false, 3)]);
    }

    proptest! {
        /// As little is missing as can be, the more important first, whoever can use what.
        #[test]
        fn nothing_less_is_missing_of_the_more_important(
            holders in prop::collection::vec((0_i32..3, 0_usize..4, any::<[bool; 3]>()), 1..5),
            groups in prop::collection::vec((0_usize..6, 0_usize..3, 0_u64..3), 0..5),
        ) {
            let names = ["r0", "r1", "r2", "r3"];
            let count = holders.len();
            let holders: Vec<Holder> = (holders.iter().zip(names))
                .map(|((priority, capacity, can), name)| Holder {
                    values: (["a", "b", "c"].into_iter().zip(can))
                        .filter(|(_, can)| **can)
                        .map(|(ty, _)| (ty.into(), Rru::units(1)))
                        .collect(),
                    ..holder(name, *priority, *capacity)
                })
                .collect();
            let mut unique = BTreeMap::new();
            for (who, ty, held) in groups {
                let who = match who {
                    4 => None,
                    5 => Some("shared/a"),
                    n => Some(names[n % count]),
                };
                unique.insert((who, ty), group(who, ["a", "b", "c"][ty], false, held));
            }
            let held = RegionHeld { holders, groups: unique.into_values().collect() };
            let servers: Vec<(usize, u64)> = (held.groups.iter().enumerate())
                .map(|(g, group)| (g, group.held))
                .filter(|&(_, count)| count > 0)
                .collect();
            prop_assume!(servers.iter().map(|of| of.1).sum::<u64>() <= 6);
            let least = least_missing(&held, &servers, &mut vec![0; held.holders.len()]);
            let mut missing = vec![0; 3];
            for of in plan(&held).1 {
                missing[usize::try_from(of.priority).expect("0 to 2")] +=
                    (of.capacity - of.after).0.max(0);
            }
            prop_assert_eq!(missing, least);
        }

        /// Nobody gives to somebody less important, nobody gives what it has not, and after it no
        /// short reservation is left beside somebody less important who has what it could use.
        #[test]
        fn priority_decides(
            holders in prop::collection::vec((0_i32..3, 0_usize..20), 1..5),
            groups in prop::collection::vec((0_usize..7, 0_usize..2, any::<bool>(), 0_u64..12), 0..12),
        ) {
            let names = ["r0", "r1", "r2", "r3", "r4"];
            let count = holders.len();
            let holders: Vec<Holder> =
                (holders.iter().zip(names)).map(|(of, name)| holder(name, of.0, of.1)).collect();
            let mut unique = BTreeMap::new();
            for (who, ty, in_use, held) in groups {
                let who = match who {
                    5 => None,
                    6 => Some("shared/a"),
                    n => Some(names[n % count]),
                };
                unique.insert((who, ty, in_use), group(who, ["a", "b"][ty], in_use, held));
            }
            let held = RegionHeld { holders, groups: unique.into_values().collect() };
            let (rows, standings) = plan(&held);
            let priority = |name: &fleet::Name| {
                held.holders.iter().find(|of| of.reservation == *name).map(|of| of.priority)
            };
            let mut groups = held.groups.clone();
            for row in &rows {
                if let Some(source) = row.source.as_ref().and_then(priority) {
                    prop_assert!(source > priority(&row.target).expect("guaranteed"));
                }
                let from = groups.iter_mut().find(|of| of.holder == row.source
                    && of.hardware_type == row.hardware_type && of.in_use == row.in_use);
                let from = from.expect("it is there");
                prop_assert!(from.held >= row.count);
                from.held -= row.count;
            }
            for short in standings.iter().filter(|of| of.after < of.capacity) {
                for group in groups.iter().filter(|group| group.held > 0) {
                    let below = group.holder.as_ref().and_then(priority).is_none_or(|p| p > short.priority);
                    prop_assert!(!below, "{short:?} could have {group:?}");
                }
            }
        }
    }
}
