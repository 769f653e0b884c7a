//! Series from samples of which only changes are stored. Pure: rows in, series out.

use crate::views::time_span::TimeSpan;
use chrono::{DateTime, Utc};
use fleet::Rru;
use std::collections::BTreeMap;

/// What is counted apart. Without hardware type and datacenter: the promise of the reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UsageCell {
    /// The owner of the servers; empty: they are free.
    pub reservation: String,
    /// The owner of the reservation.
    pub owner: String,
    /// Their hardware type.
    pub hardware_type: String,
    /// Their datacenter.
    pub datacenter: String,
    /// What one of the servers is worth to the reservation.
    pub value: Rru,
}

/// What a cell has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageCount {
    /// Promised capacity, in the cell of the promise.
    pub promised: Rru,
    /// Servers in service.
    pub held: i32,
    /// Of these, servers with running containers.
    pub used: i32,
    /// Of these, servers lent to elastic reservations.
    pub lent: i32,
}

/// What series are told apart by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UsageKey {
    /// Reservation.
    Reservation,
    /// Owner of the reservation.
    Owner,
    /// Hardware type of the servers. Promises have none.
    HardwareType,
    /// Datacenter of the servers. Promises have none.
    Datacenter,
}

impl UsageKey {
    /// All of them.
    pub const ALL: [UsageKey; 4] =
        [UsageKey::Reservation, UsageKey::Owner, UsageKey::HardwareType, UsageKey::Datacenter];

    /// Its word in queries and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            UsageKey::Reservation => "reservation",
            UsageKey::Owner => "owner",
            UsageKey::HardwareType => "hardware_type",
            UsageKey::Datacenter => "datacenter",
        }
    }

    fn of(self, cell: &UsageCell) -> &str {
        match self {
            UsageKey::Reservation => &cell.reservation,
            UsageKey::Owner => &cell.owner,
            UsageKey::HardwareType => &cell.hardware_type,
            UsageKey::Datacenter => &cell.datacenter,
        }
    }
}

/// Which series are asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageAsked {
    /// What they are told apart by; empty: one series of everything.
    pub by: Vec<UsageKey>,
    /// The length of an interval in seconds, at least 1; the intervals begin at its multiples since 1970.
    pub step: i64,
    /// Only of this reservation.
    pub reservation: Option<String>,
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only of this hardware type.
    pub hardware_type: Option<String>,
    /// Only of this datacenter.
    pub datacenter: Option<String>,
}

/// The figures of an interval: of each the largest of its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsageFigures {
    /// Promised capacity; zero if told apart by hardware type or datacenter, which promises do not have.
    pub promised: Rru,
    /// Servers in service of reservations.
    pub held: i64,
    /// What they are worth to their reservations.
    pub held_rru: Rru,
    /// Of these, servers with running containers.
    pub used: i64,
    /// What they are worth.
    pub used_rru: Rru,
    /// Of these, servers lent to elastic reservations.
    pub lent: i64,
    /// Servers in service of no reservation.
    pub free: i64,
    /// Servers in service, held or free.
    pub in_service: i64,
}

impl UsageFigures {
    fn of(cell: &UsageCell, count: UsageCount) -> UsageFigures {
        let worth = |servers: i32| Rru(cell.value.0.saturating_mul(servers.into()));
        if cell.reservation.is_empty() {
            let free = count.held.into();
            return UsageFigures { free, in_service: free, ..UsageFigures::default() };
        }
        UsageFigures {
            promised: count.promised,
            held: count.held.into(),
            held_rru: worth(count.held),
            used: count.used.into(),
            used_rru: worth(count.used),
            lent: count.lent.into(),
            free: 0,
            in_service: count.held.into(),
        }
    }

