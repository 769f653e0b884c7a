//! The certificate: what the loss of each single MSB would leave of every reservation, as things are.
//!
//! A promise is kept by servers, not by plans. What counts is what a reservation owns now: targets of
//! moves under way do not count until they are bound, and servers that an unplanned event takes out of
//! use do not count at all. So a guarantee may be broken here while the last solve's report says that it
//! holds, because of events since then.
//!
//! Planned maintenance is served from the embedded buffers, which are kept for the loss of an MSB. RAS
//! section 3.3.1 says what must come back when one is lost: "75% of embedded buffers are returned within
//! seconds while the remaining 25% within 30 minutes". Of a reservation with an embedded buffer, with
//! C its capacity and E its buffer (the largest share that one MSB has of what it owns, servers in
//! maintenance included; eq. 4), the promise is, for every MSB:
//!
//! - **no MSB lost**: what is in service is at least C;
//! - **at once** after the loss: what is in service in the other MSBs is at least C - E / 4. Servers in
//!   maintenance count as gone, recallable or not;
//! - **within 30 minutes**: at least C, where servers count as back if every window over them can be
//!   recalled within 30 minutes. What takes longer, or cannot be recalled, counts as gone.
//!
//! A reservation without an embedded buffer is promised the first line alone. One that survives the loss of any domain of
//! other partitions is promised the same for each of them, its largest share of a domain included in E.

use super::holdings::Holdings;
use super::maintained::{Maintained, maintained};
use crate::id::{MsbIx, OwnerName, PartitionIx, ReservationIx, ReservationName};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use crate::snapshot::RegionSnapshot;

/// What single losses would leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// Guaranteed reservations, in the snapshot's order.
    pub rows: Vec<Certified>,
    /// The figures of every reservation, by [`ReservationIx`].
    pub figures: Vec<Figures>,
}

/// The figures of a reservation at one instant. Pages, API, command line and metrics show these and no others
/// under these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figures {
    /// C, the granted capacity; of a shared buffer, its size in servers.
    pub promised: Rru,
    /// What it has now: servers that it owns and that are in service. Servers that are arriving do not count.
    pub held: Rru,
    /// What it keeps in the worst of the promised cases, not limited to the promise: now and, with an embedded
    /// buffer, after the loss of any one MSB more.
    pub kept: Rru,
    /// `kept` once every open move is done.
    pub decided: Rru,
    /// Whether no MSB has more than its replica rule allows.
    pub replicas_hold: bool,
}

impl Default for Figures {
    fn default() -> Figures {
        let zero = Rru::ZERO;
        Figures { promised: zero, held: zero, kept: zero, decided: zero, replicas_hold: true }
    }
}

impl Figures {
    /// What of the promise is guaranteed now.
    pub fn guaranteed(&self) -> Rru {
        self.kept.min(self.promised)
    }

    /// What is missing now, while no further MSB is lost.
    pub fn missing_now(&self) -> Rru {
        (self.promised - self.held).or_zero()
    }

    /// What is missing now or would be missing after the worst loss of one MSB more.
    pub fn missing_after_loss(&self) -> Rru {
        (self.promised - self.kept).or_zero()
    }

    /// Whether the open moves, once done, make the promise hold.
    pub fn is_decided(&self) -> bool {
        self.decided >= self.promised
    }

    /// How the promise stands.
    pub fn standing(&self) -> Standing {
        if self.missing_now() > Rru::ZERO {
            Standing::Short
        } else if self.missing_after_loss() > Rru::ZERO || !self.replicas_hold {
            Standing::AtRisk
        } else {
            Standing::Guaranteed
        }
    }
}

/// How a promise stands at one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It has less than promised now.
    Short,
    /// It has everything now; the loss of one MSB more would take part of it.
    AtRisk,
    /// It has everything now, and would have it after the loss of any one MSB more.
    Guaranteed,
}

impl Standing {
    /// Every standing, the worst first.
    pub const ALL: [Standing; 3] = [Standing::Short, Standing::AtRisk, Standing::Guaranteed];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Standing::Short => "short",
            Standing::AtRisk => "at_risk",
            Standing::Guaranteed => "guaranteed",
        }
    }
}

