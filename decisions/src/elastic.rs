//! What is lent to elastic reservations, and what is taken back (RAS section 3.4).
//!
//! Buffers lie idle until something fails, so they are lent. Of a guaranteed reservation that is as much
//! as its embedded buffer, the largest share it has in one MSB (eq. 4); of a shared buffer all but a part
//! that is kept, so that most replacements find a spare on which nothing runs. Who borrows least for its
//! share is served first. While an MSB is lost the buffers of the others are needed: three quarters of
//! what they had lent comes back at once, the rest before half an hour has passed (section 3.3.1), and
//! nothing more is lent.

use fleet::{Name, Rru};
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Servers of one owner, place and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoanGroup {
    /// Who owns them.
    pub owner: Name,
    /// Whether that is a shared buffer.
    pub shared: bool,
    /// How important the owner is; 0 is the most.
    pub priority: i32,
    /// Their MSB.
    pub msb: Name,
    /// Their type.
    pub hardware_type: Name,
    /// What one is worth to its owner.
    pub value: Rru,
    /// How many.
    pub total: u64,
    /// How many may be lent.
    pub idle: u64,
    /// How many are.
    pub lent: u64,
    /// Whether their MSB is lost.
    pub lost: bool,
}

/// Servers of a group, in the hands of a borrower or on their way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Loan {
    /// The elastic reservation.
    pub borrower: Name,
    /// Who owns them.
    pub owner: Name,
    /// Their MSB.
    pub msb: Name,
    /// Their type.
    pub hardware_type: Name,
    /// How many.
    pub count: u64,
}

/// What a decision about loans rests on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoanView {
    /// What there is to lend, by owner, MSB and type.
    pub groups: Vec<LoanGroup>,
    /// What is lent and not on its way back.
    pub loans: Vec<Loan>,
    /// V of each elastic reservation, by hardware type.
    pub borrowers: BTreeMap<Name, BTreeMap<Name, Rru>>,
    /// The shares by which they are served, where one is stored.
    pub shares: BTreeMap<Name, f64>,
    /// How long an MSB has been lost, and how many servers of guaranteed reservations were lent when
    /// that began.
    pub outage: Option<(Duration, u64)>,
}

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
mod tests {
    use super::{Elastic, Loan, LoanGroup, LoanPlan, LoanView, REST_AFTER, plan};
    use fleet::{Name, Rru};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn group(owner: &str, msb: &str, total: u64, idle: u64) -> LoanGroup {
        LoanGroup {
            owner: owner.into(),
            shared: owner.starts_with("shared"),
            priority: 1,
            msb: msb.into(),
            hardware_type: "t".into(),
            value: Rru::units(1),
            total,
            idle,
            lent: 0,
            lost: false,
        }
    }

    fn view(groups: Vec<LoanGroup>, borrowers: &[&str]) -> LoanView {
        let values = BTreeMap::from([(Name::from("t"), Rru::units(1))]);
        let borrowers = borrowers.iter().map(|name| ((*name).into(), values.clone())).collect();
        LoanView { groups, loans: Vec::new(), borrowers, shares: BTreeMap::new(), outage: None }
    }

    /// What the view is after a plan was carried out.
    fn after(mut view: LoanView, plan: &LoanPlan) -> LoanView {
        let key = |loan: &Loan| (loan.borrower.clone(), loan.owner.clone(), loan.msb.clone());
        let mut loans: BTreeMap<_, Loan> =
            view.loans.iter().map(|loan| (key(loan), loan.clone())).collect();
        for (of, back) in [(&plan.lend, false), (&plan.recall, true)] {
            for loan in of {
                let held = loans.entry(key(loan)).or_insert(Loan { count: 0, ..loan.clone() });
                held.count = if back { held.count - loan.count } else { held.count + loan.count };
                let here =
                    |group: &&mut LoanGroup| group.owner == loan.owner && group.msb == loan.msb;
                let group = view.groups.iter_mut().find(here).expect("a group");
                if back {
                    (group.lent, group.idle) = (group.lent - loan.count, group.idle + loan.count);
                } else {
                    (group.lent, group.idle) = (group.lent + loan.count, group.idle - loan.count);
                }
            }
        }
        view.loans = loans.into_values().filter(|loan| loan.count > 0).collect();
        view
    }

    /// Servers each borrower has, once nothing changes any more.
    fn settled(mut view: LoanView, settings: &Elastic) -> (LoanView, BTreeMap<Name, u64>) {
        for _ in 0..200 {
            let plan = plan(&view, settings);
            if plan == LoanPlan::default() {
                let mut by: BTreeMap<Name, u64> = BTreeMap::new();
                for loan in &view.loans {
                    *by.entry(loan.borrower.clone()).or_default() += loan.count;
                }
                return (view, by);
            }
            view = after(view, &plan);
        }
        panic!("it never settles");
    }

