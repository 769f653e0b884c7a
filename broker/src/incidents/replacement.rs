//! Replacement of failed servers by spares.
//!
//! Debts follow from stored rows: an unplanned event of a server or of its rack took it out of use while a
//! guaranteed reservation held it, and no solve has seen the failure. One transaction records the failures,
//! asks a pure function for spares, and writes the decision, so nothing changes between read and decision. Only
//! the active mover ([`Epoch`]) does this.

use crate::incidents::placement;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::state::{self, ReplacementState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence, check_fence_at_head};
use crate::promises::survives;
use chrono::{DateTime, Utc};
use decisions::domains::{Domain, Shares};
use decisions::replace::{Failed, Spare, SpareContext, Swap};
use fleet::{MsbName, Name, PartitionName, ReservationName, Rru, ServerName};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        /// Whether there is a replacement to follow, and whether there may be a failure to replace; most passes
        /// end here.
        ANY = "SELECT EXISTS (SELECT FROM replacements WHERE state IN ('owed', 'swapped')), EXISTS (SELECT FROM unavailability u \
                WHERE coalesce(u.ended_at, 'infinity'::timestamptz) > now() \
                    AND u.event_id NOT LIKE ALL (ARRAY['unfinished/%', 'decommission/%']) AND u.kind IN ('random_failure', 'software') \
                    AND u.recorded_at > coalesce((SELECT max(v.started_at) FROM solves v \
                        WHERE v.state = 'published'), '-infinity') \
                    AND NOT EXISTS (SELECT FROM replacements p WHERE p.event_id = u.event_id))";
        /// The outcome of swaps: bound, retargeted by a newer decision, or given back.
        FOLLOW = "WITH seen AS (SELECT p.replacement_id, CASE \
                    WHEN s.server_id IS NULL OR r.reservation_id IS NULL THEN 'withdrawn' \
                    WHEN s.target_pending AND s.target_reservation_id = r.reservation_id THEN 'swapped' \
                    WHEN s.current_reservation_id = r.reservation_id THEN 'bound' \
                    WHEN NOT s.target_pending AND k.kind = 'shared_buffer' THEN 'owed' \
                    ELSE 'withdrawn' END AS state \
                FROM replacements p LEFT JOIN servers s ON s.server_id = p.spare_id \
                LEFT JOIN reservations r ON r.reservation = p.reservation \
                LEFT JOIN reservations k ON k.reservation_id = s.current_reservation_id \
                WHERE p.state = 'swapped') \
            UPDATE replacements p SET state = seen.state FROM seen \
            WHERE p.replacement_id = seen.replacement_id AND seen.state <> 'swapped'";
        /// Debts that have ended.
        SETTLE = "WITH seen AS (SELECT p.replacement_id, CASE \
                    WHEN s.server_id IS NULL OR r.reservation_id IS NULL THEN 'withdrawn' \
                    WHEN p.state_at < (SELECT max(v.started_at) FROM solves v WHERE v.state = 'published') \
                        THEN 'paid' \
                    WHEN r.reservation_id = CASE WHEN s.target_pending THEN s.target_reservation_id \
                            ELSE s.current_reservation_id END \
                        AND u IS NULL THEN 'recovered' \
                    ELSE 'owed' END AS state \
                FROM replacements p LEFT JOIN servers s USING (server_id) \
                LEFT JOIN reservations r ON r.reservation = p.reservation \
                LEFT JOIN servers_out_of_use(false) AS u ON u = p.server_id \
                WHERE p.state = 'owed') \
            UPDATE replacements p SET state = seen.state FROM seen \
            WHERE p.replacement_id = seen.replacement_id AND seen.state <> 'owed'";
        /// Unhandled failures. Failures in a lost MSB are not random, a solve has provided for those it has
        /// seen, and servers that a move left half-way are restored: automation that refuses for all servers
        /// would otherwise use up every spare.
        FAILURES = "SELECT DISTINCT ON (s.server) s.server_id, s.server::text, r.reservation, \
                u.event_id::text, u.started_at, u.recorded_at \
            FROM unavailable_servers u CROSS JOIN LATERAL \
                (SELECT * FROM servers WHERE server_id = u.server_id OFFSET 0) s \
            JOIN racks k USING (rack_id) \
            JOIN reservations r ON r.reservation_id = CASE WHEN s.target_pending \
                THEN s.target_reservation_id ELSE s.current_reservation_id END \
            WHERE u.kind IN ('random_failure', 'software') AND u.scope IN ('server', 'rack') \
                AND u.event_id NOT LIKE ALL (ARRAY['unfinished/%', 'decommission/%']) \
                AND u.recorded_at <= $1 \
                AND u.recorded_at > coalesce((SELECT max(v.started_at) FROM solves v \
                    WHERE v.state = 'published'), '-infinity') \
                AND r.kind = 'guaranteed' \
                AND NOT EXISTS (SELECT FROM outages o WHERE o.msb_id = k.msb_id AND o.ended_at IS NULL) \
                AND NOT EXISTS (SELECT FROM replacements p WHERE p.server_id = s.server_id \
                    AND (p.event_id = u.event_id OR p.state IN ('owed', 'swapped'))) \
            ORDER BY s.server, u.started_at, u.event_id";
        ADD = "INSERT INTO replacements (replacement_id, server_id, server, reservation, event_id, \
                started_at, recorded_at, state) \
            SELECT w.*, 'owed' FROM unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[], \
                $6::timestamptz[], $7::timestamptz[]) AS w";
        OWED = "SELECT p.server, p.reservation, m.priority, h.hardware_type::text, p.started_at, p.recorded_at \
            FROM replacements p JOIN servers s USING (server_id) \
            JOIN hardware_types h USING (hardware_type_id) \
            JOIN reservations r ON r.reservation = p.reservation JOIN promises m USING (promise_id) \
            WHERE p.state = 'owed' ORDER BY p.server";
        /// Of spares that differ only in name, the first by name, at most as many as there are debts ($1; NULL: all, as
        /// names may tell them apart).
        /// $2: the partitions whose domains count.
        SPARES = "WITH every AS (SELECT s.server, k.msb_id, s.hardware_type_id, \
                    s.loan_reservation_id IS NOT NULL OR s.in_use AS lent, \
                    CASE WHEN $2::text[] = '{}' THEN '{}'::text[] ELSE domains_of(s.server_id, $2) END AS domains \
                FROM reservations r JOIN servers s ON s.current_reservation_id = r.reservation_id \
                JOIN (SELECT rack_id, msb_id FROM racks OFFSET 0) k USING (rack_id) \
                WHERE r.kind = 'shared_buffer' AND NOT s.target_pending \
                    AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u = s.server_id) \
                    AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = s.server_id) \
                    AND NOT EXISTS (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id \
                        AND m.origin <> 'recall')), \
            spares AS (SELECT *, row_number() OVER (PARTITION BY msb_id, hardware_type_id, lent, domains \
                    ORDER BY server) AS place FROM every) \
            SELECT s.server::text, b.msb::text, h.hardware_type::text, s.lent, s.domains \
            FROM spares s JOIN msbs b USING (msb_id) JOIN hardware_types h USING (hardware_type_id) \
            WHERE ($1::bigint IS NULL OR s.place <= $1) \
                AND NOT EXISTS (SELECT FROM outages o WHERE o.msb_id = s.msb_id AND o.ended_at IS NULL)";
        VALUES = "SELECT r.reservation, h.hardware_type::text, v.value_micro FROM reservations r \
            JOIN rru_values v USING (promise_id) JOIN hardware_types h USING (hardware_type_id) \
            WHERE r.reservation = ANY ($1)";
        BUFFERED = "SELECT r.reservation FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.reservation = ANY ($1) AND p.msb_buffer";
        /// Servers bound to them and in service, and those with an open move to them.
        HELD = "SELECT r.reservation, b.msb::text, sum(v.value_micro)::bigint \
            FROM (SELECT s.server_id, s.rack_id, s.hardware_type_id, s.current_reservation_id AS holder_id \
                    FROM reservations q JOIN servers s ON s.current_reservation_id = q.reservation_id \
                    WHERE q.reservation = ANY ($1) AND NOT s.target_pending \
                UNION ALL SELECT s.server_id, s.rack_id, s.hardware_type_id, s.target_reservation_id \
                    FROM moves m JOIN servers s USING (server_id) \
                    WHERE m.open AND s.target_pending AND m.target_reservation = ANY ($1)) h \
            JOIN reservations r ON r.reservation_id = h.holder_id \
            JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = h.hardware_type_id \
            JOIN racks k USING (rack_id) JOIN msbs b USING (msb_id) \
            WHERE NOT EXISTS (SELECT FROM servers_out_of_use(false) AS u WHERE u = h.server_id) \
            GROUP BY 1, 2 ORDER BY 1, 2";
        /// The same in each domain of the partitions that they survive, and each MSB.
        HELD_IN_DOMAINS = "SELECT r.reservation, b.msb::text, p.partition::text, d.domain::text, sum(v.value_micro)::bigint \
            FROM (SELECT s.server_id, s.rack_id, s.hardware_type_id, s.current_reservation_id AS holder_id \
                    FROM reservations q JOIN servers s ON s.current_reservation_id = q.reservation_id \
                    WHERE q.reservation = ANY ($1) AND NOT s.target_pending \
                UNION ALL SELECT s.server_id, s.rack_id, s.hardware_type_id, s.target_reservation_id \
                    FROM moves m JOIN servers s USING (server_id) \
                    WHERE m.open AND s.target_pending AND m.target_reservation = ANY ($1)) h \
            JOIN reservations r ON r.reservation_id = h.holder_id \
            JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = h.hardware_type_id \
            JOIN survives s ON s.promise_id = r.promise_id \
            JOIN server_domains d ON d.server_id = h.server_id AND d.partition_id = s.partition_id \
            JOIN partitions p ON p.partition_id = d.partition_id \
            JOIN racks k USING (rack_id) JOIN msbs b USING (msb_id) \
            WHERE NOT EXISTS (SELECT FROM servers_out_of_use(false) AS u WHERE u = h.server_id) \
            GROUP BY 1, 2, 3, 4";
        /// The spare's target is the reservation. The failed server becomes a spare of its type once it is
        /// repaired, or free if there is no shared buffer of its type.
        SWAP = "WITH wanted AS (SELECT p.replacement_id, p.server_id AS failed_id, f.server_id AS spare_id, \
                    f.server AS spare, r.reservation_id, w.failed \
                FROM unnest($1::text[], $2::text[], $3::text[]) AS w (failed, reservation, spare) \
                JOIN servers x ON x.server = w.failed \
                JOIN replacements p ON p.server_id = x.server_id AND p.state = 'owed' \
                    AND p.reservation = w.reservation \
                JOIN reservations r ON r.reservation = w.reservation \
                JOIN servers f ON f.server = w.spare), \
            swapped AS (UPDATE replacements p SET state = 'swapped', spare_id = w.spare_id, spare = w.spare \
                FROM wanted w WHERE p.replacement_id = w.replacement_id), \
            spares AS (UPDATE servers s SET target_pending = true, target_reservation_id = w.reservation_id, \
                    target_version = $4, target_origin = 'replacement' \
                FROM wanted w WHERE s.server_id = w.spare_id), \
            failed AS (UPDATE servers s SET \
                    target_pending = s.current_reservation_id IS DISTINCT FROM b.reservation_id, \
                    target_reservation_id = CASE WHEN s.current_reservation_id IS DISTINCT FROM b.reservation_id \
                        THEN b.reservation_id END, \
                    target_version = CASE WHEN s.current_reservation_id IS DISTINCT FROM b.reservation_id \
                        THEN $4 END, \
                    target_origin = CASE WHEN s.current_reservation_id IS DISTINCT FROM b.reservation_id \
                        THEN 'replacement' END \
                FROM wanted w JOIN servers x ON x.server_id = w.failed_id \
                LEFT JOIN reservations b ON b.buffer_type_id = x.hardware_type_id \
                WHERE s.server_id = w.failed_id) \
            SELECT failed FROM wanted";
        LISTED = "SELECT server, reservation, event_id::text, started_at, recorded_at, state, state_at, spare, returned_at \
            FROM replacements WHERE $1::text[] IS NULL OR state = ANY ($1) \
            ORDER BY recorded_at DESC, replacement_id DESC LIMIT $2";
        COUNTED = "SELECT state, count(*) FROM replacements GROUP BY 1 ORDER BY 1";
        /// Seconds from record to binding, by the database's clock alone.
        TIMES = "SELECT extract(epoch FROM state_at - recorded_at)::float8 FROM replacements \
            WHERE state = 'bound' ORDER BY 1";
    }
}

