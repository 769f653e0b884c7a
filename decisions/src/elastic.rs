//! Loans of idle buffers to elastic reservations, and their recall (RAS section 3.4).
//!
//! Buffers are idle until a failure, so they are lent. A guaranteed reservation lends at most its embedded
//! buffer: its largest share in one MSB (eq. 4). A shared buffer lends all but a reserved part, so that most
//! replacements find a spare without containers. A reservation that survives the loss of fault domains other than MSBs
//! lends nothing, because only the loss of an MSB recalls loans. The reservation that borrows least relative to its share is
//! served first. While an MSB is lost, the buffers elsewhere are needed: three quarters of the loans return
//! at once, the rest before half an hour has passed (section 3.3.1), and no server is lent.

mod view;

use fleet::{HardwareTypeName, MsbName, ReservationName, Rru};
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
pub use view::{Loan, LoanGroup, LoanView};

/// Servers to lend and servers to recall.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoanPlan {
    /// Servers to lend.
    pub lend: Vec<Loan>,
    /// Servers to recall.
    pub recall: Vec<Loan>,
}

/// One of this many loans of guaranteed reservations may stay for a while after the loss of an MSB.
const STAYS: u64 = 4;

/// Time after which the rest is recalled: before half an hour, with time for containers to end.
const REST_AFTER: Duration = Duration::from_secs(20 * 60);

/// One round recalls at most one of this many servers of a borrower for other borrowers: a new borrower must
/// not end all the work of an old one at once.
const REBALANCED: u64 = 10;

/// Settings of loans.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Elastic {
    /// The part of each shared buffer that is not lent, of all its servers; 0 to 1.
    pub shared_kept: f64,
    /// Shares of borrowers, by name; the default is 1.
    pub shares: BTreeMap<ReservationName, f64>,
}

impl Default for Elastic {
    /// A quarter covers the failures of several hours: at any time about 1 % of a fleet is failed (RAS
    /// section 3.3), the buffer is 2 %, and a repair takes half an hour or more.
    fn default() -> Elastic {
        Elastic { shared_kept: 0.25, shares: BTreeMap::new() }
    }
}

impl Elastic {
    /// The share of a borrower; a share that is not positive counts as the smallest positive number.
    fn share(&self, borrower: &ReservationName) -> f64 {
        let share = self.shares.get(borrower).copied().unwrap_or(1.0);
        if share > 0.0 { share } else { f64::MIN_POSITIVE }
    }
}

/// Decides which servers are lent and which are recalled. A second decision after the first was executed
/// changes nothing, except that moving loans between borrowers takes several rounds.
pub fn plan(view: &LoanView, settings: &Elastic) -> LoanPlan {
    if let Some((since, lent)) = view.outage {
        let stay = if since < REST_AFTER { lent / STAYS } else { 0 };
        return LoanPlan { lend: Vec::new(), recall: returning(view, stay) };
    }
    let budgets = budgets(&view.groups, settings);
    let mut recall = beyond(view, &budgets);
    let mut table = Table::new(view, settings, &budgets);
    let lend = table.lend();
    recall.extend(table.rebalance(view));
    LoanPlan { lend, recall }
}

fn worth(group: &LoanGroup, servers: u64) -> Rru {
    group.value.times(usize::try_from(servers).unwrap_or(usize::MAX))
}

/// The RRU that each owner may lend in total, by its own values.
fn budgets<'a>(groups: &'a [LoanGroup], settings: &Elastic) -> BTreeMap<&'a ReservationName, Rru> {
    let mut by_msb: BTreeMap<(&ReservationName, &MsbName), Rru> = BTreeMap::new();
    let mut budgets: BTreeMap<&ReservationName, Rru> = BTreeMap::new();
    for group in groups {
        let budget = budgets.entry(&group.owner).or_default();
        if !group.lends {
            continue;
        }
        if group.shared {
            *budget += worth(group, group.total);
        } else {
            let here = by_msb.entry((&group.owner, &group.msb)).or_default();
            *here += worth(group, group.total);
            *budget = (*budget).max(*here);
        }
    }
    let lendable = 1.0 - settings.shared_kept.clamp(0.0, 1.0);
    for owner in groups
        .iter()
        .filter(|group| group.shared)
        .map(|group| &group.owner)
        .collect::<BTreeSet<_>>()
    {
        let budget = budgets.entry(owner).or_default();
        *budget = Rru::from_f64(budget.to_f64() * lendable).unwrap_or_default();
    }
    budgets
}

