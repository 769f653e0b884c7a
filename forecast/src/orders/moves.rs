//! Moves of servers between places: what one place would give back serves another before it orders.

use super::advice::{Advice, Position, advise};
use super::policy::Terms;
use serde::Serialize;

/// A place with servers of one type.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its type: servers move between places of one type only.
    pub hardware_type: String,
    /// What is known of it.
    pub position: Position,
    /// Demand by day; the first is tomorrow.
    pub demand: Vec<f64>,
    /// Its period and lead time.
    pub terms: Terms,
}

/// Servers that move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Transfer {
    /// The place that gives them.
    pub from: usize,
    /// The place that gets them.
    pub to: usize,
    /// How many.
    pub servers: u64,
}

/// The advice for each place, with moves between them: a move today is there tomorrow, so it serves days that no order
/// reaches. The place that lacks most gets first, from the one that would give back most; ties go to the
/// first.
pub fn advise_all(places: &[Place]) -> (Vec<Advice>, Vec<Transfer>) {
    let mut places = places.to_vec();
    let advice = |of: &Place| advise(&of.position, &of.demand, of.terms);
    let mut all: Vec<Advice> = places.iter().map(advice).collect();
    let mut transfers = Vec::new();
    let needs = |advice: &Advice| advice.short.max(advice.order);
    loop {
        let best = (0..places.len())
            .filter(|to| needs(&all[*to]) > 0)
            .filter_map(|to| {
                let gives = |from: &usize| {
                    *from != to
                        && all[*from].decommission > 0
                        && places[*from].hardware_type == places[to].hardware_type
                };
                let from = (0..places.len())
                    .filter(gives)
                    .max_by_key(|from| (all[*from].decommission, std::cmp::Reverse(*from)))?;
                Some((to, from))
            })
            .max_by_key(|(to, _)| (needs(&all[*to]), std::cmp::Reverse(*to)));
        let Some((to, from)) = best else { return (all, transfers) };
        // A place that gives is not short and orders nothing, so each move reduces what is spare: the loop ends.
        let servers = needs(&all[to]).min(all[from].decommission);
        places[from].position.free -= servers as f64;
        places[to].position.free += servers as f64;
        for place in [from, to] {
            all[place] = advice(&places[place]);
        }
        transfers.push(Transfer { from, to, servers });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::orders::Pipeline;

    fn place(hardware_type: &str, free: f64, growth: f64) -> Place {
        Place {
            hardware_type: hardware_type.to_owned(),
            position: Position { in_use: 50.0, free, pipeline: Pipeline::default() },
            demand: (1..=28).map(|day| 50.0 + growth * f64::from(day)).collect(),
            terms: Terms::default(),
        }
    }

    #[test]
    fn what_one_place_gives_back_serves_another() {
        // The first needs 28 by the end, 21 of them before an order can arrive; the second has 20 to spare, the third
        // 30 of another type.
        let places = [place("A", 0.0, 1.0), place("A", 20.0, 0.0), place("B", 30.0, 0.0)];
        let (advice, moves) = advise_all(&places);
        assert_eq!(moves, [Transfer { from: 1, to: 0, servers: 20 }]);
        assert_eq!((advice[0].order, advice[0].short, advice[0].runs_out), (8, 1, Some(21)));
        assert_eq!((advice[1].decommission, advice[2].decommission), (0, 30));
        let (alone, none) = advise_all(&places[..1]);
        assert_eq!((alone[0].order, alone[0].short, none.len()), (28, 21, 0));
    }
}
