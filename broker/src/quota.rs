//! How much may be promised to an owner.

use crate::broker::Broker;
use crate::change::Change;
use crate::error::{DbError, Doing};
use crate::trail::{Action, Seq};
use chrono::{DateTime, Utc};
use fleet::{Name, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};

pub(crate) mod sql {
    crate::statements! {
        SET = "INSERT INTO quotas (owner, capacity_micro, set_by) VALUES ($1, $2, $3) \
            ON CONFLICT (owner) DO UPDATE SET capacity_micro = excluded.capacity_micro, \
                set_by = excluded.set_by, set_at = clock_timestamp()";
        REMOVE = "DELETE FROM quotas WHERE owner = $1";
        /// Owners with a quota or a promise.
        QUOTAS = "SELECT coalesce(q.owner, u.owner), q.capacity_micro, coalesce(u.promised, 0)::bigint, \
                q.set_by::text, q.set_at \
            FROM quotas q FULL JOIN (SELECT p.owner, sum(p.capacity_micro) AS promised \
                FROM reservations r JOIN promises p USING (promise_id) WHERE r.kind = 'guaranteed' \
                GROUP BY p.owner) u ON u.owner = q.owner \
            ORDER BY 1";
        /// The same of one.
        QUOTA = "SELECT o.owner, q.capacity_micro, coalesce(u.promised, 0)::bigint, q.set_by::text, q.set_at \
            FROM (SELECT $1::text AS owner) o LEFT JOIN quotas q USING (owner) \
            LEFT JOIN (SELECT p.owner, sum(p.capacity_micro) AS promised \
                FROM reservations r JOIN promises p USING (promise_id) \
                WHERE r.kind = 'guaranteed' AND p.owner = $1 GROUP BY p.owner) u USING (owner) \
            WHERE q.owner IS NOT NULL OR u.owner IS NOT NULL";
    }
}

/// What an owner may be promised, and is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// The business unit.
    pub owner: Name,
    /// What its guaranteed reservations may be promised together; `None`: as much as there is.
    pub capacity: Option<Rru>,
    /// What they are promised.
    pub promised: Rru,
    /// Who set it.
    pub set_by: Option<String>,
    /// When.
    pub set_at: Option<DateTime<Utc>>,
}

impl Broker {
    /// Sets how much may be promised to an owner; `None`: as much as there is. What is promised
    /// already stays.
    ///
    /// # Errors
    /// If Postgres fails, or the owner's name or the amount is none.
    pub async fn set_quota(
        &self,
        actor: &str,
        owner: &str,
        capacity: Option<Rru>,
    ) -> Result<Seq, DbError> {
        let doing = "setting a quota";
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let before = read(db, Some(owner)).await?.pop().and_then(|quota| quota.capacity);
        let statement = match capacity {
            Some(capacity) => sqlx::query(sql::SET).bind(owner).bind(capacity.0).bind(actor),
            None => sqlx::query(sql::REMOVE).bind(owner),
        };
        statement.execute(db).await.doing(doing)?;
        let detail = serde_json::json!({
            "before_rru": before.map(Rru::to_f64), "rru": capacity.map(Rru::to_f64),
        });
        change.record(Action::QuotaSet, owner, detail);
        change.commit().await
    }

    /// Quotas and what is promised, by owner: of everybody who has either, or of one.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn quotas(&self, owner: Option<&str>) -> Result<Vec<Quota>, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        read(&mut db, owner).await
    }
}

/// Quotas as they are within a transaction.
pub(crate) async fn read(
    db: &mut PgConnection,
    owner: Option<&str>,
) -> Result<Vec<Quota>, DbError> {
    let asked = match owner {
        Some(owner) => sqlx::query(sql::QUOTA).bind(owner),
        None => sqlx::query(sql::QUOTAS),
    };
    let rows = asked.try_map(|row: PgRow| {
        Ok(Quota {
            owner: row.try_get::<&str, _>(0)?.into(),
            capacity: row.try_get::<Option<i64>, _>(1)?.map(Rru),
            promised: Rru(row.try_get(2)?),
            set_by: row.try_get(3)?,
            set_at: row.try_get(4)?,
        })
    });
    rows.fetch_all(db).await.doing("reading quotas")
}
