//! What an assignment costs a reservation, in the pooled problem.

use crate::amounts::MsbTotals;
use crate::model::{Item, Model, Step, Term, TermCost, rru};
use crate::params::PARAMS;

impl Step {
    const NONE: Step = Step { count: 0, price: 0.0 };
}

impl Model {
    /// What one server's worth of shortfall costs at least: more than most changes of expressions 1,
    /// 3 and 4 that mend it (RAS section 3.5.1: fixing what is broken is a high-priority objective),
    /// 20 times the buffer and spread prices of the server, and 50 moves of in-use servers; and more than a server
    /// that lifts limits of groups further above their bounds.
    pub fn server_price(&self) -> f64 {
        self.base_price().max(self.limits.costliest / PARAMS.priority.excess)
    }

    /// The same where no limit is exceeded today.
    pub(crate) fn base_price(&self) -> f64 {
        let move_price = self.weights.move_in_use.max(self.weights.move_idle);
        let price = |term: &Term| 20.0 * (term.tau + term.beta) * rru(term.top_value());
        self.terms.iter().map(price).fold(50.0 * move_price + 1.0, f64::max)
    }

    /// Counts and prices of the held servers of an item, the most expensive to move first.
    pub fn leave_order(&self, item: &Item) -> ((u32, f64), (u32, f64)) {
        let in_use = (item.held_in_use, self.weights.move_in_use);
        let idle = (item.held_idle, self.weights.move_idle);
        if item.pinned {
            return ((item.held(), self.pin_price), (0, 0.0));
        }
        if in_use.1 >= idle.1 { (in_use, idle) } else { (idle, in_use) }
    }

    /// What the servers of an item cost a reservation that has all racks to itself, cheapest first:
    /// expression 1, and expression 2 where racks may get crowded.
    ///
    /// Each rack takes the servers that are most expensive to move first, and what it holds above
    /// the limit costs the more the fuller it is, so the price of its next server rises. The steps
    /// are the servers of all racks in order of price: no choice of servers costs less.
    pub fn server_steps(&self, item: &Item) -> impl Iterator<Item = Step> + use<'_> {
        self.steps_of(item, true)
    }

    /// The same; `with_racks` false leaves out expression 2.
    pub fn steps_of(&self, item: &Item, with_racks: bool) -> impl Iterator<Item = Step> + use<'_> {
        let (from, to) = if with_racks { item.steps } else { (0, 0) };
        let plain = if from == to { self.plain_steps(item) } else { [Step::NONE; 3] };
        let racks = self.rack_steps[from as usize..to as usize].iter().copied();
        racks.chain(plain.into_iter().filter(|step| step.count > 0))
    }

    fn plain_steps(&self, item: &Item) -> [Step; 3] {
        let (dear, cheap) = self.leave_order(item);
        let new = self.pools[item.pool as usize].size.saturating_sub(item.held());
        [
            Step { count: dear.0, price: -dear.1 },
            Step { count: cheap.0, price: -cheap.1 },
            Step { count: new, price: 0.0 },
        ]
    }

    /// What leaving all servers of an item costs.
    pub fn leave_price(&self, item: &Item) -> f64 {
        let (dear, cheap) = self.leave_order(item);
        f64::from(dear.0) * dear.1 + f64::from(cheap.0) * cheap.1
    }

    /// Expressions 1 and 2 for `count` servers of an item.
    pub fn server_price_of(&self, item: &Item, count: u32) -> f64 {
        if item.steps.0 == item.steps.1 {
            let (dear, cheap) = self.leave_order(item);
            let kept = (count.min(dear.0), count.saturating_sub(dear.0).min(cheap.0));
            return f64::from(dear.0 - kept.0) * dear.1 + f64::from(cheap.0 - kept.1) * cheap.1;
        }
        let (mut left, mut price) = (count, self.leave_price(item));
        for step in self.server_steps(item) {
            let taken = left.min(step.count);
            price += f64::from(taken) * step.price;
            left -= taken;
            if left == 0 {
                break;
            }
        }
        price
    }

    /// What giving `counts` servers of each item to a reservation costs.
    pub fn cost(&self, term: &Term, counts: &[u32]) -> TermCost {
        let servers = term.items.iter().zip(counts).map(|(item, &n)| self.server_price_of(item, n));
        TermCost { servers: servers.sum(), ..self.cost_but_servers(term, counts) }
    }

    /// What `counts` servers of each item cost, expressions 1 and 2 left out.
    pub fn cost_but_servers(&self, term: &Term, counts: &[u32]) -> TermCost {
        let mut cost = TermCost::default();
        for (item, &count) in term.items.iter().zip(counts) {
            cost.regress |= item.pinned && count < item.held();
        }
        let mut held = MsbTotals::default();
        let mut over = 0;
        for slice in &term.slices {
            let z = term.slice_value(slice, counts);
            held.add(z);
            cost.msb_spread += term.beta * rru((z - term.spread_limit).max(0));
            over += (z - slice.most).max(0);
            cost.regress |= z > slice.hard_max();
        }
        cost.buffer = term.tau * rru(held.largest);
        let short = term.shortfall_of(held, counts);
        cost.shortfall = term.short_price * rru(short + over);
        cost.regress |= short > term.short_max;
        let mut missing = short + over;
        for (range, (below, above)) in term.affinity.iter().zip(term.outside(counts)) {
            cost.shortfall += range.price * rru(below + above);
            cost.regress |= below > range.below_max || above > range.above_max;
            missing += below + above;
        }
        cost.missing = i128::from(missing) * i128::from(term.weight);
        cost
    }
}
