//! Each competitor on the same region with the same deadline, judged by the same code: the price by
//! the solver's model, everything else by the audit.

use super::ours::{self, How};
use super::{Region, Rival, quantile};
use anyhow::{Context, Result, ensure};
use async_solver::baselines::greedy;
use async_solver::baselines::mip::{self, MipResult};
use async_solver::{SolveEnv, SolverConfig};
use fleet::audit::{AuditReport, audit};
use fleet::{RegionSnapshot, Targets};
use ras::highs_process::HighsProcess;
use ras::interrupt;
use report::solve_report::Termination;
use serde::Serialize;
use std::time::Instant;

/// The raw model is not written down for more servers: it has a binary for each of them and each
/// reservation that could use it.
pub const RAW_SERVERS: usize = 2_000;

/// One competitor, over all runs.
#[derive(Clone, Debug, Serialize)]
pub struct Competitor {
    /// Who.
    pub rival: Rival,
    /// Seconds until its answer, the median of the runs.
    pub seconds: Option<f64>,
    /// Seconds until its answer, run by run.
    pub seconds_of_runs: Vec<f64>,
    /// Largest resident memory, in bytes: of the process that solves and HiGHS beside it, or of
    /// HiGHS alone where that is all that is measured; `None` where it was ended or takes none of
    /// its own.
    pub memory_bytes: Option<u64>,
    /// What its assignment costs in phase 1, shortfalls included.
    pub primal: Option<f64>,
    /// No assignment costs less: by its own account.
    pub dual_bound: Option<f64>,
    /// (today's assignment - best bound of the run) / best bound, in phase 1 without the price of
    /// shortfalls: how far the start is away. Below zero where too little is held. `None` where the
    /// bound is not positive.
    pub start: Option<f64>,
    /// The fewest servers that cover each shortfall of today's assignment.
    pub start_short_servers: usize,
    /// (primal - best bound of the run) / |primal|.
    pub gap: Option<f64>,
    /// (primal - best bound of the run) / M of servers in use (RAS section 4.1.2).
    pub gap_in_use_moves: Option<f64>,
    /// (expressions 1 to 4 - their proved bound) / expressions 1 to 4, by the solver's own account.
    pub whole_gap: Option<f64>,
    /// Servers with running containers that leave a reservation.
    pub moves_in_use: Option<usize>,
    /// Servers without that leave one.
    pub moves_idle: Option<usize>,
    /// The fewest servers that cover each shortfall.
    pub short_servers: Option<usize>,
    /// Sum of the largest MSB shares over the sum of capacities, of those with embedded buffer.
    pub largest_share: Option<f64>,
    /// Rules that the audit finds broken.
    pub broken_rules: Option<usize>,
    /// Columns, rows and non-zeros of its problem, where there is one.
    pub size: Option<(usize, usize, usize)>,
    /// Why there is no answer, or what there is to know of it.
    pub remark: Option<String>,
}

/// Today's assignment, which all begin with.
#[derive(Clone, Copy)]
struct Start {
    over_bound: Option<f64>,
    short_servers: usize,
}

/// One run of one competitor.
struct Run {
    seconds: f64,
    memory_bytes: Option<u64>,
    primal: Option<f64>,
    dual_bound: Option<f64>,
    whole_gap: Option<f64>,
    audit: Option<AuditReport>,
    size: Option<(usize, usize, usize)>,
    remark: Option<String>,
}

/// The result of all runs on a region.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The region.
    pub region: Region,
    /// The best bound that the solver or a branch and bound proved in this run.
    pub best_bound: Option<f64>,
    /// The competitors, in the order asked for.
    pub competitors: Vec<Competitor>,
}

