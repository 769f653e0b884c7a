//! A whole split by types of which one replaces another.
//!
//! Alone, a type that is being replaced looks like one in decline, and its successor like one that
//! grows without end. Together they are shares of a whole: the logarithm of the ratio of a new
//! technology to an old one grows about linearly while it replaces it (Fisher and Pry, 1971).

use super::WEEK;
use super::daily::mean;
use super::point::same_weekday;

/// Weeks that the growth of a ratio is taken from.
const WEEKS: usize = 6;
/// The largest growth of a logarithm per day: a ratio that doubles in a week.
const STEEPEST: f64 = 0.1;

/// Splits a forecast of the whole into its types: by day, then type, in the order given. `types` are
/// the histories of the types, of one length. Each type's share follows its own growth in
/// logarithms, of the median week over the last six; shares of a day add up to 1. A type that has
/// had no demand for a week stays at 0: its first server is not foreseen.
pub fn split(types: &[&[f64]], whole: &[f64]) -> Vec<Vec<f64>> {
    let days = types.iter().map(|history| history.len()).min().unwrap_or(0);
    let recent: Vec<f64> = types.iter().map(|history| mean(last_week(history, days, 0))).collect();
    let growth: Vec<f64> = types.iter().map(|history| growth(history, days)).collect();
    let day = |(at, whole): (usize, &f64)| {
        let ahead = (at + 1 + WEEK / 2) as f64;
        let part = |(of, history): (usize, &&[f64])| {
            // The type's own weekday, where there is one.
            let today =
                if days < WEEK { recent[of] } else { same_weekday(&history[..days], at + 1) };
            let base = if today > 0.0 { today } else { recent[of] };
            base * (growth[of] * ahead).exp()
        };
        let parts: Vec<f64> = types.iter().enumerate().map(part).collect();
        let sum: f64 = parts.iter().sum();
        parts.iter().map(|part| if sum > 0.0 { whole * part / sum } else { 0.0 }).collect()
    };
    whole.iter().enumerate().map(day).collect()
}

/// The week that ends `back` weeks before the last day.
fn last_week(history: &[f64], days: usize, back: usize) -> &[f64] {
    let end = days.saturating_sub(back * WEEK);
    &history[end.saturating_sub(WEEK)..end]
}

/// Growth of the logarithm per day: the median over pairs of the last weeks with demand.
fn growth(history: &[f64], days: usize) -> f64 {
    let weeks: Vec<f64> = (0..WEEKS).map(|back| mean(last_week(history, days, back))).collect();
    let mut slopes = Vec::new();
    for newer in 0..weeks.len() {
        for older in newer + 1..weeks.len() {
            if weeks[newer] > 0.0 && weeks[older] > 0.0 {
                slopes.push((weeks[newer] / weeks[older]).ln() / (WEEK * (older - newer)) as f64);
            }
        }
    }
    super::bands::median(&mut slopes).clamp(-STEEPEST, STEEPEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two types of a whole of 100, the ratio of which grows by a fixed factor a day.
    fn replaced(days: usize) -> (Vec<f64>, Vec<f64>) {
        let new = |day: usize| 100.0 / (1.0 + (-0.05 * (day as f64 - 60.0)).exp());
        (0..days).map(|day| (100.0 - new(day), new(day))).unzip()
    }

    #[test]
    fn a_replacement_is_followed() {
        let (old, new) = replaced(90);
        let split = split(&[&old[..50], &new[..50]], &[100.0; 40]);
        for (ahead, parts) in split.iter().enumerate() {
            assert!((parts[0] + parts[1] - 100.0).abs() < 1e-9);
            assert!((parts[1] - new[50 + ahead]).abs() < 12.0, "{ahead}: {}", parts[1]);
        }
        let frozen = (new[89] - new[49]).abs();
        assert!((split[39][1] - new[89]).abs() < 0.4 * frozen);
    }

    #[test]
    fn what_is_not_used_stays_unused() {
        let parts = split(&[&[5.0; 30], &[0.0; 30]], &[10.0, 20.0]);
        assert_eq!(parts, [[10.0, 0.0], [20.0, 0.0]]);
        assert_eq!(split(&[&[0.0; 30]], &[10.0]), [[0.0]]);
        assert_eq!(split(&[], &[10.0]), [Vec::<f64>::new()]);
        assert_eq!(split(&[&[]], &[10.0]), [[0.0]]);
    }
}
