//! The pooled problem under limits of groups: its rows, what they leave, and prices beside those of the pools.

use crate::group_limits::GroupLimits;
use crate::limit_rows::{Keeping, LimitRow, LimitRows, Room};
use crate::model::{Item, Model, Term, rru};
use crate::params::PARAMS;
use fleet::RegionSnapshot;
use fleet::ReservationKind::Elastic;

impl Model {
    /// Adds rows to a model whose pools have no servers together that count differently. `server_of`: one of each
    /// pool.
    pub(crate) fn add_limits(
        &mut self,
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        server_of: &[u32],
        Keeping { hands_back, mends }: Keeping,
    ) {
        let today = limits.usage(snapshot.servers.iter().map(fleet::Server::holder));
        let mut row_of = vec![None; limits.limits().len()];
        let mut rows = Vec::new();
        for (limit, of) in limits.limits().iter().enumerate() {
            if limits.can_bind(limit) {
                row_of[limit] = Some(rows.len());
                let (most, fixed, bound) = (today[limit], today[limit], of.most);
                rows.push(LimitRow { limit, most, bound, price: 0.0, fixed, staying: 0, unit: 1 });
            }
        }
        let mut entries = Vec::new();
        for term in &mut self.terms {
            let reservation = term.reservation;
            let of = &snapshot.reservations[reservation.ix()];
            let items = term.items.iter_mut().map(|item| (item, true));
            let items = items.chain(term.ineligible_held.iter_mut().map(|item| (item, false)));
            for (item, counts) in items {
                let from = index(entries.len());
                let server = server_of[item.pool as usize] as usize;
                let datacenter = snapshot.datacenter_of(&snapshot.servers[server]);
                let leaves = hands_back && of.kind != Elastic && of.allows(datacenter);
                for &(limit, amount) in limits.rows_of(server, reservation) {
                    let Some(number) = row_of[limit as usize] else { continue };
                    let row: &mut LimitRow = &mut rows[number];
                    row.unit = row.unit.max(amount);
                    // What moves is not fixed.
                    let held = amount * i64::from(item.held());
                    row.fixed -= held;
                    // What is handed back in the end counts nowhere: no price would keep it.
                    if counts || !leaves {
                        row.staying += if counts { 0 } else { held };
                        entries.push((index(number), amount));
                    } else {
                        row.most -= held;
                    }
                }
                item.limits = (from, index(entries.len()));
            }
        }
        // What is handed back makes no room.
        rows.iter_mut().for_each(|row| row.most = row.most.max(row.bound));
        self.limits = LimitRows { rows, entries: entries.into(), ..LimitRows::default() };
        if mends {
            self.price_excess();
        } else {
            self.limits.rows.iter_mut().for_each(|row| row.bound = row.most);
        }
    }

    /// Prices what rows are exceeded by today: each held server of a row costs at least a share of what a missing server
    /// does, regardless of what it counts, so that mending comes before moves, spread and buffers.
    fn price_excess(&mut self) {
        // What servers count that may not leave, and the least and most that one counts which may.
        let mut held: Vec<_> = self.limits.rows.iter().map(|_| (0, i64::MAX, 0)).collect();
        for item in self.terms.iter().flat_map(|term| &term.items).filter(|item| item.held() > 0) {
            for &(row, amount) in self.limits_of(item) {
                let (stuck, least, most) = &mut held[row as usize];
                if item.pinned {
                    *stuck += amount * i64::from(item.held());
                } else {
                    (*least, *most) = (amount.min(*least), amount.max(*most));
                }
            }
        }
        let price = PARAMS.priority.excess * self.base_price();
        for (number, (row, (stuck, least, most))) in
            self.limits.rows.iter_mut().zip(held).enumerate()
        {
            row.bound = row.bound.max(row.fixed + row.staying + stuck).min(row.most);
            if row.bound < row.most {
                let least = least.max(most / PARAMS.priority.excess_ratio).max(1);
                row.price = price * row.unit as f64 / least as f64;
                self.limits.broken.push(index(number));
            }
        }
        let items = self.terms.iter().flat_map(|term| &term.items).filter(|item| !item.pinned);
        let costliest = items.map(|item| self.excess_price_of(item)).fold(0.0, f64::max);
        self.limits.costliest = costliest;
    }

