//! Planned maintenance: which windows are accepted, what each does next, and the order of recalls.
//!
//! | module | decision |
//! |---|---|
//! | [`capacity`] | whether servers may be out of service beside others |
//! | [`lifecycle`] | the next step of a window |
//! | [`recall_order`] | the order in which active work is recalled while an MSB is lost |

pub mod capacity;
pub mod lifecycle;
pub mod recall_order;
#[cfg(test)]
mod year;
