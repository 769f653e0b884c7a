//! Orders of hardware, replayed.

use super::super::archived::ArchivedRegion;
use super::{instant, tell};
use crate::cli::{Lead, OrdersPolicies};
use crate::layout::Table;
use crate::number;
use crate::progress::Reporter;
use anyhow::{Result, ensure};
use broker::{UsageAsked, UsageFigures, UsageKey, UsageSeries};
use chrono::{DateTime, NaiveDate, Utc};
use fleet::number::decimal;
use forecast::long::{Daily, Outlook, Plan, outlook};
use forecast::orders::replay::replay as replay_orders;
use forecast::orders::simulate::Outcome;
use forecast::orders::{Supply, Terms};
use forecast::{Series, Step};
use serde::Serialize;
use std::collections::BTreeMap;

/// Days of demand that a forecast learns from at most.
const LEARNT: usize = 400;
/// Days of demand without which no date is said.
const LEAST: usize = 28;

/// What was replayed.
#[derive(Serialize)]
pub(super) struct Replayed {
    /// The day before which the first decision was made.
    first_decision: NaiveDate,
    period: usize,
    policies: Vec<OfPolicy>,
}

/// How servers are ordered, and how it came out.
#[derive(Serialize)]
struct OfPolicy {
    #[serde(flatten)]
    policy: Policy,
    /// Days of all places.
    days: usize,
    short_days: usize,
    /// Servers missing, summed over these days.
    short_server_days: f64,
    /// Servers owned and not held, over all places.
    mean_free: f64,
    orders: usize,
    ordered: u64,
    cancelled: u64,
    decommissioned: u64,
    places: Vec<OfPlace>,
}

/// A way to order.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "policy")]
enum Policy {
    /// The servers that were in service. What was held was never more than they.
    AsItWas,
    /// Demand at this quantile must be covered.
    Covers { quantile: f64 },
}

#[derive(Serialize)]
struct OfPlace {
    hardware_type: String,
    datacenter: String,
    lead: usize,
    #[serde(flatten)]
    outcome: Outcome,
    decisions: Vec<Decision>,
}

#[derive(Serialize)]
struct Decision {
    /// Before this day.
    on: NaiveDate,
    order: u64,
    cancel: u64,
    decommission: u64,
    supply: Supply,
}

/// A hardware type in a datacenter.
struct Place {
    hardware_type: String,
    datacenter: String,
    held: Series,
    in_service: Vec<f64>,
}

/// Refuses options that this archive cannot serve.
pub(super) fn check(options: &OrdersPolicies, archive: &ArchivedRegion) -> Result<()> {
    let by = vec![UsageKey::HardwareType, UsageKey::Datacenter];
    let step = i64::from(Step::DAY.seconds());
    let places = archive.all(&UsageAsked { by, step, ..UsageAsked::default() });
    for lead in options.lead.iter().filter_map(|lead| lead.hardware_type.as_ref()) {
        let is_there = places.iter().any(|of| of.names.contains(lead));
        ensure!(is_there, "--lead: the archive has no hardware type {lead:?}");
    }
    Ok(())
}

pub(super) fn replay(
    options: &OrdersPolicies,
    archive: &ArchivedRegion,
    since: DateTime<Utc>,
    reporter: &Reporter,
) -> Result<Replayed> {
    let by = vec![UsageKey::HardwareType, UsageKey::Datacenter];
    let step = i64::from(Step::DAY.seconds());
    let series = archive.all(&UsageAsked { by, step, ..UsageAsked::default() });
    // The peak of a day that has not ended is not known yet.
    let ended = |of: &UsageSeries| (archive.end() - of.start).num_days();
    let places: Vec<Place> = series
        .iter()
        .filter_map(|of| Place::of(of, usize::try_from(ended(of)).unwrap_or(0)))
        .collect();
    let days = places.first().map_or(0, |of| of.held.len());
    let period = usize::from(options.period);
    ensure!(
        days >= LEAST + period,
        "the snapshots cover {days} whole days; a forecast needs {LEAST}, and a period of {period} is judged"
    );
    let start = places[0].held.start();
    let asked = since.timestamp().saturating_sub(start).div_euclid(step).max(0);
    let from = usize::try_from(asked).unwrap_or(0).max(LEAST);
    ensure!(
        from + period <= days,
        "--since: fewer than {period} whole days, a period, are left from {} on",
        instant(start + step * from as i64).date_naive()
    );
    let covers = options.order_quantile.iter().map(|of| Policy::Covers { quantile: *of });
    let mut policies: Vec<OfPolicy> =
        [Policy::AsItWas].into_iter().chain(covers).map(OfPolicy::new).collect();
    for (number, place) in places.iter().enumerate() {
        tell(reporter, "orders", number + 1, places.len());
        place.replay(options, from, &mut policies);
    }
    let first_decision = instant(start + step * from as i64).date_naive();
    Ok(Replayed { first_decision, period, policies })
}

impl Place {
    /// The days that have ended of a type in a place; nothing if it had no servers in them.
    fn of(of: &UsageSeries, ended: usize) -> Option<Place> {
        let [hardware_type, datacenter] = <[String; 2]>::try_from(of.names.clone()).ok()?;
        let days = of.figures.get(..ended).unwrap_or(&of.figures);
        let series = |pick: fn(&UsageFigures) -> i64| {
            let values = days.iter().map(|day| day.as_ref().map(|day| pick(day) as f64)).collect();
            Series::new(of.start.timestamp(), Step::DAY, values).ok()
        };
        let in_service = series(|of| of.in_service)?.filled();
        let is_there = in_service.iter().any(|servers| *servers > 0.0);
        let held = series(|of| of.held)?;
        is_there.then_some(Place { hardware_type, datacenter, held, in_service })
    }

