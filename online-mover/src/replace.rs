//! Which spare server takes the place of one that failed (RAS section 3.4).
//!
//! The spares are the servers of the shared buffers. One fits if its type is worth at least as much to
//! the reservation as the one that failed. Of those that fit, in this order: nobody borrows it; the
//! reservation's share in its MSB ends up smallest, because the largest share is what the loss of an
//! MSB takes (eq. 4, 6); it is worth the least, so that the better ones stay for those who need
//! them; its name comes first. Reservations are served by priority, then those who have waited longest.

use broker::{Failed, Spare, Swap, Worth};
use fleet::{Name, Rru};
use std::collections::BTreeMap;

/// Chooses spares; who is not in the answer finds none that fits. Each spare is used once.
pub fn choose(failed: &[Failed], spares: &[Spare], worth: &Worth) -> Vec<Swap> {
    // Spares alike but for their names are one choice: there are few kinds and many spares.
    let mut kinds: BTreeMap<(bool, &Name, &Name), Vec<&Name>> = BTreeMap::new();
    for spare in spares {
        let kind = (spare.lent, &spare.msb, &spare.hardware_type);
        kinds.entry(kind).or_default().push(&spare.server);
    }
    for names in kinds.values_mut() {
        names.sort_unstable_by(|a, b| b.cmp(a));
    }
    let mut held = worth.held.clone();
    let mut waiting: Vec<&Failed> = failed.iter().collect();
    waiting.sort_by(|a, b| (a.priority, a.since, &a.server).cmp(&(b.priority, b.since, &b.server)));
    let mut swaps = Vec::new();
    for of in waiting {
        let value = |ty: &Name| worth.values.get(&(of.reservation.clone(), ty.clone())).copied();
        let least = value(&of.hardware_type).unwrap_or(Rru::ZERO);
        let share = |msb: &Name, held: &BTreeMap<(Name, Name), Rru>| {
            held.get(&(of.reservation.clone(), msb.clone())).copied().unwrap_or(Rru::ZERO)
        };
        let fitting = kinds.iter().filter_map(|((lent, msb, ty), names)| {
            let worth = value(ty).filter(|worth| *worth >= least && *worth > Rru::ZERO)?;
            let name = *names.last()?;
            Some(((*lent, share(msb, &held) + worth, worth, name), (*lent, *msb, *ty)))
        });
        let Some(((_, after, _, spare), kind)) = fitting.min() else { continue };
        held.insert((of.reservation.clone(), kind.1.clone()), after);
        kinds.get_mut(&kind).expect("it was just looked at").pop();
        let (failed, reservation) = (of.server.clone(), of.reservation.clone());
        swaps.push(Swap { failed, reservation, spare: spare.clone() });
    }
    swaps
}

#[cfg(test)]
mod tests {
    use super::choose;
    use broker::{Failed, Spare, Swap, Worth};
    use chrono::{DateTime, TimeDelta};
    use fleet::Rru;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

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
        Worth { values: table(values), held: table(held) }
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
        assert_eq!(chosen(&[near, lent]).as_deref(), Some("a"), "one that nobody borrows");
        // In one MSB: the least worth, then the first by name.
        let (d, e, f) = (
            spare("d", "m2", "new", false),
            spare("f", "m2", "old", false),
            spare("e", "m2", "old", false),
        );
        assert_eq!(chosen(&[d, e, f]).as_deref(), Some("e"));
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

    proptest! {
        /// Each spare once, each fits, and nobody is left out for whom one was left that fits.
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
