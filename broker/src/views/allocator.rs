//! The view of container allocators: the servers that a reservation owns, receives or borrows, each with its
//! state.

use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use crate::log::trail::Seq;
use crate::views::page_cache::{CachedReservation, PageCache};
use crate::views::reservation::ReservationError;
use crate::views::reserved_server::{
    self, Header, ReservedServer, columns, described, header, placed, server, wide,
};
use crate::views::totals::{self, ReservedTotals};
use fleet::{Rru, ServerName};
use serde::Serialize;
use sqlx::PgConnection;
use sqlx::postgres::PgRow;
use std::sync::Arc;

/// The most servers per page. Pages are large because each costs a pass over all open targets: 10,000 servers
/// are 1.5 MB of JSON.
pub const SERVERS_PAGE_MAX: u32 = 10_000;

/// A page of the servers that reservation `$1` owns, receives and borrows, each set through its own index, with
/// a further condition on each server.
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
        /// Owned, arriving and borrowed servers have one index each; the comparison of pairs keeps the planner
        /// from scanning all names. The index for borrowed servers costs a publication 18 µs per server;
        /// without it, each page would scan the region.
        RESERVED = super::reserved!("");
        /// A page limited to one MSB, one hardware type, or both.
        RESERVED_IN = super::reserved!(" AND ($5::text IS NULL OR rack_id IN (SELECT k.rack_id FROM racks k \
            JOIN msbs b USING (msb_id) WHERE b.msb = $5)) AND ($6::text IS NULL OR hardware_type_id = \
            (SELECT h.hardware_type_id FROM hardware_types h WHERE h.hardware_type = $6))");
    }
}

/// A filter on the servers of a reservation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedFilter {
    /// Only servers in this MSB.
    pub msb: Option<String>,
    /// Only servers of this hardware type.
    pub hardware_type: Option<String>,
}

/// A page of a reservation's servers at one instant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReservedPage {
    /// The last entry of the audit trail at that instant: the position to watch from.
    pub seq: Seq,
    /// The sums over all servers; on the first page only.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub totals: Option<ReservedTotals>,
    /// The servers, in order of name.
    pub servers: Vec<ReservedServer>,
    /// The start of the next page; `None`: this is the last.
    pub next: Option<ServerName>,
}

/// The view that container allocators read, with a cache of first pages. Cheap to clone; clones share the
/// cache.
#[derive(Clone, Debug)]
pub struct AllocatorView {
    broker: Broker,
    pages: Arc<PageCache>,
}

impl AllocatorView {
    /// A view with an empty cache.
    pub fn new(broker: Broker) -> AllocatorView {
        AllocatorView { broker, pages: Arc::default() }
    }

    /// Lists the servers that a reservation owns, gets or borrows, in order of name: those after
    /// `after` (from the first, if it is empty), at most `limit` and at most [`SERVERS_PAGE_MAX`].
    ///
    /// # Errors
    /// [`ReservationError`].
    pub async fn servers(
        &self,
        reservation: &str,
        after: &str,
        limit: u32,
    ) -> Result<ReservedPage, ReservationError> {
        self.servers_matching(reservation, &ReservedFilter::default(), after, limit).await
    }

    /// Lists the servers in one MSB, of one hardware type, or both, like [`AllocatorView::servers`]. The totals
    /// cover all servers of the reservation.
    ///
    /// # Errors
    /// [`ReservationError`].
    pub async fn servers_matching(
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
            let mut db = self.broker.pool.acquire().await.doing(doing)?;
            let header = header(&mut db, reservation).await.doing(doing)?;
            if let Some((totals, servers)) = self.pages.page(&header, limit) {
                return Ok(ReservedPage::new(header.seq, Some(totals), servers, limit));
            }
        }
        let mut tx = self.broker.begin_reading().await.doing(doing)?;
        let header = header(&mut tx, reservation).await.doing(doing)?;
        let of = header.reservation.ok_or_else(unknown)?;
        let mut totals = None;
        if first {
            self.pages.read_on(&mut tx, &header).await.doing(doing)?;
            if let Some((totals, servers)) = self.pages.page(&header, limit).filter(|_| all) {
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
            self.pages.set_page(&header, limit, &servers);
        }
        Ok(ReservedPage::new(header.seq, totals, servers, limit))
    }

    /// The sums of a reservation as of this header, from the cache if the entry is still valid.
    async fn totals(
        &self,
        db: &mut PgConnection,
        header: &Header,
        of: (i32, i64, Rru),
    ) -> Result<ReservedTotals, sqlx::Error> {
        if let Some(totals) = self.pages.totals(header) {
            return Ok(totals);
        }
        let totals = totals::sum(db, of).await?;
        let until = sqlx::query_scalar(totals::sql::UNTIL).fetch_one(&mut *db).await?;
        let mut own: Vec<i32> =
            sqlx::query_scalar(reserved_server::sql::OWN).bind(of.0).fetch_all(db).await?;
        own.sort_unstable();
        self.pages.keep(of.0, CachedReservation::new((header, of.1), own, totals, until));
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
