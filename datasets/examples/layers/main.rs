//! Three layers of machines over 60 days, before and after: Eigen section 6.4, table 2.
//!
//! ```sh
//! cargo run --release -p datasets --no-default-features --example layers -- VM_REQUESTS ASSIGNED_MEMORY [SHARE] [SEED]
//! ```
//!
//! Real: three weeks of arrivals of an Azure region by type and five minutes, the lives of single requests, and the share of
//! assigned memory that is in use in a Google cluster. Made: the three weeks are repeated to 126 days; each request
//! comes with a chance (SHARE, a tenth by default) that falls (a), stays (b) or rises (c) over them; machines are
//! all alike. Requests that still ran at the end of the trace live as long as they had until then.
//!
//! Before: first fit, and constant shares of warm machines and of stock, the smallest that delay and fail no request in
//! the 60 days, chosen in hindsight. After, one layer at a time: VRO with a rebalancing once a day, warm machines by
//! expected-error margins every ten minutes, stock by the minimum-stock policy once a week, three weeks ahead, on the forecast of
//! ETS or on that between the last day and the same weekday. Other seeds draw other requests: what one draw needs says little.
//!
//! The second table is what forecasts without errors would reach on the same requests: machines are bought and given back
//! at once, for a day, a week or all 60 days, as many as the peak in that time needs. Machines as VRO packs them, or the
//! fewest that have the cores and the memory.

mod arrivals;
mod packed;

use arrivals::{STEPS_A_DAY, Trace};
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type,
};
use arrow_array::{Array, ArrayRef, Float64Array, PrimitiveArray};
use forecast::long::{Bands, rivals};
use forecast::orders::simulate::owned;
use forecast::orders::{Policy, Terms};
use forecast::short::Method;
use forecast::tune::{constant_share, recommended};
use forecast::warm::capacities;
use forecast::{Series, Step};
use packed::{MACHINE, Packing, Tick, pack};
use placement::vro::{Offline, Skewness, Vro};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

/// Days simulated, and the last of them that are judged.
const DAYS: usize = 126;
const JUDGED: usize = 60;
/// Days until the region is as full as its arrivals make it: no request lives longer than four.
const FILLING: usize = 7;
const TICKS_A_DAY: usize = STEPS_A_DAY / 2;
/// Accepted chance that ten minutes are short of warm machines.
const CHANCE: f64 = 0.001;
/// Forecasts that the stock must cover, and their quantiles.
const STOCKS: [(Ahead, f64); 9] = [
    (Ahead::Ets, 0.9),
    (Ahead::Ets, 0.92),
    (Ahead::Ets, 0.93),
    (Ahead::Ets, 0.94),
    (Ahead::Ets, 0.95),
    (Ahead::Ets, 0.96),
    (Ahead::Ets, 0.97),
    (Ahead::Ets, 0.98),
    (Ahead::LastAndWeekday, 0.8),
];
/// Shares of the move costs spent a day.
const BUDGET: f64 = 0.05;
/// Constant shares that are tried.
const SHARES: [f64; 16] =
    [0.0, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.6, 1.0, 1.5, 2.0];

/// A forecast of the days to come.
#[derive(Clone, Copy, Debug)]
enum Ahead {
    Ets,
    /// The mean of two: as on the last day, and as on the last such weekday. Where demand has no trend their errors
    /// differ.
    LastAndWeekday,
}

impl Ahead {
    fn path(self, history: &[f64], horizon: usize, quantile: f64) -> Vec<f64> {
        let names: &[&str] = match self {
            Ahead::Ets => &["ETS"],
            Ahead::LastAndWeekday => &["naive", "same weekday"],
        };
        let bands: Vec<Bands> = (rivals().iter())
            .filter(|method| names.contains(&method.name().as_str()))
            .map(|method| method.forecast(history, horizon, &[quantile]))
            .collect();
        Bands::median(&bands).map_or_else(Vec::new, |bands| bands.path(quantile))
    }
}

