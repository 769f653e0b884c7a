//! Warm capacity on real demand: `cargo run -p datasets --no-default-features --example warm --
//! FOLDER`, with a folder that has `azure_v2_month.csv` and `google2019_month.csv`.
//!
//! Prints, for each fleet, what each family of methods costs and how often it is short (Eigen, figure 11):
//! its parameters chosen in the first week, judged on the rest. Then the events of constant margins at
//! equal cost, and the steepest rises with what each margin held (figure 10). With the word `many` after the
//! folder: only the time that 10,000 series of a month take.

#![expect(clippy::disallowed_methods, reason = "measures time")]

use datasets::import::{SeriesColumns, read_series};
use forecast::tune::{
    Choice, Family, at_cost, choose, constant_margin, constant_share, frontier, recommended,
};
use forecast::warm::{Outcome, capacities, judge, rises};
use forecast::{Faults, Series, Step};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

/// The fleets: file and column.
const FLEETS: [(&str, &str); 2] =
    [("azure_v2_month.csv", "assigned_mem_gb"), ("google2019_month.csv", "avg_assigned_mem")];

/// Chances of a shortfall in a step.
const CHANCES: [f64; 5] = [0.02, 0.01, 0.005, 0.002, 0.001];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("which folder?")?;
    let is_timed = arguments.next().is_some_and(|word| word == "many");
    let mut fleets = Vec::new();
    for (file, value) in FLEETS {
        let columns =
            SeriesColumns { time: "t_s".to_owned(), value: value.to_owned(), by: Vec::new() };
        for found in read_series(&Path::new(&folder).join(file), &columns, Faults::Refuse)? {
            let series = found.series;
            if !is_timed {
                println!("\n{file}: {value}, {} steps of {}", series.len(), series.step());
                table(&series, 0.002)?;
                equal_cost(&series)?;
            }
            fleets.push(series);
        }
    }
    if is_timed { many(&fleets) } else { Ok(()) }
}

/// The first week.
fn split(series: &Series) -> usize {
    series.step().per(Step::WEEK)
}

fn table(series: &Series, chance: f64) -> Result<(), Box<dyn Error>> {
    let choices = choose(series, &Family::ALL, chance, split(series))?;
    let outcomes: Vec<Outcome> = choices.iter().map(|choice| choice.judged).collect();
    println!("chance {chance}: events and cost, first week | rest");
    for (choice, on_frontier) in choices.iter().zip(frontier(&outcomes)) {
        println!(
            "{:32} {:5} {:7.3} % | {:5} {:7.3} % {}",
            choice.family.label(),
            choice.trained.events,
            100.0 * choice.trained.warm_share(),
            choice.judged.events,
            100.0 * choice.judged.warm_share(),
            if on_frontier { "frontier" } else { "" },
        );
    }
    steepest(series, &choices)
}

/// The five steepest rises, and by how much margins held or were short.
fn steepest(series: &Series, choices: &[Choice]) -> Result<(), Box<dyn Error>> {
    let steps = rises(series, split(series)..series.len(), 5, 12);
    let change = |step: usize| Some(series.get(step)? / series.get(step - 1)? - 1.0);
    let changes: Vec<String> = (steps.iter())
        .map(|step| format!("{:+7.2}", 100.0 * change(*step).unwrap_or(0.0)))
        .collect();
    println!("steepest rises, %: {}; what was held above the demand then, %:", changes.join(" "));
    for choice in choices.iter().filter(|choice| choice.family >= Family::ConstantMargin) {
        let held = capacities(series, &choice.method)?;
        let over = steps.iter().map(|step| {
            let (demand, held) = (series.get(*step)?, held[*step]?);
            Some(format!("{:+7.2}", 100.0 * (held / demand - 1.0)))
        });
        println!(
            "{:32} {}",
            choice.family.label(),
            over.collect::<Option<Vec<_>>>().unwrap_or_default().join(" ")
        );
    }
    Ok(())
}

/// Ours without any training, and constant margins of the same cost.
fn equal_cost(series: &Series) -> Result<(), Box<dyn Error>> {
    let (from, week) = (split(series), series.step().per(Step::WEEK));
    let range = from..series.len();
    println!(
        "at equal cost: events of ours | constant share (ratio) | ES with constant margin (ratio)"
    );
    for chance in CHANCES {
        let held = capacities(series, &recommended(chance, series.step()))?;
        let ours = judge(series, &held, range.clone());
        let cost = ours.warm_hours;
        let share = at_cost(series, range.clone(), cost, (0.0, 1.0), constant_share)?;
        let margin = at_cost(series, range.clone(), cost, (0.0, 0.999_999), |quantile| {
            constant_margin(1.0, quantile, week)
        })?;
        let ratio = |of: &Outcome| ours.events as f64 / of.events as f64;
        println!(
            "chance {:5.2} %: {:4} events ({:.2} %) at {:.3} % | {:4} ({:.2}) | {:4} ({:.2})",
            100.0 * chance,
            ours.events,
            100.0 * ours.event_share(),
            100.0 * ours.warm_share(),
            share.events,
            ratio(&share),
            margin.events,
            ratio(&margin),
        );
    }
    Ok(())
}

/// The time of 10,000 series of a month, on two threads.
fn many(fleets: &[Series]) -> Result<(), Box<dyn Error>> {
    const SERIES: usize = 10_000;
    for family in [Family::SmoothedMargin, Family::ExpectedMargin] {
        let began = Instant::now();
        let half = |which: usize| -> Result<f64, forecast::short::MethodError> {
            let mut warm = 0.0;
            for number in (which..SERIES).step_by(2) {
                let series = &fleets[number % fleets.len()];
                let candidates = family.candidates(series.step());
                let method = candidates[number % candidates.len()];
                let mut forecaster = method.start()?;
                warm += series.values().map(|value| forecaster.observe(value).margin).sum::<f64>();
            }
            Ok(warm)
        };
        let warm = std::thread::scope(|scope| {
            let other = scope.spawn(|| half(1));
            let one = half(0);
            one.and_then(|one| Ok(one + other.join().unwrap_or(Ok(0.0))?))
        })?;
        let seconds = began.elapsed().as_secs_f64();
        println!("{}: {SERIES} series of a month in {seconds:.1} s ({warm:.3e})", family.label());
    }
    Ok(())
}