/// Groups by owner, MSB and type.
type Index<'a> = BTreeMap<(&'a ReservationName, &'a MsbName, &'a HardwareTypeName), &'a LoanGroup>;

fn index(view: &LoanView) -> Index<'_> {
    let groups = view.groups.iter();
    groups.map(|group| ((&group.owner, &group.msb, &group.hardware_type), group)).collect()
}

/// The group of a loan; `None`: all servers of the group move to other reservations.
fn group_of<'a>(index: &Index<'a>, loan: &Loan) -> Option<&'a LoanGroup> {
    index.get(&(&loan.owner, &loan.msb, &loan.hardware_type)).copied()
}

/// Loans to recall while an MSB is lost, so that at most `stay` servers of guaranteed reservations stay
/// lent. Owners that lost servers come first, then owners of higher priority.
fn returning(view: &LoanView, stay: u64) -> Vec<Loan> {
    let hit: BTreeSet<&ReservationName> =
        view.groups.iter().filter(|group| group.lost).map(|group| &group.owner).collect();
    let index = index(view);
    let mut loans: Vec<(&Loan, i32)> = (view.loans.iter())
        .filter_map(|loan| {
            let group = group_of(&index, loan).filter(|group| !group.shared)?;
            Some((loan, group.priority))
        })
        .collect();
    loans.sort_by_key(|(loan, priority)| (!hit.contains(&loan.owner), *priority, *loan));
    let lent: u64 = loans.iter().map(|(loan, _)| loan.count).sum();
    let mut left = lent.saturating_sub(stay);
    let mut back = Vec::new();
    for (loan, _) in loans {
        let count = loan.count.min(left);
        if count > 0 {
            left -= count;
            back.push(Loan { count, ..loan.clone() });
        }
    }
    back
}

/// Loans beyond the budget of an owner, whose buffer has shrunk.
fn beyond(view: &LoanView, budgets: &BTreeMap<&ReservationName, Rru>) -> Vec<Loan> {
    let index = index(view);
    let mut lent: BTreeMap<&ReservationName, Rru> = BTreeMap::new();
    let mut back = Vec::new();
    for loan in &view.loans {
        let value = group_of(&index, loan).map_or(Rru::ZERO, |group| group.value);
        let budget = budgets.get(&loan.owner).copied().unwrap_or_default();
        let lent = lent.entry(&loan.owner).or_default();
        let stay = fits(budget - *lent, value).min(loan.count);
        *lent += value.times(usize::try_from(stay).unwrap_or(usize::MAX));
        if stay < loan.count {
            back.push(Loan { count: loan.count - stay, ..loan.clone() });
        }
    }
    back
}

/// The number of servers of a value that fit into an amount.
fn fits(amount: Rru, value: Rru) -> u64 {
    if value <= Rru::ZERO || amount < value {
        return 0;
    }
    u64::try_from(amount.0 / value.0).unwrap_or(0)
}

/// The state of the distribution.
struct Table<'a> {
    groups: Vec<Deal<'a>>,
    /// The remaining budget of each owner.
    left: BTreeMap<&'a ReservationName, Rru>,
    borrowers: Vec<Borrower<'a>>,
}

struct Deal<'a> {
    group: &'a LoanGroup,
    idle: u64,
}

struct Borrower<'a> {
    name: &'a ReservationName,
    share: f64,
    values: &'a BTreeMap<HardwareTypeName, Rru>,
    borrowed: Rru,
}

impl Borrower<'_> {
    fn value(&self, hardware_type: &HardwareTypeName) -> Rru {
        self.values.get(hardware_type).copied().unwrap_or_default()
    }

    /// Borrowed RRU relative to the share, after borrowing more.
    fn served(&self, more: Rru) -> f64 {
        (self.borrowed + more).to_f64() / self.share
    }
}