/// What the layers hold in each ten minutes that are judged, and what it led to.
struct Outcome {
    in_use: f64,
    configured: f64,
    owned: f64,
    /// Memory in use over memory owned.
    allocation: f64,
    requests: usize,
    delayed: usize,
    failed: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [vms, assigned, rest @ ..] = arguments.as_slice() else {
        return Err("usage: layers VM_REQUESTS ASSIGNED_MEMORY [SHARE] [SEED]".into());
    };
    let share: f64 = rest.first().map_or(Ok(0.1), |share| share.parse())?;
    let seed: u64 = rest.get(1).map_or(Ok(1), |seed| seed.parse())?;
    let trace = Trace::read(Path::new(vms))?;
    let in_use = used_share(&Path::new(assigned).join("google2019_month.csv"))?;
    println!("Use: allocation times {in_use:.3}, as in the Google cluster.\n");
    println!("| cluster | layers | in use | warm | stock | allocation | use | delayed | failed |");
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut bounds = Vec::new();
    for (number, (name, from, to)) in (0..).zip([("a", 1.2, 0.8), ("b", 1.0, 1.0), ("c", 0.8, 1.2)])
    {
        let chance = |day: usize| share * (from + (to - from) * day as f64 / DAYS as f64);
        let requests = trace.requests(DAYS, chance, seed + number);
        let machines = (4_000.0 * share * f64::max(from, to)) as usize + 10;
        let first_fit = Packing { policy: placement::vro::Policy::FirstFit, rebalanced: None };
        let policy = placement::vro::Policy::Vro(Vro::new(Skewness::DotProduct));
        let rebalanced = Some((BUDGET, Offline::new(Skewness::DotProduct)));
        let before = pack(&requests, machines, &first_fit)?;
        let after = pack(&requests, machines, &Packing { policy, rebalanced })?;
        bounds.push((
            name,
            oracle(&after, |tick| tick.machines),
            oracle(&after, |tick| tick.fewest),
        ));
        for (layers, outcome) in layers(&before, &after)? {
            let of_requests = |count: usize| 100.0 * count as f64 / outcome.requests.max(1) as f64;
            println!(
                "| {name} | {layers} | {:.1} | {:.1} | {:.1} | {:.2} % | {:.2} % | {:.3} % | {:.3} % |",
                outcome.in_use,
                outcome.configured - outcome.in_use,
                outcome.owned - outcome.configured,
                100.0 * outcome.allocation,
                100.0 * outcome.allocation * in_use,
                of_requests(outcome.delayed),
                of_requests(outcome.failed),
            );
        }
    }
    println!(
        "\nAllocation if all demand were known beforehand and stock were changed only once in some days:\n"
    );
    let heads = |of: &str| OWNED_FOR.map(|days| format!("{of}, {days} d")).join(" | ");
    println!("| cluster | {} | {} |", heads("as packed"), heads("fewest machines"));
    println!("|---|---|---|---|---|---|---|");
    for (name, packed, fewest) in bounds {
        let cells = |of: [f64; 3]| of.map(|share| format!("{:.2} %", 100.0 * share)).join(" | ");
        println!("| {name} | {} | {} |", cells(packed), cells(fewest));
    }
    Ok(())
}

/// Days for which the oracle owns the same machines.
const OWNED_FOR: [usize; 3] = [1, 7, JUDGED];

/// The allocation of the days that are judged if the machines that are needed at the peak of the coming days are owned, and no
/// others.
fn oracle(ticks: &[Tick], needed: impl Fn(&Tick) -> usize) -> [f64; 3] {
    let judged = &ticks[ticks.len() - JUDGED * TICKS_A_DAY..];
    let memory: f64 = judged.iter().map(|tick| tick.memory as f64).sum();
    OWNED_FOR.map(|days| {
        let owned: f64 = (judged.chunks(days * TICKS_A_DAY))
            .map(|of| (of.len() * of.iter().map(&needed).max().unwrap_or(0)) as f64)
            .sum();
        memory / (owned * MACHINE[1] as f64)
    })
}

/// One layer after the other.
fn layers(before: &[Tick], after: &[Tick]) -> Result<Vec<(String, Outcome)>, Box<dyn Error>> {
    let generous = (Policy::Constant(2.0), STOCKS[0]);
    let mut constants = None;
    'found: for warm in SHARES {
        // Warm machines first: whether they suffice does not depend on the stock if that is large.
        if judge(before, &constant_share(warm), generous)?.delayed > 0 {
            continue;
        }
        for stock in SHARES {
            if judge(before, &constant_share(warm), (Policy::Constant(stock), STOCKS[0]))?.failed
                == 0
            {
                constants = Some((warm, stock));
                break 'found;
            }
        }
    }
    let (warm, stock) = constants.ok_or("no constant share is enough")?;
    let (constant, kept) = (constant_share(warm), (Policy::Constant(stock), STOCKS[0]));
    let tick = Step::from_seconds(600).ok_or("ten minutes")?;
    let ours = recommended(CHANCE, tick);
    let percent = |share: f64| format!("{:.0} %", 100.0 * share);
    let mut outcomes = vec![
        (
            format!("before: first fit, {} warm, {} stock", percent(warm), percent(stock)),
            judge(before, &constant, kept)?,
        ),
        ("VRO".to_owned(), judge(after, &constant, kept)?),
        ("and warm".to_owned(), judge(after, &ours, kept)?),
    ];
    for (ahead, quantile) in STOCKS {
        let outcome = judge(after, &ours, (Policy::MinimumStock, (ahead, quantile)))?;
        outcomes.push((format!("and stock, {ahead:?} Q{}: after", 100.0 * quantile), outcome));
    }
    Ok(outcomes)
}

