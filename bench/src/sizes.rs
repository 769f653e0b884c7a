//! Figures 10 and 11: time and memory against the size of the problem.

use super::ours::{self, How};
use super::{Beside, Figure, Figures, Plot, Power, Series, Unit};
use anyhow::{Context, Result};
use datasets::generate::{GenerateOptions, State, generate};
use fleet::RegionSnapshot;
use report::number::{bytes, count, decimal, seconds};

/// Sizes looked at, as multiples of the region's: from 100,000 servers all that RAS is for.
const SIZES: [f64; 5] = [0.1, 0.3, 1.0, 3.0, 10.0];

/// The generator makes no smaller regions and none larger.
const SERVERS: (usize, usize) = (1_000, 10_000_000);

/// What growth is looked at along: the paper's assignment variables, and what a size is without
/// knowing how it is solved. A reservation and a hardware type it may use are a pair.
const COLUMNS: &str = "columns of phase 1";
const PRODUCT: &str = "servers x eligible pairs";

/// One size.
struct Solved {
    servers: usize,
    columns: f64,
    pairs: usize,
    /// Of the steps "ras build" and "solver build".
    setup_seconds: f64,
    /// Of the step "initial state".
    initial_seconds: f64,
    /// From the start of the process to its end.
    seconds: f64,
    /// Largest resident, HiGHS included.
    bytes: f64,
    cut: bool,
}

impl Solved {
    fn product(&self) -> f64 {
        self.servers as f64 * self.pairs as f64
    }
}

/// Solves regions of several sizes with default settings.
///
/// # Errors
/// If a solve fails, or the run is interrupted.
pub fn figures(
    servers: usize,
    state: State,
    how: &How,
    wanted: &Figures,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let mut done: Vec<Solved> = Vec::new();
    for factor in SIZES {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a multiple of a count, within the generator's limits"
        )]
        let servers = ((servers as f64 * factor).round() as usize).clamp(SERVERS.0, SERVERS.1);
        if done.last().is_none_or(|last| last.servers < servers) {
            say(&format!("figures 10 and 11: {servers} servers"));
            done.push(solve(servers, state, how)?);
        }
    }
    let sizes: Vec<String> = done.iter().map(|size| count(size.servers)).collect();
    let state = match state {
        State::Cold => "nothing held",
        State::Steady => "held for months",
        State::Greedy => "held after months of a greedy allocator",
    };
    let made =
        format!("Generated regions of {} servers, {state}, each solved once.", sizes.join(", "));
    let all: [(u8, Make); 2] = [(10, times), (11, memory)];
    let wanted = all.into_iter().filter(|(number, _)| wanted.any(&[*number]));
    Ok(wanted.map(|(_, figure)| figure(&done, made.clone())).collect())
}

fn solve(servers: usize, state: State, how: &How) -> Result<Solved> {
    let options = GenerateOptions { seed: how.seed, state, ..GenerateOptions::new(servers) };
    let parts = generate(&options).context("generating a region")?;
    let region = RegionSnapshot::new(parts).context("the generated region is invalid (a bug)")?;
    let solved = ours::solve(&region, how)?;
    let step = |step| solved.step_seconds(1, step);
    Ok(Solved {
        servers,
        columns: solved.report.sizes.map_or(f64::NAN, |of| of.phase1_columns as f64),
        pairs: region.reservations.iter().map(|of| of.rru.len()).sum(),
        setup_seconds: step("ras build") + step("solver build"),
        initial_seconds: step("initial state"),
        seconds: solved.seconds(),
        bytes: solved.memory_bytes().map_or(f64::NAN, |bytes| bytes as f64),
        cut: solved.was_cut(),
    })
}

/// Makes a figure of the sizes; the text says how they came about.
type Make = fn(&[Solved], String) -> Figure;

