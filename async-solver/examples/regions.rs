//! Solves fleets, and says how far the whole objective and phase 1 are above their bounds.
//!
//! `cargo run --release -p async-solver --example regions -- DATA DEADLINE [FLEET...]`
//!
//! `DATA` is the folder of real fleets; the names are those of [`fleets::parts`]. `DEADLINE` is `none`, seconds such as
//! `35`, or `35p`: processor seconds of two threads, 70 in all, so that what else a machine does changes little. HiGHS
//! then has its share of the deadline on the wall clock, as if it had a processor to itself. `highs:FLEET` solves the pooled
//! model of phase 1 with HiGHS instead, whose bound is of that; `lp:FLEET` solves its linear relaxation; `warm:FLEET` solves
//! the region first, and then again from the prices which that left.

mod fleets;

use async_solver::baselines::mip;
use async_solver::{SolveEnv, SolverConfig, solve};
use fleet::RegionSnapshot;
use fleet::audit::audit;
use fleets::{OnThreads, now, parts, processor_seconds};
use std::error::Error;
use std::path::Path;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, deadline, fleets @ ..] = &arguments[..] else {
        return Err("DATA DEADLINE [FLEET...]".into());
    };
    let (seconds, by_processor) = match deadline.strip_suffix('p') {
        Some(seconds) => (seconds, true),
        None => (deadline.as_str(), false),
    };
    let deadline = match seconds {
        "none" => None,
        seconds => Some(Duration::from_secs_f64(seconds.parse()?)),
    };
    println!(
        "| region | objective | bound | gap of phase 1 | whole gap | short | ended | s | processor s |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    for fleet in fleets {
        let (by_highs, name) = match fleet.strip_prefix("highs:") {
            Some(name) => (true, name),
            None => (false, fleet.as_str()),
        };
        let (by_lp, name) = match name.strip_prefix("lp:") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let (is_warm, name) = match name.strip_prefix("warm:") {
            Some(name) => (true, name),
            None => (false, name),
        };
        let Some(parts) = parts(name, Path::new(folder))? else {
            println!("{fleet}: not in {folder}");
            continue;
        };
        let region = RegionSnapshot::new(parts)?;
        let config = SolverConfig { threads: 2, ..SolverConfig::default() };
        let first = is_warm.then(|| solve(&region, &config, &SolveEnv::untimed(&OnThreads)).warm);
        let (began, before) = (now(), processor_seconds());
        let elapsed = || {
            if by_processor {
                Duration::from_secs_f64((processor_seconds() - before) / 2.0)
            } else {
                began.elapsed()
            }
        };
        let warm = first.as_ref();
        let env = SolveEnv { elapsed: &elapsed, deadline, warm, ..SolveEnv::untimed(&OnThreads) };
        let took = || (began.elapsed().as_secs_f64(), processor_seconds() - before);
        if by_lp {
            let found = mip::relaxation(&region, &config, &env);
            let (wall, processor) = took();
            let bound = found.dual_bound.ok_or("HiGHS solved no relaxation")?;
            println!("| {fleet} | | {bound:.2} | | | | relaxed | {wall:.1} | {processor:.1} |");
            continue;
        }
        if by_highs {
            let found = mip::pooled(&region, &config, &env);
            let (wall, processor) = took();
            let targets = found.targets.ok_or("HiGHS found nothing")?;
            let (audit, bound) = (audit(&region, &targets), found.dual_bound.unwrap_or_default());
            let gap = |of: f64| 100.0 * (of - bound) / of;
            let phase1 = found.primal.unwrap_or(f64::NAN);
            println!(
                "| {fleet} | {:.2} | {bound:.2} | {:.3} % | {:.3} % | {} | {} | {wall:.1} | {processor:.1} |",
                audit.objective.total,
                gap(phase1),
                gap(audit.objective.total),
                audit.short().count(),
                if found.optimal { "optimal" } else { "deadline" },
            );
            continue;
        }
        let solved = solve(&region, &config, &env);
        let (wall, processor) = took();
        let (stats, audit) = (&solved.stats, audit(&region, &solved.targets));
        println!(
            "| {fleet} | {:.2} | {:.2} | {:.3} % | {:.3} % | {} | {} | {wall:.1} | {processor:.1} |",
            stats.whole.primal,
            stats.whole.dual_bound,
            100.0 * stats.phase1.gap,
            100.0 * stats.whole.gap,
            audit.short().count(),
            stats.phase1.termination.as_str(),
        );
    }
    Ok(())
}
