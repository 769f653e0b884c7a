//! Numbers and names as people read them.

use crate::id::{HardwareTypeIx, Name};
use crate::rru::{MICRO, Rru};

/// Amounts from here on are written without decimals where nothing depends on them.
const WHOLE_FROM: i64 = 100 * MICRO;

/// A count with thousands separators: `1,028`.
pub(super) fn count(number: usize) -> String {
    group(&number.to_string())
}

/// An amount for reading: whole from 100 on, at most two decimals below.
pub(super) fn amount(amount: Rru) -> String {
    let step = if amount.0.abs() >= WHOLE_FROM { MICRO } else { MICRO / 100 };
    let rounded = (amount.0 + step / 2).div_euclid(step) * step;
    // What is not zero is not called zero.
    if rounded == 0 { exact(amount) } else { exact(Rru(rounded)) }
}

/// Amounts that stand side by side: rounded, unless two that differ would then look equal.
pub(super) fn amounts<const N: usize>(values: [Rru; N]) -> [String; N] {
    let rounded = values.map(amount);
    let collide =
        (0..N).any(|i| (0..i).any(|j| values[i] != values[j] && rounded[i] == rounded[j]));
    if collide { values.map(exact) } else { rounded }
}

/// An amount with all its decimals and thousands separators.
pub(super) fn exact(amount: Rru) -> String {
    let text = amount.to_string();
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    match text.split_once('.') {
        Some((whole, part)) => format!("{sign}{}.{part}", group(whole)),
        None => format!("{sign}{}", group(text)),
    }
}

fn group(digits: &str) -> String {
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 server`, `2 servers`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", count(number))
}

/// The most models a name of a set lists before it only counts.
const MODELS_LISTED: usize = 6;

/// Names a set of hardware types: a single type by its name, others by the models they belong to
/// (`T4` for `T4-x2-c104-m512` and `T4-x4-c96-m384`), a model that has more types with the number
/// that are meant.
pub(super) fn set_name(all: &[Name], set: &[HardwareTypeIx]) -> String {
    if let [only] = set {
        return all[only.ix()].to_string();
    }
    // Sorted by type, types of a model stand together, because names are ordered bytewise.
    let mut models: Vec<(&str, usize)> = Vec::new();
    for ty in set {
        let model = model(&all[ty.ix()]);
        match models.iter_mut().find(|(known, _)| *known == model) {
            Some((_, types)) => *types += 1,
            None => models.push((model, 1)),
        }
    }
    if models.len() > MODELS_LISTED {
        return format!("{} hardware types, {} to {}", set.len(), models[0].0, {
            models[models.len() - 1].0
        });
    }
    let label = |&(name, types): &(&str, usize)| {
        let of = all.iter().filter(|other| model(other) == name).count();
        if types == of { name.to_owned() } else { format!("{name} ({types} of {of})") }
    };
    models.iter().map(label).collect::<Vec<_>>().join(" + ")
}

/// The leading part of a type's name, up to the first separator.
fn model(name: &str) -> &str {
    name.split(['-', '_', '.', '/', ' ', ':']).find(|part| !part.is_empty()).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_rounded_for_reading() {
        assert_eq!(amount(Rru(1_028_270_000)), "1,028");
        assert_eq!(amount(Rru(99_994_000)), "99.99");
        assert_eq!(amount(Rru(2_100_000)), "2.1");
        assert_eq!(amount(Rru(1)), "0.000001");
        assert_eq!(amount(Rru::ZERO), "0");
        assert_eq!(amount(Rru(-1_234_500_000)), "-1,234");
        assert_eq!(count(1_000_000), "1,000,000");
    }

    #[test]
    fn amounts_side_by_side_stay_apart() {
        let [a, b] = amounts([Rru(842_000_000), Rru(842_300_000)]);
        assert_eq!((a.as_str(), b.as_str()), ("842", "842.3"));
    }

    #[test]
    fn sets_are_named_by_model() {
        let all: Vec<Name> = ["A10-x1", "T4-x2", "T4-x4", "V100-x1"].map(Name::from).to_vec();
        let set = |positions: &[usize]| -> Vec<HardwareTypeIx> {
            positions.iter().map(|&position| HardwareTypeIx::new(position)).collect()
        };
        assert_eq!(set_name(&all, &set(&[1, 2])), "T4");
        assert_eq!(set_name(&all, &set(&[1])), "T4-x2");
        assert_eq!(set_name(&all, &set(&[0, 1])), "A10 + T4 (1 of 2)");
    }
}