fn times(done: &[Solved], made: String) -> Figure {
    let setup = |size: &Solved| size.setup_seconds;
    let before_search = |size: &Solved| size.setup_seconds + size.initial_seconds;
    let (by_columns, columns) = growth(
        done,
        (COLUMNS, |size| size.columns),
        Unit::Seconds,
        &[
            ("seconds of ras build and solver build", &setup),
            ("with initial state", &before_search),
        ],
    );
    let (by_product, product) = growth(
        done,
        (PRODUCT, Solved::product),
        Unit::Seconds,
        &[("seconds of ras build and solver build", &setup), ("whole solve", &|size| size.seconds)],
    );
    let cut = done.iter().filter(|size| size.cut).count();
    let rows = vec![
        Beside {
            what: "seconds of ras build and solver build: power of columns",
            paper: "1 with initial state, which is its first LP",
            here: exponent(columns[0]),
        },
        Beside {
            what: "seconds with initial state, which is a first assignment: power of columns",
            paper: "1",
            here: exponent(columns[1]),
        },
        Beside {
            what: "seconds of the whole solve: power of servers x eligible pairs",
            paper: "-",
            here: exponent(product[1]),
        },
        Beside {
            what: "seconds at the largest: ras build and solver build, initial state, whole solve",
            paper: "about 4,000 s of set-up extrapolated without phases",
            here: at_largest(done, |size| {
                let parts = [size.setup_seconds, size.initial_seconds, size.seconds];
                parts.map(seconds).join(", ")
            }),
        },
        Beside {
            what: "solves that the deadline ended",
            paper: "-",
            here: format!("{cut} of {}", done.len()),
        },
    ];
    let plots = vec![by_columns, by_product];
    Figure { number: 10, title: "Time by size", made, rows, plots }
}

fn memory(done: &[Solved], made: String) -> Figure {
    let most: Line = ("largest resident bytes, HiGHS included", &|size| size.bytes);
    let (by_columns, columns) = growth(done, (COLUMNS, |size| size.columns), Unit::Bytes, &[most]);
    let (by_product, product) = growth(done, (PRODUCT, Solved::product), Unit::Bytes, &[most]);
    let rows = vec![
        Beside { what: "bytes: power of columns", paper: "1", here: exponent(columns[0]) },
        Beside {
            what: "bytes: power of servers x eligible pairs",
            paper: "-",
            here: exponent(product[0]),
        },
        Beside {
            what: "bytes at the largest",
            paper: "75 GB extrapolated without phases",
            here: at_largest(done, |size| bytes(size.bytes)),
        },
    ];
    let plots = vec![by_columns, by_product];
    Figure { number: 11, title: "Memory by size", made, rows, plots }
}

/// The name and the value of one series.
type Line<'a> = (&'static str, &'a dyn Fn(&Solved) -> f64);

/// A plot of how something grows, and the power of each series.
fn growth(
    done: &[Solved],
    (across, along): (&'static str, fn(&Solved) -> f64),
    unit: Unit,
    series: &[Line],
) -> (Plot, Vec<Option<Power>>) {
    let at: Vec<f64> = done.iter().map(along).collect();
    let series = series.iter().map(|(name, value)| Series {
        name: (*name).to_owned(),
        values: done.iter().map(value).collect(),
    });
    let series: Vec<Series> = series.collect();
    let powers: Vec<_> = series.iter().map(|of| Power::fit(&at, &of.values)).collect();
    (Plot::Growth { across, at, unit, series, powers: powers.clone() }, powers)
}

fn exponent(power: Option<Power>) -> String {
    // No minus before what is rounded to nothing.
    let shown = |power: Power| format!("{:.2}", (power.exponent * 100.0).round() / 100.0 + 0.0);
    power.map_or_else(|| "-".to_owned(), shown)
}

fn at_largest(done: &[Solved], show: impl Fn(&Solved) -> String) -> String {
    done.last().map_or_else(
        || "-".to_owned(),
        |size| {
            let (servers, pairs) = (count(size.servers), count(size.pairs));
            let columns = decimal(size.columns);
            format!("{} at {servers} servers, {pairs} pairs, {columns} columns", show(size))
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(servers: usize, seconds: f64) -> Solved {
        Solved {
            servers,
            columns: servers as f64 / 2.0,
            pairs: 10,
            setup_seconds: seconds / 10.0,
            initial_seconds: 0.0,
            seconds,
            bytes: f64::NAN,
            cut: servers > 5_000,
        }
    }

    #[test]
    fn growth_is_a_power_of_the_size() {
        let done = [size(1_000, 1.0), size(10_000, 10.0)];
        let figure = times(&done, String::new());
        let here: Vec<&str> = figure.rows.iter().map(|row| row.here.as_str()).collect();
        assert_eq!(here[..3], ["1.00", "1.00", "1.00"]);
        assert_eq!(here[4], "1 of 2");
        // Where the system does not say how much memory there was, there is no power.
        assert_eq!(memory(&done, String::new()).rows[0].here, "-");
        assert_eq!(memory(&[], String::new()).rows[2].here, "-");
    }
}
