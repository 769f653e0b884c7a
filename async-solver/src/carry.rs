//! Only what can be carried out before the next solve.
//!
//! The mover is held to churn contracts, quiet times and limits of moves, which the snapshot has as move
//! budgets. They bind seldom, so a solve first goes without them. Where its moves exceed a budget, the
//! most important are kept, every other server that the budget counts is pinned, and the region is solved
//! again around them: idle servers elsewhere may serve as well. What planned maintenance needs of a
//! reservation is kept in the same way. The last pass pins everything that is not known to fit, so it always does.

use crate::config::SolverConfig;
use crate::env::SolveEnv;
use crate::group_limits::GroupLimits;
use crate::model::Model;
use crate::params::PARAMS;
use crate::report::HeldBack;
use crate::solve::{SolveOutcome, assign};
use fleet::audit::{Maintained, worse_ahead};
use fleet::{BudgetScope, Move, MoveBudget, RegionSnapshot, ReservationIx, Targets};
use std::collections::{BTreeMap, BTreeSet};

/// Assigns every available server within the snapshot's move budgets; never fails: in the worst case the
/// targets are today's.
///
/// Give it [`RegionSnapshot::ahead`]: pinned servers stay. Ended by gap or stall, the same snapshot,
/// config and version give the same targets for any number of threads; ended by the deadline they
/// may differ.
pub fn solve(snapshot: &RegionSnapshot, config: &SolverConfig, env: &SolveEnv) -> SolveOutcome {
    solve_within(snapshot, &GroupLimits::default(), config, env)
}

/// [`solve`] within limits of groups: none that holds today is exceeded, none that is exceeded today is exceeded by more,
/// and these are mended as far as no reservation becomes short.
pub fn solve_within(
    snapshot: &RegionSnapshot,
    limits: &GroupLimits,
    config: &SolverConfig,
    env: &SolveEnv,
) -> SolveOutcome {
    let limited = !snapshot.move_budgets.is_empty()
        || snapshot.maintained_ahead().iter().any(|state| *state > Maintained::InService);
    if !limited {
        return assign(snapshot, limits, config, env);
    }
    let mut pinned = snapshot.clone();
    let mut held = HeldBack::default();
    let mut warm = None;
    for pass in 0.. {
        let told = |targets: &Targets| {
            if judge(snapshot, limits, targets).fits() {
                (env.on_incumbent)(targets);
            }
        };
        let now = (env.elapsed)();
        let deadline = env.deadline.map(|end| {
            let left = end.saturating_sub(now);
            now + if pass <= PARAMS.after.budget_partial_passes {
                left.mul_f64(PARAMS.time.budget_pass_share)
            } else {
                left
            }
        });
        let env =
            SolveEnv { deadline, on_incumbent: &told, warm: warm.as_ref().or(env.warm), ..*env };
        let mut outcome = assign(&pinned, limits, config, &env);
        let verdict = judge(snapshot, limits, &outcome.targets);
        if verdict.fits() || pass >= PARAMS.after.budget_last_pass {
            held.passes = pass;
            outcome.stats.held_back = held;
            return outcome;
        }
        if pass == 0 {
            held.moves = verdict.rejected;
        }
        held.pinned += pin(&mut pinned, &verdict, pass);
        warm = Some(outcome.warm);
    }
    unreachable!("the last pass returns")
}

/// What of some targets can be carried out.
struct Verdict {
    /// Servers whose move fits every budget.
    kept: BTreeSet<usize>,
    /// Moves that do not.
    rejected: usize,
    /// Budgets that had no room for one of them.
    exhausted: Vec<MoveBudget>,
    /// Reservations of which maintenance would leave less than is promised.
    worse: Vec<ReservationIx>,
}

impl Verdict {
    fn fits(&self) -> bool {
        self.rejected == 0 && self.worse.is_empty()
    }
}

