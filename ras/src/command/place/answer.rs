//! What is done with an assignment: its moves are put into phases, both are checked, and file, page and text are
//! written.

use super::running::{Ended, INTERVAL};
use super::text::{PAGE, Text};
use crate::context::Context;
use crate::exit::Verdict;
use crate::number;
use crate::results::write_text;
use crate::terminal::{Spinner, say};
use anyhow::Result;
use datasets::cluster::{ConsolidationFile, PlacementFile, ScheduleFile};
use fleet::number::counted;
use placement::{Cluster, Found, Schedule, ScheduleFlaw, audit, audit_schedule, schedule};
use report::{Emptied, PlacementPage};
use std::path::Path;
use std::time::Instant;

/// An assignment, and how it was found.
pub(super) struct Answer<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) found: &'a Found,
    pub(super) ended: Ended,
    pub(super) consolidation: Option<ConsolidationFile<'a>>,
}

impl Answer<'_> {
    /// Writes the folder, and prints the answer.
    pub(super) fn write(self, out: &Path, context: &Context) -> Result<Verdict> {
        let Answer { cluster, found, ended, consolidation } = self;
        let emptied = consolidation.as_ref().map(|of| Emptied {
            nodes: of.emptied.len(),
            bound: of.bound,
            budget: of.budget,
        });
        let began = Instant::now();
        let (phases, flaws) = phases(cluster, found, context, began);
        let phases_file =
            ScheduleFile::new(cluster, &phases, &flaws, began.elapsed().as_secs_f64());
        let file = PlacementFile {
            consolidation,
            ..PlacementFile::new(cluster, found, phases_file, ended.seconds)
        };
        file.write(out)?;
        let today = audit(cluster, &cluster.today());
        let page = PlacementPage {
            cluster,
            found,
            schedule: &phases,
            flaws: &flaws,
            emptied,
            broken_today: &today,
            history: &ended.history,
            seconds: ended.seconds,
        };
        write_text(&out.join(PAGE), &report::render_placement(&page))?;
        let text = Text { cluster, today: &today, found, file: &file, out };
        context.answer(|| text.text(), &file)?;
        Ok(Verdict::fine_if(found.violations.is_empty() && flaws.is_empty()))
    }
}

/// The moves in phases, and what the audit finds wrong with them.
fn phases(
    cluster: &Cluster,
    found: &Found,
    context: &Context,
    began: Instant,
) -> (Schedule, Vec<ScheduleFlaw>) {
    let quiet = context.global.quiet;
    let line = if quiet { None } else { Spinner::new("{spinner} {wide_msg} {elapsed}") };
    let tell = |step: &str| {
        if let Some(line) = &line {
            line.set(step);
        }
    };
    tell("moves are put into phases");
    let made = schedule(cluster, &found.assignment);
    tell("phases are checked");
    let flaws = audit_schedule(cluster, &found.assignment, &made);
    match &line {
        Some(line) => line.finish(),
        None if !quiet && began.elapsed() >= INTERVAL => say(&format!(
            "schedule of {} in {}",
            counted(made.phases.len(), "phase"),
            number::seconds(began.elapsed().as_secs_f64())
        )),
        None => {}
    }
    (made, flaws)
}
