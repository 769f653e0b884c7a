//! Which servers serve an emergency (RAS section 5.4).
//!
//! Free servers come before those of shared buffers; then the MSB in which the reservation has least,
//! because the loss of an MSB takes at most its largest share; then the server worth the most, so that few
//! move, but not one worth more than what is still missing where a smaller one will do.

use crate::place::PlaceLimits;
use crate::replace::Worth;
use fleet::{Name, Rru};
use std::collections::BTreeMap;

/// Servers of one MSB and type that may be granted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockGroup {
    /// Their MSB.
    pub msb: Name,
    /// Their type.
    pub hardware_type: Name,
    /// Whether a shared buffer has them; otherwise they are free.
    pub shared: bool,
    /// How many.
    pub count: u64,
}

/// What a grant is chosen from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stock {
    /// Who needs it.
    pub reservation: Name,
    /// How much.
    pub asked: Rru,
    /// What there is.
    pub groups: Vec<StockGroup>,
    /// What types are worth to it, and what it has in each MSB.
    pub worth: Worth,
}

/// Servers chosen of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// The group.
    pub group: StockGroup,
    /// How many of it.
    pub count: u64,
}

/// Chooses servers worth as much as was asked, or all there are that the reservation may have.
pub fn choose(stock: &Stock) -> Vec<Pick> {
    // A replica rule is of what is promised, which grows by what is granted: where that is less than
    // what was asked, less may be in one MSB.
    let mut aim = stock.asked;
    loop {
        let (picks, picked) = choose_within(stock, aim);
        let limited =
            stock.worth.places.get(&stock.reservation).is_some_and(|of| of.rule.is_some());
        if picked >= aim || picked <= Rru::ZERO || !limited {
            return picks;
        }
        aim = picked;
    }
}

/// Chooses for a promise that grows by `aim`; gives what the servers are worth, too.
fn choose_within(stock: &Stock, aim: Rru) -> (Vec<Pick>, Rru) {
    let none = PlaceLimits::default();
    let place = stock.worth.places.get(&stock.reservation).unwrap_or(&none);
    let most = place.msb_max(aim);
    let value = |group: &StockGroup| {
        let key = (stock.reservation.clone(), group.hardware_type.clone());
        stock.worth.values.get(&key).copied().unwrap_or_default()
    };
    let mut held: BTreeMap<&Name, Rru> = BTreeMap::new();
    for ((_, msb), amount) in &stock.worth.held {
        held.insert(msb, *amount);
    }
    let mut left: Vec<(&StockGroup, Rru, u64)> = (stock.groups.iter())
        .map(|group| (group, value(group), group.count))
        .filter(|(group, value, _)| *value > Rru::ZERO && place.allows(&group.msb))
        .collect();
    let mut picked: BTreeMap<usize, u64> = BTreeMap::new();
    let mut missing = aim;
    while missing > Rru::ZERO {
        let fits = |(group, value, count): &(&StockGroup, Rru, u64)| {
            let share = held.get(&group.msb).copied().unwrap_or_default();
            *count > 0 && share + *value <= most
        };
        let best = left.iter().enumerate().filter(|(_, of)| fits(of)).min_by_key(
            |(_, (group, value, _))| {
                let share = held.get(&group.msb).copied().unwrap_or_default();
                // More than is missing is the worse the more it is; less, the better the more it is.
                let fit = if *value >= missing { (0, *value) } else { (1, Rru(-value.0)) };
                (group.shared, share, fit, &group.hardware_type)
            },
        );
        let Some((g, _)) = best else { break };
        let (group, value, count) = &mut left[g];
        *count -= 1;
        missing -= *value;
        *held.entry(&group.msb).or_default() += *value;
        *picked.entry(g).or_default() += 1;
    }
    let pick = |(g, count): (usize, u64)| Pick { group: left[g].0.clone(), count };
    (picked.into_iter().map(pick).collect(), aim - missing)
}

#[cfg(test)]
mod tests {
    use super::{Pick, Stock, StockGroup, choose};
    use crate::place::PlaceLimits;
    use crate::replace::Worth;
    use fleet::{ReplicaRule, Rru};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn group(msb: &str, hardware_type: &str, shared: bool, count: u64) -> StockGroup {
        StockGroup { msb: msb.into(), hardware_type: hardware_type.into(), shared, count }
    }

