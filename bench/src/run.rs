//! One run: the region, its competitors, the figures, and the files that hold the results.

use crate::competitors::Compared;
use crate::machine::Machine;
use crate::months::{self, Course};
use crate::options::Options;
use crate::ours::How;
use crate::regions::GeneratedRegion;
use crate::{Bench, Figure, Region, Rival, competitors, hours, markdown, page, sizes, spread};
use anyhow::{Context as _, Result, ensure};
use chrono::{DateTime, Utc};
use clap::ValueEnum;
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;
use ras::churn;
use ras::cli::{FleetProfile, SolveOptions, State};
use ras::context::Context;
use ras::exit::Verdict;
use ras::hour::Pace;
use ras::interrupt;
use ras::layout::Table;
use ras::results::{read_snapshot, write_text};
use ras::settings::Settings;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Below this HiGHS is ended before it has read the problem.
const DEADLINE_LEAST: Duration = Duration::from_secs(1);

/// Share of the servers that the requests of figures 12 to 15 take, buffers included.
const ROOMY: f64 = 0.7;

/// Servers of a generated region.
const SERVERS: usize = 2_000;

/// Reservations of a generated region, where it is small.
const RESERVATIONS_LEAST: usize = 40;

/// Measures what the options say and writes `bench.json`, `bench.html` and `bench.md`.
///
/// # Errors
/// If the region cannot be read or made, a solve of ours fails, a file cannot be written, or Ctrl-C was pressed.
pub fn run(options: &Options, context: &Context) -> Result<Verdict> {
    ensure!(options.deadline >= DEADLINE_LEAST, "--deadline: at least 1s is needed");
    interrupt::listen()?;
    let how = how(options)?;
    let say = |text: &str| {
        if !context.global.quiet {
            eprintln!("{:7.1}s  {text}", context.began.elapsed().as_secs_f64());
        }
    };
    let rivals: Vec<Rival> = match &options.only[..] {
        [] => Rival::value_variants().to_vec(),
        only => only.iter().copied().collect::<BTreeSet<_>>().into_iter().collect(),
    };
    let mut bench = Bench {
        version: env!("CARGO_PKG_VERSION"),
        date: today().format("%Y-%m-%d").to_string(),
        machine: Machine::here(),
        deadline_seconds: options.deadline.as_secs_f64(),
        runs: options.runs,
        threads: how.threads,
        regions: Vec::new(),
        figures: Vec::new(),
    };
    let compare = |name: &str, region: &RegionSnapshot, origin: String| {
        // Not before there is something to measure.
        std::fs::create_dir_all(&options.out)
            .with_context(|| format!("--out: {} cannot be made", options.out.display()))?;
        say(&format!("{name}: {origin}"));
        let described = Region {
            name: name.to_owned(),
            origin,
            servers: region.servers.len(),
            reservations: region.reservations.len(),
            msbs: region.msbs.len(),
            seed: options.seed,
        };
        competitors::compare((region, described), &rivals, options.runs, &how, &say)
    };
    if let Some(regions) = &options.regions {
        for wanted in &regions.0 {
            let (region, origin) = generated(options, wanted, None, &say)?;
            bench.regions.push(compare(&wanted.to_string(), &region, origin)?);
            // A long run that is interrupted keeps the regions it has measured.
            write(options, &bench)?;
        }
    } else {
        let (region, origin) = region(options, &say)?;
        bench.regions.push(compare(&region.region, &region, origin)?);
        bench.figures = figures(options, &region, &how, &say)?;
        write(options, &bench)?;
    }
    let folder = options.out.display();
    context.answer(|| format!("{}\nwritten to {folder}", text(&bench)), &bench)?;
    Ok(Verdict::Fine)
}

/// Writes the files of a run.
fn write(options: &Options, bench: &Bench) -> Result<()> {
    let json = serde_json::to_string_pretty(bench).context("writing the answer")?;
    write_text(&options.out.join("bench.json"), &json)?;
    write_text(&options.out.join("bench.html"), &page::render(bench))?;
    write_text(&options.out.join("bench.md"), &markdown::render(bench))
}

/// The day that the figures are filed under.
fn today() -> DateTime<Utc> {
    #[expect(clippy::disallowed_methods, reason = "the date of a measurement, not of a region")]
    Utc::now()
}

fn of_solve(options: &Options) -> SolveOptions {
    SolveOptions {
        threads: options.threads,
        highs_memory: options.highs_memory,
        seed: Some(options.seed),
        ..SolveOptions::default()
    }
}

fn how(options: &Options) -> Result<How> {
    let settings = Settings::new(&of_solve(options))?;
    Ok(How {
        deadline: options.deadline,
        gap: options.gap,
        seed: options.seed,
        threads: settings.solver.threads,
        highs_memory: settings.highs_memory,
    })
}

/// The region of the competitors, if there is only one, and where it is from.
fn region(options: &Options, say: &dyn Fn(&str)) -> Result<(RegionSnapshot, String)> {
    if let Some(folder) = &options.snapshot {
        return Ok((read_snapshot(folder)?, format!("read from {}", folder.display())));
    }
    generated(options, &options.region(), None, say)
}

