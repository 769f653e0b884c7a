//! What maintenance may take at once: a share of an MSB, and nothing that a guarantee needs.
//!
//! Pure: what there is comes in as a [`View`]. It is asked when a window is planned, with everything
//! that is planned, and again when its drain and when its work begins, with what has begun by then.
//!
//! What a guarantee needs is what the certificate says (`fleet::audit::certificate`): C with no MSB
//! lost; with any one MSB lost, C less a quarter of the embedded buffer at once, when everything in
//! maintenance counts as gone, and C within 30 minutes, when what can be recalled by then is back.
//! Each of these that holds without any maintenance must hold with everything that is out at an
//! instant. One that does not hold without maintenance either is not looked at: whatever its
//! reservation has could never be maintained.

use chrono::{DateTime, Utc};
use fleet::audit::needed_at_once;
use fleet::{Name, Rru};
use std::collections::{BTreeMap, BTreeSet};

/// Millionths of an MSB's servers under maintenance at once. Maintenance is served from the embedded
/// buffers that are kept for the loss of an MSB; when one is lost, three quarters of them must be there
/// at once (RAS section 3.3.1: "our maintenance scheduling system limits concurrent maintenance
/// operations to 25% of an MSB").
pub const SHARE_MICRO: u32 = 250_000;

/// Who has a server, and what it is worth to that one: nothing, if it is out of use anyway.
pub(crate) type Held = Option<(Name, Rru)>;

/// A server that is or may be under maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) server: Name,
    pub(crate) rack: Name,
    pub(crate) msb: Name,
    /// The guaranteed reservation that owns it now, and the one that will once moves under way are
    /// done. Maintenance must leave both what they need.
    pub(crate) held: [Held; 2],
}

impl Site {
    /// Who holds it: the target of a move under way, else the owner.
    pub(crate) fn holder(&self) -> Option<&(Name, Rru)> {
        self.held[1].as_ref()
    }
}

/// What is promised to a reservation, and what there is of it. Without what is out of use unplanned;
/// maintenance is not taken off.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Promised {
    pub(crate) capacity: Rru,
    /// Whether it is to survive the loss of any one MSB.
    pub(crate) msb_buffer: bool,
    /// By MSB: what it owns now, and what it will once moves under way are done.
    pub(crate) by_msb: [BTreeMap<Name, Rru>; 2],
}

impl Promised {
    /// What it will have once moves under way are done.
    pub(crate) fn available(&self) -> Rru {
        self.by_msb[1].values().copied().sum()
    }
}

/// Servers that are out together, for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Out {
    pub(crate) from: DateTime<Utc>,
    pub(crate) until: DateTime<Utc>,
    pub(crate) servers: BTreeSet<i32>,
    /// Whether they are back within 30 minutes of a recall.
    pub(crate) recallable: bool,
}

/// What is known of the region.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct View {
    /// Every server that stands in an [`Out`].
    pub(crate) sites: BTreeMap<i32, Site>,
    /// How many servers their MSBs have.
    pub(crate) msbs: BTreeMap<Name, u64>,
    /// Their owners and holders.
    pub(crate) reservations: BTreeMap<Name, Promised>,
}

/// What a reservation would be left with at an instant, and what it needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The reservation.
    pub reservation: Name,
    /// The MSB whose loss is looked at; `None`: no MSB is lost.
    pub lost: Option<Name>,
    /// What it needs at once: C less a quarter of the embedded buffer, or C where no MSB is lost.
    pub needed_at_once: Rru,
    /// What it would have at once: everything in maintenance counts as gone.
    pub left_at_once: Rru,
    /// What it needs within 30 minutes: C.
    pub needed: Rru,
    /// What it would have within 30 minutes: what is recalled by then is back. Where no MSB is lost,
    /// nothing is recalled.
    pub left: Rru,
}

/// Why maintenance cannot be: too much of an MSB, or of what is guaranteed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TooMuch {
    Share {
        msb: Name,
        out: u64,
        servers: u64,
        most: u64,
    },
    Guarantee {
        left: Left,
        /// Where the servers are that would be out.
        msb: Name,
    },
}

/// How many servers a share is.
pub(crate) fn most(servers: u64, share_micro: u32) -> u64 {
    let most = u128::from(servers) * u128::from(share_micro) / 1_000_000;
    u64::try_from(most).unwrap_or(u64::MAX)
}

/// Whether servers may be out together with the others, at every instant of their time.
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
        let out: Vec<&Out> = at_once.copied().chain([ours]).collect();
        check_instant(view, &out, ours, share_micro)?;
    }
    Ok(())
}

