//! Planned maintenance: which windows are accepted, what each does next, and the order of recalls.
//!
//! | module | decision |
//! |---|---|
//! | [`capacity`] | whether servers may be out of service beside others |
//! | [`lifecycle`] | the next step of a window |
//! | [`planning`] | the windows of a request, or its refusal and the alternatives |
//! | [`preview`] | the reservations that a plan touches |
//! | [`recall_order`] | the order in which active work is recalled while an MSB is lost |

pub mod capacity;
pub mod lifecycle;
pub mod planning;
pub mod preview;
pub mod recall_order;
pub mod refusal;
#[cfg(test)]
mod year;
