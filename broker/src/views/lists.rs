//! What people page through: solves, moves, unavailability events and the audit trail, each the
//! youngest first, by what is asked for. A page begins where the last one ended, whatever was
//! added since.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::SolveId;
use crate::infra::state::{self, MoveState, SolveState, State};
use crate::infra::words;
use crate::log::trail::{ENTRIES_MAX, Entry, Seq, TargetVersion, entry};
use crate::moves::lifecycle::{MoveOrigin, MoveReason};
use crate::queue::solve::{Cause, SolveRow, solve};
use chrono::{DateTime, Utc};
use fleet::{Name, Scope, UnavailabilityKind};
use sqlx::Row;
use sqlx::postgres::PgRow;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        SOLVES = "SELECT solve_id, cause, state, reason, failure, requested_at, started_at, state_at, \
                parent, version, snapshot_url, result_url FROM solves \
            WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR cause = $2) \
                AND ($3::timestamptz IS NULL OR (requested_at, solve_id) < ($3, $4)) \
            ORDER BY requested_at DESC, solve_id DESC LIMIT $5";
        /// Ids are ordered by time, so the youngest are at the end of the primary key.
        MOVES = "SELECT move_id, server, source_reservation, target_reservation, target_version, state, \
                state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND ($2::text IS NULL OR server = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::boolean IS NULL OR open = $4) AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// The same of one server, which an index knows.
        MOVES_OF_SERVER = "SELECT move_id, server, source_reservation, target_reservation, target_version, \
                state, state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND server_id = (SELECT s.server_id FROM servers s WHERE s.server = $2) \
                AND ($3::text IS NULL OR state = $3) AND ($4::boolean IS NULL OR open = $4) \
                AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// The same of those under way, of which there are few, by an index of their own.
        MOVES_UNDER_WAY = "SELECT move_id, server, source_reservation, target_reservation, target_version, \
                state, state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE open AND ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND ($2::text IS NULL OR server = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::boolean IS NULL OR open = $4) AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// The same of one reservation: one index knows what left it, another what came to it.
        MOVES_OF_RESERVATION = "SELECT * FROM ((SELECT move_id, server, source_reservation, \
                target_reservation, target_version, state, state_at, opened_at, origin, in_use, reason, detail \
            FROM moves WHERE source_reservation = $1 AND ($2::text IS NULL OR server = $2) \
                AND ($3::text IS NULL OR state = $3) AND ($4::boolean IS NULL OR open = $4) \
                AND ($5::uuid IS NULL OR move_id < $5) ORDER BY move_id DESC LIMIT $6) \
            UNION ALL (SELECT move_id, server, source_reservation, target_reservation, target_version, \
                state, state_at, opened_at, origin, in_use, reason, detail \
            FROM moves WHERE target_reservation = $1 AND source_reservation IS DISTINCT FROM $1 \
                AND ($2::text IS NULL OR server = $2) \
                AND ($3::text IS NULL OR state = $3) AND ($4::boolean IS NULL OR open = $4) \
                AND ($5::uuid IS NULL OR move_id < $5) ORDER BY move_id DESC LIMIT $6)) m \
            ORDER BY move_id DESC LIMIT $6";
        EVENTS = "SELECT u.event_id::text, u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text, \
                u.kind, u.started_at, u.ended_at, \
                u.started_at <= now() AND coalesce(u.ended_at, 'infinity') > now() \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE ($1::text IS NULL OR u.scope = $1) AND ($2::text IS NULL OR u.kind = $2) \
                AND ($3::text IS NULL OR coalesce(s.server, r.rack, m.msb, d.datacenter) = $3) \
                AND ($4::boolean IS NULL OR $4 = (coalesce(u.ended_at, 'infinity') > now())) \
                AND ($5::timestamptz IS NULL OR (u.started_at, u.event_id::text) < ($5, $6)) \
            ORDER BY u.started_at DESC, u.event_id::text DESC LIMIT $7";
        TRAIL = "SELECT seq, at, actor::text, action, subject, detail FROM audit_trail \
            WHERE ($1::bigint IS NULL OR seq < $1) AND ($2::text IS NULL OR subject = $2) \
                AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4) \
            ORDER BY seq DESC LIMIT $5";
        /// The same about one subject, by the index of those: its entries may be far apart.
        TRAIL_OF_SUBJECT = "SELECT seq, at, actor::text, action, subject, detail FROM audit_trail \
            WHERE seq < coalesce($1::bigint, 9223372036854775807) AND subject = $2 \
                AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4) \
            ORDER BY seq DESC LIMIT $5";
    }
}

