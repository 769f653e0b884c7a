//! Forecasts of demand, and the spares and orders that follow.
//!
//! One program: every further one would be linked with all that this crate depends on.
#![expect(clippy::unwrap_used, reason = "a test")]

mod autosize;
mod buffers;
mod figure10;
mod long;
mod series;
mod short;
mod spares;
