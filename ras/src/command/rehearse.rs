//! `ras snapshot rehearse`

use super::solve::{settings, solve_to};
use crate::cli::Rehearse;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number::{percent, seconds};
use crate::overrides::Overrides;
use crate::results::read_snapshot;
use crate::settings::Settings;
use crate::tables;
use anyhow::{Context as _, Result, ensure};
use broker::REPLACED_WITHIN;
use datasets::import::read_log;
use decisions::failure_replay::{
    Downtime, ReplayReport, ReplaySettings, ReservationReplay, replay,
};
use decisions::outage::StormGuard;
use fleet::{RegionSnapshot, Targets, UnavailabilityKind};
use online_mover::MoverSettings;
use report::number::quantile;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(super) fn run(options: &Rehearse, context: &Context) -> Result<Verdict> {
    let own = settings(&options.options)?;
    let guard = guard(options)?;
    let region = own.overrides.apply(read_snapshot(&options.snapshot)?)?;
    let (rows, others) =
        read_log(&options.events, &options.log.format(), &region).context("cannot read the log")?;
    ensure!(!rows.is_empty(), "the log has no server of the region");
    let shares = match &options.shared_buffer[..] {
        [] => vec![region.shared_buffer_fraction],
        shares => shares.to_vec(),
    };
    let mut drills = Vec::new();
    for share in shares {
        let overrides = Overrides { shared_buffer_fraction: Some(share), ..Overrides::default() };
        let region = overrides.apply(region.clone())?;
        let report = one(region, &rows, options, (&own, guard), context)?;
        drills.push((share, report));
    }
    let json = json!({
        "events": rows.len(), "events_of_other_servers": others,
        "drills": drills.iter().map(|(share, report)| to_json(*share, report)).collect::<Vec<_>>(),
    });
    context.answer(|| text(&drills, rows.len(), others), &json)?;
    Ok(Verdict::Fine)
}

/// The mover's settings from the settings file and the command line.
fn guard(options: &Rehearse) -> Result<(StormGuard, Duration)> {
    let file = crate::settings::file(options.options.config.as_deref())?.mover;
    let settle = options.settle.or(file.settle).unwrap_or(MoverSettings::default().settle);
    Ok((file.storm_guard()?, settle))
}

/// Solves the region, then replays failures of its servers.
fn one(
    region: RegionSnapshot,
    rows: &[fleet::UnavailabilityRow],
    options: &Rehearse,
    (own, (storm_guard, settle)): (&Settings, (StormGuard, Duration)),
    context: &Context,
) -> Result<ReplayReport> {
    let scratch = tempfile::tempdir().context("making a folder for results")?;
    // Each solve has a deadline of its own.
    let solved = |region: RegionSnapshot| -> Result<(RegionSnapshot, Targets)> {
        let quiet = Context { began: Instant::now(), global: context.global.clone() };
        let (region, solved) = solve_to(region, own.clone(), scratch.path(), None, &quiet)?;
        Ok((RegionSnapshot::clone(&region), solved.targets))
    };
    let (region, targets) = solved(region)?;
    let region =
        RegionSnapshot::new(targets.apply(&region)).context("the region after the solve")?;
    let downtimes: Vec<Downtime> = rows
        .iter()
        .filter_map(|row| {
            let server = region.server(&row.scope_id)?;
            let kind = UnavailabilityKind::parse(&row.kind)?;
            Some(Downtime { server, kind, from: row.started_at, until: row.ended_at })
        })
        .collect();
    let last = downtimes.iter().map(|of| of.until.unwrap_or(of.from).max(of.from)).max();
    let until = match options.span {
        Some(span) => region.taken_at + span,
        None => last.context("the log is empty")?,
    };
    let settings = ReplaySettings {
        until,
        settle,
        move_takes: options.move_takes,
        storm_guard,
        solve_every: options.solve_every.filter(|every| !every.is_zero()),
    };
    let mut failed = None;
    let report = replay(&region, &downtimes, &settings, |region| match solved(region.clone()) {
        Ok((_, targets)) => targets,
        Err(error) => {
            failed.get_or_insert(error);
            Targets::unchanged(region)
        }
    });
    match failed {
        Some(error) => Err(error.context("a solve of the drill")),
        None => Ok(report),
    }
}