/// Holds warm machines and stock, by a policy and its forecast, over the ticks, and judges the last days.
fn judge(
    ticks: &[Tick],
    warm: &Method,
    (stock, (forecast, quantile)): (Policy, (Ahead, f64)),
) -> Result<Outcome, Box<dyn Error>> {
    // The days in which the region fills up teach nothing.
    let ticks = &ticks[FILLING * TICKS_A_DAY..];
    let days = ticks.len() / TICKS_A_DAY;
    let step = Step::from_seconds(600).ok_or("ten minutes")?;
    let peaks = ticks.iter().map(|tick| Some(tick.machines as f64)).collect();
    let held = capacities(&Series::new(0, step, peaks)?, warm)?;
    let held: Vec<f64> = (held.iter().zip(ticks))
        .map(|(held, tick)| held.unwrap_or(tick.machines as f64).ceil())
        .collect();
    // Stock is for machines in use: a margin that spikes for ten minutes is no reason to order.
    let of_day = |day: &[Tick]| day.iter().map(|tick| tick.machines).max().unwrap_or(0) as f64;
    let demand: Vec<f64> = ticks.chunks(TICKS_A_DAY).map(of_day).collect();
    let terms = Terms::default();
    let ahead = |day: usize| forecast.path(&demand[..=day], terms.horizon(), quantile);
    let from = days - JUDGED;
    let owned = owned(&demand, from, stock, terms, &ahead);
    let mut outcome = Outcome {
        in_use: 0.0,
        configured: 0.0,
        owned: 0.0,
        allocation: 0.0,
        requests: 0,
        delayed: 0,
        failed: 0,
    };
    let count = (JUDGED * TICKS_A_DAY) as f64;
    let mut memory = 0.0;
    for (day, owned) in (from..).zip(&owned) {
        let owned = owned.ceil();
        for at in day * TICKS_A_DAY..(day + 1) * TICKS_A_DAY {
            let tick = &ticks[at];
            let configured = held[at].min(owned);
            outcome.in_use += tick.machines as f64 / count;
            outcome.configured += configured.max(tick.machines as f64) / count;
            outcome.owned += owned / count;
            memory += tick.memory as f64 / count;
            outcome.requests += tick.requests.len();
            for machines in &tick.requests {
                let machines = *machines as f64;
                outcome.failed += usize::from(machines > owned);
                outcome.delayed += usize::from(machines > configured && machines <= owned);
            }
        }
    }
    outcome.allocation = memory / (outcome.owned * MACHINE[1] as f64);
    Ok(outcome)
}

/// Memory in use over memory assigned, over the month.
fn used_share(file: &Path) -> Result<f64, Box<dyn Error>> {
    let mut sheet = csv::Reader::from_path(file)?;
    let heads = sheet.headers()?.clone();
    let column = |name: &str| {
        heads.iter().position(|head| head == name).ok_or_else(|| format!("no column {name}"))
    };
    let (used, assigned) = (column("avg_mem")?, column("avg_assigned_mem")?);
    let mut sums = [0.0; 2];
    for row in sheet.records() {
        let row = row?;
        sums[0] += row[used].parse::<f64>()?;
        sums[1] += row[assigned].parse::<f64>()?;
    }
    Ok(sums[0] / sums[1])
}

/// A column of any numbers as 64-bit ones.
fn cast(column: &ArrayRef) -> Option<ArrayRef> {
    macro_rules! of {
        ($($kind:ty),+) => {$(
            if let Some(array) = column.as_any().downcast_ref::<PrimitiveArray<$kind>>() {
                let values = array.values().iter().map(|value| *value as f64);
                return Some(Arc::new(values.collect::<Float64Array>()));
            }
        )+};
    }
    of!(
        UInt8Type,
        UInt16Type,
        UInt32Type,
        Int8Type,
        Int16Type,
        Int32Type,
        Int64Type,
        Float32Type,
        Float64Type
    );
    None
}
