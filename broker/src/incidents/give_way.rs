//! When more is lost than buffers cover: servers of less important reservations for more important ones.
//!
//! The plan is a value that people look at first; carrying it out makes it again, in the transaction that
//! writes it. Its moves are ordinary ones, so a reservation gets its servers back by the next solve after
//! the outage.

use crate::access::idempotency::{self, KeyClaim};
use crate::incidents::placement;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::change::Change;
use crate::log::trail::Action;
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, still_ours};
use chrono::{DateTime, Utc};
use decisions::give_way::{GIVE_WAY_LOST_MIN, GiveWay, HeldGroup, Holder, RegionHeld};
use decisions::place::PlaceLimits;
use fleet::{Name, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;
use std::time::Duration;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        HOLDERS = "SELECT r.reservation, p.priority, p.capacity_micro, h.hardware_type::text, v.value_micro \
            FROM reservations r JOIN promises p USING (promise_id) \
            LEFT JOIN rru_values v USING (promise_id) LEFT JOIN hardware_types h USING (hardware_type_id) \
            WHERE r.kind = 'guaranteed' ORDER BY 1, 4";
        /// Servers that work, or are back from maintenance within the time of a recall, by who holds
        /// them: the target of a move under way, else the owner. What is on the move already is held
        /// and cannot be taken.
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
        /// MSBs that are lost. Nothing else of the outages table matters here: an outage that ends
        /// while this runs ended after it.
        LOST = "SELECT msb FROM outages WHERE ended_at IS NULL ORDER BY msb";
    }
}

/// All that is said of servers that change hands, for programs.
fn json(of: &GiveWay) -> serde_json::Value {
    serde_json::json!({
        "source": of.source, "target": of.target, "msb": of.msb,
        "hardware_type": of.hardware_type, "in_use": of.in_use, "count": of.count,
    })
}

/// A plan as an operator has seen it: two plans with the same moves have the same version.
pub fn give_way_version(plan: &[GiveWay]) -> String {
    let rows: Vec<serde_json::Value> = plan.iter().map(json).collect();
    let text = serde_json::Value::Array(rows).to_string();
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

/// Why reservations give way now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GiveWayCause {
    /// An operator says so.
    Operator {
        /// Why, in the operator's words.
        why: String,
        /// Even if fewer MSBs are lost than [`GIVE_WAY_LOST_MIN`].
        anyway: bool,
        /// The version of the plan that was seen; `None`: whatever the plan is.
        seen: Option<String>,
    },
    /// The mover, because that many MSBs have been lost for as long as its setting says.
    Delay {
        /// The mover that acts.
        epoch: Epoch,
        /// The setting.
        after: Duration,
        /// Since when that many MSBs are lost.
        since: DateTime<Utc>,
    },
}

impl GiveWayCause {
    fn json(&self, lost: &[String]) -> serde_json::Value {
        match self {
            GiveWayCause::Operator { why, anyway, .. } => {
                serde_json::json!({ "by": "operator", "why": why, "anyway": anyway, "lost": lost })
            }
            GiveWayCause::Delay { after, since, .. } => serde_json::json!({
                "by": "delay", "after_seconds": after.as_secs(), "since": since, "lost": lost,
            }),
        }
    }
}

/// What giving way came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GaveWay {
    /// What the pure function said.
    pub plan: Vec<GiveWay>,
    /// How many servers have a new target by it.
    pub servers: usize,
}

/// What an idempotency key is answered with, once it is done.
pub type GiveWayAnswer<'a> = &'a (dyn Fn(&GaveWay) -> serde_json::Value + Sync);

/// Nobody gave way; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum GiveWayError {
    #[error(
        "{lost} MSBs are lost; embedded buffers cover the loss of one, so reservations give way \
         when at least {GIVE_WAY_LOST_MIN} are lost, or when `anyway` is said"
    )]
    TooFewLost { lost: usize },
    #[error("the plan has changed since it was seen")]
    Stale { current: String },
    #[error("why: say why reservations are to give way")]
    NoReason,
    #[error("the idempotency key was taken by another request")]
    KeyLost,
    #[error(transparent)]
    Mover(#[from] MoverError),
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Counts who holds what of what works.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn region_held(&self) -> Result<RegionHeld, DbError> {
        let doing = "counting who holds what";
        let mut db = self.pool.acquire().await.doing(doing)?;
        read(&mut db).await.doing(doing)
    }

    /// Lets reservations give way as a pure function says, and writes the cause into the audit trail.
    /// `key`: a claimed idempotency key and the answer it gets in the same transaction.
    ///
    /// # Errors
    /// [`GiveWayError`].
    pub async fn give_way(
        &self,
        actor: &str,
        cause: &GiveWayCause,
        key: Option<(KeyClaim, GiveWayAnswer<'_>)>,
        plan: impl FnOnce(&RegionHeld) -> Vec<GiveWay>,
    ) -> Result<GaveWay, GiveWayError> {
        let doing = "letting reservations give way";
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        if let GiveWayCause::Delay { epoch, .. } = cause {
            still_ours(db, *epoch).await?;
        }
        let head = lifecycle::hold_head(db).await?;
        let lost: Vec<String> =
            sqlx::query_scalar(sql::LOST).fetch_all(&mut *db).await.doing(doing)?;
        let anyway = matches!(cause, GiveWayCause::Operator { anyway: true, .. });
        if lost.len() < GIVE_WAY_LOST_MIN && !anyway {
            return Err(GiveWayError::TooFewLost { lost: lost.len() });
        }
        let held = read(db).await.doing(doing)?;
        let plan = plan(&held);
        if let GiveWayCause::Operator { why, seen, .. } = cause {
            if why.trim().is_empty() {
                return Err(GiveWayError::NoReason);
            }
            let current = give_way_version(&plan);
            if seen.as_ref().is_some_and(|seen| *seen != current) {
                return Err(GiveWayError::Stale { current });
            }
        }
        let taken = take(db, &plan, head.0).await.doing(doing)?;
        let gave = GaveWay { plan, servers: taken.len() };
        if taken.is_empty() {
            change.abandon().await?;
            return Ok(gave);
        }
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&gave)).await?
        {
            return Err(GiveWayError::KeyLost);
        }
        let rows: Vec<serde_json::Value> = gave.plan.iter().map(json).collect();
        let detail =
            serde_json::json!({ "cause": cause.json(&lost), "plan": rows, "servers": taken });
        change.record(Action::ReservationsGaveWay, "region", detail);
        change.commit().await?;
        Ok(gave)
    }
}

/// How soon servers in maintenance must be back to count, as the certificate counts them.
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
            let (reservation, capacity) = (Name::from(reservation), Rru(capacity));
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
            holder: row.try_get::<Option<&str>, _>(0)?.map(Name::from),
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
    plan: &[GiveWay],
    head: i64,
) -> Result<Vec<String>, sqlx::Error> {
    if plan.is_empty() {
        return Ok(Vec::new());
    }
    let text = |of: fn(&GiveWay) -> &Name| -> Vec<&str> {
        plan.iter().map(|row| of(row).as_ref()).collect()
    };
    let counts: Vec<i64> =
        plan.iter().map(|row| i64::try_from(row.count).unwrap_or(i64::MAX)).collect();
    // Where a group goes to several, each goes on where the one before ended.
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