    /// What a server of an item costs at most by lifting its broken rows above their bounds: no further than they may be.
    fn excess_price_of(&self, item: &Item) -> f64 {
        let price = |&(row, amount): &(u32, i64)| {
            let row = &self.limits.rows[row as usize];
            row.price * row.in_units(amount).min(row.excess_max())
        };
        self.limits_of(item).iter().map(price).sum()
    }

    /// The first server of each pool: the others count alike.
    pub(crate) fn first_servers(&self) -> Vec<u32> {
        let mut server_of = vec![0; self.pools.len()];
        for (server, &pool) in self.pool_of.iter().enumerate().rev() {
            if let Some(first) = server_of.get_mut(pool as usize) {
                *first = index(server);
            }
        }
        server_of
    }

    /// Rows in which a server of an item counts, and how much.
    pub fn limits_of(&self, item: &Item) -> &[(u32, i64)] {
        &self.limits.entries[item.limits.0 as usize..item.limits.1 as usize]
    }

    /// The same in units of the rows. Rows are numbered after the pools.
    pub fn limit_entries<'a>(&'a self, item: &Item) -> impl Iterator<Item = (u32, f64)> + use<'a> {
        let pools = index(self.pools.len());
        let of = self.limits_of(item).iter();
        of.map(move |&(row, amount)| (pools + row, self.limits.rows[row as usize].in_units(amount)))
    }

    /// How many prices there are of what reservations share: of the pools, then of the rows of limits.
    pub fn shared_prices(&self) -> usize {
        self.pools.len() + self.limits.rows.len()
    }

    /// How many prices there are: after the shared ones those of domains, by reservation that survives their loss.
    pub fn prices(&self) -> usize {
        let domains = self.terms.iter().flat_map(|term| &term.crossing).map(|of| of.domains());
        self.shared_prices() + domains.sum::<usize>()
    }

    /// What a server of an item costs at some prices.
    pub fn price_of(&self, item: &Item, prices: &[f64]) -> f64 {
        let mut price = prices[item.pool as usize];
        for (row, amount) in self.limit_entries(item) {
            price += amount * prices[row as usize];
        }
        price
    }

    /// The same for a search that knows what rows have left within their bounds: a row that has nothing left there costs
    /// its price, as long as it is broken. Prices weigh `weight`.
    pub fn price_within(&self, item: &Item, prices: &[f64], weight: f64, bound: &[i64]) -> f64 {
        if bound.is_empty() {
            return weight * self.price_of(item, prices);
        }
        let mut price = weight * prices[item.pool as usize];
        for &(row, amount) in self.limits_of(item) {
            let of = &self.limits.rows[row as usize];
            let is_spent = of.bound < of.most && bound[row as usize] <= 0;
            let guess = weight * prices[self.pools.len() + row as usize];
            price += of.in_units(amount) * if is_spent { of.price } else { guess };
        }
        price
    }

    /// What a server of an item costs more once rows are above their bounds that still have room within them.
    pub fn price_above(&self, item: &Item, room: &Room) -> f64 {
        let price = |&(row, amount): &(u32, i64)| {
            let at = row as usize;
            let of = &self.limits.rows[at];
            if room.bound[at] < room.most[at] { of.price * of.in_units(amount) } else { 0.0 }
        };
        if room.bound.is_empty() { 0.0 } else { self.limits_of(item).iter().map(price).sum() }
    }

    /// What servers of a reservation cost more by lifting rows above their bounds. `bound`: what rows have left within
    /// these; empty: none is broken.
    pub fn excess_price(&self, term: &Term, counts: &[u32], bound: &[i64]) -> f64 {
        if bound.is_empty() {
            return 0.0;
        }
        let mut left = bound.to_vec();
        for (item, &count) in term.items.iter().zip(counts) {
            self.take_from_limits(item, &mut left, i64::from(count));
        }
        let price = |&row: &u32| {
            let (at, of) = (row as usize, &self.limits.rows[row as usize]);
            of.price * of.in_units((-left[at]).max(0) - (-bound[at]).max(0))
        };
        self.limits.broken.iter().map(price).sum()
    }

    /// What there is of everything that reservations share: servers of each pool, units of each row within its bound.
    pub fn supplies(&self) -> impl Iterator<Item = f64> + use<'_> {
        let pools = self.pools.iter().map(|pool| f64::from(pool.size));
        pools.chain(self.limits.rows.iter().map(LimitRow::supply))
    }

    /// What there is of everything that has a price, and what an excess is measured by. Nothing may be missing after the loss of a
    /// domain; what an equal share of all others has is as much as a pool.
    pub fn supplies_and_sizes(&self) -> impl Iterator<Item = (f64, f64)> + use<'_> {
        let shared = self.supplies().map(|supply| (supply, supply.max(1.0)));
        let domains = self.terms.iter().flat_map(|term| {
            term.crossing.iter().flat_map(|of| {
                let share = rru(term.capacity) / of.domains().saturating_sub(1).max(1) as f64;
                std::iter::repeat_n((0.0, share.max(rru(term.top_value()))), of.domains())
            })
        });
        shared.chain(domains)
    }

    /// Whether the search leaves out assignments that limits allow: those that need servers to leave that may stay.
    pub fn is_restricted(&self) -> bool {
        self.limits.rows.iter().any(|row| row.staying > 0)
    }

    /// What rows add up to without any item.
    pub fn limits_without_items(&self) -> Vec<i64> {
        self.limits.rows.iter().map(|row| row.fixed + row.staying).collect()
    }

    /// How far each broken row is above its bound with these servers of each item of each reservation, in units.
    pub fn excesses(&self, counts: &[Vec<u32>]) -> Vec<f64> {
        if self.limits.broken.is_empty() {
            return Vec::new();
        }
        let mut sums = self.limits_without_items();
        for (term, counts) in self.terms.iter().zip(counts) {
            for (item, &count) in term.items.iter().zip(counts) {
                self.take_from_limits(item, &mut sums, -i64::from(count));
            }
        }
        let excess = |&row: &u32| self.limits.rows[row as usize].excess(sums[row as usize]);
        self.limits.broken.iter().map(excess).collect()
    }

    /// How many servers of an item fit into what rows have left, at most `count`.
    pub fn fitting(&self, item: &Item, left: &[i64], count: u32) -> u32 {
        let fits = |&(row, amount): &(u32, i64)| left[row as usize].max(0) / amount;
        let most = self.limits_of(item).iter().map(fits).min().unwrap_or(i64::MAX);
        count.min(u32::try_from(most).unwrap_or(u32::MAX))
    }

    /// Whether servers of a reservation fit into what rows have left.
    pub fn is_within(&self, term: &Term, counts: &[u32], left: &[i64]) -> bool {
        let mut left = left.to_vec();
        for (item, &count) in term.items.iter().zip(counts) {
            self.take_from_limits(item, &mut left, i64::from(count));
        }
        left.iter().all(|&left| left >= 0)
    }

    /// Takes what servers of an item count out of what rows have left; puts it back where `count` is below zero.
    pub fn take_from_limits(&self, item: &Item, left: &mut [i64], count: i64) {
        for &(row, amount) in self.limits_of(item) {
            left[row as usize] -= amount * count;
        }
    }
}

fn index(number: usize) -> u32 {
    u32::try_from(number).expect("fewer than 2^32 servers and coefficients")
}
