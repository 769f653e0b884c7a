//! Metrics of the supply of hardware.

use super::Page;
use crate::supply::{Place, RegionSupply};
use forecast::orders::Supply;
use forecast::orders::supply::QUANTILE;

/// How long servers last at the default quantile. Types and datacenters are named to callers that may read the region.
pub(super) fn write(page: &Page, of: &RegionSupply, named: bool) -> Result<(), prometheus::Error> {
    let all = of.by_urgency(QUANTILE);
    let states = Supply::WORDS.map(|word| {
        let count = all.iter().filter(|(_, lasts)| lasts.as_str() == word).count();
        ([word.to_owned()], count as f64)
    });
    page.gauges(
        "ras_supply",
        "hardware types by datacenter: runs_out (demand exceeds what is there within 28 days, Q70), lasts, out (none is free), unknown (too little history)",
        ["state"],
        states,
    )?;
    let name = |of: &Place| [of.hardware_type.clone(), of.datacenter.clone()];
    let shown = || all.iter().filter(|_| named);
    let rows = shown().filter_map(|(of, lasts)| Some((name(of), lasts.days()? as f64)));
    page.gauges(
        "ras_runs_out_days",
        "days until demand exceeds the servers of a hardware type in a datacenter (Q70), orders included from their day on; 0: none is free now",
        ["hardware_type", "datacenter"],
        rows,
    )?;
    page.gauges(
        "ras_servers_late",
        "servers of open orders whose day has passed, which ras_runs_out_days does not count",
        ["hardware_type", "datacenter"],
        shown().map(|(of, _)| (name(of), of.expected.late as f64)).filter(|(_, late)| *late > 0.0),
    )
}
