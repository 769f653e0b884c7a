//! Limits of groups in the pooled problem: rows over counts of items, beside those of the pools.

/// The rows that some assignment exceeds; the others do not matter.
#[derive(Clone, Debug, Default)]
pub struct LimitRows {
    /// In the order of the limits.
    pub rows: Vec<LimitRow>,
    /// Row, and what a server counts in it, of each item, by its range.
    pub(crate) entries: Vec<(u32, i64)>,
}

/// A row.
#[derive(Clone, Copy, Debug)]
pub struct LimitRow {
    /// Position among the limits.
    pub limit: usize,
    /// What it may add up to: its bound or, where that is exceeded today, as much as today.
    pub most: i64,
    /// What servers count that no assignment moves: unavailable ones, and pinned ones worth zero to their holder.
    pub fixed: i64,
    /// What held servers count that are worth zero to their holder and may stay with it. They count although they may
    /// leave.
    pub staying: i64,
    /// The most that a server counts: prices and programs are per so much, so that rows weigh like pools.
    pub unit: i64,
}

impl LimitRow {
    /// What may move or stay, in units.
    pub fn supply(&self) -> f64 {
        self.in_units(self.most - self.fixed)
    }

    /// What items may take, in units.
    pub fn supply_to_items(&self) -> f64 {
        self.in_units(self.most - self.fixed - self.staying)
    }

    /// An amount in units.
    pub fn in_units(&self, amount: i64) -> f64 {
        amount as f64 / self.unit as f64
    }
}