/// What the loss of each MSB would leave of one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certified {
    /// Which of the snapshot's reservations it is.
    pub reservation: ReservationIx,
    /// Its name.
    pub reservation_id: ReservationName,
    /// The business unit that asked for it.
    pub owner: OwnerName,
    /// 0 is the most important.
    pub priority: i32,
    /// Whether its capacity is to survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// C.
    pub capacity: Rru,
    /// What it owns and no unplanned event takes out of use; servers in maintenance included.
    pub owned: Rru,
    /// Servers of that.
    pub servers: usize,
    /// What of `owned` is in maintenance now.
    pub maintained: Rru,
    /// What of `maintained` would not be back 30 minutes after a recall.
    pub not_recallable: Rru,
    /// The MSB whose loss leaves least after 30 minutes; of equals the one that leaves least at once,
    /// then the first by name. `None`: it owns nothing.
    pub worst: Option<MsbIx>,
    /// What the worst loss leaves within 30 minutes.
    pub left: Rru,
    /// The least that the loss of any MSB leaves at once; it need not be `worst`.
    pub left_at_once: Rru,
    /// The value of the hardware type that it values most.
    pub largest_value: Rru,
    /// What it owns in each MSB, by [`MsbIx`]; servers in maintenance included.
    pub by_msb: Vec<Rru>,
    /// What of that is in maintenance, by [`MsbIx`].
    pub maintained_by_msb: Vec<Rru>,
    /// What of that would not be back within 30 minutes, by [`MsbIx`].
    pub not_recallable_by_msb: Vec<Rru>,
    /// What the loss of a domain of other partitions leaves at least, if it survives that.
    pub domains: Option<DomainLosses>,
    /// The most RRU in one MSB by its replica rule; `None`: it has none.
    pub msb_max: Option<Rru>,
    /// What it keeps in the worst of the promised cases once every open move is done.
    pub decided: Rru,
}

/// What the loss of any one domain of the partitions that a reservation survives would leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainLosses {
    /// Its largest share of a domain; servers in maintenance included.
    pub largest: Rru,
    /// The partition and the position of the domain whose loss leaves least after 30 minutes; of equals the one that leaves
    /// least at once, then the first. `None`: it owns nothing in any.
    pub worst: Option<(PartitionIx, u32)>,
    /// What the worst loss leaves within 30 minutes.
    pub left: Rru,
    /// The least that the loss of any domain leaves at once; it need not be `worst`.
    pub left_at_once: Rru,
}

impl Certified {
    /// What is left within 30 minutes of the loss of an MSB.
    pub fn after_loss(&self, msb: MsbIx) -> Rru {
        let lost = self.by_msb[msb.ix()] - self.not_recallable_by_msb[msb.ix()];
        self.owned - self.not_recallable - lost
    }

    /// What is left at once after the loss of an MSB.
    pub fn at_once_after_loss(&self, msb: MsbIx) -> Rru {
        let lost = self.by_msb[msb.ix()] - self.maintained_by_msb[msb.ix()];
        self.held() - lost
    }

    /// What it has now: what it owns and is in service.
    pub fn held(&self) -> Rru {
        self.owned - self.maintained
    }

    /// E: its largest MSB share (eq. 4); zero without an embedded buffer.
    pub fn embedded_buffer(&self) -> Rru {
        let largest = self.by_msb.iter().copied().max().unwrap_or_default();
        let largest = if self.msb_buffer { largest } else { Rru::ZERO };
        largest.max(self.domains.map_or(Rru::ZERO, |of| of.largest))
    }

    /// What must be left at once after the loss of any MSB: C less a quarter of the embedded buffer.
    pub fn needed_at_once(&self) -> Rru {
        needed_at_once(self.capacity, self.embedded_buffer())
    }

    /// Whether what was promised for the loss of this MSB is kept, at once and within 30 minutes. A
    /// reservation without an embedded buffer is promised nothing for it, but for the quorum of its
    /// replica rule, which counts what is back within 30 minutes.
    pub fn survives(&self, msb: MsbIx) -> bool {
        let enough = !self.msb_buffer
            || (self.after_loss(msb) >= self.capacity
                && self.at_once_after_loss(msb) >= self.needed_at_once());
        enough && self.keeps_quorum(msb) != Some(false)
    }

    /// Whether its capacity is to survive the loss of an MSB or of a domain of another partition.
    pub fn survives_a_loss(&self) -> bool {
        self.msb_buffer || self.domains.is_some()
    }

    /// What the worst of the losses that it is to survive leaves within 30 minutes.
    pub fn left_after_loss(&self) -> Rru {
        let msb = self.msb_buffer.then_some(self.left);
        let least = msb.into_iter().chain(self.domains.map(|of| of.left)).min();
        least.unwrap_or(self.owned - self.not_recallable)
    }

    /// The least that any of these losses leaves at once.
    pub fn left_at_once_after_loss(&self) -> Rru {
        let msb = self.msb_buffer.then_some(self.left_at_once);
        let least = msb.into_iter().chain(self.domains.map(|of| of.left_at_once)).min();
        least.unwrap_or(self.held())
    }