/// Runs all competitors in turn, `runs` times. `say`: told what is being done.
///
/// # Errors
/// If a solve of ours fails, or the run is interrupted. A rival that finds nothing is not an error.
pub fn compare(
    (snapshot, region): (&RegionSnapshot, Region),
    rivals: &[Rival],
    runs: u32,
    how: &How,
    say: &dyn Fn(&str),
) -> Result<Compared> {
    let mut done: Vec<Vec<Run>> = rivals.iter().map(|_| Vec::new()).collect();
    for number in 1..=runs {
        for (&rival, done) in rivals.iter().zip(&mut done) {
            say(&format!("run {number} of {runs}: {}", rival.title()));
            done.push(run(snapshot, rival, how).with_context(|| rival.title().to_owned())?);
            ensure!(!interrupt::asked(), "asked to end");
        }
    }
    let proved = |(rival, runs): (&Rival, &Vec<Run>)| {
        // The interior point of the relaxation is near its optimum, on whichever side.
        let bounds = runs.iter().filter_map(|run| run.dual_bound);
        (*rival != Rival::Lp).then(|| bounds.fold(f64::NEG_INFINITY, f64::max))
    };
    let best = rivals.iter().zip(&done).filter_map(proved).fold(f64::NEG_INFINITY, f64::max);
    // If no rival proved a bound, the relaxation is the best there is.
    let relaxed = (rivals.iter().zip(&done))
        .filter(|(rival, _)| **rival == Rival::Lp)
        .flat_map(|(_, runs)| runs.iter().filter_map(|run| run.dual_bound));
    let best = if best.is_finite() { best } else { relaxed.fold(f64::NEG_INFINITY, f64::max) };
    let best_bound = Some(best).filter(|best| best.is_finite());
    let price = snapshot.weights.move_in_use;
    let today = audit(snapshot, &Targets::unchanged(snapshot));
    let start = Start {
        over_bound: best_bound
            .filter(|best| *best > 0.0)
            .map(|best| (today.objective.total - best) / best),
        short_servers: today.shortfall_servers,
    };
    let competitors = (rivals.iter().zip(done))
        .filter_map(|(&rival, runs)| summary(rival, runs, best_bound, start, price))
        .collect();
    Ok(Compared { region, best_bound, competitors })
}

fn run(snapshot: &RegionSnapshot, rival: Rival, how: &How) -> Result<Run> {
    match rival {
        Rival::Solver => solver(snapshot, how),
        Rival::Greedy => Ok(greedily(snapshot)),
        Rival::Raw if snapshot.servers.len() > RAW_SERVERS => Ok(Run {
            remark: Some(format!(
                "does not fit: {} servers, and the raw model is made for at most {RAW_SERVERS}",
                snapshot.servers.len()
            )),
            ..Run::nothing()
        }),
        Rival::Raw => with_highs(snapshot, how, mip::raw),
        Rival::Pooled => with_highs(snapshot, how, mip::pooled),
        Rival::Lp => with_highs(snapshot, how, mip::relaxation),
    }
}

impl Run {
    fn nothing() -> Run {
        Run {
            seconds: f64::NAN,
            memory_bytes: None,
            primal: None,
            dual_bound: None,
            whole_gap: None,
            audit: None,
            size: None,
            remark: None,
        }
    }
}

fn solver(snapshot: &RegionSnapshot, how: &How) -> Result<Run> {
    let ours = ours::solve(snapshot, how)?;
    Ok(Run {
        seconds: ours.solve_seconds(),
        memory_bytes: ours.memory_bytes(),
        primal: ours.report.phase1.primal,
        dual_bound: ours.report.phase1.dual_bound,
        size: (ours.report.sizes).map(|of| (of.phase1_columns, of.phase1_rows, of.phase1_nonzeros)),
        remark: ours.report.termination.map(|of| match of {
            Termination::Optimal => "within the gap asked for".to_owned(),
            Termination::Stalled => "several rounds brought nothing better".to_owned(),
            _ => "ended by the deadline".to_owned(),
        }),
        whole_gap: ours.report.whole.and_then(|whole| whole.gap),
        audit: Some(ours.audit),
    })
}

fn greedily(snapshot: &RegionSnapshot) -> Run {
    let began = Instant::now();
    let targets = greedy::assign(snapshot);
    let seconds = began.elapsed().as_secs_f64();
    Run { seconds, ..judged(snapshot, &targets) }
}

fn judged(snapshot: &RegionSnapshot, targets: &Targets) -> Run {
    Run {
        primal: Some(mip::primal(snapshot, targets)),
        audit: Some(audit(snapshot, targets)),
        ..Run::nothing()
    }
}

