//! Figures 7, 8, 9 and 16: a region followed hour by hour, one solve each.

use super::ours::{self, How, Ours};
use super::{Beside, Figure, Figures, Plot, Series, Unit, mean, quantile};
use anyhow::{Context, Result};
use fleet::{RegionSnapshot, ReservationName, ServerName, Targets};
use ras::hour::{self, Beginning, Pace};
use report::number::{count, decimal, percent, seconds};
use report::thrash::{Moved, thrash};
use tempfile::TempDir;

/// The steps of RAS figure 8.
const STEPS: [&str; 4] = ["ras build", "solver build", "initial state", "mip"];

/// Moves of one server further apart than this are no thrash.
const THRASH_WINDOW_HOURS: u32 = 24;

/// One solve of the chain.
struct Hour {
    seconds: f64,
    /// Seconds of [`STEPS`], by phase.
    steps: [[f64; 4]; 2],
    gap_in_use_moves: f64,
    moves_in_use: usize,
    moves_idle: usize,
    acquired: usize,
    moved: Vec<Moved<ServerName, ReservationName>>,
    servers: usize,
    short_servers: usize,
    cut: bool,
    beside: Option<Nothing>,
}

/// A warm solve beside one from nothing that may end at the same gap.
struct Nothing {
    /// Seconds of the warm one over those of the other: of the whole program, and of the solve alone.
    ratio: f64,
    ratio_of_solves: f64,
    /// Seconds of the other.
    seconds: f64,
    /// Whether it came as near.
    as_near: bool,
}

/// Makes a figure of the hours; the text says how they came about.
type Make = fn(&[Hour], String) -> Figure;

/// Follows a region. `warm`: each hour starts from what the one before left, and is solved from
/// nothing as well. `say`: told of each hour.
///
/// # Errors
/// If a solve fails, or the run is interrupted.
pub fn figures(
    first: &RegionSnapshot,
    hours: u32,
    pace: &Pace,
    how: &How,
    warm: bool,
    wanted: &Figures,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let beginning = Beginning::of(first);
    let mut region = first.clone();
    let (mut done, mut last, mut previous) = (Vec::new(), None::<TempDir>, None);
    for hour in 1..=hours {
        say(&format!("figures 7, 8, 9 and 16: hour {hour} of {hours}"));
        let doing = || format!("hour {hour}");
        let here = ours::folder()?;
        let before = last.as_ref().map(TempDir::path);
        let solved = ours::solve_in(here.path(), before, &region, how).with_context(doing)?;
        let beside = match &last {
            Some(_) => Some(from_nothing(&region, &solved, how).with_context(doing)?),
            None => None,
        };
        last = Some(here).filter(|_| warm);
        let step = |phase: u8| STEPS.map(|step| solved.step_seconds(phase, step));
        let moves = &solved.audit.moves;
        done.push(Hour {
            seconds: solved.seconds(),
            steps: [step(1), step(2)],
            gap_in_use_moves: solved.report.phase1.gap_in_use_moves.unwrap_or(f64::NAN),
            moves_in_use: moves.in_use,
            moves_idle: moves.idle,
            acquired: moves.acquired,
            moved: moved(previous.as_ref(), &region, &solved.targets, hour),
            servers: region.servers.len(),
            short_servers: solved.audit.shortfall_servers,
            cut: solved.was_cut(),
            beside,
        });
        let parts = hour::next_hour(&region, &solved.targets, &beginning, hour, pace);
        let next = RegionSnapshot::new(parts)
            .with_context(|| format!("the region after hour {hour} is broken (a bug)"))?;
        previous = Some(std::mem::replace(&mut region, next));
    }
    let start = if warm { ", each from what the one before left," } else { "" };
    let made = format!(
        "{hours} hourly solves{start} of {} servers in {} reservations; each hour {} of the requests were \
         resized by 5 to 20 % and {} of the servers failed for three hours. Containers follow the requests.",
        first.servers.len(),
        first.reservations.len(),
        percent(pace.resized),
        percent(pace.failed)
    );
    let all: [(u8, Make); 4] = [(7, times), (8, steps), (9, gaps), (16, moves)];
    let wanted = all.into_iter().filter(|(number, _)| wanted.any(&[*number]));
    Ok(wanted.map(|(_, figure)| figure(&done, made.clone())).collect())
}

