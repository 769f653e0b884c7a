//! What maintenance may take at once: a share of an MSB, and nothing that a guarantee needs.
//!
//! Pure: what there is comes in as a [`View`]. It is asked when a window is planned, with everything
//! that is planned, and again when its drain and when its work begins, with what has begun by then.

use chrono::{DateTime, Utc};
use fleet::{Name, Rru};
use std::collections::{BTreeMap, BTreeSet};

/// Millionths of an MSB's servers under maintenance at once. Maintenance is served from the embedded
/// buffers that are kept for the loss of an MSB; when one is lost, three quarters of them must be there
/// at once (RAS section 3.3.1: "our maintenance scheduling system limits concurrent maintenance
/// operations to 25% of an MSB").
pub const SHARE_MICRO: u32 = 250_000;

/// A server that is or may be under maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) server: Name,
    pub(crate) rack: Name,
    pub(crate) msb: Name,
    /// The guaranteed reservation that holds it.
    pub(crate) holder: Option<Name>,
    /// What it is worth to that one now: nothing, if it is out of use anyway.
    pub(crate) value: Rru,
}

/// What is promised, and what there is of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) capacity: Rru,
    /// Without what is out of use unplanned; maintenance is not taken off.
    pub(crate) available: Rru,
}

/// Servers that are out together, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) from: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
    pub(crate) servers: BTreeSet<i32>,
}

/// What is known of the region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Every server that stands in an [`Out`].
    pub(crate) sites: BTreeMap<i32, Site>,
    /// How many servers their MSBs have.
    pub(crate) msbs: BTreeMap<Name, u64>,
    /// Their holders.
    pub(crate) reservations: BTreeMap<Name, Promised>,
}

/// Why maintenance cannot be: too much of an MSB, or of what is guaranteed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TooMuch {
    Share { msb: Name, out: u64, servers: u64, most: u64 },
    Guarantee { reservation: Name, needed: Rru, left: Rru, msb: Name },
}

