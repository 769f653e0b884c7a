//! Time series: results of solves, moves, and samples of the region.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::SolveId;
use crate::log::trail::TargetVersion;
use crate::views::time_span::{SAMPLE_EVERY, TimeSpan};
use crate::views::usage;
use crate::views::usage_series::{UsageCell, UsageCount};
use chrono::{DateTime, Utc};
use fleet::Rru;
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        SOLVE_FIGURES = "SELECT s.solve_id, s.state_at, s.version, \
                coalesce(r.report #>> '{whole,gap}', r.report #>> '{phase1,gap}')::float8, \
                (r.report #>> '{seconds,total}')::float8, (r.report #>> '{moves,in_use}')::float8, (r.report #>> '{moves,idle}')::float8, \
                (r.report ->> 'shortfall_servers')::float8, (r.report #>> '{buffer,share}')::float8 \
            FROM solves s JOIN solve_reports r USING (solve_id) \
            WHERE s.state = 'published' ORDER BY s.version DESC LIMIT $1";
        MOVES_BY_TIME = "SELECT date_bin(make_interval(secs => $1), state_at, to_timestamp(0)), \
                count(*) FILTER (WHERE in_use), count(*) FILTER (WHERE NOT in_use) \
            FROM moves WHERE state = 'bound' AND NOT stays \
                AND state_at > $2 AND state_at <= $3 \
            GROUP BY 1 ORDER BY 1";
        /// Of several servers the first writes the sample of these minutes.
        ADD_SAMPLE = "INSERT INTO region_samples (at, in_use, idle, shared_buffer, free, unavailable, \
                promised_micro, held_micro, guaranteed_micro) \
            SELECT date_bin(make_interval(secs => $1), clock_timestamp(), to_timestamp(0)), \
                $2, $3, $4, $5, $6, $7, $8, $9 ON CONFLICT (at) DO NOTHING";
        SAMPLED = "SELECT EXISTS (SELECT FROM region_samples \
            WHERE at = date_bin(make_interval(secs => $1), clock_timestamp(), to_timestamp(0)))";
        /// The last sample of each interval.
        SAMPLES_BY_TIME = "SELECT DISTINCT ON (date_bin(make_interval(secs => $1), at, to_timestamp(0))) \
                at, in_use, idle, shared_buffer, free, unavailable, promised_micro, held_micro, guaranteed_micro \
            FROM region_samples WHERE at > $2 AND at <= $3 \
            ORDER BY date_bin(make_interval(secs => $1), at, to_timestamp(0)), at DESC";
        SAMPLES = "SELECT at, in_use, idle, shared_buffer, free, unavailable, promised_micro, held_micro, \
                guaranteed_micro FROM region_samples \
            WHERE ($1::float8 IS NULL OR at > clock_timestamp() - make_interval(secs => $1)) \
                AND ($2::timestamptz IS NULL OR at < $2) ORDER BY at DESC LIMIT $3";
        FORGET_SAMPLES = "DELETE FROM region_samples WHERE at < clock_timestamp() - make_interval(secs => $1)";
    }
}

/// The result of a published solve.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveFigures {
    /// The solve.
    pub id: SolveId,
    /// When it was published.
    pub at: DateTime<Utc>,
    /// The version of its targets.
    pub version: TargetVersion,
    /// The proved gap.
    pub gap: Option<f64>,
    /// Its duration.
    pub seconds: Option<f64>,
    /// Servers in use that it moves.
    pub moves_in_use: Option<f64>,
    /// Idle servers that it moves.
    pub moves_idle: Option<f64>,
    /// The fewest servers worth all shortfalls; `None` in reports of older versions.
    pub shortfall_servers: Option<f64>,
    /// The embedded buffer as a share of the requested capacity.
    pub buffer_share: Option<f64>,
}

/// Servers that changed owner within an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntervalOfMoves {
    /// The start of the interval.
    pub from: DateTime<Utc>,
    /// Servers with running containers.
    pub in_use: i64,
    /// Idle servers.
    pub idle: i64,
}

/// The figures of the region at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegionSample {
    /// Servers of reservations with running containers.
    pub in_use: i32,
    /// Servers of reservations without containers.
    pub idle: i32,
    /// Servers of shared buffers.
    pub shared_buffer: i32,
    /// Servers of no reservation.
    pub free: i32,
    /// Servers out of service.
    pub unavailable: i32,
    /// Promised capacity of all guaranteed reservations.
    pub promised: Rru,
    /// What they held of it.
    pub held: Rru,
    /// What they would have had after one more MSB loss, for each its worst.
    pub guaranteed: Rru,
}

