//! Requests that follow demand, replayed.

use super::super::archived::{ArchivedRegion, STEP};
use super::{instant, tell};
use crate::cli::{AutosizePolicies, Decisions, ReplayForecast};
use crate::command::api::autosize::settings_of;
use crate::layout::Table;
use crate::number;
use crate::progress::Reporter;
use crate::quantity;
use anyhow::{Context as _, Result, anyhow, bail, ensure};
use api_types::autosize::AutosizeSettings;
use broker::{UsageAsked, UsageFigures, UsageKey, UsageSeries};
use chrono::{DateTime, Utc};
use fleet::number::decimal;
use forecast::autosize::backtest::Outcome;
use forecast::autosize::replay::{self, recorded};
use forecast::autosize::{Current, Settings};
use forecast::{Series, Step};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// Settings in the running region, by reservation.
pub(super) type Own = BTreeMap<String, AutosizeSettings>;

/// What was replayed.
#[derive(Serialize)]
pub(super) struct Replayed {
    /// Used RRU, the demand that is followed.
    value: &'static str,
    policies: Vec<OfPolicy>,
    /// Reservations that are not judged: they were there for too short a time after the first decision.
    left_out: Vec<String>,
}

#[derive(Serialize)]
struct OfPolicy {
    #[serde(flatten)]
    policy: Policy,
    total: Outcome,
    reservations: Vec<OfReservation>,
}

/// A way to size requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "policy")]
enum Policy {
    /// As they were.
    AsItWas,
    /// These settings for all.
    Follows { quantile: f64, cooldown_seconds: u32, min_rru: f64, max_rru: f64 },
    /// Those of the running region.
    Own,
}

#[derive(Serialize)]
struct OfReservation {
    reservation: String,
    outcome: Outcome,
    resizes: Vec<Resize>,
}

#[derive(Serialize)]
struct Resize {
    at: DateTime<Utc>,
    from_rru: f64,
    to_rru: f64,
    why: Option<String>,
}

/// A reservation that is judged.
struct Judged {
    name: String,
    used: Series,
    promised: Series,
    /// The first step at whose end is decided.
    from: usize,
}

impl AutosizePolicies {
    /// Each pair of a quantile and a cooldown.
    fn pairs(&self) -> impl Iterator<Item = Settings> {
        let (min, max) = (self.min, self.max);
        self.quantile.iter().flat_map(move |quantile| {
            self.cooldown.iter().map(move |cooldown| {
                let cooldown = u32::try_from(cooldown.as_secs()).unwrap_or(u32::MAX);
                Settings { quantile: *quantile, min, max, cooldown }
            })
        })
    }
}

/// Refuses options that no archive could serve, or this one cannot.
pub(super) fn check(options: &AutosizePolicies, archive: &ArchivedRegion) -> Result<()> {
    for settings in options.pairs() {
        settings.check().context("--quantile, --cooldown, --min and --max")?;
    }
    let all = series(archive);
    for name in &options.reservation {
        let is_there = all.iter().any(|of| of.names.first() == Some(name));
        ensure!(is_there, "--reservation: the archive has no reservation {name:?}");
    }
    Ok(())
}

/// The settings of the running region, if they are asked for.
pub(super) fn own(options: &ReplayForecast, archive: &ArchivedRegion) -> Result<Own> {
    if !(options.autosize.own && options.replays(Decisions::Autosize)) {
        return Ok(Own::new());
    }
    let series = series(archive);
    let names: Vec<&str> =
        series.iter().filter_map(|of| of.names.first()).map(String::as_str).collect();
    let own = settings_of(&options.server, &names)?;
    ensure!(!own.is_empty(), "--own: the request of no reservation in the archive follows demand");
    Ok(own)
}

fn series(archive: &ArchivedRegion) -> Vec<UsageSeries> {
    let by = vec![UsageKey::Reservation];
    archive.all(&UsageAsked { by, step: STEP.into(), ..UsageAsked::default() })
}

pub(super) fn replay(
    options: &AutosizePolicies,
    archive: &ArchivedRegion,
    since: DateTime<Utc>,
    own: &Own,
    reporter: &Reporter,
) -> Result<Replayed> {
    let all = series(archive);
    let (mut judged, mut left_out) = (Vec::new(), Vec::new());
    for of in &all {
        let [name] = of.names.as_slice() else { continue };
        if !(options.reservation.is_empty() || options.reservation.contains(name)) {
            continue;
        }
        match Judged::of(name, of, since)? {
            Some(of) if of.from + 1 < of.used.len() => judged.push(of),
            Some(of) => left_out.push(of.name),
            // A buffer, or a reservation that was never used.
            None => {}
        }
    }
    if judged.is_empty() {
        bail!("no reservation was used for two hours after the first decision");
    }
    let mut policies = vec![OfPolicy::new(Policy::AsItWas)];
    for Settings { quantile, min, max, cooldown } in options.pairs() {
        policies.push(OfPolicy::new(Policy::Follows {
            quantile,
            cooldown_seconds: cooldown,
            min_rru: min,
            max_rru: max,
        }));
    }
    if !own.is_empty() {
        policies.push(OfPolicy::new(Policy::Own));
    }
    for (number, of) in judged.iter().enumerate() {
        tell(reporter, "requests", number + 1, judged.len());
        for policy in &mut policies {
            let replayed = match policy.policy {
                Policy::AsItWas => recorded(&of.used, &of.promised, of.from),
                Policy::Follows {
                    quantile,
                    cooldown_seconds: cooldown,
                    min_rru: min,
                    max_rru: max,
                } => of.replay(&Settings { quantile, min, max, cooldown })?,
                Policy::Own => match own.get(&of.name) {
                    Some(own) => of.replay(&settings(own))?,
                    None => continue,
                },
            };
            policy.add(&of.name, replayed);
        }
    }
    Ok(Replayed { value: "used_rru", policies, left_out })
}

