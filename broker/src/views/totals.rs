//! Sums over the servers of a reservation.

use crate::views::reserved_server::{self, ServerState};
use fleet::{Name, Rru};
use serde::Serialize;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        /// Owned and borrowed servers, counted by MSB and by the facts that decide their state. Columns as in
        /// `columns!`; events of racks, MSBs and datacenters, which are few, are read once and not per server.
        TOTALS = concat!("WITH ", crate::views::reserved_server::wide!(), "\
            SELECT g.bound, g.pending, g.comes, g.borrows, g.lent, g.recalled, \
                g.failed OR EXISTS (SELECT FROM wide w WHERE NOT w.planned \
                    AND (w.msb_id = m.msb_id OR w.datacenter_id = m.datacenter_id)), \
                g.maintained OR EXISTS (SELECT FROM wide w WHERE w.planned \
                    AND (w.msb_id = m.msb_id OR w.datacenter_id = m.datacenter_id)), \
                coalesce((SELECT v.value_micro FROM rru_values v WHERE v.promise_id = $2::bigint \
                    AND v.hardware_type_id = g.hardware_type_id), 0), m.msb::text, g.servers \
            FROM (SELECT s.current_reservation_id IS NOT DISTINCT FROM $1::integer AS bound, \
                    s.target_pending AS pending, \
                    s.target_pending AND s.target_reservation_id IS NOT DISTINCT FROM $1 AS comes, \
                    s.loan_reservation_id IS NOT DISTINCT FROM $1 AS borrows, \
                    s.loan_reservation_id IS NOT NULL AS lent, \
                    s.current_reservation_id IS DISTINCT FROM $1 AND coalesce((SELECT o.origin = 'recall' \
                        FROM moves o WHERE o.open AND o.server_id = s.server_id), false) AS recalled, \
                    coalesce(e.failed, false) \
                        OR s.rack_id IN (SELECT rack_id FROM wide WHERE NOT planned AND rack_id IS NOT NULL) AS failed, \
                    coalesce(e.maintained, false) \
                        OR s.server_id IN (SELECT server_id FROM wide WHERE server_id IS NOT NULL) \
                        OR s.rack_id IN (SELECT rack_id FROM wide WHERE planned AND rack_id IS NOT NULL) AS maintained, \
                    s.hardware_type_id, k.msb_id, count(*) AS servers \
                FROM (SELECT * FROM servers WHERE current_reservation_id = $1 \
                    UNION ALL SELECT * FROM servers WHERE loan_reservation_id = $1 \
                        AND current_reservation_id IS DISTINCT FROM $1) s \
                JOIN LATERAL (SELECT msb_id FROM racks WHERE rack_id = s.rack_id OFFSET 0) k ON true \
                CROSS JOIN LATERAL (SELECT bool_or(u.kind <> 'planned_maintenance') AS failed, \
                        bool_or(u.kind = 'planned_maintenance') AS maintained FROM unavailability u \
                    WHERE u.server_id = s.server_id \
                        AND u.started_at <= now() AND coalesce(u.ended_at, 'infinity') > now()) e \
                GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10) g JOIN msbs m USING (msb_id)");
        /// The next time when the clock changes the sums: an event begins or ends.
        UNTIL = "SELECT least((SELECT min(started_at) FROM unavailability WHERE started_at > now()), \
            (SELECT nullif(min(coalesce(ended_at, 'infinity')), 'infinity') FROM unavailability \
                WHERE coalesce(ended_at, 'infinity') > now()))";
    }
}

/// The capacity of a reservation and the RRU it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ReservedTotals {
    /// The promised capacity.
    #[serde(rename = "capacity_rru", serialize_with = "crate::views::reserved_server::rru")]
    pub capacity: Rru,
    /// The RRU ready for containers: available and borrowed servers.
    #[serde(rename = "available_rru", serialize_with = "crate::views::reserved_server::rru")]
    pub available: Rru,
    /// The largest MSB share of its owned servers in service: z of eq. 4.
    #[serde(rename = "embedded_buffer_rru", serialize_with = "crate::views::reserved_server::rru")]
    pub embedded_buffer: Rru,
}

/// The sums of a reservation, given the numbers of the reservation and its promise, and the capacity.
pub(crate) async fn sum(
    db: &mut PgConnection,
    (id, promise, capacity): (i32, i64, Rru),
) -> Result<ReservedTotals, sqlx::Error> {
    let rows: Vec<PgRow> = sqlx::query(sql::TOTALS).bind(id).bind(promise).fetch_all(db).await?;
    let mut totals = ReservedTotals { capacity, ..ReservedTotals::default() };
    let mut shares: BTreeMap<Name, Rru> = BTreeMap::new();
    for row in rows {
        let (facts, value) = reserved_server::facts(&row)?;
        let count: i64 = row.try_get(10)?;
        let worth = Rru(value.0.saturating_mul(count));
        if matches!(facts.state(), Some(ServerState::Available | ServerState::Borrowed)) {
            totals.available += worth;
        }
        if facts.bound && !facts.failed {
            let msb = row.try_get::<&str, _>(9).map(Into::into)?;
            *shares.entry(msb).or_default() += worth;
        }
    }
    totals.embedded_buffer = shares.into_values().max().unwrap_or_default();
    Ok(totals)
}
