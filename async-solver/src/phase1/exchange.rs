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
        let mut gains: Vec<f64> = Vec::new();
        let window = (columns.len() / PARAMS.exchange.reservations_per_batch)
            .clamp(1, PARAMS.exchange.max_window);
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
            gains.push(gained);
            // A batch tries a few reservations only, so a single one without gain says little.
            let recent: f64 = gains.iter().rev().take(window).sum();
            if gains.len() >= window && recent < PARAMS.exchange.min_gain * open {
                return Termination::Stalled;
            }
        }
    }
}

/// All items of some reservations.
fn free_items(counts: &[Vec<u32>], terms: &[usize]) -> FreeItems {
    let items = |(term, counts): (usize, &Vec<u32>)| vec![terms.contains(&term); counts.len()];
    counts.iter().enumerate().map(items).collect()
}
