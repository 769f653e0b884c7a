use super::{Elastic, Loan, LoanGroup, LoanPlan, LoanView, REST_AFTER, plan};
use fleet::{HardwareTypeName, ReservationName, Rru};
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
        lends: true,
    }
}

fn view(groups: Vec<LoanGroup>, borrowers: &[&str]) -> LoanView {
    let values = BTreeMap::from([(HardwareTypeName::from("t"), Rru::units(1))]);
    let borrowers = borrowers.iter().map(|name| ((*name).into(), values.clone())).collect();
    LoanView { groups, loans: Vec::new(), borrowers, shares: BTreeMap::new(), outage: None }
}

/// The view after a plan was executed.
fn after(mut view: LoanView, plan: &LoanPlan) -> LoanView {
    let key = |loan: &Loan| (loan.borrower.clone(), loan.owner.clone(), loan.msb.clone());
    let mut loans: BTreeMap<_, Loan> =
        view.loans.iter().map(|loan| (key(loan), loan.clone())).collect();
    for (of, back) in [(&plan.lend, false), (&plan.recall, true)] {
        for loan in of {
            let held = loans.entry(key(loan)).or_insert(Loan { count: 0, ..loan.clone() });
            held.count = if back { held.count - loan.count } else { held.count + loan.count };
            let here = |group: &&mut LoanGroup| group.owner == loan.owner && group.msb == loan.msb;
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

/// The final view and the servers of each borrower, once the plan is empty.
fn settled(mut view: LoanView, settings: &Elastic) -> (LoanView, BTreeMap<ReservationName, u64>) {
    for _ in 0..200 {
        let plan = plan(&view, settings);
        if plan == LoanPlan::default() {
            let mut by: BTreeMap<ReservationName, u64> = BTreeMap::new();
            for loan in &view.loans {
                *by.entry(loan.borrower.clone()).or_default() += loan.count;
            }
            return (view, by);
        }
        view = after(view, &plan);
    }
    panic!("it never settles");
}

fn has(by: &BTreeMap<ReservationName, u64>) -> Vec<(&str, u64)> {
    by.iter().map(|(name, count)| (&**name, *count)).collect()
}

#[test]
fn loans_stay_within_the_buffers() {
    // Web lends up to the 30 servers of its largest MSB; a quarter of the shared buffer is reserved.
    let groups =
        vec![group("shared/t", "m1", 8, 8), group("web", "m1", 30, 20), group("web", "m2", 25, 25)];
    let (_, by) = settled(view(groups, &["batch"]), &Elastic::default());
    assert_eq!(has(&by), [("batch", 36)]);
}

#[test]
fn borrowers_are_served_by_share_and_rebalanced() {
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
fn outage_recalls_three_quarters_then_the_rest() {
    let mut ads = group("ads", "m2", 40, 20);
    ads.priority = 0;
    let groups = vec![ads, group("web", "m1", 40, 40), group("web", "m3", 40, 40)];
    let (mut lent, by) = settled(view(groups, &["batch"]), &Elastic::default());
    assert_eq!(has(&by), [("batch", 60)]);
    // Web lost m1 and the loans there; ads is more important, but lost no server.
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
    /// Only idle servers are lent, no budget is exceeded, and the rounds end.
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

#[test]
fn who_survives_other_domains_than_msbs_lends_nothing() {
    let lends = |lends| LoanGroup { lends, ..group("web", "m1", 4, 4) };
    let lent = |group| plan(&view(vec![group], &["batch"]), &Elastic::default()).lend.len();
    assert_eq!((lent(lends(true)), lent(lends(false))), (1, 0));
    // What was lent before comes back.
    let before = view(vec![lends(true)], &["batch"]);
    let mut then = after(before.clone(), &plan(&before, &Elastic::default()));
    then.groups[0].lends = false;
    let back = plan(&then, &Elastic::default());
    assert_eq!((back.lend.len(), back.recall.iter().map(|of| of.count).sum::<u64>()), (0, 4));
}