/// What is missing, short and unguaranteed, of all reservations: the fewest server-hours worth that, because their
/// units of RRU may differ.
fn server_hours(report: &ReplayReport) -> [f64; 3] {
    let mut hours = [0.0; 3];
    for of in &report.reservations {
        let value = of.largest_value.to_f64();
        if value > 0.0 {
            let rru_hours = [of.missing, of.short, of.unguaranteed];
            hours.iter_mut().zip(rru_hours).for_each(|(sum, of)| *sum += of / value);
        }
    }
    hours
}

fn to_json(share: f64, report: &ReplayReport) -> Value {
    let [missing, short, unguaranteed] = server_hours(report);
    json!({
        "shared_buffer": share, "hours": report.hours, "failures": report.failures,
        "replaced": report.replaced, "recovered": report.recovered, "paid": report.paid,
        "owed": report.owed, "owed_most": report.owed_most, "returned": report.returned,
        "home": report.home,
        "storms": report.storms, "lost_msb_hours": report.lost_hours,
        "maintenance": report.maintenance, "solves": report.solves, "moved_by_solves": report.moved_by_solves,
        "spares": { "first": report.spares.0, "fewest": report.spares.1 },
        "seconds_to_replace": {
            "p50": quantile(&report.waits, 0.5), "p99": quantile(&report.waits, 0.99),
            "most": report.waits.last(),
        },
        "server_hours": { "missing": missing, "short": short, "unguaranteed": unguaranteed },
        "reservations": report.reservations.iter().map(|of| json!({
            "reservation": of.reservation, "capacity_rru": of.capacity.to_f64(), "failures": of.failures,
            "missing_rru_hours": of.missing, "short_rru_hours": of.short,
            "unguaranteed_rru_hours": of.unguaranteed,
        })).collect::<Vec<_>>(),
    })
}

fn text(drills: &[(f64, ReplayReport)], events: usize, others: usize) -> String {
    let Some((_, first)) = drills.first() else { return String::new() };
    let mut text = format!(
        "{events} events in {:.0} h; {others} more of servers outside the region\n\n",
        first.hours
    );
    let header = [
        "shared buffer",
        "spares",
        "fewest",
        "failures",
        "replaced",
        "recovered",
        "by solves",
        "owed",
        "storms",
        "lost",
        "p50",
        "p99",
        "most",
        "moves",
    ];
    let mut table = Table::new(&header, 0..14);
    let time = |t: Option<f64>| t.map_or("-".to_owned(), seconds);
    for (share, report) in drills {
        table.add_row([
            percent(*share),
            report.spares.0.to_string(),
            report.spares.1.to_string(),
            report.failures.to_string(),
            report.replaced.to_string(),
            report.recovered.to_string(),
            report.paid.to_string(),
            report.owed.to_string(),
            report.storms.to_string(),
            format!("{:.1} h", report.lost_hours),
            time(quantile(&report.waits, 0.5)),
            time(quantile(&report.waits, 0.99)),
            time(report.waits.last().copied()),
            (report.replaced + report.returned + report.home + report.moved_by_solves).to_string(),
        ]);
    }
    text.push_str(&table.to_string());
    text.push_str(
        "\n\nRRU-hours of failed servers without replacement; below the request; below the guarantee\nafter \
         any MSB loss. Of all reservations: in server-hours, at least:\n",
    );
    let names: Vec<String> = drills.iter().map(|(share, _)| percent(*share)).collect();
    let header: Vec<&str> =
        ["reservation"].into_iter().chain(names.iter().map(String::as_str)).collect();
    let mut table = Table::new(&header, 1..header.len());
    let cell = |[missing, short, unguaranteed]: [f64; 3]| {
        format!("{missing:.1} / {short:.1} / {unguaranteed:.1}")
    };
    for (place, row) in first.reservations.iter().enumerate() {
        let hours = |of: &ReservationReplay| [of.missing, of.short, of.unguaranteed];
        let cells = drills.iter().map(|(_, report)| cell(hours(&report.reservations[place])));
        table.add_row([row.reservation.to_string()].into_iter().chain(cells));
    }
    table.add_row(
        ["all".to_owned()].into_iter().chain(drills.iter().map(|(_, of)| cell(server_hours(of)))),
    );
    text.push_str(&table.to_string());
    if drills.len() == 1 && !first.waits.is_empty() {
        text.push_str(&format!("\n\nfrom failure to binding:\n{}", within(&first.waits)));
    }
    text
}

/// Histogram of waits, which are in ascending order.
fn within(waits: &[f64]) -> String {
    let bounds = REPLACED_WITHIN.map(|end| (end, waits.partition_point(|wait| *wait <= end)));
    tables::histogram(&bounds, waits.len())
}
