//! Checks that an earlier plan still holds on the current region.

use broker::NewPlan;
use fleet::audit::audit;
use fleet::{RegionSnapshot, ReservationIx, Targets};
use std::collections::HashMap;

/// The region with the changes applied, and each server's target.
pub(crate) struct Fitted {
    pub(crate) region: RegionSnapshot,
    pub(crate) targets: Targets,
}

/// Applies the changes and targets of a plan to a region. The plan holds if each change is still granted as
/// planned, no more servers in use are taken from any reservation, and the audit finds no reservation worse off.
pub(crate) fn fit(plan: &NewPlan, now: &RegionSnapshot) -> Result<Fitted, String> {
    let mut region = now.ahead_for_plans();
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
    let said: usize =
        plan.quotes.iter().flat_map(|quote| &quote.moves).filter(|of| of.in_use).count();
    if disturbed > said {
        return Err(format!("{disturbed} servers in use would have to move, and not {said}"));
    }
    let report = audit(&region, &targets);
    if let Some(violation) = report.violations.first() {
        return Err(violation.to_string());
    }
    for quote in &plan.quotes {
        let name = &quote.reservation_id;
        let row =
            report.reservation(name).ok_or_else(|| format!("reservation {name:?} is gone"))?;
        if row.capacity != quote.capacity {
            let (is, said) = (row.capacity, quote.capacity);
            return Err(format!("reservation {name:?} would be promised {is} RRU, and not {said}"));
        }
        if row.msb_buffer != quote.msb_buffer {
            return Err(format!(
                "reservation {name:?} would have another rule for the loss of an MSB"
            ));
        }
        // Whole servers are often worth more than requested; the surplus is not counted.
        let said = quote.granted_rru.min(quote.capacity);
        let has = row.holding.guaranteed;
        if has < said {
            return Err(format!("reservation {name:?} would have {has} RRU, and not {said}"));
        }
    }
    Ok(Fitted { region, targets })
}
