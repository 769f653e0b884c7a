//! Parsing of quantities: `90s`, `0.01%`, `8GiB`. The errors are sentences that name the accepted
//! forms, both for clap and for `ras.toml`.

use std::str::FromStr;
use std::time::Duration;

/// Units of time, longest spelling first so that `ms` is not read as `m`.
const TIME_UNITS: [(&str, f64); 5] =
    [("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0), ("d", 86_400.0)];

/// Maximum deadline: solves are hourly, and a month catches typing errors.
const SECONDS_MAX: f64 = 31.0 * 24.0 * 3600.0;

/// Maximum span of a log: a century catches typing errors.
const SPAN_SECONDS_MAX: f64 = 100.0 * 365.0 * 86_400.0;

/// Reads a duration such as `60s`, `2m`, `1m30s`, `250ms` or `0`, of at most 31 days.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn duration(text: &str) -> Result<Duration, String> {
    duration_up_to(text, SECONDS_MAX)
}

/// Reads the span of a log, such as `90d`, of at most a century.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn span(text: &str) -> Result<Duration, String> {
    duration_up_to(text, SPAN_SECONDS_MAX)
}

fn duration_up_to(text: &str, seconds_max: f64) -> Result<Duration, String> {
    let complaint = || format!("{text:?} is not a duration such as 60s, 2m, 1m30s, 250ms or 0");
    let mut rest = text.trim();
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let digits =
            rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).ok_or_else(complaint)?;
        let number: f64 = rest[..digits].parse().map_err(|_| complaint())?;
        rest = &rest[digits..];
        let (unit, factor) = TIME_UNITS
            .into_iter()
            .find(|(unit, _)| rest.starts_with(unit))
            .ok_or_else(complaint)?;
        rest = &rest[unit.len()..];
        seconds += number * factor;
    }
    if text.trim().is_empty() || !(0.0..=seconds_max).contains(&seconds) {
        return Err(complaint());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// Reads a share such as `0.01%` or `0.0001`; at least 0 and at most 1.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn share(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, factor) = text.strip_suffix('%').map_or((text, 1.0), |n| (n.trim_end(), 0.01));
    match number.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number * factor)) => Ok(number * factor),
        _ => Err(format!("{text:?} is not a share such as 0.01% or 0.0001 (from 0 to 1)")),
    }
}

/// Reads a number that is finite and not negative.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn not_negative(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err(format!("{text:?} is not a finite number of at least 0")),
    }
}

/// Two names.
///
/// # Errors
/// If it is not NAME=NAME.
pub fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("expected two names, such as switch=sw1".to_owned()),
    }
}

/// Reads a name and a number that is finite and not negative, such as `A=1.5`.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn named_number(text: &str) -> Result<(String, f64), String> {
    // The last sign: names may have one of their own.
    match text.trim().rsplit_once('=') {
        Some((name, number)) if !name.is_empty() => Ok((name.to_owned(), not_negative(number)?)),
        _ => Err(format!("{text:?} is not a name and a number, such as A=1.5")),
    }
}

/// Reads a count.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn count(text: &str) -> Result<u32, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not a whole number"))
}

/// Reads an id.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn id<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not an id such as `ras list` prints"))
}

/// Reads an amount of memory such as `8GiB`, `512MiB` or `2GB`.
///
/// # Errors
/// A sentence, if the text is anything else.
pub fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 6] = [
        ("GiB", 1 << 30),
        ("MiB", 1 << 20),
        ("KiB", 1 << 10),
        ("GB", 1_000_000_000),
        ("MB", 1_000_000),
        ("B", 1),
    ];
    let text = text.trim();
    let found = UNITS.iter().find_map(|(unit, factor)| {
        text.strip_suffix(unit)?.trim_end().parse::<u64>().ok()?.checked_mul(*factor)
    });
    found.ok_or_else(|| format!("{text:?} is not an amount of memory such as 8GiB or 512MiB"))
}

/// Writes an amount of memory with one decimal, in MiB or GiB.
pub fn show_bytes(bytes: u64) -> String {
    let mib = bytes as f64 / f64::from(1 << 20);
    if mib < 1024.0 { format!("{mib:.0} MiB") } else { format!("{:.1} GiB", mib / 1024.0) }
}

/// Formats a duration so that it can be parsed again: `90s`, `1.5s`.
pub fn show_duration(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds >= 10.0 { format!("{seconds:.0}s") } else { format!("{seconds:.1}s") }
}

/// Writes a long duration in the largest units that show it whole: `1d`, `1h30m`, `90s`.
pub fn show_window(window: Duration) -> String {
    let mut seconds = window.as_secs();
    if seconds == 0 {
        return "0s".to_owned();
    }
    let mut text = String::new();
    for (unit, size) in [("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)] {
        if seconds >= size {
            text.push_str(&format!("{}{unit}", seconds / size));
            seconds %= size;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_people_type() {
        for (text, millis) in [
            ("60s", 60_000),
            ("2m", 120_000),
            ("1m30s", 90_000),
            ("250ms", 250),
            ("1.5s", 1_500),
            ("1h", 3_600_000),
            ("1d12h", 129_600_000),
            ("0", 0),
            ("0s", 0),
        ] {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "60", "s", "-1s", "1x", "1s2", "1e400h", "nan s", "9999999h", "1..2s"] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn spans_are_longer_than_deadlines() {
        assert_eq!(span("90d"), Ok(Duration::from_secs(90 * 86_400)));
        assert!(duration("90d").is_err() && span("40000d").is_err());
    }

    #[test]
    fn windows_are_shown_as_typed() {
        for text in ["1d", "7d", "1h30m", "1d12h", "45s", "0s"] {
            assert_eq!(show_window(duration(text).expect("a duration")), text);
        }
    }

    #[test]
    fn shares_people_type() {
        assert_eq!(share("1%"), Ok(0.01));
        assert_eq!(share("0.25"), Ok(0.25));
        for text in ["", "%", "-1%", "101%", "1.5", "NaN", "inf"] {
            assert!(share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn amounts_of_memory_people_type() {
        assert_eq!(bytes("8GiB"), Ok(8 << 30));
        assert_eq!(bytes("512 MiB"), Ok(512 << 20));
        for text in ["", "8", "GiB", "-1GiB", "1.5GiB", "99999999999999999999GiB", "18446744073GiB"]
        {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
