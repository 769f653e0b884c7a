//! What is lent to elastic reservations, and what is taken back (RAS section 3.4).
//!
//! Buffers lie idle until something fails, so they are lent. Of a guaranteed reservation that is as much
//! as its embedded buffer, the largest share it has in one MSB (eq. 4); of a shared buffer all but a part
//! that is kept, so that most replacements find a spare on which nothing runs. Who borrows least for its
//! share is served first. While an MSB is lost the buffers of the others are needed: three quarters of
//! what they had lent comes back at once, the rest before half an hour has passed (section 3.3.1), and
//! nothing more is lent.

mod view;

use fleet::{Name, Rru};
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
pub use view::{Loan, LoanGroup, LoanView};

/// What to lend and what to take back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoanPlan {
    /// Lend these.
    pub lend: Vec<Loan>,
    /// Take these back.
    pub recall: Vec<Loan>,
}

/// What of a lost MSB's neighbours' loans may stay for a while, as one over this.
const STAYS: u64 = 4;

/// After so long the rest is asked back: within half an hour, with time for containers to end.
const REST_AFTER: Duration = Duration::from_secs(20 * 60);

/// One over this is the share of a borrower's servers that one round takes back for other borrowers:
/// a new borrower must not end all the work of an old one at once.
const REBALANCED: u64 = 10;

/// How idle buffers are lent.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Elastic {
    /// The share of each shared buffer that is not lent.
    pub shared_kept: f64,
    /// The shares by which borrowers are served, by name; 1 for those that are not here.
    pub shares: BTreeMap<Name, f64>,
}

impl Default for Elastic {
    /// A quarter covers the failures of several hours: about a hundredth of a fleet fails at any time
    /// (RAS section 3.3), the buffer is two, and a repair takes half an hour or more.
    fn default() -> Elastic {
        Elastic { shared_kept: 0.25, shares: BTreeMap::new() }
    }
}

impl Elastic {
    /// The share of a borrower; what is no share counts as the smallest there is.
    fn share(&self, borrower: &Name) -> f64 {
        let share = self.shares.get(borrower).copied().unwrap_or(1.0);
        if share > 0.0 { share } else { f64::MIN_POSITIVE }
    }
}

/// What to lend and what to take back. Doing it and asking again changes nothing, but for what is
/// taken from some to be given to others, which takes a few looks.
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

/// How much of each owner may be lent in all, in its own RRU.
fn budgets<'a>(groups: &'a [LoanGroup], settings: &Elastic) -> BTreeMap<&'a Name, Rru> {
    let mut by_msb: BTreeMap<(&Name, &Name), Rru> = BTreeMap::new();
    let mut budgets: BTreeMap<&Name, Rru> = BTreeMap::new();
    for group in groups {
        let budget = budgets.entry(&group.owner).or_default();
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
type Index<'a> = BTreeMap<(&'a Name, &'a Name, &'a Name), &'a LoanGroup>;

fn index(view: &LoanView) -> Index<'_> {
    let groups = view.groups.iter();
    groups.map(|group| ((&group.owner, &group.msb, &group.hardware_type), group)).collect()
}

/// The group a loan is of; `None`: its servers are all leaving.
fn group_of<'a>(index: &Index<'a>, loan: &Loan) -> Option<&'a LoanGroup> {
    index.get(&(&loan.owner, &loan.msb, &loan.hardware_type)).copied()
}

/// Loans to recall while an MSB is lost, so that at most `stay` servers of guaranteed reservations
/// stay lent. Reservations that lost servers come first, then the most important.
fn returning(view: &LoanView, stay: u64) -> Vec<Loan> {
    let hit: BTreeSet<&Name> =
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

/// What has become too much: the buffer it was lent from is smaller now.
fn beyond(view: &LoanView, budgets: &BTreeMap<&Name, Rru>) -> Vec<Loan> {
    let index = index(view);
    let mut lent: BTreeMap<&Name, Rru> = BTreeMap::new();
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

/// How many servers of a value fit into an amount.
fn fits(amount: Rru, value: Rru) -> u64 {
    if value <= Rru::ZERO || amount < value {
        return 0;
    }
    u64::try_from(amount.0 / value.0).unwrap_or(0)
}

/// Who has what while it is dealt out.
struct Table<'a> {
    groups: Vec<Deal<'a>>,
    /// What may still be lent of each owner.
    left: BTreeMap<&'a Name, Rru>,
    borrowers: Vec<Borrower<'a>>,
}

struct Deal<'a> {
    group: &'a LoanGroup,
    idle: u64,
}

struct Borrower<'a> {
    name: &'a Name,
    share: f64,
    values: &'a BTreeMap<Name, Rru>,
    borrowed: Rru,
}

impl Borrower<'_> {
    fn value(&self, hardware_type: &Name) -> Rru {
        self.values.get(hardware_type).copied().unwrap_or_default()
    }

    /// What it has for its share, with so much more.
    fn served(&self, more: Rru) -> f64 {
        (self.borrowed + more).to_f64() / self.share
    }
}

impl<'a> Table<'a> {
    fn new(view: &'a LoanView, settings: &Elastic, budgets: &BTreeMap<&'a Name, Rru>) -> Table<'a> {
        let mut left = budgets.clone();
        for group in &view.groups {
            // What is on its way back is still lent.
            *left.entry(&group.owner).or_default() -= worth(group, group.lent);
        }
        let mut groups: Vec<Deal> =
            view.groups.iter().map(|group| Deal { group, idle: group.idle }).collect();
        // Shared buffers last: a replacement takes what is not lent first.
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

    /// How many servers of a group a borrower could have.
    fn open_to(&self, borrower: &Borrower, deal: &Deal) -> u64 {
        if borrower.value(&deal.group.hardware_type) <= Rru::ZERO {
            return 0;
        }
        let left = self.left.get(&deal.group.owner).copied().unwrap_or_default();
        deal.idle.min(fits(left, deal.group.value))
    }

    /// Lends idle servers, a few at a time, to the borrower that has least for its share.
    fn lend(&mut self) -> Vec<Loan> {
        let idle: u64 = self.groups.iter().map(|deal| deal.idle).sum();
        // Small enough to be fair, large enough to end.
        let helping = (idle / 1_000).max(1);
        let mut lent: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        let mut hungry: Vec<usize> = (0..self.borrowers.len()).collect();
        // Where each goes on looking: what was not open to it before is not later.
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

    /// What the one that has most for its share gives back to the one that has least, where nothing
    /// is left to lend.
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
            reason = "both are above zero, and a cast that saturates is bounded by the loan"
        )]
        let equal = (apart / each).floor() as u64;
        let count = equal.min(loan.count.div_ceil(REBALANCED)).max(1);
        Some(Loan { count, ..loan.clone() })
    }
}

#[cfg(test)]
mod tests;
