//! Stored plans: the effect of changes, stored until they are applied or expire.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::PlanId;
use crate::infra::state::{self, PlanState};
use crate::log::trail::{Seq, TargetVersion};
use crate::requests::request::RequestSpec;
use crate::requests::submit::SubmitError;
use chrono::{DateTime, Utc};
use fleet::quote::Quote;
use fleet::{ReservationName, ServerName};
use serde::de::DeserializeOwned;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use sqlx::{PgConnection, Row};
use std::time::Duration;

/// How long a plan can be applied. It is checked against the current region in any case.
pub const PLAN_LASTS: Duration = Duration::from_secs(15 * 60);

/// How long a plan can be read.
const PLANS_KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

pub(crate) mod sql {
    crate::statements! {
        STORE = "INSERT INTO plans (plan_id, state, made_by, expires_at, owners, changes, base, seq, \
                taken_at, answers, targets) \
            VALUES ($1, 'made', $2, clock_timestamp() + make_interval(secs => $3), $4, $5, $6, $7, $8, $9, $10)";
        PLAN = "SELECT plan_id, CASE WHEN state = 'made' AND expires_at <= clock_timestamp() \
                THEN 'expired' ELSE state END, state_at, made_at, made_by::text, expires_at, owners, \
                changes, base, seq, taken_at, answers, targets FROM plans WHERE plan_id = $1";
        APPLIED = "UPDATE plans SET state = 'applied' WHERE plan_id = $1 AND state = 'made' \
            AND expires_at > clock_timestamp()";
        STALE = "UPDATE plans SET state = 'stale' WHERE plan_id = $1 AND state = 'made'";
        EXPIRE = "UPDATE plans SET state = 'expired' WHERE state = 'made' AND expires_at <= clock_timestamp()";
        FORGET = "DELETE FROM plans WHERE expires_at < clock_timestamp() - make_interval(secs => $1)";
    }
}

/// A new plan.
#[derive(Clone, Debug, PartialEq)]
pub struct NewPlan {
    /// Its id.
    pub id: PlanId,
    /// The changes.
    pub changes: Vec<RequestSpec>,
    /// The version of the targets it was made on.
    pub base: TargetVersion,
    /// The last entry of the audit trail it knows.
    pub seq: Seq,
    /// The instant of the region it was made on.
    pub taken_at: DateTime<Utc>,
    /// The quote of each change, in the order of the changes; empty if the plan keeps every promise.
    pub quotes: Vec<Quote>,
    /// The servers whose holder changes, with the new holder.
    pub targets: Vec<(ServerName, Option<ReservationName>)>,
}

/// A stored plan.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredPlan {
    /// The changes, their quotes and the basis.
    pub plan: NewPlan,
    /// The plan's state.
    pub state: PlanState,
    /// The time of the last change of state.
    pub state_at: DateTime<Utc>,
    /// The time it was made.
    pub made_at: DateTime<Utc>,
    /// The actor that requested it.
    pub made_by: String,
    /// The time after which it cannot be applied.
    pub expires_at: DateTime<Utc>,
    /// The owners of the changed reservations.
    pub owners: Vec<String>,
}

/// A stored plan that this program cannot read: a member is missing, renamed or unknown.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("plan {plan} cannot be read: {why}")]
pub struct UnreadablePlan {
    /// The plan.
    pub plan: PlanId,
    /// Whose reservations it changes.
    pub owners: Vec<String>,
    /// The part, and what is wrong with it.
    pub why: String,
}

impl NewPlan {
    /// The owners of the changed reservations, without duplicates.
    pub fn owners(&self) -> Vec<String> {
        let mut owners: Vec<String> =
            self.changes.iter().map(|asking| asking.owner.to_string()).collect();
        owners.sort_unstable();
        owners.dedup();
        owners
    }
}

impl Broker {
    /// Stores a plan for [`PLAN_LASTS`]; with a key, also stores the key's answer.
    ///
    /// # Errors
    /// [`SubmitError::KeyLost`], [`SubmitError::Db`].
    pub async fn store_plan(
        &self,
        actor: &str,
        plan: &NewPlan,
        key: Option<(KeyClaim, &Document)>,
    ) -> Result<(), SubmitError> {
        let doing = "storing a plan";
        let mut tx = self.begin().await.doing(doing)?;
        let stored = sqlx::query(sql::STORE)
            .bind(plan.id)
            .bind(actor)
            .bind(PLAN_LASTS.as_secs_f64())
            .bind(plan.owners())
            .bind(Json(&plan.changes))
            .bind(plan.base.0)
            .bind(plan.seq.0)
            .bind(plan.taken_at)
            .bind(Json(&plan.quotes))
            .bind(Json(&plan.targets));
        stored.execute(&mut *tx).await.doing(doing)?;
        if let Some((claim, answer)) = key
            && !idempotency::answer(&mut tx, claim, answer).await?
        {
            return Err(SubmitError::KeyLost);
        }
        Ok(tx.commit().await.doing(doing)?)
    }

