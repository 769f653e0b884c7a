//! Figures 12 to 15: a region given away greedily, then solved: largest shares, spread, power and
//! traffic between datacenters.

use super::chain;
use super::ours::{self, How};
use super::{Beside, Figure, Figures, Plot, Series, Unit, mean, quantile};
use anyhow::{Context, Result};
use async_solver::baselines::greedy;
use fleet::audit::{AuditReport, ReservationAudit, audit};
use fleet::{MsbIx, RegionSnapshot, ReservationKind, Rru, SnapshotParts, Targets};
use ras::interrupt;
use report::number::{count, decimal, percent};

/// Reservations in the heat map: the paper's number.
const ROWS: usize = 30;

/// One assignment of the empty region or of what came after.
struct Stage {
    name: &'static str,
    targets: Targets,
    audit: AuditReport,
}

const STAGES: [&str; 3] = ["greedy", "greedy, then solved", "solved from empty"];

/// Makes a figure of the empty region and its stages; the text says how they came about.
type Make = fn(&RegionSnapshot, &[Stage; 3], &How, String) -> Figure;

/// Makes the figures that are wanted. `origin`: what region it is.
///
/// # Errors
/// If a solve fails, or the run is interrupted.
pub fn figures(
    snapshot: &RegionSnapshot,
    origin: &str,
    how: &How,
    wanted: &Figures,
    say: &dyn Fn(&str),
) -> Result<Vec<Figure>> {
    let made = format!(
        "{} servers in {} reservations, {origin}: given away greedily from empty, with containers on \
         80 % of what was given; that solved once; and the empty region solved.",
        count(snapshot.servers.len()),
        snapshot.reservations.len(),
    );
    let empty = chain::emptied(snapshot);
    let mut figures = Vec::new();
    let spread: [(u8, Make); 3] = [(12, shares), (13, heat), (14, power)];
    let mut make = |parts: SnapshotParts, all: &[(u8, Make)], made: &str| -> Result<()> {
        let all: Vec<_> = all.iter().filter(|(number, _)| wanted.any(&[*number])).collect();
        if !all.is_empty() {
            let empty = RegionSnapshot::new(parts).context("the region, emptied")?;
            let numbers: Vec<String> = all.iter().map(|(number, _)| number.to_string()).collect();
            let tell = |what: &str| say(&format!("figures {}: {what}", numbers.join(", ")));
            let stages = stages(&empty, how, &tell)?;
            figures.extend(
                all.into_iter().map(|(_, figure)| figure(&empty, &stages, how, made.into())),
            );
        }
        Ok(())
    };
    make(empty.clone(), &spread, &made)?;
    if snapshot.reservations.iter().any(|of| !of.affinity.is_empty()) {
        make(empty, &[(15, traffic)], &made)?;
    } else {
        // Not among those of the other figures: who is bound has fewer MSBs to spread over.
        let mut bound = empty;
        chain::bind(&mut bound, snapshot);
        let made = format!("{made} Two reservations were bound to two datacenters each.");
        make(bound, &[(15, traffic)], &made)?;
    }
    Ok(figures)
}

fn stages(empty: &RegionSnapshot, how: &How, say: &dyn Fn(&str)) -> Result<[Stage; 3]> {
    say("greedy");
    let targets = greedy::assign(empty);
    let given = chain::loaded(empty, &targets, how.seed);
    let first = Stage { name: STAGES[0], audit: audit(empty, &targets), targets };
    let given = RegionSnapshot::new(given).context("the region given away")?;
    say("solving what greedy assignment left");
    let from_greedy = ours::solve(&given, how)?;
    say("solving the empty region");
    let from_empty = ours::solve(empty, how)?;
    let stage = |name, of: ours::Ours| Stage { name, targets: of.targets, audit: of.audit };
    Ok([first, stage(STAGES[1], from_greedy), stage(STAGES[2], from_empty)])
}

fn bars(stages: &[Stage; 3], unit: Unit, series: Vec<Series>) -> Plot {
    Plot::Bars { labels: stages.iter().map(|s| s.name.to_owned()).collect(), unit, series }
}

/// The least share with all reservations on the same hardware; zero if a reservation is short, because
/// the bound then says nothing.
fn least_together(region: &RegionSnapshot, stage: &Stage, how: &How) -> f64 {
    let capacity = stage.audit.buffer.capacity;
    if stage.audit.shortfall > Rru::ZERO || capacity <= Rru::ZERO {
        return 0.0;
    }
    async_solver::baselines::least_buffer(region, how.threads, &interrupt::asked)
        / capacity.to_f64()
}

