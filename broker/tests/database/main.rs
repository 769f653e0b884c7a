//! The broker on a real Postgres, started by the tests themselves.

mod browsing;
mod constraints;
mod contracts;
mod crash;
mod events;
mod harness;
mod jobs;
mod keys;
mod load;
mod lost;
mod maintenance;
mod metrics;
mod moves;
mod plan;
mod private;
mod proxy;
mod publish;
mod racing;
mod reading;
mod regions;
mod reports;
mod requests;
mod reserved;
mod schema;
mod tokens;
mod unavailability;
