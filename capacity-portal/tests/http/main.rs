//! The portal over HTTP, in front of a real Postgres that the tests start themselves.

mod allocator;
mod allocators;
mod certificate;
mod emergencies;
mod events;
mod foreign;
mod give_way;
mod guarantee;
mod maintenance;
mod maintenance_pages;
mod metrics;
mod openapi;
mod operators;
mod pages;
mod pictures;
mod place;
mod region_edits;
mod requests;
mod server_pages;
mod sessions;
mod settings_pages;
mod shield;
mod stored_plans;
mod tls;
mod tokens;
mod who_may;