/// Replacements, counted, and their times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplacementTimes {
    /// The number of replacements by state.
    pub counts: BTreeMap<ReplacementState, i64>,
    /// Seconds from event to binding of those that are bound, sorted.
    pub seconds: Vec<f64>,
}

/// The result of a pass over failures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Failed servers found.
    pub failed: usize,
    /// Spares that replace one.
    pub swapped: usize,
    /// Remaining debts: no spare fits.
    pub owed: usize,
}

/// A replacement.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplacementRow {
    /// The failed server.
    pub server: ServerName,
    /// The reservation that it left short.
    pub reservation: ReservationName,
    /// The event of the failure.
    pub event: Name,
    /// The start of the event, by its own time.
    pub started_at: DateTime<Utc>,
    /// The time the event was recorded.
    pub recorded_at: DateTime<Utc>,
    /// The replacement's state.
    pub state: ReplacementState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The spare.
    pub spare: Option<ServerName>,
    /// When the failed server was back in the reservation, and its spare left.
    pub returned_at: Option<DateTime<Utc>>,
}

impl Broker {
    /// Records failures and the outcome of earlier ones, asks a pure function for spares, and sets their
    /// targets. Failures recorded after `until` are left for later: they may be the first of many. `each`: whether spares
    /// of one type in one MSB may differ, so that all are read.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn replace_failed(
        &self,
        actor: &str,
        epoch: Epoch,
        until: DateTime<Utc>,
        each: bool,
        choose: impl FnOnce(&[Failed], &[Spare], &SpareContext) -> Vec<Swap>,
    ) -> Result<Replaced, MoverError> {
        let doing = "replacing servers that failed";
        let (open, failed): (bool, bool) =
            sqlx::query_as(sql::ANY).fetch_one(&self.pool).await.doing(doing)?;
        if !open && !failed {
            return Ok(Replaced::default());
        }
        if open {
            self.follow_replacements(epoch).await?;
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let head = check_fence_at_head(db, epoch).await?;
        let failures = note(db, until).await.doing(doing)?;
        let owed = owed(db).await.doing(doing)?;
        let swaps = if owed.is_empty() {
            Vec::new()
        } else {
            let most = (!each).then_some(owed.len());
            let short: BTreeSet<&ReservationName> = owed.iter().map(|of| &of.reservation).collect();
            let worth = worth(db, &short).await.doing(doing)?;
            let spares = spares(db, most, &worth.partitions()).await.doing(doing)?;
            choose(&owed, &spares, &worth)
        };
        let text = |of: fn(&Swap) -> &str| -> Vec<&str> { swaps.iter().map(&of).collect() };
        let mut swapped: Vec<String> = Vec::new();
        if !swaps.is_empty() {
            let mut touched = text(|swap| &swap.failed);
            touched.extend(text(|swap| &swap.spare));
            lifecycle::lock_servers(db, &touched).await?;
            swapped = sqlx::query_scalar(sql::SWAP)
                .bind(text(|swap| &swap.failed))
                .bind(text(|swap| &swap.reservation))
                .bind(text(|swap| &swap.spare))
                .bind(head.0)
                .fetch_all(&mut *db)
                .await
                .doing(doing)?;
        }
        let swapped: BTreeSet<String> = swapped.into_iter().collect();
        for swap in swaps.iter().filter(|swap| swapped.contains(&*swap.failed)) {
            let Swap { failed, reservation, spare, exceeds } = swap;
            change.record(failed, Event::ServerReplaced { reservation, spare, exceeds });
        }
        for (server, reservation) in failures.iter().filter(|(server, _)| !swapped.contains(server))
        {
            change.record(server, Event::ReplacementOwed { reservation });
        }
        let left = owed.len() - swapped.len();
        let replaced = Replaced { failed: failures.len(), swapped: swapped.len(), owed: left };
        if swapped.is_empty() && failures.is_empty() {
            change.abandon().await?;
        } else {
            change.commit().await?;
        }
        Ok(replaced)
    }

    /// Records the outcome of earlier decisions. The entries of the trail were written by the changes that
    /// caused it.
    async fn follow_replacements(&self, epoch: Epoch) -> Result<(), MoverError> {
        let doing = "following replacements";
        let mut tx = self.begin().await.doing(doing)?;
        check_fence(&mut tx, epoch).await?;
        for statement in [sql::FOLLOW, sql::SETTLE] {
            sqlx::query(statement).execute(&mut *tx).await.doing(doing)?;
        }
        Ok(tx.commit().await.doing(doing)?)
    }

    /// Lists replacements in these states (empty: all), newest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn replacements(
        &self,
        states: &[ReplacementState],
        limit: u32,
    ) -> Result<Vec<ReplacementRow>, DbError> {
        let words: Vec<&str> = states.iter().map(|state| state.as_str()).collect();
        let rows = sqlx::query(sql::LISTED)
            .bind(Some(words).filter(|words| !words.is_empty()))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| listed(&row))
            .fetch_all(&self.pool);
        rows.await.doing("listing replacements")
    }

    /// The number of replacements by state, and the sorted seconds from event to binding of the bound ones.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn replacement_times(&self) -> Result<ReplacementTimes, DbError> {
        let doing = "counting replacements";
        let counts = sqlx::query(sql::COUNTED)
            .try_map(|row: PgRow| Ok((state::read(row.try_get(0)?)?, row.try_get(1)?)));
        let counts = counts.fetch_all(&self.pool).await.doing(doing)?.into_iter().collect();
        let seconds = sqlx::query_scalar(sql::TIMES).fetch_all(&self.pool).await.doing(doing)?;
        Ok(ReplacementTimes { counts, seconds })
    }
}

