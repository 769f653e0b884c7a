//! A living region through the real binary, on a real Postgres that the tests start themselves.

mod faults;
mod moves;
mod place;
mod replays;
mod solves;
mod store;