    fn with(self, other: UsageFigures, by: impl Fn(i64, i64) -> i64) -> UsageFigures {
        UsageFigures {
            promised: Rru(by(self.promised.0, other.promised.0)),
            held: by(self.held, other.held),
            held_rru: Rru(by(self.held_rru.0, other.held_rru.0)),
            used: by(self.used, other.used),
            used_rru: Rru(by(self.used_rru.0, other.used_rru.0)),
            lent: by(self.lent, other.lent),
            free: by(self.free, other.free),
            in_service: by(self.in_service, other.in_service),
        }
    }
}

/// A series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageSeries {
    /// What it is of, in the order of [`UsageAsked::by`].
    pub names: Vec<String>,
    /// The beginning of its first interval.
    pub start: DateTime<Utc>,
    /// One for each interval; `None`: no sample was taken in it.
    pub figures: Vec<Option<UsageFigures>>,
}

/// A row of what has changed.
#[derive(Clone, Debug)]
pub(super) struct UsageChange {
    pub(super) cell_id: i32,
    pub(super) at: DateTime<Utc>,
    pub(super) cell: UsageCell,
    pub(super) count: UsageCount,
}

/// Adds up cells by key at each time, and takes the peak of each interval. Times and changes are in order of time. Series are
/// in order of name, and all have the same intervals; a time without a change is as the one before it.
pub(super) fn series(
    times: &[DateTime<Utc>],
    changes: &[UsageChange],
    asked: &UsageAsked,
) -> Vec<UsageSeries> {
    let (Some(first), Some(last)) = (times.first(), times.last()) else { return Vec::new() };
    let step = asked.step.max(1);
    let interval = |at: &DateTime<Utc>| at.timestamp().div_euclid(step);
    let (begin, end) = (interval(first), interval(last));
    let Some(start) = DateTime::from_timestamp(begin * step, 0) else { return Vec::new() };
    let length = usize::try_from(end - begin + 1).unwrap_or(0);

    let mut now: BTreeMap<Vec<&str>, (UsageFigures, Vec<Option<UsageFigures>>)> = BTreeMap::new();
    let mut cells: BTreeMap<i32, UsageFigures> = BTreeMap::new();
    let mut changes = changes.iter().filter(|change| is_part(&change.cell, asked)).peekable();
    for at in times {
        while let Some(change) = changes.next_if(|change| change.at <= *at) {
            let key: Vec<&str> = asked.by.iter().map(|key| key.of(&change.cell)).collect();
            let figures = UsageFigures::of(&change.cell, change.count);
            let before = cells.insert(change.cell_id, figures).unwrap_or_default();
            let unknown = || (UsageFigures::default(), vec![None; length]);
            let (sum, _) = now.entry(key).or_insert_with(unknown);
            *sum = sum.with(figures, |sum, of| sum + of).with(before, |sum, of| sum - of);
        }
        let position = usize::try_from(interval(at) - begin).unwrap_or(0);
        for (sum, peaks) in now.values_mut() {
            if let Some(peak) = peaks.get_mut(position) {
                *peak = Some(peak.map_or(*sum, |peak| peak.with(*sum, i64::max)));
            }
        }
    }
    let sampled: Vec<bool> = {
        let mut sampled = vec![false; length];
        times.iter().filter_map(|at| usize::try_from(interval(at) - begin).ok()).for_each(|at| {
            if let Some(known) = sampled.get_mut(at) {
                *known = true;
            }
        });
        sampled
    };
    let named = now.into_iter().map(|(key, (_, mut figures))| {
        // Before its first change a series had nothing, which is known where a sample was taken.
        for (of, known) in figures.iter_mut().zip(&sampled) {
            *of = of.or(known.then(UsageFigures::default));
        }
        let names = key.into_iter().map(str::to_owned).collect();
        UsageSeries { names, start, figures }
    });
    named.collect()
}

/// Samples outside a database, of which only changes are stored, too.
#[derive(Clone, Debug, Default)]
pub struct UsageSamples {
    times: Vec<DateTime<Utc>>,
    changes: Vec<UsageChange>,
    last: BTreeMap<UsageCell, (i32, UsageCount)>,
}