/// A failed server: id, server, reservation, event, start and record of the event.
type FailureRow = (i32, String, String, String, DateTime<Utc>, DateTime<Utc>);

/// Records failures; returns the servers and the reservations they leave short.
async fn note(
    db: &mut PgConnection,
    until: DateTime<Utc>,
) -> Result<Vec<(String, String)>, sqlx::Error> {
    let rows: Vec<FailureRow> =
        sqlx::query_as(sql::FAILURES).bind(until).fetch_all(&mut *db).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    sqlx::query(sql::ADD)
        .bind(rows.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.0).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.1.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.2.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.3.as_str()).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.4).collect::<Vec<_>>())
        .bind(rows.iter().map(|row| row.5).collect::<Vec<_>>())
        .execute(db)
        .await?;
    Ok(rows.into_iter().map(|row| (row.1, row.2)).collect())
}

async fn owed(db: &mut PgConnection) -> Result<Vec<Failed>, sqlx::Error> {
    let failed = |row: PgRow| {
        Ok(Failed {
            server: row.try_get::<&str, _>(0)?.into(),
            reservation: row.try_get::<&str, _>(1)?.into(),
            priority: row.try_get(2)?,
            hardware_type: row.try_get::<&str, _>(3)?.into(),
            since: row.try_get(4)?,
        })
    };
    sqlx::query(sql::OWED).try_map(failed).fetch_all(db).await
}

