//! Is the replacement of one type by another foreseen? Forecasts of the types of each region of
//! `snowflake_daily.csv` while type A gives way to type B: each type alone, against the whole split
//! by shares.
//!
//! `cargo run --release -p forecast --example switch -- FOLDER [HORIZON]`

mod data;

use data::Named;
use forecast::long::bands::LEVELS;
use forecast::long::conformal::Conformal;
use forecast::long::ets::Ets;
use forecast::long::point::{Decomposition, SameWeekday};
use forecast::long::{Method, WEEK, shares};
use std::error::Error;

/// 2021-02-01 is day 0.
const FROM_2022: usize = 334;
/// A is gone on 2022-12-02 in all regions.
const TO: usize = 669;

#[derive(Clone, Copy, Default)]
struct Errors {
    absolute: f64,
    truth: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: switch FOLDER [HORIZON]")?;
    let horizon: usize = arguments.next().map_or(Ok(28), |text| text.parse())?;
    let all = data::read(folder.as_ref())?;
    println!(
        "the last of {horizon} days ahead, origins each week, sum of errors over sum of demand"
    );
    println!("| region | method | A | B | B, origins before its share is 5 % |");
    println!("|---|---|---|---|---|");
    for region in 1..=3 {
        show(region, horizon, &all)?;
    }
    Ok(())
}

fn show(region: usize, horizon: usize, all: &[Named]) -> Result<(), Box<dyn Error>> {
    let prefix = format!("snowflake {region} ");
    let is_type = |named: &&Named| named.name.starts_with(&prefix) && !named.name.ends_with("all");
    let types: Vec<&[f64]> = all.iter().filter(is_type).map(|named| named.daily.values()).collect();
    let at = |name: &str| all.iter().filter(is_type).position(|named| named.name.ends_with(name));
    let (a, b) = (at(" A").ok_or("no type A")?, at(" B").ok_or("no type B")?);
    // The peaks of types need not fall into one hour: their sum is what a region must hold for all.
    let whole: Vec<f64> =
        (0..types[0].len()).map(|day| types.iter().map(|series| series[day]).sum()).collect();
    let methods: [(&str, &dyn Method); 3] = [
        ("same weekday", &Conformal(SameWeekday)),
        ("ETS", &Conformal(Ets)),
        ("decomposition + drift", &Conformal(Decomposition)),
    ];
    let mut names: Vec<String> = methods.iter().map(|(name, _)| format!("alone, {name}")).collect();
    names.push("whole by ETS, split by shares".to_owned());
    names.push("whole by ETS, shares of today".to_owned());
    let mut sums = vec![[Errors::default(); 3]; names.len()];
    for origin in (FROM_2022..TO - horizon).step_by(WEEK) {
        let known = |of: usize| &types[of][..origin];
        let median = |method: &dyn Method, history: &[f64]| {
            method.forecast(history, horizon, &LEVELS).path(0.5)
        };
        let mut pairs: Vec<(f64, f64)> = methods
            .iter()
            .map(|(_, method)| {
                let last = |of| median(*method, known(of)).last().copied().unwrap_or(0.0);
                (last(a), last(b))
            })
            .collect();
        let histories: Vec<&[f64]> = types.iter().map(|series| &series[..origin]).collect();
        let total = median(&Conformal(Ets), &whole[..origin]);
        let split = shares::split(&histories, &total);
        pairs.extend(split.last().map(|parts| (parts[a], parts[b])));
        let week = |of: usize| known(of)[origin - WEEK..].iter().sum::<f64>();
        let sum: f64 = (0..types.len()).map(week).sum();
        let last = total.last().copied().unwrap_or(0.0);
        pairs.push((last * week(a) / sum, last * week(b) / sum));
        let is_early = week(b) < 0.05 * sum;
        let day = origin + horizon - 1;
        for (sums, (for_a, for_b)) in sums.iter_mut().zip(pairs) {
            for (at, (truth, forecast, counts)) in [
                (types[a][day], for_a, true),
                (types[b][day], for_b, true),
                (types[b][day], for_b, is_early),
            ]
            .into_iter()
            .enumerate()
            {
                if counts {
                    sums[at].absolute += (truth - forecast).abs();
                    sums[at].truth += truth;
                }
            }
        }
    }
    for (name, sums) in names.iter().zip(sums) {
        let shares = sums.map(|sum| {
            if sum.truth > 0.0 {
                format!("{:.1} %", 100.0 * sum.absolute / sum.truth)
            } else {
                "-".to_owned()
            }
        });
        println!("| {region} | {name} | {} |", shares.join(" | "));
    }
    Ok(())
}