impl UsageSamples {
    /// Adds a sample after all others. Its cells must be distinct.
    pub fn add(&mut self, at: DateTime<Utc>, counted: &[(UsageCell, UsageCount)]) {
        self.times.push(at);
        let mut now: BTreeMap<&UsageCell, UsageCount> =
            counted.iter().map(|(cell, count)| (cell, *count)).collect();
        for (cell, (cell_id, before)) in &mut self.last {
            // A cell that is not counted now has nothing.
            let count = now.remove(cell).unwrap_or_default();
            if *before != count {
                *before = count;
                let (cell, cell_id) = (cell.clone(), *cell_id);
                self.changes.push(UsageChange { cell_id, at, cell, count });
            }
        }
        for (cell, count) in now {
            let cell_id = i32::try_from(self.last.len()).unwrap_or(i32::MAX);
            self.last.insert(cell.clone(), (cell_id, count));
            self.changes.push(UsageChange { cell_id, at, cell: cell.clone(), count });
        }
    }

    /// Series within a span of time, as [`Broker::usage_series`](crate::Broker::usage_series) has them.
    pub fn series(&self, span: TimeSpan, asked: &UsageAsked) -> Vec<UsageSeries> {
        let within = |at: &DateTime<Utc>| *at > span.from && *at <= span.until;
        let times: Vec<DateTime<Utc>> = self.times.iter().copied().filter(within).collect();
        series(&times, &self.changes, asked)
    }
}