/// Moves of one hour. A move has a cause if its server failed or returned since the hour before, or
/// the request of either holder was resized. Servers keep their order from hour to hour.
fn moved(
    previous: Option<&RegionSnapshot>,
    region: &RegionSnapshot,
    targets: &Targets,
    hour: u32,
) -> Vec<Moved<ServerName, ReservationName>> {
    let changed = |step: &fleet::Move| {
        let Some(previous) = previous else { return false };
        let resized = |holder: Option<fleet::ReservationIx>| {
            let now = holder.map(|ix| &region.reservations[ix.ix()]);
            now.is_some_and(|now| {
                let before = previous.reservation(&now.id);
                before.is_none_or(|ix| previous.reservations[ix.ix()].capacity != now.capacity)
            })
        };
        let at = step.server.ix();
        previous.servers[at].available != region.servers[at].available
            || resized(step.source)
            || resized(step.target)
    };
    let holder =
        |ix: Option<fleet::ReservationIx>| ix.map(|ix| region.reservations[ix.ix()].id.clone());
    let steps = targets.diff(region).map(|step| Moved {
        server: region.servers[step.server.ix()].id.clone(),
        hour,
        from: holder(step.source),
        to: holder(step.target),
        caused: changed(&step),
    });
    steps.collect()
}

/// Solves a region from nothing until it is as near as a warm solve came.
fn from_nothing(region: &RegionSnapshot, warm: &Ours, how: &How) -> Result<Nothing> {
    let gap = |of: &Ours| of.report.phase1.gap.unwrap_or(f64::NAN);
    let other = ours::solve(region, &How { gap: Some(gap(warm)), ..how.clone() })?;
    Ok(Nothing {
        ratio: warm.seconds() / other.seconds(),
        ratio_of_solves: warm.solve_seconds() / other.solve_seconds(),
        seconds: other.seconds(),
        as_near: gap(&other) <= gap(warm) + 1e-9,
    })
}

fn hours_of(done: &[Hour]) -> Vec<f64> {
    (1..=done.len()).map(|hour| hour as f64).collect()
}

fn series(name: &str, done: &[Hour], value: impl Fn(&Hour) -> f64) -> Series {
    Series { name: name.to_owned(), values: done.iter().map(value).collect() }
}

fn row(what: &'static str, paper: &'static str, here: String) -> Beside {
    Beside { what, paper, here }
}

fn times(done: &[Hour], made: String) -> Figure {
    let all: Vec<f64> = done.iter().map(|hour| hour.seconds).collect();
    let at = |share: f64| quantile(&all, share).unwrap_or(f64::NAN);
    let (mean, p95, p99) = (mean(&all), at(0.95), at(0.99));
    let (beside, mut plots) = warm_times(done);
    plots.push(Plot::Points {
        across: "hour",
        at: hours_of(done),
        unit: Unit::Seconds,
        series: vec![series("seconds of a solve", done, |hour| hour.seconds)],
    });
    Figure {
        number: 7,
        title: "Allocation time",
        made,
        rows: [
            vec![
                row("seconds, mean", "1,800 s (several hundred thousand servers)", seconds(mean)),
                row("seconds, 95 %", "2,200 s", seconds(p95)),
                row("seconds, 99 %", "2,450 s", seconds(p99)),
                row(
                    "seconds, 95 % and 99 % over mean",
                    "1.2 and 1.4",
                    format!("{} and {}", decimal(p95 / mean), decimal(p99 / mean)),
                ),
            ],
            beside,
        ]
        .concat(),
        plots,
    }
}

/// Of hours that began where the one before ended: what that saved.
fn warm_times(done: &[Hour]) -> (Vec<Beside>, Vec<Plot>) {
    let both: Vec<(f64, &Hour, &Nothing)> = (1_u32..)
        .zip(done)
        .filter_map(|(number, hour)| Some((f64::from(number), hour, hour.beside.as_ref()?)))
        .collect();
    if both.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let quantiles = |ratio: fn(&Nothing) -> f64| {
        let all: Vec<f64> = both.iter().map(|(_, _, nothing)| ratio(nothing)).collect();
        let at = |share: f64| quantile(&all, share).map_or_else(|| "-".to_owned(), decimal);
        format!("{}; {}; {}", at(0.5), at(0.9), at(1.0))
    };
    let near = both.iter().filter(|(_, _, nothing)| nothing.as_near).count();
    let rows = vec![
        row(
            "seconds of warm solves over those from nothing to the same gap: half; 90 %; all within",
            "-",
            quantiles(|nothing| nothing.ratio),
        ),
        row(
            "the same seconds without reading, audit and writing",
            "-",
            quantiles(|nothing| nothing.ratio_of_solves),
        ),
        row("solves from nothing that came as near", "-", format!("{near} of {}", both.len())),
    ];
    let values = |name: &str, of: fn(&Hour, &Nothing) -> f64| Series {
        name: name.to_owned(),
        values: both.iter().map(|(_, hour, nothing)| of(hour, nothing)).collect(),
    };
    let plot = Plot::Points {
        across: "hour",
        at: both.iter().map(|(number, _, _)| *number).collect(),
        unit: Unit::Seconds,
        series: vec![
            values("seconds of a warm solve", |hour, _| hour.seconds),
            values("seconds from nothing to the same gap", |_, nothing| nothing.seconds),
        ],
    };
    (rows, vec![plot])
}

