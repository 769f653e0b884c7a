//! A living region through the real binary, on a real Postgres that the tests start themselves.

mod arrivals;
mod demo;
mod drained;
mod faults;
mod fenced;
mod forecasts;
mod health;
mod inventory;
mod killed;
mod lists;
mod mistakes;
mod moves;
mod operators;
mod owners;
mod place;
mod placing;
mod plans;
mod policies;
mod postgres;
mod replays;
mod requests;
mod rollouts;
mod shapes;
mod socket;
mod solves;
mod steps;
mod store;
mod terminal;
mod tokens;
mod upkeep;
mod watch;

use testkit::proxy;
