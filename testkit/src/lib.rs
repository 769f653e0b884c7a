//! Fixtures that tests and benchmarks of several crates share. A dev-dependency only: nothing that
//! is shipped depends on it.
//!
//! | module | what it does |
//! |---|---|
//! | [`rows`] | rows of small regions, with defaults for everything that a test is not about |
//! | `wait` (feature `postgres`) | waits for conditions; drops futures at an await, as a crash does |
//! | [`usage`] | arguments of benchmarks; memory and processor time of processes |
//! | `health` (feature `postgres`) | single health reports |
//! | `postgres` (feature `postgres`) | a region in a private Postgres, one database for each test |
//! | [`program`] | a run of a program that has ended: exit code, output, messages |
//! | [`proxy`] | a proxy in front of Postgres that delays, holds, loses or refuses messages |
//!
//! ```
//! use testkit::rows::{parts, reservation, rru, server, snapshot};
//!
//! let mut parts = parts();
//! parts.servers.push(server("s0", ("dc0", "m0", "m0-r0"), "C1"));
//! parts.reservations.push(reservation("web", 1.0));
//! parts.rru.push(rru("web", "C1", 1.0));
//! assert_eq!(snapshot(&parts).servers.len(), 1);
//! ```

#[cfg(feature = "postgres")]
pub mod health;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod program;
pub mod proxy;
pub mod rows;
pub mod usage;
#[cfg(feature = "postgres")]
pub mod wait;