/// Whether a cell belongs to the series: free servers have no reservation, promises have no type.
fn is_part(cell: &UsageCell, asked: &UsageAsked) -> bool {
    let only = [
        (UsageKey::Reservation, &asked.reservation),
        (UsageKey::Owner, &asked.owner),
        (UsageKey::HardwareType, &asked.hardware_type),
        (UsageKey::Datacenter, &asked.datacenter),
    ];
    asked.by.iter().all(|key| !key.of(cell).is_empty())
        && only.iter().all(|(key, name)| name.as_ref().is_none_or(|name| name == key.of(cell)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    fn at(minutes: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::days(20_000) + TimeDelta::minutes(minutes)
    }

    fn change(cell_id: i32, minutes: i64, cell: [&str; 4], [held, used]: [i32; 2]) -> UsageChange {
        let [reservation, owner, hardware_type, datacenter] = cell.map(str::to_owned);
        let (value, promised) = match hardware_type.is_empty() {
            true => (Rru(0), Rru(i64::from(held) * 1_000_000)),
            false => (Rru(1_500_000), Rru(0)),
        };
        let cell = UsageCell { reservation, owner, hardware_type, datacenter, value };
        let held = if cell.hardware_type.is_empty() { 0 } else { held };
        UsageChange {
            cell_id,
            at: at(minutes),
            cell,
            count: UsageCount { promised, held, used, lent: 0 },
        }
    }

    /// Web has 4 servers of C1 in each of two datacenters, of which all are used in turn; 9 are free.
    fn region() -> Vec<UsageChange> {
        vec![
            change(1, -60, ["web", "shop", "", ""], [10, 0]),
            change(2, -60, ["web", "shop", "C1", "dc1"], [4, 4]),
            change(3, -60, ["web", "shop", "C1", "dc2"], [4, 0]),
            change(4, 0, ["", "", "C1", "dc1"], [9, 0]),
            change(2, 5, ["web", "shop", "C1", "dc1"], [4, 0]),
            change(3, 5, ["web", "shop", "C1", "dc2"], [4, 4]),
            change(5, 15, ["mail", "post", "C2", "dc1"], [3, 1]),
        ]
    }

    fn used(found: &[UsageSeries]) -> Vec<(String, Vec<Option<i64>>)> {
        let used = |of: &UsageSeries| of.figures.iter().map(|of| of.map(|of| of.used)).collect();
        found.iter().map(|of| (of.names.join("/"), used(of))).collect()
    }

    #[test]
    fn a_peak_of_a_sum_is_no_sum_of_peaks() {
        let times = [at(0), at(5), at(15)];
        let asked =
            |by: &[UsageKey], step| UsageAsked { by: by.to_vec(), step, ..UsageAsked::default() };
        let by_place = series(&times, &region(), &asked(&[UsageKey::Datacenter], 3_600));
        assert_eq!(used(&by_place), [("dc1".into(), vec![Some(4)]), ("dc2".into(), vec![Some(4)])]);
        let by_name = series(&times, &region(), &asked(&[UsageKey::Reservation], 300));
        // No sample was taken at 10.
        let mail = vec![Some(0), Some(0), None, Some(1)];
        let web = vec![Some(4), Some(4), None, Some(4)];
        assert_eq!(used(&by_name), [("mail".into(), mail), ("web".into(), web)]);
        let first = by_name[1].figures[0].expect("sampled");
        assert_eq!((first.promised, first.held_rru), (Rru(10_000_000), Rru(12_000_000)));
        assert_eq!(by_name[1].start, at(0));
        let all = series(&times, &region(), &asked(&[], 3_600));
        let figures = all[0].figures[0].map(|of| (of.free, of.used, of.held, of.in_service));
        assert_eq!(figures, Some((9, 5, 11, 20)));
    }

    #[test]
    fn whole_samples_give_the_series_of_their_changes() {
        let times = [at(0), at(5), at(15), at(25)];
        let changes = region();
        let counted = |time: &DateTime<Utc>| {
            let mut cells: BTreeMap<i32, (UsageCell, UsageCount)> = BTreeMap::new();
            for change in changes.iter().filter(|change| change.at <= *time) {
                cells.insert(change.cell_id, (change.cell.clone(), change.count));
            }
            // The last sample lacks a reservation that is gone.
            let gone = *time == at(25);
            cells.into_values().filter(|(cell, _)| !gone || cell.reservation != "mail").collect()
        };
        let mut samples = UsageSamples::default();
        let counted: Vec<Vec<(UsageCell, UsageCount)>> = times.iter().map(counted).collect();
        times.iter().zip(&counted).for_each(|(time, counted)| samples.add(*time, counted));
        let mut changes = region();
        changes.push(change(5, 25, ["mail", "post", "C2", "dc1"], [0, 0]));
        let by_type = vec![UsageKey::HardwareType, UsageKey::Datacenter];
        for by in [vec![], vec![UsageKey::Reservation], by_type] {
            for hardware_type in [None, Some("C1".to_owned())] {
                let asked = UsageAsked {
                    by: by.clone(),
                    step: 300,
                    hardware_type,
                    ..UsageAsked::default()
                };
                let only = |change: &UsageChange| {
                    asked
                        .hardware_type
                        .as_ref()
                        .is_none_or(|name| *name == change.cell.hardware_type)
                };
                let changes: Vec<UsageChange> =
                    changes.iter().filter(|change| only(change)).cloned().collect();
                for (from, part) in [(-1, &times[..]), (5, &times[2..])] {
                    let found = samples.series(TimeSpan { from: at(from), until: at(25) }, &asked);
                    assert_eq!(found, series(part, &changes, &asked));
                    assert!(!found.is_empty());
                }
            }
        }
    }

    #[test]
    fn free_servers_have_no_owner_and_promises_no_type() {
        let by = [UsageKey::HardwareType, UsageKey::Datacenter];
        let asked = UsageAsked { by: by.to_vec(), step: 300, ..UsageAsked::default() };
        let found = series(&[at(20)], &region(), &asked);
        let names: Vec<String> = found.iter().map(|of| of.names.join("/")).collect();
        assert_eq!(names, ["C1/dc1", "C1/dc2", "C2/dc1"]);
        assert_eq!(
            found[0].figures[0].map(|of| (of.free, of.held, of.promised)),
            Some((9, 4, Rru(0)))
        );
        assert!(series(&[], &region(), &asked).is_empty());
    }
}
