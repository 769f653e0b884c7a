//! Promised capacity and servers over time, by reservation, owner, hardware type and datacenter.
//!
//! A sample counts every cell: the servers of one reservation, hardware type and datacenter. Only cells that have changed
//! are written, so a quiet fleet costs a row for each sample. [`super::usage_series`] adds the cells up again.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::views::time_span::{SAMPLE_EVERY, TimeSpan};
use crate::views::usage_series::{
    UsageAsked, UsageCell, UsageChange, UsageCount, UsageSeries, series,
};
use chrono::{DateTime, Utc};
use fleet::Rru;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        /// Of several servers the first writes the sample of these minutes.
        ADD_TIME = "INSERT INTO usage_samples \
            SELECT date_bin(make_interval(secs => $1), clock_timestamp(), to_timestamp(0)) \
            ON CONFLICT (at) DO NOTHING RETURNING at";
        ADD_CELLS = "INSERT INTO usage_cells (reservation, owner, hardware_type, datacenter, value_micro) \
            SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::bigint[]) \
            ON CONFLICT DO NOTHING";
        /// A cell that is not counted now has nothing.
        ADD_CHANGES = "INSERT INTO usage_changes (cell_id, at, promised_micro, held, used, lent) \
            SELECT c.cell_id, $1, coalesce(n.promised_micro, 0), coalesce(n.held, 0), coalesce(n.used, 0), coalesce(n.lent, 0) \
            FROM usage_cells c \
                LEFT JOIN unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], \
                        $7::bigint[], $8::integer[], $9::integer[], $10::integer[]) \
                    AS n (reservation, owner, hardware_type, datacenter, value_micro, promised_micro, held, used, lent) \
                    ON (c.reservation, c.owner, c.hardware_type, c.datacenter, c.value_micro) \
                        = (n.reservation, n.owner, n.hardware_type, n.datacenter, n.value_micro) \
                LEFT JOIN LATERAL (SELECT promised_micro, held, used, lent FROM usage_changes u \
                    WHERE u.cell_id = c.cell_id ORDER BY at DESC LIMIT 1) AS last ON true \
            WHERE (coalesce(last.promised_micro, 0), coalesce(last.held, 0), coalesce(last.used, 0), coalesce(last.lent, 0)) \
                <> (coalesce(n.promised_micro, 0), coalesce(n.held, 0), coalesce(n.used, 0), coalesce(n.lent, 0))";
        TIMES = "SELECT at FROM usage_samples WHERE at > $1 AND at <= $2 ORDER BY at";
        /// The changes within a span of time, and of each cell the last one before it.
        CHANGES = "SELECT u.cell_id, u.at, c.reservation, c.owner, c.hardware_type, c.datacenter, c.value_micro, \
                u.promised_micro, u.held, u.used, u.lent \
            FROM usage_cells c CROSS JOIN LATERAL ( \
                (SELECT * FROM usage_changes WHERE cell_id = c.cell_id AND at <= $1 ORDER BY at DESC LIMIT 1) \
                UNION ALL SELECT * FROM usage_changes WHERE cell_id = c.cell_id AND at > $1 AND at <= $2) AS u \
            WHERE ($3::text IS NULL OR c.reservation = $3) AND ($4::text IS NULL OR c.owner = $4) \
                AND ($5::text IS NULL OR c.hardware_type = $5) \
                AND ($6::text IS NULL OR c.datacenter = $6) \
            ORDER BY u.at, u.cell_id";
        /// Keeps what still holds after the age: the last row of each cell before it, unless the cell has nothing then.
        FORGET_CHANGES = "DELETE FROM usage_changes u \
            WHERE at < clock_timestamp() - make_interval(secs => $1) \
                AND ((promised_micro = 0 AND held = 0) OR EXISTS (SELECT FROM usage_changes later \
                    WHERE later.cell_id = u.cell_id AND later.at > u.at \
                        AND later.at < clock_timestamp() - make_interval(secs => $1)))";
        FORGET_CELLS = "DELETE FROM usage_cells c \
            WHERE NOT EXISTS (SELECT FROM usage_changes u WHERE u.cell_id = c.cell_id)";
        FORGET_TIMES = "DELETE FROM usage_samples WHERE at < clock_timestamp() - make_interval(secs => $1)";
    }
}

