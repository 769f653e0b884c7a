//! Three months of orders by policy: cost and days short, for each series of a folder with demand.
//!
//! `cargo run --release -p forecast --example orders -- FOLDER [SEED]`

mod data;

use data::Named;
use forecast::long::tcn::{Output, Training, train};
use forecast::long::{Method, Plan, backtest, rivals};
use forecast::orders::simulate::{Outcome, simulate, warm_up};
use forecast::orders::{Policy, Terms};
use std::error::Error;

const DAYS: usize = 91;
const LEVELS: [f64; 6] = [0.5, 0.6, 0.7, 0.9, 0.95, 0.98];
const CONSTANTS: [f64; 12] = [0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0];

/// Sums over series, each in units of its own mean demand, so that large ones do not decide alone.
#[derive(Clone, Copy, Default)]
struct Sum {
    series: usize,
    days: usize,
    short_days: usize,
    share: f64,
    short_share: f64,
}

impl Sum {
    fn add(&mut self, outcome: &Outcome, mean_demand: f64) {
        self.series += 1;
        self.days += outcome.days;
        self.short_days += outcome.short_days;
        self.share += outcome.share;
        self.short_share += outcome.short / outcome.days as f64 / mean_demand;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: orders FOLDER [SEED]")?;
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let terms = Terms::default();
    let plan = Plan { levels: LEVELS.to_vec(), ..Plan::new(terms.horizon()) };
    let all = data::read(folder.as_ref())?;
    // Three months, and before them the days in which each policy starts.
    let judged_days = DAYS + warm_up(terms);
    // A year before, and demand within.
    let is_long = |named: &&Named| {
        let values = named.daily.values();
        let late = values.len().saturating_sub(judged_days);
        late > 365 && values[late..].iter().all(|value| *value > 0.0)
    };
    let series: Vec<&Named> = all.iter().filter(is_long).collect();

    // Trained, and chosen, on what was known before the three months.
    let known: Vec<&[f64]> = series
        .iter()
        .map(|named| &named.daily.values()[..named.daily.values().len() - judged_days])
        .collect();
    let choice: Vec<&[f64]> = known.iter().map(|known| &known[..known.len() - DAYS]).collect();
    let training = |output| Training::new(output, terms.horizon(), seed);
    let models = Output::ALL.map(|output| train(&known, &training(output)));
    let earlier = Output::ALL.map(|output| train(&choice, &training(output)));
    let rivals = rivals();

    println!("{} series, last {DAYS} days, p = 7, l = 21, seed {seed}", series.len());
    let mut sums: Vec<(String, Sum)> = Vec::new();
    let mut add = |name: String, outcome: &Outcome, mean: f64| match sums
        .iter_mut()
        .find(|(known, _)| *known == name)
    {
        Some((_, sum)) => sum.add(outcome, mean),
        None => {
            let mut sum = Sum::default();
            sum.add(outcome, mean);
            sums.push((name, sum));
        }
    };
    for (at, named) in series.iter().enumerate() {
        let values = named.daily.values();
        let from = values.len() - DAYS;
        let mean = values[from..].iter().sum::<f64>() / DAYS as f64;
        // The test period of this back-test is the three months before: its best is what would be
        // chosen today.
        let mut choosing: Vec<&dyn Method> =
            rivals.iter().map(|r| r.as_ref() as &dyn Method).collect();
        let mut using = choosing.clone();
        choosing.extend(earlier.iter().map(|model| model as &dyn Method));
        using.extend(models.iter().map(|model| model as &dyn Method));
        let period = Plan { test: DAYS as f64 / known[at].len() as f64, ..plan.clone() };
        let judged = backtest(known[at], &period, &choosing, &choosing)?;
        let chosen = (0..using.len())
            .min_by(|a, b| {
                let loss = |at: usize| judged.methods[at].test.pinball;
                loss(*a).total_cmp(&loss(*b))
            })
            .ok_or("no method")?;
        let run = |policy, method: &dyn Method, level: f64| {
            let forecast =
                |day: usize| method.forecast(&values[..=day], terms.horizon(), &LEVELS).path(level);
            simulate(values, from, policy, terms, &forecast)
        };
        let policies = [("minimum stock", Policy::MinimumStock), ("base stock", Policy::BaseStock)];
        for (name, policy) in policies {
            for (method, of) in [(using[chosen], "chosen method"), (&models[0], "TCN Cauchy")] {
                for level in LEVELS {
                    let outcome = run(policy, method, level);
                    let quantile = (100.0 * level).round();
                    add(format!("{name}, {of}, Q{quantile}"), &outcome, mean);
                    if named.name.ends_with("all") && of == "chosen method" {
                        println!(
                            "{}: {name} Q{quantile} ({}): stock {:.1} % of demand, {} days short",
                            named.name,
                            method.name(),
                            100.0 * outcome.share,
                            outcome.short_days
                        );
                    }
                }
            }
        }
        for share in CONSTANTS {
            let policy = Policy::Constant(share);
            let outcome = simulate(values, from, policy, terms, &|_| Vec::new());
            add(format!("constant {} %", 100.0 * share), &outcome, mean);
            if named.name.ends_with("all") {
                println!(
                    "{}: constant {} %: stock {:.1} % of demand, {} days short",
                    named.name,
                    100.0 * share,
                    100.0 * outcome.share,
                    outcome.short_days
                );
            }
        }
        let perfect =
            |day: usize| values[day + 1..].iter().copied().take(terms.horizon()).collect();
        let outcome = simulate(values, from, Policy::MinimumStock, terms, &perfect);
        add("minimum stock, future known".to_owned(), &outcome, mean);
    }
    println!();
    println!("| policy | mean stock over demand | days short | missing over demand |");
    println!("|---|---|---|---|");
    for (name, sum) in sums {
        println!(
            "| {name} | {:.2} % | {} of {} ({:.1} %) | {:.3} % |",
            100.0 * sum.share / sum.series as f64,
            sum.short_days,
            sum.days,
            100.0 * sum.short_days as f64 / sum.days as f64,
            100.0 * sum.short_share / sum.series as f64,
        );
    }
    Ok(())
}
