//! Other ways to solve the same problem, to measure this solver against. Only with the feature `baselines`, which the
//! server is built without.
//!
//! | module | one line |
//! |---|---|
//! | [`greedy`] | reservation by reservation, rack by rack |
//! | [`mip`] | HiGHS on all of phase 1, pooled or raw, and the LP relaxation |
//! | [`raw`] | the paper's model: one binary for each server and reservation |
//! | [`least_buffer()`] | a lower bound on the embedded buffers |

pub mod greedy;
mod least_buffer;
pub mod mip;
pub mod raw;

pub use least_buffer::least_buffer;
