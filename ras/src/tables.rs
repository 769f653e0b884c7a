//! The summary of a solve on a terminal.

use crate::layout::{self, Rows, Table};
use crate::number::{amount, count, percent, seconds};
use crate::quantity::show_bytes;
use crate::solve::Solved;
use fleet::audit::{AuditReport, PartitionLoss, ReservationAudit};
use fleet::number::{counted, decimal};
use fleet::{ReservationKind, Rru};
use report::SolveReport;
use report::solve_report::{GroupLimit, Phase1};

/// Maximum number of rows shown of tables that grow with the region.
const ROWS_MAX: usize = 40;

/// Buffer share and bound of RAS (SOSP'21) section 4.2, for comparison.
const PAPER: &str = "RAS (SOSP'21): 4.2 % against at least 4.06 %";

/// The summary of one solve.
pub fn end_report(solved: &Solved, shown: Rows) -> String {
    let mut text = reservations(&solved.audit, shown);
    if let Some(domains) = domains(&solved.audit, shown) {
        text.push_str(&format!("\n\n{domains}"));
    }
    if solved.audit.shortfall > Rru::ZERO {
        text.push_str(&format!("\n\n{}", shortfalls(solved, shown)));
    }
    if !solved.report.limits.is_empty() {
        text.push_str(&format!("\n\n{}", limits(&solved.report.limits, shown)));
    }
    text.push_str(&format!("\n\n{}", facts(solved)));
    if let Some(steps) = steps(&solved.report) {
        text.push_str(&format!("\n\n{steps}"));
    }
    text
}

/// Allocations by reservation, largest first.
fn reservations(audit: &AuditReport, shown: Rows) -> String {
    let header =
        ["reservation", "asked", "assigned", "buffer", "guaranteed", "short", "servers", "change"];
    let mut table = Table::new(&header, 1..8);
    let mut rows: Vec<&ReservationAudit> =
        audit.reservations.iter().filter(|row| row.kind != ReservationKind::Elastic).collect();
    // Shared buffers are counted in servers, not RRU: they are last. Stable sort: ties stay in
    // order of name.
    rows.sort_by_key(|row| (row.kind, std::cmp::Reverse(row.capacity)));
    for row in rows.iter().take(shown.most(ROWS_MAX)) {
        let buffer = if row.msb_buffer { amount(row.holding.largest_msb) } else { "-".to_owned() };
        let short = row.holding.shortfall;
        let short = if short > Rru::ZERO { amount(short) } else { "-".to_owned() };
        let change = row.holding.servers as i128 - row.initial.servers as i128;
        table.add_row([
            row.reservation_id.to_string(),
            amount(row.capacity),
            amount(row.holding.assigned),
            buffer,
            amount(row.holding.guaranteed),
            short,
            count(row.holding.servers),
            if change == 0 { "-".to_owned() } else { format!("{change:+}") },
        ]);
    }
    shown.below(&table, rows.len())
}

/// The worst loss of a domain for each reservation that must survive it, besides MSBs: those that do not come first.
fn domains(audit: &AuditReport, shown: Rows) -> Option<String> {
    let header = ["survives", "worst", "in it", "left", "asked", "left today"];
    let mut table = Table::new(&header, 2..6);
    let rows = audit.reservations.iter();
    let mut rows: Vec<(&ReservationAudit, &PartitionLoss)> =
        rows.flat_map(|row| row.partitions.iter().map(move |of| (row, of))).collect();
    rows.sort_by_key(|(row, of)| (of.survives, std::cmp::Reverse(row.capacity)));
    for (row, of) in rows.iter().take(shown.most(ROWS_MAX)) {
        table.add_row([
            format!(
                "{}: {}{}",
                row.reservation_id,
                of.partition,
                if of.survives { "" } else { " NOT" }
            ),
            of.domain.as_deref().unwrap_or("-").to_owned(),
            amount(of.lost),
            amount(of.left),
            amount(row.capacity),
            amount(of.initial_left),
        ]);
    }
    (!rows.is_empty()).then(|| shown.below(&table, rows.len()))
}

