//! The answer of a plan: as a document, as text and as a page.

use super::input::Input;
use crate::cli::PlanForecast;
use crate::layout::Table;
use crate::number;
use chrono::NaiveDate;
use fleet::RegionSnapshot;
use fleet::explain::ShortfallReason;
use fleet::number::{NOTHING, decimal};
use report::{PlanPage, PlanRow, PlanWeek};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Types that a table names for one shortfall.
const NAMED: usize = 3;

/// `ras-forecast-plan/1`
#[derive(Serialize)]
pub(super) struct Answer {
    format: &'static str,
    region: String,
    weeks: u8,
    growth: f64,
    growth_of: Vec<(String, f64)>,
    /// Servers on order that arrive.
    arriving: usize,
    /// Servers on order that do not: beyond the last week, in the snapshot already, or by choice.
    not_arriving: usize,
    /// What is short, the first to be so first.
    pub(super) reservations: Vec<OfReservation>,
    /// Each week, and each week without an MSB.
    pub(super) cases: Vec<Case>,
    /// Solves that Ctrl-C has left out.
    pub(super) solves_left: usize,
}

/// A week, perhaps without an MSB.
#[derive(Serialize)]
pub(super) struct Case {
    pub(super) week: usize,
    pub(super) date: NaiveDate,
    pub(super) msb_lost: Option<String>,
    /// Servers in service.
    pub(super) servers: usize,
    /// The fewest servers that could meet all requests: each reservation counts RRU of its own, so they are not added.
    pub(super) requested_servers: usize,
    /// The fewest servers that cover each shortfall alone.
    pub(super) missing_servers: usize,
    pub(super) short: Vec<Short>,
    /// The fewest servers that cover all shortfalls together.
    pub(super) fewest: Option<Fewest>,
}

/// A reservation that is short in a case.
#[derive(Clone, Serialize)]
pub(super) struct Short {
    pub(super) reservation: String,
    pub(super) owner: String,
    pub(super) requested_rru: f64,
    /// To what is guaranteed: now or after the loss of an MSB.
    pub(super) missing_rru: f64,
    /// To what it holds.
    pub(super) missing_now_rru: f64,
    pub(super) reason: ShortfallReason,
    pub(super) sentence: String,
    /// Servers of each type, alone, that cover it: the fewest first.
    pub(super) helps: Vec<Helps>,
}

/// Servers of a type.
#[derive(Clone, Serialize)]
pub(super) struct Helps {
    pub(super) hardware_type: String,
    pub(super) servers: u64,
}

/// Servers that cover several shortfalls.
#[derive(Clone, Serialize)]
pub(super) struct Fewest {
    pub(super) servers: Vec<Helps>,
    pub(super) total: u64,
    /// No fewer do.
    pub(super) at_least: u64,
}

/// A reservation that is short in some case.
#[derive(Serialize)]
pub(super) struct OfReservation {
    /// The first case in which it is short.
    first_week: usize,
    first_date: NaiveDate,
    first_msb_lost: Option<String>,
    /// The case in which most is missing.
    worst_week: usize,
    worst_msb_lost: Option<String>,
    #[serde(flatten)]
    worst: Short,
}

impl Answer {
    pub(super) fn new(region: &RegionSnapshot, options: &PlanForecast, input: &Input) -> Answer {
        Answer {
            format: "ras-forecast-plan/1",
            region: region.region.to_string(),
            weeks: input.weeks,
            growth: options.scenario.unwrap_or(1.0),
            growth_of: options.growth_of.clone(),
            arriving: input.arriving,
            not_arriving: input.not_arriving,
            reservations: Vec::new(),
            cases: Vec::new(),
            solves_left: 0,
        }
    }

    /// Sums up the cases by reservation.
    pub(super) fn conclude(&mut self) {
        let mut found: BTreeMap<&str, OfReservation> = BTreeMap::new();
        for case in &self.cases {
            for short in &case.short {
                let of = found.entry(&short.reservation).or_insert_with(|| OfReservation {
                    first_week: case.week,
                    first_date: case.date,
                    first_msb_lost: case.msb_lost.clone(),
                    worst_week: case.week,
                    worst_msb_lost: case.msb_lost.clone(),
                    worst: short.clone(),
                });
                if short.missing_rru > of.worst.missing_rru {
                    of.worst_week = case.week;
                    of.worst_msb_lost = case.msb_lost.clone();
                    of.worst = short.clone();
                }
            }
        }
        let mut reservations: Vec<OfReservation> = found.into_values().collect();
        reservations.sort_by(|one, other| {
            let missing = other.worst.missing_rru.total_cmp(&one.worst.missing_rru);
            one.first_week.cmp(&other.first_week).then(missing)
        });
        self.reservations = reservations;
    }
}