fn steps(done: &[Hour], made: String) -> Figure {
    let sum = |phase: usize, step: usize| done.iter().map(|h| h.steps[phase][step]).sum::<f64>();
    let phase = |phase: usize| (0..STEPS.len()).map(|step| sum(phase, step)).sum::<f64>();
    let share =
        |part: f64, whole: f64| if whole > 0.0 { percent(part / whole) } else { "-".into() };
    let parts = STEPS.iter().enumerate().map(|(step, name)| Series {
        name: format!("seconds of {name}"),
        values: (0..2).map(|phase| sum(phase, step) / done.len().max(1) as f64).collect(),
    });
    Figure {
        number: 8,
        title: "Time by step",
        made,
        rows: vec![
            row("seconds: phase 1 of all", "60 %", share(phase(0), phase(0) + phase(1))),
            row("seconds: MIP of phase 1", "67 %", share(sum(0, 3), phase(0))),
            row(
                "seconds: MIP of phase 2 (here it has no other step)",
                "19 %",
                share(sum(1, 3), phase(1)),
            ),
        ],
        plots: vec![Plot::Stacked {
            labels: vec!["phase 1".to_owned(), "phase 2".to_owned()],
            unit: Unit::Seconds,
            series: parts.collect(),
        }],
    }
}

fn gaps(done: &[Hour], made: String) -> Figure {
    let all: Vec<f64> =
        done.iter().map(|hour| hour.gap_in_use_moves).filter(|gap| gap.is_finite()).collect();
    let at = |share: f64| quantile(&all, share).map_or_else(|| "-".to_owned(), decimal);
    let within = all.iter().filter(|gap| **gap <= 200.0).count();
    let cut = done.iter().filter(|hour| hour.cut).count();
    Figure {
        number: 9,
        title: "Gap of phase 1 in in-use moves",
        made,
        rows: vec![
            row(
                "solves within 200 in-use moves of the optimum",
                "90 %",
                percent(within as f64 / done.len().max(1) as f64),
            ),
            row(
                "gap that half and 90 % of the solves are within",
                "-; 200",
                format!("{}; {}", at(0.5), at(0.9)),
            ),
            row("solves that the deadline ended", "-", format!("{cut} of {}", done.len())),
        ],
        plots: vec![Plot::Points {
            across: "hour",
            at: hours_of(done),
            unit: Unit::Plain,
            series: vec![series("proved gap, in moves of servers in use", done, |hour| {
                hour.gap_in_use_moves
            })],
        }],
    }
}

fn moves(done: &[Hour], made: String) -> Figure {
    let sum = |count: fn(&Hour) -> usize| done.iter().map(count).sum::<usize>() as f64;
    let (in_use, idle) = (sum(|hour| hour.moves_in_use), sum(|hour| hour.moves_idle));
    let acquired = sum(|hour| hour.acquired);
    let ratio = |unused: f64| {
        if in_use > 0.0 {
            format!("{} : 1", decimal(unused / in_use))
        } else {
            "none in use".into()
        }
    };
    let share = |count: usize, hour: &Hour| count as f64 / hour.servers.max(1) as f64;
    let short = done.iter().map(|hour| hour.short_servers).max().unwrap_or(0);
    let moved: Vec<Moved<ServerName, ReservationName>> =
        done.iter().flat_map(|hour| hour.moved.clone()).collect();
    let servers = done.iter().map(|hour| hour.servers).max().unwrap_or(0);
    let hours = u32::try_from(done.len()).unwrap_or(u32::MAX);
    let thrashed = thrash(&moved, THRASH_WINDOW_HOURS, servers, hours);
    Figure {
        number: 16,
        title: "Moves by hour",
        made,
        rows: vec![
            row("unused to in-use servers moved", "10.6 : 1", ratio(idle + acquired)),
            row("the same without free servers taken up", "-", ratio(idle)),
            row(
                "moved in all: in use, idle, free",
                "-",
                format!("{}, {}, {}", decimal(in_use), decimal(idle), decimal(acquired)),
            ),
            row(
                "thrash: moves beyond the net difference in a day, of 1,000 servers and hour",
                "-",
                format!(
                    "{} ({} of {} moves without a cause)",
                    decimal(thrashed.per_thousand_hour),
                    thrashed.excess,
                    thrashed.moves
                ),
            ),
            row("servers short in the worst hour, at least", "-", count(short)),
        ],
        plots: vec![Plot::Points {
            across: "hour",
            at: hours_of(done),
            unit: Unit::Share,
            series: vec![
                series("unused servers moved, of all", done, |hour| {
                    share(hour.moves_idle + hour.acquired, hour)
                }),
                series("servers in use moved, of all", done, |hour| share(hour.moves_in_use, hour)),
            ],
        }],
    }
}