fn check_instant(view: &View, out: &[&Out], ours: &Out, share_micro: u32) -> Result<(), TooMuch> {
    let all: BTreeSet<i32> = out.iter().flat_map(|of| &of.servers).copied().collect();
    let sites = |servers: &BTreeSet<i32>| -> Vec<&Site> {
        servers.iter().filter_map(|id| view.sites.get(id)).collect()
    };
    let (everything, ours) = (sites(&all), sites(&ours.servers));
    for msb in ours.iter().map(|site| &site.msb).collect::<BTreeSet<_>>() {
        let servers = view.msbs.get(msb).copied().unwrap_or(0);
        let out = everything.iter().filter(|site| site.msb == *msb).count() as u64;
        let most = most(servers, share_micro);
        if out > most {
            return Err(TooMuch::Share { msb: msb.clone(), out, servers, most });
        }
    }
    // Of two windows over a server the one that cannot be recalled counts.
    let stays: BTreeSet<i32> =
        out.iter().filter(|of| !of.recallable).flat_map(|of| &of.servers).copied().collect();
    for lens in [0, 1] {
        let touched: BTreeMap<&Name, &Name> = (ours.iter())
            .filter_map(|site| Some((site.held[lens].as_ref()?, &site.msb)))
            .filter(|((_, value), _)| *value > Rru::ZERO)
            .map(|((holder, _), msb)| (holder, msb))
            .collect();
        for (reservation, msb) in touched {
            let Some(promised) = view.reservations.get(reservation) else { continue };
            let taken = |servers: &BTreeSet<i32>| by_msb(view, servers, reservation, lens);
            let (gone, stays) = (taken(&all), taken(&stays));
            let none = BTreeMap::new();
            let without = figures(reservation, promised, lens, &none, &none);
            let with = figures(reservation, promised, lens, &gone, &stays);
            let broken = without.into_iter().zip(with).find(|(without, with)| {
                let lost = |left: fn(&Left) -> (Rru, Rru)| {
                    let ((had, needs), (has, _)) = (left(without), left(with));
                    had >= needs && has < needs
                };
                lost(|of| (of.left_at_once, of.needed_at_once)) || lost(|of| (of.left, of.needed))
            });
            if let Some((_, left)) = broken {
                return Err(TooMuch::Guarantee { left, msb: msb.clone() });
            }
        }
    }
    Ok(())
}

/// What servers are worth to a reservation, by MSB.
fn by_msb<'a>(
    view: &'a View,
    servers: &BTreeSet<i32>,
    reservation: &Name,
    lens: usize,
) -> BTreeMap<&'a Name, Rru> {
    let mut sums: BTreeMap<&Name, Rru> = BTreeMap::new();
    for site in servers.iter().filter_map(|id| view.sites.get(id)) {
        match &site.held[lens] {
            Some((holder, value)) if holder == reservation => {
                *sums.entry(&site.msb).or_default() += *value;
            }
            _ => {}
        }
    }
    sums
}

