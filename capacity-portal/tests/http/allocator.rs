//! A planner for tests: gives what is free, one server at a time, to where there is least.
//!
//! It plans honestly: who has what comes from the snapshot, and the audit says what is granted. It
//! takes no server from a reservation, so it refuses what a solver would grant.

use control::{PlanDeadline, PlanRefused, Planned, Planner};
use fleet::audit::audit;
use fleet::explain::{Explainer, Limit, LimitName, ShortfallReason};
use fleet::quote::{
    Alternative, Concession, Grant, MoveCost, Quote, QuoteFormat, QuoteSeconds, QuotedHolding,
    QuotedMove, Refusal,
};
use fleet::{
    CapacityRequest, RegionSnapshot, RequestChange, RequestsError, ReservationIx, Rru, Targets,
};
use std::collections::HashMap;

#[derive(Debug)]
pub struct Allocator;

impl Planner for Allocator {
    fn plan(
        &self,
        region: &RegionSnapshot,
        requests: &[CapacityRequest],
        _: PlanDeadline,
        _must_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Planned, PlanRefused> {
        let mut after = region.clone();
        for (number, request) in requests.iter().enumerate() {
            let refused = |source| RequestsError::Request { number, source };
            after = request.apply(&after).map_err(refused)?.0;
        }
        let mut holders = Targets::unchanged(&after).holders().to_vec();
        for request in requests {
            let ix = after.reservation(&request.reservation_id).expect("it was put there");
            if request.remove {
                let own = after.servers.iter().zip(&mut holders);
                own.filter(|(server, holder)| server.available && **holder == Some(ix))
                    .for_each(|(_, holder)| *holder = None);
            } else {
                grow(&after, ix, &mut holders);
            }
        }
        let targets = Targets::new(&after, holders);
        let report = audit(&after, &targets);
        let quotes = requests.iter().map(|request| quote(region, &after, &targets, request));
        Ok(Planned {
            quotes: quotes.collect(),
            audit_clean: report.is_clean(),
            region: after,
            after: targets,
            complete: true,
            seconds: 0.0,
        })
    }

    fn keeps_policies(&self, _: &RegionSnapshot, _: &Targets) -> Result<(), String> {
        Ok(())
    }
}

fn quote(
    before: &RegionSnapshot,
    after: &RegionSnapshot,
    targets: &Targets,
    request: &CapacityRequest,
) -> Quote {
    let report = audit(after, targets);
    let row = report.reservation(&request.reservation_id).expect("it is there");
    let granted = match row.holding.guaranteed {
        _ if row.holding.shortfall == Rru::ZERO => Grant::InFull,
        Rru::ZERO => Grant::Nothing,
        _ => Grant::InPart,
    };
    let ix = after.reservation(&request.reservation_id);
    let name = |of: Option<ReservationIx>| of.map(|of| after.reservations[of.ix()].id.clone());
    let moves: Vec<QuotedMove> = (targets.diff(after))
        .filter(|of| of.target == ix || of.source == ix)
        .map(|of| {
            let server = &after.servers[of.server.ix()];
            QuotedMove {
                server_id: server.id.clone(),
                hardware_type: after.hardware_types[server.hardware_type.ix()].clone(),
                msb: after.msbs[after.msb_of(server).ix()].id.clone(),
                from: name(of.source),
                to: name(of.target),
                in_use: of.in_use,
            }
        })
        .collect();
    let explained = Explainer::new(after, targets).shortfall_of(ix.expect("it is there"));
    let refusal = (granted != Grant::InFull).then(|| {
        let shortfall = explained.expect("it is short");
        Refusal {
            reason: ShortfallReason::InsufficientHardware,
            sentence: "too little is free".to_owned(),
            missing: row.holding.shortfall,
            hardware: shortfall.hardware,
            evidence: shortfall.evidence,
            held_by: shortfall.held_by,
            limits: vec![Limit {
                limit: LimitName::Region,
                without: row.capacity,
                sentence: "there is no more".to_owned(),
            }],
            alternatives: vec![Alternative {
                concession: Concession::FewerRru,
                sentence: "asking for less".to_owned(),
                request: CapacityRequest {
                    capacity_rru: Some(row.holding.guaranteed.to_f64()),
                    ..request.clone()
                },
                cost: MoveCost::default(),
            }],
        }
    });
    let there = before.reservation(&request.reservation_id).is_some();
    Quote {
        format: QuoteFormat::V1,
        reservation_id: request.reservation_id.clone(),
        change: match there {
            _ if request.remove => RequestChange::Removed,
            true => RequestChange::Changed,
            false => RequestChange::New,
        },
        granted,
        capacity: row.capacity,
        guaranteed_today: row.initial.guaranteed,
        granted_rru: row.holding.guaranteed,
        reservation: QuotedHolding {
            servers: row.holding.servers,
            assigned: row.holding.assigned,
            largest_msb_id: row.holding.largest_msb_id.clone(),
            largest_msb: row.holding.largest_msb,
            guaranteed: row.holding.guaranteed,
            datacenters: row.datacenters.clone(),
        },
        msb_buffer: ix.is_some_and(|ix| after.reservations[ix.ix()].msb_buffer),
        survives: (ix.iter().flat_map(|ix| &after.reservations[ix.ix()].survives))
            .map(|of| after.partitions[of.ix()].name.clone().into())
            .collect(),
        cost: MoveCost { acquired: moves.len(), ..MoveCost::default() },
        sources: Vec::new(),
        moves,
        arrival: None,
        refusal,
        primal: 0.0,
        shortfall_cost: 0.0,
        dual_bound: 0.0,
        surely_missing_rru: 0.0,
        complete: true,
        audit_clean: report.is_clean(),
        seconds: QuoteSeconds::default(),
    }
}

/// Takes free servers until the audit finds it served, or no free server is left.
fn grow(region: &RegionSnapshot, ix: ReservationIx, holders: &mut [Option<ReservationIx>]) {
    loop {
        let targets = Targets::new(region, holders.to_vec());
        let report = audit(region, &targets);
        let row = report.reservation(&region.reservations[ix.ix()].id).expect("it is there");
        if row.holding.shortfall == Rru::ZERO {
            return;
        }
        let mut held: HashMap<u32, usize> = HashMap::new();
        for (server, holder) in region.servers.iter().zip(holders.iter()) {
            if *holder == Some(ix) {
                *held.entry(region.msb_of(server).0).or_default() += 1;
            }
        }
        let value = |ty| region.reservations[ix.ix()].value(ty);
        let free = region.servers.iter().enumerate().filter(|(at, server)| {
            holders[*at].is_none() && server.available && value(server.hardware_type).is_some()
        });
        let next = free.min_by_key(|(at, server)| {
            (held.get(&region.msb_of(server).0).copied().unwrap_or_default(), *at)
        });
        let Some((at, _)) = next else { return };
        holders[at] = Some(ix);
    }
}
