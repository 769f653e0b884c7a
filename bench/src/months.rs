//! Figures 12, 14 and 16 over weeks: what hourly solves make of a region that a greedy allocator filled.

use super::ours::{self, How};
use super::spread::{draws, unevenness};
use super::{Beside, Figure, Figures, Plot, Series, Unit};
use anyhow::{Context, Result};
use fleet::audit::audit;
use fleet::{MoveBudgetRow, RegionSnapshot, ReservationKind, SnapshotParts, Targets};
use ras::hour::{self, Beginning, Pace};
use report::number::{count, decimal, percent};
use tempfile::TempDir;

/// Makes a figure of the hours; the text says how they came about.
type Make = fn(&[Hour], String) -> Figure;

/// How a region is followed.
#[derive(Clone, Copy, Debug)]
pub struct Course {
    /// Hours, with one solve each.
    pub hours: u32,
    /// What happens in an hour.
    pub pace: Pace,
    /// The most servers in use that a solve may move; `None`: no limit.
    pub in_use_moves: Option<u32>,
}

/// The region after one solve; before the first, as it was.
struct Hour {
    /// The largest shares of one MSB, of all reservations with an embedded buffer, over the RRU they hold: as the
    /// paper counts.
    largest_share: f64,
    /// The least that sum can be with this hardware, over the same RRU.
    least_share: f64,
    /// Variance over MSBs of the share of its servers' power that an MSB draws.
    power_variance: f64,
    /// The smallest share of power left in an MSB.
    headroom: f64,
    moves_in_use: usize,
    /// Idle servers that changed their holder, and free ones assigned.
    moves_unused: usize,
    shortfall_servers: usize,
}

impl Hour {
    fn of(region: &RegionSnapshot, targets: &Targets) -> Hour {
        let audit = audit(region, targets);
        let buffered = audit.reservations.iter().filter(|row| row.msb_buffer);
        let buffered = buffered.filter(|row| row.kind == ReservationKind::Guaranteed);
        let held: f64 = buffered.map(|row| row.holding.assigned.to_f64()).sum();
        let buffer = &audit.buffer;
        let of_held = |share: f64| share * buffer.capacity.to_f64() / held.max(f64::MIN_POSITIVE);
        let (power_variance, headroom) = unevenness(&draws(region, &audit, targets));
        Hour {
            largest_share: of_held(buffer.share),
            least_share: of_held(buffer.bounds.hardware),
            power_variance,
            headroom,
            moves_in_use: audit.moves.in_use,
            moves_unused: audit.moves.idle + audit.moves.acquired,
            shortfall_servers: audit.shortfall_servers,
        }
    }
}

/// Follows a region, each solve with the prices of the last. `say`: told of each hour.
///
/// # Errors
/// If a solve fails, or the run is interrupted.
pub fn figures(
    first: &RegionSnapshot,
    course: &Course,
    how: &How,
    wanted: &Figures,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let beginning = Beginning::of(first);
    let mut done = vec![Hour::of(first, &Targets::unchanged(first))];
    let mut region = limited(first.to_parts(), course)?;
    let mut last = None::<TempDir>;
    for hour in 1..=course.hours {
        say(&format!("figures 12, 14 and 16: hour {hour} of {}", course.hours));
        let here = ours::folder()?;
        let solved = ours::solve_in(here.path(), last.as_ref().map(TempDir::path), &region, how)
            .with_context(|| format!("hour {hour}"))?;
        last = Some(here);
        done.push(Hour::of(&region, &solved.targets));
        let parts = hour::next_hour(&region, &solved.targets, &beginning, hour, &course.pace);
        region = limited(parts, course)
            .with_context(|| format!("the region after hour {hour} is broken (a bug)"))?;
    }
    let limit = match course.in_use_moves {
        Some(most) => format!("at most {} in-use moves an hour", count(most as usize)),
        None => "no limit on in-use moves".to_owned(),
    };
    let made = format!(
        "{} hourly solves of {} servers in {} reservations, from the months of a greedy allocator; {limit}. Each hour \
         {} of the requests were resized by 5 to 20 % and {} of the servers failed for three hours. Containers follow \
         the requests.",
        count(course.hours as usize),
        count(first.servers.len()),
        first.reservations.len(),
        percent(course.pace.resized),
        percent(course.pace.failed)
    );
    let all: [(u8, Make); 3] = [(12, shares), (14, power), (16, moves)];
    let wanted = all.into_iter().filter(|(number, _)| wanted.any(&[*number]));
    Ok(wanted.map(|(_, figure)| figure(&done, made.clone())).collect())
}

