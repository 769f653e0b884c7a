//! The real binary, end to end.

mod domains;
mod folder;
mod forecasting;
mod forecasting_archive;
mod forecasting_long;
mod forecasting_orders;
mod forecasting_plan;
mod forecasting_spares;
mod interrupted;
mod placing;
#[cfg(feature = "policies")]
mod policies;
mod requests;
mod samples;
mod solving;
mod words;
