//! Relative resource units, held exactly.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// An amount of relative resource units (RRU) in whole micro-RRU.
///
/// Sums are exact and equality is meaningful, so the audit owes nothing to floating point. Signed,
/// because differences are amounts too; amounts read from a snapshot are never negative.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Rru(pub i64);

/// Micro-RRU in one RRU.
pub const MICRO: i64 = 1_000_000;

/// The largest single amount accepted from outside, in RRU: beyond any region, and exact in an
/// `f64` to the micro-RRU. [`crate::RegionSnapshot`] bounds what amounts may add up to.
pub const RRU_MAX: f64 = 1e9;

impl Rru {
    /// No capacity.
    pub const ZERO: Rru = Rru(0);

    /// Rounds an amount in RRU to the nearest micro-RRU; `None` if it is not finite or is larger
    /// than [`RRU_MAX`].
    pub fn from_f64(amount: f64) -> Option<Rru> {
        #[expect(clippy::cast_possible_truncation, reason = "bounded by RRU_MAX on this line")]
        (amount.is_finite() && amount.abs() <= RRU_MAX)
            .then(|| Rru((amount * MICRO as f64).round() as i64))
    }

    /// The amount in RRU.
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / MICRO as f64
    }

    /// A number of whole units.
    pub fn units(count: usize) -> Rru {
        Rru(count as i64 * MICRO)
    }

    /// This amount `count` times.
    pub fn times(self, count: usize) -> Rru {
        Rru(self.0 * count as i64)
    }

    /// The fewest servers of this value that are worth an amount; none for zero and less. Amounts of
    /// several reservations add up in servers only, because each reservation has its own unit of RRU.
    /// With a value of zero any amount takes one server at least.
    pub fn servers_for(self, amount: Rru) -> usize {
        if self.0 <= 0 {
            return usize::from(amount.0 > 0);
        }
        let servers = amount.0.max(0).unsigned_abs().div_ceil(self.0.unsigned_abs());
        usize::try_from(servers).unwrap_or(usize::MAX)
    }

    /// The amount, or zero where it is negative.
    pub fn or_zero(self) -> Rru {
        Rru(self.0.max(0))
    }
}

impl Add for Rru {
    type Output = Rru;
    fn add(self, other: Rru) -> Rru {
        Rru(self.0 + other.0)
    }
}
impl Sub for Rru {
    type Output = Rru;
    fn sub(self, other: Rru) -> Rru {
        Rru(self.0 - other.0)
    }
}
impl AddAssign for Rru {
    fn add_assign(&mut self, other: Rru) {
        self.0 += other.0;
    }
}
impl SubAssign for Rru {
    fn sub_assign(&mut self, other: Rru) {
        self.0 -= other.0;
    }
}
impl Sum for Rru {
    fn sum<I: Iterator<Item = Rru>>(amounts: I) -> Rru {
        amounts.fold(Rru::ZERO, Add::add)
    }
}

/// Prints the shortest decimal that is exact: `12`, `0.958984`.
impl fmt::Display for Rru {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let (whole, part) = (self.0.unsigned_abs() / 1_000_000, self.0.unsigned_abs() % 1_000_000);
        let text = if part == 0 {
            format!("{sign}{whole}")
        } else {
            format!("{sign}{whole}.{part:06}").trim_end_matches('0').to_owned()
        };
        out.pad(&text)
    }
}
