//! The servers that a reservation owns.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::words::{name, optional_name};
use fleet::{DatacenterName, HardwareTypeName, MsbName, RackName, ReservationName, ServerName};
use sqlx::Row;
use sqlx::postgres::PgRow;

/// The most servers per page.
pub const PAGE_MAX: u32 = 1_000;

pub(crate) mod sql {
    crate::statements! {
        RESERVATION_ID = "SELECT reservation_id FROM reservations WHERE reservation = $1";
        OWNER = "SELECT p.owner FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.reservation = $1";
        /// A page in order of name, from the index. `OFFSET 0` keeps the planner from reading every rack for a
        /// few servers.
        HELD_SERVERS = "SELECT p.server, d.datacenter::text, m.msb::text, p.rack, \
                h.hardware_type::text, p.in_use, p.target_pending, \
                (SELECT t.reservation FROM reservations t WHERE t.reservation_id = p.target_reservation_id), \
                (SELECT l.reservation FROM reservations l WHERE l.reservation_id = p.loan_reservation_id), \
                p.generation \
            FROM (SELECT s.server::text, k.rack::text, k.msb_id, s.hardware_type_id, s.in_use, \
                    s.target_pending, s.target_reservation_id, s.loan_reservation_id, s.generation \
                FROM (SELECT * FROM servers WHERE current_reservation_id = \
                        (SELECT reservation_id FROM reservations WHERE reservation = $1) \
                    AND server > $2 ORDER BY server LIMIT $3) s \
                JOIN LATERAL (SELECT rack, msb_id FROM racks WHERE rack_id = s.rack_id OFFSET 0) k ON true \
                OFFSET 0) p \
            JOIN msbs m USING (msb_id) JOIN datacenters d USING (datacenter_id) \
            JOIN hardware_types h USING (hardware_type_id) ORDER BY p.server";
    }
}

/// A server of a reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldServer {
    /// The server.
    pub server: ServerName,
    /// The server's datacenter.
    pub datacenter: DatacenterName,
    /// The server's MSB.
    pub msb: MsbName,
    /// The server's rack.
    pub rack: RackName,
    /// The server's hardware type.
    pub hardware_type: HardwareTypeName,
    /// Whether containers run on it.
    pub in_use: bool,
    /// The next owner, if a move is open; `Some(None)`: the server becomes free.
    pub leaves_for: Option<Option<ReservationName>>,
    /// The elastic reservation that borrows it.
    pub loaned_to: Option<ReservationName>,
    /// The server's generation.
    pub generation: i64,
}

/// The servers of a reservation cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum ReservationError {
    /// Unknown reservation.
    #[error("there is no reservation {name:?}")]
    Unknown {
        /// The requested name.
        name: String,
    },
    /// Postgres failed.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// The owner of a reservation; `None`: unknown reservation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_owner(&self, name: &str) -> Result<Option<String>, DbError> {
        let owner = sqlx::query_scalar(sql::OWNER).bind(name).fetch_optional(&self.pool).await;
        owner.doing("asking whose a reservation is")
    }

    /// Lists the servers that a reservation owns, in order of name: those after `after` (empty: from the
    /// first), at most `limit` and at most [`PAGE_MAX`].
    ///
    /// # Errors
    /// [`ReservationError`].
    pub async fn servers_of(
        &self,
        reservation: &str,
        after: &str,
        limit: u32,
    ) -> Result<Vec<HeldServer>, ReservationError> {
        let doing = "listing a reservation's servers";
        let mut db = self.pool.acquire().await.doing(doing)?;
        let rows = sqlx::query(sql::HELD_SERVERS)
            .bind(reservation)
            .bind(after)
            .bind(i64::from(limit.min(PAGE_MAX)))
            .try_map(|row: PgRow| held(&row))
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        if rows.is_empty() {
            // An empty page may mean an unknown reservation: only then ask.
            let id: Option<i32> = sqlx::query_scalar(sql::RESERVATION_ID)
                .bind(reservation)
                .fetch_optional(&mut *db)
                .await
                .doing(doing)?;
            id.ok_or_else(|| ReservationError::Unknown { name: reservation.to_owned() })?;
        }
        Ok(rows)
    }
}

fn held(row: &PgRow) -> Result<HeldServer, sqlx::Error> {
    let pending: bool = row.try_get(6)?;
    let target = optional_name(row, 7)?;
    Ok(HeldServer {
        server: name(row, 0)?,
        datacenter: name(row, 1)?,
        msb: name(row, 2)?,
        rack: name(row, 3)?,
        hardware_type: name(row, 4)?,
        in_use: row.try_get(5)?,
        leaves_for: pending.then_some(target),
        loaned_to: optional_name(row, 8)?,
        generation: row.try_get(9)?,
    })
}
