//! What the audit found.
//!
//! Amounts are exact; serialised, they are RRU as numbers under the names of `report.json`.

use super::holdings::Holding;
use super::number::{as_rru, from_rru, required};
use super::partitions::PartitionLoss;
use super::violation::Violation;
use crate::id::{DatacenterName, MsbIx, MsbName, OwnerName, ReservationName};
use crate::reservation::ReservationKind;
use crate::rru::Rru;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;

/// Every guarantee and every term of the objective, recomputed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AuditReport {
    /// Expressions 1 to 4 of the targets.
    pub objective: Objective,
    /// Expressions 2 to 4 of today's holders.
    pub initial_objective: Objective,
    /// Sum of all shortfalls, meaningful only where reservations share one unit of RRU.
    #[serde(rename = "shortfall_rru", serialize_with = "as_rru")]
    pub shortfall: Rru,
    /// Sum of all shortfalls under today's holders.
    #[serde(rename = "initial_shortfall_rru", serialize_with = "as_rru")]
    pub initial_shortfall: Rru,
    /// The fewest servers worth all shortfalls.
    pub shortfall_servers: usize,
    /// The same under today's holders.
    pub initial_shortfall_servers: usize,
    /// Available servers that change their holder.
    pub moves: MoveCounts,
    /// Embedded buffers against what they can be at best.
    pub buffer: BufferShare,
    /// Servers by state.
    pub servers: ServerCounts,
    /// One row per reservation, elastic ones included, in the snapshot's order.
    pub reservations: Vec<ReservationAudit>,
    /// The loss of each MSB, in the snapshot's order.
    pub msb_losses: Vec<MsbLoss>,
    /// Broken rules; none in targets that may be published.
    pub violations: Vec<Violation>,
}

impl AuditReport {
    /// Whether no rule is broken. Shortfalls are not broken rules; shortfalls that grew are.
    pub fn is_clean(&self) -> bool {
        self.violations.is_empty()
    }

    /// What the loss of an MSB does: every reservation with embedded buffer left below its C.
    pub fn survives(&self, msb: MsbIx) -> &MsbLoss {
        &self.msb_losses[msb.ix()]
    }

    /// The row of a reservation, by name.
    pub fn reservation(&self, id: &str) -> Option<&ReservationAudit> {
        let found = self.reservations.binary_search_by(|row| row.reservation_id.as_ref().cmp(id));
        Some(&self.reservations[found.ok()?])
    }

    /// The rows of reservations that are short.
    pub fn short(&self) -> impl Iterator<Item = &ReservationAudit> {
        self.reservations.iter().filter(|row| row.holding.shortfall > Rru::ZERO)
    }
}

/// Expressions 1 to 4 of RAS (SOSP'21), in objective units. Spread covers guaranteed reservations,
/// buffer those of them with embedded buffer; only available servers count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Objective {
    /// The sum of the four.
    pub total: f64,
    /// Expression 1.
    pub stability: f64,
    /// Expression 2.
    pub rack_spread: f64,
    /// Expression 3.
    pub msb_spread: f64,
    /// Expression 4.
    pub buffer: f64,
}

impl Objective {
    pub(super) fn of(stability: f64, rack_spread: f64, msb_spread: f64, buffer: f64) -> Objective {
        let total = stability + rack_spread + msb_spread + buffer;
        Objective { total, stability, rack_spread, msb_spread, buffer }
    }
}

/// Available servers that change their holder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MoveCounts {
    /// Servers that leave a reservation with containers running.
    pub in_use: usize,
    /// Servers that leave a reservation idle.
    pub idle: usize,
    /// Servers that were free.
    pub acquired: usize,
    /// Of those that leave a reservation, how many become free.
    pub handed_back: usize,
}

/// Servers by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerCounts {
    /// All servers of the snapshot.
    pub total: usize,
    /// Those the solve may count on.
    pub available: usize,
    /// Available servers with a holder.
    pub assigned: usize,
    /// Available servers without.
    pub free: usize,
}

/// Spread of one reservation over MSBs or racks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// alpha C.
    #[serde(rename = "limit_rru", serialize_with = "as_rru")]
    pub limit: Rru,
    /// The largest share.
    #[serde(rename = "largest_rru", serialize_with = "as_rru")]
    pub largest: Rru,
    /// Sum of what is beyond the limit.
    #[serde(rename = "excess_rru", serialize_with = "as_rru")]
    pub excess: Rru,
}

/// One reservation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReservationAudit {
    /// Its name.
    pub reservation_id: ReservationName,
    /// The business unit that asked for it.
    pub owner: OwnerName,
    /// What it is for.
    #[serde(serialize_with = "kind_word")]
    pub kind: ReservationKind,
    /// 0 is the most important.
    pub priority: i32,
    /// Whether its capacity must survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// Whether it is a shared buffer that the snapshot does not list.
    pub made: bool,
    /// C.
    #[serde(rename = "capacity_rru", serialize_with = "as_rru")]
    pub capacity: Rru,
    /// By the targets.
    #[serde(flatten)]
    pub holding: Holding,
    /// Under today's holders.
    pub initial: Holding,
    /// The worst loss of each partition that it survives, besides MSBs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionLoss>,
    /// Eq. 3, priced for guaranteed reservations only.
    pub msb_spread: Spread,
    /// Eq. 2, summed and priced for guaranteed reservations only.
    pub rack_spread: Spread,
    /// The smallest largest-MSB share with which the same guarantee could be given if the
    /// reservation were alone in the region.
    #[serde(rename = "smallest_buffer_rru", serialize_with = "as_rru")]
    pub smallest_buffer: Rru,
    /// Datacenters it names or has servers in.
    pub datacenters: Vec<DatacenterShare>,
    /// RRU in each MSB, by [`MsbIx`].
    #[serde(rename = "msb_rru", serialize_with = "all_as_rru")]
    pub msb_amounts: Vec<Rru>,
    /// RRU above what its replica rule allows in an MSB, all MSBs together.
    #[serde(rename = "msb_over_rru", serialize_with = "as_rru")]
    pub msb_over: Rru,
}

