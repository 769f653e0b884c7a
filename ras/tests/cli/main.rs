//! The real binary, end to end.

mod interrupted;
mod place;
mod requests;
mod samples;
mod solving;
mod words;
