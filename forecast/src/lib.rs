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
//! | [`autosize`] | requests that follow demand: keep, grow or shrink |
//! | [`buffers`] | shared buffers that follow failures: keep, grow or shrink |
//! | [`long`] | daily series, weeks ahead: methods, back-test |
//! | [`orders`] | what to order, cancel and decommission |
//! | [`series`] | the validated series: start, step and values, missing ones marked |
//! | [`short`] | short-term forecasts: capacity for the next step |
//! | [`warm`] | capacity held over a series: cost and events |
//! | [`sizing`] | spares of all hardware types: by chance, and a number shared out |
//! | [`spares`] | spares for failed servers, from the history of failures |
//! | [`tune`] | families of methods, the one that a training range chooses, the frontier |

pub mod autosize;
pub mod buffers;
pub mod long;
pub mod orders;
mod random;
pub mod series;
pub mod short;
pub mod sizing;
pub mod spares;
pub mod tune;
pub mod warm;

pub use series::{Faults, Notice, Point, Series, SeriesError, Step};
