//! Rows of unavailability events, as loads and maintenance write them.

use crate::infra::error::{DbError, Doing};
use fleet::{Name, UnavailabilityRow};
use sqlx::PgConnection;

pub(crate) mod sql {
    crate::statements! {
        /// An unknown name of a scope leaves all columns null, and the table refuses the row.
        WRITE = "INSERT INTO unavailability \
                (event_id, server_id, rack_id, msb_id, datacenter_id, kind, started_at, ended_at, \
                recall_minutes) \
            SELECT w.event, s.server_id, r.rack_id, m.msb_id, d.datacenter_id, w.kind, w.started, w.ended, w.recall \
            FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::timestamptz[], \
                $7::integer[]) AS w (event, scope, name, kind, started, ended, recall) \
            LEFT JOIN servers s ON w.scope = 'server' AND s.server = w.name \
            LEFT JOIN racks r ON w.scope = 'rack' AND r.rack = w.name \
            LEFT JOIN msbs m ON w.scope = 'msb' AND m.msb = w.name \
            LEFT JOIN datacenters d ON w.scope = 'datacenter' AND d.datacenter = w.name \
            ON CONFLICT (event_id) DO UPDATE SET server_id = excluded.server_id, \
                rack_id = excluded.rack_id, msb_id = excluded.msb_id, \
                datacenter_id = excluded.datacenter_id, kind = excluded.kind, \
                started_at = excluded.started_at, ended_at = excluded.ended_at, \
                recall_minutes = excluded.recall_minutes";
        REMOVE = "DELETE FROM unavailability WHERE event_id = ANY ($1)";
    }
}

/// Stores events, replacing existing ones.
pub(crate) async fn write(
    db: &mut PgConnection,
    rows: &[&UnavailabilityRow],
) -> Result<(), DbError> {
    if rows.is_empty() {
        return Ok(());
    }
    let text = |of: fn(&UnavailabilityRow) -> &Name| -> Vec<&str> {
        rows.iter().map(|row| of(row).as_ref()).collect()
    };
    let written = sqlx::query(sql::WRITE)
        .bind(text(|row| &row.event_id))
        .bind(text(|row| &row.scope))
        .bind(text(|row| &row.scope_id))
        .bind(text(|row| &row.kind))
        .bind(rows.iter().map(|row| row.started_at).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.ended_at).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.recall_minutes).collect::<Vec<_>>())
        .execute(db)
        .await;
    written.map(|_| ()).doing("storing unavailability events")
}
