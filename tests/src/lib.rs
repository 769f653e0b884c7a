//! What the tests across crates share: a little language for regions and what happens in them, and
//! a way to run the real solver on them without files, clocks or processes.
//!
//! A scenario is a text file under `scenarios/` or `living/`: commands, then `----`, then their
//! output. `tests/README.md` lists the commands. [`World`] runs those on the solver alone, [`Living`]
//! those on the whole system; [`solve()`] is the solve every test here uses, audited before any
//! other check.

mod data;
mod living;
mod modules;
mod region;
mod show;
mod solve;
mod statement;
mod world;

pub use data::data;
pub use living::Living;
pub use modules::Modules;
pub use solve::{Solved, solve};
pub use statement::Statement;
pub use world::World;