/// Writes the sample of the present [`SAMPLE_EVERY`], unless there is one. Cells must be distinct.
pub(super) async fn add(
    db: &mut PgConnection,
    counted: &[(UsageCell, UsageCount)],
) -> Result<(), DbError> {
    let doing = "writing servers over time";
    let at: Option<DateTime<Utc>> = sqlx::query_scalar(sql::ADD_TIME)
        .bind(SAMPLE_EVERY.as_secs_f64())
        .fetch_optional(&mut *db)
        .await
        .doing(doing)?;
    let Some(at) = at else { return Ok(()) };
    let texts = |of: fn(&UsageCell) -> &String| -> Vec<&str> {
        counted.iter().map(|(cell, _)| of(cell).as_str()).collect()
    };
    let reservations = texts(|cell| &cell.reservation);
    let owners = texts(|cell| &cell.owner);
    let types = texts(|cell| &cell.hardware_type);
    let datacenters = texts(|cell| &cell.datacenter);
    let values: Vec<i64> = counted.iter().map(|(cell, _)| cell.value.0).collect();
    let promised: Vec<i64> = counted.iter().map(|(_, count)| count.promised.0).collect();
    let counts = |of: fn(&UsageCount) -> i32| -> Vec<i32> {
        counted.iter().map(|(_, count)| of(count)).collect()
    };
    sqlx::query(sql::ADD_CELLS)
        .bind(&reservations)
        .bind(&owners)
        .bind(&types)
        .bind(&datacenters)
        .bind(&values)
        .execute(&mut *db)
        .await
        .doing(doing)?;
    let changes = sqlx::query(sql::ADD_CHANGES)
        .bind(at)
        .bind(&reservations)
        .bind(&owners)
        .bind(&types)
        .bind(&datacenters)
        .bind(&values)
        .bind(&promised)
        .bind(counts(|count| count.held))
        .bind(counts(|count| count.used))
        .bind(counts(|count| count.lent));
    changes.execute(db).await.map(|_| ()).doing(doing)
}

fn change(row: &PgRow) -> Result<UsageChange, sqlx::Error> {
    Ok(UsageChange {
        cell_id: row.try_get(0)?,
        at: row.try_get(1)?,
        cell: UsageCell {
            reservation: row.try_get(2)?,
            owner: row.try_get(3)?,
            hardware_type: row.try_get(4)?,
            datacenter: row.try_get(5)?,
            value: Rru(row.try_get(6)?),
        },
        count: UsageCount {
            promised: Rru(row.try_get(7)?),
            held: row.try_get(8)?,
            used: row.try_get(9)?,
            lent: row.try_get(10)?,
        },
    })
}

impl Broker {
    /// Series of promised capacity and servers within a span of time.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn usage_series(
        &self,
        span: TimeSpan,
        asked: &UsageAsked,
    ) -> Result<Vec<UsageSeries>, DbError> {
        let doing = "reading servers over time";
        let times: Vec<DateTime<Utc>> = sqlx::query_scalar(sql::TIMES)
            .bind(span.from)
            .bind(span.until)
            .fetch_all(&self.pool)
            .await
            .doing(doing)?;
        let changes = sqlx::query(sql::CHANGES)
            .bind(span.from)
            .bind(span.until)
            .bind(&asked.reservation)
            .bind(&asked.owner)
            .bind(&asked.hardware_type)
            .bind(&asked.datacenter)
            .try_map(|row: PgRow| change(&row))
            .fetch_all(&self.pool)
            .await
            .doing(doing)?;
        Ok(series(&times, &changes, asked))
    }

    /// Deletes what is older than an age and no longer holds.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_usage(&self, age: Duration) -> Result<(), DbError> {
        let doing = "deleting servers over time";
        for statement in [sql::FORGET_TIMES, sql::FORGET_CHANGES] {
            let deleted = sqlx::query(statement).bind(age.as_secs_f64());
            deleted.execute(&self.pool).await.doing(doing)?;
        }
        sqlx::query(sql::FORGET_CELLS).execute(&self.pool).await.map(|_| ()).doing(doing)
    }
}
