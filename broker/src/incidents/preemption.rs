//! Preemption after losses beyond the buffers: servers of less important reservations go to more important
//! ones.
//!
//! The plan is a value for operators to review. Execution computes it again, in the transaction that writes it.
//! Its moves are ordinary ones, so a reservation gets its servers back by the next solve after the outage.

use crate::access::idempotency::{self, KeyClaim};
use crate::incidents::placement;
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, GaveWay, Handover};
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence};
use crate::topology::edit_error::version;
use chrono::{DateTime, Utc};
use decisions::place::PlaceLimits;
use decisions::preemption::{HeldGroup, Holder, PREEMPTION_LOST_MIN, Preemption, RegionHeld};
use fleet::{ReservationName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        HOLDERS = "SELECT r.reservation, p.priority, p.capacity_micro, h.hardware_type::text, v.value_micro \
            FROM reservations r JOIN promises p USING (promise_id) \
            LEFT JOIN rru_values v USING (promise_id) LEFT JOIN hardware_types h USING (hardware_type_id) \
            WHERE r.kind = 'guaranteed' ORDER BY 1, 4";
        /// Servers in service, or back from maintenance within the time of a recall, by holder: the target of
        /// an open move, else the owner. Servers with an open move are held and cannot be taken.
        HELD = "SELECT r.reservation, coalesce(r.kind = 'shared_buffer', false), m.msb::text, \
                h.hardware_type::text, g.in_use, g.held, g.takable \
            FROM (SELECT CASE WHEN s.target_pending THEN s.target_reservation_id \
                        ELSE s.current_reservation_id END AS reservation_id, \
                    k.msb_id, s.hardware_type_id, s.in_use, count(*) AS held, \
                    count(*) FILTER (WHERE NOT s.target_pending AND o.server_id IS NULL) AS takable \
                FROM servers s JOIN racks k USING (rack_id) \
                LEFT JOIN (SELECT server_id FROM moves WHERE open AND origin <> 'recall') o USING (server_id) \
                WHERE NOT EXISTS (SELECT FROM servers_not_back($1) AS u WHERE u = s.server_id) \
                GROUP BY 1, 2, 3, 4) g \
            LEFT JOIN reservations r USING (reservation_id) \
            JOIN msbs m USING (msb_id) JOIN hardware_types h USING (hardware_type_id) \
            ORDER BY 1, 3, 4, 5";
        TAKE = "WITH wanted AS (SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], \
                    $5::boolean[], $6::bigint[], $7::bigint[]) \
                    AS w (source, target, msb, hardware_type, in_use, count, after)), \
            chosen AS (SELECT c.server_id, t.reservation_id FROM wanted w \
                JOIN reservations t ON t.reservation = w.target \
                JOIN msbs m ON m.msb = w.msb JOIN hardware_types h ON h.hardware_type = w.hardware_type \
                LEFT JOIN reservations r ON r.reservation = w.source \
                CROSS JOIN LATERAL (SELECT s.server_id FROM servers s JOIN racks k USING (rack_id) \
                    WHERE s.current_reservation_id IS NOT DISTINCT FROM r.reservation_id \
                        AND k.msb_id = m.msb_id AND s.hardware_type_id = h.hardware_type_id \
                        AND s.in_use = w.in_use AND NOT s.target_pending \
                        AND NOT EXISTS (SELECT FROM servers_not_back($9) AS u WHERE u = s.server_id) \
                        AND NOT EXISTS (SELECT FROM moves o WHERE o.open AND o.server_id = s.server_id \
                            AND o.origin <> 'recall') \
                    ORDER BY s.server OFFSET w.after LIMIT w.count) c) \
            UPDATE servers s SET target_pending = true, target_reservation_id = c.reservation_id, \
                target_version = $8, target_origin = 'give_way' \
            FROM chosen c WHERE s.server_id = c.server_id RETURNING s.server::text";
        /// Lost MSBs. An outage that ends while this runs counts as ended afterwards.
        LOST = "SELECT msb FROM outages WHERE ended_at IS NULL ORDER BY msb";
    }
}