/// The region with the limit on in-use moves.
fn limited(mut parts: SnapshotParts, course: &Course) -> Result<RegionSnapshot> {
    if let Some(moves) = course.in_use_moves {
        parts.ahead.budgets = vec![MoveBudgetRow {
            scope: "region".into(),
            scope_id: parts.region.clone(),
            in_use: Some(true),
            moves: moves.into(),
            because: "limit".into(),
        }];
    }
    Ok(RegionSnapshot::new(parts)?)
}

/// The value before the first solve, after the first, after a day, after a week and at the end, each with its hour.
fn milestones(done: &[Hour], value: impl Fn(&Hour) -> f64) -> String {
    let last = done.len() - 1;
    let at = [0, 1, 24, 168, last].into_iter().filter(|&at| at <= last);
    let mut at: Vec<usize> = at.collect();
    at.dedup();
    let of = |at: usize| format!("{at} h: {}", percent(value(&done[at])));
    at.into_iter().map(of).collect::<Vec<_>>().join(", ")
}

fn line(name: &str, done: &[Hour], value: impl Fn(&Hour) -> f64) -> Series {
    Series { name: name.to_owned(), values: done.iter().map(value).collect() }
}

fn points(done: &[Hour], unit: Unit, series: Vec<Series>) -> Plot {
    Plot::Points {
        across: "hour",
        at: (0..done.len()).map(|hour| hour as f64).collect(),
        unit,
        series,
    }
}

fn shares(done: &[Hour], made: String) -> Figure {
    let least = done.last().map_or(0.0, |hour| hour.least_share);
    Figure {
        number: 12,
        title: "Largest share in one MSB, hour by hour",
        made,
        rows: vec![
            Beside {
                what: "sum of largest MSB shares over RRU held",
                paper: "15.1 % to 5.8 % in two months",
                here: milestones(done, |hour| hour.largest_share),
            },
            Beside {
                what: "lower bound with the hardware of the last hour, each reservation alone",
                paper: "4.06 %",
                here: percent(least),
            },
        ],
        plots: vec![points(
            done,
            Unit::Share,
            vec![
                line("sum of largest MSB shares over RRU held", done, |hour| hour.largest_share),
                line("lower bound with this hardware", done, |hour| hour.least_share),
            ],
        )],
    }
}

fn power(done: &[Hour], made: String) -> Figure {
    let variance = |at: Option<&Hour>| at.map_or(f64::NAN, |hour| hour.power_variance);
    let ratio = variance(done.last()) / variance(done.first());
    Figure {
        number: 14,
        title: "Power by MSB, hour by hour",
        made,
        rows: vec![
            Beside {
                what: "variance over MSBs, after all hours over before",
                paper: "0.22 (0.9 to 0.2)",
                here: if ratio.is_finite() { decimal(ratio) } else { "-".to_owned() },
            },
            Beside {
                what: "headroom of the MSB with least",
                paper: "near 0 to 11 %",
                here: milestones(done, |hour| hour.headroom),
            },
        ],
        plots: vec![points(
            done,
            Unit::Plain,
            vec![line("variance over MSBs of the share of power drawn", done, |hour| {
                hour.power_variance
            })],
        )],
    }
}

fn moves(done: &[Hour], made: String) -> Figure {
    let sum = |value: fn(&Hour) -> usize| done.iter().map(value).sum::<usize>();
    let (in_use, unused) = (sum(|hour| hour.moves_in_use), sum(|hour| hour.moves_unused));
    let short = done.iter().skip(1).map(|hour| hour.shortfall_servers).max().unwrap_or(0);
    let most = done.iter().map(|hour| hour.moves_in_use).max().unwrap_or(0);
    Figure {
        number: 16,
        title: "Moves by hour",
        made,
        rows: vec![
            Beside {
                what: "unused to in-use servers moved",
                paper: "10.6 : 1",
                here: if in_use > 0 {
                    format!("{} : 1", decimal(unused as f64 / in_use as f64))
                } else {
                    "none in use".to_owned()
                },
            },
            Beside {
                what: "moved in all: in use, unused; most in use in an hour",
                paper: "-",
                here: format!("{}, {}; {}", count(in_use), count(unused), count(most)),
            },
            Beside {
                what: "servers short in the worst hour, at least",
                paper: "-",
                here: count(short),
            },
        ],
        plots: vec![points(
            done,
            Unit::Plain,
            vec![
                line("unused servers moved", done, |hour| hour.moves_unused as f64),
                line("servers in use moved", done, |hour| hour.moves_in_use as f64),
            ],
        )],
    }
}
