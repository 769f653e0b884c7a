//! The region counted for pages: servers by rack, MSB and hardware type, with the audit of the current assignment.

use crate::http::problem::Problem;
use control::{CachedRegion, RegionCache, RegionError};
use fleet::audit::{AuditReport, Certified, Figures, ReservationAudit, audit};
use fleet::{
    DatacenterIx, HardwareTypeIx, MsbIx, RackIx, RegionSnapshot, ReservationKind, Rru, Server,
    Targets,
};
use std::error::Error;
use std::sync::Arc;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;

/// Servers of a rack, an MSB or a hardware type by use. Each server counts once, and again in `moving`
/// and `lent`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServerCounts {
    /// Held by a reservation, with running containers.
    pub(crate) in_use: usize,
    /// Held by a reservation, without containers.
    pub(crate) idle: usize,
    /// Held by a shared buffer, lent or not.
    pub(crate) shared: usize,
    /// Held by no reservation.
    pub(crate) free: usize,
    /// Unavailable, held or not.
    pub(crate) down: usize,
    /// Servers with an open move, also counted above.
    pub(crate) moving: usize,
    /// Servers lent to elastic reservations, also counted above.
    pub(crate) lent: usize,
}

/// What a server is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerUse {
    InUse,
    Idle,
    SharedBuffer,
    Free,
    Unavailable,
}

impl ServerUse {
    pub(crate) const ALL: [ServerUse; 5] = [
        ServerUse::InUse,
        ServerUse::Idle,
        ServerUse::SharedBuffer,
        ServerUse::Free,
        ServerUse::Unavailable,
    ];

    /// Its word in the API.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            ServerUse::InUse => "in_use",
            ServerUse::Idle => "idle",
            ServerUse::SharedBuffer => "shared_buffer",
            ServerUse::Free => "free",
            ServerUse::Unavailable => "unavailable",
        }
    }

    /// The use of a server. A server with an open move counts for the reservation that it goes to.
    pub(crate) fn of(region: &RegionSnapshot, server: &Server) -> ServerUse {
        let holder = server.holder().map(|holder| region.reservations[holder.ix()].kind);
        match holder {
            _ if !server.available => ServerUse::Unavailable,
            None => ServerUse::Free,
            Some(ReservationKind::SharedBuffer) => ServerUse::SharedBuffer,
            Some(_) if server.in_use => ServerUse::InUse,
            Some(_) => ServerUse::Idle,
        }
    }
}

impl ServerCounts {
    pub(crate) fn total(&self) -> usize {
        self.in_use + self.idle + self.shared + self.free + self.down
    }

    /// Each use: class of the style sheet, label, count.
    pub(crate) fn by_use(&self) -> [(&'static str, &'static str, usize); 5] {
        [
            ("in-use", "in use", self.in_use),
            ("idle", "idle", self.idle),
            ("shared", "shared buffer", self.shared),
            ("free", "free", self.free),
            ("down", "unavailable", self.down),
        ]
    }

