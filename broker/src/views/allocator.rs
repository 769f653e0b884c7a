//! What a container allocator needs to know: which servers a reservation has, gets or borrows, and
//! what may be done with each.

use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use crate::log::trail::Seq;
use crate::views::page_cache::Kept;
use crate::views::reservation::ReservationError;
use crate::views::totals::{self, ReservedTotals};
use crate::views::watch;
use chrono::{DateTime, Utc};
use fleet::{Name, Rru};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

/// The most servers one call lists. A page costs a look at every target there is, so pages are
/// large: 10,000 servers are 1.5 MB of JSON.
pub const SERVERS_PAGE_MAX: u32 = 10_000;

/// Columns that say what a server is to reservation `$1`, whose promise is `$2`.
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

/// Events that cover racks and more, and what is cordoned, which counts as under maintenance: few, so they
/// are looked up once and not for each server.
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

/// A server `s` with its place and what covers it now, by each of its scopes.
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

/// A server by name, its place and type.
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

/// A page of what reservation `$1` owns, gets and borrows, each by its own way, with a further
/// condition on every server.
macro_rules! reserved {
    ($where:literal) => {
        concat!(
            "WITH ",
            super::wide!(),
            "SELECT ",
            super::columns!(),
            ", ",
            super::described!(),
            " FROM ((SELECT * FROM servers WHERE current_reservation_id = $1 AND server > $3",
            $where,
            " ORDER BY server LIMIT $4) UNION ALL (SELECT * FROM servers WHERE target_pending \
                AND target_reservation_id = $1 AND current_reservation_id IS DISTINCT FROM $1 \
                AND server > $3",
            $where,
            " ORDER BY server LIMIT $4) UNION ALL (SELECT * FROM servers WHERE loan_reservation_id = $1 \
                AND current_reservation_id IS DISTINCT FROM $1 \
                AND NOT (target_pending AND target_reservation_id IS NOT DISTINCT FROM $1) \
                AND (loan_reservation_id, server) > ($1, $3)",
            $where,
            " ORDER BY server LIMIT $4) ORDER BY server LIMIT $4) s",
            super::placed!(),
            "ORDER BY s.server"
        )
    };
}
use reserved;

pub(crate) mod sql {
    crate::statements! {
        /// The reservation, and where the trail is.
        HEADER = "SELECT c.seq, now(), r.reservation_id, r.promise_id, r.kind, p.capacity_micro \
            FROM trail_clock c LEFT JOIN (reservations r JOIN promises p USING (promise_id)) \
                ON r.reservation = $1";
        /// What is owned, lent and about to come has an index each; the comparison of pairs keeps the
        /// planner from walking through all names instead. That of the last makes a publication
        /// dearer, by 18 µs a server; without it every page looks at every server of the region.
        RESERVED = super::reserved!("");
        /// The same in one MSB, of one hardware type, or both.
        RESERVED_IN = super::reserved!(" AND ($5::text IS NULL OR rack_id IN (SELECT k.rack_id FROM racks k \
            JOIN msbs b USING (msb_id) WHERE b.msb = $5)) AND ($6::text IS NULL OR hardware_type_id = \
            (SELECT h.hardware_type_id FROM hardware_types h WHERE h.hardware_type = $6))");
    }
}

/// What a server is to a reservation, and so what an allocator may do with it.
///
/// One state at a time, the first that holds: a server that is out of use is `Unavailable` whatever
/// else is so, one that leaves is to be emptied even if maintenance comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerState {
    /// An unplanned event covers it: nothing runs there.
    Unavailable,
    /// It goes to somebody else, or back to its owner: place nothing, containers will end.
    Leaving,
    /// Planned maintenance covers it: place nothing until it is over.
    InMaintenance,
    /// Its own, lent to an elastic reservation.
    OnLoan,
    /// Another's, lent to this elastic reservation: place what may be ended at any time.
    Borrowed,
    /// It will be bound to this reservation, and is not yet.
    Arriving,
    /// Its own, to place containers on.
    Available,
}

/// All that decides a state.
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
    /// `None`: it has nothing to do with the reservation.
    pub(crate) fn state(self) -> Option<ServerState> {
        if !(self.bound || self.comes || self.borrows) {
            return None;
        }
        // Whoever only borrows loses it to any move, and when it is recalled.
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
    pub server: Name,
    /// What may be done with it.
    pub state: ServerState,
    /// Whether the reservation owns it now.
    pub bound: bool,
    /// Whether containers are known to run on it.
    pub in_use: bool,
    /// Where it is.
    pub datacenter: Name,
    /// Where in there.
    pub msb: Name,
    /// And where in there.
    pub rack: Name,
    /// What it is.
    pub hardware_type: Name,
    /// What it is worth to the reservation, in RRU.
    #[serde(serialize_with = "rru")]
    pub rru: Rru,
    /// The elastic reservation that borrows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loaned_to: Option<Name>,
}

/// Which of a reservation's servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedFilter {
    /// Those in this MSB.
    pub msb: Option<String>,
    /// Those of this hardware type.
    pub hardware_type: Option<String>,
}

/// A page of a reservation's servers, as of one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReservedPage {
    /// The last entry of the audit trail at that instant: where to follow from.
    pub seq: Seq,
    /// On the first page.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub totals: Option<ReservedTotals>,
    /// The servers, in order of name.
    pub servers: Vec<ReservedServer>,
    /// Where the next page begins; `None`: this is the last.
    pub next: Option<Name>,
}

