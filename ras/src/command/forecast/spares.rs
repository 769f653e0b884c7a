//! `ras forecast spares`

use super::archived::{ArchivedRegion, Range, is_archive};
use super::failures::{FailureHistory, of_file, of_region};
use crate::cli::SparesForecast;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use crate::results::{read_snapshot, write_text};
use anyhow::{Context as _, Result, bail, ensure};
use fleet::number::{NOTHING, decimal};
use forecast::sizing::{Rated, Rule, Sizing, SizingTerms, TypeHistory, size};
use forecast::spares::union;
use serde::Serialize;
use std::time::Duration;

/// The page of the answer.
const PAGE: &str = "spares.html";

/// `ras-forecast-spares/1`
#[derive(Serialize)]
pub(super) struct Answer {
    format: &'static str,
    pub(super) chance: f64,
    pub(super) fixed_share: f64,
    history_hours: f64,
    /// Events that spares do not cover: planned work and whole MSBs or datacenters.
    left_out: usize,
    #[serde(flatten)]
    pub(super) sizing: Sizing,
}

pub(super) fn run(options: &SparesForecast, context: &Context) -> Result<Verdict> {
    let answer = answer(options, &history(options, context)?)?;
    if let Some(folder) = &options.out {
        let title = options.history.file_name().unwrap_or(options.history.as_os_str());
        let page = report::render_spares(&title.to_string_lossy(), &answer.page());
        write_text(&folder.join(PAGE), &page)?;
    }
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

/// Sizes spares from a history.
pub(super) fn answer(options: &SparesForecast, history: &FailureHistory) -> Result<Answer> {
    let file = options.history.display();
    for (name, _) in options.servers.iter().chain(&options.rru) {
        ensure!(history.types.contains_key(name), "{file}: has no servers of type {name:?}");
    }
    let types = types(history, options).with_context(|| file.to_string())?;
    let terms = terms(history, &types, options).with_context(|| file.to_string())?;
    let sizing = size(&types, &terms).with_context(|| file.to_string())?;
    Ok(Answer {
        format: "ras-forecast-spares/1",
        chance: options.chance,
        fixed_share: options.fixed,
        history_hours: terms.history.end.abs_diff(terms.history.start) as f64 / 3_600.0,
        left_out: history.left_out,
        sizing,
    })
}

impl Answer {
    /// What a page shows of it.
    pub(super) fn page(&self) -> report::SparesPart<'_> {
        report::SparesPart {
            chance: self.chance,
            fixed_share: self.fixed_share,
            history_hours: self.history_hours,
            sizing: &self.sizing,
        }
    }
}

/// The failures of an archive, a snapshot or a file.
pub(super) fn history(options: &SparesForecast, context: &Context) -> Result<FailureHistory> {
    let place = &options.history;
    if !is_archive(place) {
        return if place.is_dir() { Ok(of_region(&read_snapshot(place)?)) } else { of_file(place) };
    }
    let archived = ArchivedRegion::read(&place.to_string_lossy(), Range::ALL, context)?;
    Ok(archived.failures(archived.times.len() - 1))
}

fn types(history: &FailureHistory, options: &SparesForecast) -> Result<Vec<TypeHistory>> {
    let given = |of: &[(String, f64)], name: &str| {
        of.iter().rev().find(|(known, _)| known == name).map(|(_, number)| *number)
    };
    let mut types = Vec::new();
    for (name, of_type) in &history.types {
        let listed = of_type.servers;
        let servers = given(&options.servers, name).unwrap_or(listed as f64);
        if servers < listed as f64 || servers.fract() != 0.0 {
            bail!(
                "--servers: {name}={servers}: must be a whole number of at least {listed}, which are listed"
            );
        }
        let rru = given(&options.rru, name).or(of_type.rru).unwrap_or(1.0);
        ensure!(rru > 0.0, "--rru: {name}={rru}: must be above 0");
        let outages = union(&of_type.outages)?;
        types.push(TypeHistory { name: name.clone(), servers: servers as usize, rru, outages });
    }
    Ok(types)
}

fn terms(
    history: &FailureHistory,
    types: &[TypeHistory],
    options: &SparesForecast,
) -> Result<SizingTerms> {
    let outages = || types.iter().flat_map(|of| &of.outages);
    let ends = outages().filter(|outage| outage.end < i64::MAX).map(|outage| outage.end);
    let last = ends.chain(outages().map(|outage| outage.start)).max();
    let first = outages().map(|outage| outage.start).min();
    let Some((first, until)) = first.zip(history.until.or(last)) else {
        bail!("has no failures, so no spares can be sized from them");
    };
    let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    let start = options.length.map_or(first, |length| until.saturating_sub(seconds(length)));
    ensure!(
        until.saturating_sub(start) >= 2,
        "the history is shorter than two seconds; --history says how long it is"
    );
    Ok(SizingTerms {
        history: start..until,
        burst: seconds(options.burst),
        lost_after: seconds(options.lost_after),
        chance: options.chance,
        fixed_share: options.fixed,
        total: options.total.map(|total| total as usize),
    })
}

fn text(answer: &Answer) -> String {
    let sizing = &answer.sizing;
    let fixed = format!("fixed {}", number::percent(answer.fixed_share));
    let chance = format!("for {}", number::percent(answer.chance));
    let header = [
        "type",
        "servers",
        "RRU",
        "failures",
        "down",
        &fixed,
        "shared out",
        &chance,
        "chance short",
    ];
    let mut table = Table::new(&header, 1..9);
    let spares = |rule: usize, at: usize| {
        sizing.rules[rule].spares.get(at).map_or_else(|| NOTHING.to_owned(), |n| number::count(*n))
    };
    for (at, of) in sizing.types.iter().enumerate() {
        let [_, _, short] = of.chance_short;
        table.add_row([
            of.name.clone(),
            number::count(of.servers),
            decimal(of.rru),
            number::count(of.failures),
            decimal(of.mean_down),
            spares(0, at),
            spares(1, at),
            spares(2, at),
            number::percent(short),
        ]);
    }
    let header = ["rule", "spares", "expected missing RRU", "covered", "missing RRU-hours"];
    let mut rules = Table::new(&header, 1..5);
    for rated in &sizing.rules {
        rules.add_row(rule_row(rated, answer));
    }
    let mut text = format!(
        "{table}\n\n{rules}\n\nHistory: {} days. Covered and missing RRU-hours: decided from its first half, judged \
         on its second.",
        decimal(answer.history_hours / 24.0)
    );
    if answer.left_out > 0 {
        let left_out = fleet::number::counted(answer.left_out, "event");
        text.push_str(&format!(
            "\nnote: {left_out} left out: planned work and the loss of whole MSBs are not covered by spares"
        ));
    }
    text
}

fn rule_row(rated: &Rated, answer: &Answer) -> [String; 5] {
    let name = match rated.rule {
        Rule::FixedShare => format!("{} of each type", number::percent(answer.fixed_share)),
        Rule::SharedOut => "shared out".to_owned(),
        Rule::Chance => format!("chance of {} by type", number::percent(answer.chance)),
    };
    [
        name,
        number::count(rated.total),
        decimal(rated.expected_missing_rru),
        number::percent(rated.judged.covered),
        decimal(rated.judged.missing_rru_hours),
    ]
}
