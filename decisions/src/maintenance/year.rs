//! Simulates a year of rolling maintenance: a quarter of an MSB at a time, every MSB once a month, and one MSB
//! lost at a random hour (RAS section 3.3.1). The decisions accept and recall windows; the remaining capacity
//! is counted here, server by server.

use crate::maintenance::capacity::{Out, Promised, SHARE_MICRO, Site, View, check};
use crate::maintenance::recall_order::{Work, recall_order};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{MsbName, ReservationName, Rru};
use std::collections::{BTreeMap, BTreeSet};

const MSBS: i32 = 8;
const RACKS: i32 = 4;
const HOURS: i64 = 365 * 24;
const MONTH: i64 = HOURS / 12;
/// Hours of work on a rack.
const WORK: i64 = 20;
/// Simulated years, each with its own loss.
const YEARS: u64 = 400;

/// Owner and value of each of the four servers of a rack.
const RACK: [(&str, usize); 4] = [("web", 1), ("web", 1), ("ads", 2), ("db", 1)];
/// C: seven eighths of 64, 64 and 32, which the loss of one of eight MSBs leaves.
const CAPACITY: [(&str, usize); 3] = [("web", 56), ("ads", 56), ("db", 28)];

/// Random numbers from a seed (SplitMix64).
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: i64) -> i64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        i64::try_from((z ^ (z >> 31)) % bound.unsigned_abs()).expect("below a bound of 63 bits")
    }
}

fn at(minute: i64) -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
}

fn msb(of: i32) -> MsbName {
    format!("m{of}").into()
}

fn view() -> View {
    let mut view = View::default();
    for (name, capacity) in CAPACITY {
        let promised =
            Promised { capacity: Rru::units(capacity), msb_buffer: true, ..Promised::default() };
        view.reservations.insert(name.into(), promised);
    }
    for rack in 0..MSBS * RACKS {
        for (place, (owner, value)) in (0..).zip(RACK) {
            let msb = msb(rack / RACKS);
            let held = Some((ReservationName::from(owner), Rru::units(value)));
            *view.msbs.entry(msb.clone()).or_default() += 1;
            let promised = view.reservations.get_mut(owner).expect("promised");
            for lens in &mut promised.by_msb {
                *lens.entry(msb.clone()).or_default() += Rru::units(value);
            }
            let (server, rack_name) =
                (format!("s{rack}-{place}").into(), format!("r{rack}").into());
            let site = Site {
                server,
                rack: rack_name,
                msb,
                domains: Vec::new(),
                held: [held.clone(), held],
            };
            view.sites.insert(rack * 4 + place, site);
        }
    }
    view
}

/// A window of a rack.
#[derive(Clone, Copy, Debug)]
struct Window {
    rack: i32,
    from: i64,
    recall_minutes: Option<i64>,
}

impl Window {
    fn until(self) -> i64 {
        self.from + WORK * 60
    }

    fn out(self) -> Out {
        Out {
            from: at(self.from),
            until: at(self.until()),
            servers: (self.rack * 4..self.rack * 4 + 4).collect(),
            recallable: self.recall_minutes.is_some_and(|minutes| minutes <= 30),
        }
    }
}

/// Whether a window is accepted beside others.
fn admits(view: &View, others: &[Window], window: Window) -> bool {
    let near = others.iter().filter(|of| of.from < window.until() && window.from < of.until());
    let outs: Vec<Out> = near.map(|of| of.out()).collect();
    check(view, &outs.iter().collect::<Vec<_>>(), &window.out(), SHARE_MICRO).is_ok()
}

/// Every rack once a month, each as early as possible, and random requests.
fn planned(view: &View, chance: &mut Chance) -> Vec<Window> {
    let mut windows: Vec<Window> = Vec::new();
    for month in 0..12 {
        let first = month * MONTH * 60;
        let mut ours: Vec<Window> = Vec::new();
        for rack in 0..MSBS * RACKS {
            let recall_minutes = Some(5 + chance.below(26));
            let mut starts: Vec<i64> = ours.iter().map(|of| of.until()).collect();
            starts.push(first);
            starts.sort_unstable();
            let window = starts.into_iter().find_map(|from| {
                let window = Window { rack, from, recall_minutes };
                admits(view, &ours, window).then_some(window)
            });
            ours.push(window.expect("something ends"));
        }
        assert!(ours.iter().all(|of| of.until() <= first + MONTH * 60), "all of it in a month");
        windows.extend(ours);
    }
    for _ in 0..500 {
        let rack = i32::try_from(chance.below(i64::from(MSBS * RACKS))).expect("small");
        let recall_minutes =
            [None, Some(20), Some(45)][usize::try_from(chance.below(3)).expect("small")];
        let window = Window { rack, from: chance.below(HOURS) * 60, recall_minutes };
        if admits(view, &windows, window) {
            windows.push(window);
        }
    }
    windows
}

