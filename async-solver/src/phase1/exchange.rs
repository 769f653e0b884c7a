//! Exchanges: sub-MIPs that place a few reservations again together, while the others stay.
//!
//! Where reservations compete for mixed hardware, the best exchange between a few of them is out of reach for
//! ruin and recreate, and HiGHS finds it at the root of a sub-MIP. Which ones: those that pay most above their
//! bounds at the pools' prices and share pools ([`Neighbourhood::pick_exchange`]). Only their *core* is free: items
//! that they have or held, and those of the relaxation. Small sub-MIPs come first: they gain most for their time.

use super::Run;
use crate::formulation::{Lp, Part};
use crate::lp::{LpJob, LpRequest};
use crate::model::Model;
use crate::neighbourhood::Neighbourhood;
use crate::params::PARAMS;
use crate::report::Termination;
use crate::sub_mip::{FreeItems, SubMip};
use std::collections::VecDeque;

/// Which sub-MIPs are worth their time.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// Columns of a sub-MIP at most: larger ones follow where smaller ones gain little.
    columns: &'static [usize],
    /// Reservations for each sub-MIP of the window that ends a size.
    reservations_per_sub_mip: usize,
    /// Gain of that window below which it ends, as a share of the gap.
    min_gain: f64,
}

/// A sub-MIP under way, or the next one.
struct Pending<'a> {
    terms: Vec<usize>,
    sub_mip: SubMip<'a>,
    job: Option<Box<dyn LpJob>>,
}

impl Run<'_> {
    /// The exchanges that the gap is worth: all on a hard region, and while a deadline leaves time; else small ones,
    /// if most servers are held.
    pub(super) fn exchanges_worth(&self) -> Option<Effort> {
        let (params, gap) = (&PARAMS.exchange, self.relative_gap());
        // On a tiny region those that gain little take most of the time, and windows gain more (decision 0043).
        let sizes = if self.is_tiny() { params.tiny_sizes } else { params.max_columns.len() };
        let (columns, reservations_per_sub_mip) =
            (&params.max_columns[..sizes], params.reservations_per_sub_mip);
        if self.env.deadline.is_some() && gap > params.min_gap_until_deadline {
            let min_gain = params.min_gain_until_deadline;
            Some(Effort { columns, reservations_per_sub_mip, min_gain })
        } else if self.is_hard() {
            Some(Effort { columns, reservations_per_sub_mip, min_gain: params.min_gain })
        } else if gap > params.min_gap && !self.is_tiny() && self.is_held() {
            Some(Effort {
                columns: &columns[..params.small_sizes],
                reservations_per_sub_mip: params.reservations_per_small_sub_mip,
                min_gain: params.min_gain,
            })
        } else {
            None
        }
    }

    /// Whether most servers of the incumbent are held today. Sub-MIPs of others take longer: they are alike.
    fn is_held(&self) -> bool {
        let Some((state, _)) = &self.best else { return false };
        let items = self.model.terms.iter().zip(&state.counts).flat_map(|(term, counts)| {
            term.items.iter().zip(counts).map(|(item, &count)| (count, count.min(item.held())))
        });
        let (used, kept) = items.fold((0, 0), |(used, kept), (count, held)| {
            (used + u64::from(count), kept + u64::from(held))
        });
        2 * kept > used
    }

    /// Solves sub-MIPs of one size after the other, until a window of each gained little.
    pub(super) fn exchange(&mut self, effort: Effort) -> Termination {
        for &columns in effort.columns {
            let termination = self.exchange_within(columns, effort);
            if termination != Termination::Stalled {
                return termination;
            }
        }
        Termination::Stalled
    }

    /// Solves sub-MIPs until a window of them gained little. While one is solved the next is made, with any number
    /// of threads, so that the number does not change the result.
    fn exchange_within(&mut self, max_columns: usize, effort: Effort) -> Termination {
        let (Some((mut state, mut cost)), Some(prices)) = (self.best.clone(), self.dual.clone())
        else {
            return Termination::Stalled;
        };
        let model = self.model;
        // Above a size the relaxation is without racks, and what it finds may cost more with them.
        let with_racks = (!self.lp.has_racks()).then(|| Lp::new(model, true));
        let lp = with_racks.as_ref().unwrap_or(self.lp);
        let mut hood = Neighbourhood::new(model, &state, &prices, self.seed());
        let mut window = Window::of(model.terms.len() / effort.reservations_per_sub_mip);
        let mut pending: VecDeque<Pending<'_>> = VecDeque::new();
        let mut is_busy = vec![false; model.terms.len()];
        let mut reported = cost;
        let ended = loop {
            let open = (cost - self.dual_bound).max(0.0);
            if cost - self.dual_bound <= self.gap_limit() + 1e-9 {
                break Termination::Optimal;
            }
            if self.must_stop() {
                break self.stop_reason();
            }
            let request = LpRequest {
                solver: "choose".into(),
                mip_gap: PARAMS.sub_mip.gap * open,
                mip_nodes: 1,
                ..self.request.clone()
            };
            while pending.len() < PARAMS.sub_mip.batch {
                let core = Core { model, counts: &state.counts, relaxed: &self.fractional };
                let columns: Vec<usize> =
                    (0..model.terms.len()).map(|term| core.columns(lp, term)).collect();
                let terms = hood.pick_exchange(model, &state, &columns, max_columns, &mut is_busy);
                let sub_mip = SubMip::new(model, lp, &state, &core.free(&terms))
                    .with_proved_rows(&state, &self.points);
                let is_next = pending.is_empty() || self.config.threads > 1;
                let job = is_next.then(|| self.start_sub_mip(&sub_mip, &request)).flatten();
                pending.push_back(Pending { terms, sub_mip, job });
            }
            let Some(Pending { terms, sub_mip, job }) = pending.pop_front() else {
                break Termination::Stalled;
            };
            let solution = job.and_then(|mut job| self.wait(job.as_mut(), sub_mip.size()));
            if let Some(next) = pending.front_mut().filter(|next| next.job.is_none()) {
                next.job = self.start_sub_mip(&next.sub_mip, &request);
            }
            let gain = solution
                .and_then(|solution| sub_mip.apply(&self.ineligible_held, &mut state, &solution));
            terms.iter().for_each(|&term| is_busy[term] = false);
            hood.update_exchanged(model, &state, &terms, gain.is_some());
            // A smaller shortfall outweighs any cost.
            let gained = gain.map_or(0.0, |gain| if gain.less_missing { open } else { gain.cost });
            cost -= gain.map_or(0.0, |gain| gain.cost);
            if reported - cost > PARAMS.exchange.min_report * open || gained >= open {
                self.offer(&state, "mip");
                reported = cost;
            }
            if window.add(gained) < effort.min_gain * open {
                break Termination::Stalled;
            }
        };
        self.offer(&state, "mip");
        // The last one may have reached the gap limit.
        if ended == Termination::Stalled { self.settled() } else { ended }
    }
}

