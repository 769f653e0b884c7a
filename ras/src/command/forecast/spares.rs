//! `ras forecast spares`

use crate::cli::SparesForecast;
use crate::context::Context;
use crate::exit::Verdict;
use crate::layout::Table;
use crate::number;
use crate::results::{read_snapshot, write_text};
use anyhow::{Context as _, Result, bail, ensure};
use datasets::import::read_outages;
use fleet::number::{NOTHING, decimal};
use fleet::{RegionSnapshot, ReservationKind, Scope, ServerIx};
use forecast::sizing::{Rated, Rule, Sizing, SizingTerms, TypeHistory, size};
use forecast::spares::{Outage, union};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// The page of the answer.
const PAGE: &str = "spares.html";

/// `ras-forecast-spares/1`
#[derive(Serialize)]
struct Answer<'a> {
    format: &'static str,
    chance: f64,
    fixed_share: f64,
    history_hours: f64,
    /// Events that spares do not cover: planned work and whole MSBs or datacenters.
    left_out: usize,
    #[serde(flatten)]
    sizing: &'a Sizing,
}

/// What is known of the region: its types, each with its servers, each with its outages.
#[derive(Default)]
struct History {
    types: BTreeMap<String, OfType>,
    /// The end of the history, if the source says it.
    until: Option<i64>,
    left_out: usize,
}

#[derive(Default)]
struct OfType {
    rru: Option<f64>,
    /// The number of each.
    servers: BTreeMap<String, u32>,
    outages: Vec<Outage>,
}

impl OfType {
    /// Lists a server, and returns its number.
    fn server(&mut self, name: &str) -> u32 {
        let next = u32::try_from(self.servers.len()).unwrap_or(u32::MAX);
        *self.servers.entry(name.to_owned()).or_insert(next)
    }
}

pub(super) fn run(options: &SparesForecast, context: &Context) -> Result<Verdict> {
    let file = options.history.display();
    let history =
        if options.history.is_dir() { of_snapshot(&options.history)? } else { of_file(options)? };
    for (name, _) in options.servers.iter().chain(&options.rru) {
        ensure!(history.types.contains_key(name), "{file}: has no servers of type {name:?}");
    }
    let types = types(&history, options).with_context(|| file.to_string())?;
    let terms = terms(&history, &types, options).with_context(|| file.to_string())?;
    let sizing = size(&types, &terms).with_context(|| file.to_string())?;
    let history_hours = terms.history.end.abs_diff(terms.history.start) as f64 / 3_600.0;
    let answer = Answer {
        format: "ras-forecast-spares/1",
        chance: options.chance,
        fixed_share: options.fixed,
        history_hours,
        left_out: history.left_out,
        sizing: &sizing,
    };
    if let Some(folder) = &options.out {
        let title = options.history.file_name().unwrap_or(options.history.as_os_str());
        let page = report::SparesPage {
            title: &title.to_string_lossy(),
            chance: options.chance,
            fixed_share: options.fixed,
            history_hours,
            sizing: &sizing,
        };
        write_text(&folder.join(PAGE), &report::render_spares(&page))?;
    }
    context.answer(|| text(&answer), &answer)?;
    Ok(Verdict::Fine)
}

fn of_file(options: &SparesForecast) -> Result<History> {
    let mut history = History::default();
    for row in read_outages(&options.history)? {
        let of_type = history.types.entry(row.hardware_type).or_default();
        let server = of_type.server(&row.server);
        if let Some((start, end)) = row.outage {
            of_type.outages.push(Outage { server, start, end: end.unwrap_or(i64::MAX) });
        }
    }
    Ok(history)
}

fn of_snapshot(folder: &Path) -> Result<History> {
    let snapshot = read_snapshot(folder)?;
    let mut history = History { until: Some(snapshot.taken_at.timestamp()), ..History::default() };
    let type_name = |server: ServerIx| {
        let of = snapshot.servers[server.ix()].hardware_type;
        snapshot.hardware_types[of.ix()].to_string()
    };
    let mut by_rack: BTreeMap<&str, Vec<ServerIx>> = BTreeMap::new();
    for (at, server) in snapshot.servers.iter().enumerate() {
        let ix = ServerIx::new(at);
        by_rack.entry(snapshot.racks[server.rack.ix()].id.as_ref()).or_default().push(ix);
        let of_type = history.types.entry(type_name(ix)).or_default();
        of_type.server(&server.id);
    }
    for (at, name) in snapshot.hardware_types.iter().enumerate() {
        if let Some(of_type) = history.types.get_mut(name.as_ref()) {
            of_type.rru = mean_rru(&snapshot, fleet::HardwareTypeIx::new(at));
        }
    }
    for event in &snapshot.unavailability {
        let servers: Vec<ServerIx> = match event.scope {
            _ if event.kind.is_planned() => Vec::new(),
            Scope::Server => snapshot.server(&event.scope_id).into_iter().collect(),
            Scope::Rack => by_rack.get(event.scope_id.as_ref()).cloned().unwrap_or_default(),
            Scope::Msb | Scope::Datacenter => Vec::new(),
        };
        history.left_out += usize::from(servers.is_empty());
        let start = event.started_at.timestamp();
        let end = event.ended_at.map_or(i64::MAX, |ended| ended.timestamp());
        for server in servers {
            let name = snapshot.servers[server.ix()].id.as_ref();
            let of_type = history.types.entry(type_name(server)).or_default();
            let server = of_type.server(name);
            of_type.outages.push(Outage { server, start, end });
        }
    }
    Ok(history)
}

/// What a server of a type is worth, on average over the capacity of the reservations that it can serve.
fn mean_rru(snapshot: &RegionSnapshot, of: fleet::HardwareTypeIx) -> Option<f64> {
    let guaranteed = snapshot.reservations.iter().filter(|r| r.kind == ReservationKind::Guaranteed);
    let (mut weight, mut sum) = (0.0, 0.0);
    for reservation in guaranteed {
        let Some(value) = reservation.value(of) else { continue };
        weight += reservation.capacity.to_f64();
        sum += reservation.capacity.to_f64() * value.to_f64();
    }
    (weight > 0.0 && sum > 0.0).then(|| sum / weight)
}

fn types(history: &History, options: &SparesForecast) -> Result<Vec<TypeHistory>> {
    let given = |of: &[(String, f64)], name: &str| {
        of.iter().rev().find(|(known, _)| known == name).map(|(_, number)| *number)
    };
    let mut types = Vec::new();
    for (name, of_type) in &history.types {
        let listed = of_type.servers.len();
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
    history: &History,
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

fn text(answer: &Answer<'_>) -> String {
    let sizing = answer.sizing;
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

fn rule_row(rated: &Rated, answer: &Answer<'_>) -> [String; 5] {
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
