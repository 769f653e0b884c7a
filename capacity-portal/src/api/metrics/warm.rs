//! Metrics of warm capacity.

use super::Page;
use crate::warm_capacity::{CHANCE, PlaceUse, WarmCapacity};
use control::CachedRegion;
use control::failure_history::TypeDown;
use fleet::{HardwareTypeIx, Reservation, ReservationKind};

/// Shared buffers beside failures, and headroom for growth, at a chance of 1 %.
pub(super) fn write(
    page: &Page,
    of: &WarmCapacity,
    region: Option<&CachedRegion>,
) -> Result<(), prometheus::Error> {
    let name = |of: &TypeDown| [of.hardware_type.clone()];
    let types = &of.down.types;
    page.gauges(
        "ras_shared_buffer_recommended_servers",
        "fewest servers of a shared buffer that keep the chance that more are down at 1 %",
        ["hardware_type"],
        types.iter().map(|of| (name(of), of.down.quantile(1.0 - CHANCE) as f64)),
    )?;
    let wanted = |of: &TypeDown| {
        let region = &region?.snapshot;
        let at = region.hardware_types.iter().position(|name| **name == *of.hardware_type)?;
        // A buffer may have any name.
        let is_its = |buffer: &&Reservation| {
            buffer.kind == ReservationKind::SharedBuffer
                && buffer.value(HardwareTypeIx::new(at)).is_some()
        };
        let buffer = region.reservations.iter().find(is_its);
        Some(buffer.map_or(0.0, |buffer| buffer.capacity.to_f64()))
    };
    page.gauges(
        "ras_shared_buffer_short_chance",
        "chance that at an instant more servers of a hardware type are down than its shared buffer is to have",
        ["hardware_type"],
        types.iter().filter_map(|of| Some((name(of), of.down.chance_above(wanted(of)? as usize)))),
    )?;
    let place = |of: &PlaceUse| [of.hardware_type.clone(), of.datacenter.clone()];
    page.gauges(
        "ras_headroom_missing_servers",
        "servers that use may grow by within the next hour (chance 1 %) and that are neither idle nor free",
        ["hardware_type", "datacenter"],
        of.places.iter().filter_map(|of| Some((place(of), of.missing(CHANCE)? as f64))),
    )
}