/// Which solves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolvesAsked {
    /// In this state.
    pub state: Option<SolveState>,
    /// For this cause.
    pub cause: Option<Cause>,
    /// Older than this one: when it was asked for, and its id.
    pub before: Option<(DateTime<Utc>, SolveId)>,
}

/// Which moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MovesAsked {
    /// From or to this reservation.
    pub reservation: Option<String>,
    /// Of this server.
    pub server: Option<String>,
    /// In this state.
    pub state: Option<MoveState>,
    /// Under way, or ended.
    pub open: Option<bool>,
    /// Older than this one.
    pub before: Option<Uuid>,
}

/// A move, under way or ended.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveRow {
    /// Its id, ordered by time.
    pub id: Uuid,
    /// The server.
    pub server: Name,
    /// Who owned it; `None`: nobody.
    pub source: Option<Name>,
    /// Who shall, or does; `None`: nobody.
    pub target: Option<Name>,
    /// The version of the targets it serves.
    pub version: TargetVersion,
    /// How far it is.
    pub state: MoveState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// When it was opened.
    pub opened_at: DateTime<Utc>,
    /// Why it was opened.
    pub origin: MoveOrigin,
    /// Whether containers ran on it when it was opened.
    pub in_use: bool,
    /// Why it ended without being bound.
    pub reason: Option<MoveReason>,
    /// What the host said, for people.
    pub detail: Option<String>,
}

/// Which unavailability events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsAsked {
    /// Of this scope.
    pub scope: Option<Scope>,
    /// Of this kind.
    pub kind: Option<UnavailabilityKind>,
    /// About what has this name.
    pub scope_id: Option<String>,
    /// Still to end, or ended.
    pub open: Option<bool>,
    /// Older than this one: its start and name.
    pub before: Option<(DateTime<Utc>, String)>,
}

/// An unavailability event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Its name.
    pub event: Name,
    /// What kind of place it covers.
    pub scope: Scope,
    /// What it covers, by name.
    pub scope_id: Name,
    /// Why it takes servers out of use.
    pub kind: UnavailabilityKind,
    /// When it began, or will.
    pub started_at: DateTime<Utc>,
    /// When it ended, or will.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether it takes servers out of use now.
    pub active: bool,
}

/// Which entries of the audit trail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrailAsked {
    /// About this.
    pub subject: Option<String>,
    /// By this one.
    pub actor: Option<String>,
    /// A word of [`crate::Action`].
    pub action: Option<String>,
    /// Older than this one.
    pub before: Option<Seq>,
}

