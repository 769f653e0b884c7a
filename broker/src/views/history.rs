//! Numbers over time: what solves found, and what was moved hour by hour.

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

/// What a published solve found.
#[derive(Clone, Debug, PartialEq)]
pub struct SolveFigures {
    /// The solve.
    pub id: SolveId,
    /// When it was published.
    pub at: DateTime<Utc>,
    /// The version of the targets that it is.
    pub version: TargetVersion,
    /// The proved gap.
    pub gap: Option<f64>,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Servers in use that it moves.
    pub moves_in_use: Option<f64>,
    /// Idle servers that it moves.
    pub moves_idle: Option<f64>,
    /// RRU missing.
    pub shortfall: Option<f64>,
    /// The embedded buffer as a share of what is asked.
    pub buffer_share: Option<f64>,
}

/// Servers that got a new owner within an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HourOfMoves {
    /// When the hour began.
    pub from: DateTime<Utc>,
    /// Containers ran on them.
    pub in_use: i64,
    /// None did.
    pub idle: i64,
}

impl Broker {
    /// What the latest published solves found, the newest first; those whose reports were
    /// forgotten are left out.
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

    /// Servers that got a new owner, hour by hour, the oldest first; hours without any are left out.
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
