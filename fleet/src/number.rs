//! Numbers as sentences, tables and pages print them: thousands separators, as many digits as matter.

use crate::rru::Rru;

/// What a cell without a number shows.
pub const NOTHING: &str = "–";

/// A count: `12,345`.
pub fn count(number: usize) -> String {
    group(&number.to_string())
}

/// A noun with its count: `1 server`, `12,345 servers`, `2 entries`.
pub fn counted(number: usize, noun: &str) -> String {
    let number_of = count(number);
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o'])) {
        _ if number == 1 => format!("{number_of} {noun}"),
        Some(stem) => format!("{number_of} {stem}ies"),
        None => format!("{number_of} {noun}s"),
    }
}

/// An amount of RRU with about four digits: `12,345`, `842.3`, `1.25`. An amount above zero is never
/// printed as zero.
pub fn rru(amount: Rru) -> String {
    decimal(amount.to_f64())
}

/// An amount of RRU with all its decimals: `1,234.567891`.
pub fn exact(amount: Rru) -> String {
    let text = amount.to_string();
    match text.strip_prefix('-') {
        Some(digits) => format!("−{}", group(digits)),
        None => group(&text),
    }
}

/// Amounts that are compared: rounded, unless two that differ would look equal.
pub fn compared<const N: usize>(values: [Rru; N]) -> [String; N] {
    let rounded = values.map(rru);
    let collide =
        (0..N).any(|i| (0..i).any(|j| values[i] != values[j] && rounded[i] == rounded[j]));
    if collide { values.map(exact) } else { rounded }
}

/// A decimal of about four digits: `12,345`, `123.4`, `1.23`, `0.0012`.
pub fn decimal(number: f64) -> String {
    if !number.is_finite() {
        return NOTHING.to_owned();
    }
    let size = number.abs();
    let places = match size {
        _ if size == 0.0 || size >= 1_000.0 => 0,
        _ if size >= 100.0 => 1,
        _ if size >= 0.01 => 2,
        _ => 6,
    };
    let text = format!("{size:.places$}");
    let text = if places > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let sign = if number < 0.0 && text != "0" { "−" } else { "" };
    format!("{sign}{}", group(text))
}

/// Puts a comma before each three digits of the whole part.
pub fn group(digits: &str) -> String {
    let (whole, rest) = digits.split_at(digits.find('.').unwrap_or(digits.len()));
    let mut text = String::with_capacity(digits.len() + whole.len() / 3);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_amounts_never_look_equal() {
        let [a, b] = compared([Rru(1_842_000_000), Rru(1_842_300_000)]);
        assert_eq!((a.as_str(), b.as_str()), ("1,842", "1,842.3"));
    }

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(count)[..]);
        assert_eq!(counted(1, "server"), "1 server");
        assert_eq!(counted(0, "server"), "0 servers");
        assert_eq!(counted(2, "entry"), "2 entries");
        assert_eq!(counted(2, "day"), "2 days");
    }

    #[test]
    fn decimals_have_the_digits_that_matter() {
        let numbers = [12_345.6, 123.45, 1.5, 0.004, 0.0, -2.0, f64::NAN];
        assert_eq!(numbers.map(decimal), ["12,346", "123.5", "1.5", "0.004", "0", "−2", "–"]);
    }

    #[test]
    fn amounts_above_zero_are_not_printed_as_zero() {
        let amounts = [1_028_270_000, 842_300_000, 99_994_000, 2_100_000, 1, 0, -1_234_500_000];
        let texts = amounts.map(|micro| rru(Rru(micro)));
        assert_eq!(texts, ["1,028", "842.3", "99.99", "2.1", "0.000001", "0", "−1,234"]);
        assert_eq!(exact(Rru(-1_234_500_000)), "−1,234.5");
        assert_eq!(exact(Rru(1_000_000_000_001)), "1,000,000.000001");
    }
}
