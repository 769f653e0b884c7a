//! Which spare server takes the place of one that failed (RAS section 3.4).
//!
//! The spares are the servers of the shared buffers. One fits if its type is worth at least as much to
//! the reservation as the one that failed, its datacenter is one that the reservation is allowed in,
//! and its MSB has no more replicas with it than the reservation's rule allows. Reservations are served by
//! priority, then by how long they have waited. Of the spares that fit, the best in this order: one that
//! is not lent; the one with which the reservation's share in its MSB is smallest, because the loss of an
//! MSB takes at most the largest share (eq. 4, 6); the one worth least, so that better spares stay for
//! reservations that need them; the first by name. Where all spares that fit are taken, a reservation that
//! can use another spare passes its own on (an augmenting path). So the number of failed servers replaced
//! is the largest possible at each priority without replacing fewer of a more important one.

use crate::place::PlaceLimits;
use chrono::{DateTime, Utc};
use fleet::{Name, Rru};
use std::collections::{BTreeMap, VecDeque};

/// A server that failed, and whom it leaves short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The server.
    pub server: Name,
    /// Who held it.
    pub reservation: Name,
    /// How important that one is; 0 is the most.
    pub priority: i32,
    /// Its hardware type.
    pub hardware_type: Name,
    /// Since when it is missing.
    pub since: DateTime<Utc>,
}

/// A server of a shared buffer that may be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spare {
    /// The server.
    pub server: Name,
    /// Its MSB.
    pub msb: Name,
    /// Its hardware type.
    pub hardware_type: Name,
    /// Whether it is lent to an elastic reservation or in use.
    pub lent: bool,
}

/// What is known of the reservations that are short.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Worth {
    /// V: by reservation and hardware type.
    pub values: BTreeMap<(Name, Name), Rru>,
    /// What a reservation has in an MSB, without what is out of use.
    pub held: BTreeMap<(Name, Name), Rru>,
    /// The rules of places, of those that have any.
    pub places: BTreeMap<Name, PlaceLimits>,
}

impl Worth {
    /// Whether a reservation may have this much in an MSB.
    pub fn fits(&self, reservation: &Name, msb: &Name, amount: Rru) -> bool {
        self.places.get(reservation).is_none_or(|place| place.fits(msb, amount))
    }
}

/// A server that failed and the spare that takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swap {
    /// The server that failed.
    pub failed: Name,
    /// Who gets the spare.
    pub reservation: Name,
    /// The spare.
    pub spare: Name,
}

/// Lent, MSB and type: spares alike but for their names are one choice. There are few kinds and many
/// spares.
type Kind<'a> = (bool, &'a Name, &'a Name);

struct Choice<'a> {
    worth: &'a Worth,
    /// The spares of each kind that are left, the first by name last.
    left: BTreeMap<Kind<'a>, Vec<&'a Name>>,
    /// RRU by reservation and MSB, with what was chosen.
    held: BTreeMap<(Name, Name), Rru>,
    /// Who has which spare.
    chosen: Vec<(&'a Failed, Kind<'a>, &'a Name)>,
}

/// Chooses spares; who is not in the answer finds none that fits. Each spare is used once.
pub fn choose(failed: &[Failed], spares: &[Spare], worth: &Worth) -> Vec<Swap> {
    let mut left: BTreeMap<Kind, Vec<&Name>> = BTreeMap::new();
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
    let swap = |(of, _, spare): (&Failed, Kind, &Name)| Swap {
        failed: of.server.clone(),
        reservation: of.reservation.clone(),
        spare: spare.clone(),
    };
    choice.chosen.into_iter().map(swap).collect()
}

impl<'a> Choice<'a> {
    fn value(&self, of: &Failed, ty: &Name) -> Option<Rru> {
        self.worth.values.get(&(of.reservation.clone(), ty.clone())).copied()
    }

    /// What a spare of a kind is worth, if it fits.
    fn fits(&self, of: &Failed, kind: Kind) -> Option<Rru> {
        let least = self.value(of, &of.hardware_type).unwrap_or(Rru::ZERO);
        let key = (of.reservation.clone(), kind.1.clone());
        let share = self.held.get(&key).copied().unwrap_or(Rru::ZERO);
        let fits = |worth: &Rru| self.worth.fits(&of.reservation, kind.1, share + *worth);
        self.value(of, kind.2).filter(|worth| *worth >= least && *worth > Rru::ZERO).filter(fits)
    }

    /// The best kind that fits and has spares left.
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