/// The version of a plan: plans with the same moves have the same version.
pub fn preemption_version(plan: &[Preemption]) -> String {
    version(&handovers(plan))
}

fn handovers(plan: &[Preemption]) -> Vec<Handover<'_>> {
    plan.iter().map(Handover::from).collect()
}

/// The cause of a preemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PreemptionCause {
    /// An operator's command.
    Operator {
        /// The operator's reason.
        why: String,
        /// Even if fewer MSBs are lost than [`PREEMPTION_LOST_MIN`].
        anyway: bool,
        /// The version of the plan that the operator has seen; `None`: any.
        seen: Option<String>,
    },
    /// The mover, because enough MSBs have been lost for its configured time.
    Delay {
        /// The epoch of the mover.
        epoch: Epoch,
        /// The configured time.
        after: Duration,
        /// The time since which enough MSBs are lost.
        since: DateTime<Utc>,
    },
}

impl PreemptionCause {
    fn gave_way<'a>(&'a self, lost: &'a [String]) -> GaveWay<'a> {
        match self {
            PreemptionCause::Operator { why, anyway, .. } => {
                GaveWay::Operator { why, anyway: *anyway, lost }
            }
            PreemptionCause::Delay { after, since, .. } => {
                GaveWay::Delay { after_seconds: after.as_secs(), since: *since, lost }
            }
        }
    }
}

/// The result of a preemption.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Preempted {
    /// The plan that was executed.
    pub plan: Vec<Preemption>,
    /// The number of servers with a new target.
    pub servers: usize,
}

/// The answer for an idempotency key, made from the result.
pub type PreemptionAnswer<'a> = &'a (dyn Fn(&Preempted) -> Document + Sync);

/// No preemption took place; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum PreemptionError {
    #[error(
        "{lost} MSBs are lost; embedded buffers cover the loss of one, so reservations give way \
         when at least {PREEMPTION_LOST_MIN} are lost, or when `anyway` is said"
    )]
    TooFewLost { lost: usize },
    #[error("the plan has changed since it was seen")]
    Stale { current: String },
    #[error("why: a reason is required")]
    NoReason,
    #[error("the idempotency key was taken by another request")]
    KeyLost,
    #[error(transparent)]
    Mover(#[from] MoverError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// The servers in service by holder.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn region_held(&self) -> Result<RegionHeld, DbError> {
        let doing = "counting who holds what";
        let mut db = self.pool.acquire().await.doing(doing)?;
        read(&mut db).await.doing(doing)
    }

    /// Executes a preemption as a pure function decides it, and writes the cause into the audit trail. `key`: a
    /// claimed idempotency key with its answer, stored in the same transaction.
    ///
    /// # Errors
    /// [`PreemptionError`].
    pub async fn preempt(
        &self,
        actor: &str,
        cause: &PreemptionCause,
        key: Option<(KeyClaim, PreemptionAnswer<'_>)>,
        plan: impl FnOnce(&RegionHeld) -> Vec<Preemption>,
    ) -> Result<Preempted, PreemptionError> {
        let doing = "letting reservations give way";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        if let PreemptionCause::Delay { epoch, .. } = cause {
            check_fence(db, *epoch).await?;
        }
        let head = lifecycle::hold_head(db).await?;
        let lost: Vec<String> =
            sqlx::query_scalar(sql::LOST).fetch_all(&mut *db).await.doing(doing)?;
        let anyway = matches!(cause, PreemptionCause::Operator { anyway: true, .. });
        if lost.len() < PREEMPTION_LOST_MIN && !anyway {
            return Err(PreemptionError::TooFewLost { lost: lost.len() });
        }
        let held = read(db).await.doing(doing)?;
        let plan = plan(&held);
        if let PreemptionCause::Operator { why, seen, .. } = cause {
            if why.trim().is_empty() {
                return Err(PreemptionError::NoReason);
            }
            let current = preemption_version(&plan);
            if seen.as_ref().is_some_and(|seen| *seen != current) {
                return Err(PreemptionError::Stale { current });
            }
        }
        let taken = take(db, &plan, head.0).await.doing(doing)?;
        let gave = Preempted { plan, servers: taken.len() };
        if taken.is_empty() {
            change.abandon().await?;
            return Ok(gave);
        }
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&gave)).await?
        {
            return Err(PreemptionError::KeyLost);
        }
        let (cause, plan) = (cause.gave_way(&lost), handovers(&gave.plan));
        change.record("region", Event::ReservationsGaveWay { cause, plan, servers: &taken });
        change.commit().await?;
        Ok(gave)
    }
}

