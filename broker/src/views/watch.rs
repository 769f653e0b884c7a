//! The watch of a reservation: a stream of the current states of servers that may have changed.
//!
//! The audit trail says where to look, and the tables say what is true. So a watcher that lags gets fewer
//! updates, never wrong ones, and a repeated update does no harm. Between polls a watcher holds no resource of
//! Postgres, and its memory is no larger than the reservation.

use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use crate::log::affected::AffectedServers;
use crate::log::trail::{self, Seq};
use crate::views::reservation::ReservationError;
use crate::views::reserved_server::{
    self, Header, ReservedServer, columns, described, header, placed, server, wide,
};
use chrono::{DateTime, TimeDelta, Utc};
use fleet::{Name, Scope};
use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeSet;

/// A watcher that lags by more entries than this must list again: reading them takes seconds, a list takes
/// less.
const CATCH_UP_MAX: i64 = 100_000;

/// The interval between reads of events that begin or end by the clock. They are few, and a second's delay is
/// acceptable.
const CLOCK_EVERY: TimeDelta = TimeDelta::seconds(1);

pub(crate) mod sql {
    crate::statements! {
        /// The state of servers that may have changed, and the names of those that may have left the
        /// reservation.
        STATES = concat!("WITH touched AS ( \
                SELECT server_id, true AS rebound FROM servers WHERE server = ANY ($3::text[]) \
                UNION ALL SELECT s.server_id, true FROM target_changes c JOIN servers s USING (server) \
                    WHERE c.version = ANY ($4::bigint[]) \
                UNION ALL SELECT server_id, false FROM servers WHERE server = ANY ($5::text[]) \
                UNION ALL SELECT s.server_id, false FROM racks k JOIN servers s USING (rack_id) \
                    WHERE k.rack = ANY ($6::text[]) \
                UNION ALL SELECT s.server_id, false FROM msbs m JOIN racks k USING (msb_id) \
                    JOIN servers s USING (rack_id) WHERE m.msb = ANY ($7::text[]) \
                UNION ALL SELECT s.server_id, false FROM datacenters d JOIN msbs m USING (datacenter_id) \
                    JOIN racks k USING (msb_id) JOIN servers s USING (rack_id) \
                    WHERE d.datacenter = ANY ($8::text[])), \
            once AS (SELECT server_id, bool_or(rebound) AS rebound FROM touched GROUP BY server_id), ",
            super::wide!(), "SELECT ", super::columns!(), ", ", super::described!(), " FROM once t \
                JOIN servers s ON s.server_id = t.server_id", super::placed!(),
            "WHERE t.rebound OR s.current_reservation_id = $1 OR s.loan_reservation_id = $1 \
                OR s.target_pending AND s.target_reservation_id = $1 ORDER BY s.server");
        /// The time of an entry.
        ENTRY_AT = "SELECT at FROM audit_trail WHERE seq = $1";
        /// Events that began or ended by the clock alone between `$1` and now.
        BY_THE_CLOCK = "SELECT u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE u.started_at > $1 AND u.started_at <= now() \
                OR coalesce(u.ended_at, 'infinity'::timestamptz) > $1 \
                    AND coalesce(u.ended_at, 'infinity'::timestamptz) <= now()";
        /// Whether there were such events, and the last entry of the trail.
        CLOCK_TICK = "SELECT now(), (SELECT seq FROM trail_clock), EXISTS (SELECT FROM unavailability u \
            WHERE u.started_at > $1 AND u.started_at <= now() \
                OR coalesce(u.ended_at, 'infinity'::timestamptz) > $1 \
                    AND coalesce(u.ended_at, 'infinity'::timestamptz) <= now())";
    }
}

/// A watcher of a reservation, with its position.
#[derive(Debug)]
pub struct Watcher {
    reservation: String,
    seq: Seq,
    /// The database's clock at the last read of events that begin or end by the clock.
    looked_at: Option<DateTime<Utc>>,
    /// The servers of the reservation as the watcher knows them; `None`: unknown, so that removals may name
    /// servers that were never reported.
    known: Option<BTreeSet<i32>>,
}

impl Watcher {
    /// A watcher whose list is as of an entry of the audit trail.
    pub fn new(reservation: &str, from: Seq) -> Watcher {
        let reservation = reservation.to_owned();
        Watcher { reservation, seq: from, looked_at: None, known: None }
    }
}

/// The current state of a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerChange {
    /// The server concerns the reservation, in this state.
    Server(ReservedServer),
    /// The server does not concern the reservation any more.
    Gone(Name),
}

/// The result of one poll.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchUpdate {
    /// The last entry that was read.
    pub seq: Seq,
    /// The changes are unknown: list again, and watch from here.
    pub reset: bool,
    /// The changed servers.
    pub changes: Vec<ServerChange>,
    /// Whether more entries are waiting.
    pub more: bool,
    /// Whether to poll again within a second even without a wakeup, because events by the clock were not read.
    pub again: bool,
}