/// Admits moves to the budgets, the most important first: those to reservations that are short today, by
/// priority, then those that leave limits which are exceeded today, then those to other reservations, then those that
/// only free a server.
fn judge(snapshot: &RegionSnapshot, limits: &GroupLimits, targets: &Targets) -> Verdict {
    let mut verdict = Verdict {
        kept: BTreeSet::new(),
        rejected: 0,
        exhausted: Vec::new(),
        worse: worse_ahead(snapshot, targets),
    };
    if snapshot.move_budgets.is_empty() {
        return verdict;
    }
    let mut moves: Vec<Move> = targets.diff(snapshot).collect();
    let mut budgets = Budgets::new(snapshot);
    if !budgets.all_fit(snapshot, &moves) {
        let short: Vec<bool> =
            Model::new(snapshot).terms.iter().map(|term| term.short_max > 0).collect();
        let exceeded = limits.exceeded(snapshot);
        moves.sort_by_key(|of| {
            let rank = match of.target {
                Some(target) if short[target.ix()] => 0,
                _ if exceeded.is_left_by(of) => 1,
                Some(_) => 2,
                None => 3,
            };
            let priority = of.target.map(|ix| snapshot.reservations[ix.ix()].priority);
            (rank, priority, of.in_use, of.server)
        });
    }
    let mut exhausted = BTreeSet::new();
    for of in &moves {
        match budgets.take(snapshot, of) {
            Ok(()) => {
                verdict.kept.insert(of.server.ix());
            }
            Err(budget) => {
                verdict.rejected += 1;
                exhausted.insert(budget);
            }
        }
    }
    verdict.exhausted = exhausted.into_iter().map(|at| snapshot.move_budgets[at]).collect();
    verdict
}

/// What is left of each budget.
struct Budgets {
    left: Vec<u64>,
    at: BTreeMap<(BudgetScope, Option<bool>), usize>,
}

impl Budgets {
    fn new(snapshot: &RegionSnapshot) -> Budgets {
        let budgets = snapshot.move_budgets.iter();
        Budgets {
            left: budgets.clone().map(|budget| budget.moves).collect(),
            at: budgets.enumerate().map(|(at, of)| ((of.scope, of.in_use), at)).collect(),
        }
    }

    /// The budgets that count a move.
    fn of(&self, snapshot: &RegionSnapshot, of: &Move) -> impl Iterator<Item = usize> {
        let server = &snapshot.servers[of.server.ix()];
        let scopes = [
            Some(BudgetScope::Server(of.server)),
            of.source.map(BudgetScope::Reservation),
            Some(BudgetScope::Rack(server.rack)),
            Some(BudgetScope::Msb(snapshot.msb_of(server))),
            Some(BudgetScope::Region),
        ];
        let uses = [Some(of.in_use), None];
        let keys = scopes.into_iter().flatten().flat_map(move |scope| uses.map(|of| (scope, of)));
        keys.filter_map(|key| self.at.get(&key).copied())
    }

    fn all_fit(&self, snapshot: &RegionSnapshot, moves: &[Move]) -> bool {
        let mut left = self.left.clone();
        moves.iter().all(|of| {
            self.of(snapshot, of).all(|at| match left[at].checked_sub(1) {
                Some(rest) => {
                    left[at] = rest;
                    true
                }
                None => false,
            })
        })
    }

    /// Counts a move; the first budget that has no room for it otherwise.
    fn take(&mut self, snapshot: &RegionSnapshot, of: &Move) -> Result<(), usize> {
        let at: Vec<usize> = self.of(snapshot, of).collect();
        if let Some(full) = at.iter().find(|at| self.left[**at] == 0) {
            return Err(*full);
        }
        for at in at {
            self.left[at] -= 1;
        }
        Ok(())
    }
}

/// Pins what must stay after this pass; gives how many servers that is.
fn pin(snapshot: &mut RegionSnapshot, verdict: &Verdict, pass: usize) -> usize {
    let stays: Vec<bool> = (snapshot.servers.iter().enumerate())
        .map(|(at, server)| {
            let kept = verdict.kept.contains(&at);
            let source = server.holder();
            let move_of = Move {
                server: fleet::ServerIx::new(at),
                source,
                target: None,
                in_use: server.in_use,
            };
            let counts = |budget: &MoveBudget| budget.counts(snapshot, &move_of);
            let exhausted = !kept
                && !verdict.exhausted.is_empty()
                && (pass >= PARAMS.after.budget_partial_passes
                    || verdict.exhausted.iter().any(counts));
            exhausted
                || source.is_some_and(|of| verdict.worse.contains(&of))
                || pass + 1 == PARAMS.after.budget_last_pass
        })
        .collect();
    let mut count = 0;
    for (server, stays) in snapshot.servers.iter_mut().zip(stays) {
        count += usize::from(stays && !server.pinned && server.available);
        server.pinned |= stays;
    }
    count
}