    fn has(by: &BTreeMap<Name, u64>) -> Vec<(&str, u64)> {
        by.iter().map(|(name, count)| (&**name, *count)).collect()
    }

    #[test]
    fn buffers_are_lent_and_no_more() {
        // Web's embedded buffer is the 30 of its largest MSB; a quarter of the shared one is kept.
        let groups = vec![
            group("shared/t", "m1", 8, 8),
            group("web", "m1", 30, 20),
            group("web", "m2", 25, 25),
        ];
        let (_, by) = settled(view(groups, &["batch"]), &Elastic::default());
        assert_eq!(has(&by), [("batch", 36)]);
    }

    #[test]
    fn borrowers_are_served_by_share_and_a_new_one_gets_its_part() {
        let groups = vec![group("web", "m1", 90, 90)];
        let shares = BTreeMap::from([("ml".into(), 2.0)]);
        let settings = Elastic { shares, ..Elastic::default() };
        let (both, by) = settled(view(groups, &["batch", "ml"]), &settings);
        assert_eq!(has(&by), [("batch", 30), ("ml", 60)]);
        let three =
            LoanView { borrowers: view(Vec::new(), &["batch", "late", "ml"]).borrowers, ..both };
        let first = plan(&three, &settings);
        assert_eq!(first.recall.iter().map(|loan| loan.count).sum::<u64>(), 6, "not all at once");
        let (_, by) = settled(three, &settings);
        assert_eq!(by.values().sum::<u64>(), 90);
        assert!(by["late"] >= 21 && by["ml"] >= 44, "{by:?}");
    }

    #[test]
    fn while_an_msb_is_lost_three_quarters_come_back_then_the_rest() {
        let mut ads = group("ads", "m2", 40, 20);
        ads.priority = 0;
        let groups = vec![ads, group("web", "m1", 40, 40), group("web", "m3", 40, 40)];
        let (mut lent, by) = settled(view(groups, &["batch"]), &Elastic::default());
        assert_eq!(has(&by), [("batch", 60)]);
        // Web lost m1 with what was lent there; ads is more important, but has lost nothing.
        lent.groups[1].lost = true;
        lent.outage = Some((Duration::ZERO, 60));
        let first = plan(&lent, &Elastic::default());
        assert!(first.lend.is_empty());
        assert_eq!(first.recall.iter().map(|loan| loan.count).sum::<u64>(), 45);
        let (mut rest, by) = settled(lent, &Elastic::default());
        assert_eq!(has(&by), [("batch", 15)]);
        assert!(rest.loans.iter().all(|loan| &*loan.owner == "ads"), "web comes first");
        rest.outage = Some((REST_AFTER, 60));
        assert_eq!(settled(rest, &Elastic::default()).1, BTreeMap::new());
    }

    proptest! {
        /// Only idle servers are lent, no buffer is overdrawn, and the rounds end.
        #[test]
        fn no_buffer_is_overdrawn(
            rows in prop::collection::vec((0_usize..4, 0_u64..40, 0_u64..40), 0..12),
            borrowers in 0_usize..4,
            share in 0.2_f64..5.0,
        ) {
            let owners = ["ads", "shared/t", "web", "shared/u"];
            let mut groups: Vec<LoanGroup> = Vec::new();
            for (n, (owner, total, idle)) in rows.into_iter().enumerate() {
                groups.push(group(owners[owner], &format!("m{n}"), total.max(idle), idle));
            }
            let names = ["a", "b", "c"];
            let settings = Elastic {
                shares: BTreeMap::from([("a".into(), share)]),
                ..Elastic::default()
            };
            let (end, _) = settled(view(groups, &names[..borrowers.min(3)]), &settings);
            for owner in owners {
                let of = || end.groups.iter().filter(|group| &*group.owner == owner);
                let lent: u64 = of().map(|group| group.lent).sum();
                let buffer = if owner.starts_with("shared") {
                    of().map(|group| group.total).sum::<u64>() * 3 / 4
                } else {
                    of().map(|group| group.total).max().unwrap_or(0)
                };
                prop_assert!(lent <= buffer, "{owner}: {lent} of {buffer}");
                if borrowers > 0 {
                    let idle: u64 = of().map(|group| group.idle).sum();
                    prop_assert!(lent == buffer || idle == 0, "{owner}: {lent} of {buffer}");
                }
            }
        }
    }
}