/// What a reservation is left with: without a loss, then for the loss of each MSB in which it has
/// something. Losing another one takes nothing more than losing none.
fn figures(
    reservation: &Name,
    promised: &Promised,
    lens: usize,
    gone: &BTreeMap<&Name, Rru>,
    stays: &BTreeMap<&Name, Rru>,
) -> Vec<Left> {
    let has = &promised.by_msb[lens];
    let all: Rru = has.values().copied().sum();
    let sum = |of: &BTreeMap<&Name, Rru>| of.values().copied().sum::<Rru>();
    let of = |map: &BTreeMap<&Name, Rru>, msb: &Name| map.get(msb).copied().unwrap_or_default();
    let needed = promised.capacity;
    let in_service = all - sum(gone);
    let left = |lost, needed_at_once, left_at_once, left| Left {
        reservation: reservation.clone(),
        lost,
        needed_at_once,
        left_at_once,
        needed,
        left,
    };
    let mut figures = vec![left(None, needed, in_service, in_service)];
    if promised.msb_buffer {
        let buffer = has.values().copied().max().unwrap_or_default();
        let at_once = needed_at_once(needed, buffer);
        figures.extend(has.iter().map(|(msb, here)| {
            let now = in_service - (*here - of(gone, msb));
            let later = all - sum(stays) - (*here - of(stays, msb));
            left(Some(msb.clone()), at_once, now, later)
        }));
    }
    figures
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
pub(crate) mod tests {
    use super::*;
    use chrono::TimeDelta;
    use proptest::prelude::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn out(from: i64, until: i64, servers: &[i32]) -> Out {
        let servers = servers.iter().copied().collect();
        Out { from: at(from), until: at(until), servers, recallable: false }
    }

    /// Two MSBs of 20 servers, in racks of five; half of each MSB is web's, at one RRU.
    fn view(capacity: usize) -> View {
        let site = |id: i32| Site {
            server: format!("s{id}").into(),
            rack: format!("rack{}", id / 5).into(),
            msb: format!("msb{}", id / 20).into(),
            held: [(), ()].map(|()| (id % 2 == 0).then(|| ("web".into(), Rru::units(1)))),
        };
        let half =
            || BTreeMap::from([("msb0".into(), Rru::units(10)), ("msb1".into(), Rru::units(10))]);
        View {
            sites: (0..40).map(|id| (id, site(id))).collect(),
            msbs: [("msb0".into(), 20), ("msb1".into(), 20)].into(),
            reservations: [(
                "web".into(),
                Promised {
                    capacity: Rru::units(capacity),
                    msb_buffer: false,
                    by_msb: [half(), half()],
                },
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
        let left = Left {
            reservation: "web".into(),
            lost: None,
            needed_at_once: Rru::units(18),
            left_at_once: Rru::units(17),
            needed: Rru::units(18),
            left: Rru::units(17),
        };
        let refused = Err(TooMuch::Guarantee { left, msb: "msb0".into() });
        assert_eq!(check(&view(18), &[], &three, SHARE_MICRO), refused);
        let elsewhere = out(30, 90, &[20]);
        assert_eq!(check(&view(18), &[&elsewhere], &out(0, 60, &[0, 2]), SHARE_MICRO), refused);
        assert_eq!(check(&view(18), &[&elsewhere], &out(0, 30, &[0, 2]), SHARE_MICRO), Ok(()));
        let idle = out(0, 60, &[1, 3]);
        assert_eq!(check(&view(18), &[&three], &idle, SHARE_MICRO), Ok(()), "not its doing");
        assert_eq!(check(&view(21), &[], &three, SHARE_MICRO), Ok(()), "short anyway");
        let mut failed = view(20);
        let site = failed.sites.get_mut(&0).expect("a site");
        site.held = [(), ()].map(|()| Some(("web".into(), Rru::ZERO)));
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
                let until = at(from + length);
                let ours = Out { from: at(from), until, servers, recallable: false };
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
    /// C = 56, 64 RRU in eight MSBs of four racks of two servers.
    pub(crate) fn even() -> View {
        let held = || [(), ()].map(|()| Some(("web".into(), Rru::units(1))));
        let msb = |id: i32| -> Name { format!("m{}", id / 8).into() };
        let eight = || (0..8).map(|number| (msb(number * 8), Rru::units(8))).collect();
        View {
            sites: (0..64)
                .map(|id| {
                    let rack = format!("m{}-r{}", id / 8, id % 8 / 2).into();
                    (id, Site { server: format!("s{id}").into(), rack, msb: msb(id), held: held() })
                })
                .collect(),
            msbs: (0..8).map(|number| (msb(number * 8), 8)).collect(),
            reservations: [(
                "web".into(),
                Promised { capacity: Rru::units(56), msb_buffer: true, by_msb: [eight(), eight()] },
            )]
            .into(),
        }
    }

    #[test]
    fn with_any_msb_lost_a_quarter_of_the_buffer_may_be_out_if_it_can_be_recalled() {
        let view = even();
        let rack = |first: i32, recallable| Out { recallable, ..out(0, 60, &[first, first + 1]) };
        let one = rack(0, true);
        assert_eq!(check(&view, &[], &one, SHARE_MICRO), Ok(()));
        let refused = |lost: &str, at_once, later, msb: &str| {
            let left = Left {
                reservation: "web".into(),
                lost: Some(lost.into()),
                needed_at_once: Rru::units(54),
                left_at_once: Rru::units(at_once),
                needed: Rru::units(56),
                left: Rru::units(later),
            };
            Err(TooMuch::Guarantee { left, msb: msb.into() })
        };
        assert_eq!(
            check(&view, &[], &rack(0, false), SHARE_MICRO),
            refused("m1", 54, 54, "m0"),
            "within 30 minutes two are missing"
        );
        assert_eq!(
            check(&view, &[&one], &rack(8, true), SHARE_MICRO),
            refused("m2", 52, 56, "m1"),
            "at once half of the buffer is missing"
        );
        let after = Out { from: at(60), until: at(90), ..rack(8, true) };
        assert_eq!(check(&view, &[&one], &after, SHARE_MICRO), Ok(()), "one after another");
        // Moves under way do not hide what is so now, nor what will be.
        let mut moving = even();
        for site in moving.sites.values_mut().filter(|site| &*site.msb == "m7") {
            site.held[1] = None;
        }
        let need = |view: &mut View, units| {
            let promised = view.reservations.get_mut("web").expect("web");
            promised.by_msb[1].remove("m7");
            promised.capacity = Rru::units(units);
        };
        need(&mut moving, 48);
        let slow = rack(0, false);
        assert!(check(&moving, &[], &slow, SHARE_MICRO).is_err(), "48 of 56 will be left, less 2");
        need(&mut moving, 46);
        assert_eq!(check(&moving, &[], &slow, SHARE_MICRO), Ok(()));
    }
}
