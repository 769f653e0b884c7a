//! Numbers as people read them: those of [`fleet::number`], and numbers with units.

pub use fleet::number::{NOTHING, count, counted, decimal, rru};

use fleet::number::group;

/// Narrow space between a number and its unit. It never breaks a line.
const UNIT_SPACE: char = '\u{202f}';

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

/// A round share on an axis or in a legend, without trailing zeros.
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

/// A quantile of ascending values: the smallest of them that at least this share do not exceed. `None`: there
/// are no values.
pub fn quantile(ascending: &[f64], share: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is an index"
    )]
    let rank = (ascending.len() as f64 * share).ceil() as usize;
    ascending.get(rank.clamp(1, ascending.len().max(1)) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: String) -> String {
        text.replace(UNIT_SPACE, " ")
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

    #[test]
    fn quantiles_are_values_of_the_list() {
        let values = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(super::quantile(&values, 0.5), Some(2.0));
        assert_eq!(super::quantile(&values, 0.99), Some(4.0));
        assert_eq!(super::quantile(&[], 0.5), None);
        assert_eq!(super::quantile(&[7.0], 0.0), Some(7.0));
    }
}
