//! Spares for failed servers, replayed.

use super::super::archived::ArchivedRegion;
use super::super::failures::FailureHistory;
use super::tell;
use crate::cli::ReplayForecast;
use crate::layout::Table;
use crate::number;
use crate::progress::Reporter;
use anyhow::{Result, bail};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::number::decimal;
use forecast::sizing::{Judged, Rule, SizingTerms, TypeHistory, decide, downs, judged};
use forecast::spares::{OutageError, union};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// What was replayed.
#[derive(Serialize)]
pub(super) struct Replayed {
    policies: Vec<OfPolicy>,
    /// Events that spares do not cover: planned work and whole MSBs or datacenters.
    left_out: usize,
}

/// How spares are kept, and how it came out.
#[derive(Serialize)]
struct OfPolicy {
    #[serde(flatten)]
    policy: Policy,
    /// The time judged.
    hours: f64,
    /// Over all types, on average.
    mean_spares: f64,
    missing_rru_hours: f64,
    /// What the spares are worth, over time.
    spare_rru_hours: f64,
    /// Share of the time in which a type had enough, on average over types.
    covered: f64,
    decisions: Vec<Decision>,
}

/// A way to keep spares.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "policy")]
enum Policy {
    /// The shared buffers that the region asked for.
    AsItWas,
    /// The same share of each type.
    FixedShare { share: f64 },
    /// As many as this share of each type, shared out.
    SharedOut { share: f64 },
    /// The fewest of each type for a chance.
    Chance { chance: f64 },
}

/// Spares by type from an instant until the next decision.
#[derive(Serialize)]
struct Decision {
    at: DateTime<Utc>,
    spares: BTreeMap<String, usize>,
    /// In the time until the next decision.
    missing_rru_hours: f64,
    covered: f64,
}

pub(super) fn replay(
    options: &ReplayForecast,
    archive: &ArchivedRegion,
    since: DateTime<Utc>,
    reporter: &Reporter,
) -> Result<Replayed> {
    let known_at_last = archive.failures(archive.times.len() - 1);
    if known_at_last.types.values().all(|of| of.outages.is_empty()) {
        bail!(
            "no snapshot lists a failure of a server or rack, so there is nothing to size spares from"
        );
    }
    let all = types(&known_at_last)?;
    let chances = options.spares.chance.iter().map(|chance| Policy::Chance { chance: *chance });
    let shares = options.spares.fixed.iter().flat_map(|share| {
        [Policy::FixedShare { share: *share }, Policy::SharedOut { share: *share }]
    });
    let mut policies: Vec<OfPolicy> =
        [Policy::AsItWas].into_iter().chain(shares).chain(chances).map(OfPolicy::new).collect();
    let (end, every) = (archive.end(), TimeDelta::days(options.orders.period.into()));
    let first = since.max(archive.times[0]);
    let mut at = first;
    let decisions = (end - first).num_days() / every.num_days() + 1;
    let mut done = 0;
    while at < end {
        done += 1;
        tell(reporter, "spares", done, usize::try_from(decisions).unwrap_or(1));
        let next = (at + every).min(end);
        let snapshot = archive.times.partition_point(|taken| *taken <= at).saturating_sub(1);
        let known = types(&archive.failures(snapshot))?;
        let later = later(&known, &all);
        let begin = known.iter().flat_map(|of| &of.outages).map(|of| of.start).min();
        let begin = begin
            .map_or(archive.times[0].timestamp(), |first| first.min(archive.times[0].timestamp()));
        // Before the second snapshot nothing has a length.
        let history = begin..at.timestamp().max(begin + 2);
        let terms = |policy: Policy| SizingTerms {
            history: history.clone(),
            burst: seconds(options.spares.burst),
            lost_after: seconds(options.spares.lost_after),
            chance: if let Policy::Chance { chance } = policy { chance } else { 0.0 },
            fixed_share: match policy {
                Policy::FixedShare { share } | Policy::SharedOut { share } => share,
                // How alike types are is judged by spares shared out: there must be some.
                Policy::AsItWas | Policy::Chance { .. } => USUAL,
            },
            total: None,
        };
        for of in &mut policies {
            let terms = terms(of.policy);
            let downs = downs(&known, &terms, history.clone())?;
            let rule = match of.policy {
                Policy::AsItWas => None,
                Policy::FixedShare { .. } => Some(Rule::FixedShare),
                Policy::SharedOut { .. } => Some(Rule::SharedOut),
                Policy::Chance { .. } => Some(Rule::Chance),
            };
            let spares = match rule {
                Some(rule) => decide(rule, &known, &downs, &terms),
                None => {
                    let then = archive.types(snapshot);
                    let buffer = |of: &TypeHistory| {
                        then.get(&of.name).map_or(0.0, |of| of.buffer).round() as usize
                    };
                    known.iter().map(buffer).collect()
                }
            };
            let judged = judged(&later, &spares, &terms, at.timestamp()..next.timestamp())?;
            of.add(at, next, &known, &spares, judged);
        }
        at = next;
    }
    for of in &mut policies {
        of.conclude();
    }
    Ok(Replayed { policies, left_out: known_at_last.left_out })
}

