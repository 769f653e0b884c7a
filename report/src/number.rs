//! Numbers as people read them: thousands separators, units, as many digits as matter.

use fleet::Rru;

/// Stands between a number and its unit, and never breaks a line.
const UNIT_SPACE: char = '\u{202f}';

/// What a cell without a number shows.
pub const NOTHING: &str = "–";

/// A count: `12,345`.
pub fn count(number: usize) -> String {
    group(&number.to_string())
}

/// A noun with its count: `1 server`, `12,345 servers`.
pub fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// An amount of RRU, with at most two decimals.
pub fn rru(amount: Rru) -> String {
    decimal(amount.to_f64())
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

/// A decimal with few characters, for an axis: `250`, `1.5 k`, `10 M`.
pub fn short(number: f64) -> String {
    let (value, unit) = match number.abs() {
        size if size >= 1e9 => (number / 1e9, "G"),
        size if size >= 1e6 => (number / 1e6, "M"),
        size if size >= 1e4 => (number / 1e3, "k"),
        _ => return decimal(number),
    };
    let text = format!("{value:.6}");
    format!("{}{UNIT_SPACE}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A share of one in percent: `4.21 %`, `12.3 %`, `0.0012 %`.
pub fn percent(share: f64) -> String {
    if !share.is_finite() {
        return NOTHING.to_owned();
    }
    let value = share * 100.0;
    let size = value.abs();
    let places = match size {
        _ if size == 0.0 => 0,
        _ if size >= 9.995 => 1,
        _ if size >= 0.01 => 2,
        _ => 4,
    };
    let sign = if value < 0.0 { "−" } else { "" };
    format!("{sign}{}{UNIT_SPACE}%", group(&format!("{size:.places$}")))
}

/// A round share on an axis or in a legend, without decimals it does not need.
pub fn percent_round(share: f64) -> String {
    let value = share * 100.0;
    let places = if value.abs() >= 0.095 || value == 0.0 { 1 } else { 5 };
    let text = format!("{value:.places$}");
    format!("{}{UNIT_SPACE}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// A duration: `320 ms`, `41.2 s`, `12 min 5 s`.
pub fn seconds(seconds: f64) -> String {
    if !seconds.is_finite() || seconds < 0.0 {
        return NOTHING.to_owned();
    }
    // An empty sum of floats is minus zero.
    let seconds = seconds.abs();
    if seconds < 0.0995 {
        return format!("{:.0}{UNIT_SPACE}ms", seconds * 1_000.0);
    }
    if seconds < 119.5 {
        let places = if seconds < 9.95 { 2 } else { 1 };
        return format!("{seconds:.places$}{UNIT_SPACE}s");
    }
    let whole = seconds.round();
    format!("{}{UNIT_SPACE}min {}{UNIT_SPACE}s", (whole / 60.0).floor(), whole % 60.0)
}

/// An amount of memory.
pub fn bytes(bytes: f64) -> String {
    const MEBI: f64 = 1_048_576.0;
    if bytes < 1_024.0 * MEBI {
        format!("{:.0}{UNIT_SPACE}MiB", bytes / MEBI)
    } else {
        format!("{:.2}{UNIT_SPACE}GiB", bytes / MEBI / 1_024.0)
    }
}

/// A power draw, in the unit that fits it.
pub fn watts(watts: f64) -> String {
    let (value, unit) = match watts.abs() {
        size if size >= 1e6 => (watts / 1e6, "MW"),
        size if size >= 1e3 => (watts / 1e3, "kW"),
        _ => (watts, "W"),
    };
    format!("{}{UNIT_SPACE}{unit}", decimal((value * 100.0).round() / 100.0))
}

/// Puts a comma before each three digits of the whole part.
fn group(digits: &str) -> String {
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

    fn plain(text: String) -> String {
        text.replace(UNIT_SPACE, " ")
    }

    #[test]
    fn counts_have_thousands_separators() {
        assert_eq!(["0", "999", "1,000", "1,234,567"], [0, 999, 1_000, 1_234_567].map(count)[..]);
        assert_eq!(counted(1, "server"), "1 server");
        assert_eq!(counted(0, "server"), "0 servers");
    }

    #[test]
    fn decimals_show_the_digits_that_matter() {
        let numbers = [12_345.6, 123.45, 1.5, 0.004, 0.0, -2.0, f64::NAN];
        assert_eq!(numbers.map(decimal), ["12,346", "123.5", "1.5", "0.004", "0", "−2", "–"]);
    }

    #[test]
    fn axis_labels_are_short_and_exact() {
        let labels = [0.0, 250.0, 9_500.0, 12_500.0, 1e7, 2.5e9].map(|n| plain(short(n)));
        assert_eq!(labels, ["0", "250", "9,500", "12.5 k", "10 M", "2.5 G"]);
    }

    #[test]
    fn shares_and_units() {
        let shares = [0.0421, 0.123, 0.000_012, 0.0, 1.0, 12.0, 0.09999];
        let expected = ["4.21 %", "12.3 %", "0.0012 %", "0 %", "100.0 %", "1,200.0 %", "10.0 %"];
        assert_eq!(shares.map(|s| plain(percent(s))), expected);
        assert_eq!(plain(percent_round(0.025)), "2.5 %");
        let times = [-0.0, 0.0123, 1.234, 61.25, 725.2, -1.0];
        assert_eq!(
            times.map(|s| plain(seconds(s))),
            ["0 ms", "12 ms", "1.23 s", "61.2 s", "12 min 5 s", "–"]
        );
        assert_eq!(plain(bytes(3.0 * 1_048_576.0)), "3 MiB");
        assert_eq!(plain(bytes(1.5 * 1_073_741_824.0)), "1.50 GiB");
        assert_eq!(
            [350.0, 1_234.0, 2.5e6].map(|w| plain(watts(w))),
            ["350 W", "1.23 kW", "2.5 MW"]
        );
    }
}
