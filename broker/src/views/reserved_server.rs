//! One server as a container allocator sees it: its state for a reservation, and the SQL that says so.

use crate::infra::words::name;
use crate::log::trail::Seq;
use chrono::{DateTime, Utc};
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, RackName, ReservationName, Rru, ServerName,
};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

/// Columns with the state of a server for reservation `$1` with promise `$2`.
macro_rules! columns {
    () => {
        "s.current_reservation_id IS NOT DISTINCT FROM $1::integer, s.target_pending, \
            s.target_pending AND s.target_reservation_id IS NOT DISTINCT FROM $1::integer, \
            s.loan_reservation_id IS NOT DISTINCT FROM $1::integer, \
            s.loan_reservation_id IS NOT NULL, \
            coalesce((SELECT o.origin = 'recall' FROM moves o WHERE o.open AND o.server_id = s.server_id), false), \
            coalesce(e.failed, false), coalesce(e.maintained, false), \
            coalesce((SELECT v.value_micro FROM rru_values v WHERE v.promise_id = $2::bigint \
                AND v.hardware_type_id = s.hardware_type_id), 0)"
    };
}

/// Events of racks, MSBs and datacenters, and cordons, which count as maintenance. They are few, so they are
/// read once and not per server.
macro_rules! wide {
    () => {
        "wide AS MATERIALIZED ( \
            SELECT kind = 'planned_maintenance' AS planned, NULL::integer AS server_id, rack_id, msb_id, datacenter_id \
                FROM (SELECT * FROM unavailability WHERE rack_id IS NOT NULL \
                    UNION ALL SELECT * FROM unavailability WHERE msb_id IS NOT NULL \
                    UNION ALL SELECT * FROM unavailability WHERE datacenter_id IS NOT NULL) u \
                WHERE started_at <= now() AND coalesce(ended_at, 'infinity') > now() \
            UNION ALL SELECT true, server_id, rack_id, NULL, NULL FROM maintenance \
                WHERE open AND state IN ('draining', 'active')) "
    };
}

/// The place of server `s`, and the events that cover it now in each scope.
macro_rules! placed {
    () => {
        " JOIN LATERAL (SELECT rack, msb_id FROM racks WHERE rack_id = s.rack_id OFFSET 0) k ON true \
            JOIN LATERAL (SELECT msb, datacenter_id FROM msbs WHERE msb_id = k.msb_id OFFSET 0) m ON true \
            CROSS JOIN LATERAL ( \
                SELECT bool_or(NOT c.planned) AS failed, bool_or(c.planned) AS maintained FROM ( \
                    SELECT kind = 'planned_maintenance' AS planned FROM unavailability u \
                        WHERE u.server_id = s.server_id \
                            AND u.started_at <= now() AND coalesce(u.ended_at, 'infinity') > now() \
                    UNION ALL SELECT planned FROM wide w WHERE w.server_id = s.server_id \
                        OR w.rack_id = s.rack_id OR w.msb_id = k.msb_id OR w.datacenter_id = m.datacenter_id) c) e "
    };
}

/// A server's name, place and type.
macro_rules! described {
    () => {
        "s.server::text, (SELECT d.datacenter::text FROM datacenters d WHERE d.datacenter_id = m.datacenter_id), \
            m.msb::text, k.rack::text, \
            (SELECT h.hardware_type::text FROM hardware_types h WHERE h.hardware_type_id = s.hardware_type_id), \
            s.in_use, \
            (SELECT l.reservation FROM reservations l WHERE l.reservation_id = s.loan_reservation_id), \
            s.server_id"
    };
}
pub(crate) use {columns, described, placed, wide};

