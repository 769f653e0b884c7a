//! Amounts that whole servers can show.

use fleet::Reservation;

/// The greatest common divisor.
fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// What every sum of servers of these values is a multiple of.
pub fn unit(values: impl Iterator<Item = i64>) -> i64 {
    values.fold(0, gcd).max(1)
}

/// What a reservation asks for, rounded up to that unit.
pub fn whole_capacity(of: &Reservation) -> i64 {
    let (asked, unit) = (of.capacity.0, unit(of.rru.iter().map(|(_, value)| value.0)));
    asked.checked_add(unit - 1).map_or(asked, |up| up / unit * unit)
}
