//! The broker on a real Postgres, started by the tests themselves.

mod constraints;
mod events;
mod harness;
mod jobs;
mod load;
mod moves;
mod plan;
mod private;
mod publish;
mod racing;
mod reading;
mod regions;
mod schema;
mod unavailability;
