//! The broker on a real Postgres, started by the tests themselves.

mod ahead;
mod applied;
mod backup;
mod browsing;
mod constraints;
mod contracts;
mod crash;
mod current;
mod events;
mod harness;
mod history;
mod jobs;
mod keys;
mod load;
mod locks;
mod lost;
mod maintenance;
mod metrics;
mod moves;
mod plan;
mod private;
mod profiles;
mod publish;
mod quotas;
mod racing;
mod reading;
mod regions;
mod reports;
mod requests;
mod reserved;
mod schema;
mod tokens;
mod unavailability;
mod views;

use testkit::proxy;
