//! The linear relaxation, by HiGHS' simplex: of a tiny region, or where a reservation is short because of domains.

use super::{Run, rounded_down};
use crate::bound::{DualPoint, VolumeAlgorithm, VolumeParams};
use crate::formulation::Lp;
use crate::lp::{LpRequest, LpSolution};
use crate::params::PARAMS;
use std::time::Duration;

impl Run<'_> {
    /// Whether simplex solves the LP in about 0.1 s.
    pub(super) fn is_tiny(&self) -> bool {
        self.lp_size.0 < PARAMS.lp.max_columns
    }

    /// The prices of the LP where the region is tiny, else the given ones. They lead the search better, even
    /// where their bound is lower.
    pub(super) fn prices_of_tiny(&mut self, prices: DualPoint) -> DualPoint {
        if !self.is_tiny() || self.must_stop() || self.is_within_gap() {
            return prices;
        }
        let Some((found, fractional, solution)) = self.solve_lp(self.lp) else { return prices };
        self.lp_solved = Some((solution.objective + self.lp.constant, solution.seconds));
        self.fractional = fractional;
        found
    }

    /// The prices of the LP where a reservation is short that survives the loss of domains: they are near the price of
    /// what is missing then, which an ascent reaches late.
    pub(super) fn prices_of_short_domains(&mut self, prices: DualPoint) -> DualPoint {
        let is_short = self.best.as_ref().is_some_and(|(state, _)| {
            let terms = self.model.terms.iter().zip(&state.missing);
            terms.into_iter().any(|(term, missing)| !term.crossing.is_empty() && *missing > 0)
        });
        let is_solved = self.lp_size.0 <= PARAMS.lp.max_columns_of_domains && !self.is_tiny();
        if !is_short || !is_solved || self.must_stop() || self.is_within_gap() {
            return prices;
        }
        let Some((found, fractional, _)) = self.solve_lp(self.lp) else { return prices };
        if found.value <= prices.value {
            return prices;
        }
        self.sweep(rounded_down(self.model, &fractional), &found, 0.0);
        self.fractional = fractional;
        found
    }

    /// Prices and fractional solution of a relaxation of the model; `None` if HiGHS failed or time is up.
    pub(super) fn solve_lp(&mut self, lp: &Lp) -> Option<(DualPoint, Vec<Vec<f64>>, LpSolution)> {
        let request = LpRequest { time_limit: self.time_left(), ..self.request.clone() };
        let mut job = self.env.backend.start(lp.problem.clone(), request);
        let solution = self.wait(job.as_mut(), lp.problem.cost.len())?;
        let counts = |term| lp.counts(self.model, term, &solution.columns);
        let fractional = (0..self.model.terms.len()).map(counts).collect();
        let prices = lp.prices(self.model, &solution.row_duals);
        let mut ascent =
            VolumeAlgorithm::new(self.at(prices), PARAMS.lp.ascent_target, VolumeParams::STEADY);
        Some((self.ascend(&mut ascent, PARAMS.lp.ascent_steps), fractional, solution))
    }

    /// Time that HiGHS may take.
    pub(super) fn time_left(&self) -> Option<Duration> {
        let left =
            |end: Duration| end.saturating_sub(self.reserve).saturating_sub((self.env.elapsed)());
        self.env.deadline.map(left)
    }
}
