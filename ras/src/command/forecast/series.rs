//! The series of a file; gaps and resets are marked.

use crate::cli::SeriesFile;
use anyhow::Result;
use datasets::import::{NamedSeries, SeriesColumns, read_series};
use forecast::Faults;

pub(super) fn read(of: &SeriesFile) -> Result<Vec<NamedSeries>> {
    let columns =
        SeriesColumns { time: of.time.clone(), value: of.value.clone(), by: of.by.clone() };
    Ok(read_series(&of.series, &columns, Faults::Mark)?)
}
