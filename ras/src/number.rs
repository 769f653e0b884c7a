//! Numbers of the command line. Amounts and counts are those of [`fleet::number`]; shares and seconds
//! have a fixed number of digits, so that columns line up.

pub use fleet::number::{count, rru as amount};

/// A share in percent.
pub fn percent(share: f64) -> String {
    // Adding 0 turns -0 into 0.
    format!("{:.2} %", (10_000.0 * share).round() / 100.0 + 0.0)
}

/// Seconds, with significant digits.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn zero_percent_has_no_sign() {
        assert_eq!([-1e-9, -0.0, 0.123_45].map(percent), ["0.00 %", "0.00 %", "12.35 %"]);
        assert_eq!(percent(-0.5), "-50.00 %");
    }
}
