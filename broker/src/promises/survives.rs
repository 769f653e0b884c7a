//! The fault domains that cross MSBs whose loss reservations survive, and the servers in them.

use decisions::domains::Domain;
use fleet::{PartitionName, ReservationName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        SURVIVES = "SELECT r.reservation, p.partition::text FROM reservations r JOIN survives s USING (promise_id) \
            JOIN partitions p USING (partition_id) WHERE r.reservation = ANY ($1)";
        /// What they own now, and what they hold once moves under way are done, in each domain of the partitions that they
        /// survive. Servers out of use do not count. A scan of all servers.
        HELD_IN_DOMAINS = "WITH wanted AS (SELECT r.reservation_id, r.promise_id, r.reservation, s.partition_id \
                FROM reservations r JOIN survives s USING (promise_id) WHERE r.reservation = ANY ($1)), \
            held AS (SELECT s.current_reservation_id AS reservation_id, false AS later, s.server_id, \
                    s.hardware_type_id FROM servers s \
                UNION ALL SELECT CASE WHEN s.target_pending THEN s.target_reservation_id \
                    ELSE s.current_reservation_id END, true, s.server_id, s.hardware_type_id \
                FROM servers s) \
            SELECT r.reservation, h.later, p.partition::text, d.domain::text, sum(v.value_micro)::bigint \
            FROM wanted r JOIN held h USING (reservation_id) \
            JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = h.hardware_type_id \
            JOIN server_domains d ON d.server_id = h.server_id AND d.partition_id = r.partition_id \
            JOIN partitions p ON p.partition_id = d.partition_id \
            LEFT JOIN servers_out_of_use(false) AS u ON u = h.server_id \
            WHERE u IS NULL GROUP BY 1, 2, 3, 4";
    }
}

/// The partitions that each of these reservations survives; only those that survive any.
pub(crate) async fn read(
    db: &mut PgConnection,
    of: &[&str],
) -> Result<BTreeMap<ReservationName, BTreeSet<PartitionName>>, sqlx::Error> {
    let rows: Vec<(String, String)> =
        sqlx::query_as(sql::SURVIVES).bind(of).fetch_all(&mut *db).await?;
    let mut survives: BTreeMap<ReservationName, BTreeSet<PartitionName>> = BTreeMap::new();
    for (reservation, partition) in rows {
        survives.entry(reservation.into()).or_default().insert(partition.into());
    }
    Ok(survives)
}

/// RRU that a reservation has in a domain.
pub(crate) struct HeldInDomain {
    pub(crate) reservation: ReservationName,
    /// Once moves under way are done; otherwise now.
    pub(crate) later: bool,
    pub(crate) domain: Domain,
    pub(crate) amount: Rru,
}

/// What these reservations have in the domains of the partitions that they survive.
pub(crate) async fn held(
    db: &mut PgConnection,
    of: &[&str],
) -> Result<Vec<HeldInDomain>, sqlx::Error> {
    let held = |row: PgRow| {
        let name = |column: usize| row.try_get::<&str, _>(column);
        Ok(HeldInDomain {
            reservation: name(0)?.into(),
            later: row.try_get(1)?,
            domain: Domain { partition: name(2)?.into(), name: name(3)?.into() },
            amount: Rru(row.try_get(4)?),
        })
    };
    sqlx::query(sql::HELD_IN_DOMAINS).bind(of).try_map(held).fetch_all(db).await
}

/// Domains from a column of `domains_of`.
pub(crate) fn domains(row: &PgRow, column: usize) -> Result<Vec<Domain>, sqlx::Error> {
    let words: Vec<String> = row.try_get(column)?;
    let (pairs, _) = words.as_chunks::<2>();
    let domain = |[partition, name]: &[String; 2]| Domain {
        partition: partition.as_str().into(),
        name: name.as_str().into(),
    };
    Ok(pairs.iter().map(domain).collect())
}