/// Shortfalls with reasons, by priority.
fn shortfalls(solved: &Solved, shown: Rows) -> String {
    let mut table = Table::new(&["short", "missing", "unguaranteed", "reason", "why"], 1..3);
    let mut rows: Vec<&ReservationAudit> = solved.audit.short().collect();
    rows.sort_by_key(|row| (row.priority, std::cmp::Reverse(row.holding.shortfall)));
    for row in rows.iter().take(shown.most(ROWS_MAX)) {
        let reason = solved.reasons.get(&row.reservation_id);
        table.add_row([
            row.reservation_id.to_string(),
            amount(row.holding.shortfall),
            amount(row.unguaranteed()),
            reason.map_or("not solved", |reason| reason.token).to_owned(),
            reason.map_or_else(String::new, |reason| reason.sentence.clone()),
        ]);
    }
    shown.below(&table, rows.len())
}

/// Limits of groups: those with the highest price first, then those that are nearest to their bound.
fn limits(limits: &[GroupLimit], shown: Rows) -> String {
    let mut table = Table::new(&["limit", "today", "result", "price of 1 %"], 1..4);
    let mut rows: Vec<&GroupLimit> = limits.iter().collect();
    let left = |of: &GroupLimit| of.most.saturating_sub(of.after) as f64 / of.most.max(1) as f64;
    let worth = |of: &GroupLimit| of.price * of.most as f64;
    // Units differ from policy to policy. Of nothing there is no share.
    let share = |sum: i64, most: i64| match most {
        0 => sum.to_string(),
        _ => percent(sum as f64 / most as f64),
    };
    rows.sort_by(|a, b| {
        worth(b).total_cmp(&worth(a)).then(left(a).total_cmp(&left(b))).then(a.name.cmp(&b.name))
    });
    for of in rows.iter().take(shown.most(ROWS_MAX)) {
        table.add_row([
            of.name.clone(),
            share(of.before, of.most),
            share(of.after, of.most),
            if of.price > 0.0 { decimal(worth(of) / 100.0) } else { "-".to_owned() },
        ]);
    }
    shown.below(&table, rows.len())
}

fn facts(solved: &Solved) -> String {
    let (audit, report) = (&solved.audit, &solved.report);
    let mut facts: Vec<(&str, String)> = Vec::new();
    let mut fact = |name, text| facts.push((name, text));
    let short = audit.short().count();
    let verdict = if short == 0 {
        "no reservation is short".to_owned()
    } else {
        let held = match report.unguaranteed_servers {
            Some(servers @ 1..) => {
                format!("; {} assigned without a guarantee", counted(servers, "server"))
            }
            _ => String::new(),
        };
        let servers = counted(audit.shortfall_servers, "server");
        format!("{} short, by at least {servers}{held}", people(short))
    };
    fact("shortfall", verdict);
    let buffer = &audit.buffer;
    fact(
        "embedded buffer",
        format!(
            "{} of the requested RRU; at least {} with this hardware, {} if it were spread evenly\n\
             {PAPER}",
            percent(buffer.share),
            percent(buffer.bounds.hardware),
            percent(buffer.bounds.even),
        ),
    );
    let moves = &audit.moves;
    fact(
        "moves",
        format!(
            "{} in use, {} idle; {} free servers assigned, {} released",
            count(moves.in_use),
            count(moves.idle),
            count(moves.acquired),
            count(moves.handed_back)
        ),
    );
    let beyond = |spread: fn(&ReservationAudit) -> Rru| {
        let rows = audit.reservations.iter();
        let guaranteed = rows.filter(|row| row.kind == ReservationKind::Guaranteed);
        counted(guaranteed.filter(|row| spread(row) > Rru::ZERO).count(), "reservation")
    };
    let mut spread = format!(
        "{} beyond their limit for an MSB, {} beyond that for a rack",
        beyond(|row| row.msb_spread.excess),
        beyond(|row| row.rack_spread.excess)
    );
    if let Some(of) = report.phase2.filter(|of| of.rack_spread_before > of.rack_spread_after) {
        spread.push_str(&format!(
            "\nphase 2 reduced the rack price from {:.2} to {:.2}",
            of.rack_spread_before, of.rack_spread_after
        ));
    }
    fact("spread", spread);
    let objective = &audit.objective;
    fact(
        "objective",
        format!(
            "{:.2} = stability {:.2} + rack spread {:.2} + MSB spread {:.2} + buffer {:.2}",
            objective.total,
            objective.stability,
            objective.rack_spread,
            objective.msb_spread,
            objective.buffer
        ),
    );
    if let Some(whole) = report.whole
        && let Some(gap) = whole.gap
    {
        let moves = whole
            .gap_in_use_moves
            .map_or_else(String::new, |moves| format!(" = {moves:.1} in-use moves"));
        let of = "of the objective and shortfalls, without moves of servers handed back";
        fact("gap", format!("{}{moves}, {of}", percent_fine(gap)));
    }
    fact("phase 1", proof(&report.phase1));
    let took = &report.seconds;
    let time = [("read", took.read), ("solve", took.solve), ("audit", took.audit)]
        .iter()
        .filter_map(|(name, of)| Some(format!("{name} {}", seconds((*of)?))))
        .collect::<Vec<_>>()
        .join(", ");
    let total = took.total.map_or_else(String::new, seconds);
    fact("time", format!("{total} ({time})"));
    let own = report.peak_memory_bytes.map_or_else(|| "not known".to_owned(), show_bytes);
    let highs = report.highs_peak_memory_bytes.map(|peak| format!(", HiGHS {}", show_bytes(peak)));
    fact("memory", format!("{own}{}", highs.unwrap_or_default()));
    fact("audit", "every guarantee and every term of the objective was recomputed".to_owned());
    layout::facts(&facts)
}

