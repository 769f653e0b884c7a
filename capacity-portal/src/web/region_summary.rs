//! The region counted for pages: servers by rack, MSB and hardware type, with the audit of the current assignment.

use control::HeldRegion;
use fleet::audit::{AuditReport, Certified, audit};
use fleet::{
    DatacenterIx, HardwareTypeIx, MsbIx, RackIx, RegionSnapshot, ReservationKind, Rru, Targets,
};
use std::sync::Arc;

/// Servers of a rack, an MSB or a hardware type by use. Each server counts once, and again in `moving`
/// and `lent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ServerCounts {
    /// Held by a reservation, with running containers.
    pub(super) in_use: usize,
    /// Held by a reservation, without containers.
    pub(super) idle: usize,
    /// Held by a shared buffer, lent or not.
    pub(super) shared: usize,
    /// Held by no reservation.
    pub(super) free: usize,
    /// Unavailable, held or not.
    pub(super) down: usize,
    /// Servers with an open move, also counted above.
    pub(super) moving: usize,
    /// Servers lent to elastic reservations, also counted above.
    pub(super) lent: usize,
}

impl ServerCounts {
    pub(super) fn total(&self) -> usize {
        self.in_use + self.idle + self.shared + self.free + self.down
    }

    /// Each use: class of the style sheet, label, count.
    pub(super) fn by_use(&self) -> [(&'static str, &'static str, usize); 5] {
        [
            ("in-use", "in use", self.in_use),
            ("idle", "held, idle", self.idle),
            ("shared", "shared buffer", self.shared),
            ("free", "free", self.free),
            ("down", "unavailable", self.down),
        ]
    }

    /// Classes and counts for [`super::ui::bar`].
    pub(super) fn bar(&self) -> [(&'static str, f64); 5] {
        self.by_use().map(|(class, _, count)| (class, count as f64))
    }

    fn add(&mut self, other: &ServerCounts) {
        self.in_use += other.in_use;
        self.idle += other.idle;
        self.shared += other.shared;
        self.free += other.free;
        self.down += other.down;
        self.moving += other.moving;
        self.lent += other.lent;
    }
}

/// A region with its counts, shared by all pages.
#[derive(Debug)]
pub(crate) struct RegionSummary {
    pub(super) held: Arc<HeldRegion>,
    /// Audit of the current assignment: every server stays with its holder.
    pub(super) audit: AuditReport,
    /// Servers of each rack.
    pub(super) racks: Vec<ServerCounts>,
    /// Servers of each MSB.
    pub(super) msbs: Vec<ServerCounts>,
    /// Servers of each hardware type.
    pub(super) types: Vec<ServerCounts>,
    /// Servers of the region.
    pub(super) all: ServerCounts,
    /// MSBs of each datacenter, in order of name.
    pub(super) by_datacenter: Vec<Vec<MsbIx>>,
    /// Racks of each MSB, in order of name.
    pub(super) by_msb: Vec<Vec<RackIx>>,
}

impl RegionSummary {
    /// Counts and audits a region. Takes as long as an audit: not for an async thread.
    pub(super) fn of(held: Arc<HeldRegion>) -> RegionSummary {
        let region = &held.snapshot;
        let mut racks = vec![ServerCounts::default(); region.racks.len()];
        let mut types = vec![ServerCounts::default(); region.hardware_types.len()];
        for server in &region.servers {
            let holder = server.holder().map(|holder| region.reservations[holder.ix()].kind);
            for counts in [&mut racks[server.rack.ix()], &mut types[server.hardware_type.ix()]] {
                counts.moving += usize::from(server.pending.is_some());
                counts.lent += usize::from(server.loaned_to.is_some());
                let count = match holder {
                    _ if !server.available => &mut counts.down,
                    None => &mut counts.free,
                    Some(ReservationKind::SharedBuffer) => &mut counts.shared,
                    Some(_) if server.in_use => &mut counts.in_use,
                    Some(_) => &mut counts.idle,
                };
                *count += 1;
            }
        }
        let mut by_msb = vec![Vec::new(); region.msbs.len()];
        let mut msbs = vec![ServerCounts::default(); region.msbs.len()];
        for (position, rack) in region.racks.iter().enumerate() {
            by_msb[rack.msb.ix()].push(RackIx::new(position));
            msbs[rack.msb.ix()].add(&racks[position]);
        }
        let mut by_datacenter = vec![Vec::new(); region.datacenters.len()];
        let mut all = ServerCounts::default();
        for (position, msb) in region.msbs.iter().enumerate() {
            by_datacenter[msb.datacenter.ix()].push(MsbIx::new(position));
            all.add(&msbs[position]);
        }
        let audit = audit(region, &Targets::unchanged(region));
        RegionSummary { audit, racks, msbs, types, all, by_datacenter, by_msb, held }
    }

    /// The region.
    pub(super) fn region(&self) -> &RegionSnapshot {
        &self.held.snapshot
    }

    /// Servers of a datacenter.
    pub(super) fn datacenter(&self, datacenter: DatacenterIx) -> ServerCounts {
        let mut counts = ServerCounts::default();
        for msb in &self.by_datacenter[datacenter.ix()] {
            counts.add(&self.msbs[msb.ix()]);
        }
        counts
    }

    /// Guaranteed reservations whose promise the certificate finds broken.
    pub(super) fn broken(&self) -> Vec<&Certified> {
        self.held.certificate.broken().collect()
    }

    /// Reservations with an embedded buffer that own servers in an MSB and would have less than promised
    /// without it. A reservation without servers there does not lose anything, however short it is.
    pub(super) fn broken_without(&self, msb: MsbIx) -> Vec<&Certified> {
        let broken = |row: &&Certified| row.by_msb[msb.ix()] > Rru::ZERO && !row.survives(msb);
        self.held.certificate.rows.iter().filter(broken).collect()
    }

    /// Requested and current size of the shared buffer of a hardware type, in servers.
    pub(super) fn shared_buffer(&self, ty: HardwareTypeIx) -> Option<(Rru, Rru)> {
        let is = |r: &&fleet::Reservation| {
            r.kind == ReservationKind::SharedBuffer && r.value(ty).is_some()
        };
        let mut found = self.region().reservations.iter().zip(&self.audit.reservations);
        let (of, row) = found.find(|(r, _)| is(r))?;
        Some((of.capacity, row.holding.assigned))
    }
}
