//! `ras ops replacements`

use super::{Context, Verdict};
use crate::cli::Replacements;
use crate::number::seconds;
use crate::store::{Need, with_store};
use crate::tables;
use anyhow::Result;
use broker::{REPLACED_WITHIN, ReplacementRow, ReplacementState, State};
use serde_json::{Value, json};

/// Length of the longest bar.
const BAR: usize = 40;

pub(super) fn run(options: &Replacements, context: &Context) -> Result<Verdict> {
    let states: &[ReplacementState] = if options.owed { &[ReplacementState::Owed] } else { &[] };
    let (rows, (counts, times)) = with_store(&options.store, Need::There, async |store| {
        let rows = store.broker.replacements(states, options.limit).await?;
        Ok((rows, store.broker.replacement_times().await?))
    })?;
    let owed = counts.iter().find(|(state, _)| state == ReplacementState::Owed.as_str());
    let owed = owed.map_or(0, |(_, count)| *count);
    let json = json!({
        "counts": counts.iter().map(|(state, count)| (state.clone(), json!(count)))
            .collect::<serde_json::Map<String, Value>>(),
        "seconds": {
            "p50": quantile(&times, 0.5), "p99": quantile(&times, 0.99), "most": times.last(),
            "at_most": REPLACED_WITHIN.map(|end| json!([end, times.partition_point(|t| *t <= end)])),
        },
        "replacements": rows.iter().map(ReplacementRow::json).collect::<Vec<_>>(),
    });
    context.answer(|| text(&rows, &counts, &times), &json)?;
    Ok(Verdict::fine_if(!options.owed || owed == 0))
}

/// The quantile of sorted values: a share of all is at most this.
pub(super) fn quantile(ordered: &[f64], share: f64) -> Option<f64> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a length is a place in it"
    )]
    let place = (ordered.len() as f64 * share).ceil() as usize;
    ordered.get(place.clamp(1, ordered.len().max(1)) - 1).copied()
}

/// The number in each bucket, as bars.
pub(super) fn histogram(ordered: &[f64]) -> String {
    let mut text = String::new();
    let mut below = 0;
    let ends = REPLACED_WITHIN.into_iter().map(Some).chain([None]);
    let counts: Vec<(Option<f64>, usize)> = ends
        .map(|end| {
            let until = end.map_or(ordered.len(), |end| ordered.partition_point(|t| *t <= end));
            let here = until - below;
            below = until;
            (end, here)
        })
        .collect();
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    for (end, count) in counts {
        let name = end.map_or("longer".to_owned(), |end| format!("<= {end} s"));
        let bar = "█".repeat((count * BAR).div_ceil(most));
        text.push_str(&format!("  {name:<12}{count:>8}  {bar}\n"));
    }
    text
}

fn text(rows: &[ReplacementRow], counts: &[(String, i64)], times: &[f64]) -> String {
    if counts.is_empty() {
        return "no server of a reservation has failed".to_owned();
    }
    let mut text = String::new();
    for (state, count) in counts {
        text.push_str(&format!("{state:<14}{count}\n"));
    }
    if let (Some(p50), Some(p99), Some(most)) =
        (quantile(times, 0.5), quantile(times, 0.99), times.last())
    {
        text.push_str(&format!(
            "\nfrom event to binding: 50 % within {}, 99 % within {}, all within {}\n{}",
            seconds(p50),
            seconds(p99),
            seconds(*most),
            histogram(times)
        ));
    }
    if rows.is_empty() {
        return text;
    }
    let mut table = tables::table(
        &["server", "reservation", "state", "since", "spare", "recorded", "event"],
        7..7,
    );
    for row in rows {
        table.add_row([
            row.server.to_string(),
            row.reservation.to_string(),
            row.state.as_str().to_owned(),
            row.state_at.format("%F %T").to_string(),
            row.spare.as_deref().unwrap_or("-").to_owned(),
            row.recorded_at.format("%F %T").to_string(),
            row.event.to_string(),
        ]);
    }
    text.push_str(&format!("\n{}", table.trim_fmt()));
    text
}

#[cfg(test)]
mod tests {
    use super::{histogram, quantile};

    #[test]
    fn quantiles_are_values_that_were_seen() {
        let times = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(quantile(&times, 0.5), Some(2.0));
        assert_eq!(quantile(&times, 0.99), Some(4.0));
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.0), Some(7.0));
        let text = histogram(&[0.5, 0.7, 4.0, 9_000.0]);
        let counts: Vec<&str> =
            text.lines().filter_map(|l| l.split_whitespace().nth_back(1)).collect();
        assert_eq!(text.lines().count(), 9, "{text}");
        assert!(counts.contains(&"2") && counts.contains(&"1"), "{text}");
    }
}
