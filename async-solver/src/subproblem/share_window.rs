//! The sums of all MSBs around a window of largest MSB shares, and the bounds of these at a price of
//! the demand.

use super::Priced;
use super::lines::Peak;
use super::sum_costs::SumCosts;
use crate::model::rru;

/// The best bound of one largest share.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    pub value: f64,
    /// The price of the demand it has it from.
    pub mu: f64,
    /// How often combinations of sums were looked at, each time more expensive ones; none left.
    pub tries: u32,
}

impl Bound {
    pub const NONE: Bound = Bound { value: f64::NEG_INFINITY, mu: 0.0, tries: 0 };
}

/// The rows of all MSBs around a window of largest MSB shares. Units are those of the sum_costs.
pub(super) struct ShareWindow<'p> {
    pub sum_costs: &'p SumCosts,
    /// Prices per unit of the largest share.
    pub tau: f64,
    /// What must be reached besides the largest share, and what one unit less of it costs.
    pub demand: i64,
    last_unit: f64,
    /// Micro-RRU of a unit, price of one of shortfall, and how much may be short; of the first
    /// unit short only a part may be one.
    divisor: i64,
    short: (i64, i64, f64),
    /// Shares from and to; none: no share is kept, and no MSB bounded.
    pub shares: Option<(i64, i64)>,
    /// First sum of the rows.
    from: i64,
    rows: Vec<Vec<f64>>,
    /// Sums around the spread limit, where the line's minimum may lie below the window.
    at_limit: Vec<Option<Vec<f64>>>,
    limit_from: i64,
}

