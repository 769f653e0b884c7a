//! Which whole servers show a sum.

use super::group_relaxation::{Others, exchanges, others};
use super::lines::Line;
use super::sum_costs::SumCosts;

impl SumCosts {
    /// Adds the cheapest servers of a slice that show a sum to the counts of items; `None` if no
    /// exchanges that are listed lead there.
    pub fn take(&self, slice: usize, sum: i64, counts: &mut [u32]) -> Option<()> {
        let line = &self.lines[slice];
        if sum == 0 {
            return Some(());
        }
        let position = line.runs.partition_point(|run| run.start < sum).checked_sub(1)?;
        let run = &line.runs[position];
        let above = sum - run.start;
        // What each value has more, or fewer, than all runs before this one.
        let mut more: Vec<(i64, i64)> = Vec::new();
        if above % run.value == 0 && above <= run.value * run.count {
            more.push((run.value, above / run.value));
        } else {
            let relaxation = self.group_relaxation(slice, position)?;
            let (count, cost) = relaxation
                .bases(run, above)
                .min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)))?;
            if !cost.is_finite() {
                return None;
            }
            more.push((run.value, count));
            let (worth, reach) = (self.worth(run), self.reach());
            let layers = others(line, position, worth, reach);
            exchanged(line, position, worth, &layers, above - count * run.value, &mut more)?;
        }
        for value in line.values() {
            let before = line.runs[..position].iter().filter(|run| run.value == value);
            let extra = more.iter().find(|more| more.0 == value).map_or(0, |more| more.1);
            let mut left = before.map(|run| run.count).sum::<i64>() + extra;
            for run in line.runs.iter().filter(|run| run.value == value) {
                let taken = left.clamp(0, run.count);
                left -= taken;
                counts[run.item as usize] += u32::try_from(taken).expect("at most the pool");
            }
            if left != 0 {
                return None;
            }
        }
        Some(())
    }
}

/// Finds how many servers of each other value move the sum by `moved`.
fn exchanged(
    line: &Line,
    position: usize,
    worth: f64,
    layers: &[Others],
    moved: i64,
    more: &mut Vec<(i64, i64)>,
) -> Option<()> {
    let base = line.runs[position].value;
    let values: Vec<i64> = line.values().filter(|&value| value != base).collect();
    let mut moved = moved;
    for (&value, pair) in values.iter().zip(layers.windows(2)).rev() {
        let reached = pair[1].of(moved);
        let none = (0, 0.0);
        let [up, down] = [1, -1].map(|sign| {
            let prices = exchanges(line, position, value, sign > 0, worth);
            (1..).zip(prices).map(move |(count, price): (i64, f64)| (sign * count, price))
        });
        let (count, _) = std::iter::once(none)
            .chain(up)
            .chain(down)
            .find(|&(count, price)| pair[0].of(moved - count * value) + price <= reached)?;
        more.push((value, count));
        moved -= count * value;
    }
    (moved == 0).then_some(())
}
