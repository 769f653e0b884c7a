//! Requests that follow real demand: `cargo run --release -p datasets --no-default-features --example autosize --
//! FOLDER [CHANCE]`, with a folder that has `azure_v2_month.csv` and `google2019_month.csv`.
//!
//! The demand of each fleet is followed as if it were that of one reservation. Prints what each pair of quantile and cooldown
//! would have done, and requests that stay; which pair is recommended for the accepted share of short hours (1 % by default),
//! and what the pair that the first half chooses did in the second.

use datasets::import::{SeriesColumns, read_series};
use forecast::Faults;
use forecast::autosize::backtest::{Sizing, Terms, Tried, backtest};
use std::error::Error;
use std::path::Path;

/// The fleets: file and column.
const FLEETS: [(&str, &str); 2] =
    [("azure_v2_month.csv", "assigned_mem_gb"), ("google2019_month.csv", "avg_assigned_mem")];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    let chance = std::env::args().nth(2).map_or(Ok(0.01), |text| text.parse())?;
    let terms = Terms { chance, min: 0.0, max: 1e9 };
    for (file, value) in FLEETS {
        let columns =
            SeriesColumns { time: "t_s".to_owned(), value: value.to_owned(), by: Vec::new() };
        for found in read_series(&Path::new(&folder).join(file), &columns, Faults::Refuse)? {
            let series = found.series;
            let tried = backtest(&series, &terms)?;
            println!(
                "\n{file}: {value}; learnt from {:.1} days, judged by {:.1}",
                tried.learnt_days, tried.judged_days
            );
            println!("{:28} {:>14} {:>9} {:>12}", "request", "short hours", "idle", "changes/day");
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

fn print(of: &Tried, days: f64, said: &str) {
    let name = match of.sizing {
        Sizing::Follows { quantile, cooldown_seconds } => {
            format!("Q{} cooldown {} h", 100.0 * quantile, cooldown_seconds / 3_600)
        }
        Sizing::Stays { above } => format!("peak of the first part +{} %", 100.0 * above),
    };
    let outcome = &of.outcome;
    println!(
        "{name:28} {:>5} {:>6.2} % {:>7.1} % {:>12.1} {said}",
        outcome.short_hours,
        100.0 * outcome.short_share(),
        100.0 * outcome.idle_share(),
        outcome.resizes as f64 / days
    );
}
