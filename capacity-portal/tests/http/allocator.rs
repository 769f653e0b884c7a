//! A planner for tests: gives what is free, one server at a time, to where there is least.
//!
//! It plans honestly: who has what comes from the snapshot, and the audit says what is granted. It
//! takes nothing from anybody, so it refuses what a solver would grant.

use capacity_portal::{Grant, Granted, PlanRefused, Planned, Planner};
use fleet::audit::audit;
use fleet::{CapacityRequest, RegionSnapshot, ReservationIx, Rru, Targets};
use serde_json::{Value, json};
use std::collections::HashMap;

#[derive(Debug)]
pub struct Allocator;

impl Planner for Allocator {
    fn plan(
        &self,
        region: &RegionSnapshot,
        requests: &[CapacityRequest],
        _must_stop: &(dyn Fn() -> bool + Sync),
    ) -> Result<Planned, PlanRefused> {
        let mut after = region.clone();
        for (number, request) in requests.iter().enumerate() {
            let refused = |source| PlanRefused::Request { number, source };
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
        let (mut answers, mut granted) = (Vec::new(), Vec::new());
        for request in requests {
            let row = report.reservation(&request.reservation_id).expect("it is there");
            let grant = match row.holding.guaranteed {
                _ if row.holding.shortfall == Rru::ZERO => Grant::InFull,
                Rru::ZERO => Grant::Nothing,
                _ => Grant::InPart,
            };
            let rru = row.holding.guaranteed;
            granted.push(Granted { grant, rru });
            let ix = after.reservation(&request.reservation_id);
            let moves: Vec<Value> = (targets.diff(&after))
                .filter(|of| of.target == ix || of.source == ix)
                .map(|of| json!({ "server_id": after.servers[of.server.ix()].id, "in_use": of.in_use }))
                .collect();
            let mut fewer = request.clone();
            fewer.capacity_rru = Some(rru.to_f64());
            let refusal = (grant != Grant::InFull).then(|| {
                json!({
                    "reason": "insufficient_hardware", "sentence": "too little is free",
                    "missing_rru": row.holding.shortfall.to_f64(),
                    "limits": [{
                        "limit": "region", "without_rru": row.capacity.to_f64(),
                        "sentence": "there is no more",
                    }],
                    "alternatives": [{ "concession": "fewer_rru", "request": fewer }],
                })
            });
            answers.push(json!({
                "format": "ras-plan/1", "granted": grant.as_str(), "granted_rru": rru.to_f64(),
                "capacity_rru": row.capacity.to_f64(), "moves": moves, "refusal": refusal,
            }));
        }
        Ok(Planned {
            answers,
            granted,
            audit_clean: report.is_clean(),
            region: after,
            after: targets,
            complete: true,
            seconds: 0.0,
        })
    }
}

/// Takes free servers until the audit finds it served, or there are none.
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