/// RRU of each reservation, by counting servers.
fn there(lost: Option<i32>, out: &BTreeSet<i32>) -> BTreeMap<&'static str, usize> {
    let mut there = BTreeMap::new();
    for rack in 0..MSBS * RACKS {
        if Some(rack / RACKS) != lost && !out.contains(&rack) {
            for (owner, value) in RACK {
                *there.entry(owner).or_default() += value;
            }
        }
    }
    there
}

/// The number of reservations below C minus a number of quarters of the embedded buffer, which is an eighth.
fn below(lost: Option<i32>, out: &BTreeSet<i32>, quarters: usize) -> u64 {
    let there = there(lost, out);
    let short = CAPACITY.iter().filter(|(name, capacity)| {
        let at_least = capacity - quarters * (capacity / 7) / 4;
        there.get(name).copied().unwrap_or(0) < at_least
    });
    short.count() as u64
}

/// The number of reservations below C in each hour without a lost MSB.
fn calm(windows: &[Window]) -> Vec<u64> {
    let racks = |minute: i64| -> BTreeSet<i32> {
        let active = windows.iter().filter(|w| w.from <= minute && minute < w.until());
        active.map(|w| w.rack).collect()
    };
    (0..HOURS).map(|hour| below(None, &racks(hour * 60), 0)).collect()
}

/// Simulates a year with a loss of 24 hours: gives reservation-hours below C, and the number of reservations
/// below C minus a quarter of the buffer at the time of the loss. `recalls`: whether work is recalled.
fn year(
    view: &View,
    (windows, calm): (&[Window], &[u64]),
    chance: &mut Chance,
    recalls: bool,
) -> (u64, u64) {
    let lost = i32::try_from(chance.below(i64::from(MSBS))).expect("small");
    let loss = chance.below(HOURS - 24) * 60 + chance.below(60);
    let active: Vec<&Window> =
        windows.iter().filter(|w| w.from <= loss && loss < w.until()).collect();
    let work =
        active.iter().enumerate().filter(|(_, w)| w.rack / RACKS != lost).filter_map(|(n, w)| {
            let recall_minutes = u32::try_from(w.recall_minutes?).ok()?;
            Some(Work { event: format!("{n}").into(), servers: w.out().servers, recall_minutes })
        });
    let (lost_msb, priority) = ([msb(lost)].into(), BTreeMap::new());
    let order = recall_order(view, &lost_msb, &priority, &BTreeSet::new(), work.collect());
    let back_at: BTreeMap<usize, i64> = (order.iter())
        .map(|of| {
            let at = loss + i64::from(of.recall_minutes);
            (of.event.parse().expect("a number"), at)
        })
        .collect();
    // Active work that is not back. No window begins while the MSB is lost.
    let out = |minute: i64| -> BTreeSet<i32> {
        let still = active.iter().enumerate().filter(|(n, w)| {
            let back = back_at.get(n).filter(|_| recalls);
            minute < w.until() && back.is_none_or(|at| minute < *at)
        });
        still.map(|(_, w)| w.rack).collect()
    };
    let mut hours = 0;
    for (minute, calm) in (0..).step_by(60).zip(calm) {
        let during = loss <= minute && minute < loss + 24 * 60;
        // The half hour until the last quarter is back is not counted.
        hours += match (during, minute < loss + 30) {
            (true, true) => 0,
            (true, false) => below(Some(lost), &out(minute), 0),
            (false, _) => *calm,
        };
    }
    hours += below(Some(lost), &out(loss + 30), 0);
    (hours, below(Some(lost), &out(loss), 1))
}

#[test]
fn loss_during_rolling_maintenance_leaves_every_capacity() {
    let view = view();
    let mut chance = Chance(22);
    let windows = planned(&view, &mut chance);
    assert!(windows.len() >= 12 * 32, "every MSB once a month");
    let quiet = calm(&windows);
    let of = (&*windows, &*quiet);
    let (mut hours, mut at_once) = (0, 0);
    for _ in 0..YEARS {
        let (short, now) = year(&view, of, &mut chance, true);
        (hours, at_once) = (hours + short, at_once + now);
    }
    let all = YEARS * CAPACITY.len() as u64 * HOURS.unsigned_abs();
    assert_eq!((hours, at_once), (0, 0), "of {all} reservation-hours");
    // The count detects what the decisions prevent: work without recalls, and four racks at a time.
    let mut chance = Chance(22);
    let unrecalled: u64 = (0..YEARS).map(|_| year(&view, of, &mut chance, false).0).sum();
    assert!(unrecalled > 0, "work that is not recalled is missed");
    let four = windows
        .iter()
        .map(|of| Window { from: of.from / (4 * WORK * 60) * (4 * WORK * 60), ..*of });
    let four: Vec<Window> = four.collect();
    let quiet = calm(&four);
    let of = (&*four, &*quiet);
    let at_once: u64 = (0..YEARS).map(|_| year(&view, of, &mut chance, true).1).sum();
    assert!(at_once > 0, "more than a quarter of a buffer is missed at once");
}
