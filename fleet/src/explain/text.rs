//! Amounts and names in the sentences of explanations.

use crate::id::{HardwareTypeIx, HardwareTypeName};
pub(super) use crate::number::{compared as amounts, count, counted, exact, rru as amount};

/// The most models that the name of a set lists.
const MODELS_LISTED: usize = 6;

/// Names a set of hardware types: a single type by its name, several by their models (`T4` for
/// `T4-x2-c104-m512` and `T4-x4-c96-m384`). A model of which only some types are in the set is named
/// with their number.
pub(super) fn set_name(all: &[HardwareTypeName], set: &[HardwareTypeIx]) -> String {
    if let [only] = set {
        return all[only.ix()].to_string();
    }
    // The types of a model are adjacent, because names are ordered bytewise.
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
    fn set_is_named_by_its_models() {
        let all: Vec<HardwareTypeName> =
            ["A10-x1", "T4-x2", "T4-x4", "V100-x1"].map(HardwareTypeName::from).to_vec();
        let set = |positions: &[usize]| -> Vec<HardwareTypeIx> {
            positions.iter().map(|&position| HardwareTypeIx::new(position)).collect()
        };
        assert_eq!(set_name(&all, &set(&[1, 2])), "T4");
        assert_eq!(set_name(&all, &set(&[1])), "T4-x2");
        assert_eq!(set_name(&all, &set(&[0, 1])), "A10 + T4 (1 of 2)");
    }
}