impl Broker {
    /// A page of solves, the youngest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn solves_page(
        &self,
        asked: &SolvesAsked,
        limit: u32,
    ) -> Result<Vec<SolveRow>, DbError> {
        let rows = sqlx::query(sql::SOLVES)
            .bind(asked.state.map(State::as_str))
            .bind(asked.cause.map(Cause::as_str))
            .bind(asked.before.map(|(at, _)| at))
            .bind(asked.before.map(|(_, id)| id))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| solve(&row));
        rows.fetch_all(&self.pool).await.doing("listing solves")
    }

    /// A page of moves, the youngest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn moves_page(
        &self,
        asked: &MovesAsked,
        limit: u32,
    ) -> Result<Vec<MoveRow>, DbError> {
        let statement = match (&asked.server, asked.open, &asked.reservation) {
            (Some(_), ..) => sql::MOVES_OF_SERVER,
            (None, Some(true), _) => sql::MOVES_UNDER_WAY,
            (None, _, Some(_)) => sql::MOVES_OF_RESERVATION,
            (None, _, None) => sql::MOVES,
        };
        let rows = sqlx::query(statement)
            .bind(&asked.reservation)
            .bind(&asked.server)
            .bind(asked.state.map(State::as_str))
            .bind(asked.open)
            .bind(asked.before)
            .bind(i64::from(limit))
            .try_map(|row: PgRow| moved(&row));
        rows.fetch_all(&self.pool).await.doing("listing moves")
    }

    /// A page of unavailability events, the youngest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn events_page(
        &self,
        asked: &EventsAsked,
        limit: u32,
    ) -> Result<Vec<EventRow>, DbError> {
        let (began, name) = asked.before.as_ref().map(|(at, name)| (at, name)).unzip();
        let rows = sqlx::query(sql::EVENTS)
            .bind(asked.scope.map(Scope::as_str))
            .bind(asked.kind.map(UnavailabilityKind::as_str))
            .bind(&asked.scope_id)
            .bind(asked.open)
            .bind(began)
            .bind(name)
            .bind(i64::from(limit))
            .try_map(|row: PgRow| event(&row));
        rows.fetch_all(&self.pool).await.doing("listing unavailability events")
    }

    /// A page of the audit trail, the youngest entry first; 1,000 at most.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_page(&self, asked: &TrailAsked, limit: u32) -> Result<Vec<Entry>, DbError> {
        let statement = if asked.subject.is_some() { sql::TRAIL_OF_SUBJECT } else { sql::TRAIL };
        let rows = sqlx::query(statement)
            .bind(asked.before.map(|seq| seq.0))
            .bind(&asked.subject)
            .bind(&asked.actor)
            .bind(&asked.action)
            .bind(i64::from(limit).min(ENTRIES_MAX))
            .try_map(|row: PgRow| entry(&row));
        rows.fetch_all(&self.pool).await.doing("reading the audit trail")
    }
}

fn name(row: &PgRow, column: usize) -> Result<Name, sqlx::Error> {
    row.try_get::<&str, _>(column).map(Name::from)
}

pub(crate) fn optional(row: &PgRow, column: usize) -> Result<Option<Name>, sqlx::Error> {
    row.try_get::<Option<&str>, _>(column).map(|name| name.map(Name::from))
}

pub(crate) fn moved(row: &PgRow) -> Result<MoveRow, sqlx::Error> {
    let reason: Option<&str> = row.try_get(10)?;
    let known = |word| words::read("moves.reason", MoveReason::ALL, MoveReason::as_str, word);
    Ok(MoveRow {
        id: row.try_get(0)?,
        server: name(row, 1)?,
        source: optional(row, 2)?,
        target: optional(row, 3)?,
        version: TargetVersion(row.try_get(4)?),
        state: state::read(row.try_get(5)?)?,
        state_at: row.try_get(6)?,
        opened_at: row.try_get(7)?,
        origin: words::read("moves.origin", MoveOrigin::ALL, MoveOrigin::as_str, row.try_get(8)?)?,
        in_use: row.try_get(9)?,
        reason: reason.map(known).transpose()?,
        detail: row.try_get(11)?,
    })
}

pub(crate) fn event(row: &PgRow) -> Result<EventRow, sqlx::Error> {
    Ok(EventRow {
        event: name(row, 0)?,
        scope: words::read("unavailability.scope", Scope::ALL, Scope::as_str, row.try_get(1)?)?,
        scope_id: name(row, 2)?,
        kind: words::read(
            "unavailability.kind",
            UnavailabilityKind::ALL,
            UnavailabilityKind::as_str,
            row.try_get(3)?,
        )?,
        started_at: row.try_get(4)?,
        ended_at: row.try_get(5)?,
        active: row.try_get(6)?,
    })
}
