//! Files of regions, series and stocks: what is written, read, refused and generated.
//!
//! One program: every further one would be linked with all that this crate depends on.
#![allow(missing_docs, clippy::unwrap_used)]

mod backtest;
mod bad_input;
mod common;
mod extra;
mod foreign;
mod generate;
mod greedy;
mod import;
mod import_refused;
mod mutations;
mod parquet_sheet;
mod partitions;
mod round_trip;
mod series;
mod stock;
mod summary;
mod versions;
