//! `ras forecast autosize`

use super::series::{self, Grain, Source, Wanted};
use crate::cli::AutosizeForecast;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use crate::quantity;
use anyhow::{Context as _, Result};
use datasets::import::NamedSeries;
use fleet::number::{NOTHING, decimal};
use forecast::Notice;
use forecast::autosize::backtest::{Backtest, Sizing, Terms, Tried, backtest};
use serde::Serialize;
use std::time::Duration;

/// What is read of a region's history: what each reservation uses.
pub(super) const USED: Wanted =
    Wanted { grain: Grain::Sample, value: "used_rru", by: &["reservation"], days: 42 };

/// `ras-forecast-autosize/1`
#[derive(Serialize)]
pub(super) struct Answer {
    format: &'static str,
    pub(super) chance: f64,
    pub(super) series: Vec<OfSeries>,
}

#[derive(Serialize)]
pub(super) struct OfSeries {
    pub(super) name: String,
    notices: Vec<Notice>,
    /// Why nothing is recommended; null: something could be tried.
    pub(super) refused: Option<String>,
    #[serde(flatten)]
    pub(super) backtest: Option<Backtest>,
}

pub(super) fn run(options: &AutosizeForecast, context: &Context) -> Result<Verdict> {
    let archive = series::archive(&options.of, context)?;
    let source = Source::new(&options.of, archive.as_ref());
    let answer = answer(options, source.read(USED)?, &source)?;
    context.answer(|| text(&answer, options.all), &answer)?;
    Ok(Verdict::Fine)
}

/// Tries the pairs on each series.
pub(super) fn answer(
    options: &AutosizeForecast,
    found: Vec<NamedSeries>,
    source: &Source<'_>,
) -> Result<Answer> {
    let AutosizeForecast { chance, min, max, .. } = *options;
    let terms = Terms { chance, min, max };
    let is_alone = found.len() == 1;
    let mut all = Vec::new();
    for of in found {
        let (refused, backtest) = match backtest(&of.series, &terms) {
            Ok(backtest) => (None, Some(backtest)),
            // Of several series those that can be tried are.
            Err(error) if !is_alone => (Some(error.to_string()), None),
            Err(error) => {
                return Err(error).with_context(|| format!("{}: {}", source.place(), of.name));
            }
        };
        all.push(OfSeries { name: of.name, notices: of.notices, refused, backtest });
    }
    Ok(Answer { format: "ras-forecast-autosize/1", chance, series: all })
}

fn sized(of: Sizing) -> String {
    match of {
        Sizing::Follows { quantile, cooldown_seconds } => {
            let cooldown = Duration::from_secs(cooldown_seconds.into());
            format!("Q{}, cooldown {}", decimal(100.0 * quantile), quantity::show_window(cooldown))
        }
        Sizing::Stays { above } => {
            format!("stays {} above the first peak", number::percent(above))
        }
    }
}

/// The answer for people.
fn text(answer: &Answer, all: bool) -> String {
    answer
        .series
        .iter()
        .map(|of| of_series(of, answer.chance, all))
        .collect::<Vec<_>>()
        .join("\n\n")
}

fn of_series(of: &OfSeries, chance: f64, all: bool) -> String {
    let Some(backtest) = &of.backtest else {
        return format!("{}: {}", of.name, of.refused.as_deref().unwrap_or(NOTHING));
    };
    let header =
        ["request", "short hours", "expected", "idle", "idle RRU-hours", "changes a day", ""];
    let mut table = Table::new(&header, 1..6);
    for (at, tried) in backtest.tried.iter().enumerate() {
        let is_recommended = backtest.recommended == Some(at);
        let stays = matches!(tried.sizing, Sizing::Stays { .. });
        if !(all || tried.on_frontier || is_recommended || stays) {
            continue;
        }
        let said = match (is_recommended, tried.on_frontier) {
            (true, _) => "recommended",
            (false, true) => "frontier",
            (false, false) => "",
        };
        table.add_row(row(tried, backtest.judged_days, said));
    }
    let days = |days: f64| decimal((10.0 * days).round() / 10.0);
    let mut text = format!(
        "{}: learnt from {} days, judged by {}\n\n{table}\n\n",
        of.name,
        days(backtest.learnt_days),
        days(backtest.judged_days)
    );
    let chance = number::percent(chance);
    text.push_str(&match backtest.recommended.map(|at| backtest.tried[at].sizing) {
        Some(Sizing::Follows { quantile, cooldown_seconds }) => {
            let cooldown = Duration::from_secs(cooldown_seconds.into());
            format!(
                "Recommended for at most {chance} short hours: ras request autosize set {} --quantile {} --cooldown {}",
                of.name,
                format_args!("{}%", decimal(100.0 * quantile)),
                quantity::show_window(cooldown)
            )
        }
        _ => format!("No pair keeps the share of short hours at {chance}: accept more, or request by hand."),
    });
    if let Some(checked) = &backtest.checked {
        text.push_str(&format!(
            "\nThe first half of the judged days would have chosen {}: in the second half {} of {} hours were short, {} idle.",
            sized(checked.sizing),
            number::count(checked.outcome.short_hours),
            number::count(checked.outcome.hours),
            number::percent(checked.outcome.idle_share())
        ));
    }
    for notice in &of.notices {
        text.push_str(&format!("\nnote: {}: {notice}", of.name));
    }
    text
}

fn row(tried: &Tried, days: f64, said: &str) -> [String; 7] {
    let of = &tried.outcome;
    [
        sized(tried.sizing),
        format!("{} ({})", number::count(of.short_hours), number::percent(of.short_share())),
        number::percent(of.expected_short_share),
        number::percent(of.idle_share()),
        decimal(of.idle_hours.round()),
        decimal((10.0 * of.resizes as f64 / days).round() / 10.0),
        said.to_owned(),
    ]
}
