//! Time series: results of solves, and moves per hour.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::SolveId;
use crate::log::trail::TargetVersion;
use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(crate) mod sql {
    crate::statements! {
        SOLVE_FIGURES = "SELECT s.solve_id, s.state_at, s.version, \
                (r.report #>> '{phase1,gap}')::float8, (r.report #>> '{seconds,total}')::float8, \
                (r.report #>> '{moves,in_use}')::float8, (r.report #>> '{moves,idle}')::float8, \
                (r.report ->> 'shortfall_rru')::float8, (r.report #>> '{buffer,share}')::float8 \
            FROM solves s JOIN solve_reports r USING (solve_id) \
            WHERE s.state = 'published' ORDER BY s.version DESC LIMIT $1";
        MOVES_BY_HOUR = "SELECT date_trunc('hour', state_at, 'UTC'), count(*) FILTER (WHERE in_use), \
                count(*) FILTER (WHERE NOT in_use) \
            FROM moves WHERE state = 'bound' AND NOT stays \
                AND state_at > clock_timestamp() - make_interval(hours => $1) \
            GROUP BY 1 ORDER BY 1";
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
    /// Missing RRU.
    pub shortfall: Option<f64>,
    /// The embedded buffer as a share of the requested capacity.
    pub buffer_share: Option<f64>,
}

/// Servers that changed owner within one hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourOfMoves {
    /// The start of the hour.
    pub from: DateTime<Utc>,
    /// Servers with running containers.
    pub in_use: i64,
    /// Idle servers.
    pub idle: i64,
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
                shortfall: row.try_get(7)?,
                buffer_share: row.try_get(8)?,
            })
        };
        let rows = sqlx::query(sql::SOLVE_FIGURES).bind(i64::from(limit)).try_map(figures);
        rows.fetch_all(&self.pool).await.doing("reading what solves found")
    }

    /// Servers that changed owner, per hour, oldest first; hours without a move are left out.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn moves_by_hour(&self, hours: u16) -> Result<Vec<HourOfMoves>, DbError> {
        let hour = |row: PgRow| {
            Ok(HourOfMoves {
                from: row.try_get(0)?,
                in_use: row.try_get(1)?,
                idle: row.try_get(2)?,
            })
        };
        let rows = sqlx::query(sql::MOVES_BY_HOUR).bind(i32::from(hours)).try_map(hour);
        rows.fetch_all(&self.pool).await.doing("counting moves by the hour")
    }
}