    /// By how much these losses leave more than what is promised; negative: less.
    pub fn margin(&self) -> Rru {
        let later = self.left_after_loss() - self.capacity;
        later.min(self.left_at_once_after_loss() - self.needed_at_once())
    }

    /// Whether what was promised for the loss of any one domain is kept, at once and within 30 minutes; `None`: nothing
    /// was.
    pub fn survives_domains(&self) -> Option<bool> {
        let needed = self.needed_at_once();
        self.domains.map(|of| of.left >= self.capacity && of.left_at_once >= needed)
    }

    /// Whether what was promised holds.
    pub fn holds(&self) -> bool {
        self.figures().standing() == Standing::Guaranteed
    }

    /// Whether no MSB holds more than its replica rule allows.
    pub fn replicas_hold(&self) -> bool {
        self.msb_max.is_none_or(|most| self.by_msb.iter().all(|&amount| amount <= most))
    }

    /// What the loss of any one MSB must leave by its replica rule: (n - k)/n of C, a quorum.
    pub fn quorum(&self) -> Option<Rru> {
        self.msb_max.map(|most| self.capacity - most)
    }

    /// Whether a quorum survives the loss of an MSB; `None`: it has no replica rule.
    pub fn keeps_quorum(&self, lost: MsbIx) -> Option<bool> {
        self.quorum().map(|quorum| self.after_loss(lost) >= quorum)
    }

    /// What of C is kept in the worst of the cases that were promised; the figure at once is counted with
    /// the quarter of the embedded buffer that may come back later.
    pub fn kept(&self) -> Rru {
        let later = Rru(self.embedded_buffer().0 / 4);
        let mut kept = self.held();
        if self.msb_buffer {
            kept = kept.min(self.left).min(self.left_at_once + later);
        }
        if let Some(domains) = self.domains {
            kept = kept.min(domains.left).min(domains.left_at_once + later);
        }
        kept
    }

    /// What is missing to C in the worst of those cases.
    pub fn missing(&self) -> Rru {
        self.figures().missing_after_loss()
    }

    /// Its figures.
    pub fn figures(&self) -> Figures {
        Figures {
            promised: self.capacity,
            held: self.held(),
            kept: self.kept(),
            decided: self.decided,
            replicas_hold: self.replicas_hold(),
        }
    }
}

/// What must be left at once after the loss of any MSB, in the arithmetic of the certificate: C less a
/// quarter of the embedded buffer, of which 75 % are returned within seconds (RAS section 3.3.1).
pub fn needed_at_once(capacity: Rru, embedded_buffer: Rru) -> Rru {
    (capacity - Rru(embedded_buffer.0 / 4)).or_zero()
}

impl Certificate {
    /// The row of a reservation, by name.
    pub fn row(&self, id: &str) -> Option<&Certified> {
        let found = self.rows.binary_search_by(|row| row.reservation_id.as_ref().cmp(id));
        Some(&self.rows[found.ok()?])
    }

    /// Those whose promise does not hold.
    pub fn broken(&self) -> impl Iterator<Item = &Certified> {
        self.rows.iter().filter(|row| !row.holds())
    }

    /// The guaranteed reservations, counted by how their promises stand, and what is missing.
    pub fn totals(&self) -> PromiseTotals {
        let mut totals = PromiseTotals::default();
        for row in &self.rows {
            let figures = row.figures();
            *match figures.standing() {
                Standing::Short => &mut totals.short,
                Standing::AtRisk => &mut totals.at_risk,
                Standing::Guaranteed => &mut totals.guaranteed,
            } += 1;
            totals.missing_now += row.largest_value.servers_for(figures.missing_now());
            totals.missing_after_loss +=
                row.largest_value.servers_for(figures.missing_after_loss());
        }
        totals
    }
}

/// Guaranteed reservations by how their promises stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromiseTotals {
    /// Have less than promised now.
    pub short: usize,
    /// Have everything now, and would not after one more MSB loss.
    pub at_risk: usize,
    /// Have everything now, and would after one more MSB loss.
    pub guaranteed: usize,
    /// The fewest servers worth what is missing now.
    pub missing_now: usize,
    /// The fewest servers worth what is missing now or would be missing after one more MSB loss; for each
    /// reservation its worst loss.
    pub missing_after_loss: usize,
}

