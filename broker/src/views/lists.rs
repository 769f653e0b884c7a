//! Paged lists, newest first: solves, moves, unavailability events and the audit trail. A page begins after the
//! last row of the one before, regardless of new rows.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{MoveId, SolveId};
use crate::infra::state::{self, MoveState, SolveState, State};
use crate::infra::words;
use crate::infra::words::{name, optional_name};
use crate::log::trail::{Action, ENTRIES_MAX, Entry, Seq, Subject, TargetVersion, entry};
use crate::moves::origin::MoveReason;
use crate::queue::cause::Cause;
use crate::queue::solve::{SolveRow, solve};
use chrono::{DateTime, Utc};
use fleet::MoveOrigin;
use fleet::{Name, ReservationName, Scope, ServerName, UnavailabilityKind};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(crate) mod sql {
    crate::statements! {
        SOLVES = "SELECT solve_id, cause, state, reason, failure, requested_at, started_at, state_at, \
                parent, version, snapshot_url, result_url FROM solves \
            WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR cause = $2) \
                AND ($3::timestamptz IS NULL OR (requested_at, solve_id) < ($3, $4)) \
            ORDER BY requested_at DESC, solve_id DESC LIMIT $5";
        /// Ids are ordered by time, so the newest are at the end of the primary key.
        MOVES = "SELECT move_id, server, source_reservation, target_reservation, target_version, state, \
                state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND ($2::text IS NULL OR server = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::boolean IS NULL OR open = $4) AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// The moves of one server, through their index.
        MOVES_OF_SERVER = "SELECT move_id, server, source_reservation, target_reservation, target_version, \
                state, state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND server_id = (SELECT s.server_id FROM servers s WHERE s.server = $2) \
                AND ($3::text IS NULL OR state = $3) AND ($4::boolean IS NULL OR open = $4) \
                AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// Open moves, which are few, through their index.
        MOVES_UNDER_WAY = "SELECT move_id, server, source_reservation, target_reservation, target_version, \
                state, state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE open AND ($1::text IS NULL OR source_reservation = $1 OR target_reservation = $1) \
                AND ($2::text IS NULL OR server = $2) AND ($3::text IS NULL OR state = $3) \
                AND ($4::boolean IS NULL OR open = $4) AND ($5::uuid IS NULL OR move_id < $5) \
            ORDER BY move_id DESC LIMIT $6";
        /// The moves of one reservation: one index for moves away from it, another for moves to it.
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
        /// The entries about one subject, through their index: they may lie far apart.
        TRAIL_OF_SUBJECT = "SELECT seq, at, actor::text, action, subject, detail FROM audit_trail \
            WHERE seq < coalesce($1::bigint, 9223372036854775807) AND subject = $2 \
                AND ($3::text IS NULL OR actor = $3) AND ($4::text IS NULL OR action = $4) \
            ORDER BY seq DESC LIMIT $5";
        /// The entries about one reservation and the applied plans that concern it, of which only its own part is read.
        RESERVATION_HISTORY = "SELECT seq, at, actor::text, action, subject, detail FROM ( \
                (SELECT seq, at, actor, action, subject, detail FROM audit_trail \
                    WHERE seq < $1 AND subject = $2 AND action = ANY ($3) ORDER BY seq DESC LIMIT $4) \
                UNION ALL \
                (SELECT seq, at, actor, action, subject, jsonb_build_object('promises', \
                    (SELECT jsonb_agg(p) FROM jsonb_array_elements(detail -> 'promises') p \
                        WHERE p ->> 'reservation' = $2)) FROM audit_trail \
                    WHERE seq < $1 AND action = 'plan_applied' AND detail -> 'reservations' ? $2 \
                    ORDER BY seq DESC LIMIT $4)) AS of_both \
            ORDER BY seq DESC LIMIT $4";
    }
}

/// The last row of a page, newest first: its time, and its id among rows of that time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageEnd<Id> {
    /// When it was requested or began.
    pub at: DateTime<Utc>,
    /// Its id.
    pub id: Id,
}

/// A filter of solves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SolvesAsked {
    /// In this state.
    pub state: Option<SolveState>,
    /// For this cause.
    pub cause: Option<Cause>,
    /// Only older ones.
    pub before: Option<PageEnd<SolveId>>,
}

/// A filter of moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MovesAsked {
    /// Only from or to this reservation.
    pub reservation: Option<String>,
    /// Only of this server.
    pub server: Option<String>,
    /// Only in this state.
    pub state: Option<MoveState>,
    /// Only open, or only ended moves.
    pub open: Option<bool>,
    /// Only moves older than this one.
    pub before: Option<MoveId>,
}

