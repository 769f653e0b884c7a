//! Rules that targets may break.

use super::number::as_rru;
use crate::id::{DatacenterName, HardwareTypeName, MsbName, Name, ReservationName, ServerName};
use crate::rru::Rru;
use serde::Serialize;
use std::fmt;

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "rule", rename_all = "snake_case")]
pub enum Violation {
    /// An unavailable server does not keep its holder.
    UnavailableServerMoved {
        /// The server.
        server_id: ServerName,
        /// Its holder; `free` if it has none.
        holder: Name,
        /// Who should hold it by the targets.
        target: Name,
    },
    /// A server is newly given to a reservation its type is not eligible for.
    NotEligible {
        /// The server.
        server_id: ServerName,
        /// Its hardware type.
        hardware_type: HardwareTypeName,
        /// Who is given it.
        reservation_id: ReservationName,
    },
    /// A server is newly given to a reservation that is held to other datacenters.
    DatacenterNotAllowed {
        /// The server.
        server_id: ServerName,
        /// Where it stands.
        datacenter: DatacenterName,
        /// Who is given it.
        reservation_id: ReservationName,
    },
    /// A server is newly given to an elastic reservation, which owns no servers.
    GivenToElastic {
        /// The server.
        server_id: ServerName,
        /// Who is given it.
        reservation_id: ReservationName,
    },
    /// A reservation is shorter than it is under today's holders.
    ShortfallWorse {
        /// The reservation.
        reservation_id: ReservationName,
        /// Its shortfall under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// Its shortfall by the targets.
        #[serde(rename = "shortfall_rru", serialize_with = "as_rru")]
        shortfall: Rru,
    },
    /// An MSB holds more replicas than the reservation's rule allows, and more than today.
    ReplicasWorse {
        /// The reservation.
        reservation_id: ReservationName,
        /// The MSB.
        msb: MsbName,
        /// The most RRU that may be there.
        #[serde(rename = "msb_max_rru", serialize_with = "as_rru")]
        msb_max: Rru,
        /// RRU there under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// RRU there by the targets.
        #[serde(rename = "assigned_rru", serialize_with = "as_rru")]
        assigned: Rru,
    },
    /// A server that stays until the next solve does not: it is cordoned, or planned maintenance goes on
    /// or begins until then.
    PinnedServerMoved {
        /// The server.
        server_id: ServerName,
        /// Its holder; `free` if it has none.
        holder: Name,
        /// Who should hold it by the targets.
        target: Name,
    },
    /// More servers are to move than the mover may begin to move before the next solve.
    TooManyMoves {
        /// What the budget counts: `region`, `msb`, `rack`, `reservation` or `server`.
        scope: Name,
        /// Which of them.
        scope_id: Name,
        /// Servers that are to move.
        moves: u64,
        /// Servers that may.
        budget: u64,
        /// Why no more may: `limit`, `contract`, `quiet_time` or `cordon`.
        because: Name,
    },
    /// With the maintenance until the next solve, what was promised for the loss of an MSB holds today and
    /// would not hold by the targets.
    GuaranteeWorse {
        /// The reservation.
        reservation_id: ReservationName,
        /// What of its capacity is kept in the worst case under today's holders.
        #[serde(rename = "initial_rru", serialize_with = "as_rru")]
        initial: Rru,
        /// What of its capacity is kept in the worst case by the targets.
        #[serde(rename = "kept_rru", serialize_with = "as_rru")]
        kept: Rru,
    },
    /// A datacenter share is further from what eq. 7 allows than it is today.
    AffinityWorse {
        /// The reservation.
        reservation_id: ReservationName,
        /// The datacenter.
        datacenter: DatacenterName,
        /// RRU beyond the tolerance under today's holders.
        #[serde(rename = "initial_rru")]
        initial: f64,
        /// RRU beyond the tolerance by the targets.
        #[serde(rename = "violation_rru")]
        violation: f64,
    },
}

/// Rounded to micro-RRU, for people: sums of shares have digits that mean nothing.
fn to_micro(amount: f64) -> f64 {
    (amount * 1e6).round() / 1e6
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::UnavailableServerMoved { server_id, holder, target } => write!(
                out,
                "server {server_id:?} is unavailable and must stay with {holder:?}, not go to \
                 {target:?}"
            ),
            Violation::PinnedServerMoved { server_id, holder, target } => write!(
                out,
                "server {server_id:?} stays with {holder:?} until the next solve (it is cordoned or \
                 under planned maintenance) and must not go to {target:?}"
            ),
            Violation::TooManyMoves { scope, scope_id, moves, budget, because } => write!(
                out,
                "{moves} servers of {scope} {scope_id:?} are to move before the next solve; {budget} \
                 may ({because})"
            ),
            Violation::GuaranteeWorse { reservation_id, initial, kept } => write!(
                out,
                "with planned maintenance until the next solve, {kept} RRU of reservation \
                 {reservation_id:?} are kept when an MSB is lost; {initial} are today"
            ),
            Violation::NotEligible { server_id, hardware_type, reservation_id } => write!(
                out,
                "server {server_id:?} of hardware type {hardware_type:?} is given to reservation \
                 {reservation_id:?}, for which that type is not eligible"
            ),
            Violation::DatacenterNotAllowed { server_id, datacenter, reservation_id } => write!(
                out,
                "server {server_id:?} in datacenter {datacenter:?} is given to reservation \
                 {reservation_id:?}, which is not allowed there"
            ),
            Violation::GivenToElastic { server_id, reservation_id } => write!(
                out,
                "server {server_id:?} is given to {reservation_id:?}, an elastic reservation, \
                 which only borrows"
            ),
            Violation::ShortfallWorse { reservation_id, initial, shortfall } => write!(
                out,
                "reservation {reservation_id:?} would be {shortfall} RRU short; today it is \
                 {initial}"
            ),
            Violation::ReplicasWorse { reservation_id, msb, msb_max, initial, assigned } => write!(
                out,
                "reservation {reservation_id:?} would have {assigned} RRU in MSB {msb:?}, where its \
                 replica rule allows {msb_max}; today it has {initial}"
            ),
            Violation::AffinityWorse { reservation_id, datacenter, initial, violation } => write!(
                out,
                "reservation {reservation_id:?} would be {} RRU beyond its tolerance in \
                 datacenter {datacenter:?}; today it is {}",
                to_micro(*violation),
                to_micro(*initial)
            ),
        }
    }
}
