//! The real binary, end to end.

mod folder;
mod forecasting;
mod forecasting_long;
mod interrupted;
mod placing;
mod requests;
mod samples;
mod solving;
mod words;
