//! Stocks of servers, and orders that will arrive.

use super::error::ImportError;
use super::series::seconds;
use super::sheet::Sheet;
use std::path::Path;

/// A line of a file of stocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StockRow {
    /// The series of demand that the servers are for, as [`NamedSeries`](super::NamedSeries) names it.
    pub series: String,
    /// When they arrive, in seconds; what is there already has a time that has passed.
    pub time: i64,
    /// How many.
    pub servers: u32,
    /// The line of the file.
    pub line: u64,
}

/// Reads stocks and orders from CSV with the columns `series`, `date` and `servers`.
///
/// # Errors
/// Fields that are not understood, all at once, with their lines.
pub fn read_stock(file: &Path) -> Result<Vec<StockRow>, ImportError> {
    let mut sheet = Sheet::read(file)?;
    let mut wrong = sheet.wrong();
    let series = sheet.column("series")?;
    let date = sheet.column("date")?;
    let servers = sheet.column("servers")?;
    let mut rows = Vec::new();
    for line in sheet.lines() {
        let name = wrong.take(line.name(series));
        let time = wrong.take(seconds(line, date));
        // Never below 0.
        let count = wrong.take(line.whole(servers).map(i32::unsigned_abs));
        if let (Some(name), Some(time), Some(servers)) = (name, time, count) {
            rows.push(StockRow { series: name.to_owned(), time, servers, line: line.number() });
        }
    }
    wrong.end(&sheet)?;
    Ok(rows)
}