async fn spares(
    db: &mut PgConnection,
    most: Option<usize>,
    partitions: &BTreeSet<PartitionName>,
) -> Result<Vec<Spare>, sqlx::Error> {
    let spare = |row: PgRow| {
        Ok(Spare {
            server: row.try_get::<&str, _>(0)?.into(),
            msb: row.try_get::<&str, _>(1)?.into(),
            hardware_type: row.try_get::<&str, _>(2)?.into(),
            lent: row.try_get(3)?,
            domains: survives::domains(&row, 4)?,
        })
    };
    let partitions: Vec<&str> = partitions.iter().map(|name| &**name).collect();
    let most = most.map(|most| i64::try_from(most).unwrap_or(i64::MAX));
    sqlx::query(sql::SPARES).bind(most).bind(partitions).try_map(spare).fetch_all(db).await
}

/// RRU by reservation and another name.
fn by_pair<T: From<String> + Ord>(
    rows: Vec<(String, String, i64)>,
) -> BTreeMap<(ReservationName, T), Rru> {
    rows.into_iter().map(|(of, other, micro)| ((of.into(), other.into()), Rru(micro))).collect()
}

/// The values of hardware types for these reservations, and their holdings.
pub(crate) async fn worth(
    db: &mut PgConnection,
    of: &BTreeSet<&ReservationName>,
) -> Result<SpareContext, sqlx::Error> {
    let names: Vec<&str> = of.iter().map(|name| name.as_ref()).collect();
    let values = sqlx::query_as(sql::VALUES).bind(&names).fetch_all(&mut *db).await?;
    let held = sqlx::query_as(sql::HELD).bind(&names).fetch_all(&mut *db).await?;
    let buffered: Vec<String> =
        sqlx::query_scalar(sql::BUFFERED).bind(&names).fetch_all(&mut *db).await?;
    let buffered = buffered.into_iter().map(ReservationName::from).collect();
    let mut places = placement::read(db).await?;
    places.retain(|name, _| of.contains(name));
    // V is zero outside the allowed datacenters.
    let allows = |name: &ReservationName, msb: &MsbName| {
        places.get(name).is_none_or(|place| place.allows(msb))
    };
    let held = by_pair(held).into_iter().filter(|((name, msb), _)| allows(name, msb));
    let mut shares: Shares = held.collect();
    shares.survives = survives::read(db, &names).await?;
    let in_domains: Vec<(String, String, String, String, i64)> = match shares.survives.is_empty() {
        true => Vec::new(),
        false => sqlx::query_as(sql::HELD_IN_DOMAINS).bind(&names).fetch_all(&mut *db).await?,
    };
    for (name, msb, partition, domain, amount) in in_domains {
        let name = ReservationName::from(name);
        if allows(&name, &msb.into()) {
            let domain = Domain { partition: partition.into(), name: domain.into() };
            *shares.by_domain.entry(name).or_default().entry(domain).or_default() += Rru(amount);
        }
    }
    Ok(SpareContext { values: by_pair(values), held: shares, places, buffered })
}

fn listed(row: &PgRow) -> Result<ReplacementRow, sqlx::Error> {
    let name = |column: usize| row.try_get::<&str, _>(column);
    Ok(ReplacementRow {
        server: name(0)?.into(),
        reservation: name(1)?.into(),
        event: name(2)?.into(),
        started_at: row.try_get(3)?,
        recorded_at: row.try_get(4)?,
        state: crate::infra::state::read(row.try_get(5)?)?,
        state_at: row.try_get(6)?,
        spare: row.try_get::<Option<&str>, _>(7)?.map(ServerName::from),
        returned_at: row.try_get(8)?,
    })
}
