//! What decisions on a request would have been over a range of the past, each from what was known then, and how they came out.

use super::backtest::{Outcome, Requested};
use super::{Action, Current, Decision, Reason, Settings, SettingsError, decide};
use crate::series::{Series, Step};
use serde::Serialize;

/// Days of demand that a decision rests on.
pub const LEARNT: u32 = 28;

/// A change of a request.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Resize {
    /// When it was decided, in the seconds of the series: at the end of a step.
    pub at: i64,
    /// The size before.
    pub from: f64,
    /// The size after.
    pub to: f64,
    /// Why; none: it was recorded.
    pub reason: Option<Reason>,
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// Its changes, in order.
    pub resizes: Vec<Resize>,
    /// How it came out.
    pub outcome: Outcome,
}

/// Decides at the end of each step of a series, from `from` on, from the last [`LEARNT`] days until then. `current` is the
/// request before the first decision.
///
/// # Errors
/// Settings that are out of range.
pub fn replay(
    series: &Series,
    settings: &Settings,
    mut current: Current,
    from: usize,
) -> Result<Replayed, SettingsError> {
    settings.check()?;
    let learnt = series.step().per(Step::DAY) * LEARNT as usize;
    let mut requested = Requested { from, sizes: Vec::new(), changes: Vec::new() };
    let mut resizes = Vec::new();
    for at in from..series.len() {
        let known = series.slice((at + 1).saturating_sub(learnt), at + 1);
        let now = series.time(at + 1);
        let decided = known.map(|known| decide(&known, settings, &current, now)).transpose()?;
        if let Some(Decision { action: Action::Grow(to) | Action::Shrink(to), reason }) = decided {
            resizes.push(Resize { at: now, from: current.request, to, reason: Some(reason) });
            current = Current { request: to, changed_at: Some(now) };
            requested.changes.push(at);
        }
        requested.sizes.push(current.request);
    }
    let outcome = requested.judge(series, from..series.len());
    Ok(Replayed { resizes, outcome })
}

/// The request as it was, by step of the demand; steps without a value are as the one before.
pub fn recorded(series: &Series, promised: &Series, from: usize) -> Replayed {
    let sizes = promised.filled();
    let mut requested = Requested { from, sizes: Vec::new(), changes: Vec::new() };
    let mut resizes = Vec::new();
    let size = |at: usize| sizes.get(at).or(sizes.last()).copied().unwrap_or(0.0);
    for at in from..series.len() {
        let (before, to) = (size(at.saturating_sub(1)), size(at));
        if to != before && at > from {
            resizes.push(Resize { at: series.time(at + 1), from: before, to, reason: None });
            requested.changes.push(at);
        }
        requested.sizes.push(to);
    }
    let outcome = requested.judge(series, from..series.len());
    Replayed { resizes, outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: Settings = Settings { quantile: 0.9, min: 0.0, max: 1e6, cooldown: 4 * 3_600 };

    fn series(values: &[f64]) -> Series {
        let values = values.iter().map(|value| Some(*value)).collect();
        Series::new(0, Step::HOUR, values).expect("valid")
    }

    /// Days of hours: 40 by night, 100 by day.
    fn days(count: usize) -> Vec<f64> {
        (0..count * 24)
            .map(|hour| if hour % 24 < 8 { 40.0 } else { 100.0 + (hour % 5) as f64 })
            .collect()
    }

    #[test]
    fn too_large_a_request_shrinks_and_a_jump_of_demand_is_short_for_an_hour() {
        let mut demand = days(10);
        for hour in &mut demand[200..] {
            *hour += 300.0;
        }
        let demand = series(&demand);
        let current = Current { request: 200.0, changed_at: None };
        let replayed = replay(&demand, &SETTINGS, current, 48).expect("settings");
        assert!(
            replayed.resizes.first().is_some_and(|first| first.to < first.from),
            "{replayed:?}"
        );
        let jump = replayed.resizes.iter().find(|of| of.to > 300.0).expect("it grows");
        assert_eq!(jump.at, 201 * 3_600, "at the end of the hour with the jump");
        assert!(matches!(jump.reason, Some(Reason::Filled { .. })), "{jump:?}");
        assert!(replayed.outcome.short_hours >= 1);
        assert_eq!(replayed.outcome.resizes, replayed.resizes.len());
        // As it was: a request that stays, and one change.
        let promised = series(&[vec![120.0; 150], vec![500.0; 90]].concat());
        let was = recorded(&demand, &promised, 48);
        assert_eq!((was.outcome.short_hours, was.resizes.len()), (0, 1));
        assert_eq!(
            (was.resizes[0].from, was.resizes[0].to, was.resizes[0].at),
            (120.0, 500.0, 151 * 3_600)
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, cases: 32, ..ProptestConfig::default() })]

        /// What comes after a decision has no say in it.
        #[test]
        fn later_demand_changes_no_decision(
            noise in prop::collection::vec(0.0_f64..200.0, 240),
            other in prop::collection::vec(0.0_f64..2_000.0, 240),
            cut in 60_usize..239,
        ) {
            let changed: Vec<f64> =
                noise[..cut].iter().chain(&other[cut..]).copied().collect();
            let decided = |values: &[f64]| {
                let current = Current { request: 100.0, changed_at: None };
                replay(&series(values), &SETTINGS, current, 48).expect("settings").resizes
            };
            let until = |resizes: Vec<Resize>| -> Vec<Resize> {
                resizes.into_iter().filter(|of| of.at <= cut as i64 * 3_600).collect()
            };
            let all = decided(&noise);
            prop_assert_eq!(until(all.clone()), until(decided(&changed)));
            prop_assert!(!all.is_empty());
        }
    }
}
