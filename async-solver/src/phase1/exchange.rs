//! Exchanges: sub-MIPs that place a few reservations again together, while the others stay.
//!
//! Where reservations compete for mixed hardware, the best exchange between five of them is out of reach for
//! ruin and recreate, and HiGHS finds it at the root of a sub-MIP. Which five: those that pay most above their
//! bounds at the pools' prices and share pools ([`Neighbourhood::pick_exchange`]).

use super::Run;
use crate::lp::LpRequest;
use crate::neighbourhood::Neighbourhood;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::sub_mip::FreeItems;
use std::collections::VecDeque;

impl Run<'_> {
    /// Solves sub-MIPs batch by batch until a window of batches gained little. The size of a batch is fixed, so the
    /// number of threads does not change the result.
    pub(super) fn exchange(&mut self) -> Termination {
        let (Some((mut state, _)), Some(prices)) = (self.best.clone(), self.dual.clone()) else {
            return Termination::Stalled;
        };
        let mut hood = Neighbourhood::new(self.model, &state, &prices, self.config.seed);
        let columns: Vec<usize> =
            (0..self.model.terms.len()).map(|term| self.lp.columns_of(term).count()).collect();
        let mut window = Window::of(columns.len());
        loop {
            if self.is_within_gap() {
                return self.settled();
            }
            if self.must_stop() {
                return self.stop_reason();
            }
            let open = self.absolute_gap();
            let request = LpRequest {
                solver: "choose".into(),
                mip_gap: PARAMS.sub_mip.gap * open,
                mip_nodes: 1,
                ..self.request.clone()
            };
            let mut picked = vec![false; columns.len()];
            let groups: Vec<Vec<usize>> = (0..PARAMS.sub_mip.batch)
                .map(|_| hood.pick_exchange(self.model, &state, &columns, &mut picked))
                .collect();
            let free: Vec<FreeItems> =
                groups.iter().map(|terms| free_items(&state.counts, terms)).collect();
            let mut gained = 0.0;
            let mut changed = vec![false; columns.len()];
            for (sub_mip, solution) in self.solve_sub_mips(&state, &free, &request) {
                let Some(gain) = sub_mip.apply(&self.ineligible_held, &mut state, &solution) else {
                    continue;
                };
                // A smaller shortfall outweighs any cost.
                gained += if gain.less_missing { open } else { gain.cost };
                for &term in sub_mip.terms() {
                    changed[term] = true;
                }
            }
            for terms in &groups {
                hood.update_exchanged(self.model, &state, terms, |term| changed[term]);
            }
            self.offer(&state, "mip");
            if window.add(gained) < PARAMS.exchange.min_gain * open {
                return Termination::Stalled;
            }
        }
    }
}

/// The gains of the last batches: a batch tries a few reservations only, so a single one without gain says little.
struct Window {
    length: usize,
    gains: VecDeque<f64>,
}

impl Window {
    /// The window of a region, by its number of reservations.
    fn of(reservations: usize) -> Window {
        let length = reservations / PARAMS.exchange.reservations_per_batch;
        Window { length: length.clamp(1, PARAMS.exchange.max_window), gains: VecDeque::new() }
    }

    /// Adds the gain of a batch and returns the gain of the window; infinite until there are enough batches.
    fn add(&mut self, gain: f64) -> f64 {
        self.gains.push_back(gain);
        if self.gains.len() > self.length {
            self.gains.pop_front();
        }
        if self.gains.len() < self.length { f64::INFINITY } else { self.gains.iter().sum() }
    }
}

/// All items of some reservations.
fn free_items(counts: &[Vec<u32>], terms: &[usize]) -> FreeItems {
    let items = |(term, counts): (usize, &Vec<u32>)| vec![terms.contains(&term); counts.len()];
    counts.iter().enumerate().map(items).collect()
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn exchanges_end_after_a_window_of_batches_without_gain() {
        let mut window = Window::of(60);
        assert_eq!(
            [5.0, 0.0, 0.0, 1.0, 0.0].map(|gain| window.add(gain)),
            [f64::INFINITY, f64::INFINITY, 5.0, 1.0, 1.0]
        );
        assert_eq!(Window::of(9).add(0.0), 0.0);
    }
}
