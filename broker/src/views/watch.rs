//! Following what a reservation has: the state of each server that may have changed, again and again.
//!
//! The audit trail says where to look, and what is there now is what is told. So a follower that lags
//! is told less often, never wrongly; one that is told the same twice is none the worse. It holds
//! nothing of Postgres between two looks, and what it remembers is no larger than the reservation.

use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use crate::log::affected::Touched;
use crate::log::trail::{self, Seq};
use crate::views::allocator::{
    Header, ReservedServer, columns, described, header, placed, server, wide,
};
use crate::views::reservation::ReservationError;
use chrono::{DateTime, TimeDelta, Utc};
use fleet::Name;
use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeSet;

/// Whoever is further behind than this lists anew: reading so many entries takes seconds, a list
/// takes less.
const CATCH_UP_MAX: i64 = 100_000;

/// How often events that begin or end by the clock are looked for: they are few, and who is told of
/// them a second later is told in time.
const CLOCK_EVERY: TimeDelta = TimeDelta::seconds(1);

pub(crate) mod sql {
    crate::statements! {
        /// The state of servers that may differ, and the names of those that may have been the
        /// reservation's until now.
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
        /// Everything the reservation owns, gets or borrows.
        OWN = "SELECT server_id FROM servers WHERE current_reservation_id = $1 \
            UNION SELECT server_id FROM servers WHERE loan_reservation_id = $1 \
            UNION SELECT server_id FROM servers WHERE target_pending AND target_reservation_id = $1";
        /// When an entry was written.
        ENTRY_AT = "SELECT at FROM audit_trail WHERE seq = $1";
        /// Events that began or ended by the clock alone, since then and until now.
        BY_THE_CLOCK = "SELECT u.scope, coalesce(s.server, r.rack, m.msb, d.datacenter)::text \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE u.started_at > $1 AND u.started_at <= now() \
                OR coalesce(u.ended_at, 'infinity'::timestamptz) > $1 \
                    AND coalesce(u.ended_at, 'infinity'::timestamptz) <= now()";
        /// Whether there were any, and where the trail is.
        TICK = "SELECT now(), (SELECT seq FROM trail_clock), EXISTS (SELECT FROM unavailability u \
            WHERE u.started_at > $1 AND u.started_at <= now() \
                OR coalesce(u.ended_at, 'infinity'::timestamptz) > $1 \
                    AND coalesce(u.ended_at, 'infinity'::timestamptz) <= now())";
    }
}

/// Somebody who follows a reservation, and how far.
#[derive(Debug)]
pub struct Follower {
    reservation: String,
    seq: Seq,
    /// The database's clock when it was last looked for what begins or ends by it.
    looked_at: Option<DateTime<Utc>>,
    /// The servers that are known to be the reservation's; `None`: what was told before is not
    /// known, so that more is taken back than was ever given.
    known: Option<BTreeSet<i32>>,
}

impl Follower {
    /// Somebody who has a picture as of an entry of the audit trail.
    pub fn new(reservation: &str, from: Seq) -> Follower {
        let reservation = reservation.to_owned();
        Follower { reservation, seq: from, looked_at: None, known: None }
    }
}

/// What is so of a server now.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerChange {
    /// It is the reservation's, like this.
    Server(ReservedServer),
    /// It is not the reservation's any more.
    Gone(Name),
}

/// What one look has brought.
#[derive(Clone, Debug, PartialEq)]
pub struct Look {
    /// The last entry that was looked at.
    pub seq: Seq,
    /// It cannot be told what has changed: list anew, and go on from here.
    pub reset: bool,
    /// The servers.
    pub changes: Vec<ServerChange>,
    /// Whether there is more at once.
    pub more: bool,
    /// Whether to look again within a second even if nothing rings: the clock was not looked at.
    pub again: bool,
}

