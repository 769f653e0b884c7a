//! The answer to "could I have this?" as a document, `ras-plan/1`; [`crate::plan_text`] shows it.

use crate::number::amount;
use async_solver::{Alternative, Answer, Concession, Cost};
use fleet::audit::AuditReport;
use fleet::{Move, RegionSnapshot, ReservationIx, ReservationKind};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long it took.
#[derive(Clone, Copy, Debug)]
pub struct Times {
    /// Until snapshot and request were read, from the start of the process.
    pub read: Duration,
    /// In all.
    pub total: Duration,
}

/// Servers that go from one holder to another.
#[derive(Clone, Copy, Default)]
struct Flow {
    in_use: usize,
    idle: usize,
}

/// From, to: how many.
type Flows = BTreeMap<(Option<ReservationIx>, Option<ReservationIx>), Flow>;

fn flows(moves: &[Move]) -> Flows {
    let mut flows = Flows::new();
    for of in moves {
        let flow = flows.entry((of.source, of.target)).or_default();
        *(if of.in_use { &mut flow.in_use } else { &mut flow.idle }) += 1;
    }
    flows
}

fn kind(region: &RegionSnapshot, holder: Option<ReservationIx>) -> &'static str {
    holder.map_or("free", |holder| region.reservations[holder.ix()].kind.as_str())
}

fn concession(region: &RegionSnapshot, alternative: &Alternative) -> String {
    match &alternative.concession {
        Concession::FewerRru(capacity) => format!("asking for {} RRU", amount(*capacity)),
        Concession::OneMoreType(ty, value) => format!(
            "accepting {} as well, at {} RRU a server",
            region.hardware_types[ty.ix()],
            amount(*value)
        ),
        Concession::LooserAffinity(theta) => {
            format!("a tolerance of {theta:.2} for its datacenter shares")
        }
        Concession::WithoutBuffer => "not surviving the loss of an MSB".to_owned(),
    }
}

/// The answer for programs.
pub fn json(answer: &Answer, times: Times) -> Value {
    let region = &answer.region;
    let reservation = &region.reservations[answer.reservation.ix()];
    let plan = &answer.plan;
    let moves: Vec<Value> = (plan.moves.iter())
        .map(|of| {
            let server = &region.servers[of.server.ix()];
            json!({
                "server_id": server.id,
                "hardware_type": region.hardware_types[server.hardware_type.ix()],
                "msb": region.msbs[region.msb_of(server).ix()].id,
                "from": of.source.map(|of| &region.reservations[of.ix()].id),
                "to": of.target.map(|of| &region.reservations[of.ix()].id),
                "in_use": of.in_use,
            })
        })
        .collect();
    let sources: Vec<Value> = (flows(&plan.moves).iter())
        .map(|((source, target), flow)| {
            json!({
                "from": source.map(|of| &region.reservations[of.ix()].id),
                "from_kind": kind(region, *source),
                "to": target.map(|of| &region.reservations[of.ix()].id),
                "in_use": flow.in_use,
                "idle": flow.idle,
            })
        })
        .collect();
    let refusal = answer.refusal.as_ref().map(|refusal| {
        let alternatives: Vec<Value> = (refusal.alternatives.iter())
            .map(|of| {
                json!({
                    "concession": token(&of.concession),
                    "sentence": concession(region, of),
                    "request": of.request,
                    "cost": cost_json(&of.cost),
                })
            })
            .collect();
        json!({
            "reason": refusal.shortfall.reason,
            "sentence": refusal.shortfall.sentence,
            "missing_rru": refusal.shortfall.missing.to_f64(),
            "hardware": refusal.shortfall.hardware,
            "evidence": refusal.shortfall.evidence,
            "limits": refusal.limits,
            "alternatives": alternatives,
        })
    });
    json!({
        "format": PLAN_FORMAT,
        "reservation_id": reservation.id,
        "change": answer.change,
        "granted": if answer.refusal.is_none() { "in_full" } else { granted_word(answer) },
        "capacity_rru": reservation.capacity.to_f64(),
        "guaranteed_today_rru": answer.today.to_f64(),
        "granted_rru": answer.granted.to_f64(),
        "reservation": row_json(&answer.audit, answer.reservation),
        "msb_buffer": reservation.msb_buffer,
        "cost": cost_json(&Cost::of(region, plan, answer.reservation)),
        "sources": sources,
        "moves": moves,
        "refusal": refusal,
        "primal": plan.primal,
        "shortfall_cost": plan.shortfall_cost,
        "dual_bound": plan.dual_bound,
        "surely_missing_rru": plan.surely_missing,
        "complete": plan.complete,
        "audit_clean": answer.audit.is_clean(),
        "seconds": { "read": times.read.as_secs_f64(), "total": times.total.as_secs_f64() },
    })
}

/// The format of the JSON document.
pub const PLAN_FORMAT: &str = "ras-plan/1";

const fn granted_word(answer: &Answer) -> &'static str {
    if answer.granted.0 > 0 { "in_part" } else { "nothing" }
}

const fn token(concession: &Concession) -> &'static str {
    match concession {
        Concession::FewerRru(_) => "fewer_rru",
        Concession::OneMoreType(..) => "one_more_type",
        Concession::LooserAffinity(_) => "looser_affinity",
        Concession::WithoutBuffer => "no_buffer",
    }
}

fn cost_json(cost: &Cost) -> Value {
    json!({
        "in_use": cost.in_use, "idle": cost.idle, "acquired": cost.acquired,
        "lent": cost.lent, "own_in_use": cost.own_in_use, "own_idle": cost.own_idle, "price": cost.price,
    })
}

fn row_json(audit: &AuditReport, ix: ReservationIx) -> Value {
    let row = &audit.reservations[ix.ix()];
    debug_assert_eq!(row.kind, ReservationKind::Guaranteed, "others are refused");
    json!({
        "servers": row.holding.servers,
        "assigned_rru": row.holding.assigned.to_f64(),
        "largest_msb": row.holding.largest_msb_id,
        "largest_msb_rru": row.holding.largest_msb.to_f64(),
        "guaranteed_rru": row.holding.guaranteed.to_f64(),
        "datacenters": row.datacenters,
    })
}