impl<'a> Table<'a> {
    fn new(
        view: &'a LoanView,
        settings: &Elastic,
        budgets: &BTreeMap<&'a ReservationName, Rru>,
    ) -> Table<'a> {
        let mut left = budgets.clone();
        for group in &view.groups {
            // Servers on their way back are still lent.
            *left.entry(&group.owner).or_default() -= worth(group, group.lent);
        }
        let mut groups: Vec<Deal> =
            view.groups.iter().map(|group| Deal { group, idle: group.idle }).collect();
        // Shared buffers come last: replacements prefer spares that are not lent.
        groups.sort_by_key(|deal| deal.group.shared);
        let borrowers = view.borrowers.iter().map(|(name, values)| {
            let of = |loan: &&Loan| loan.borrower == *name;
            let amount = |loan: &Loan| {
                let value = values.get(&loan.hardware_type).copied().unwrap_or_default();
                value.times(usize::try_from(loan.count).unwrap_or(usize::MAX))
            };
            let borrowed = view.loans.iter().filter(of).map(amount).sum();
            Borrower {
                name,
                share: view.shares.get(name).copied().unwrap_or_else(|| settings.share(name)),
                values,
                borrowed,
            }
        });
        let borrowers = borrowers.collect();
        Table { groups, left, borrowers }
    }

    /// The number of servers of a group that a borrower could get.
    fn open_to(&self, borrower: &Borrower, deal: &Deal) -> u64 {
        if borrower.value(&deal.group.hardware_type) <= Rru::ZERO {
            return 0;
        }
        let left = self.left.get(&deal.group.owner).copied().unwrap_or_default();
        deal.idle.min(fits(left, deal.group.value))
    }

    /// Lends idle servers, a few at a time, to the borrower with the least RRU relative to its share.
    fn lend(&mut self) -> Vec<Loan> {
        let idle: u64 = self.groups.iter().map(|deal| deal.idle).sum();
        // Small portions are fair, large ones bound the number of rounds.
        let helping = (idle / 1_000).max(1);
        let mut lent: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut hungry: Vec<usize> = (0..self.borrowers.len()).collect();
        // The position at which each borrower continues: a group that was closed to it stays closed.
        let mut from = vec![0; self.borrowers.len()];
        while let Some(&b) = hungry.iter().min_by(|a, b| self.by_service(**a, **b)) {
            let found = (from[b]..self.groups.len()).find_map(|g| {
                let open = self.open_to(&self.borrowers[b], &self.groups[g]);
                (open > 0).then_some((g, open))
            });
            let Some((g, open)) = found else {
                hungry.retain(|hungry| *hungry != b);
                continue;
            };
            from[b] = g;
            let count = open.min(helping);
            let group = self.groups[g].group;
            let more = self.borrowers[b].value(&group.hardware_type);
            self.groups[g].idle -= count;
            *self.left.entry(&group.owner).or_default() -= worth(group, count);
            self.borrowers[b].borrowed += more.times(usize::try_from(count).unwrap_or(usize::MAX));
            *lent.entry((g, b)).or_default() += count;
        }
        let loan = |((g, b), count): ((usize, usize), u64)| {
            let group = self.groups[g].group;
            Loan {
                borrower: self.borrowers[b].name.clone(),
                owner: group.owner.clone(),
                msb: group.msb.clone(),
                hardware_type: group.hardware_type.clone(),
                count,
            }
        };
        lent.into_iter().map(loan).collect()
    }

    fn by_service(&self, a: usize, b: usize) -> Ordering {
        let served = |b: usize| self.borrowers[b].served(Rru::ZERO);
        served(a).total_cmp(&served(b)).then(a.cmp(&b))
    }

    /// A loan that the borrower with the most RRU relative to its share returns for the one with the least,
    /// if no idle server is left.
    fn rebalance(&self, view: &LoanView) -> Option<Loan> {
        let count = 0..self.borrowers.len();
        let poor = &self.borrowers[count.clone().min_by(|a, b| self.by_service(*a, *b))?];
        let rich = &self.borrowers[count.max_by(|a, b| self.by_service(*a, *b))?];
        let better = |loan: &&Loan| {
            let (gets, gives) = (poor.value(&loan.hardware_type), rich.value(&loan.hardware_type));
            let after = (rich.borrowed - gives).to_f64() / rich.share;
            loan.borrower == *rich.name && gets > Rru::ZERO && after >= poor.served(gets)
        };
        let loan = view.loans.iter().filter(better).max_by_key(|loan| loan.count)?;
        let (gets, gives) = (poor.value(&loan.hardware_type), rich.value(&loan.hardware_type));
        // Equal after n servers: rich - n gives / share = poor + n gets / share.
        let apart = rich.served(Rru::ZERO) - poor.served(Rru::ZERO);
        let each = gives.to_f64() / rich.share + gets.to_f64() / poor.share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "both are positive, and the loan bounds a saturated cast"
        )]
        let equal = (apart / each).floor() as u64;
        let count = equal.min(loan.count.div_ceil(REBALANCED)).max(1);
        Some(Loan { count, ..loan.clone() })
    }
}

#[cfg(test)]
mod tests;
