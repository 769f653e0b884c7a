//! How amounts are written: exact inside, RRU as a number outside.

use crate::rru::Rru;
use serde::Serializer;

/// Writes an amount in RRU, the unit of `report.json`, instead of micro-RRU.
pub(crate) fn as_rru<S: Serializer>(amount: &Rru, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(amount.to_f64())
}
