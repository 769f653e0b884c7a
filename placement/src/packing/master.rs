//! Linear programs of patterns: the least sum of patterns that covers each item, by the primal simplex method over a
//! growing list of patterns (Gilmore and Gomory).

/// The items of a bin.
pub(crate) type Pattern = Vec<u16>;

/// Reduced costs above this count as zero.
const ZERO: f64 = 1e-7;

#[derive(Clone, Copy)]
enum Basic {
    Pattern(u32),
    /// What covers an item too often.
    Surplus,
}

/// A linear program with its basis. Of each item one pattern of its own is always there.
pub(crate) struct Master {
    rows: usize,
    pub(crate) patterns: Vec<Pattern>,
    basis: Vec<Basic>,
    /// Inverse of the basis, item by item: row `i` has what item `i` adds to each basic variable.
    inverse: Vec<f64>,
    /// Values of the basic variables.
    x: Vec<f64>,
    /// Price of each item.
    pub(crate) price: Vec<f64>,
    /// How often each item must be covered: a little more than its number, by different amounts, because steps of zero would cycle.
    need: Vec<f64>,
}

impl Master {
    /// `count`: how many items there are of each row.
    pub(crate) fn new(count: &[u32]) -> Master {
        let rows = count.len();
        let index = |row: usize| u16::try_from(row).expect("few items");
        let need = count
            .iter()
            .enumerate()
            .map(|(row, count)| f64::from(*count) + 1e-5 * ((row * 7919 % 1009) as f64 / 1009.0));
        let mut master = Master {
            rows,
            patterns: (0..rows).map(|row| vec![index(row)]).collect(),
            basis: Vec::new(),
            inverse: Vec::new(),
            x: Vec::new(),
            price: Vec::new(),
            need: need.collect(),
        };
        master.reset();
        master
    }

    /// Starts from the patterns of one item.
    fn reset(&mut self) {
        let n = self.rows;
        self.basis = (0..n).map(|row| Basic::Pattern(u32::try_from(row).expect("few"))).collect();
        self.inverse = vec![0.0; n * n];
        (0..n).for_each(|row| self.inverse[row * n + row] = 1.0);
        self.x = self.need.clone();
        self.price = vec![1.0; n];
    }

    pub(crate) fn value_of(&self, pattern: &Pattern) -> f64 {
        pattern.iter().map(|item| self.price[*item as usize]).sum()
    }

    /// The least sum of patterns, as far as they are known.
    pub(crate) fn total(&self) -> f64 {
        self.price.iter().zip(&self.need).map(|(price, need)| price * need).sum()
    }

    /// Solves over the patterns there are. Returns the number of steps.
    pub(crate) fn solve(&mut self, most: usize) -> usize {
        for step in 0..most {
            let of_patterns = (0..self.patterns.len())
                .map(|at| (self.value_of(&self.patterns[at]) - 1.0, Ok(at)));
            let of_surplus = (0..self.rows).map(|row| (-self.price[row], Err(row)));
            let best = of_patterns.chain(of_surplus).max_by(|one, other| one.0.total_cmp(&other.0));
            let Some((gain, enters)) = best.filter(|(gain, _)| *gain > ZERO) else { return step };
            if !self.pivot(enters, gain) {
                self.reset();
            }
        }
        most
    }

    /// Brings a pattern, or the surplus of a row, into the basis. Not if the numbers are no longer good.
    fn pivot(&mut self, enters: Result<usize, usize>, gain: f64) -> bool {
        let n = self.rows;
        let mut change = vec![0.0; n];
        let mut add = |row: usize, sign: f64| {
            let of_row = &self.inverse[row * n..(row + 1) * n];
            change.iter_mut().zip(of_row).for_each(|(change, of)| *change += sign * of);
        };
        match enters {
            Ok(pattern) => self.patterns[pattern].iter().for_each(|item| add(*item as usize, 1.0)),
            Err(row) => add(row, -1.0),
        }
        let steps = change.iter().enumerate().filter(|(_, change)| **change > 1e-7);
        let steps = steps.map(|(at, change)| (self.x[at].max(0.0) / change, at));
        let leaves = steps.min_by(|one, other| one.0.total_cmp(&other.0));
        let Some((step, leaves)) = leaves else { return false };
        self.x.iter_mut().zip(&change).for_each(|(x, change)| *x -= step * change);
        self.x[leaves] = step;
        let pivot = change[leaves];
        for row in 0..n {
            let of_row = &mut self.inverse[row * n..(row + 1) * n];
            let share = of_row[leaves] / pivot;
            if share != 0.0 {
                of_row.iter_mut().zip(&change).for_each(|(of, change)| *of -= share * change);
                of_row[leaves] = share;
                // The reduced cost of what enters is minus its gain.
                self.price[row] -= gain * share;
            }
        }
        self.basis[leaves] = match enters {
            Ok(pattern) => Basic::Pattern(u32::try_from(pattern).expect("few")),
            Err(_) => Basic::Surplus,
        };
        // Rounding adds up: the patterns of the basis must be worth one.
        let worth = match self.basis[leaves] {
            Basic::Pattern(at) => self.value_of(&self.patterns[at as usize]) - 1.0,
            Basic::Surplus => 0.0,
        };
        worth.abs() < 1e-6 && self.x.iter().all(|x| *x > -1e-6)
    }

    /// The patterns of the basis, with their values.
    pub(crate) fn basic(&self) -> impl Iterator<Item = (&Pattern, f64)> {
        let of = self.basis.iter().zip(&self.x);
        of.filter_map(|(basic, x)| match basic {
            Basic::Pattern(at) => Some((&self.patterns[*at as usize], *x)),
            Basic::Surplus => None,
        })
    }
}
