//! `ras result explain`

use crate::cli::ExplainResult;
use crate::context::Context;
use crate::exit::Verdict;
use crate::results::{Solved, read_solved};
use anyhow::{Result, bail};
use fleet::explain::{Explainer, Explanation};
use fleet::{RegionSnapshot, ReservationIx};

pub(super) fn run(options: &ExplainResult, context: &Context) -> Result<Verdict> {
    let Solved { snapshot, targets, .. } = read_solved(&options.snapshot, &options.result)?;
    let explainer = Explainer::new(&snapshot, &targets);
    if let Some(name) = &options.reservation {
        let Some(reservation) = snapshot.reservation(name) else {
            bail!("no reservation {name:?}{}", suggestion(&snapshot, name));
        };
        let explanation = explainer.explain(reservation);
        context.answer(|| explanation.to_string(), &explanation)?;
        return Ok(Verdict::fine_if(explanation.shortfall.is_none()));
    }
    let all = (0..snapshot.reservations.len()).map(ReservationIx::new);
    let short: Vec<Explanation> = all
        .filter(|&reservation| explainer.shortfall_of(reservation).is_some())
        .map(|reservation| explainer.explain(reservation))
        .collect();
    let text = || {
        if short.is_empty() {
            return "no reservation is short".to_owned();
        }
        short.iter().map(|explanation| format!("{explanation}\n")).collect()
    };
    context.answer(text, &short)?;
    Ok(Verdict::fine_if(short.is_empty()))
}

/// A name within this edit distance, as a share of its length, is suggested.
const DISTANCE_SHARE: f64 = 0.4;
const SUGGESTIONS_MAX: usize = 3;

pub(super) fn suggestion(snapshot: &RegionSnapshot, name: &str) -> String {
    let names = snapshot.reservations.iter().map(|reservation| reservation.id.as_ref());
    among(names, name, "snapshot")
}

/// What is said of a name that is not among these: similar ones, or how many there are.
pub(super) fn among<'a>(
    names: impl ExactSizeIterator<Item = &'a str>,
    name: &str,
    of: &str,
) -> String {
    let count = names.len();
    let limit = (name.chars().count() as f64 * DISTANCE_SHARE).max(1.0);
    let mut near: Vec<(usize, &str)> = names
        .map(|other| (distance(name, other), other))
        .filter(|&(distance, _)| distance as f64 <= limit)
        .collect();
    near.sort_unstable();
    let near: Vec<String> =
        near.iter().take(SUGGESTIONS_MAX).map(|(_, name)| format!("{name:?}")).collect();
    match near.as_slice() {
        [] => format!("; the {of} has {count} of them"),
        near => format!("; did you mean {}?", near.join(" or ")),
    }
}

/// Edit distance (Levenshtein) between two names, ignoring case.
fn distance(one: &str, other: &str) -> usize {
    let letters = |text: &str| text.to_lowercase().chars().collect::<Vec<char>>();
    let (one, other) = (letters(one), letters(other));
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_of_names() {
        for (one, other, expected) in [
            ("web", "web", 0),
            ("Web", "web", 0),
            ("wbe", "web", 2),
            ("", "ab", 2),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(one, other), expected, "{one} {other}");
        }
    }
}
