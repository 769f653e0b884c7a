//! Solves as they were recorded beside the same solves replayed: joined by solve and reservation, and summed
//! by day and by reservation. A month of hourly solves of 2,000 reservations is 1.5 million rows on either side.
//!
//! Behind the feature `summaries`, as [`crate::summary`].

use crate::summary::{SummaryError, failed, numbers};
use chrono::{NaiveDate, TimeDelta};
use fleet::ReservationName;
use polars::prelude::{
    DataFrame, IntoLazy, JoinArgs, JoinType, PolarsResult, SortMultipleOptions, col, df, len, lit,
};

/// What a solve left one reservation with.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The solve, by a number of the caller's.
    pub solve: u32,
    /// The day it was asked for.
    pub day: NaiveDate,
    /// The reservation.
    pub reservation: ReservationName,
    /// Servers it holds.
    pub servers: u32,
    /// The fewest servers worth what it is missing.
    pub missing: u32,
}

/// Solves compared: of each pair the first as it was recorded, the second as it was replayed.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// How often a reservation was compared: once for each solve that both sides have.
    pub compared: usize,
    /// How often it was short.
    pub short: [usize; 2],
    /// The fewest servers worth what it is missing, summed over solves: of hourly solves, server-hours.
    pub missing: [usize; 2],
    /// Servers held, on average over what was compared.
    pub servers: [f64; 2],
}

/// By reservation, in order of name.
///
/// # Errors
/// If Polars fails.
pub fn by_reservation(
    recorded: &[Outcome],
    replayed: &[Outcome],
) -> Result<Vec<(ReservationName, Compared)>, SummaryError> {
    let what = "replays by reservation";
    let summed = compare(recorded, replayed, "reservation").map_err(failed(what))?;
    let names = || -> PolarsResult<Vec<ReservationName>> {
        let names = summed.column("reservation")?.str()?.iter();
        Ok(names.flatten().map(ReservationName::from).collect())
    };
    let names = names().map_err(failed(what))?;
    Ok(names.into_iter().zip(rows(&summed).map_err(failed(what))?).collect())
}

/// By day, in order.
///
/// # Errors
/// If Polars fails.
pub fn by_day(
    recorded: &[Outcome],
    replayed: &[Outcome],
) -> Result<Vec<(NaiveDate, Compared)>, SummaryError> {
    let what = "replays by day";
    let summed = compare(recorded, replayed, "day").map_err(failed(what))?;
    let days = || -> PolarsResult<Vec<NaiveDate>> {
        let days = summed.column("day")?.i64()?.iter();
        Ok(days.flatten().map(|days| NaiveDate::default() + TimeDelta::days(days)).collect())
    };
    let days = days().map_err(failed(what))?;
    Ok(days.into_iter().zip(rows(&summed).map_err(failed(what))?).collect())
}

fn frame(of: &[Outcome]) -> PolarsResult<DataFrame> {
    let day = |of: &Outcome| (of.day - NaiveDate::default()).num_days();
    df![
        "solve" => of.iter().map(|of| of.solve).collect::<Vec<u32>>(),
        "reservation" => of.iter().map(|of| &*of.reservation).collect::<Vec<&str>>(),
        "day" => of.iter().map(day).collect::<Vec<i64>>(),
        "servers" => of.iter().map(|of| of.servers).collect::<Vec<u32>>(),
        "missing" => of.iter().map(|of| of.missing).collect::<Vec<u32>>(),
    ]
}

/// What both sides have, summed for each value of a column.
fn compare(recorded: &[Outcome], replayed: &[Outcome], key: &str) -> PolarsResult<DataFrame> {
    let both = [col("solve"), col("reservation")];
    let joined = frame(recorded)?.lazy().join(
        frame(replayed)?.lazy(),
        both.clone(),
        both,
        JoinArgs::new(JoinType::Inner),
    );
    let sums = ["", "_right"].iter().flat_map(|side| {
        let (missing, servers) = (format!("missing{side}"), format!("servers{side}"));
        [
            col(&*missing).gt(lit(0_u32)).sum().alias(format!("short{side}")),
            col(&*missing).sum(),
            col(&*servers).mean(),
        ]
    });
    (joined.group_by([col(key)]))
        .agg(std::iter::once(len().alias("compared")).chain(sums).collect::<Vec<_>>())
        .sort([key], SortMultipleOptions::default())
        .collect()
}

fn rows(summed: &DataFrame) -> PolarsResult<Vec<Compared>> {
    let compared = numbers(summed, "compared")?;
    let [short, short_right] = [numbers(summed, "short")?, numbers(summed, "short_right")?];
    let servers = |name: &str| -> PolarsResult<Vec<f64>> {
        Ok(summed.column(name)?.f64()?.iter().flatten().collect())
    };
    let [missing, missing_right] = [numbers(summed, "missing")?, numbers(summed, "missing_right")?];
    let [servers, servers_right] = [servers("servers")?, servers("servers_right")?];
    let row = |at: usize| Compared {
        compared: compared[at],
        short: [short[at], short_right[at]],
        missing: [missing[at], missing_right[at]],
        servers: [servers[at], servers_right[at]],
    };
    Ok((0..summed.height()).map(row).collect())
}
