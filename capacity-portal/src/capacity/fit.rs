//! Whether a plan made earlier still does what it said, on the region as it is now.

use broker::NewPlan;
use fleet::audit::audit;
use fleet::{RegionSnapshot, ReservationIx, Rru, Targets};
use serde_json::Value;
use std::collections::HashMap;

/// The region with the changes in it, and who should hold each server.
pub(super) struct Fitted {
    pub(super) region: RegionSnapshot,
    pub(super) targets: Targets,
}

/// Puts the changes and the targets of a plan on a region. It fits if each change is still granted what
/// was said, no more servers in use are taken from anybody, and the audit finds nobody worse off.
pub(super) fn fit(plan: &NewPlan, now: &RegionSnapshot) -> Result<Fitted, String> {
    let mut region = now.clone();
    for asking in plan.changes.iter().filter(|asking| !asking.keeps_the_promise()) {
        let (next, _) = asking.change.apply(&region).map_err(|error| error.to_string())?;
        region = next;
    }
    let servers: HashMap<&str, usize> =
        region.servers.iter().enumerate().map(|(at, server)| (&*server.id, at)).collect();
    let mut holders: Vec<Option<ReservationIx>> = Targets::unchanged(&region).holders().to_vec();
    for (server, to) in &plan.targets {
        let at = servers.get(&**server).ok_or_else(|| format!("server {server:?} is gone"))?;
        holders[*at] = match to {
            None => None,
            Some(to) => {
                let gone = || format!("reservation {to:?} is gone");
                Some(region.reservation(to).ok_or_else(gone)?)
            }
        };
    }
    let targets = Targets::new(&region, holders);
    let disturbed = targets.diff(&region).filter(|change| change.in_use).count();
    let said: usize = plan.answers.iter().map(in_use).sum();
    if disturbed > said {
        return Err(format!("{disturbed} servers in use would have to move, and not {said}"));
    }
    let report = audit(&region, &targets);
    if let Some(violation) = report.violations.first() {
        return Err(violation.to_string());
    }
    for (asking, answer) in plan.changes.iter().zip(&plan.answers) {
        let amount = |member: &str| answer[member].as_f64().and_then(Rru::from_f64);
        let (granted, asked) = (amount("granted_rru"), amount("capacity_rru"));
        // Whole servers are often worth more than was asked, which nobody counts on.
        let said = granted.unwrap_or_default().min(asked.unwrap_or_default());
        let row = report.reservation(asking.reservation());
        let has = row.map(|row| row.holding.guaranteed).unwrap_or_default();
        if has < said {
            let name = asking.reservation();
            return Err(format!("reservation {name:?} would have {has} RRU, and not {said}"));
        }
    }
    Ok(Fitted { region, targets })
}

/// Servers in use that an answer moves.
fn in_use(answer: &Value) -> usize {
    let moves = answer["moves"].as_array().map_or(&[][..], Vec::as_slice);
    moves.iter().filter(|of| of["in_use"] == true).count()
}