fn people(count: usize) -> String {
    if count == 1 { "1 reservation is".to_owned() } else { format!("{count} reservations are") }
}

fn proof(phase1: &Phase1) -> String {
    let Some((primal, bound)) = phase1.primal.zip(phase1.dual_bound) else {
        return "no bound is proven".to_owned();
    };
    let gap = phase1.gap.map_or_else(|| "not known".to_owned(), percent_fine);
    let mut lines = format!("primal {primal:.2}, proven bound {bound:.2}, gap {gap}");
    if let Some(moves) = phase1.gap_in_use_moves {
        lines.push_str(&format!(" = {moves:.1} in-use moves"));
    }
    if let Some(termination) = phase1.termination {
        lines.push_str(&format!("; ended: {}", termination.text()));
    }
    if !phase1.proof.is_empty() {
        lines.push_str(&format!("\n{}", phase1.proof));
    }
    lines
}

fn percent_fine(share: f64) -> String {
    format!("{:.4} %", 100.0 * share)
}

/// Time by step of each phase; `None` if there was no solve.
fn steps(report: &SolveReport) -> Option<String> {
    let mut table = Table::new(&["phase", "step", "seconds"], 2..3);
    for of in &report.steps {
        table.add_row([of.phase.to_string(), of.step.clone(), format!("{:.2}", of.seconds)]);
    }
    (!report.steps.is_empty()).then(|| table.to_string())
}
/// Length of the longest bar of a histogram.
const BAR: usize = 40;

/// A histogram of seconds as bars. `within`: ascending bounds, each with the number of values up to it;
/// `total`: the number of all values.
pub fn histogram(within: &[(f64, usize)], total: usize) -> String {
    let ends = within.iter().map(|(end, count)| (format!("<= {end} s"), *count));
    let mut below = 0;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for (name, until) in ends.chain([("longer".to_owned(), total)]) {
        counts.push((name, until.saturating_sub(below)));
        below = until;
    }
    let most = counts.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut text = String::new();
    for (name, count) in counts {
        let bar = "█".repeat((count * BAR).div_ceil(most));
        text.push_str(&format!("  {name:<12}{count:>8}  {bar}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    #[test]
    fn histogram_has_a_bar_for_each_bound_and_the_rest() {
        let text = super::histogram(&[(1.0, 2), (5.0, 3), (60.0, 3)], 4);
        let number = |line: &str| line.split_whitespace().rev().find_map(|w| w.parse::<u32>().ok());
        let counts: Vec<u32> = text.lines().filter_map(number).collect();
        assert_eq!(counts, [2, 1, 0, 1], "{text}");
    }
}
