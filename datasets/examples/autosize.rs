//! Requests that follow real demand: `cargo run --release -p datasets --no-default-features --example autosize --
//! FOLDER [CHANCE] [LONG]`, with a folder that has `azure_v2_month.csv` and `google2019_month.csv`, and one that has
//! `snowflake_hourly.parquet`.
//!
//! The demand of each fleet is followed as if it were that of one reservation. Prints what each pair of quantile and cooldown
//! would have done, and requests that stay; which pair is recommended for the accepted share of short hours (1 % by default),
//! and what the pair that the first half chooses did in the second. Of the long demand by machine type, 911 days, the same for each
//! eight weeks, in sum.

use datasets::import::{NamedSeries, SeriesColumns, read_series};
use forecast::autosize::backtest::{Backtest, Sizing, Terms, Tried, backtest};
use forecast::{Faults, Step};
use std::error::Error;
use std::path::Path;

/// The fleets: file and column.
const FLEETS: [(&str, &str); 5] = [
    ("azure_v2_month.csv", "assigned_mem_gb"),
    ("google2019_month.csv", "avg_assigned_mem"),
    ("azure_v2_month.csv", "cpu_usage"),
    ("google2019_month.csv", "avg_mem"),
    ("google2019_month.csv", "avg_cpu"),
];
/// Days of a part of the long demand, and machines on average from which it counts.
const PART_DAYS: usize = 56;
const MACHINES: f64 = 30.0;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let folder = arguments.first().ok_or("which folder?")?;
    let chance = arguments.get(1).map_or(Ok(0.01), |text| text.parse())?;
    let terms = Terms { chance, min: 0.0, max: 1e9 };
    if let Some(long) = arguments.get(2) {
        parts(&Path::new(long).join("snowflake_hourly.parquet"), &terms)?;
    }
    for (file, value) in FLEETS {
        let columns =
            SeriesColumns { time: "t_s".to_owned(), value: value.to_owned(), by: Vec::new() };
        for found in read_series(&Path::new(folder).join(file), &columns, Faults::Refuse)? {
            let series = found.series;
            let tried = backtest(&series, &terms)?;
            println!(
                "\n{file}: {value}; learnt from {:.1} days, judged by {:.1}",
                tried.learnt_days, tried.judged_days
            );
            println!(
                "{:28} {:>14} {:>10} {:>9} {:>12}",
                "request", "short hours", "expected", "idle", "changes/day"
            );
            for (at, of) in tried.tried.iter().enumerate() {
                let is_recommended = tried.recommended == Some(at);
                let said = match (is_recommended, of.on_frontier) {
                    (true, _) => "recommended",
                    (false, true) => "frontier",
                    (false, false) => "",
                };
                print(of, tried.judged_days, said);
            }
            if let Some(checked) = &tried.checked {
                print(
                    checked,
                    tried.judged_days / 2.0,
                    "chosen by the first half, judged by the second",
                );
            }
        }
    }
    Ok(())
}

/// What the pairs that the first halves of all parts choose did in the second.
fn parts(file: &Path, terms: &Terms) -> Result<(), Box<dyn Error>> {
    let (time, value) = ("hour_utc".to_owned(), "vms".to_owned());
    let columns = SeriesColumns { time, value, by: vec!["region".to_owned(), "type".to_owned()] };
    let (mut parts, mut above, mut none) = (0, 0, 0);
    let (mut hours, mut short_hours, mut idle) = (0, 0, 0.0);
    for NamedSeries { series, .. } in read_series(file, &columns, Faults::Mark)? {
        let part = PART_DAYS * series.step().per(Step::DAY);
        for from in (0..(series.len() + 1).saturating_sub(part)).step_by(part) {
            let Some(part) = series.slice(from, from + part) else { continue };
            if part.filled().iter().sum::<f64>() < MACHINES * part.len() as f64 {
                continue;
            }
            let Ok(Backtest { checked, .. }) = backtest(&part, terms) else { continue };
            let Some(Tried { outcome, .. }) = checked else {
                none += 1;
                continue;
            };
            parts += 1;
            above += usize::from(outcome.short_share() > terms.chance);
            hours += outcome.hours;
            short_hours += outcome.short_hours;
            idle += outcome.idle_share();
        }
    }
    let short = 100.0 * short_hours as f64 / f64::from(hours.max(1) as u32);
    let idle = 100.0 * idle / f64::from(parts.max(1));
    println!(
        "{}: {parts} parts of {PART_DAYS} days, {none} without a pair; chosen by the first half, the second: \
         {short:.2} % of the hours short, above the accepted share in {above} parts, {idle:.1} % idle on average",
        file.display()
    );
    Ok(())
}

fn print(of: &Tried, days: f64, said: &str) {
    let name = match of.sizing {
        Sizing::Follows { quantile, cooldown_seconds } => {
            format!("Q{} cooldown {} h", 100.0 * quantile, cooldown_seconds / 3_600)
        }
        Sizing::Stays { above } => format!("peak of the first part +{} %", 100.0 * above),
    };
    let outcome = &of.outcome;
    println!(
        "{name:28} {:>5} {:>6.2} % {:>8.2} % {:>7.1} % {:>12.1} {said}",
        outcome.short_hours,
        100.0 * outcome.short_share(),
        100.0 * outcome.expected_short_share,
        100.0 * outcome.idle_share(),
        outcome.resizes as f64 / days
    );
}
