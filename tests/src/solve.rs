//! The real solver with HiGHS in this process, and its answer audited.

use async_solver::backend::InProcess;
use async_solver::{SolveEnv, SolveStats, SolverConfig, solve as solve_region};
use fleet::audit::{AuditReport, audit};
use fleet::{RegionSnapshot, Targets};
use std::time::Duration;

/// A solve and what the audit says of it.
pub struct Solved {
    /// Who should hold each server.
    pub targets: Targets,
    /// The solver's own figures.
    pub stats: SolveStats,
    /// What the audit found.
    pub audit: AuditReport,
    /// Where the two disagree, and every rule the targets break: nothing, unless there is a bug.
    pub objections: Vec<String>,
}

/// How far apart two sums of the same prices may be, relative to the larger.
const TOLERANCE: f64 = 1e-6;

/// Solves a region to the end: no deadline, and time stands still, so that the same region has the
/// same answer on every machine.
pub fn solve(snapshot: &RegionSnapshot) -> Solved {
    let env = SolveEnv {
        elapsed: &|| Duration::ZERO,
        deadline: None,
        interrupted: &|| false,
        progress: &|_| {},
        on_incumbent: &|_| {},
        backend: &InProcess,
        warm: None,
    };
    let outcome = solve_region(snapshot, &SolverConfig::default(), &env);
    let audit = audit(snapshot, &outcome.targets);
    let mut objections: Vec<String> = audit.violations.iter().map(ToString::to_string).collect();
    let (said, found) = (outcome.stats.objective, audit.objective);
    for (name, said, found) in [
        ("stability", said.stability, found.stability),
        ("rack spread", said.rack_spread, found.rack_spread),
        ("MSB spread", said.msb_spread, found.msb_spread),
        ("buffer", said.buffer, found.buffer),
        ("total", said.total, found.total),
    ] {
        if (said - found).abs() > TOLERANCE * found.abs().max(1.0) {
            objections.push(format!("{name}: the solver says {said}, the audit finds {found}"));
        }
    }
    let phase1 = &outcome.stats.phase1;
    if phase1.dual_bound > phase1.primal + TOLERANCE * phase1.primal.abs().max(1.0) {
        objections.push(format!(
            "phase 1: the bound {} is above the value {}",
            phase1.dual_bound, phase1.primal
        ));
    }
    Solved { targets: outcome.targets, stats: outcome.stats, audit, objections }
}
