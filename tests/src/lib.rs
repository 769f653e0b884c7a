//! What the tests across crates share: a little language for regions and what happens in them, and
//! a way to run the real solver on them without files, clocks or processes.
//!
//! A scenario is a text file under `scenarios/`: commands, then `----`, then what they print.
//! `tests/README.md` lists the commands. [`World`] carries them out; [`solve()`] is the solve every
//! test here uses, audited before any other check.

mod data;
mod region;
mod show;
mod solve;
mod statement;
mod world;

pub use data::data;
pub use solve::{Solved, solve};
pub use statement::Statement;
pub use world::World;
