//! The limit that a row states.

use crate::formula::{Formula, Lin};
use std::fmt;

/// Which side of its limit an amount must be on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// `<=`
    AtMost,
    /// `<`
    Below,
    /// `>=`
    AtLeast,
    /// `>`
    Above,
}

impl fmt::Display for Side {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Side::AtMost => "at most",
            Side::Below => "below",
            Side::AtLeast => "at least",
            Side::Above => "above",
        })
    }
}

/// The limit that a row states.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    /// The amount that is limited.
    pub lin: Lin,
    /// Where it is NULL, and so within no limit.
    pub null: Formula,
    pub side: Side,
    /// A constant.
    pub limit: Lin,
}