pub(crate) mod sql {
    crate::statements! {
        /// The reservation and the last entry of the trail.
        HEADER = "SELECT c.seq, now(), r.reservation_id, r.promise_id, r.kind, p.capacity_micro \
            FROM trail_clock c LEFT JOIN (reservations r JOIN promises p USING (promise_id)) \
                ON r.reservation = $1";
        /// All servers that the reservation owns, receives or borrows.
        OWN = "SELECT server_id FROM servers WHERE current_reservation_id = $1 \
            UNION SELECT server_id FROM servers WHERE loan_reservation_id = $1 \
            UNION SELECT server_id FROM servers WHERE target_pending AND target_reservation_id = $1";
    }
}

/// The state of a server for a reservation, which says what an allocator may do with it.
///
/// The first matching state counts: a server out of use is `Unavailable` regardless of the rest; a leaving
/// server is to be emptied even if maintenance comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// An unplanned event covers it: no container can run there.
    Unavailable,
    /// It leaves for another reservation or returns to its owner: place nothing, containers will end.
    Leaving,
    /// Planned maintenance covers it: place nothing until it is over.
    InMaintenance,
    /// Owned, and lent to an elastic reservation.
    OnLoan,
    /// Owned by another, lent to this elastic reservation: place only preemptible containers.
    Borrowed,
    /// To be bound to this reservation.
    Arriving,
    /// Owned and ready for containers.
    Available,
}

impl ServerState {
    /// Every state, in the order in which they count.
    pub const ALL: [ServerState; 7] = [
        ServerState::Unavailable,
        ServerState::Leaving,
        ServerState::InMaintenance,
        ServerState::OnLoan,
        ServerState::Borrowed,
        ServerState::Arriving,
        ServerState::Available,
    ];

    /// Its word.
    pub const fn as_str(self) -> &'static str {
        match self {
            ServerState::Unavailable => "unavailable",
            ServerState::Leaving => "leaving",
            ServerState::InMaintenance => "in_maintenance",
            ServerState::OnLoan => "on_loan",
            ServerState::Borrowed => "borrowed",
            ServerState::Arriving => "arriving",
            ServerState::Available => "available",
        }
    }
}

/// The facts that decide a state.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) bound: bool,
    pub(crate) pending: bool,
    pub(crate) comes: bool,
    pub(crate) borrows: bool,
    pub(crate) lent: bool,
    pub(crate) recalled: bool,
    pub(crate) failed: bool,
    pub(crate) maintained: bool,
}

impl Facts {
    /// The state; `None`: the server does not concern the reservation.
    pub(crate) fn state(self) -> Option<ServerState> {
        if !(self.bound || self.comes || self.borrows) {
            return None;
        }
        // A mere borrower loses the server to any move and to a recall.
        let borrows_only = !self.bound && !self.comes;
        let leaves = self.pending && !self.comes || borrows_only && self.recalled;
        Some(match self {
            Facts { failed: true, .. } => ServerState::Unavailable,
            _ if leaves => ServerState::Leaving,
            Facts { maintained: true, .. } => ServerState::InMaintenance,
            Facts { bound: true, lent: true, .. } => ServerState::OnLoan,
            Facts { bound: true, .. } => ServerState::Available,
            Facts { comes: true, .. } => ServerState::Arriving,
            _ => ServerState::Borrowed,
        })
    }
}

/// A server as an allocator sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReservedServer {
    /// The server.
    pub server: ServerName,
    /// The server's state.
    pub state: ServerState,
    /// Whether the reservation owns it.
    pub bound: bool,
    /// Whether containers are known to run on it.
    pub in_use: bool,
    /// The server's datacenter.
    pub datacenter: DatacenterName,
    /// The server's MSB.
    pub msb: MsbName,
    /// The server's rack.
    pub rack: RackName,
    /// The server's hardware type.
    pub hardware_type: HardwareTypeName,
    /// Its RRU value for the reservation.
    #[serde(serialize_with = "rru")]
    pub rru: Rru,
    /// The elastic reservation that borrows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaned_to: Option<ReservationName>,
}

/// Serializes as a number, exact to the micro-RRU.
pub(crate) fn rru<S: serde::Serializer>(amount: &Rru, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(amount.to_f64())
}

