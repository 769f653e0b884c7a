//! A region counted for pages: what stands in every rack, and what the audit says of today.

use control::HeldRegion;
use fleet::audit::{AuditReport, Certified, audit};
use fleet::{
    DatacenterIx, HardwareTypeIx, MsbIx, RackIx, RegionSnapshot, ReservationKind, Rru, Targets,
};
use std::sync::Arc;

/// Servers of some place or kind, each in one part; those on the move are counted beside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Parts {
    /// Held by a reservation, with containers.
    pub(super) in_use: usize,
    /// Held by a reservation, without.
    pub(super) idle: usize,
    /// Held by a shared buffer, lent or not.
    pub(super) shared: usize,
    /// Held by nobody.
    pub(super) free: usize,
    /// Unavailable, whoever holds them.
    pub(super) down: usize,
    /// Of all of these, those on the move.
    pub(super) moving: usize,
    /// Of all of these, those lent to elastic reservations.
    pub(super) lent: usize,
}

impl Parts {
    pub(super) fn total(&self) -> usize {
        self.in_use + self.idle + self.shared + self.free + self.down
    }

    /// Each part: class of the style sheet, words, count.
    pub(super) fn each(&self) -> [(&'static str, &'static str, usize); 5] {
        [
            ("in-use", "in use", self.in_use),
            ("idle", "held, idle", self.idle),
            ("shared", "shared buffer", self.shared),
            ("free", "free", self.free),
            ("down", "unavailable", self.down),
        ]
    }

    /// The same for a bar.
    pub(super) fn bar(&self) -> [(&'static str, f64); 5] {
        self.each().map(|(class, _, count)| (class, count as f64))
    }

    fn add(&mut self, other: &Parts) {
        self.in_use += other.in_use;
        self.idle += other.idle;
        self.shared += other.shared;
        self.free += other.free;
        self.down += other.down;
        self.moving += other.moving;
        self.lent += other.lent;
    }
}

/// A region and what is counted of it, once for all who look.
#[derive(Debug)]
pub(crate) struct Picture {
    pub(super) held: Arc<HeldRegion>,
    /// As things stand: every server with its holder.
    pub(super) audit: AuditReport,
    /// By rack.
    pub(super) racks: Vec<Parts>,
    /// By MSB.
    pub(super) msbs: Vec<Parts>,
    /// By hardware type.
    pub(super) types: Vec<Parts>,
    pub(super) all: Parts,
    /// MSBs of each datacenter, in order of name.
    pub(super) by_datacenter: Vec<Vec<MsbIx>>,
    /// Racks of each MSB, in order of name.
    pub(super) by_msb: Vec<Vec<RackIx>>,
}

impl Picture {
    /// Counts. Takes as long as an audit: not on a thread that answers.
    pub(super) fn of(held: Arc<HeldRegion>) -> Picture {
        let region = &held.snapshot;
        let mut racks = vec![Parts::default(); region.racks.len()];
        let mut types = vec![Parts::default(); region.hardware_types.len()];
        for server in &region.servers {
            let holder = server.holder().map(|holder| region.reservations[holder.ix()].kind);
            for parts in [&mut racks[server.rack.ix()], &mut types[server.hardware_type.ix()]] {
                parts.moving += usize::from(server.pending.is_some());
                parts.lent += usize::from(server.loaned_to.is_some());
                let part = match holder {
                    _ if !server.available => &mut parts.down,
                    None => &mut parts.free,
                    Some(ReservationKind::SharedBuffer) => &mut parts.shared,
                    Some(_) if server.in_use => &mut parts.in_use,
                    Some(_) => &mut parts.idle,
                };
                *part += 1;
            }
        }
        let mut by_msb = vec![Vec::new(); region.msbs.len()];
        let mut msbs = vec![Parts::default(); region.msbs.len()];
        for (position, rack) in region.racks.iter().enumerate() {
            by_msb[rack.msb.ix()].push(RackIx::new(position));
            msbs[rack.msb.ix()].add(&racks[position]);
        }
        let mut by_datacenter = vec![Vec::new(); region.datacenters.len()];
        let mut all = Parts::default();
        for (position, msb) in region.msbs.iter().enumerate() {
            by_datacenter[msb.datacenter.ix()].push(MsbIx::new(position));
            all.add(&msbs[position]);
        }
        let audit = audit(region, &Targets::unchanged(region));
        Picture { audit, racks, msbs, types, all, by_datacenter, by_msb, held }
    }

    /// The region that was counted.
    pub(super) fn region(&self) -> &RegionSnapshot {
        &self.held.snapshot
    }

    /// Servers of a datacenter.
    pub(super) fn datacenter(&self, datacenter: DatacenterIx) -> Parts {
        let mut parts = Parts::default();
        for msb in &self.by_datacenter[datacenter.ix()] {
            parts.add(&self.msbs[msb.ix()]);
        }
        parts
    }

    /// Guaranteed reservations whose promise does not hold now, by the certificate.
    pub(super) fn broken(&self) -> Vec<&Certified> {
        self.held.certificate.broken().collect()
    }

    /// Reservations with an embedded buffer that own something in an MSB and would have less than promised
    /// without it. One that has nothing there is not the worse for its loss, however short it is.
    pub(super) fn broken_without(&self, msb: MsbIx) -> Vec<&Certified> {
        let broken = |row: &&Certified| row.by_msb[msb.ix()] > Rru::ZERO && !row.survives(msb);
        self.held.certificate.rows.iter().filter(broken).collect()
    }

    /// What a shared buffer of a hardware type should be and is: servers.
    pub(super) fn shared_buffer(&self, ty: HardwareTypeIx) -> Option<(Rru, Rru)> {
        let is = |r: &&fleet::Reservation| {
            r.kind == ReservationKind::SharedBuffer && r.value(ty).is_some()
        };
        let mut found = self.region().reservations.iter().zip(&self.audit.reservations);
        let (of, row) = found.find(|(r, _)| is(r))?;
        Some((of.capacity, row.holding.assigned))
    }
}
