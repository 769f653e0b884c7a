//! Reads the daily series of a data folder: `snowflake_daily.csv`, `surf_daily.csv` and
//! `bitbrains_daily.csv`.

use forecast::long::Daily;
use forecast::{Faults, Point, Series};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

/// A series with its name.
pub struct Named {
    /// Source, place and type.
    pub name: String,
    /// Its values.
    pub daily: Daily,
}

type Points = BTreeMap<String, Vec<(i64, f64)>>;

/// All series of a folder, ordered by name: daily peaks by region and type (Snowflake), jobs
/// (SURF), processors and memory (Bitbrains).
pub fn read(folder: &Path) -> Result<Vec<Named>, Box<dyn Error>> {
    let mut all = Points::new();
    rows(&folder.join("snowflake_daily.csv"), |row| {
        let name = format!("snowflake {} {}", row.text("region")?, row.text("type")?);
        all.entry(name).or_default().push((row.day("date")?, row.number("max")?));
        Ok(())
    })?;
    // The source has no row for a day without demand.
    let days = all.values().flatten().map(|(day, _)| *day);
    let (first, last) = (days.clone().min().ok_or("no rows")?, days.max().ok_or("no rows")?);
    for points in all.values_mut() {
        let known: BTreeMap<i64, f64> = points.drain(..).collect();
        points.extend((first..=last).map(|day| (day, known.get(&day).copied().unwrap_or(0.0))));
    }
    for (file, date, columns) in [
        ("surf", "date_utc", ["jobs_submitted", "running_mean", "running_max_hour"]),
        ("bitbrains", "date_cest", ["cpu_ghz_max", "mem_gib_max", "mem_prov_gib"]),
    ] {
        rows(&folder.join(format!("{file}_daily.csv")), |row| {
            for column in columns {
                let points = all.entry(format!("{file} {column}")).or_default();
                points.push((row.day(date)?, row.number(column)?));
            }
            Ok(())
        })?;
    }
    all.into_iter().map(|(name, points)| named(name, &points)).collect()
}

fn named(name: String, points: &[(i64, f64)]) -> Result<Named, Box<dyn Error>> {
    let point = |(row, (day, value)): (usize, &(i64, f64))| Point {
        time: day * 86_400,
        value: *value,
        row: row as u64 + 2,
    };
    let points: Vec<Point> = points.iter().enumerate().map(point).collect();
    let (series, _) = Series::from_points(&points, Faults::Mark)?;
    Ok(Named { name, daily: Daily::new(&series)? })
}

struct Row<'a> {
    header: &'a [&'a str],
    fields: Vec<&'a str>,
}

impl Row<'_> {
    fn text(&self, column: &str) -> Result<&str, Box<dyn Error>> {
        let at = self.header.iter().position(|name| *name == column);
        Ok(at.and_then(|at| self.fields.get(at)).ok_or_else(|| format!("no column {column}"))?)
    }

    fn number(&self, column: &str) -> Result<f64, Box<dyn Error>> {
        Ok(self.text(column)?.parse()?)
    }

    /// Days since 1970.
    fn day(&self, column: &str) -> Result<i64, Box<dyn Error>> {
        let date: chrono::NaiveDate = self.text(column)?.parse()?;
        Ok(i64::from(date.to_epoch_days()))
    }
}

fn rows(
    file: &Path,
    mut each: impl FnMut(&Row<'_>) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    for (at, line) in lines.enumerate() {
        let row = Row { header: &header, fields: line.split(',').collect() };
        each(&row).map_err(|e| format!("{}, line {}: {e}", file.display(), at + 2))?;
    }
    Ok(())
}