    fn stock(asked: usize, groups: Vec<StockGroup>) -> Stock {
        let values = [
            (("web".into(), "a".into()), Rru::units(1)),
            (("web".into(), "b".into()), Rru::units(3)),
        ];
        let held = [(("web".into(), "m1".into()), Rru::units(5))];
        let places = BTreeMap::new();
        let worth = Worth { values: values.into(), held: held.into(), places };
        Stock { reservation: "web".into(), asked: Rru::units(asked), groups, worth }
    }

    /// MSB, type, whether shared, and how many.
    fn picks(stock: &Stock) -> Vec<(String, String, bool, u64)> {
        let row = |pick: &Pick| {
            let group = &pick.group;
            (group.msb.to_string(), group.hardware_type.to_string(), group.shared, pick.count)
        };
        choose(stock).iter().map(row).collect()
    }

    fn row(
        msb: &str,
        hardware_type: &str,
        shared: bool,
        count: u64,
    ) -> (String, String, bool, u64) {
        (msb.into(), hardware_type.into(), shared, count)
    }

    #[test]
    fn what_is_free_comes_first_and_it_spreads() {
        let groups = vec![
            group("m1", "a", false, 9),
            group("m2", "a", false, 2),
            group("m3", "a", false, 2),
            group("m3", "a", true, 9),
            group("m3", "x", false, 9),
        ];
        let few = stock(4, groups.clone());
        assert_eq!(picks(&few), [row("m2", "a", false, 2), row("m3", "a", false, 2)]);
        let all = stock(100, groups);
        let expected = [
            row("m1", "a", false, 9),
            row("m2", "a", false, 2),
            row("m3", "a", false, 2),
            row("m3", "a", true, 9),
        ];
        assert_eq!(picks(&all), expected, "all there is, and nothing of a type it cannot use");
        let none = stock(1, vec![group("m1", "x", false, 9)]);
        assert_eq!(picks(&none), []);
    }

    #[test]
    fn nothing_is_picked_where_it_is_not_allowed() {
        let groups = vec![group("m1", "a", false, 9), group("m2", "a", false, 9)];
        let mut stock = stock(4, groups);
        let place = PlaceLimits { msbs: Some(["m1".into()].into()), ..PlaceLimits::default() };
        stock.worth.places.insert("web".into(), place.clone());
        assert_eq!(picks(&stock), [row("m1", "a", false, 4)]);
        // One of two replicas in an MSB: m1 has 5 of 10. It may have 7 of 14, but then 2 are granted,
        // and 6 of 12, of which 1 is, and so on: none.
        let rule = Some(ReplicaRule { replicas: 2, per_msb: 1 });
        let capacity = Rru::units(10);
        stock.worth.places.insert("web".into(), PlaceLimits { rule, capacity, ..place });
        assert_eq!(picks(&stock), []);
        let both = PlaceLimits { rule, capacity, msbs: None };
        stock.worth.places.insert("web".into(), both);
        assert_eq!(picks(&stock), [row("m2", "a", false, 4)]);
    }

    proptest! {
        /// Enough if there is enough, no server that could be left out, and never more than there is.
        #[test]
        fn as_much_as_was_asked_and_not_a_server_more(
            asked in 1_usize..40,
            rows in prop::collection::vec((0_usize..3, 0_usize..2, any::<bool>(), 0_u64..8), 0..8),
        ) {
            let mut groups: Vec<StockGroup> = Vec::new();
            for (msb, ty, shared, count) in rows {
                let new = group(["m1", "m2", "m3"][msb], ["a", "b"][ty], shared, count);
                if !groups.iter().any(|of| (&of.msb, &of.hardware_type, of.shared) == (&new.msb, &new.hardware_type, new.shared)) {
                    groups.push(new);
                }
            }
            let stock = stock(asked, groups);
            let worth = |ty: &str| if ty == "a" { 1 } else { 3 };
            let there: u64 = stock.groups.iter().map(|of| of.count * worth(&of.hardware_type)).sum();
            let picks = choose(&stock);
            let got: u64 = picks.iter().map(|of| of.count * worth(&of.group.hardware_type)).sum();
            let asked = asked as u64;
            prop_assert!(got >= asked.min(there), "{got} of {asked}, {there} there");
            prop_assert!(got < asked + 3);
            prop_assert!(picks.iter().all(|of| of.count <= of.group.count));
        }
    }
}
