//! The pooled problem under limits of groups: its rows, what they leave, and prices beside those of the pools.

use crate::group_limits::GroupLimits;
use crate::limit_rows::{LimitRow, LimitRows};
use crate::model::{Item, Model, Term};
use fleet::RegionSnapshot;
use fleet::ReservationKind::Elastic;

impl Model {
    /// Adds rows to a model whose pools have no servers together that count differently. `server_of`: one of each
    /// pool. `hands_back`: whether reservations release servers of types that are worth zero to them.
    pub(crate) fn add_limits(
        &mut self,
        snapshot: &RegionSnapshot,
        limits: &GroupLimits,
        server_of: &[u32],
        hands_back: bool,
    ) {
        let today = limits.usage(snapshot.servers.iter().map(fleet::Server::holder));
        let mut row_of = vec![None; limits.limits().len()];
        let mut rows = Vec::new();
        for (limit, of) in limits.limits().iter().enumerate() {
            if limits.can_bind(limit) {
                row_of[limit] = Some(rows.len());
                let (most, fixed) = (of.most.max(today[limit]), today[limit]);
                rows.push(LimitRow { limit, most, fixed, staying: 0, unit: 1 });
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
                    row.staying += if counts || leaves { 0 } else { held };
                    entries.push((index(number), amount));
                }
                item.limits = (from, index(entries.len()));
            }
        }
        self.limits = LimitRows { rows, entries };
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

    /// How many prices there are: of the pools, then of the rows of limits.
    pub fn prices(&self) -> usize {
        self.pools.len() + self.limits.rows.len()
    }

    /// What a server of an item costs at some prices.
    pub fn price_of(&self, item: &Item, prices: &[f64]) -> f64 {
        let mut price = prices[item.pool as usize];
        for (row, amount) in self.limit_entries(item) {
            price += amount * prices[row as usize];
        }
        price
    }

    /// What there is of everything that has a price: servers of each pool, units of each row.
    pub fn supplies(&self) -> impl Iterator<Item = f64> + use<'_> {
        let pools = self.pools.iter().map(|pool| f64::from(pool.size));
        pools.chain(self.limits.rows.iter().map(LimitRow::supply))
    }

    /// Whether the search leaves out assignments that limits allow: those that need servers to leave that may stay.
    pub fn is_restricted(&self) -> bool {
        self.limits.rows.iter().any(|row| row.staying > 0)
    }

    /// What rows add up to without any item.
    pub fn limits_without_items(&self) -> Vec<i64> {
        self.limits.rows.iter().map(|row| row.fixed + row.staying).collect()
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