impl ReservationAudit {
    /// What is left of it when an MSB is lost.
    pub fn after_loss(&self, msb: MsbIx) -> Rru {
        self.holding.assigned - self.msb_amounts[msb.ix()]
    }

    /// What it has of its capacity today that the loss of one MSB could take.
    pub fn unguaranteed(&self) -> Rru {
        self.holding.assigned.min(self.capacity) - self.holding.guaranteed.min(self.capacity)
    }
}

/// A reservation's share of one datacenter (eq. 7).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatacenterShare {
    /// The datacenter.
    pub datacenter: DatacenterName,
    /// RRU there.
    #[serde(rename = "assigned_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub assigned: Rru,
    /// RRU there under today's holders.
    #[serde(rename = "initial_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub initial: Rru,
    /// RRU there as a share of C; `None` where C is zero.
    #[serde(deserialize_with = "required")]
    pub share: Option<f64>,
    /// A: the share wanted; `None` for a reservation without affinity.
    #[serde(deserialize_with = "required")]
    pub wanted: Option<f64>,
    /// RRU beyond the tolerance theta, on either side.
    #[serde(rename = "violation_rru")]
    pub violation: f64,
    /// RRU beyond the tolerance under today's holders.
    #[serde(rename = "initial_violation_rru")]
    pub initial_violation: f64,
}

/// Embedded buffers of all guaranteed reservations that have one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferShare {
    /// Sum of their largest MSB shares.
    #[serde(rename = "buffer_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub buffer: Rru,
    /// Sum of their C.
    #[serde(rename = "capacity_rru", serialize_with = "as_rru", deserialize_with = "from_rru")]
    pub capacity: Rru,
    /// Buffer over C; zero where nothing is asked.
    pub share: f64,
    /// Buffer over C under today's holders.
    pub initial_share: f64,
    /// What the share is at least, for the guarantees that the targets give.
    pub bounds: BufferBounds,
}

/// Lower bounds of the buffer share (RAS, SOSP'21, section 4.2), each as a share of the same C.
/// Each holds for the capacity that is really guaranteed: a shortfall needs no buffer.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BufferBounds {
    /// If hardware were spread evenly over all MSBs: 1 / (MSBs - 1) of what is guaranteed.
    pub even: f64,
    /// If hardware were spread evenly over the MSBs that have eligible hardware.
    pub even_eligible: f64,
    /// With the hardware where it is, each reservation alone: the tightest of the three.
    pub hardware: f64,
}

/// What the loss of one MSB does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MsbLoss {
    /// The MSB.
    pub msb: MsbName,
    /// Reservations with embedded buffer that would be left below their C.
    pub below: Vec<AfterLoss>,
    /// How many guaranteed reservations without embedded buffer would be.
    pub unbuffered_below: usize,
}

/// One reservation after the loss of an MSB.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AfterLoss {
    /// The reservation.
    pub reservation_id: ReservationName,
    /// C.
    #[serde(rename = "capacity_rru", serialize_with = "as_rru")]
    pub capacity: Rru,
    /// What it has left.
    #[serde(rename = "left_rru", serialize_with = "as_rru")]
    pub left: Rru,
    /// What is missing to C.
    #[serde(rename = "missing_rru", serialize_with = "as_rru")]
    pub missing: Rru,
}

fn kind_word<S: Serializer>(kind: &ReservationKind, out: S) -> Result<S::Ok, S::Error> {
    out.serialize_str(kind.as_str())
}

fn all_as_rru<S: Serializer>(amounts: &[Rru], out: S) -> Result<S::Ok, S::Error> {
    out.collect_seq(amounts.iter().map(|amount| amount.to_f64()))
}

/// A few lines: objective, shortfall, moves, buffer, and every broken rule.
impl fmt::Display for AuditReport {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Objective { total, stability, rack_spread, msb_spread, buffer } = self.objective;
        writeln!(
            out,
            "objective {total:.3} = stability {stability:.3} + rack spread {rack_spread:.3} \
             + MSB spread {msb_spread:.3} + buffer {buffer:.3}"
        )?;
        writeln!(
            out,
            "shortfall of {} reservations, at least {} servers (today {})",
            self.short().count(),
            self.shortfall_servers,
            self.initial_shortfall_servers
        )?;
        let MoveCounts { in_use, idle, acquired, handed_back } = self.moves;
        writeln!(
            out,
            "moves: {in_use} in use, {idle} idle ({handed_back} of them handed back), \
             {acquired} free servers taken up"
        )?;
        let BufferShare { share, bounds, .. } = self.buffer;
        writeln!(
            out,
            "embedded buffer {:.2} % of the requested RRU (at least {:.2} % with this hardware, \
             {:.2} % if it were spread evenly)",
            100.0 * share,
            100.0 * bounds.hardware,
            100.0 * bounds.even
        )?;
        if self.is_clean() {
            return writeln!(out, "no rule is broken");
        }
        writeln!(out, "broken rules: {}", self.violations.len())?;
        for violation in &self.violations {
            writeln!(out, "  {violation}")?;
        }
        Ok(())
    }
}
