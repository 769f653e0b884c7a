//! Numbers of the command line. Amounts and counts are those of [`fleet::number`]; shares and seconds
//! have a fixed number of digits, so that columns line up.

pub use fleet::number::{count, rru as amount};

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Seconds, with significant digits.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}