/// A reservation at one instant.
pub(crate) struct Header {
    pub(crate) seq: Seq,
    pub(crate) now: DateTime<Utc>,
    /// The numbers of the reservation and its promise, and the capacity; `None`: unknown reservation.
    pub(crate) reservation: Option<(i32, i64, Rru)>,
}

pub(crate) async fn header(db: &mut PgConnection, name: &str) -> Result<Header, sqlx::Error> {
    let row = sqlx::query(sql::HEADER).bind(name).fetch_one(db).await?;
    let reservation = match (row.try_get(2)?, row.try_get(3)?, row.try_get(5)?) {
        (Some(id), Some(promise), Some(capacity)) => Some((id, promise, Rru(capacity))),
        _ => None,
    };
    Ok(Header { seq: Seq(row.try_get(0)?), now: row.try_get(1)?, reservation })
}

/// The facts and the value: the columns of `columns!`.
pub(crate) fn facts(row: &PgRow) -> Result<(Facts, Rru), sqlx::Error> {
    let facts = Facts {
        bound: row.try_get(0)?,
        pending: row.try_get(1)?,
        comes: row.try_get(2)?,
        borrows: row.try_get(3)?,
        lent: row.try_get(4)?,
        recalled: row.try_get(5)?,
        failed: row.try_get(6)?,
        maintained: row.try_get(7)?,
    };
    Ok((facts, Rru(row.try_get(8)?)))
}

/// A row of `columns!` and `described!`; `Err`: the name of a server that does not concern the reservation.
pub(crate) fn server(row: &PgRow) -> Result<Result<ReservedServer, ServerName>, sqlx::Error> {
    let (facts, rru) = facts(row)?;
    let Some(state) = facts.state() else { return Ok(Err(name(row, 9)?)) };
    Ok(Ok(ReservedServer {
        server: name(row, 9)?,
        state,
        bound: facts.bound,
        in_use: row.try_get(14)?,
        datacenter: name(row, 10)?,
        msb: name(row, 11)?,
        rack: name(row, 12)?,
        hardware_type: name(row, 13)?,
        rru,
        loaned_to: row.try_get::<Option<&str>, _>(15)?.map(Into::into),
    }))
}

#[cfg(test)]
mod tests {
    use super::{Facts, ServerState};

    #[test]
    fn first_matching_state_counts() {
        let own = Facts { bound: true, ..Facts::default() };
        let failed = Facts { failed: true, ..own };
        let maintained = Facts { maintained: true, ..own };
        let lent = Facts { lent: true, ..own };
        let lender = Facts { lent: true, borrows: true, ..Facts::default() };
        let comes = Facts { comes: true, pending: true, ..Facts::default() };
        use ServerState::{
            Arriving, Available, Borrowed, InMaintenance, Leaving, OnLoan, Unavailable,
        };
        for (facts, state) in [
            (Facts::default(), None),
            (own, Some(Available)),
            (failed, Some(Unavailable)),
            (Facts { pending: true, ..failed }, Some(Unavailable)),
            (Facts { pending: true, ..own }, Some(Leaving)),
            (Facts { pending: true, comes: true, ..own }, Some(Available)),
            (Facts { pending: true, ..maintained }, Some(Leaving)),
            (maintained, Some(InMaintenance)),
            (Facts { lent: true, ..maintained }, Some(InMaintenance)),
            (lent, Some(OnLoan)),
            (Facts { recalled: true, ..lent }, Some(OnLoan)),
            (Facts { pending: true, ..lent }, Some(Leaving)),
            (lender, Some(Borrowed)),
            (Facts { recalled: true, ..lender }, Some(Leaving)),
            (Facts { pending: true, ..lender }, Some(Leaving)),
            (Facts { failed: true, ..lender }, Some(Unavailable)),
            (comes, Some(Arriving)),
            (Facts { maintained: true, ..comes }, Some(InMaintenance)),
            (Facts { failed: true, ..comes }, Some(Unavailable)),
        ] {
            assert_eq!(facts.state(), state, "{facts:?}");
        }
    }
}
