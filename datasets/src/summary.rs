//! Summaries of regions and results, counted with Polars.
//!
//! Behind the feature `summaries`: Polars takes longer to build than the rest together. It gets
//! columns of a snapshot that was read and checked, not the files: its own Parquet reader would
//! need to be told of every way in which strings may be encoded.

use fleet::{
    HardwareTypeName, MsbName, RegionSnapshot, ReservationIx, ReservationKind, ReservationName,
    Rru, Targets,
};
use polars::prelude::{
    Column, DataFrame, IntoLazy, LazyFrame, PolarsError, PolarsResult, SortMultipleOptions, col,
    df, len,
};

/// A summary could not be computed.
#[derive(Debug, thiserror::Error)]
#[error("the summary of {what} cannot be computed")]
pub struct SummaryError {
    what: &'static str,
    #[source]
    source: PolarsError,
}

pub(crate) fn failed(what: &'static str) -> impl FnOnce(PolarsError) -> SummaryError {
    move |source| SummaryError { what, source }
}

/// Servers of one hardware type in one MSB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInMsb {
    /// The hardware type.
    pub hardware_type: HardwareTypeName,
    /// The MSB.
    pub msb: MsbName,
    /// Its servers there.
    pub servers: usize,
    /// Those among them that are available.
    pub available: usize,
}

/// Servers of one hardware type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSummary {
    /// The hardware type.
    pub hardware_type: HardwareTypeName,
    /// Its servers.
    pub servers: usize,
    /// Those among them that are available.
    pub available: usize,
    /// Those among them that a reservation holds.
    pub held: usize,
    /// Those among them with running containers.
    pub in_use: usize,
    /// How many MSBs have any.
    pub msbs: usize,
    /// How many are in the MSB that has most: what one failure can take away.
    pub largest_msb: usize,
}

/// Guaranteed reservations of one order of magnitude.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeClass {
    /// Capacities are at least this, in RRU; zero for reservations of capacity zero.
    pub at_least: f64,
    /// Capacities are below this, in RRU.
    pub below: f64,
    /// How many there are.
    pub reservations: usize,
    /// What they ask for in all.
    pub requested: Rru,
    /// How many hardware types are eligible for one of them, on average.
    pub eligible_types: f64,
}

/// What a result does to the servers of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovesOf {
    /// The reservation; `None`: free servers.
    pub reservation: Option<ReservationName>,
    /// Servers it holds before.
    pub before: usize,
    /// Servers that leave it with running containers on them.
    pub leave_in_use: usize,
    /// Servers that leave it idle.
    pub leave_idle: usize,
    /// Servers that it gains.
    pub arrive: usize,
}

impl MovesOf {
    /// Servers it holds afterwards.
    pub fn after(&self) -> usize {
        self.before + self.arrive - self.leave_in_use - self.leave_idle
    }
}

/// Servers by hardware type and MSB, in this order; pairs without servers are left out.
///
/// # Errors
/// If Polars fails.
pub fn servers_by_type_and_msb(snapshot: &RegionSnapshot) -> Result<Vec<TypeInMsb>, SummaryError> {
    let counted = || {
        let counts = by_type_and_msb(snapshot)?
            .sort(["type", "msb"], SortMultipleOptions::default())
            .collect()?;
        let [types, msbs] = [numbers(&counts, "type")?, numbers(&counts, "msb")?];
        let [servers, available] = [numbers(&counts, "servers")?, numbers(&counts, "available")?];
        let row = |at: usize| TypeInMsb {
            hardware_type: snapshot.hardware_types[types[at]].clone(),
            msb: snapshot.msbs[msbs[at]].id.clone(),
            servers: servers[at],
            available: available[at],
        };
        Ok((0..counts.height()).map(row).collect())
    };
    counted().map_err(failed("servers by hardware type and MSB"))
}

/// Servers by hardware type, in its order; types without servers are left out.
///
/// # Errors
/// If Polars fails.
pub fn servers_by_type(snapshot: &RegionSnapshot) -> Result<Vec<TypeSummary>, SummaryError> {
    let counted = || {
        let counts = by_type_and_msb(snapshot)?
            .group_by([col("type")])
            .agg([
                len().alias("msbs"),
                col("servers").max().alias("largest_msb"),
                col("servers").sum().alias("all"),
                col("available").sum(),
                col("held").sum(),
                col("in_use").sum(),
            ])
            .sort(["type"], SortMultipleOptions::default())
            .collect()?;
        let [types, servers] = [numbers(&counts, "type")?, numbers(&counts, "all")?];
        let [available, held] = [numbers(&counts, "available")?, numbers(&counts, "held")?];
        let [in_use, msbs] = [numbers(&counts, "in_use")?, numbers(&counts, "msbs")?];
        let largest_msb = numbers(&counts, "largest_msb")?;
        let row = |at: usize| TypeSummary {
            hardware_type: snapshot.hardware_types[types[at]].clone(),
            servers: servers[at],
            available: available[at],
            held: held[at],
            in_use: in_use[at],
            msbs: msbs[at],
            largest_msb: largest_msb[at],
        };
        Ok((0..counts.height()).map(row).collect())
    };
    counted().map_err(failed("servers by hardware type"))
}

