//! Outages: lost MSBs, with the start and end of the loss.
//!
//! A pure function judges from counts whether an MSB is lost. The row of an outage keeps a number that cannot
//! be counted later: the loans at its start.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::moves::mover::{Epoch, MoverError, check_fence};
use chrono::{DateTime, Utc};
use decisions::outage::{MsbHealth, OutServer, OutageReason};
use fleet::MsbName;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::BTreeMap;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        /// MSBs with servers out of use, and those lost before; the failures that no solve has seen, with time
        /// and rack: one rack is one switch, which is no outage. A rack with the name of its MSB is a
        /// placeholder for unknown racks.
        HEALTH = "WITH gone AS (SELECT s.server_id, s.rack_id, min(u.started_at) AS since, \
                    min(u.recorded_at) > coalesce((SELECT max(v.started_at) FROM solves v \
                        WHERE v.state = 'published'), '-infinity') AS unseen, \
                    bool_or(u.scope IN ('msb', 'datacenter') OR u.kind = 'correlated_failure') AS reported \
                FROM unavailable_servers u CROSS JOIN LATERAL \
                    (SELECT server_id, rack_id FROM servers WHERE server_id = u.server_id OFFSET 0) s \
                WHERE u.kind <> 'planned_maintenance' AND u.event_id NOT LIKE ALL (ARRAY['unfinished/%', 'decommission/%']) \
                GROUP BY s.server_id, s.rack_id) \
            SELECT m.msb::text, count(o.server_id), coalesce(bool_or(o.reported), false), \
                EXISTS (SELECT FROM outages x WHERE x.msb_id = m.msb_id AND x.ended_at IS NULL), \
                coalesce(array_agg(o.since ORDER BY o.server_id) FILTER (WHERE o.unseen), '{}'), \
                coalesce(array_agg(CASE WHEN k.rack::text <> m.msb::text THEN k.rack_id END \
                    ORDER BY o.server_id) FILTER (WHERE o.unseen), '{}') \
            FROM msbs m LEFT JOIN (gone o JOIN racks k USING (rack_id)) ON k.msb_id = m.msb_id \
            GROUP BY m.msb_id HAVING count(o.server_id) > 0 OR \
                EXISTS (SELECT FROM outages x WHERE x.msb_id = m.msb_id AND x.ended_at IS NULL) \
            ORDER BY m.msb";
        SIZES = "SELECT m.msb::text, count(*) FROM servers s JOIN racks k USING (rack_id) \
            JOIN msbs m USING (msb_id) GROUP BY 1";
        BEGIN = "INSERT INTO outages (outage_id, msb_id, msb, reason, servers, lent) \
            SELECT $1, m.msb_id, m.msb, $3, $4, (SELECT count(*) FROM servers s \
                    JOIN reservations r ON r.reservation_id = s.current_reservation_id \
                    WHERE s.loan_reservation_id IS NOT NULL AND r.kind = 'guaranteed') \
            FROM msbs m WHERE m.msb = $2 AND NOT EXISTS \
                (SELECT FROM outages o WHERE o.msb_id = m.msb_id AND o.ended_at IS NULL) RETURNING lent";
        END = "UPDATE outages o SET ended_at = greatest(clock_timestamp(), o.began_at) FROM msbs m \
            WHERE m.msb_id = o.msb_id AND m.msb = $1 AND o.ended_at IS NULL";
        LISTED = "SELECT msb, reason, began_at, ended_at, servers, lent FROM outages \
            WHERE ended_at IS NULL OR NOT $1 ORDER BY began_at DESC, outage_id DESC LIMIT $2";
    }
}

/// An outage of an MSB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outage {
    /// The MSB.
    pub msb: MsbName,
    /// The reason why the MSB counts as lost.
    pub reason: OutageReason,
    /// The time the mover noticed the loss.
    pub began_at: DateTime<Utc>,
    /// The time it noticed the end; `None`: still lost.
    pub ended_at: Option<DateTime<Utc>>,
    /// Servers out of use in the MSB at the start.
    pub servers: i32,
    /// Lent servers of guaranteed reservations at the start.
    pub lent: i32,
}

