//! The real binary, end to end.

mod folder;
mod forecasting;
mod forecasting_long;
mod interrupted;
mod placing;
#[cfg(feature = "policies")]
mod policies;
mod requests;
mod samples;
mod solving;
mod words;