/// A move.
#[derive(Clone, Debug, PartialEq)]
pub struct MoveRow {
    /// The move's id, ordered by time.
    pub id: MoveId,
    /// The server.
    pub server: ServerName,
    /// The owner before; `None`: free.
    pub source: Option<ReservationName>,
    /// The owner after; `None`: free.
    pub target: Option<ReservationName>,
    /// The version of the targets that it serves.
    pub version: TargetVersion,
    /// The move's state.
    pub state: MoveState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The time it was opened.
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

/// A filter of unavailability events.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventsAsked {
    /// Of this scope.
    pub scope: Option<Scope>,
    /// Of this kind.
    pub kind: Option<UnavailabilityKind>,
    /// About what has this name.
    pub scope_id: Option<String>,
    /// Only unfinished, or only ended events.
    pub open: Option<bool>,
    /// Only older ones.
    pub before: Option<PageEnd<String>>,
}

/// An unavailability event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// The event's name.
    pub event: Name,
    /// What kind of place it covers.
    pub scope: Scope,
    /// What it covers, by name.
    pub scope_id: Name,
    /// Why it takes servers out of use.
    pub kind: UnavailabilityKind,
    /// When it began, or will.
    pub started_at: DateTime<Utc>,
    /// The end, past or future.
    pub ended_at: Option<DateTime<Utc>>,
    /// Whether it takes servers out of use now.
    pub active: bool,
}

/// A filter of the audit trail.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrailAsked {
    /// Only about this subject.
    pub subject: Option<String>,
    /// Only by this actor.
    pub actor: Option<String>,
    /// Only of this action.
    pub action: Option<Action>,
    /// Only entries older than this one.
    pub before: Option<Seq>,
}

impl Broker {
    /// A page of solves, newest first.
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
            .bind(asked.before.as_ref().map(|of| of.at))
            .bind(asked.before.as_ref().map(|of| of.id))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| solve(&row));
        rows.fetch_all(&self.pool).await.doing("listing solves")
    }

    /// A page of moves, newest first.
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

    /// A page of unavailability events, newest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn events_page(
        &self,
        asked: &EventsAsked,
        limit: u32,
    ) -> Result<Vec<EventRow>, DbError> {
        let before = asked.before.as_ref();
        let rows = sqlx::query(sql::EVENTS)
            .bind(asked.scope.map(Scope::as_str))
            .bind(asked.kind.map(UnavailabilityKind::as_str))
            .bind(&asked.scope_id)
            .bind(asked.open)
            .bind(before.map(|of| of.at))
            .bind(before.map(|of| &of.id))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| event(&row));
        rows.fetch_all(&self.pool).await.doing("listing unavailability events")
    }

    /// A page of the audit trail, newest first; at most 1,001 entries: a page, and whether there is another.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_page(&self, asked: &TrailAsked, limit: u32) -> Result<Vec<Entry>, DbError> {
        let most = u32::try_from(ENTRIES_MAX + 1).unwrap_or(u32::MAX);
        self.trail_newest(asked, limit.min(most)).await
    }

    /// The newest entries of the audit trail, for readers that sort them themselves.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn trail_newest(
        &self,
        asked: &TrailAsked,
        limit: u32,
    ) -> Result<Vec<Entry>, DbError> {
        let statement = if asked.subject.is_some() { sql::TRAIL_OF_SUBJECT } else { sql::TRAIL };
        let rows = sqlx::query(statement)
            .bind(asked.before.map(|seq| seq.0))
            .bind(&asked.subject)
            .bind(&asked.actor)
            .bind(asked.action.map(Action::as_str))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| entry(&row));
        rows.fetch_all(&self.pool).await.doing("reading the audit trail")
    }

    /// What was done to a reservation and who did it, newest first: requests, applied plans, emergencies, contracts and
    /// its end. Of a plan only what it promised to this reservation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_history(
        &self,
        reservation: &str,
        before: Option<Seq>,
        limit: u32,
    ) -> Result<Vec<Entry>, DbError> {
        let of_reservations = |action: &Action| action.subject() == Subject::Reservation;
        let actions: Vec<&str> =
            Action::ALL.iter().copied().filter(of_reservations).map(Action::as_str).collect();
        let rows = sqlx::query(sql::RESERVATION_HISTORY)
            .bind(before.map_or(i64::MAX, |seq| seq.0))
            .bind(reservation)
            .bind(actions)
            .bind(i64::from(limit).min(ENTRIES_MAX + 1))
            .try_map(|row: PgRow| entry(&row));
        rows.fetch_all(&self.pool).await.doing("reading the history of a reservation")
    }
}

pub(crate) fn moved(row: &PgRow) -> Result<MoveRow, sqlx::Error> {
    let reason: Option<&str> = row.try_get(10)?;
    Ok(MoveRow {
        id: row.try_get(0)?,
        server: name(row, 1)?,
        source: optional_name(row, 2)?,
        target: optional_name(row, 3)?,
        version: TargetVersion(row.try_get(4)?),
        state: state::read(row.try_get(5)?)?,
        state_at: row.try_get(6)?,
        opened_at: row.try_get(7)?,
        origin: words::read("moves.origin", MoveOrigin::ALL, MoveOrigin::as_str, row.try_get(8)?)?,
        in_use: row.try_get(9)?,
        reason: reason.map(MoveReason::read).transpose()?,
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
