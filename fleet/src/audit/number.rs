//! How amounts are written: exact inside, RRU as a number outside.

use crate::rru::{MICRO, Rru};
use serde::{Deserialize, Deserializer, Serializer, de::Error};

/// Writes an amount in RRU, the unit of `report.json`, instead of micro-RRU.
pub(crate) fn as_rru<S: Serializer>(amount: &Rru, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_f64(amount.to_f64())
}

/// Reads an amount in RRU. Sums may be larger than any single amount a region has.
pub(crate) fn from_rru<'de, D: Deserializer<'de>>(from: D) -> Result<Rru, D::Error> {
    let amount = f64::deserialize(from)?;
    let micro = (amount * MICRO as f64).round();
    #[expect(clippy::cast_possible_truncation, reason = "bounded on this line")]
    let rru = (micro.abs() < i64::MAX as f64).then_some(Rru(micro as i64));
    rru.ok_or_else(|| D::Error::custom(format!("{amount} is no amount of RRU")))
}

/// Reads a member that may be null but must be there.
pub(crate) fn required<'de, D, T>(from: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from)
}