/// The share of each type that is kept by default.
const USUAL: f64 = 0.02;

fn seconds(time: Duration) -> i64 {
    i64::try_from(time.as_secs()).unwrap_or(i64::MAX)
}

fn types(history: &FailureHistory) -> Result<Vec<TypeHistory>, OutageError> {
    let of_type = |(name, of): (&String, &super::super::failures::OfType)| {
        Ok(TypeHistory {
            name: name.clone(),
            servers: of.servers,
            rru: of.rru.unwrap_or(1.0),
            outages: union(&of.outages)?,
        })
    };
    history.types.iter().map(of_type).collect()
}

/// The types of a decision with the failures that are known in the end.
fn later(known: &[TypeHistory], all: &[TypeHistory]) -> Vec<TypeHistory> {
    let of_type = |of: &TypeHistory| {
        let found = all.iter().find(|other| other.name == of.name);
        let outages = found.map_or_else(|| of.outages.clone(), |found| found.outages.clone());
        TypeHistory { outages, ..of.clone() }
    };
    known.iter().map(of_type).collect()
}

impl OfPolicy {
    fn new(policy: Policy) -> OfPolicy {
        OfPolicy {
            policy,
            hours: 0.0,
            mean_spares: 0.0,
            missing_rru_hours: 0.0,
            spare_rru_hours: 0.0,
            covered: 0.0,
            decisions: Vec::new(),
        }
    }

    /// Adds a decision; until all are added, means are sums over hours.
    fn add(
        &mut self,
        at: DateTime<Utc>,
        next: DateTime<Utc>,
        types: &[TypeHistory],
        spares: &[usize],
        judged: Judged,
    ) {
        let hours = (next - at).as_seconds_f64() / 3_600.0;
        self.hours += hours;
        self.mean_spares += judged.spares as f64 * hours;
        self.covered += judged.covered * hours;
        self.missing_rru_hours += judged.missing_rru_hours;
        let worth = types.iter().zip(spares).map(|(of, spares)| of.rru * *spares as f64);
        self.spare_rru_hours += worth.sum::<f64>() * hours;
        self.decisions.push(Decision {
            at,
            spares: types.iter().map(|of| of.name.clone()).zip(spares.iter().copied()).collect(),
            missing_rru_hours: judged.missing_rru_hours,
            covered: judged.covered,
        });
    }

    fn conclude(&mut self) {
        if self.hours > 0.0 {
            self.mean_spares /= self.hours;
            self.covered /= self.hours;
        }
    }

    fn name(&self) -> String {
        match self.policy {
            Policy::AsItWas => "as it was".to_owned(),
            Policy::FixedShare { share } => format!("{} of each type", number::percent(share)),
            Policy::SharedOut { share } => format!("{} shared out", number::percent(share)),
            Policy::Chance { chance } => format!("chance of {} by type", number::percent(chance)),
        }
    }
}

pub(super) fn text(of: &Replayed, all: bool) -> String {
    let header = ["spares", "on average", "missing RRU-hours", "time covered", "spare RRU-hours"];
    let mut table = Table::new(&header, 1..5);
    for policy in &of.policies {
        table.add_row([
            policy.name(),
            decimal((10.0 * policy.mean_spares).round() / 10.0),
            decimal(policy.missing_rru_hours),
            number::percent(policy.covered),
            decimal(policy.spare_rru_hours.round()),
        ]);
    }
    let mut text = table.to_string();
    if all {
        let header = ["decided", "spares", "by type", "missing RRU-hours", "time covered"];
        let mut table = Table::new(&header, 3..5);
        let decisions = of.policies.first().map_or(0, |of| of.decisions.len());
        for at in 0..decisions {
            for policy in &of.policies {
                let Some(decision) = policy.decisions.get(at) else { continue };
                let by_type =
                    decision.spares.iter().map(|(name, spares)| format!("{spares} {name}"));
                table.add_row([
                    decision.at.date_naive().to_string(),
                    policy.name(),
                    by_type.collect::<Vec<_>>().join(", "),
                    decimal(decision.missing_rru_hours),
                    number::percent(decision.covered),
                ]);
            }
        }
        text.push_str(&format!("\n\n{table}"));
    }
    if of.left_out > 0 {
        let left_out = fleet::number::counted(of.left_out, "event");
        text.push_str(&format!(
            "\nnote: {left_out} left out: planned work and the loss of whole MSBs are not covered by spares"
        ));
    }
    text
}
