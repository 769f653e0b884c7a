//! The mover's limits, contracts and speed, for decisions and plans.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::MoveOrigin;
use fleet::pace::{ContractPace, Limits, MoveKind, OpenMoves, Pacing};
use fleet::{
    BudgetCause, Name, ReservationName, ServerRow, SnapshotParts, UnavailabilityKind,
    UnavailabilityRow,
};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The time between solves: an hour, unless configured otherwise (RAS section 3.1).
pub const HORIZON: Duration = Duration::from_secs(3_600);

/// The assumed duration of a move until [`ENOUGH`] moves of its kind have ended: of idle servers, and of
/// servers in use.
const SECONDS: (u32, u32) = (300, 900);
const ENOUGH: i64 = 20;

pub(crate) mod sql {
    crate::statements! {
        LIMITS = "SELECT clock_timestamp(), limits FROM mover";
        /// The 90th percentile of the last thousand.
        SECONDS = "SELECT in_use, count(*), ceil(percentile_cont(0.9) WITHIN GROUP \
                (ORDER BY extract(epoch FROM state_at - begun_at)))::bigint \
            FROM (SELECT in_use, state_at, begun_at FROM moves \
                WHERE NOT open AND begun_at IS NOT NULL AND state = 'bound' \
                    AND state_at > clock_timestamp() - interval '7 days' \
                ORDER BY state_at DESC LIMIT 1000) m GROUP BY 1";
        /// Open moves, and targets without a move yet.
        OPEN = "SELECT k.rack::text, b.msb::text, o.source, o.in_use, o.waits, o.urgent, count(*) \
            FROM (SELECT server_id, source_reservation AS source, in_use, state = 'pending' AS waits, \
                    origin = ANY ($1) AS urgent, opened_at FROM moves WHERE open \
                UNION ALL SELECT s.server_id, r.reservation, s.in_use, true, \
                    coalesce(s.target_origin, 'targets') = ANY ($1), 'infinity'::timestamptz \
                FROM servers s LEFT JOIN reservations r ON r.reservation_id = s.current_reservation_id \
                WHERE s.target_pending AND NOT EXISTS \
                    (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id)) o \
            JOIN servers s USING (server_id) JOIN racks k USING (rack_id) JOIN msbs b USING (msb_id) \
            GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY min(o.opened_at)";
        LEFT = "SELECT m.source_reservation, m.state_at FROM churn_contracts c \
            JOIN reservations r USING (reservation_id) \
            JOIN moves m ON m.source_reservation = r.reservation \
            WHERE m.state = 'bound' AND m.in_use AND (NOT m.stays OR m.origin = 'reconfigure') \
                AND m.state_at > clock_timestamp() - make_interval(secs => c.window_seconds)";
        /// Null if the zone is not known any more: always quiet.
        OFFSETS = "SELECT r.reservation, minute_of_day(clock_timestamp(), c.zone) \
                - minute_of_day(clock_timestamp(), 'UTC') \
            FROM churn_contracts c JOIN reservations r USING (reservation_id)";
        /// Work that has begun has an event.
        WINDOWS = "SELECT 'maintenance/' || window_id, scope, scope_id::text, starts_at, ends_at, recall_minutes \
            FROM maintenance WHERE open AND state IN ('planned', 'draining') \
                AND starts_at <= clock_timestamp() + make_interval(secs => $1) ORDER BY 1";
        CORDONED = "SELECT DISTINCT s.server::text FROM cordoned_servers c JOIN servers s USING (server_id) \
            WHERE c.state <> 'active' ORDER BY 1";
    }
}

