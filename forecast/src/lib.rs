//! Forecasts of demand, and how much capacity to hold for it: series in, quantiles and decisions
//! out.
//!
//! Capacity waits in layers. Servers in use serve demand now; warm ones (free, in service) serve it
//! within seconds; cold ones take minutes to start; ordered ones take weeks to arrive. Each layer
//! is sized by a forecast over the time that the next one needs. This is the scheme of Eigen
//! (PVLDB 16(12), 2023), sections 3.2, 4.2 and 4.3.
//!
//! The crate does no I/O, has no clock and no randomness of its own, and knows nothing of regions.
//!
//! | module | what it does |
//! |---|---|
//! | [`long`] | daily series, weeks ahead: methods, back-test |
//! | [`orders`] | what to order, cancel and decommission |
//! | [`series`] | the validated series: start, step and values, missing ones marked |

pub mod long;
pub mod orders;
mod random;
pub mod series;

pub use series::{Faults, Notice, Point, Series, SeriesError, Step};