impl Broker {
    /// The number of servers of each MSB. Scans all servers, so call it rarely.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn msb_sizes(&self) -> Result<BTreeMap<MsbName, u64>, DbError> {
        let rows: Vec<(String, i64)> =
            sqlx::query_as(sql::SIZES).fetch_all(&self.pool).await.doing("counting servers")?;
        Ok(rows.into_iter().map(|(msb, count)| (msb.into(), count.unsigned_abs())).collect())
    }

    /// Counts servers out of use in each MSB, asks a pure function which MSBs are lost, and records new outages
    /// and ended ones. Returns whether there were any.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn note_outages(
        &self,
        actor: &str,
        epoch: Epoch,
        sizes: &BTreeMap<MsbName, u64>,
        judge: impl FnOnce(&[MsbHealth]) -> BTreeMap<MsbName, OutageReason>,
    ) -> Result<bool, MoverError> {
        let doing = "looking for outages";
        let health: Vec<MsbHealth> = sqlx::query(sql::HEALTH)
            .try_map(|row: PgRow| health(&row, sizes))
            .fetch_all(&self.pool)
            .await
            .doing(doing)?;
        let lost = judge(&health);
        let begun = health.iter().filter_map(|of| {
            let reason = lost.get(&of.msb).filter(|_| !of.was_lost)?;
            Some((of, *reason))
        });
        let begun: Vec<(&MsbHealth, OutageReason)> = begun.collect();
        let ended: Vec<&MsbHealth> =
            health.iter().filter(|of| of.was_lost && !lost.contains_key(&of.msb)).collect();
        if begun.is_empty() && ended.is_empty() {
            return Ok(false);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        check_fence(change.connection(), epoch).await?;
        for (of, reason) in begun {
            let lent: Option<i32> = sqlx::query_scalar(sql::BEGIN)
                .bind(Uuid::now_v7())
                .bind(&*of.msb)
                .bind(reason.as_str())
                .bind(i32::try_from(of.out).unwrap_or(i32::MAX))
                .fetch_optional(change.connection())
                .await
                .doing(doing)?;
            let (servers, out, failed_lately) = (of.servers, of.out, of.failed.len());
            change
                .record(&of.msb, Event::OutageBegan { reason, servers, out, failed_lately, lent });
        }
        for of in ended {
            let ended = sqlx::query(sql::END).bind(&*of.msb);
            ended.execute(change.connection()).await.doing(doing)?;
            change.record(&of.msb, Event::OutageEnded { servers: of.servers, out: of.out });
        }
        change.commit().await?;
        Ok(true)
    }

    /// Lists outages, newest first; `open`: only current ones.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn outages(&self, open: bool, limit: u32) -> Result<Vec<Outage>, DbError> {
        let rows = sqlx::query(sql::LISTED)
            .bind(open)
            .bind(i64::from(limit))
            .try_map(|row: PgRow| outage(&row))
            .fetch_all(&self.pool);
        rows.await.doing("listing outages")
    }
}

fn health(row: &PgRow, sizes: &BTreeMap<MsbName, u64>) -> Result<MsbHealth, sqlx::Error> {
    let msb: MsbName = row.try_get::<&str, _>(0)?.into();
    let out: i64 = row.try_get(1)?;
    let (since, racks): (Vec<DateTime<Utc>>, Vec<Option<i32>>) = (row.try_get(4)?, row.try_get(5)?);
    let failed = since.into_iter().zip(racks).map(|(since, rack)| OutServer { since, rack });
    let servers = sizes.get(&*msb).copied().unwrap_or(0);
    Ok(MsbHealth {
        msb,
        servers,
        out: out.unsigned_abs(),
        failed: failed.collect(),
        reported: row.try_get(2)?,
        was_lost: row.try_get(3)?,
    })
}

fn outage(row: &PgRow) -> Result<Outage, sqlx::Error> {
    Ok(Outage {
        msb: row.try_get::<&str, _>(0)?.into(),
        reason: words::read(
            "outages.reason",
            OutageReason::ALL,
            OutageReason::as_str,
            row.try_get(1)?,
        )?,
        began_at: row.try_get(2)?,
        ended_at: row.try_get(3)?,
        servers: row.try_get(4)?,
        lent: row.try_get(5)?,
    })
}