impl Broker {
    /// The mover's present limits, contracts and speed.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn pacing(&self) -> Result<Pacing, DbError> {
        let doing = "reading what the mover is held to";
        let row = sqlx::query(sql::LIMITS).fetch_one(&self.pool).await.doing(doing)?;
        let now: DateTime<Utc> = row.try_get(0).doing(doing)?;
        let limits: Option<Json<Limits>> = row.try_get(1).doing(doing)?;
        let limits = limits.map(|Json(limits)| limits);
        let (mut idle_seconds, mut in_use_seconds) = SECONDS;
        for row in sqlx::query(sql::SECONDS).fetch_all(&self.pool).await.doing(doing)? {
            let (in_use, count): (bool, i64) =
                (row.try_get(0).doing(doing)?, row.try_get(1).doing(doing)?);
            if count >= ENOUGH {
                let seconds: i64 = row.try_get(2).doing(doing)?;
                let seconds = u32::try_from(seconds).unwrap_or(0);
                *(if in_use { &mut in_use_seconds } else { &mut idle_seconds }) = seconds;
            }
        }
        let urgent = MoveOrigin::ALL.into_iter().filter(|origin| origin.is_urgent());
        let urgent: Vec<&str> = urgent.map(MoveOrigin::as_str).collect();
        let open = sqlx::query(sql::OPEN).bind(urgent).try_map(|row: PgRow| open(&row));
        let open = open.fetch_all(&self.pool).await.doing(doing)?;
        let begun = match &limits {
            Some(limits) if limits.looks_back() => self.recently_begun(limits.window()).await?,
            _ => Vec::new(),
        };
        let contracts = self.contract_paces().await?;
        Ok(Pacing { now, limits, idle_seconds, in_use_seconds, open, begun, contracts })
    }

    async fn contract_paces(&self) -> Result<Vec<ContractPace>, DbError> {
        let doing = "reading churn contracts";
        let contracts = self.contracts(None).await?;
        if contracts.is_empty() {
            return Ok(Vec::new());
        }
        let rows: Vec<(String, DateTime<Utc>)> =
            sqlx::query_as(sql::LEFT).fetch_all(&self.pool).await.doing(doing)?;
        let mut left: BTreeMap<String, Vec<DateTime<Utc>>> = BTreeMap::new();
        for (reservation, at) in rows {
            left.entry(reservation).or_default().push(at);
        }
        let offsets: Vec<(String, Option<i32>)> =
            sqlx::query_as(sql::OFFSETS).fetch_all(&self.pool).await.doing(doing)?;
        let offsets: BTreeMap<String, Option<i32>> = offsets.into_iter().collect();
        let paces = contracts.into_iter().map(|of| {
            let name = of.reservation.to_string();
            let offset = offsets.get(&name).copied().flatten();
            let quiet = match offset {
                Some(_) => of.contract.quiet.iter().map(|quiet| quiet.minutes()).collect(),
                None => vec![(0, 1_440)],
            };
            ContractPace {
                allowed: of.allowed(),
                window: TimeDelta::from_std(of.contract.window).unwrap_or_default(),
                left: left.remove(&name).unwrap_or_default(),
                quiet,
                ahead_of_utc: offset.unwrap_or(0),
                reservation: of.reservation,
            }
        });
        Ok(paces.collect())
    }

    /// Adds the time until the next solve to a current snapshot: planned maintenance that begins in it,
    /// cordons, and what limits and contracts let move. The snapshot is then of this instant.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn look_ahead(
        &self,
        parts: &mut SnapshotParts,
        horizon: Duration,
    ) -> Result<(), DbError> {
        let doing = "reading maintenance ahead";
        let pacing = self.pacing().await?;
        let windows = sqlx::query(sql::WINDOWS).bind(horizon.as_secs_f64());
        let windows = windows.try_map(|row: PgRow| window(&row));
        let windows = windows.fetch_all(&self.pool).await.doing(doing)?;
        let cordoned = sqlx::query_scalar(sql::CORDONED).fetch_all(&self.pool);
        let cordoned: Vec<String> = cordoned.await.doing(doing)?;
        let horizon = TimeDelta::from_std(horizon).unwrap_or(TimeDelta::days(31));
        parts.taken_at = pacing.now;
        parts.ahead.horizon_minutes = u32::try_from(horizon.num_minutes().max(1)).unwrap_or(60);
        parts.ahead.budgets = pacing.budgets(&parts.region, &parts.servers, horizon);
        let servers: BTreeSet<&str> = match cordoned.is_empty() && windows.is_empty() {
            true => BTreeSet::new(),
            false => parts.servers.iter().map(|row| row.server_id.as_ref()).collect(),
        };
        let cordons = cordoned.iter().filter(|server| servers.contains(server.as_str()));
        parts.ahead.budgets.extend(cordons.map(|server| fleet::MoveBudgetRow {
            scope: "server".into(),
            scope_id: server.as_str().into(),
            in_use: None,
            moves: 0,
            because: BudgetCause::Cordon.as_str().into(),
        }));
        let racks: BTreeSet<&str> = match windows.is_empty() {
            true => BTreeSet::new(),
            false => parts.servers.iter().map(|row: &ServerRow| row.rack.as_ref()).collect(),
        };
        let known: BTreeSet<Name> =
            parts.unavailability.iter().map(|row| row.event_id.clone()).collect();
        let ahead: Vec<UnavailabilityRow> = windows
            .into_iter()
            .filter(|row| !known.contains(&row.event_id))
            .filter(|row| match row.scope.as_ref() {
                "server" => servers.contains(row.scope_id.as_ref()),
                _ => racks.contains(row.scope_id.as_ref()),
            })
            .collect();
        parts.unavailability.extend(ahead);
        Ok(())
    }
}

fn open(row: &PgRow) -> Result<OpenMoves, sqlx::Error> {
    Ok(OpenMoves {
        kind: MoveKind {
            rack: row.try_get::<&str, _>(0)?.into(),
            msb: row.try_get::<&str, _>(1)?.into(),
            source: row.try_get::<Option<&str>, _>(2)?.map(ReservationName::from),
            in_use: row.try_get(3)?,
        },
        waiting: row.try_get(4)?,
        urgent: row.try_get(5)?,
        count: row.try_get::<i64, _>(6).map(|count| u64::try_from(count).unwrap_or(0))?,
    })
}

fn window(row: &PgRow) -> Result<UnavailabilityRow, sqlx::Error> {
    Ok(UnavailabilityRow {
        event_id: row.try_get::<&str, _>(0)?.into(),
        scope: row.try_get::<&str, _>(1)?.into(),
        scope_id: row.try_get::<&str, _>(2)?.into(),
        kind: UnavailabilityKind::PlannedMaintenance.as_str().into(),
        started_at: row.try_get(3)?,
        ended_at: row.try_get(4)?,
        recall_minutes: row.try_get(5)?,
    })
}