    /// Reads a plan; inner error: it is stored but unreadable.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn stored_plan(
        &self,
        id: PlanId,
    ) -> Result<Option<Result<StoredPlan, UnreadablePlan>>, DbError> {
        let row = sqlx::query(sql::PLAN).bind(id).try_map(|row: PgRow| plan(&row));
        row.fetch_optional(&self.pool).await.doing("reading a plan")
    }

    /// Marks a plan as stale: the region changed beyond what it tolerates.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_stale(&self, id: PlanId) -> Result<(), DbError> {
        let noted = sqlx::query(sql::STALE).bind(id).execute(&self.pool).await;
        noted.map(|_| ()).doing("noting that a plan is stale")
    }

    /// Expires plans, and deletes those older than a week.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_plans(&self) -> Result<(), DbError> {
        let doing = "forgetting plans";
        sqlx::query(sql::EXPIRE).execute(&self.pool).await.doing(doing)?;
        let forgotten = sqlx::query(sql::FORGET).bind(PLANS_KEPT.as_secs_f64());
        forgotten.execute(&self.pool).await.map(|_| ()).doing(doing)
    }
}

/// Notes that a plan is applied, in the transaction that does it; false: it cannot be.
pub(crate) async fn applied(db: &mut PgConnection, id: PlanId) -> Result<bool, DbError> {
    let applied = sqlx::query(sql::APPLIED).bind(id).execute(db).await;
    Ok(applied.doing("applying a plan")?.rows_affected() == 1)
}

/// Parses a row strictly: an error names the part.
fn plan(row: &PgRow) -> Result<Result<StoredPlan, UnreadablePlan>, sqlx::Error> {
    let (id, owners): (PlanId, Vec<String>) = (row.try_get(0)?, row.try_get(6)?);
    let (changes, quotes, targets): (Document, Document, Document) =
        (row.try_get(7)?, row.try_get(11)?, row.try_get(12)?);
    let parts = || {
        let changes: Vec<RequestSpec> = part("changes", &changes)?;
        let quotes: Vec<Quote> = part("answers", &quotes)?;
        let targets: Vec<(ServerName, Option<ReservationName>)> = part("targets", &targets)?;
        agree(&changes, &quotes)?;
        Ok((changes, quotes, targets))
    };
    let (changes, quotes, targets) = match parts() {
        Ok(parts) => parts,
        Err(why) => return Ok(Err(UnreadablePlan { plan: id, owners, why })),
    };
    Ok(Ok(StoredPlan {
        plan: NewPlan {
            id,
            changes,
            base: TargetVersion(row.try_get(8)?),
            seq: Seq(row.try_get(9)?),
            taken_at: row.try_get(10)?,
            quotes,
            targets,
        },
        state: state::read(row.try_get(1)?)?,
        state_at: row.try_get(2)?,
        made_at: row.try_get(3)?,
        made_by: row.try_get(4)?,
        expires_at: row.try_get(5)?,
        owners,
    }))
}

/// Parses each element of a list in a column.
fn part<T: DeserializeOwned>(column: &str, list: &Document) -> Result<Vec<T>, String> {
    let list: Vec<Document> = list.read().map_err(|_| format!("{column} is not a list"))?;
    let read = |(number, of): (usize, Document)| {
        of.read().map_err(|error| format!("{column}[{number}]: {error}"))
    };
    list.into_iter().enumerate().map(read).collect()
}

/// Checks that each quote belongs to its change.
fn agree(changes: &[RequestSpec], quotes: &[Quote]) -> Result<(), String> {
    if quotes.is_empty() && changes.iter().all(RequestSpec::keeps_the_promise) {
        return Ok(());
    }
    if quotes.len() != changes.len() {
        return Err(format!("{} answers to {} changes", quotes.len(), changes.len()));
    }
    let other =
        |(asking, quote): &(&RequestSpec, &Quote)| asking.reservation() != &quote.reservation_id;
    match changes.iter().zip(quotes).find(other) {
        Some((asking, quote)) => Err(format!(
            "the answer to {:?} is about {:?}",
            asking.reservation(),
            quote.reservation_id
        )),
        None => Ok(()),
    }
}