/// As a number that is exact to the micro-RRU.
pub(crate) fn rru<S: serde::Serializer>(amount: &Rru, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(amount.to_f64())
}

/// A reservation at one instant.
pub(crate) struct Header {
    pub(crate) seq: Seq,
    pub(crate) now: DateTime<Utc>,
    /// Its number, that of its promise, and what is promised; `None`: there is none.
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

impl Broker {
    /// Lists the servers that a reservation owns, gets or borrows, in order of name: those after
    /// `after` (from the first, if it is empty), at most `limit` and at most [`SERVERS_PAGE_MAX`].
    ///
    /// # Errors
    /// [`ReservationError`].
    pub async fn reserved_servers(
        &self,
        reservation: &str,
        after: &str,
        limit: u32,
    ) -> Result<ReservedPage, ReservationError> {
        self.reserved_servers_in(reservation, &ReservedFilter::default(), after, limit).await
    }

    /// The same of those in one MSB, of one hardware type, or both. Totals are of all of them.
    ///
    /// # Errors
    /// [`ReservationError`].
    pub async fn reserved_servers_in(
        &self,
        reservation: &str,
        filter: &ReservedFilter,
        after: &str,
        limit: u32,
    ) -> Result<ReservedPage, ReservationError> {
        let doing = "listing what a reservation has";
        let limit = limit.clamp(1, SERVERS_PAGE_MAX);
        let unknown = || ReservationError::Unknown { name: reservation.to_owned() };
        let first = after.is_empty();
        let all = *filter == ReservedFilter::default();
        if first && all {
            let mut db = self.pool.acquire().await.doing(doing)?;
            let header = header(&mut db, reservation).await.doing(doing)?;
            if let Some((totals, servers)) = self.kept.page(&header, limit) {
                return Ok(ReservedPage::new(header.seq, Some(totals), servers, limit));
            }
        }
        let mut tx = self.begin_reading().await.doing(doing)?;
        let header = header(&mut tx, reservation).await.doing(doing)?;
        let of = header.reservation.ok_or_else(unknown)?;
        let mut totals = None;
        if first {
            self.kept.read_on(&mut tx, &header).await.doing(doing)?;
            if let Some((totals, servers)) = self.kept.page(&header, limit).filter(|_| all) {
                tx.commit().await.doing(doing)?;
                return Ok(ReservedPage::new(header.seq, Some(totals), servers, limit));
            }
            totals = Some(self.totals(&mut tx, &header, of).await.doing(doing)?);
        }
        let page = sqlx::query(if all { sql::RESERVED } else { sql::RESERVED_IN })
            .bind(of.0)
            .bind(of.1)
            .bind(after)
            .bind(i64::from(limit));
        let page = if all { page } else { page.bind(&filter.msb).bind(&filter.hardware_type) };
        let servers: Vec<Option<ReservedServer>> = page
            .try_map(|row: PgRow| Ok(server(&row)?.ok()))
            .fetch_all(&mut *tx)
            .await
            .doing(doing)?;
        let servers: Vec<ReservedServer> = servers.into_iter().flatten().collect();
        tx.commit().await.doing(doing)?;
        if first && all {
            self.kept.set_page(&header, limit, &servers);
        }
        Ok(ReservedPage::new(header.seq, totals, servers, limit))
    }

    /// The sums of a reservation as of this header, made anew if what was kept may be past.
    async fn totals(
        &self,
        db: &mut PgConnection,
        header: &Header,
        of: (i32, i64, Rru),
    ) -> Result<ReservedTotals, sqlx::Error> {
        if let Some(totals) = self.kept.totals(header) {
            return Ok(totals);
        }
        let totals = totals::sum(db, of).await?;
        let until = sqlx::query_scalar(totals::sql::UNTIL).fetch_one(&mut *db).await?;
        let mut own: Vec<i32> =
            sqlx::query_scalar(watch::sql::OWN).bind(of.0).fetch_all(db).await?;
        own.sort_unstable();
        self.kept.keep(of.0, Kept::new((header, of.1), own, totals, until));
        Ok(totals)
    }
}

impl ReservedPage {
    fn new(
        seq: Seq,
        totals: Option<ReservedTotals>,
        servers: Vec<ReservedServer>,
        limit: u32,
    ) -> ReservedPage {
        let full = servers.len() == limit as usize;
        let next = servers.last().filter(|_| full).map(|last| last.server.clone());
        ReservedPage { seq, totals, servers, next }
    }
}

/// What decides a state, and the server's worth: the columns of `columns!`.
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

/// A row of `columns!` and `described!`; `Err`: the name of a server that is none of the
/// reservation's.
pub(crate) fn server(row: &PgRow) -> Result<Result<ReservedServer, Name>, sqlx::Error> {
    let name = |column: usize| row.try_get::<&str, _>(column).map(Name::from);
    let (facts, rru) = facts(row)?;
    let Some(state) = facts.state() else { return Ok(Err(name(9)?)) };
    Ok(Ok(ReservedServer {
        server: name(9)?,
        state,
        bound: facts.bound,
        in_use: row.try_get(14)?,
        datacenter: name(10)?,
        msb: name(11)?,
        rack: name(12)?,
        hardware_type: name(13)?,
        rru,
        loaned_to: row.try_get::<Option<&str>, _>(15)?.map(Name::from),
    }))
}

#[cfg(test)]
mod tests {
    use super::{Facts, ServerState};

    #[test]
    fn the_first_state_that_holds_counts() {
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
