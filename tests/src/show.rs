//! What scenarios print: counts and guarantees, never which of several equal servers.

use crate::solve::Solved;
use fleet::audit::{AuditReport, audit as audit_targets};
use fleet::explain::explain;
use fleet::{MsbIx, Name, RegionSnapshot, ReservationKind, Rru, Scope, Targets, holder_name};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// One line per reservation that may hold servers, with the reason where it is short.
pub fn holdings(snapshot: &RegionSnapshot, solved: &Solved) -> String {
    let mut text = String::new();
    for row in &solved.audit.reservations {
        let held = &row.holding;
        let buffer = if row.msb_buffer { held.largest_msb } else { Rru::ZERO };
        let line = match row.kind {
            ReservationKind::Elastic => continue,
            ReservationKind::SharedBuffer => format!("assigned={}", held.assigned),
            ReservationKind::Guaranteed => {
                format!("assigned={} guaranteed={} buffer={buffer}", held.assigned, held.guaranteed)
            }
        };
        let reason = snapshot
            .reservation(&row.reservation_id)
            .and_then(|ix| explain(snapshot, &solved.targets, ix).shortfall)
            .map_or(String::new(), |shortfall| format!(" ({})", shortfall.reason));
        text.push_str(&format!(
            "{}: {line} shortfall={}{reason}\n",
            row.reservation_id, held.shortfall
        ));
    }
    text
}

/// What moves, counted by source, target and whether containers run on it.
pub fn moves(snapshot: &RegionSnapshot, targets: &Targets) -> String {
    let mut counts: BTreeMap<(Name, Name, bool), usize> = BTreeMap::new();
    for step in targets.diff(snapshot) {
        let (source, target) =
            (holder_name(snapshot, step.source), holder_name(snapshot, step.target));
        *counts.entry((source, target, step.in_use)).or_default() += 1;
    }
    if counts.is_empty() {
        return "moves: 0\n".to_owned();
    }
    let line = |((source, target, in_use), count): (&(Name, Name, bool), &usize)| {
        let in_use = if *in_use { " in use" } else { "" };
        format!("moves: {count}{in_use} {source} -> {target}\n")
    };
    counts.iter().map(line).collect()
}

/// What each reservation has today, and would have after the loss of the MSB that holds most.
pub fn audit(snapshot: &RegionSnapshot) -> String {
    let audit = audit_targets(snapshot, &Targets::unchanged(snapshot));
    let guaranteed =
        audit.reservations.iter().filter(|row| row.kind == ReservationKind::Guaranteed);
    let line = |row: &fleet::audit::ReservationAudit| {
        let held = &row.holding;
        let ok = if held.assigned >= row.capacity { "ok" } else { "short" };
        format!(
            "{}: available={} requested={} after_worst_loss={} {ok}\n",
            row.reservation_id,
            held.assigned,
            row.capacity,
            held.assigned - held.largest_msb
        )
    };
    guaranteed.map(line).collect()
}

/// The certificate: what single losses would leave, and whether what was promised holds.
pub fn certificate(now: &RegionSnapshot) -> String {
    let mut text = String::new();
    for row in &fleet::audit::certificate(now).rows {
        let least = (0..row.by_msb.len()).map(|msb| row.after_loss(MsbIx::new(msb))).min();
        let least = least.unwrap_or_default();
        let _ = write!(
            text,
            "{}: {} of {}, {least} after a loss",
            row.reservation_id, row.owned, row.capacity
        );
        if let Some(domains) = row.domains {
            let _ = write!(text, ", {} after that of a domain", domains.left);
        }
        if let Some((quorum, most)) = row.quorum().zip(row.msb_max) {
            let _ = write!(text, "; quorum {quorum}, {most} at most in an MSB");
            if !row.replicas_hold() {
                text.push_str(": NOT SO");
            }
        }
        text.push_str(if row.holds() { "\n" } else { "; the promise is broken\n" });
    }
    text
}

/// Who would be short after the loss of which MSB.
pub fn losses(audit: &AuditReport) -> String {
    let lost = audit.msb_losses.iter().flat_map(|loss| {
        let line = |row: &fleet::audit::AfterLoss| {
            format!(
                "without {}: {} left={} missing={}\n",
                loss.msb, row.reservation_id, row.left, row.missing
            )
        };
        loss.below.iter().map(line)
    });
    let text: String = lost.collect();
    if text.is_empty() {
        "losing any one MSB leaves no reservation short\n".to_owned()
    } else {
        text
    }
}

/// Servers of a reservation by rack, MSB or datacenter.
pub fn place(snapshot: &RegionSnapshot, name: &str, by: &str) -> Result<String, String> {
    let ix = snapshot.reservation(name).ok_or_else(|| format!("there is no reservation {name}"))?;
    let scope = Scope::parse(by).ok_or_else(|| format!("by={by} is not understood"))?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for server in snapshot.servers.iter().filter(|server| server.holder() == Some(ix)) {
        let place = match scope {
            Scope::Server => &*server.id,
            Scope::Rack => &snapshot.racks[server.rack.ix()].id,
            Scope::Msb => &snapshot.msbs[snapshot.msb_of(server).ix()].id,
            Scope::Datacenter => &snapshot.datacenters[snapshot.datacenter_of(server).ix()].id,
        };
        *counts.entry(place).or_default() += 1;
    }
    let counts: Vec<String> =
        counts.iter().map(|(place, count)| format!("{place}={count}")).collect();
    Ok(format!("{name}: {}\n", if counts.is_empty() { "-".into() } else { counts.join(" ") }))
}

/// Why a reservation is short in the last solve, and what would grant it.
pub fn explanation(
    snapshot: &RegionSnapshot,
    targets: &Targets,
    name: &str,
) -> Result<String, String> {
    let ix = snapshot.reservation(name).ok_or_else(|| format!("there is no reservation {name}"))?;
    let explanation = explain(snapshot, targets, ix);
    let Some(shortfall) = &explanation.shortfall else {
        return Ok(format!("{name}: has what it asked for\n"));
    };
    let mut text = format!("{name}: short by {}: {}\n", shortfall.missing, shortfall.reason);
    text.push_str(&format!("{}\n", shortfall.sentence));
    for of in &shortfall.held_by {
        text.push_str(&format!("{of}\n"));
    }
    for relaxation in &explanation.relaxations {
        text.push_str(&format!("concession: {relaxation}\n"));
    }
    Ok(text)
}