impl Broker {
    /// Reads what may have changed since the last poll, at most 1,000 entries of the audit trail.
    ///
    /// # Errors
    /// [`ReservationError`]; the watcher keeps its position and can be polled again.
    pub async fn poll_changes(
        &self,
        watcher: &mut Watcher,
    ) -> Result<WatchUpdate, ReservationError> {
        let doing = "following a reservation";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let header = header(&mut tx, &watcher.reservation).await.doing(doing)?;
        let (id, promise, _) = header
            .reservation
            .ok_or_else(|| ReservationError::Unknown { name: watcher.reservation.clone() })?;
        let (touched, seq, again) = read_on(&mut tx, watcher, &header).await.doing(doing)?;
        let mut changes = Vec::new();
        if !touched.anything && !touched.is_empty() {
            let query = sqlx::query(sql::STATES).bind(id).bind(promise);
            let mut rows = query
                .bind(list(&touched.bindings))
                .bind(touched.versions.into_iter().collect::<Vec<i64>>())
                .bind(list(&touched.servers))
                .bind(list(&touched.racks))
                .bind(list(&touched.msbs))
                .bind(list(&touched.datacenters))
                .fetch(&mut *tx);
            while let Some(row) = rows.try_next().await.doing(doing)? {
                let change = change(&row, watcher.known.as_ref()).doing(doing)?;
                changes.extend(change);
            }
        }
        // The watcher is up to date: from here on only reported servers are removed.
        let known = if touched.anything || (seq == header.seq && watcher.known.is_none()) {
            let own: Vec<i32> = sqlx::query_scalar(reserved_server::sql::OWN)
                .bind(id)
                .fetch_all(&mut *tx)
                .await
                .doing(doing)?;
            Some(own.into_iter().collect())
        } else {
            None
        };
        tx.commit().await.doing(doing)?;

        watcher.seq = seq;
        if !again {
            watcher.looked_at = Some(header.now);
        }
        match (known, &mut watcher.known) {
            (Some(known), _) => watcher.known = Some(known),
            (None, Some(known)) => {
                for (server_id, change) in &changes {
                    match change {
                        ServerChange::Server(_) => known.insert(*server_id),
                        ServerChange::Gone(_) => known.remove(server_id),
                    };
                }
            }
            (None, None) => {}
        }
        let changes = changes.into_iter().map(|(_, change)| change).collect();
        Ok(WatchUpdate { seq, reset: touched.anything, changes, more: seq < header.seq, again })
    }

    /// Whether anything may have changed since `since` without a wakeup: events that began or ended by the
    /// clock alone, which the trail does not record, and entries whose wakeup was lost.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn clock_tick(&self, since: DateTime<Utc>) -> Result<ClockTick, crate::DbError> {
        let asked = sqlx::query_as(sql::CLOCK_TICK).bind(since).fetch_one(&self.pool);
        let (now, seq, by_clock): (_, i64, _) = asked.await.doing("looking at the clock")?;
        Ok(ClockTick { now, seq: Seq(seq), by_clock })
    }
}

/// A reading of the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockTick {
    /// The time, by the database's clock.
    pub now: DateTime<Utc>,
    /// The last entry of the audit trail.
    pub seq: Seq,
    /// Whether events began or ended since the given time.
    pub by_clock: bool,
}

/// Reads the trail on; returns what may have changed, the new position, and whether events by the clock are
/// left for a later poll. After a reset the position is the last entry.
async fn read_on(
    db: &mut PgConnection,
    watcher: &Watcher,
    header: &Header,
) -> Result<(AffectedServers, Seq, bool), sqlx::Error> {
    let mut touched = AffectedServers::default();
    let (from, head) = (watcher.seq, header.seq);
    let since = match watcher.looked_at {
        Some(at) => Some(at),
        None => sqlx::query_scalar(sql::ENTRY_AT).bind(from.0).fetch_optional(&mut *db).await?,
    };
    let near = (0..=CATCH_UP_MAX).contains(&head.0.saturating_sub(from.0));
    let Some(since) = since.filter(|_| near) else {
        touched.anything = true;
        return Ok((touched, head, false));
    };
    let entries = trail::after(&mut *db, from).await?;
    let mut seq = from;
    for entry in &entries {
        // Older entries may have been deleted.
        touched.anything |= entry.seq.0 != seq.0 + 1;
        touched.add(entry);
        seq = entry.seq;
    }
    if touched.anything {
        return Ok((touched, head, false));
    }
    let recent = watcher.looked_at.is_some_and(|at| header.now - at < CLOCK_EVERY);
    if recent && !entries.is_empty() {
        return Ok((touched, seq, true));
    }
    let by_clock: Vec<(String, String)> =
        sqlx::query_as(sql::BY_THE_CLOCK).bind(since).fetch_all(&mut *db).await?;
    for (scope, name) in by_clock {
        match Scope::parse(&scope) {
            Some(scope) => touched.add_scope(scope, name),
            None => touched.anything = true,
        }
    }
    Ok((touched, seq, false))
}

fn list(names: &BTreeSet<String>) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// The change that a row means for a watcher with these servers.
fn change(
    row: &PgRow,
    known: Option<&BTreeSet<i32>>,
) -> Result<Option<(i32, ServerChange)>, sqlx::Error> {
    let id: i32 = row.try_get(16)?;
    Ok(match server(row)? {
        Ok(server) => Some((id, ServerChange::Server(server))),
        Err(name) => known
            .is_none_or(|known| known.contains(&id))
            .then_some((id, ServerChange::Gone(name.into()))),
    })
}
