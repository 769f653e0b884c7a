//! Limits of groups in the pooled problem: rows over counts of items, beside those of the pools.

use std::sync::Arc;

/// The rows that some assignment exceeds; the others do not matter.
#[derive(Clone, Debug, Default)]
pub struct LimitRows {
    /// In the order of the limits.
    pub rows: Vec<LimitRow>,
    /// Row, and what a server counts in it, of each item, by its range; shared by all problems that are made of this one.
    pub(crate) entries: Arc<[(u32, i64)]>,
    /// The rows that are exceeded today by what may leave them.
    pub broken: Vec<u32>,
    /// What one server costs at most by lifting all its broken rows above their bounds.
    pub costliest: f64,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow {
    /// Position among the limits.
    pub limit: usize,
    /// What it may add up to: its bound or, where that is exceeded today, as much as today.
    pub most: i64,
    /// Above this it costs [`LimitRow::price`]: its own bound or, where that is larger, what no assignment moves. The same as
    /// `most` unless the row is broken.
    pub bound: i64,
    /// Price of a unit above `bound`.
    pub price: f64,
    /// What servers count that no assignment moves: unavailable ones, and pinned ones worth zero to their holder.
    pub fixed: i64,
    /// What held servers count that are worth zero to their holder and may stay with it. They count although they may
    /// leave.
    pub staying: i64,
    /// The most that a server counts: prices and programs are per so much, so that rows weigh like pools.
    pub unit: i64,
}

impl LimitRow {
    /// What may move or stay within the bound, in units.
    pub fn supply(&self) -> f64 {
        self.in_units(self.bound - self.fixed)
    }

    /// What items may take within the bound, in units.
    pub fn supply_to_items(&self) -> f64 {
        self.in_units(self.bound - self.fixed - self.staying)
    }

    /// How far above its bound it may be, in units.
    pub fn excess_max(&self) -> f64 {
        self.in_units(self.most - self.bound)
    }

    /// How far above its bound a sum is, in units.
    pub fn excess(&self, sum: i64) -> f64 {
        self.in_units((sum - self.bound).max(0))
    }

    /// An amount in units.
    pub fn in_units(&self, amount: i64) -> f64 {
        amount as f64 / self.unit as f64
    }
}

/// What is done about limits besides keeping them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// Whether reservations release servers of types that are worth zero to them.
    pub hands_back: bool,
    /// Whether what is exceeded today has a price, so that it is mended.
    pub mends: bool,
}

impl Keeping {
    /// By a solve.
    pub(crate) const SOLVE: Keeping = Keeping { hands_back: true, mends: true };
    /// By a plan: it mends nothing on its way, and counts on nothing that is handed back later.
    pub(crate) const PLAN: Keeping = Keeping { hands_back: false, mends: false };
}

/// What rows leave to a reservation.
#[derive(Clone, Debug)]
pub struct Room {
    /// Until a row may add up to no more.
    pub most: Vec<i64>,
    /// Until it is above its bound; empty: no row costs more from some point on.
    pub bound: Vec<i64>,
}

impl Room {
    /// Rows with no room within their bounds have one price for everything, which the caller puts on servers: only their
    /// `most` is left.
    #[must_use]
    pub fn without_spent(mut self) -> Room {
        for (bound, &most) in self.bound.iter_mut().zip(&self.most) {
            *bound = if *bound > 0 { *bound } else { most };
        }
        if self.bound == self.most {
            self.bound.clear();
        }
        self
    }
}
