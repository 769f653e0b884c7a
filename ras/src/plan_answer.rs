//! The answer to a capacity request as a document, `ras-plan/1`; [`crate::plan_text`] formats it.

use crate::number::amount;
use async_solver::{Alternative, Concession, Quoted, move_cost};
use fleet::audit::AuditReport;
use fleet::number::exact;
use fleet::quote::{
    self, Grant, HolderKind, Quote, QuoteFormat, QuoteSeconds, QuotedFlow, QuotedHolding,
    QuotedMove,
};
use fleet::{Move, RegionSnapshot, ReservationIx, ReservationKind, ReservationName, Rru};
use std::collections::BTreeMap;

/// The granted part of the request.
fn grant(answer: &Quoted) -> Grant {
    match answer.refusal {
        None => Grant::InFull,
        Some(_) if answer.granted > Rru::ZERO => Grant::InPart,
        Some(_) => Grant::Nothing,
    }
}

/// The document.
pub fn quote(answer: &Quoted, seconds: QuoteSeconds) -> Quote {
    let region = &answer.region;
    let reservation = &region.reservations[answer.reservation.ix()];
    let plan = &answer.plan;
    Quote {
        format: QuoteFormat::V1,
        reservation_id: reservation.id.clone(),
        change: answer.change,
        granted: grant(answer),
        capacity: reservation.capacity,
        guaranteed_today: answer.today,
        granted_rru: answer.granted,
        reservation: holding(&answer.audit, answer.reservation),
        msb_buffer: reservation.msb_buffer,
        survives: (reservation.survives.iter())
            .map(|of| region.partitions[of.ix()].name.clone().into())
            .collect(),
        cost: move_cost(region, plan, answer.reservation),
        sources: flows(region, &plan.moves),
        moves: plan.moves.iter().map(|of| moved(region, of)).collect(),
        arrival: None,
        refusal: answer.refusal.as_ref().map(|refusal| quote::Refusal {
            reason: refusal.shortfall.reason,
            sentence: refusal.shortfall.sentence.clone(),
            missing: refusal.shortfall.missing,
            hardware: refusal.shortfall.hardware.clone(),
            evidence: refusal.shortfall.evidence,
            held_by: refusal.shortfall.held_by.clone(),
            limits: refusal.limits.clone(),
            alternatives: (refusal.alternatives.iter()).map(|of| alternative(region, of)).collect(),
        }),
        primal: plan.primal,
        shortfall_cost: plan.shortfall_cost,
        dual_bound: plan.dual_bound,
        surely_missing_rru: plan.surely_missing,
        complete: plan.complete,
        audit_clean: answer.is_clean(),
        seconds,
    }
}

fn name(region: &RegionSnapshot, holder: Option<ReservationIx>) -> Option<ReservationName> {
    holder.map(|of| region.reservations[of.ix()].id.clone())
}

fn moved(region: &RegionSnapshot, of: &Move) -> QuotedMove {
    let server = &region.servers[of.server.ix()];
    QuotedMove {
        server_id: server.id.clone(),
        hardware_type: region.hardware_types[server.hardware_type.ix()].clone(),
        msb: region.msbs[region.msb_of(server).ix()].id.clone(),
        from: name(region, of.source),
        to: name(region, of.target),
        in_use: of.in_use,
    }
}

fn flows(region: &RegionSnapshot, moves: &[Move]) -> Vec<QuotedFlow> {
    let mut flows: BTreeMap<_, (usize, usize)> = BTreeMap::new();
    for of in moves {
        let (in_use, idle) = flows.entry((of.source, of.target)).or_default();
        *(if of.in_use { in_use } else { idle }) += 1;
    }
    let flow = |((source, target), (in_use, idle)): ((Option<ReservationIx>, _), _)| QuotedFlow {
        from: name(region, source),
        from_kind: HolderKind::from(source.map(|of| region.reservations[of.ix()].kind)),
        to: name(region, target),
        in_use,
        idle,
    };
    flows.into_iter().map(flow).collect()
}

fn holding(audit: &AuditReport, ix: ReservationIx) -> QuotedHolding {
    let row = &audit.reservations[ix.ix()];
    debug_assert_eq!(row.kind, ReservationKind::Guaranteed, "others are refused");
    QuotedHolding {
        servers: row.holding.servers,
        assigned: row.holding.assigned,
        largest_msb_id: row.holding.largest_msb_id.clone(),
        largest_msb: row.holding.largest_msb,
        guaranteed: row.holding.guaranteed,
        datacenters: row.datacenters.clone(),
    }
}

fn alternative(region: &RegionSnapshot, of: &Alternative) -> quote::Alternative {
    let (concession, sentence) = match of.concession {
        Concession::FewerRru(capacity) => {
            (quote::Concession::FewerRru, format!("requesting {} RRU", exact(capacity)))
        }
        Concession::OneMoreType(ty, value) => {
            let ty = &region.hardware_types[ty.ix()];
            let sentence = format!("accepting {ty} as well, at {} RRU a server", amount(value));
            (quote::Concession::OneMoreType, sentence)
        }
        Concession::LooserAffinity(theta) => {
            let sentence = format!("a tolerance of {theta:.2} for its datacenter shares");
            (quote::Concession::LooserAffinity, sentence)
        }
        Concession::OneMoreDatacenter(datacenter) => {
            let datacenter = &region.datacenters[datacenter.ix()].id;
            (
                quote::Concession::OneMoreDatacenter,
                format!("allowing datacenter {datacenter} as well"),
            )
        }
        Concession::LooserReplicaRule(rule) => {
            let sentence = format!("{} of its {} replicas in one MSB", rule.per_msb, rule.replicas);
            (quote::Concession::LooserReplicaRule, sentence)
        }
        Concession::WithoutBuffer => {
            (quote::Concession::NoBuffer, "without an embedded buffer".to_owned())
        }
    };
    quote::Alternative { concession, sentence, request: of.request.clone(), cost: of.cost }
}