fn sample(row: &PgRow) -> Result<(DateTime<Utc>, RegionSample), sqlx::Error> {
    let sample = RegionSample {
        in_use: row.try_get(1)?,
        idle: row.try_get(2)?,
        shared_buffer: row.try_get(3)?,
        free: row.try_get(4)?,
        unavailable: row.try_get(5)?,
        promised: Rru(row.try_get(6)?),
        held: Rru(row.try_get(7)?),
        guaranteed: Rru(row.try_get(8)?),
    };
    Ok((row.try_get(0)?, sample))
}

impl Broker {
    /// The results of the latest published solves, newest first, without those whose reports were deleted.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solve_figures(&self, limit: u32) -> Result<Vec<SolveFigures>, DbError> {
        let figures = |row: PgRow| {
            Ok(SolveFigures {
                id: row.try_get(0)?,
                at: row.try_get(1)?,
                version: TargetVersion(row.try_get(2)?),
                gap: row.try_get(3)?,
                seconds: row.try_get(4)?,
                moves_in_use: row.try_get(5)?,
                moves_idle: row.try_get(6)?,
                shortfall_servers: row.try_get(7)?,
                buffer_share: row.try_get(8)?,
            })
        };
        let rows = sqlx::query(sql::SOLVE_FIGURES).bind(i64::from(limit)).try_map(figures);
        rows.fetch_all(&self.pool).await.doing("reading what solves found")
    }

    /// Servers that changed owner within a span of time, by intervals of a length, oldest first; intervals
    /// without a move are left out.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn moves_by_time(
        &self,
        span: TimeSpan,
        interval: Duration,
    ) -> Result<Vec<IntervalOfMoves>, DbError> {
        let read = |row: PgRow| {
            Ok(IntervalOfMoves {
                from: row.try_get(0)?,
                in_use: row.try_get(1)?,
                idle: row.try_get(2)?,
            })
        };
        let rows = sqlx::query(sql::MOVES_BY_TIME)
            .bind(interval.as_secs_f64())
            .bind(span.from)
            .bind(span.until)
            .try_map(read);
        rows.fetch_all(&self.pool).await.doing("counting moves over time")
    }

    /// Whether the sample of the present [`SAMPLE_EVERY`] is written.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn is_sampled(&self) -> Result<bool, DbError> {
        let asked = sqlx::query_scalar(sql::SAMPLED).bind(SAMPLE_EVERY.as_secs_f64());
        asked.fetch_one(&self.pool).await.doing("looking for a sample of the region")
    }

    /// Writes the sample of the present [`SAMPLE_EVERY`], unless there is one, and what its reservations have. Cells must be
    /// distinct.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn add_sample(
        &self,
        of: &RegionSample,
        counted: &[(UsageCell, UsageCount)],
    ) -> Result<(), DbError> {
        let doing = "writing a sample of the region";
        let mut change = self.begin().await.doing(doing)?;
        let added = sqlx::query(sql::ADD_SAMPLE)
            .bind(SAMPLE_EVERY.as_secs_f64())
            .bind(of.in_use)
            .bind(of.idle)
            .bind(of.shared_buffer)
            .bind(of.free)
            .bind(of.unavailable)
            .bind(of.promised.0)
            .bind(of.held.0)
            .bind(of.guaranteed.0)
            .execute(&mut *change);
        added.await.doing(doing)?;
        usage::add(&mut change, counted).await?;
        change.commit().await.doing(doing)
    }

    /// The last sample of each interval within a span of time, oldest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn samples_by_time(
        &self,
        span: TimeSpan,
        interval: Duration,
    ) -> Result<Vec<(DateTime<Utc>, RegionSample)>, DbError> {
        let rows = sqlx::query(sql::SAMPLES_BY_TIME)
            .bind(interval.as_secs_f64())
            .bind(span.from)
            .bind(span.until)
            .try_map(|row: PgRow| sample(&row));
        rows.fetch_all(&self.pool).await.doing("reading samples of the region")
    }

    /// A page of samples, newest first, of those within a duration before now.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn samples_page(
        &self,
        within: Option<Duration>,
        before: Option<DateTime<Utc>>,
        limit: u32,
    ) -> Result<Vec<(DateTime<Utc>, RegionSample)>, DbError> {
        let rows = sqlx::query(sql::SAMPLES)
            .bind(within.map(|within| within.as_secs_f64()))
            .bind(before)
            .bind(i64::from(limit))
            .try_map(|row: PgRow| sample(&row));
        rows.fetch_all(&self.pool).await.doing("reading samples of the region")
    }

    /// Deletes samples beyond an age.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_samples(&self, age: Duration) -> Result<(), DbError> {
        let deleted = sqlx::query(sql::FORGET_SAMPLES).bind(age.as_secs_f64());
        deleted.execute(&self.pool).await.map(|_| ()).doing("deleting samples of the region")
    }
}
