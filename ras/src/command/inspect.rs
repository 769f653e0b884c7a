//! `ras snapshot inspect`

use crate::cli::Inspect;
use crate::context::Context;
use crate::exit::Verdict;
#[cfg(feature = "summaries")]
use crate::layout::Table;
use crate::number::{amount, count};
use crate::results::read_snapshot;
use anyhow::Result;
use fleet::{RegionSnapshot, ReservationKind, Rru};
use serde_json::{Value, json};

pub(super) fn run(options: &Inspect, context: &Context) -> Result<Verdict> {
    let snapshot = read_snapshot(&options.snapshot)?;
    let facts = Facts::count(&snapshot);
    let tables = tables(&snapshot)?;
    context.answer(|| facts.text(&snapshot) + &tables, &facts.json(&snapshot))?;
    Ok(Verdict::Fine)
}

/// Servers by type and requests by size.
#[cfg(feature = "summaries")]
fn tables(snapshot: &RegionSnapshot) -> Result<String> {
    use datasets::summary::{requests_by_size, servers_by_type};
    let mut types = Table::new(
        &["hardware type", "servers", "available", "held", "in use", "MSBs", "in the largest"],
        1..7,
    );
    for row in servers_by_type(snapshot)? {
        let counts = [row.servers, row.available, row.held, row.in_use, row.msbs, row.largest_msb];
        let counts = counts.into_iter().map(count);
        types.add_row(std::iter::once(row.hardware_type.to_string()).chain(counts));
    }
    let mut sizes = Table::new(&["size in RRU", "reservations", "asked", "types"], 1..4);
    for row in requests_by_size(snapshot)? {
        sizes.add_row([
            format!("{} to {}", row.at_least, row.below),
            count(row.reservations),
            amount(row.requested),
            format!("{:.1}", row.eligible_types),
        ]);
    }
    Ok(format!("\n{types}\n\n{sizes}\n"))
}

/// No tables: built without Polars.
#[cfg(not(feature = "summaries"))]
fn tables(_snapshot: &RegionSnapshot) -> Result<String> {
    Ok("\nno tables by hardware type and size: built without the feature `summaries`\n".to_owned())
}

/// The contents, counted in one pass.
#[derive(Default)]
struct Facts {
    available: usize,
    held: usize,
    in_use: usize,
    on_the_move: usize,
    lent: usize,
    active_events: usize,
    guaranteed: usize,
    with_buffer: usize,
    with_affinity: usize,
    elastic: usize,
    asked: Rru,
}

impl Facts {
    fn count(snapshot: &RegionSnapshot) -> Facts {
        let mut facts = Facts::default();
        for server in &snapshot.servers {
            facts.available += usize::from(server.available);
            facts.held += usize::from(server.holder().is_some());
            facts.in_use += usize::from(server.in_use);
            facts.on_the_move += usize::from(server.pending.is_some());
            facts.lent += usize::from(server.loaned_to.is_some());
        }
        for reservation in &snapshot.reservations {
            match reservation.kind {
                ReservationKind::Guaranteed => {
                    facts.guaranteed += 1;
                    facts.with_buffer += usize::from(reservation.msb_buffer);
                    facts.with_affinity += usize::from(!reservation.affinity.is_empty());
                    facts.asked += reservation.capacity;
                }
                ReservationKind::Elastic => facts.elastic += 1,
                ReservationKind::SharedBuffer => {}
            }
        }
        let at = snapshot.taken_at;
        facts.active_events = snapshot.unavailability.iter().filter(|e| e.is_active(at)).count();
        facts
    }

    fn text(&self, snapshot: &RegionSnapshot) -> String {
        let line = |name: &str, text: String| format!("{name:<14}{text}\n");
        let shared = snapshot.reservations.len() - self.guaranteed - self.elastic;
        [
            line("region", snapshot.region.to_string()),
            line("taken at", snapshot.taken_at.to_rfc3339()),
            line(
                "servers",
                format!(
                    "{} of {} hardware types in {} racks, {} MSBs, {} datacenters",
                    count(snapshot.servers.len()),
                    snapshot.hardware_types.len(),
                    count(snapshot.racks.len()),
                    snapshot.msbs.len(),
                    snapshot.datacenters.len()
                ),
            ),
            line(
                "state",
                format!(
                    "{} available, {} held, {} in use, {} on the move, {} lent",
                    count(self.available),
                    count(self.held),
                    count(self.in_use),
                    count(self.on_the_move),
                    count(self.lent)
                ),
            ),
            line(
                "reservations",
                format!(
                    "{} guaranteed ({} with an embedded buffer, {} with affinity), {shared} \
                     shared buffers, {} elastic",
                    self.guaranteed, self.with_buffer, self.with_affinity, self.elastic
                ),
            ),
            line("asked", format!("{} RRU", amount(self.asked))),
            line(
                "events",
                format!("{}, {} active", snapshot.unavailability.len(), self.active_events),
            ),
        ]
        .concat()
    }

    fn json(&self, snapshot: &RegionSnapshot) -> Value {
        json!({
            "region": snapshot.region,
            "taken_at": snapshot.taken_at,
            "weights": snapshot.weights,
            "shared_buffer_fraction": snapshot.shared_buffer_fraction,
            "datacenters": snapshot.datacenters.len(),
            "msbs": snapshot.msbs.len(),
            "racks": snapshot.racks.len(),
            "hardware_types": snapshot.hardware_types.len(),
            "servers": {
                "total": snapshot.servers.len(),
                "available": self.available,
                "held": self.held,
                "in_use": self.in_use,
                "on_the_move": self.on_the_move,
                "lent": self.lent,
            },
            "reservations": {
                "guaranteed": self.guaranteed,
                "with_buffer": self.with_buffer,
                "with_affinity": self.with_affinity,
                "elastic": self.elastic,
                "asked_rru": self.asked.to_f64(),
            },
            "events": {
                "total": snapshot.unavailability.len(),
                "active": self.active_events,
            },
        })
    }
}