fn servers(helps: &[Helps], joined: &str) -> String {
    if helps.is_empty() {
        return NOTHING.to_owned();
    }
    let name =
        |help: &Helps| format!("{} {}", number::count(help.servers as usize), help.hardware_type);
    let mut text = helps.iter().take(NAMED).map(name).collect::<Vec<_>>().join(joined);
    if helps.len() > NAMED {
        text.push_str(&format!("{joined}…"));
    }
    text
}

fn lost(msb: Option<&String>) -> String {
    msb.map_or_else(|| NOTHING.to_owned(), |msb| format!("without {msb}"))
}

pub(super) fn text(answer: &Answer) -> String {
    let mut text = cases(answer).to_string();
    if answer.reservations.is_empty() {
        text.push_str("\n\nEvery reservation is satisfied in each of these.");
    } else {
        let header = [
            "reservation",
            "owner",
            "short from",
            "",
            "requested RRU",
            "missing RRU at worst",
            "in week",
            "would help",
        ];
        let mut table = Table::new(&header, 4..7);
        for of in &answer.reservations {
            table.add_row([
                of.worst.reservation.clone(),
                of.worst.owner.clone(),
                of.first_date.to_string(),
                lost(of.first_msb_lost.as_ref()),
                decimal(of.worst.requested_rru),
                decimal(of.worst.missing_rru),
                of.worst_week.to_string(),
                servers(&of.worst.helps, " or "),
            ]);
        }
        text.push_str(&format!("\n\n{table}"));
        for of in &answer.reservations {
            text.push_str(&format!("\n{}: {}", of.worst.reservation, of.worst.sentence));
        }
    }
    text.push_str(&format!("\n\n{}", orders(answer)));
    if answer.solves_left > 0 {
        let left = number::count(answer.solves_left);
        text.push_str(&format!("\nnote: interrupted; solves left out: {left}"));
    }
    text
}

fn orders(answer: &Answer) -> String {
    let (arriving, not) = (number::count(answer.arriving), number::count(answer.not_arriving));
    format!("Servers on order that arrive: {arriving}; that do not within these weeks: {not}.")
}

fn cases(answer: &Answer) -> Table {
    let header = [
        "week",
        "date",
        "",
        "servers",
        "requested servers",
        "missing servers",
        "short",
        "fewest servers that cover it",
    ];
    let mut table = Table::new(&header, 3..7);
    table.right(0);
    for case in &answer.cases {
        table.add_row([
            case.week.to_string(),
            case.date.to_string(),
            lost(case.msb_lost.as_ref()),
            number::count(case.servers),
            number::count(case.requested_servers),
            number::count(case.missing_servers),
            number::count(case.short.len()),
            fewest(case),
        ]);
    }
    table
}

fn fewest(case: &Case) -> String {
    let Some(fewest) = &case.fewest else { return NOTHING.to_owned() };
    let servers = servers(&fewest.servers, " + ");
    if fewest.at_least < fewest.total {
        return format!("{servers} (at least {})", number::count(fewest.at_least as usize));
    }
    servers
}

/// The page.
pub(super) fn page(answer: &Answer, snapshot: &Path) -> String {
    let title = snapshot.file_name().unwrap_or(snapshot.as_os_str()).to_string_lossy();
    let scenario = scenario(answer);
    let weeks: Vec<PlanWeek<'_>> = (answer.cases.iter())
        .map(|case| PlanWeek {
            week: case.week,
            date: case.date.to_string(),
            lost: case.msb_lost.as_deref(),
            servers: case.servers,
            requested: case.requested_servers,
            missing: case.missing_servers,
            short: case.short.len(),
            fewest: fewest(case),
        })
        .collect();
    let rows: Vec<PlanRow<'_>> = (answer.cases.iter())
        .flat_map(|case| {
            case.short.iter().map(|short| PlanRow {
                reservation: &short.reservation,
                owner: &short.owner,
                week: case.week,
                lost: case.msb_lost.as_deref(),
                requested: short.requested_rru,
                missing: short.missing_rru,
                missing_now: short.missing_now_rru,
                why: &short.sentence,
                helps: servers(&short.helps, " or "),
            })
        })
        .collect();
    report::render_plan(&PlanPage {
        title: &title,
        scenario: &scenario,
        weeks: &weeks,
        rows: &rows,
    })
}

/// What was assumed, in sentences.
fn scenario(answer: &Answer) -> Vec<String> {
    let mut scenario = vec![format!(
        "Requests grow to {} of today's by week {}.",
        number::percent(answer.growth),
        answer.weeks
    )];
    for (name, factor) in &answer.growth_of {
        scenario.push(format!("Those of {name} grow to {}.", number::percent(*factor)));
    }
    scenario.push(orders(answer));
    scenario
}
