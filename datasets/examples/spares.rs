//! Shared buffers sized from failures: `cargo run -p datasets --no-default-features --example spares
//! -- FOLDER`, with a folder that has `servers.csv` and `events_day00_13.csv` of the Google trace.
//!
//! Every day of the second week, spares by hardware type are decided from the failures until then, and
//! judged on the day that follows, beside 2 % of each type; and once for all of the second week, from the first. A server
//! that is out for longer than a limit is lost: it is replaced by an order, and its type's spare is free again.

use datasets::import::{ImportOptions, LogFormat, import_csv, read_log};
use fleet::RegionSnapshot;
use forecast::sizing::{Rule, SizingTerms, TypeHistory, downs, size};
use forecast::spares::{Outage, SpareType, SparesOutcome, judge, share_out};
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;
use std::path::Path;

const DAY: i64 = 86_400;
/// Days with events, and those of them that only teach.
const DAYS: i64 = 14;
const TAUGHT: i64 = 7;
/// Share of a type that is fixed without a forecast.
const FIXED: f64 = 0.02;

/// Failures this close to each other are one burst.
fn terms(lost_after: i64) -> SizingTerms {
    let history = 0..DAYS * DAY;
    SizingTerms { history, burst: 300, lost_after, chance: 0.01, fixed_share: FIXED, total: None }
}

/// What a policy did, in servers and in RRU.
#[derive(Default)]
struct Total {
    servers: SparesOutcome,
    missing_rru_hours: f64,
}