/// The time within which servers must be back from maintenance to count, as in the certificate.
fn recall_within() -> i32 {
    i32::try_from(fleet::RECALL_WITHIN_MINUTES).unwrap_or(i32::MAX)
}

/// A reservation, its priority and capacity, and one of its types with its value.
type HolderRow = (String, i32, i64, Option<String>, Option<i64>);

async fn read(db: &mut PgConnection) -> Result<RegionHeld, sqlx::Error> {
    let mut holders: Vec<Holder> = Vec::new();
    let mut places = placement::read(&mut *db).await?;
    let rows: Vec<HolderRow> = sqlx::query_as(sql::HOLDERS).fetch_all(&mut *db).await?;
    for (reservation, priority, capacity, hardware_type, value) in rows {
        if holders.last().is_none_or(|last| *last.reservation != *reservation) {
            let (reservation, capacity) = (ReservationName::from(reservation), Rru(capacity));
            let place = places.remove(&reservation);
            let place = place.unwrap_or(PlaceLimits { capacity, ..PlaceLimits::default() });
            let values = BTreeMap::new();
            holders.push(Holder { reservation, priority, capacity, values, place });
        }
        if let (Some(last), Some(ty), Some(value)) = (holders.last_mut(), hardware_type, value) {
            last.values.insert(ty.into(), Rru(value));
        }
    }
    let group = |row: PgRow| {
        Ok(HeldGroup {
            holder: row.try_get::<Option<&str>, _>(0)?.map(ReservationName::from),
            shared: row.try_get(1)?,
            msb: row.try_get::<&str, _>(2)?.into(),
            hardware_type: row.try_get::<&str, _>(3)?.into(),
            in_use: row.try_get(4)?,
            held: row.try_get::<i64, _>(5)?.unsigned_abs(),
            takable: row.try_get::<i64, _>(6)?.unsigned_abs(),
        })
    };
    let groups = sqlx::query(sql::HELD).bind(recall_within()).try_map(group).fetch_all(db).await?;
    Ok(RegionHeld { holders, groups })
}

async fn take(
    db: &mut PgConnection,
    plan: &[Preemption],
    head: i64,
) -> Result<Vec<String>, sqlx::Error> {
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let text = |of: fn(&Preemption) -> &str| -> Vec<&str> { plan.iter().map(&of).collect() };
    let counts: Vec<i64> =
        plan.iter().map(|row| i64::try_from(row.count).unwrap_or(i64::MAX)).collect();
    // Takers of one group take consecutive slices of it.
    let mut taken: BTreeMap<_, i64> = BTreeMap::new();
    let after: Vec<i64> = (plan.iter().zip(&counts))
        .map(|(row, count)| {
            let key = (&row.source, &row.msb, &row.hardware_type, row.in_use);
            let taken = taken.entry(key).or_default();
            let after = *taken;
            *taken += count;
            after
        })
        .collect();
    sqlx::query_scalar(sql::TAKE)
        .bind(plan.iter().map(|row| row.source.as_deref()).collect::<Vec<_>>())
        .bind(text(|row| &row.target))
        .bind(text(|row| &row.msb))
        .bind(text(|row| &row.hardware_type))
        .bind(plan.iter().map(|row| row.in_use).collect::<Vec<_>>())
        .bind(counts)
        .bind(after)
        .bind(head)
        .bind(recall_within())
        .fetch_all(db)
        .await
}