    /// Classes and counts for a bar.
    pub(crate) fn bar(&self) -> [(&'static str, f64); 5] {
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
    pub(crate) held: Arc<CachedRegion>,
    /// Audit of the current assignment: every server stays with its holder.
    pub(crate) audit: AuditReport,
    /// Servers of each rack.
    pub(crate) racks: Vec<ServerCounts>,
    /// Servers of each MSB.
    pub(crate) msbs: Vec<ServerCounts>,
    /// Servers of each hardware type.
    pub(crate) types: Vec<ServerCounts>,
    /// Servers of the region.
    pub(crate) all: ServerCounts,
    /// MSBs of each datacenter, in order of name.
    pub(crate) by_datacenter: Vec<Vec<MsbIx>>,
    /// Racks of each MSB, in order of name.
    pub(crate) by_msb: Vec<Vec<RackIx>>,
}

impl RegionSummary {
    /// Counts and audits a region. Takes as long as an audit: not for an async thread.
    pub(crate) fn of(held: Arc<CachedRegion>) -> RegionSummary {
        let region = &held.snapshot;
        let mut racks = vec![ServerCounts::default(); region.racks.len()];
        let mut types = vec![ServerCounts::default(); region.hardware_types.len()];
        for server in &region.servers {
            let used = ServerUse::of(region, server);
            for counts in [&mut racks[server.rack.ix()], &mut types[server.hardware_type.ix()]] {
                counts.moving += usize::from(server.pending.is_some());
                counts.lent += usize::from(server.loaned_to.is_some());
                *match used {
                    ServerUse::InUse => &mut counts.in_use,
                    ServerUse::Idle => &mut counts.idle,
                    ServerUse::SharedBuffer => &mut counts.shared,
                    ServerUse::Free => &mut counts.free,
                    ServerUse::Unavailable => &mut counts.down,
                } += 1;
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
    pub(crate) fn region(&self) -> &RegionSnapshot {
        &self.held.snapshot
    }

    /// Servers of a datacenter.
    pub(crate) fn datacenter(&self, datacenter: DatacenterIx) -> ServerCounts {
        let mut counts = ServerCounts::default();
        for msb in &self.by_datacenter[datacenter.ix()] {
            counts.add(&self.msbs[msb.ix()]);
        }
        counts
    }

    /// The figures of a reservation, by the row of the audit.
    pub(crate) fn figures(&self, row: &ReservationAudit) -> Figures {
        self.held.statuses.get(&row.reservation_id).map(|of| of.figures).unwrap_or_default()
    }

    /// What the loss of an MSB would take: its servers that are in service or in planned maintenance.
    pub(crate) fn lost_with(&self, msb: MsbIx) -> LostServers {
        let region = self.region();
        LostServers::of(region, |_, server| region.msb_of(server) == msb)
    }

    /// Reservations with an embedded buffer that own servers in an MSB and would have less than promised
    /// without it. A reservation without servers there does not lose anything, however short it is.
    pub(crate) fn broken_without(&self, msb: MsbIx) -> Vec<&Certified> {
        let broken = |row: &&Certified| row.by_msb[msb.ix()] > Rru::ZERO && !row.survives(msb);
        self.held.certificate.rows.iter().filter(broken).collect()
    }

    /// Requested and current size of the shared buffer of a hardware type, in servers.
    pub(crate) fn shared_buffer(&self, ty: HardwareTypeIx) -> Option<(Rru, Rru)> {
        let is = |r: &&fleet::Reservation| {
            r.kind == ReservationKind::SharedBuffer && r.value(ty).is_some()
        };
        let mut found = self.region().reservations.iter().zip(&self.audit.reservations);
        let (of, row) = found.find(|(r, _)| is(r))?;
        Some((of.capacity, row.holding.assigned))
    }
}

/// What a reservation owns in an MSB, in service or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OwnedHere {
    /// Servers.
    pub(crate) servers: usize,
    /// Their RRU.
    pub(crate) rru: Rru,
    /// Servers that a failure has out of service.
    pub(crate) out: usize,
    /// Their RRU.
    pub(crate) out_rru: Rru,
}

impl OwnedHere {
    /// What each reservation owns in an MSB, by [`fleet::ReservationIx`].
    pub(crate) fn all(region: &RegionSnapshot, msb: MsbIx) -> Vec<OwnedHere> {
        let mut all = vec![OwnedHere::default(); region.reservations.len()];
        for server in region.servers.iter().filter(|server| region.msb_of(server) == msb) {
            let Some(owner) = server.current else { continue };
            let (here, rru) = (&mut all[owner.ix()], region.value(server, owner));
            (here.servers, here.rru) = (here.servers + 1, here.rru + rru);
            if !server.available {
                (here.out, here.out_rru) = (here.out + 1, here.out_rru + rru);
            }
        }
        all
    }
}

/// What the loss of an MSB would take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LostServers {
    /// Servers that no failure has out of service.
    pub(crate) servers: usize,
    /// Of these, servers in use.
    pub(crate) in_use: usize,
}

impl LostServers {
    /// Counts those of the servers, with their positions, that are lost.
    pub(crate) fn of(
        region: &RegionSnapshot,
        is_lost: impl Fn(usize, &Server) -> bool,
    ) -> LostServers {
        let gone = region.servers.iter().enumerate();
        let gone = gone.filter(|(at, server)| server.available && is_lost(*at, server));
        gone.map(|(_, server)| server).fold(LostServers::default(), |all, server| LostServers {
            servers: all.servers + 1,
            in_use: all.in_use + usize::from(server.in_use),
        })
    }
}

/// Cache of the latest [`RegionSummary`], shared by all pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct RegionSummaries(Arc<Mutex<Option<Arc<RegionSummary>>>>);

impl RegionSummaries {
    /// The summary of the cached region; `None` if no region is loaded. It may be some seconds old,
    /// and pages show its age: reading the whole region for every page would be too expensive.
    ///
    /// # Errors
    /// If Postgres does not answer, or the stored region breaks a rule.
    pub(crate) async fn current(
        &self,
        cache: &RegionCache,
    ) -> Result<Option<Arc<RegionSummary>>, Problem> {
        let held = match cache.latest() {
            Some(held) => held,
            None => match cache.read_current().await {
                Ok(held) => held,
                Err(RegionError::NothingLoaded) => return Ok(None),
                Err(error @ (RegionError::Db(_) | RegionError::Silent(_))) => {
                    return Err(error.into());
                }
                Err(error) => return Err(unreadable(&error)),
            },
        };
        // Concurrent requests wait for one count instead of each counting.
        let mut last = self.0.lock().await;
        if let Some(summary) = last.as_ref().filter(|summary| Arc::ptr_eq(&summary.held, &held)) {
            return Ok(Some(summary.clone()));
        }
        let counted = spawn_blocking(move || RegionSummary::of(held)).await;
        let summary = Arc::new(counted.map_err(|error| unreadable(&error))?);
        *last = Some(summary.clone());
        Ok(Some(summary))
    }
}

/// The region cannot be shown.
pub(crate) fn unreadable(error: &dyn Error) -> Problem {
    tracing::error!(%error, "the region cannot be shown");
    Problem::unavailable("region_unreadable", error.to_string())
}