fn with_highs(
    snapshot: &RegionSnapshot,
    how: &How,
    solve: fn(&RegionSnapshot, &SolverConfig, &SolveEnv) -> MipResult,
) -> Result<Run> {
    let highs = HighsProcess::of_this_binary(how.highs_memory)
        .context("cannot find the program's own executable, to run HiGHS")?;
    let config = SolverConfig { seed: how.seed, threads: how.threads, ..SolverConfig::default() };
    let began = Instant::now();
    let env = SolveEnv {
        elapsed: &|| began.elapsed(),
        deadline: Some(how.deadline),
        interrupted: &interrupt::asked,
        progress: &|_| {},
        on_incumbent: &|_| {},
        backend: &highs,
        warm: None,
    };
    let answer = solve(snapshot, &config, &env);
    let seconds = answer.seconds.iter().sum();
    let remark = match (&answer.failure, answer.optimal) {
        (Some(failure), _) => Some(failure.clone()),
        (None, true) => Some("optimal by HiGHS' account".to_owned()),
        (None, false) => Some("ended by its time limit".to_owned()),
    };
    Ok(Run {
        seconds,
        memory_bytes: highs.peak_memory(),
        primal: answer.primal,
        dual_bound: answer.dual_bound,
        whole_gap: None,
        audit: answer.targets.map(|targets| audit(snapshot, &targets)),
        size: Some(answer.size),
        remark,
    })
}

/// The run with the median time stands for all.
fn summary(
    rival: Rival,
    mut runs: Vec<Run>,
    best_bound: Option<f64>,
    start: Start,
    move_price: f64,
) -> Option<Competitor> {
    let seconds_of_runs: Vec<f64> =
        runs.iter().map(|run| run.seconds).filter(|seconds| seconds.is_finite()).collect();
    let seconds = quantile(&seconds_of_runs, 0.5);
    let place = runs.iter().position(|run| Some(run.seconds) == seconds).unwrap_or(0);
    if runs.is_empty() {
        return None;
    }
    let run = runs.swap_remove(place);
    // Two bounds of floats may contradict each other in their last digits.
    let open = run.primal.zip(best_bound).map(|(primal, bound)| (primal - bound).max(0.0));
    let audit = run.audit.as_ref();
    Some(Competitor {
        rival,
        seconds,
        seconds_of_runs,
        memory_bytes: run.memory_bytes,
        primal: run.primal,
        dual_bound: run.dual_bound,
        start: start.over_bound,
        start_short_servers: start.short_servers,
        gap: run.primal.zip(open).map(|(primal, open)| {
            if open == 0.0 { 0.0 } else { open / primal.abs().max(f64::MIN_POSITIVE) }
        }),
        gap_in_use_moves: open.filter(|_| move_price > 0.0).map(|open| open / move_price),
        whole_gap: run.whole_gap,
        moves_in_use: audit.map(|audit| audit.moves.in_use),
        moves_idle: audit.map(|audit| audit.moves.idle),
        short_servers: audit.map(|audit| audit.shortfall_servers),
        largest_share: audit.map(|audit| audit.buffer.share),
        broken_rules: audit.map(|audit| audit.violations.len()),
        size: run.size,
        remark: run.remark,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_run_with_the_median_time_stands_for_all() {
        let run = |seconds, primal| Run { seconds, primal: Some(primal), ..Run::nothing() };
        let runs = vec![run(3.0, 30.0), run(1.0, 10.0), run(2.0, 20.0)];
        let start = Start { over_bound: Some(0.5), short_servers: 3 };
        let all = summary(Rival::Greedy, runs, Some(15.0), start, 10.0).expect("runs");
        assert_eq!((all.seconds, all.primal, all.start), (Some(2.0), Some(20.0), Some(0.5)));
        assert_eq!((all.gap, all.gap_in_use_moves), (Some(0.25), Some(0.5)));
        let nothing = summary(Rival::Raw, vec![Run::nothing()], None, start, 10.0).expect("a run");
        assert_eq!((nothing.seconds, nothing.gap), (None, None));
        assert!(summary(Rival::Raw, Vec::new(), None, start, 10.0).is_none());
    }
}
