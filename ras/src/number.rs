//! Formatting of numbers.

use fleet::Rru;

/// An amount of RRU: groups of thousands, at most one decimal (three below ten).
pub fn amount(amount: Rru) -> String {
    let value = amount.to_f64();
    let digits = if value.abs() < 10.0 { 3 } else { 1 };
    let text = format!("{value:.digits$}");
    let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
    let part = part.trim_end_matches('0');
    let whole = group(whole);
    if part.is_empty() { whole } else { format!("{whole}.{part}") }
}

/// A count, in groups of thousands.
pub fn count(count: usize) -> String {
    group(&count.to_string())
}

/// A share in percent.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

/// Seconds, with significant digits.
pub fn seconds(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2} s") } else { format!("{seconds:.1} s") }
}

fn group(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = String::from(sign);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_keep_the_digits_that_matter() {
        for (value, text) in [
            (0.0, "0"),
            (0.958984, "0.959"),
            (12.34, "12.3"),
            (1234567.0, "1,234,567"),
            (-1000.0, "-1,000"),
        ] {
            assert_eq!(amount(Rru::from_f64(value).expect("small")), text);
        }
    }
}