fn settings(of: &AutosizeSettings) -> Settings {
    let cooldown = u32::try_from(of.cooldown_seconds).unwrap_or(u32::MAX);
    Settings { quantile: of.quantile, min: of.min_rru, max: of.max_rru, cooldown }
}

impl Judged {
    /// From its first promise to its last; nothing if it was never promised anything, or never used.
    fn of(name: &str, of: &UsageSeries, since: DateTime<Utc>) -> Result<Option<Judged>> {
        let values = |pick: fn(&UsageFigures) -> f64| -> Vec<Option<f64>> {
            of.figures.iter().map(|figures| figures.as_ref().map(pick)).collect()
        };
        let step = Step::from_seconds(STEP).ok_or_else(|| anyhow!("steps of 0 s"))?;
        let series = |values| Series::new(of.start.timestamp(), step, values);
        let used = series(values(|of| of.used_rru.to_f64()))?;
        let promised = series(values(|of| of.promised.to_f64()))?;
        let is_promised = |at: &usize| promised.get(*at).is_some_and(|rru| rru > 0.0);
        let (first, last) =
            ((0..promised.len()).find(is_promised), (0..promised.len()).rev().find(is_promised));
        let Some((first, last)) = first.zip(last) else { return Ok(None) };
        let part = used.slice(first, last + 1).zip(promised.slice(first, last + 1));
        let Some((used, promised)) = part else { return Ok(None) };
        if used.values().flatten().all(|used| used == 0.0) {
            return Ok(None);
        }
        // At the end of the step before the first decision that is asked for, all before it is known.
        let ahead = (since.timestamp() - used.start()).max(0).div_euclid(STEP.into());
        let from = usize::try_from(ahead).unwrap_or(usize::MAX).saturating_sub(1);
        Ok(Some(Judged { name: name.to_owned(), used, promised, from }))
    }

    fn replay(&self, settings: &Settings) -> Result<replay::Replayed> {
        let promised = self.promised.filled();
        let request = promised[self.from];
        let changed = (1..=self.from).rev().find(|at| promised[*at] != promised[at - 1]);
        let changed_at = changed.map(|at| self.promised.time(at));
        Ok(replay::replay(&self.used, settings, Current { request, changed_at }, self.from)?)
    }
}

impl OfPolicy {
    fn new(policy: Policy) -> OfPolicy {
        OfPolicy { policy, total: Outcome::default(), reservations: Vec::new() }
    }

    fn add(&mut self, reservation: &str, of: replay::Replayed) {
        self.total.add(&of.outcome);
        let resize = |of: replay::Resize| Resize {
            at: instant(of.at),
            from_rru: of.from,
            to_rru: of.to,
            why: of.reason.map(|reason| reason.to_string()),
        };
        self.reservations.push(OfReservation {
            reservation: reservation.to_owned(),
            outcome: of.outcome,
            resizes: of.resizes.into_iter().map(resize).collect(),
        });
    }

    fn name(&self) -> String {
        match self.policy {
            Policy::AsItWas => "as it was".to_owned(),
            Policy::Follows { quantile, cooldown_seconds, .. } => {
                let cooldown = Duration::from_secs(cooldown_seconds.into());
                let quantile = decimal(100.0 * quantile);
                format!("Q{quantile}, cooldown {}", quantity::show_window(cooldown))
            }
            Policy::Own => "settings of the region".to_owned(),
        }
    }
}

pub(super) fn text(of: &Replayed, all: bool) -> String {
    let header =
        ["request", "reservations", "short hours", "expected", "idle", "idle RRU-hours", "changes"];
    let mut table = Table::new(&header, 1..7);
    for policy in &of.policies {
        let count = number::count(policy.reservations.len());
        table.add_row(row(policy.name(), count, &policy.total));
    }
    let mut text = table.to_string();
    if all {
        let header = [&["reservation"], &header[..1], &header[2..]].concat();
        let mut table = Table::new(&header, 2..7);
        let names = of.policies.iter().flat_map(|policy| &policy.reservations);
        let mut names: Vec<&str> = names.map(|of| of.reservation.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            for policy in &of.policies {
                let found = policy.reservations.iter().find(|of| of.reservation == name);
                let Some(found) = found else { continue };
                table.add_row(row(name.to_owned(), policy.name(), &found.outcome));
            }
        }
        text.push_str(&format!("\n\n{table}"));
    }
    for name in &of.left_out {
        text.push_str(&format!("\nnote: {name}: ended before two hours were judged"));
    }
    text
}

fn row(name: String, second: String, of: &Outcome) -> [String; 7] {
    [
        name,
        second,
        format!("{} ({})", number::count(of.short_hours), number::percent(of.short_share())),
        number::percent(of.expected_short_share),
        number::percent(of.idle_share()),
        decimal(of.idle_hours.round()),
        number::count(of.resizes),
    ]
}