fn shares(region: &RegionSnapshot, stages: &[Stage; 3], how: &How, made: String) -> Figure {
    let share = |stage: &Stage| stage.audit.buffer.share;
    let short = |stage: &Stage| count(stage.audit.shortfall_servers);
    let alone = stages[2].audit.buffer.bounds.hardware;
    let bound = alone.max(least_together(region, &stages[2], how));
    Figure {
        number: 12,
        title: "Largest share in one MSB",
        made,
        rows: vec![
            Beside {
                what: "greedy, solved on from there, solved from empty",
                paper: "15.1 %, 5.8 %, 4.2 %",
                here: stages.iter().map(|s| percent(share(s))).collect::<Vec<_>>().join(", "),
            },
            Beside {
                what: "lower bound with this hardware: each reservation alone, all together",
                paper: "4.06 %",
                here: format!("{}, {}", percent(alone), percent(bound)),
            },
            Beside {
                what: "solved from empty over the lower bound of all together",
                paper: "1.03",
                here: format!("{:.3}", share(&stages[2]) / bound),
            },
            Beside {
                what: "servers short at least, stage by stage",
                paper: "-",
                here: stages.iter().map(short).collect::<Vec<_>>().join(", "),
            },
        ],
        plots: vec![bars(
            stages,
            Unit::Share,
            vec![
                Series {
                    name: "sum of largest MSB shares over capacity".to_owned(),
                    values: stages.iter().map(share).collect(),
                },
                Series {
                    name: "lower bound with this hardware".to_owned(),
                    values: vec![bound; stages.len()],
                },
            ],
        )],
    }
}

/// Guaranteed reservations that hold something, the largest first.
fn largest(audit: &AuditReport) -> Vec<&ReservationAudit> {
    let mut rows: Vec<&ReservationAudit> = (audit.reservations.iter())
        .filter(|row| row.kind == ReservationKind::Guaranteed)
        .filter(|row| row.holding.assigned > Rru::ZERO)
        .collect();
    rows.sort_by(|a, b| b.capacity.cmp(&a.capacity).then(a.reservation_id.cmp(&b.reservation_id)));
    rows
}

fn heat(region: &RegionSnapshot, stages: &[Stage; 3], _: &How, made: String) -> Figure {
    let mut columns: Vec<MsbIx> = (0..region.msbs.len()).map(MsbIx::new).collect();
    columns.sort_by_key(|msb| (region.msbs[msb.ix()].datacenter, *msb));
    let even = 1.0 / region.msbs.len().max(1) as f64;
    let row_of = |row: &&ReservationAudit| {
        let all = row.holding.assigned.to_f64();
        let share = |msb: &MsbIx| row.msb_amounts[msb.ix()].to_f64() / all;
        Series { name: row.reservation_id.to_string(), values: columns.iter().map(share).collect() }
    };
    let rows: Vec<Series> = largest(&stages[2].audit).iter().take(ROWS).map(row_of).collect();
    let over_even = |stage: &Stage| {
        let shares: Vec<f64> = (largest(&stage.audit).iter().take(ROWS))
            .map(|row| row.holding.largest_msb.to_f64() / row.holding.assigned.to_f64() / even)
            .collect();
        quantile(&shares, 0.5).map_or_else(|| "-".to_owned(), decimal)
    };
    let used: Vec<f64> = (rows.iter())
        .map(|row| row.values.iter().filter(|share| **share > 0.0).count() as f64)
        .collect();
    Figure {
        number: 13,
        title: "Spread of the 30 largest reservations over MSBs",
        made,
        rows: vec![
            Beside {
                what: "largest share over even share, median: greedy, solved",
                paper: "-",
                here: format!("{}, {}", over_even(&stages[0]), over_even(&stages[2])),
            },
            Beside {
                what: "MSBs that a reservation is in, mean, of all",
                paper: "nearly all of 36, few exceptions",
                here: format!("{} of {}", decimal(mean(&used)), columns.len()),
            },
        ],
        plots: vec![Plot::Heat {
            columns: columns.iter().map(|msb| region.msbs[msb.ix()].id.to_string()).collect(),
            series: rows,
        }],
    }
}

/// Typical draw by MSB, in watts: of the capacity that guaranteed reservations run, each on all its
/// servers alike, and of all available servers. Buffers draw nothing.
pub(super) fn draws(
    region: &RegionSnapshot,
    audit: &AuditReport,
    targets: &Targets,
) -> Vec<(f64, f64)> {
    let mut draws = vec![(0.0, 0.0); region.msbs.len()];
    // Idle and busy servers of a reservation add up to its capacity over what it has.
    let loads: Vec<f64> = (audit.reservations.iter())
        .map(|row| {
            let guaranteed = row.kind == ReservationKind::Guaranteed;
            let all = row.holding.assigned.to_f64();
            if guaranteed && all > 0.0 { (row.capacity.to_f64() / all).min(1.0) } else { 0.0 }
        })
        .collect();
    for (server, holder) in region.servers.iter().zip(targets.holders()) {
        if let (Some(watts), true) = (server.power_watts, server.available) {
            let draw = &mut draws[region.msb_of(server).ix()];
            draw.1 += watts;
            draw.0 += holder.map_or(0.0, |holder| watts * loads[holder.ix()]);
        }
    }
    draws
}