/// The items of each reservation that exchanges free: those that it has, held, or has in the relaxation.
struct Core<'a> {
    model: &'a Model,
    counts: &'a [Vec<u32>],
    relaxed: &'a [Vec<f64>],
}

impl Core<'_> {
    fn has(&self, term: usize, item: usize) -> bool {
        self.counts[term][item] > 0
            || self.model.terms[term].items[item].held() > 0
            || self.relaxed[term][item] > PARAMS.exchange.min_relaxed
    }

    /// Columns of a reservation's core.
    fn columns(&self, lp: &Lp, term: usize) -> usize {
        let is_in = |(_, part): &(usize, Part)| match part {
            Part::Item(item) => self.has(term, *item as usize),
            Part::Slice(slice) => {
                let mut items = self.model.terms[term].slices[*slice as usize].items.clone();
                items.any(|item| self.has(term, item))
            }
            Part::Ineligible(_) | Part::Largest | Part::Whole | Part::Excess => true,
        };
        lp.columns_of(term).filter(is_in).count()
    }

    /// The cores of some reservations.
    fn free(&self, terms: &[usize]) -> FreeItems {
        let free = |(term, counts): (usize, &Vec<u32>)| {
            let is_in = terms.contains(&term);
            (0..counts.len()).map(|item| is_in && self.has(term, item)).collect()
        };
        self.counts.iter().enumerate().map(free).collect()
    }
}

/// The gains of the last sub-MIPs: each tries a few reservations only, so a single one without gain says little.
struct Window {
    length: usize,
    gains: VecDeque<f64>,
}

impl Window {
    fn of(sub_mips: usize) -> Window {
        let length = sub_mips.clamp(PARAMS.exchange.min_window, PARAMS.exchange.max_window);
        Window { length, gains: VecDeque::new() }
    }

    /// Adds the gain of a sub-MIP and returns the gain of the window; infinite until there are enough of them.
    fn add(&mut self, gain: f64) -> f64 {
        self.gains.push_back(gain);
        if self.gains.len() > self.length {
            self.gains.pop_front();
        }
        if self.gains.len() < self.length { f64::INFINITY } else { self.gains.iter().sum() }
    }
}

#[cfg(test)]
mod tests {
    use super::Window;

    #[test]
    fn exchanges_end_after_a_window_without_gain() {
        let mut window = Window::of(5);
        assert_eq!(
            [5.0, 0.0, 0.0, 0.0, 1.0, 0.0].map(|gain| window.add(gain)),
            [f64::INFINITY, f64::INFINITY, f64::INFINITY, f64::INFINITY, 6.0, 1.0]
        );
        assert_eq!(Window::of(0).length, 4);
    }
}