/// A generated region, and how it was made.
fn generated(
    options: &Options,
    wanted: &GeneratedRegion,
    utilisation: Option<f64>,
    say: &dyn Fn(&str),
) -> Result<(RegionSnapshot, String)> {
    let ras = wanted.profile == FleetProfile::Ras;
    let servers = wanted.servers.or(ras.then_some(SERVERS));
    let defaults = GenerateOptions::of(wanted.profile.into(), servers);
    let least = if ras { RESERVATIONS_LEAST.min(defaults.servers / 10) } else { 0 };
    let generated = GenerateOptions {
        reservations: wanted.reservations.unwrap_or(defaults.reservations.max(least)),
        msbs: wanted.msbs.unwrap_or(defaults.msbs),
        hardware_types: wanted.hardware_types.unwrap_or(defaults.hardware_types),
        seed: options.seed,
        state: wanted.state.generated(),
        utilisation: utilisation.unwrap_or(defaults.utilisation),
        ..defaults
    };
    let parts = generate(&generated).context("no region was generated")?;
    let region = RegionSnapshot::new(parts).context("the generated region is invalid (a bug)")?;
    let mut origin = format!("generated, {}, seed {}", generated.state.as_str(), options.seed);
    if let Some(share) = utilisation {
        origin.push_str(&format!(", requests taking {}", ras::number::percent(share)));
    }
    if wanted.state != State::Churned {
        return Ok((region, origin));
    }
    origin.push_str(&format!(", then {} hourly solves", churn::HOURS));
    let say = |text: &str| say(&format!("before the competitors: {text}"));
    let pace = Pace::ordinary(options.seed);
    let hourly = SolveOptions {
        deadline: Some(options.deadline),
        gap: Some(churn::GAP),
        ..of_solve(options)
    };
    let region = churn::churn(region, churn::HOURS, &pace, &Settings::new(&hourly)?, &say)?;
    Ok((Arc::unwrap_or_clone(region), origin))
}

fn figures(
    options: &Options,
    snapshot: &RegionSnapshot,
    how: &How,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let wanted = &options.figures;
    // The region of the options in another state; one that was read stays as it is.
    let in_state = |state: State, utilisation: Option<f64>| match options.snapshot {
        Some(_) => region(options, say),
        None => {
            let wanted = GeneratedRegion { state, ..options.region() };
            generated(options, &wanted, utilisation, say)
        }
    };
    let mut figures = Vec::new();
    let pace = Pace { resized: options.resized, failed: options.failed, seed: options.seed };
    // What a greedy allocator left is followed until it is spread.
    let follows = options.state == State::Greedy && wanted.any(&[12, 14]);
    ensure!(
        follows || options.in_use_moves.is_none(),
        "--in-use-moves is for --state greedy with figure 12 or 14"
    );
    if follows {
        let Options { hours, in_use_moves, .. } = *options;
        let course = Course { hours, pace, in_use_moves };
        figures.extend(months::figures(snapshot, &course, how, wanted, say)?);
    }
    let wanted = if follows { &wanted.without(&[12, 14, 16]) } else { wanted };
    if wanted.any(&[7, 8, 9, 16]) {
        // What happens to a region in a day happens to one that is held.
        let held = match options.state {
            State::Cold => in_state(State::Steady, None)?.0,
            State::Steady | State::Greedy | State::Churned => snapshot.clone(),
        };
        figures.extend(hours::figures(
            &held,
            options.hours,
            &pace,
            how,
            options.warm,
            wanted,
            say,
        )?);
    }
    if wanted.any(&[10, 11]) {
        let servers = snapshot.servers.len();
        figures.extend(sizes::figures(servers, options.state.generated(), how, wanted, say)?);
    }
    if wanted.any(&[12, 13, 14, 15]) {
        // Greedy assignment needs room: in a tight region it leaves reservations short.
        let (roomy, origin) = in_state(State::Cold, Some(ROOMY))?;
        figures.extend(spread::figures(&roomy, &origin, how, wanted, say)?);
    }
    figures.sort_by_key(|figure| figure.number);
    Ok(figures)
}

fn text(bench: &Bench) -> String {
    let mut text = String::new();
    for Compared { region, .. } in &bench.regions {
        text.push_str(&format!(
            "{}: {} servers, {} reservations, {} MSBs; {}\n",
            region.name, region.servers, region.reservations, region.msbs, region.origin,
        ));
    }
    text.push_str(&format!(
        "deadline {} s; {}\n\n",
        bench.deadline_seconds,
        bench.machine.sentence()
    ));
    // Remarks are sentences: they go below.
    let numbers = markdown::COLUMNS.len() - 1;
    let mut table = Table::new(&markdown::COLUMNS[..numbers], 2..numbers);
    let rows = markdown::rows(bench);
    for row in &rows {
        table.add_row(row[..numbers].iter().map(String::as_str));
    }
    text.push_str(&table.to_string());
    text.push('\n');
    for row in rows.iter().filter(|row| !row[numbers].is_empty()) {
        text.push_str(&format!("\n{}, {}: {}", row[0], row[1], row[numbers]));
    }
    if !bench.figures.is_empty() {
        let mut table = Table::new(&["figure", "what", "paper", "here"], 0..1);
        for figure in &bench.figures {
            for row in &figure.rows {
                let number = figure.number.to_string();
                let here = markdown::plain(&row.here);
                table.add_row([number, row.what.to_owned(), row.paper.to_owned(), here]);
            }
        }
        text.push_str(&format!("\n\n{table}"));
    }
    text.push('\n');
    text
}
