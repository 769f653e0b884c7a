//! Idempotency keys: a repeated request gets the stored answer of the first.
//!
//! A key is claimed before the work and answered in the transaction that does the work, so the answer exists
//! exactly if the work was done. The claim of a lost caller expires.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use sqlx::PgConnection;
use std::time::Duration;
use uuid::Uuid;

/// How long an answer is stored.
pub const KEYS_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How long the claim of an unanswered key lasts.
const CLAIM_LASTS: Duration = Duration::from_secs(60);

/// The longest key, in characters.
pub const KEY_CHARS_MAX: usize = 255;

pub(crate) mod sql {
    crate::statements! {
        /// A new key, one older than a day, or one whose claim has expired.
        CLAIM = "INSERT INTO idempotency_keys AS k (actor, key, claim_id, digest) VALUES ($1, $2, $3, $4) \
            ON CONFLICT (actor, key) DO UPDATE SET claim_id = excluded.claim_id, \
                digest = excluded.digest, claimed_at = clock_timestamp(), answer = NULL \
            WHERE k.claimed_at < clock_timestamp() - make_interval(secs => \
                CASE WHEN k.answer IS NULL THEN $5::float8 ELSE $6::float8 END)";
        HELD = "SELECT digest, answer FROM idempotency_keys WHERE actor = $1 AND key = $2";
        ANSWER = "UPDATE idempotency_keys SET answer = $2 WHERE claim_id = $1 AND answer IS NULL";
        RELEASE = "DELETE FROM idempotency_keys WHERE claim_id = $1 AND answer IS NULL";
        FORGET = "DELETE FROM idempotency_keys WHERE claimed_at < clock_timestamp() - make_interval(secs => $1)";
    }
}

/// The right to answer a request with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyClaim(pub(crate) Uuid);

/// The state of a key for a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// New: do the work, then answer.
    Ours(KeyClaim),
    /// The request was answered; this is the stored answer.
    Answered(Document),
    /// The request is in progress.
    Running,
    /// The key was used for another request.
    Other,
}

impl Broker {
    /// Claims a key of an actor for the request with this digest.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn claim_key(
        &self,
        actor: &str,
        key: &str,
        digest: [u8; 32],
    ) -> Result<Key, DbError> {
        let doing = "claiming a key";
        let claim = Uuid::now_v7();
        let claimed = sqlx::query(sql::CLAIM)
            .bind(actor)
            .bind(key)
            .bind(claim)
            .bind(&digest[..])
            .bind(CLAIM_LASTS.as_secs_f64())
            .bind(KEYS_KEPT.as_secs_f64());
        if claimed.execute(&self.pool).await.doing(doing)?.rows_affected() == 1 {
            return Ok(Key::Ours(KeyClaim(claim)));
        }
        let held: Option<(Vec<u8>, Option<Document>)> = sqlx::query_as(sql::HELD)
            .bind(actor)
            .bind(key)
            .fetch_optional(&self.pool)
            .await
            .doing(doing)?;
        Ok(match held {
            Some((of, _)) if of != digest => Key::Other,
            Some((_, Some(answer))) => Key::Answered(answer),
            // Released this instant: a retry gets it.
            Some((_, None)) | None => Key::Running,
        })
    }

    /// Releases a key whose work was not done. An unreleased claim expires.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn release_key(&self, claim: KeyClaim) -> Result<(), DbError> {
        let released = sqlx::query(sql::RELEASE).bind(claim.0).execute(&self.pool).await;
        released.map(|_| ()).doing("giving a key back")
    }

    /// Deletes keys older than a day; returns the number.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn forget_keys(&self) -> Result<u64, DbError> {
        let forgotten = sqlx::query(sql::FORGET).bind(KEYS_KEPT.as_secs_f64()).execute(&self.pool);
        Ok(forgotten.await.doing("forgetting keys")?.rows_affected())
    }
}

/// Stores the answer of a key, in the transaction that does the work; false: the claim expired and another
/// caller has the key.
pub(crate) async fn answer(
    db: &mut PgConnection,
    claim: KeyClaim,
    answer: &Document,
) -> Result<bool, DbError> {
    let answered = sqlx::query(sql::ANSWER).bind(claim.0).bind(answer).execute(db).await;
    Ok(answered.doing("answering a key")?.rows_affected() == 1)
}