    /// Finds a spare for one for whom none is left, where others can do with one of another kind: the
    /// shortest chain of such exchanges.
    fn pass_on(&mut self, of: &'a Failed) {
        // How each kind was reached: who passes a spare of it on, and of which kind it takes one.
        let mut reached: BTreeMap<Kind, Option<(usize, Kind)>> = BTreeMap::new();
        let mut open: VecDeque<Kind> = VecDeque::new();
        for &kind in self.left.keys().filter(|&&kind| self.fits(of, kind).is_some()) {
            reached.insert(kind, None);
            open.push_back(kind);
        }
        while let Some(kind) = open.pop_front() {
            for (number, &(holder, held, _)) in self.chosen.iter().enumerate() {
                // One whose MSBs are limited by a replica rule keeps its own.
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

    /// Carries a chain out, from the kind that has spares left back to the one for `of`.
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
mod tests {
    use super::{Failed, Spare, Swap, Worth, choose};
    use crate::place::PlaceLimits;
    use chrono::{DateTime, TimeDelta};
    use fleet::{ReplicaRule, Rru};
    use proptest::prelude::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn rru(value: usize) -> Rru {
        Rru::units(value)
    }

    fn failed(number: u32, reservation: &str, priority: i32, ty: &str) -> Failed {
        Failed {
            server: format!("f{number}").into(),
            reservation: reservation.into(),
            priority,
            hardware_type: ty.into(),
            since: DateTime::UNIX_EPOCH + TimeDelta::seconds(number.into()),
        }
    }

    fn spare(name: &str, msb: &str, ty: &str, lent: bool) -> Spare {
        Spare { server: name.into(), msb: msb.into(), hardware_type: ty.into(), lent }
    }

    fn worth(values: &[(&str, &str, usize)], held: &[(&str, &str, usize)]) -> Worth {
        let table = |rows: &[(&str, &str, usize)]| {
            rows.iter().map(|(a, b, v)| (((*a).into(), (*b).into()), rru(*v))).collect()
        };
        Worth { values: table(values), held: table(held), places: BTreeMap::new() }
    }

    fn pairs(swaps: &[Swap]) -> Vec<(&str, &str)> {
        swaps.iter().map(|swap| (&*swap.failed, &*swap.spare)).collect()
    }

    #[test]
    fn the_spare_is_as_good_and_spreads_best() {
        let worth = worth(
            &[("web", "old", 2), ("web", "new", 3), ("web", "weak", 1)],
            &[("web", "m1", 9), ("web", "m2", 4)],
        );
        let one = [failed(1, "web", 1, "old")];
        let chosen = |spares: &[Spare]| {
            choose(&one, spares, &worth).first().map(|swap| swap.spare.to_string())
        };
        let (weak, foreign) = (spare("w", "m2", "weak", false), spare("x", "m2", "gpu", false));
        assert_eq!(chosen(&[weak.clone(), foreign.clone()]), None);
        let near = spare("a", "m1", "old", false);
        let far = spare("b", "m2", "new", false);
        let third = spare("c", "m3", "new", false);
        assert_eq!(chosen(&[weak, foreign, near.clone(), far.clone()]).as_deref(), Some("b"));
        assert_eq!(chosen(&[near.clone(), far.clone(), third]).as_deref(), Some("c"));
        let lent = spare("b", "m2", "new", true);
        assert_eq!(chosen(&[near, lent]).as_deref(), Some("a"), "one that is not lent");
        // In one MSB: the least worth, then the first by name.
        let (d, e, f) = (
            spare("d", "m2", "new", false),
            spare("f", "m2", "old", false),
            spare("e", "m2", "old", false),
        );
        assert_eq!(chosen(&[d, e, f]).as_deref(), Some("e"));
    }

    #[test]
    fn a_spare_outside_the_allowed_datacenters_is_not_chosen() {
        let mut worth = worth(&[("web", "t", 1)], &[("web", "m1", 3)]);
        let one = [failed(1, "web", 1, "t")];
        let spares = [spare("a", "m1", "t", true), spare("b", "m2", "t", false)];
        assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "b")]);
        let held_to = |msbs: &[&str]| Some(msbs.iter().map(|msb| (*msb).into()).collect());
        let place = PlaceLimits { msbs: held_to(&["m1"]), ..PlaceLimits::default() };
        worth.places.insert("web".into(), place.clone());
        assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "a")]);
        assert_eq!(pairs(&choose(&one, &spares[1..], &worth)), []);
        // With one of three replicas in an MSB, m1 has its part of 9 RRU already.
        let rule = Some(ReplicaRule { replicas: 3, per_msb: 1 });
        let full = PlaceLimits { rule, capacity: rru(9), ..place };
        worth.places.insert("web".into(), full.clone());
        assert_eq!(pairs(&choose(&one, &spares, &worth)), []);
        worth.places.insert("web".into(), PlaceLimits { capacity: rru(12), ..full });
        assert_eq!(pairs(&choose(&one, &spares, &worth)), [("f1", "a")]);
    }

    #[test]
    fn the_most_important_are_served_first_then_who_waits_longest() {
        let worth = worth(&[("web", "t", 1), ("ads", "t", 1)], &[]);
        let three = [failed(1, "web", 2, "t"), failed(2, "ads", 1, "t"), failed(3, "ads", 1, "t")];
        let spares = [spare("a", "m1", "t", false), spare("b", "m1", "t", false)];
        assert_eq!(pairs(&choose(&three, &spares, &worth)), [("f2", "a"), ("f3", "b")]);
        // What was just given counts for the next: they spread.
        let spares = [
            spare("a", "m1", "t", false),
            spare("b", "m1", "t", false),
            spare("c", "m2", "t", false),
        ];
        assert_eq!(
            pairs(&choose(&three, &spares, &worth)),
            [("f2", "a"), ("f3", "c"), ("f1", "b")]
        );
    }

    /// The least that can be left without a spare, by priority, the most important first: every way
    /// to hand spares out.
    fn fewest(
        of: &[Failed],
        spares: &[Spare],
        used: &mut Vec<bool>,
        fits: &dyn Fn(&Failed, &Spare) -> bool,
    ) -> Vec<usize> {
        let Some((first, rest)) = of.split_first() else { return vec![0; 3] };
        let mut without = fewest(rest, spares, used, fits);
        without[usize::try_from(first.priority).expect("0 to 2")] += 1;
        let mut best = without;
        for number in 0..spares.len() {
            if !used[number] && fits(first, &spares[number]) {
                used[number] = true;
                best = best.min(fewest(rest, spares, used, fits));
                used[number] = false;
            }
        }
        best
    }

    proptest! {
        /// Of each priority as many are replaced as can be, the more important first.
        #[test]
        fn fewest_of_the_most_important_go_without(
            rows in prop::collection::vec((0_usize..4, 0_usize..3, 0_i32..3), 0..6),
            spares in prop::collection::vec((0_usize..2, 0_usize..3, any::<bool>()), 0..6),
        ) {
            let types = ["t0", "t1", "t2"];
            let worth = worth(
                &[
                    ("r0", "t0", 1), ("r0", "t1", 2), ("r1", "t1", 1), ("r1", "t2", 1), ("r2", "t2", 5),
                    ("r3", "t0", 3), ("r3", "t1", 2), ("r3", "t2", 1),
                ],
                &[("r0", "m0", 3), ("r1", "m1", 2)],
            );
            let failed: Vec<Failed> = (0..).zip(&rows)
                .map(|(n, (r, ty, p))| failed(n, &format!("r{r}"), *p, types[*ty])).collect();
            let spares: Vec<Spare> = (0..).zip(&spares)
                .map(|(n, (m, ty, lent))| spare(&format!("s{n}"), &format!("m{m}"), types[*ty], *lent))
                .collect();
            let value = |r: &str, ty: &str| worth.values.get(&(r.into(), ty.into())).copied();
            let fits = |of: &Failed, spare: &Spare| {
                let least = value(&of.reservation, &of.hardware_type).unwrap_or(Rru::ZERO);
                value(&of.reservation, &spare.hardware_type).is_some_and(|v| v >= least)
            };
            let swaps = choose(&failed, &spares, &worth);
            let mut without = vec![0; 3];
            for of in failed.iter().filter(|of| !swaps.iter().any(|swap| swap.failed == of.server)) {
                without[usize::try_from(of.priority).expect("0 to 2")] += 1;
            }
            let least = fewest(&failed, &spares, &mut vec![false; spares.len()], &fits);
            prop_assert_eq!(without, least);
        }

        /// Each spare is used once and fits, and no failed server is left out while a spare that fits is left.
        #[test]
        fn spares_are_used_once_and_up(
            rows in prop::collection::vec((0_usize..3, 0_usize..3, 0_i32..3), 0..12),
            spares in prop::collection::vec((0_usize..3, 0_usize..3, any::<bool>()), 0..12),
        ) {
            let types = ["t0", "t1", "t2"];
            let worth = worth(
                &[("r0", "t0", 1), ("r0", "t1", 2), ("r1", "t1", 1), ("r1", "t2", 1), ("r2", "t2", 5)],
                &[("r0", "m0", 3), ("r1", "m1", 2)],
            );
            let failed: Vec<Failed> = (0..).zip(&rows)
                .map(|(n, (r, ty, p))| failed(n, &format!("r{r}"), *p, types[*ty])).collect();
            let spares: Vec<Spare> = (0..).zip(&spares)
                .map(|(n, (m, ty, lent))| spare(&format!("s{n}"), &format!("m{m}"), types[*ty], *lent))
                .collect();
            let swaps = choose(&failed, &spares, &worth);
            let value = |r: &str, ty: &str| worth.values.get(&(r.into(), ty.into())).copied();
            let fits = |of: &Failed, spare: &Spare| {
                let least = value(&of.reservation, &of.hardware_type).unwrap_or(Rru::ZERO);
                value(&of.reservation, &spare.hardware_type).is_some_and(|v| v >= least)
            };
            let used: BTreeSet<_> = swaps.iter().map(|swap| &swap.spare).collect();
            let served: BTreeSet<_> = swaps.iter().map(|swap| &swap.failed).collect();
            prop_assert_eq!((used.len(), served.len()), (swaps.len(), swaps.len()));
            for swap in &swaps {
                let of = failed.iter().find(|of| of.server == swap.failed).expect("asked for");
                let spare = spares.iter().find(|s| s.server == swap.spare).expect("there");
                prop_assert!(fits(of, spare));
            }
            for of in failed.iter().filter(|of| !served.contains(&of.server)) {
                for spare in spares.iter().filter(|s| !used.contains(&s.server)) {
                    prop_assert!(!fits(of, spare), "{} could have {}", of.server, spare.server);
                }
            }
        }
    }
}