impl Broker {
    /// Looks at what may have changed since the last look, at most 1,000 entries of the audit trail
    /// further.
    ///
    /// # Errors
    /// [`ReservationError`]; the follower stays where it is and may look again.
    pub async fn look(&self, follower: &mut Follower) -> Result<Look, ReservationError> {
        let doing = "following a reservation";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let header = header(&mut tx, &follower.reservation).await.doing(doing)?;
        let (id, promise, _) = header
            .reservation
            .ok_or_else(|| ReservationError::Unknown { name: follower.reservation.clone() })?;
        let (touched, seq, again) = read_on(&mut tx, follower, &header).await.doing(doing)?;
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
                let change = change(&row, follower.known.as_ref()).doing(doing)?;
                changes.extend(change);
            }
        }
        // Once all is read: from here on only what was given is taken back.
        let known = if touched.anything || (seq == header.seq && follower.known.is_none()) {
            let own: Vec<i32> =
                sqlx::query_scalar(sql::OWN).bind(id).fetch_all(&mut *tx).await.doing(doing)?;
            Some(own.into_iter().collect())
        } else {
            None
        };
        tx.commit().await.doing(doing)?;

        follower.seq = seq;
        if !again {
            follower.looked_at = Some(header.now);
        }
        match (known, &mut follower.known) {
            (Some(known), _) => follower.known = Some(known),
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
        Ok(Look { seq, reset: touched.anything, changes, more: seq < header.seq, again })
    }

    /// What may have changed since then although no bell rang: events that began or ended by the
    /// clock alone, of which the audit trail says nothing, and entries whose bell was lost.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn tick(&self, since: DateTime<Utc>) -> Result<Tick, crate::DbError> {
        let asked = sqlx::query_as(sql::TICK).bind(since).fetch_one(&self.pool);
        let (now, seq, by_clock): (_, i64, _) = asked.await.doing("looking at the clock")?;
        Ok(Tick { now, seq: Seq(seq), by_clock })
    }
}

/// One look at the clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tick {
    /// The time, by the database's clock.
    pub now: DateTime<Utc>,
    /// The last entry of the audit trail.
    pub seq: Seq,
    /// Whether events began or ended since the time that was named.
    pub by_clock: bool,
}

/// Reads on in the trail; gives where to look, up to where that is, and whether the clock was left
/// for later. What is not to be told ends at the last entry.
async fn read_on(
    db: &mut PgConnection,
    follower: &Follower,
    header: &Header,
) -> Result<(Touched, Seq, bool), sqlx::Error> {
    let mut touched = Touched::default();
    let (from, head) = (follower.seq, header.seq);
    let since = match follower.looked_at {
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
        // Older entries are not kept.
        touched.anything |= entry.seq.0 != seq.0 + 1;
        touched.add(entry);
        seq = entry.seq;
    }
    if touched.anything {
        return Ok((touched, head, false));
    }
    let lately = follower.looked_at.is_some_and(|at| header.now - at < CLOCK_EVERY);
    if lately && !entries.is_empty() {
        return Ok((touched, seq, true));
    }
    let by_clock: Vec<(String, String)> =
        sqlx::query_as(sql::BY_THE_CLOCK).bind(since).fetch_all(&mut *db).await?;
    for (scope, name) in by_clock {
        touched.add_scope(&scope, &name);
    }
    Ok((touched, seq, false))
}

fn list(names: &BTreeSet<String>) -> Vec<&str> {
    names.iter().map(String::as_str).collect()
}

/// What a row says to somebody who knows these servers.
fn change(
    row: &PgRow,
    known: Option<&BTreeSet<i32>>,
) -> Result<Option<(i32, ServerChange)>, sqlx::Error> {
    let id: i32 = row.try_get(16)?;
    Ok(match server(row)? {
        Ok(server) => Some((id, ServerChange::Server(server))),
        Err(name) => {
            known.is_none_or(|known| known.contains(&id)).then_some((id, ServerChange::Gone(name)))
        }
    })
}
