//! Requests that follow real demand: `cargo run --release -p datasets --no-default-features --example autosize --
//! FOLDER`, with a folder that has `azure_v2_month.csv` and `google2019_month.csv`.
//!
//! The demand of each fleet is followed as if it were that of one reservation, decided every ten minutes. The first week is only
//! learnt from. Prints the share of hours whose peak exceeds the request at their beginning, what is requested above the
//! demand, and the changes a day; and the same of a request that stays at the peak of the first week, alone and with shares
//! above it.

use datasets::import::{SeriesColumns, read_series};
use forecast::autosize::{Action, Current, Settings, decide};
use forecast::{Faults, Series, Step};
use std::error::Error;
use std::path::Path;

/// The fleets: file and column.
const FLEETS: [(&str, &str); 2] =
    [("azure_v2_month.csv", "assigned_mem_gb"), ("google2019_month.csv", "avg_assigned_mem")];

const HOUR_SECONDS: u32 = 3_600;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    for (file, value) in FLEETS {
        let columns =
            SeriesColumns { time: "t_s".to_owned(), value: value.to_owned(), by: Vec::new() };
        for found in read_series(&Path::new(&folder).join(file), &columns, Faults::Refuse)? {
            let series = found.series;
            println!("\n{file}: {value}, {} steps of {}", series.len(), series.step());
            println!("{:28} {:>12} {:>10} {:>12}", "request", "short hours", "idle", "changes/day");
            for quantile in [0.9, 0.99] {
                for hours in [4, 24, 168] {
                    let cooldown = hours * HOUR_SECONDS;
                    let settings = Settings { quantile, min: 0.0, max: 1e15, cooldown };
                    let (sizes, changes) = follow(&series, &settings)?;
                    let name = format!("Q{} cooldown {hours} h", 100.0 * quantile);
                    print(&name, &series, &sizes, changes);
                }
            }
            let filled = series.filled();
            let peak = filled[..week(&series)].iter().copied().fold(0.0, f64::max);
            for above in [0.0, 0.05, 0.1, 0.2] {
                let sizes = vec![peak * (1.0 + above); series.len() - week(&series)];
                let name = format!("peak of the first week +{} %", 100.0 * above);
                print(&name, &series, &sizes, 0);
            }
        }
    }
    Ok(())
}

fn week(series: &Series) -> usize {
    series.step().per(Step::WEEK)
}

/// The request at each step after the first week, and how often it changed.
fn follow(series: &Series, settings: &Settings) -> Result<(Vec<f64>, usize), Box<dyn Error>> {
    let from = week(series);
    let peak = series.filled()[..from].iter().copied().fold(0.0, f64::max);
    let mut current = Current { request: peak, changed_at: None };
    let (mut sizes, mut changes) = (Vec::new(), 0);
    let every = (600 / series.step().seconds()).max(1) as usize;
    let learnt = 4 * from;
    for now in from..series.len() {
        if now % every == 0 {
            let seen =
                series.slice((now + 1).saturating_sub(learnt), now + 1).ok_or("no series")?;
            let at = series.time(now);
            let decided = decide(&seen, settings, &current, at)?;
            if let Action::Grow(to) | Action::Shrink(to) = decided.action {
                current = Current { request: to, changed_at: Some(at) };
                changes += 1;
            }
        }
        sizes.push(current.request);
    }
    Ok((sizes, changes))
}

fn print(name: &str, series: &Series, sizes: &[f64], changes: usize) {
    let from = week(series);
    let demand = &series.filled()[from..];
    let hour = (HOUR_SECONDS / series.step().seconds()).max(1) as usize;
    let hours = (sizes.len() - 1) / hour;
    let short = (0..hours)
        .filter(|at| {
            let begin = at * hour;
            demand[begin + 1..=begin + hour].iter().any(|demand| *demand > sizes[begin])
        })
        .count();
    let (above, used) = (sizes.iter().zip(demand))
        .fold((0.0, 0.0), |(above, used), (size, demand)| {
            (above + (size - demand).max(0.0), used + demand)
        });
    let days = sizes.len() as f64 / series.step().per(Step::DAY) as f64;
    println!(
        "{name:28} {:>5} {:>4.2} % {:>8.1} % {:>12.1}",
        short,
        100.0 * short as f64 / hours as f64,
        100.0 * above / used,
        changes as f64 / days
    );
}