impl Total {
    fn add(&mut self, outcome: &SparesOutcome, rru: f64) {
        self.servers.add(outcome);
        self.missing_rru_hours += rru * outcome.missing_hours;
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("which folder?")?;
    for limit in [DAY, 3 * DAY, DAYS * DAY] {
        let types = read(Path::new(&folder), limit)?;
        println!("\nservers out for more than {} d are lost", limit / DAY);
        once(&types, &terms(limit))?;
        equal_servers(&types, &terms(limit))?;
        coverage(&types, &terms(limit))?;
    }
    Ok(())
}

fn read(folder: &Path, limit: i64) -> Result<Vec<TypeHistory>, Box<dyn Error>> {
    let log = LogFormat { epoch: Some(chrono::DateTime::UNIX_EPOCH), ..LogFormat::default() };
    let taken_at = chrono::DateTime::UNIX_EPOCH + chrono::TimeDelta::days(DAYS);
    let options = ImportOptions::new("google", folder.join("servers.csv"), taken_at);
    let (parts, _) = import_csv(&options)?;
    let mut types: BTreeMap<String, TypeHistory> = BTreeMap::new();
    let mut known = BTreeMap::new();
    for (number, server) in (0..).zip(&parts.servers) {
        let name = server.hardware_type.to_string();
        known.insert(server.server_id.to_string(), (number, name.clone()));
        let of = types.entry(name.clone()).or_insert_with(|| {
            let cpu = name.split('-').find_map(|part| part.strip_prefix('c')?.parse().ok());
            // The share of the largest server's CPU that its name has in thousandths.
            let rru = cpu.unwrap_or(1_000.0) / 1_000.0;
            TypeHistory { name, servers: 0, rru, outages: Vec::new() }
        });
        of.servers += 1;
    }
    let snapshot = RegionSnapshot::new(parts)?;
    let (events, _) = read_log(&[folder.join("events_day00_13.csv")], &log, &snapshot)?;
    for event in events {
        let Some((server, name)) = known.get(event.scope_id.as_ref()) else { continue };
        let Some(of) = types.get_mut(name) else { continue };
        let start = event.started_at.timestamp();
        let end = event.ended_at.map_or(i64::MAX, |ended| ended.timestamp());
        of.outages.push(Outage { server: *server, start, end: end.min(start + limit) });
    }
    Ok(types.into_values().collect())
}

/// The days that judge, each with the history before it.
fn days() -> impl Iterator<Item = (Range<i64>, Range<i64>)> {
    (TAUGHT..DAYS).map(|day| (0..day * DAY, day * DAY..(day + 1) * DAY))
}

fn fixed(of: &TypeHistory) -> usize {
    (FIXED * of.servers as f64).round() as usize
}

/// Decided from the first week, judged on the second, as `ras forecast spares` says it; and the fewest spares with which
/// nothing would have been missing, with hindsight.
fn once(types: &[TypeHistory], terms: &SizingTerms) -> Result<(), Box<dyn Error>> {
    let sizing = size(types, terms)?;
    println!("decided from the first week, judged on the second:");
    for rated in &sizing.rules {
        let (spares, missing) = (rated.judged.spares, rated.judged.missing_rru_hours);
        println!(
            "  {:?}: {spares} spares, missing {missing:.2} RRU-hours, covered {:.2} %",
            rated.rule,
            100.0 * rated.judged.covered
        );
    }
    let missing = |rule: Rule| {
        let of = sizing.rules.iter().find(|rated| rated.rule == rule);
        of.map_or(0.0, |rated| rated.judged.missing_rru_hours)
    };
    println!("  ratio {:.3}", missing(Rule::SharedOut) / missing(Rule::FixedShare));
    let mut enough = 0;
    for of in types {
        let mut spares = 0;
        while judge(&of.outages, TAUGHT * DAY..DAYS * DAY, spares)?.missing_hours > 0.0 {
            spares += 1;
        }
        enough += spares;
    }
    println!("  with hindsight {enough} spares miss nothing");
    Ok(())
}

/// As many spares as 2 % of each type, shared out by forecast.
fn equal_servers(types: &[TypeHistory], terms: &SizingTerms) -> Result<(), Box<dyn Error>> {
    let total = types.iter().map(fixed).sum();
    let (mut ours, mut theirs) = (Total::default(), Total::default());
    let mut shared = Vec::new();
    for (history, day) in days() {
        let downs = downs(types, terms, history)?;
        let spare_types: Vec<SpareType<'_>> = (types.iter().zip(&downs))
            .map(|(of, down)| SpareType { down, value: of.rru })
            .collect();
        shared = share_out(total, &spare_types);
        for (of, spares) in types.iter().zip(&shared) {
            ours.add(&judge(&of.outages, day.clone(), *spares)?, of.rru);
            theirs.add(&judge(&of.outages, day.clone(), fixed(of))?, of.rru);
        }
    }
    println!("decided every day: {total} spares");
    for (name, of) in [("2 % of each type", &theirs), ("shared out", &ours)] {
        println!(
            "{name:18} missing {:8.2} server-hours, {:8.2} RRU-hours",
            of.servers.missing_hours, of.missing_rru_hours
        );
    }
    println!("ratio in RRU-hours {:.3}", ours.missing_rru_hours / theirs.missing_rru_hours);
    for (of, spares) in types.iter().zip(&shared) {
        let (name, servers, fixed) = (&of.name, of.servers, fixed(of));
        println!("  {name:16} {servers:5} servers: 2 % {fixed:3}, shared out {spares:3}");
    }
    Ok(())
}

/// Spares for a chance of a shortfall that the operator sets, by type.
fn coverage(types: &[TypeHistory], terms: &SizingTerms) -> Result<(), Box<dyn Error>> {
    println!("by chance of a shortfall: coverage, missing RRU-hours, spares on average");
    for chance in [0.1, 0.05, 0.01, 0.001] {
        let (mut total, mut spares) = (Total::default(), 0.0);
        for (history, day) in days() {
            for (of, down) in types.iter().zip(downs(types, terms, history)?) {
                let enough = down.quantile(1.0 - chance);
                spares += enough as f64 / (DAYS - TAUGHT) as f64;
                total.add(&judge(&of.outages, day.clone(), enough)?, of.rru);
            }
        }
        println!(
            "  chance {:5.1} %: covered {:7.3} % of the time, missing {:8.2}, {spares:.1} spares",
            100.0 * chance,
            100.0 * total.servers.coverage(),
            total.missing_rru_hours
        );
    }
    Ok(())
}