/// How many servers a share is.
pub(crate) fn most(servers: u64, share_micro: u32) -> u64 {
    let most = u128::from(servers) * u128::from(share_micro) / 1_000_000;
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Whether servers may be out together with the others, at every instant of their time.
///
/// A reservation that has its capacity without any maintenance must keep it. One that is short
/// anyway is not looked at: whatever it holds could never be maintained.
pub(crate) fn check(
    view: &View,
    others: &[&Out],
    ours: &Out,
    share_micro: u32,
) -> Result<(), TooMuch> {
    // What is out together changes where something begins.
    let begin = others.iter().map(|other| other.from);
    let during = begin.filter(|from| ours.from < *from && *from < ours.until);
    let instants: BTreeSet<DateTime<Utc>> = during.chain([ours.from]).collect();
    for at in instants {
        let at_once = others.iter().filter(|other| other.from <= at && at < other.until);
        let mut out = ours.servers.clone();
        out.extend(at_once.flat_map(|other| &other.servers));
        check_instant(view, &out, &ours.servers, share_micro)?;
    }
    Ok(())
}

fn check_instant(
    view: &View,
    out: &BTreeSet<i32>,
    ours: &BTreeSet<i32>,
    share_micro: u32,
) -> Result<(), TooMuch> {
    let sites = |servers: &BTreeSet<i32>| -> Vec<&Site> {
        servers.iter().filter_map(|id| view.sites.get(id)).collect()
    };
    let (all, ours) = (sites(out), sites(ours));
    for msb in ours.iter().map(|site| &site.msb).collect::<BTreeSet<_>>() {
        let servers = view.msbs.get(msb).copied().unwrap_or(0);
        let out = all.iter().filter(|site| site.msb == *msb).count() as u64;
        let most = most(servers, share_micro);
        if out > most {
            return Err(TooMuch::Share { msb: msb.clone(), out, servers, most });
        }
    }
    let needed: BTreeMap<&Name, &Name> = (ours.iter())
        .filter(|site| site.value > Rru::ZERO)
        .filter_map(|site| Some((site.holder.as_ref()?, &site.msb)))
        .collect();
    for (holder, msb) in needed {
        let Some(Promised { capacity, available }) = view.reservations.get(holder).copied() else {
            continue;
        };
        let held = all.iter().filter(|site| site.holder.as_ref() == Some(holder));
        let left = available - held.map(|site| site.value).sum::<Rru>();
        if available >= capacity && left < capacity {
            let (reservation, msb) = (holder.clone(), msb.clone());
            return Err(TooMuch::Guarantee { reservation, needed: capacity, left, msb });
        }
    }
    Ok(())
}

/// The racks of an MSB in batches, each within the share, in order of name; racks are never divided.
/// Each rack comes with how many servers it has.
pub(crate) fn batches(
    msb: &Name,
    racks: &BTreeMap<Name, u64>,
    share_micro: u32,
) -> Result<Vec<Vec<Name>>, TooMuch> {
    let servers = racks.values().sum();
    let most = most(servers, share_micro);
    let mut batches: Vec<Vec<Name>> = Vec::new();
    let mut taken = u64::MAX;
    for (rack, &out) in racks {
        if out > most {
            return Err(TooMuch::Share { msb: msb.clone(), out, servers, most });
        }
        if taken.saturating_add(out) > most {
            batches.push(Vec::new());
            taken = 0;
        }
        taken += out;
        batches.last_mut().expect("one was begun").push(rack.clone());
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;
    use proptest::prelude::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn out(from: i64, until: i64, servers: &[i32]) -> Out {
        Out { from: at(from), until: at(until), servers: servers.iter().copied().collect() }
    }

    /// Two MSBs of 20 servers, in racks of five; half of each MSB is web's, at one RRU.
    fn view(capacity: usize) -> View {
        let site = |id: i32| Site {
            server: format!("s{id}").into(),
            rack: format!("rack{}", id / 5).into(),
            msb: format!("msb{}", id / 20).into(),
            holder: (id % 2 == 0).then(|| "web".into()),
            value: Rru::units(1),
        };
        View {
            sites: (0..40).map(|id| (id, site(id))).collect(),
            msbs: [("msb0".into(), 20), ("msb1".into(), 20)].into(),
            reservations: [(
                "web".into(),
                Promised { capacity: Rru::units(capacity), available: Rru::units(20) },
            )]
            .into(),
        }
    }

    #[test]
    fn a_quarter_of_an_msb_at_once_and_no_more() {
        let view = view(0);
        let five = out(0, 60, &[0, 1, 2, 3, 4]);
        assert_eq!(check(&view, &[], &five, SHARE_MICRO), Ok(()));
        let too_much = |out| Err(TooMuch::Share { msb: "msb0".into(), out, servers: 20, most: 5 });
        let one = out(30, 90, &[5]);
        assert_eq!(check(&view, &[&five], &one, SHARE_MICRO), too_much(6));
        assert_eq!(check(&view, &[&one], &five, SHARE_MICRO), too_much(6), "whoever comes first");
        assert_eq!(check(&view, &[&five], &out(60, 90, &[5]), SHARE_MICRO), Ok(()), "after it");
        assert_eq!(check(&view, &[&five], &out(30, 90, &[25]), SHARE_MICRO), Ok(()), "elsewhere");
        assert_eq!(check(&view, &[&five], &out(30, 90, &[3]), SHARE_MICRO), Ok(()), "the same one");
        assert_eq!(check(&view, &[&five], &one, 500_000), Ok(()), "a share of its own");
        // Two that do not overlap each other, and both overlap a third.
        let (early, late) = (out(0, 30, &[0, 1, 2]), out(30, 60, &[3, 4, 5]));
        assert_eq!(check(&view, &[&early, &late], &out(0, 60, &[6, 7]), SHARE_MICRO), Ok(()));
        let three = out(0, 60, &[6, 7, 8]);
        assert_eq!(check(&view, &[&early, &late], &three, SHARE_MICRO), too_much(6));
    }

    #[test]
    fn a_guarantee_is_kept_or_the_answer_is_no() {
        let three = out(0, 60, &[0, 2, 4]);
        assert_eq!(check(&view(17), &[], &three, SHARE_MICRO), Ok(()));
        let refused = Err(TooMuch::Guarantee {
            reservation: "web".into(),
            needed: Rru::units(18),
            left: Rru::units(17),
            msb: "msb0".into(),
        });
        assert_eq!(check(&view(18), &[], &three, SHARE_MICRO), refused);
        let elsewhere = out(30, 90, &[20]);
        assert_eq!(check(&view(18), &[&elsewhere], &out(0, 60, &[0, 2]), SHARE_MICRO), refused);
        assert_eq!(check(&view(18), &[&elsewhere], &out(0, 30, &[0, 2]), SHARE_MICRO), Ok(()));
        let idle = out(0, 60, &[1, 3]);
        assert_eq!(check(&view(18), &[&three], &idle, SHARE_MICRO), Ok(()), "not its doing");
        assert_eq!(check(&view(21), &[], &three, SHARE_MICRO), Ok(()), "short anyway");
        let mut failed = view(20);
        failed.sites.get_mut(&0).expect("a site").value = Rru::ZERO;
        assert_eq!(
            check(&failed, &[], &out(0, 60, &[0]), SHARE_MICRO),
            Ok(()),
            "out of use anyway"
        );
    }

    #[test]
    fn an_msb_is_taken_in_batches_of_whole_racks() {
        let racks = |sizes: &[u64]| -> BTreeMap<Name, u64> {
            let named = |(number, size): (usize, &u64)| (format!("r{number}").into(), *size);
            sizes.iter().enumerate().map(named).collect()
        };
        let sizes = |sizes: &[u64], share| {
            let batches = batches(&"msb".into(), &racks(sizes), share);
            batches.map(|all| all.iter().map(Vec::len).collect::<Vec<_>>())
        };
        assert_eq!(sizes(&[5; 8], SHARE_MICRO), Ok(vec![2; 4]));
        assert_eq!(sizes(&[5, 1, 5, 1, 5, 3], SHARE_MICRO), Ok(vec![1, 1, 1, 1, 1, 1]));
        assert_eq!(sizes(&[5, 1, 5, 1, 5, 3], 500_000), Ok(vec![2, 2, 2]));
        assert_eq!(sizes(&[5; 4], 1_000_000), Ok(vec![4]));
        assert_eq!(sizes(&[], SHARE_MICRO), Ok(vec![]));
        let refused = TooMuch::Share { msb: "msb".into(), out: 5, servers: 10, most: 2 };
        assert_eq!(sizes(&[5, 5], SHARE_MICRO), Err(refused));
    }

    proptest! {
        /// Windows asked for in any order: at every instant, of those that were let be, no MSB loses
        /// more than a quarter and nobody what is guaranteed.
        #[test]
        fn what_is_let_be_never_takes_too_much(
            capacity in 8_usize..22,
            windows in prop::collection::vec((0_i64..40, 1_i64..20,
                prop::collection::btree_set(0_i32..40, 1..5)), 1..30),
        ) {
            let view = view(capacity);
            let mut planned: Vec<Out> = Vec::new();
            for (from, length, servers) in windows {
                let ours = Out { from: at(from), until: at(from + length), servers };
                let others: Vec<&Out> = planned.iter().collect();
                if check(&view, &others, &ours, SHARE_MICRO).is_ok() {
                    planned.push(ours);
                }
            }
            for minute in 0..60 {
                let now = planned.iter().filter(|p| p.from <= at(minute) && at(minute) < p.until);
                let out: BTreeSet<i32> = now.flat_map(|p| &p.servers).copied().collect();
                for msb in [0, 1] {
                    prop_assert!(out.iter().filter(|id| **id / 20 == msb).count() <= 5);
                }
                let lost = out.iter().filter(|id| **id % 2 == 0).count();
                prop_assert!(capacity > 20 || 20 - lost >= capacity);
            }
        }
    }
}