/// Guaranteed reservations by order of magnitude of their capacity (RAS, SOSP'21, figure 4), from
/// small to large; classes without reservations are left out.
///
/// # Errors
/// If Polars fails.
pub fn requests_by_size(snapshot: &RegionSnapshot) -> Result<Vec<SizeClass>, SummaryError> {
    let counted = || {
        let asked = || {
            let guaranteed = |r: &&fleet::Reservation| r.kind == ReservationKind::Guaranteed;
            snapshot.reservations.iter().filter(guaranteed)
        };
        let types = |r: &fleet::Reservation| u32::try_from(r.rru.len()).unwrap_or(u32::MAX);
        let frame = df![
            "decade" => asked().map(|r| decade(r.capacity)).collect::<Vec<i32>>(),
            "micro" => asked().map(|r| r.capacity.0).collect::<Vec<i64>>(),
            "types" => asked().map(types).collect::<Vec<u32>>(),
        ]?;
        let classes = (frame.lazy())
            .group_by([col("decade")])
            .agg([len().alias("count"), col("micro").sum(), col("types").mean()])
            .sort(["decade"], SortMultipleOptions::default())
            .collect()?;
        let decades: Vec<i32> = classes.column("decade")?.i32()?.iter().flatten().collect();
        let counts = numbers(&classes, "count")?;
        let micros: Vec<i64> = classes.column("micro")?.i64()?.iter().flatten().collect();
        let types: Vec<f64> = classes.column("types")?.f64()?.iter().flatten().collect();
        let row = |at: usize| SizeClass {
            at_least: if decades[at] == NOTHING { 0.0 } else { 10_f64.powi(decades[at]) },
            below: if decades[at] == NOTHING { 0.0 } else { 10_f64.powi(decades[at] + 1) },
            reservations: counts[at],
            requested: Rru(micros[at]),
            eligible_types: types[at],
        };
        Ok((0..classes.height()).map(row).collect())
    };
    counted().map_err(failed("requests by size"))
}

/// What a result does to each reservation, free servers first, then by name; those that neither
/// lose nor gain a server are left out.
///
/// # Errors
/// If Polars fails.
pub fn moves_by_reservation(
    snapshot: &RegionSnapshot,
    targets: &Targets,
) -> Result<Vec<MovesOf>, SummaryError> {
    let counted = || {
        // One row per server for its holder before, and one for its holder after.
        let before = snapshot.servers.iter().map(|server| server.holder());
        let after = targets.holders().iter().copied();
        let moved: Vec<bool> =
            before.clone().zip(after.clone()).map(|(before, after)| before != after).collect();
        let in_use = || snapshot.servers.iter().map(|server| server.in_use);
        let none = || std::iter::repeat_n(false, moved.len());
        let leave = || in_use().zip(&moved);
        let frame = df![
            "holder" => before.chain(after).map(code).collect::<Vec<u32>>(),
            "before" => none().map(|flag| !flag).chain(none()).collect::<Vec<bool>>(),
            "leave_in_use" =>
                leave().map(|(used, &m)| m && used).chain(none()).collect::<Vec<bool>>(),
            "leave_idle" =>
                leave().map(|(used, &m)| m && !used).chain(none()).collect::<Vec<bool>>(),
            "arrive" => none().chain(moved.iter().copied()).collect::<Vec<bool>>(),
        ]?;
        let sums = ["before", "leave_in_use", "leave_idle", "arrive"].map(|name| col(name).sum());
        let moves = (frame.lazy())
            .group_by([col("holder")])
            .agg(sums)
            .sort(["holder"], SortMultipleOptions::default())
            .collect()?;
        let holders = numbers(&moves, "holder")?;
        let [before, arrive] = [numbers(&moves, "before")?, numbers(&moves, "arrive")?];
        let leave_in_use = numbers(&moves, "leave_in_use")?;
        let leave_idle = numbers(&moves, "leave_idle")?;
        let name = |code: usize| code.checked_sub(1).map(|r| snapshot.reservations[r].id.clone());
        let row = |at: usize| MovesOf {
            reservation: name(holders[at]),
            before: before[at],
            leave_in_use: leave_in_use[at],
            leave_idle: leave_idle[at],
            arrive: arrive[at],
        };
        let changes = |row: &MovesOf| row.leave_in_use + row.leave_idle + row.arrive > 0;
        Ok((0..moves.height()).map(row).filter(changes).collect())
    };
    counted().map_err(failed("moves by reservation"))
}

/// The class of reservations of capacity zero: below every decade of a micro-RRU.
const NOTHING: i32 = i32::MIN;

/// The power of ten a capacity lies at or above, without a logarithm's rounding.
fn decade(capacity: Rru) -> i32 {
    match u64::try_from(capacity.0).ok().and_then(u64::checked_ilog10) {
        Some(digits) => i32::try_from(digits).map_or(NOTHING, |digits| digits - 6),
        None => NOTHING,
    }
}

/// A holder as a number that sorts free first and then by name.
fn code(holder: Option<ReservationIx>) -> u32 {
    holder.map_or(0, |reservation| reservation.0 + 1)
}

fn by_type_and_msb(snapshot: &RegionSnapshot) -> PolarsResult<LazyFrame> {
    let servers = || snapshot.servers.iter();
    let frame = df![
        "type" => servers().map(|server| server.hardware_type.0).collect::<Vec<u32>>(),
        "msb" => servers().map(|server| snapshot.msb_of(server).0).collect::<Vec<u32>>(),
        "available" => servers().map(|server| server.available).collect::<Vec<bool>>(),
        "held" => servers().map(|server| server.holder().is_some()).collect::<Vec<bool>>(),
        "in_use" => servers().map(|server| server.in_use).collect::<Vec<bool>>(),
    ]?;
    Ok((frame.lazy()).group_by([col("type"), col("msb")]).agg([
        len().alias("servers"),
        col("available").sum(),
        col("held").sum(),
        col("in_use").sum(),
    ]))
}

/// A column of counts or codes.
pub(crate) fn numbers(frame: &DataFrame, name: &str) -> PolarsResult<Vec<usize>> {
    let column: &Column = frame.column(name)?;
    Ok(column.u32()?.iter().flatten().map(|number| number as usize).collect())
}