/// Variance of the share of their servers' draw that MSBs give, and the least that is left of one.
pub(super) fn unevenness(draws: &[(f64, f64)]) -> (f64, f64) {
    let shares: Vec<f64> =
        draws.iter().filter(|draw| draw.1 > 0.0).map(|draw| draw.0 / draw.1).collect();
    let mean = mean(&shares);
    let variance =
        shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / shares.len().max(1) as f64;
    (variance, 1.0 - shares.iter().copied().fold(0.0, f64::max))
}

fn power(region: &RegionSnapshot, stages: &[Stage; 3], _: &How, made: String) -> Figure {
    let draws = stages.each_ref().map(|stage| draws(region, &stage.audit, &stage.targets));
    let known = draws.iter().flatten().any(|draw| draw.1 > 0.0);
    let uneven = draws.each_ref().map(|draws| unevenness(draws));
    let series = STAGES.iter().zip(&draws).map(|(name, draws)| Series {
        name: (*name).to_owned(),
        values: draws.iter().map(|(used, all)| if *all > 0.0 { used / all } else { 0.0 }).collect(),
    });
    let ratio = |stage: usize| match uneven[0].0 {
        before if known && before > 0.0 => decimal(uneven[stage].0 / before),
        _ => "-".to_owned(),
    };
    let room = |stage: usize| if known { percent(uneven[stage].1) } else { "-".to_owned() };
    Figure {
        number: 14,
        title: "Power by MSB",
        made,
        rows: vec![
            Beside {
                what: "variance over MSBs, solved over greedy",
                paper: "0.22 (0.9 to 0.2)",
                here: format!("{}; from empty {}", ratio(1), ratio(2)),
            },
            Beside {
                what: "headroom of the MSB with least, greedy and solved",
                paper: "near 0 to 11 %",
                here: format!("{}, {}; from empty {}", room(0), room(1), room(2)),
            },
        ],
        plots: vec![Plot::Bars {
            labels: region.msbs.iter().map(|msb| msb.id.to_string()).collect(),
            unit: Unit::Share,
            series: series.collect(),
        }],
    }
}

/// Share of a reservation's traffic that leaves its datacenter, if it talks to data that lies as
/// its affinity says: what is placed in a datacenter beyond the share of the data there.
fn crossing(row: &ReservationAudit) -> f64 {
    let all = row.holding.assigned.to_f64();
    if all <= 0.0 {
        return 0.0;
    }
    let local = |place: &fleet::audit::DatacenterShare| {
        (place.assigned.to_f64() / all).min(place.wanted.unwrap_or(0.0))
    };
    (1.0 - row.datacenters.iter().map(local).sum::<f64>()).clamp(0.0, 1.0)
}

fn traffic(region: &RegionSnapshot, stages: &[Stage; 3], _: &How, made: String) -> Figure {
    let bound: Vec<usize> = {
        let mut bound: Vec<usize> = (0..region.reservations.len())
            .filter(|&ix| !region.reservations[ix].affinity.is_empty())
            .collect();
        bound.sort_by_key(|&ix| (std::cmp::Reverse(region.reservations[ix].capacity), ix));
        bound.truncate(2);
        bound
    };
    let at = |stage: usize, ix: usize| crossing(&stages[stage].audit.reservations[ix]);
    let cut = |ix: usize, stage: usize| {
        let (before, after) = (at(0, ix), at(stage, ix));
        match after {
            after if after > 1e-9 => format!("{} x", decimal(before / after)),
            _ if before > 1e-9 => "all of it".to_owned(),
            _ => "zero before".to_owned(),
        }
    };
    let rows = (bound.iter().zip(["2.3 x", "1.6 x"])).map(|(&ix, paper)| Beside {
        what: "traffic between datacenters cut, a service",
        paper,
        here: format!(
            "{} ({} to {}); from empty {} ({})",
            cut(ix, 1),
            percent(at(0, ix)),
            percent(at(1, ix)),
            cut(ix, 2),
            region.reservations[ix].id
        ),
    });
    let mut rows: Vec<Beside> = rows.collect();
    if rows.is_empty() {
        rows.push(Beside {
            what: "traffic between datacenters cut",
            paper: "2.3 x and 1.6 x",
            here: "no reservation of this region has affinity".to_owned(),
        });
    }
    let series = bound.iter().map(|&ix| Series {
        name: region.reservations[ix].id.to_string(),
        values: (0..stages.len()).map(|stage| at(stage, ix)).collect(),
    });
    let plot = bars(stages, Unit::Share, series.collect());
    Figure { number: 15, title: "Traffic between datacenters", made, rows, plots: vec![plot] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_draws_have_no_variance() {
        let even = unevenness(&[(5.0, 10.0), (50.0, 100.0), (0.0, 0.0)]);
        assert_eq!(even, (0.0, 0.5));
        let uneven = unevenness(&[(10.0, 10.0), (0.0, 10.0)]);
        assert_eq!(uneven, (0.25, 0.0));
    }
}
