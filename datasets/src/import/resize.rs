//! Changes the requests of a region that is there already.

use super::error::ImportError;
use super::places::Known;
use super::requests::{Request, Requests, Terms, read_requests, resize};
use super::summary::ImportSummary;
use fleet::{
    DatacenterName, HardwareTypeName, Name, ReservationColumns, ReservationKind, ReservationName,
    ReservationRow, Rru, SnapshotParts,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Gives the guaranteed reservations of a region other requests, and tells what was assumed.
///
/// `requests` is a whole list, as for [`super::import_csv`]: a reservation that it does not name
/// is asked for no longer (capacity zero, so that what it holds is freed). `changes` names a file
/// and the day: each reservation it names has the size of its latest row up to that day; one that
/// has none yet is left as it is. New reservations are added.
///
/// Priority, limits of spread and the like of reservations that are there stay as they are, unless
/// `requests` has a column for them.
///
/// # Errors
/// Everything that is not understood in the first file of which anything is, with line and field; `parts`
/// is unchanged then.
pub fn change_requests(
    parts: &mut SnapshotParts,
    requests: Option<&Path>,
    changes: Option<(&Path, u32)>,
) -> Result<Vec<String>, ImportError> {
    let known = Known {
        hardware_types: &parts.servers.iter().map(|row| row.hardware_type.clone()).collect(),
        datacenters: &parts.servers.iter().map(|row| row.datacenter.clone()).collect(),
        taken: (parts.reservations.iter().filter(|row| !is_guaranteed(&row.kind)))
            .map(|row| row.reservation_id.clone())
            .collect(),
        partitions: &parts.crossing.partitions,
    };
    let mut summary = ImportSummary::default();
    let mut wanted = match requests {
        None => described(parts),
        Some(file) => read_requests(file, 1.0, &known, &mut summary)?,
    };
    if let Some((file, day)) = changes {
        wanted = resize(file, day, 1.0, wanted, &known, &mut summary)?;
    }
    // Columns that the file has are taken, others stay as they are.
    let known = requests.and(summary.coverage.reservations);
    replace(parts, wanted, known, &mut summary);
    Ok(summary.notes)
}

fn is_guaranteed(kind: &Name) -> bool {
    **kind == *ReservationKind::Guaranteed.as_str()
}

/// The guaranteed reservations of a region as requests.
fn described(parts: &SnapshotParts) -> Vec<Request> {
    let mut values: BTreeMap<&ReservationName, Vec<(HardwareTypeName, f64)>> = BTreeMap::new();
    for row in &parts.rru {
        let pair = (row.hardware_type.clone(), row.rru);
        values.entry(&row.reservation_id).or_default().push(pair);
    }
    let mut affinity: BTreeMap<&ReservationName, Vec<(DatacenterName, f64)>> = BTreeMap::new();
    for row in &parts.affinity {
        let pair = (row.datacenter.clone(), row.share);
        affinity.entry(&row.reservation_id).or_default().push(pair);
    }
    let guaranteed = parts.reservations.iter().filter(|row| is_guaranteed(&row.kind));
    guaranteed
        .map(|row| Request {
            name: row.reservation_id.clone(),
            // Rows of a snapshot have amounts within bounds.
            capacity: Rru::from_f64(row.capacity_rru).unwrap_or_default(),
            values: values.remove(&row.reservation_id).unwrap_or_default(),
            msb_buffer: row.msb_buffer,
            affinity: affinity.remove(&row.reservation_id).unwrap_or_default(),
            terms: Terms::default(),
            // What the region says stays.
            allowed: None,
            replicas: None,
            survives: None,
        })
        .collect()
}

/// Puts requests in place of those there are. `known`: the columns of a whole list; what that does not
/// name is asked for no longer.
fn replace(
    parts: &mut SnapshotParts,
    wanted: Vec<Request>,
    known: Option<ReservationColumns>,
    summary: &mut ImportSummary,
) {
    let mut rows = Requests::default();
    let says = |of: &dyn Fn(&Request) -> bool| -> BTreeSet<ReservationName> {
        wanted.iter().filter(|request| of(request)).map(|request| request.name.clone()).collect()
    };
    let (placed, ruled) = (says(&|of| of.allowed.is_some()), says(&|of| of.replicas.is_some()));
    let surviving = says(&|of| of.survives.is_some());
    parts.allowed_datacenters.retain(|row| !placed.contains(&row.reservation_id));
    parts.crossing.survives.retain(|row| !surviving.contains(&row.reservation_id));
    wanted.into_iter().for_each(|request| rows.push(request));
    let named: BTreeSet<ReservationName> =
        rows.reservations.iter().map(|row| row.reservation_id.clone()).collect();
    parts.rru.retain(|row| !named.contains(&row.reservation_id));
    parts.affinity.retain(|row| !named.contains(&row.reservation_id));
    parts.rru.append(&mut rows.rru);
    parts.affinity.append(&mut rows.affinity);
    parts.allowed_datacenters.append(&mut rows.allowed_datacenters);
    parts.crossing.survives.append(&mut rows.survives);
    let mut fresh: BTreeMap<ReservationName, _> =
        rows.reservations.into_iter().map(|row| (row.reservation_id.clone(), row)).collect();
    let mut dropped: Vec<&str> = Vec::new();
    for row in parts.reservations.iter_mut().filter(|row| is_guaranteed(&row.kind)) {
        if let Some(request) = fresh.remove(&row.reservation_id) {
            row.capacity_rru = request.capacity_rru;
            row.msb_buffer = request.msb_buffer;
            if ruled.contains(&row.reservation_id) {
                row.replicas = request.replicas;
                row.replicas_per_msb = request.replicas_per_msb;
            }
            if let Some(known) = known {
                take_terms(row, request, known);
            }
        } else if known.is_some() && row.capacity_rru > 0.0 {
            row.capacity_rru = 0.0;
            dropped.push(&row.reservation_id);
        }
    }
    if !dropped.is_empty() {
        summary.note(format!("not requested any longer, capacity zero: {}", dropped.join(", ")));
    }
    if !fresh.is_empty() {
        let names: Vec<&str> = fresh.keys().map(AsRef::as_ref).collect();
        summary.note(format!("new reservations: {}", names.join(", ")));
    }
    parts.reservations.extend(fresh.into_values());
}

/// What a file has a column for.
fn take_terms(row: &mut ReservationRow, request: ReservationRow, known: ReservationColumns) {
    if known.owner {
        row.owner = request.owner;
    }
    if known.priority {
        row.priority = request.priority;
    }
    if known.msb_alpha {
        row.msb_alpha = request.msb_alpha;
    }
    if known.rack_alpha {
        row.rack_alpha = request.rack_alpha;
    }
    if known.affinity_theta {
        row.affinity_theta = request.affinity_theta;
    }
    if known.host_profile {
        row.host_profile = request.host_profile;
    }
}