/// Sums what every reservation owns, and takes planned maintenance off.
pub fn certificate(snapshot: &RegionSnapshot) -> Certificate {
    let owners: Vec<Option<ReservationIx>> =
        snapshot.servers.iter().map(|server| server.current).collect();
    let holders: Vec<Option<ReservationIx>> =
        snapshot.servers.iter().map(|server| server.holder()).collect();
    let out = maintained(snapshot);
    let mut rows = certified(snapshot, &owners, &out);
    for (row, then) in rows.iter_mut().zip(certified(snapshot, &holders, &out)) {
        row.decided = then.kept();
    }
    let figures = rows.iter().map(Certified::figures).collect();
    rows.retain(|row| is_guaranteed(snapshot, row));
    Certificate { rows, figures }
}

/// The rows of guaranteed reservations for these owners (one per server) and this maintenance.
pub(super) fn certified_rows(
    snapshot: &RegionSnapshot,
    owners: &[Option<ReservationIx>],
    out: &[Maintained],
) -> Vec<Certified> {
    let mut rows = certified(snapshot, owners, out);
    rows.retain(|row| is_guaranteed(snapshot, row));
    rows
}

fn is_guaranteed(snapshot: &RegionSnapshot, row: &Certified) -> bool {
    snapshot.reservations[row.reservation.ix()].kind == ReservationKind::Guaranteed
}

/// A row for every reservation, by [`ReservationIx`].
fn certified(
    snapshot: &RegionSnapshot,
    owners: &[Option<ReservationIx>],
    out: &[Maintained],
) -> Vec<Certified> {
    let owned_where = |wanted: &dyn Fn(Maintained) -> bool| {
        let servers = owners.iter().zip(out);
        let owners: Vec<Option<ReservationIx>> =
            servers.map(|(owner, state)| owner.filter(|_| wanted(*state))).collect();
        Holdings::sum(snapshot, &owners)
    };
    let owned = owned_where(&|_| true);
    let maintained = owned_where(&|state| state > Maintained::InService);
    let stays = owned_where(&|state| state == Maintained::Stays);
    let reservations = snapshot.reservations.iter().enumerate();
    let rows = reservations.map(|(position, of)| {
        let ix = ReservationIx::new(position);
        let holding = owned.holding(snapshot, ix);
        let sum = |amounts: &[Rru]| amounts.iter().copied().sum();
        let mut row = Certified {
            reservation: ix,
            reservation_id: of.id.clone(),
            owner: of.owner.clone(),
            priority: of.priority,
            msb_buffer: of.msb_buffer && of.kind == ReservationKind::Guaranteed,
            capacity: of.capacity,
            largest_value: of.largest_value(),
            owned: holding.assigned,
            servers: holding.servers,
            maintained: sum(maintained.by_msb(ix)),
            not_recallable: sum(stays.by_msb(ix)),
            worst: None,
            left: Rru::ZERO,
            left_at_once: Rru::ZERO,
            by_msb: owned.by_msb(ix).to_vec(),
            maintained_by_msb: maintained.by_msb(ix).to_vec(),
            not_recallable_by_msb: stays.by_msb(ix).to_vec(),
            domains: None,
            msb_max: of.msb_max(),
            decided: Rru::ZERO,
        };
        // The loss of an MSB in which it owns nothing never leaves less than another.
        let msbs = || (0..row.by_msb.len()).map(MsbIx::new);
        let owns = |msb: &MsbIx| row.by_msb[msb.ix()] > Rru::ZERO;
        let least = |msb: &MsbIx| (row.after_loss(*msb), row.at_once_after_loss(*msb));
        let worst = msbs().filter(owns).min_by_key(least);
        let left_at_once = msbs().map(|msb| row.at_once_after_loss(msb)).min().unwrap_or_default();
        row.left = worst.map_or(row.owned, |msb| row.after_loss(msb));
        (row.worst, row.left_at_once) = (worst, left_at_once);
        row.domains = (!of.survives.is_empty()).then(|| {
            let losses = of.survives.iter().flat_map(|&partition| {
                let in_domains = owned.by_domain().shares(ix, partition);
                in_domains.map(move |(domain, owns)| (partition, domain, owns))
            });
            let losses = losses.map(|(partition, domain, owns)| {
                let of = |by: &Holdings| by.by_domain().share(ix, partition, domain);
                let left = row.owned - row.not_recallable - (owns - of(&stays));
                let at_once = row.held() - (owns - of(&maintained));
                (left, at_once, (partition, domain))
            });
            let losses: Vec<_> = losses.collect();
            let worst = losses.iter().min();
            DomainLosses {
                largest: owned.by_domain().largest(snapshot, ix),
                worst: worst.map(|of| of.2),
                left: worst.map_or(row.owned - row.not_recallable, |of| of.0),
                left_at_once: losses.iter().map(|of| of.1).min().unwrap_or(row.held()),
            }
        });
        row.decided = row.kept();
        row
    });
    rows.collect()
}