    fn replay(&self, options: &OrdersPolicies, from: usize, policies: &mut [OfPolicy]) {
        let lead = Lead::of(&options.lead, |of| of == self.hardware_type || of == self.datacenter);
        let terms = Terms { period: usize::from(options.period), lead: usize::from(lead) };
        let levels = options.order_quantile.iter();
        let plan = levels.fold(Plan::new(terms.horizon()), |plan, level| plan.with_level(*level));
        let demand = self.held.filled();
        let mut known: BTreeMap<usize, Option<Outlook>> = BTreeMap::new();
        for of in policies {
            let (outcome, decisions) = match of.policy {
                Policy::AsItWas => {
                    let owned = self.in_service.get(from..).unwrap_or_default();
                    let demand = demand.get(from..).unwrap_or_default();
                    (Outcome::count(owned, demand), Vec::new())
                }
                Policy::Covers { quantile } => {
                    let mut foresee = |day: usize| {
                        let outlook = known.entry(day).or_insert_with(|| self.foreseen(day, &plan));
                        outlook.as_ref().map_or_else(Default::default, |of| {
                            (of.bands.path(quantile), of.doubts.clone())
                        })
                    };
                    let free = self.in_service[from - 1] - demand[from - 1];
                    let replayed = replay_orders(&demand, from, free, terms, &mut foresee);
                    let decision = |of: forecast::orders::replay::Decided| Decision {
                        on: instant(self.held.time(of.day)).date_naive(),
                        order: of.order,
                        cancel: of.cancel,
                        decommission: of.decommission,
                        supply: of.supply,
                    };
                    (replayed.outcome, replayed.decisions.into_iter().map(decision).collect())
                }
            };
            of.add(OfPlace {
                hardware_type: self.hardware_type.clone(),
                datacenter: self.datacenter.clone(),
                lead: terms.lead,
                outcome,
                decisions,
            });
        }
    }

    /// The forecast from the days before one.
    fn foreseen(&self, day: usize, plan: &Plan) -> Option<Outlook> {
        let known = self.held.slice(day.saturating_sub(LEARNT), day)?;
        let daily = Daily::new(&known).ok()?;
        Some(outlook(&daily, plan, None))
    }
}

impl OfPolicy {
    fn new(policy: Policy) -> OfPolicy {
        OfPolicy {
            policy,
            days: 0,
            short_days: 0,
            short_server_days: 0.0,
            mean_free: 0.0,
            orders: 0,
            ordered: 0,
            cancelled: 0,
            decommissioned: 0,
            places: Vec::new(),
        }
    }

    fn add(&mut self, of: OfPlace) {
        self.days += of.outcome.days;
        self.short_days += of.outcome.short_days;
        self.short_server_days += of.outcome.short;
        self.mean_free += of.outcome.mean_stock;
        for decision in &of.decisions {
            self.orders += usize::from(decision.order > 0);
            self.ordered += decision.order;
            self.cancelled += decision.cancel;
            self.decommissioned += decision.decommission;
        }
        self.places.push(of);
    }

    fn name(&self) -> String {
        match self.policy {
            Policy::AsItWas => "as it was".to_owned(),
            Policy::Covers { quantile } => format!("Q{}", decimal(100.0 * quantile)),
        }
    }
}

pub(super) fn text(of: &Replayed, all: bool) -> String {
    let header = [
        "orders at",
        "short days",
        "missing server-days",
        "free on average",
        "orders",
        "servers ordered",
        "cancelled",
        "given back",
    ];
    let mut table = Table::new(&header, 1..8);
    for policy in &of.policies {
        let servers = |count: u64| number::count(usize::try_from(count).unwrap_or(usize::MAX));
        // What the region ordered is not in its snapshots.
        let decided =
            |text: String| if policy.policy == Policy::AsItWas { "-".to_owned() } else { text };
        table.add_row([
            policy.name(),
            format!("{} of {}", number::count(policy.short_days), number::count(policy.days)),
            decimal(policy.short_server_days.round()),
            decimal((10.0 * policy.mean_free).round() / 10.0),
            decided(number::count(policy.orders)),
            decided(servers(policy.ordered)),
            decided(servers(policy.cancelled)),
            decided(servers(policy.decommissioned)),
        ]);
    }
    let mut text = format!("{table}\n\nDecided before {} for the first time.", of.first_decision);
    if all {
        let header = [
            "type",
            "datacenter",
            "orders at",
            "short days",
            "missing server-days",
            "free on average",
            "ordered",
        ];
        let mut table = Table::new(&header, 3..7);
        let places = of.policies.first().map_or(0, |of| of.places.len());
        for at in 0..places {
            for policy in &of.policies {
                let Some(place) = policy.places.get(at) else { continue };
                let ordered: u64 = place.decisions.iter().map(|of| of.order).sum();
                table.add_row([
                    place.hardware_type.clone(),
                    place.datacenter.clone(),
                    policy.name(),
                    number::count(place.outcome.short_days),
                    decimal(place.outcome.short.round()),
                    decimal((10.0 * place.outcome.mean_stock).round() / 10.0),
                    ordered.to_string(),
                ]);
            }
        }
        text.push_str(&format!("\n\n{table}"));
    }
    text
}