impl<'p> ShareWindow<'p> {
    pub fn new(
        priced: &Priced,
        sum_costs: &'p SumCosts,
        shares: Option<(i64, i64)>,
    ) -> ShareWindow<'p> {
        let (term, divisor) = (priced.term, priced.geometry.divisor);
        let demand = (term.capacity + divisor - 1) / divisor;
        let short = term.capacity - (demand - 1) * divisor;
        let last_unit =
            if term.short_max >= short { priced.short_price * rru(short) } else { f64::INFINITY };
        let from = shares.map_or(i64::MAX, |(low, _)| (low - sum_costs.value_max).max(0));
        let slices = 0..sum_costs.lines.len();
        let rows = slices.clone().map(|slice| {
            let Some((_, high)) = shares else { return Vec::new() };
            let mut row = vec![0.0; usize::try_from(high - from + 1).expect("ordered")];
            sum_costs.row(slice, from, &mut row);
            row
        });
        let mut limit_from = 0;
        let is_near =
            sum_costs.limit < 1e15 && shares.is_none_or(|(low, _)| sum_costs.limit < low as f64);
        let at_limit = if is_near {
            #[expect(clippy::cast_possible_truncation, reason = "checked above")]
            let limit = sum_costs.limit.floor() as i64;
            limit_from = (limit - sum_costs.value_max).max(0);
            let length = usize::try_from(limit + sum_costs.value_max + 2 - limit_from);
            let length = length.expect("ordered");
            slices
                .map(|slice| {
                    let mut row = vec![0.0; length];
                    sum_costs.row(slice, limit_from, &mut row);
                    Some(row)
                })
                .collect()
        } else {
            vec![None; sum_costs.lines.len()]
        };
        ShareWindow {
            sum_costs,
            tau: term.tau * sum_costs.unit,
            demand,
            last_unit,
            divisor,
            short: (short, term.short_max, priced.short_price),
            shares,
            from,
            rows: rows.collect(),
            at_limit,
            limit_from,
        }
    }

    /// Least price less `mu` per unit among the sums of a slice the row need not hold, and where.
    pub fn below(&self, slice: usize, mu: f64) -> (f64, i64) {
        let least = self.shares.map_or(i64::MAX, |(low, _)| low);
        match self.sum_costs.peak(slice, mu) {
            Peak::Between(z, cost) if z < least => (cost - mu * z as f64, z),
            Peak::Between(..) => (f64::INFINITY, 0),
            Peak::Limit => match &self.at_limit[slice] {
                Some(row) => lowest(row, self.limit_from, mu),
                None => (f64::INFINITY, 0),
            },
        }
    }

    /// The price of the demand at `mu` per unit, and how much of it.
    pub fn demand_cost(&self, mu: f64, share: i64) -> (f64, i64) {
        let whole = self.demand + share;
        let (met, missed) = (mu * whole as f64, mu * (whole - 1) as f64 + self.last_unit);
        if met <= missed { (met, whole) } else { (missed, whole - 1) }
    }

    /// Raises the bound of each share of the window to the one at `mu`.
    pub fn sweep(&self, mu: f64, bounds: &mut [Bound], [sums, forced]: &mut [Vec<f64>; 2]) {
        let (low, _) = self.shares.unwrap_or((0, 0));
        forced.clear();
        forced.resize(bounds.len(), f64::INFINITY);
        sums.clear();
        sums.extend(
            (low..)
                .take(bounds.len())
                .map(|share| self.tau * share as f64 + self.demand_cost(mu, share).0),
        );
        for (slice, row) in self.rows.iter().enumerate() {
            let mut least = self.below(slice, mu).0;
            let lead = row.len().saturating_sub(sums.len());
            let mut worth = mu * self.from as f64;
            for price in &row[..lead] {
                let value = price - worth;
                least = if value < least { value } else { least };
                worth += mu;
            }
            if row.is_empty() {
                sums[0] += least;
                forced[0] = 0.0;
                continue;
            }
            let kept = sums.iter_mut().zip(forced.iter_mut());
            for (z, (price, (sum, forced))) in (low..).zip(row[lead..].iter().zip(kept)) {
                let value = price - mu * z as f64;
                least = if value < least { value } else { least };
                *sum += least;
                let more = value - least;
                *forced = if more < *forced { more } else { *forced };
            }
        }
        // Some MSB holds just the largest share.
        for (bound, (value, forced)) in bounds.iter_mut().zip(sums.iter().zip(forced.iter())) {
            let value = value + forced;
            if value > bound.value {
                *bound = Bound { value, mu, tries: 0 };
            }
        }
    }

    /// The bound of one share at `mu`, and how much the demand exceeds what is taken there.
    pub fn tangent(&self, mu: f64, share: i64) -> (f64, i64) {
        let (cost, mut missing) = self.demand_cost(mu, share);
        let mut value = self.tau * share as f64 + cost;
        for slice in 0..self.rows.len() {
            let (least, z) = self.least(slice, mu, share);
            value += least;
            missing -= z;
        }
        (value, missing)
    }

    /// Least price less `mu` per unit of a slice's sums up to a share, and where.
    pub fn least(&self, slice: usize, mu: f64, share: i64) -> (f64, i64) {
        let below = self.below(slice, mu);
        let row = &self.rows[slice];
        if row.is_empty() {
            return below;
        }
        let length = usize::try_from(share - self.from + 1).expect("in the window");
        let found = lowest(&row[..length], self.from, mu);
        if found.0 < below.0 { found } else { below }
    }

    /// How many units may be short at most.
    pub fn short_units(&self) -> i64 {
        let (first, most, _) = self.short;
        if most < first { 0 } else { (most - first) / self.divisor + 1 }
    }

    /// The price of falling short by this many units.
    pub fn shortfall(&self, units: i64) -> f64 {
        if units <= 0 {
            return 0.0;
        }
        let (first, most, price) = self.short;
        let short = first + (units - 1) * self.divisor;
        if short <= most { price * rru(short) } else { f64::INFINITY }
    }
}

/// Least price less `mu` per unit of a row's sums, and where.
fn lowest(row: &[f64], from: i64, mu: f64) -> (f64, i64) {
    let mut best = (f64::INFINITY, 0);
    for (z, price) in (from..).zip(row) {
        let value = price - mu * z as f64;
        if value < best.0 {
            best = (value, z);
        }
    }
    best
}
