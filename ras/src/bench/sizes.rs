//! Figures 10 and 11: set-up time and memory against the size of the problem.

use super::ours::{self, How};
use super::{Beside, Figure, Figures, Plot, Series, Unit};
use crate::html::number::{bytes, decimal, seconds};
use anyhow::{Context, Result};
use datasets::generate::{GenerateOptions, generate};
use fleet::RegionSnapshot;

/// Sizes looked at, as multiples of the region's.
const SIZES: [f64; 5] = [0.5, 1.0, 2.0, 5.0, 10.0];

/// The generator makes no smaller regions and none larger.
const SERVERS: (usize, usize) = (1_000, 1_000_000);

/// Solves regions of several sizes until the first incumbent with a bound.
///
/// # Errors
/// If a solve fails, or somebody asked for an end.
pub fn figures(
    servers: usize,
    how: &How,
    wanted: &Figures,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let (mut columns, mut setup, mut memory, mut sizes) = (vec![], vec![], vec![], vec![]);
    for factor in SIZES {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a multiple of a count, within the generator's limits"
        )]
        let count = ((servers as f64 * factor) as usize).clamp(SERVERS.0, SERVERS.1);
        if sizes.contains(&count) {
            continue;
        }
        say(&format!("figures 10 and 11: {count} servers"));
        let options = GenerateOptions { seed: how.seed, ..GenerateOptions::new(count) };
        let parts = generate(&options).context("generating a region")?;
        let region =
            RegionSnapshot::new(parts).context("the generated region is broken (a bug)")?;
        // Any proved gap will do: what comes after the set-up is not measured.
        let solved = ours::solve(&region, &How { gap: Some(1.0), ..how.clone() })?;
        let step = |step| solved.step_seconds(1, step);
        sizes.push(count);
        columns.push(solved.number("/sizes/phase1_columns").unwrap_or(f64::NAN));
        setup.push(step("ras build") + step("solver build") + step("initial state"));
        memory.push(solved.memory_bytes().map_or(f64::NAN, |bytes| bytes as f64));
    }
    let list: Vec<String> = sizes.iter().map(|count| crate::html::number::count(*count)).collect();
    let made = format!(
        "Generated regions of {} servers, cold, solved until a first bound.",
        list.join(", ")
    );
    let mut figures = Vec::new();
    if wanted.any(&[10]) {
        figures.push(Figure {
            number: 10,
            title: "Set-up time by size",
            made: made.clone(),
            rows: vec![
                Beside {
                    what: "growth of seconds with assignment variables (1: linear)",
                    paper: "1",
                    here: exponent(&columns, &setup),
                },
                Beside {
                    what: "seconds at the largest",
                    paper: "about 4,000 s extrapolated without phases",
                    here: at_largest(&columns, &setup, seconds),
                },
            ],
            plot: plot(&columns, Unit::Seconds, "seconds before the search", setup),
        });
    }
    if wanted.any(&[11]) {
        figures.push(Figure {
            number: 11,
            title: "Memory by size",
            made,
            rows: vec![
                Beside {
                    what: "growth of bytes with assignment variables (1: linear)",
                    paper: "1",
                    here: exponent(&columns, &memory),
                },
                Beside {
                    what: "bytes at the largest",
                    paper: "75 GB extrapolated without phases",
                    here: at_largest(&columns, &memory, bytes),
                },
            ],
            plot: plot(&columns, Unit::Bytes, "largest resident bytes, HiGHS included", memory),
        });
    }
    Ok(figures)
}

fn plot(columns: &[f64], unit: Unit, name: &str, values: Vec<f64>) -> Plot {
    let series = vec![Series { name: name.to_owned(), values }];
    Plot::Points { across: "columns of phase 1", at: columns.to_vec(), unit, series }
}

fn at_largest(columns: &[f64], values: &[f64], show: fn(f64) -> String) -> String {
    match columns.last().zip(values.last()) {
        Some((columns, value)) => format!("{} at {} columns", show(*value), decimal(*columns)),
        None => "-".to_owned(),
    }
}

/// The power with which values grow: the slope of the line through first and last on a double
/// logarithmic scale.
fn exponent(columns: &[f64], values: &[f64]) -> String {
    let ends = columns.first().zip(columns.last()).zip(values.first().zip(values.last()));
    let Some(((first, last), (low, high))) = ends else { return "-".to_owned() };
    let power = (high / low).ln() / (last / first).ln();
    if power.is_finite() { decimal(power) } else { "-".to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_a_power() {
        assert_eq!(exponent(&[10.0, 50.0, 100.0], &[2.0, 9.0, 200.0]), "2");
        assert_eq!(exponent(&[10.0], &[2.0]), "-");
        assert_eq!(exponent(&[], &[]), "-");
    }
}
