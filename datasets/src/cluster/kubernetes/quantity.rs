//! Quantities of Kubernetes: `250m`, `1.5`, `2Gi`, `1e3`.

use placement::Amount;

/// The largest amount that is read.
const MOST: f64 = 1e15;

/// A quantity times `scale`, as a whole amount: rounded up if `up`, else down.
pub fn read(text: &str, scale: f64, up: bool) -> Result<Amount, String> {
    let broken = || format!("{text:?} is not a quantity");
    let digits = text.find(|of: char| !(of.is_ascii_digit() || matches!(of, '.' | '+' | '-')));
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = match unit {
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "" => 1.0,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0_f64.powi(2),
        "Gi" => 1024.0_f64.powi(3),
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        exponent => {
            let power = exponent.strip_prefix(['e', 'E']).ok_or_else(broken)?;
            10f64.powi(power.parse().map_err(|_| broken())?)
        }
    };
    let number: f64 = number.parse().map_err(|_| broken())?;
    let amount = number * factor * scale;
    if !(0.0..=MOST).contains(&amount) {
        return Err(format!("{text:?} must be from 0 to {MOST:e} of the smallest unit"));
    }
    // A tenth of a milli-core is an error of the representation, not a need.
    let near = amount.round();
    let whole = match (amount - near).abs() < 1e-6 * near.max(1.0) {
        true => near,
        false if up => amount.ceil(),
        false => amount.floor(),
    };
    #[expect(clippy::cast_possible_truncation, reason = "a whole number from 0 to 1e15")]
    Ok(whole as Amount)
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn quantities_are_whole_amounts() {
        for (text, scale, up, expected) in [
            ("250m", 1_000.0, true, 250),
            ("1", 1_000.0, true, 1_000),
            ("1.5", 1_000.0, true, 1_500),
            ("0.1", 1_000.0, true, 100),
            ("100u", 1_000.0, true, 1),
            ("100u", 1_000.0, false, 0),
            ("2Gi", 1.0, true, 2_147_483_648),
            ("128974848", 1.0, true, 128_974_848),
            ("129e6", 1.0, true, 129_000_000),
            ("129M", 1.0, true, 129_000_000),
            ("1E", 1e-6, true, 1_000_000_000_000),
        ] {
            assert_eq!(read(text, scale, up), Ok(expected), "{text}");
        }
        for broken in ["", "m", "1x", "1.2.3", "-1", "1e99", "2 Gi", "9Ei"] {
            assert!(read(broken, 1.0, true).is_err(), "{broken}");
        }
    }
}
