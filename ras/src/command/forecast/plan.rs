//! `ras forecast plan`: the regions of the coming weeks, each solved.

mod answer;
mod help;
mod input;
mod scenario;

use super::super::solve::{settings, solve_to};
use crate::cli::PlanForecast;
use crate::context::Context;
use crate::exit::Verdict;
use crate::interrupt;
use crate::progress::Reporter;
use crate::results::{read_snapshot, write_text};
use crate::settings::Settings;
use answer::{Answer, Case, Short, page, text};
use anyhow::{Context as _, Result};
use fleet::explain::Explainer;
use fleet::{Name, RegionSnapshot, ReservationIx, Rru, SnapshotParts};
use std::path::Path;
use std::time::{Duration, Instant};

/// The page of the answer.
const PAGE: &str = "plan.html";
/// Time of each solve, if none is given for all.
const SOLVE: Duration = Duration::from_secs(30);

pub(super) fn run(options: &PlanForecast, context: &Context) -> Result<Verdict> {
    let own = settings(&options.options)?;
    let region = own.overrides.apply(read_snapshot(&options.snapshot)?)?;
    let input = input::read(options, &region)?;
    let weeks = usize::from(input.weeks);
    let solves = weeks * (1 + input.lost.len());
    let reporter = Reporter::new(context.global.quiet, context.began, own.deadline);
    let mut runs = Runs {
        own: &own,
        context,
        reporter: &reporter,
        scratch: tempfile::tempdir().context("making a folder for results")?,
        all: solves,
        done: 0,
    };
    let mut answer = Answer::new(&region, options, &input);
    let mut before = scenario::quiet(region.to_parts());
    for week in 1..=weeks {
        let parts = scenario::week(&region, before, &input.scenario, week);
        let Some((case, after)) = runs.solve(parts.clone(), week, None)? else { break };
        answer.cases.push(case);
        for msb in &input.lost {
            let without = scenario::without(parts.clone(), msb);
            let Some((case, _)) = runs.solve(without, week, Some(msb))? else { break };
            answer.cases.push(case);
        }
        before = after;
    }
    reporter.finish();
    answer.solves_left = runs.all - runs.done;
    answer.conclude();
    if let Some(folder) = &options.out {
        write_text(&folder.join(PAGE), &page(&answer, &options.snapshot))?;
    }
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::fine_if(answer.reservations.is_empty()))
}

/// The solves of a plan.
struct Runs<'a> {
    own: &'a Settings,
    context: &'a Context,
    reporter: &'a Reporter,
    scratch: tempfile::TempDir,
    /// How many there are, and how many are done.
    all: usize,
    done: usize,
}

impl Runs<'_> {
    /// Solves a week; nothing after Ctrl-C.
    fn solve(
        &mut self,
        parts: SnapshotParts,
        week: usize,
        lost: Option<&Name>,
    ) -> Result<Option<(Case, SnapshotParts)>> {
        if interrupt::asked() {
            return Ok(None);
        }
        let without = lost.map_or_else(String::new, |msb| format!(", without {msb}"));
        let name = format!("week {week}{without}");
        self.reporter.note(&format!("solve {} of {}: {name}", self.done + 1, self.all));
        let region = RegionSnapshot::new(parts).with_context(|| format!("the region of {name}"))?;
        let deadline = match self.own.deadline {
            // An equal share of what is left.
            Some(all) => {
                let left = all.saturating_sub(self.context.began.elapsed());
                left / u32::try_from(self.all - self.done).unwrap_or(u32::MAX).max(1)
            }
            None => SOLVE,
        };
        let settings = Settings { deadline: Some(deadline), ..self.own.clone() };
        let mut global = self.context.global.clone();
        global.quiet = true;
        let quiet = Context { began: Instant::now(), global };
        let scratch: &Path = self.scratch.path();
        let (region, solved) = solve_to(region, settings, scratch, None, &quiet)
            .with_context(|| format!("solving {name}"))?;
        self.done += 1;
        let after = solved.targets.apply(&region);
        let explainer = Explainer::new(&region, &solved.targets);
        let mut short = Vec::new();
        for (position, row) in solved.audit.reservations.iter().enumerate() {
            if row.holding.shortfall == Rru::ZERO {
                continue;
            }
            let ix = ReservationIx::new(position);
            let Some(shortfall) = explainer.shortfall_of(ix) else { continue };
            short.push(Short {
                reservation: row.reservation_id.to_string(),
                owner: row.owner.to_string(),
                requested_rru: row.capacity.to_f64(),
                missing_rru: row.holding.shortfall.to_f64(),
                missing_now_rru: (row.capacity - row.holding.assigned).or_zero().to_f64(),
                reason: shortfall.reason,
                sentence: shortfall.sentence.clone(),
                helps: help::helps(&region, ix, row.holding.shortfall, shortfall.reason),
            });
        }
        let case = Case {
            week,
            date: region.taken_at.date_naive(),
            msb_lost: lost.map(ToString::to_string),
            servers: region.servers.iter().filter(|server| server.available).count(),
            requested_servers: requested_servers(&region),
            missing_servers: solved.audit.shortfall_servers,
            fewest: help::fewest(&region, &short),
            short,
        };
        Ok(Some((case, after)))
    }
}

/// The fewest servers that could meet all requests, each reservation alone.
fn requested_servers(region: &RegionSnapshot) -> usize {
    region.reservations.iter().map(|of| of.largest_value().servers_for(of.capacity)).sum()
}
