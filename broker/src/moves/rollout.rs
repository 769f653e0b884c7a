//! Rollouts: a changed host profile reaches bound servers.
//!
//! When a promise gets another host profile, its servers are recorded as outdated, with the profile they were
//! last configured with. Each is reconfigured by a move that keeps its owner
//! ([`crate::MoveOrigin::Reconfigure`]), under the limits and contracts of all moves. Setting the old profile
//! again undoes the change: servers that still have it are not outdated any more.

use crate::infra::error::{DbError, Doing};
use crate::infra::id::MoveId;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::moves::mover::Stopped;
use sqlx::postgres::PgArguments;
use sqlx::query::Query;
use sqlx::{PgConnection, Postgres};

pub(crate) mod sql {
    crate::statements! {
        /// Runs before the reservations point to their new promises ($2: the new profiles). Returns the
        /// reservations whose profile changes.
        OUTDATE = "WITH changed AS (SELECT r.reservation_id, p.host_profile AS was, w.profile AS wanted \
                FROM unnest($1::text[], $2::text[]) AS w (reservation, profile) \
                JOIN reservations r USING (reservation) JOIN promises p USING (promise_id) \
                WHERE p.host_profile IS DISTINCT FROM w.profile), \
            right_again AS (DELETE FROM outdated_profiles o USING changed c \
                WHERE o.reservation_id = c.reservation_id \
                    AND o.host_profile IS NOT DISTINCT FROM c.wanted), \
            added AS (INSERT INTO outdated_profiles AS o (server_id, reservation_id, host_profile) \
                SELECT s.server_id, c.reservation_id, c.was FROM changed c \
                JOIN servers s ON s.current_reservation_id = c.reservation_id \
                WHERE NOT EXISTS (SELECT FROM outdated_profiles k WHERE k.server_id = s.server_id \
                    AND k.reservation_id = c.reservation_id) \
                ON CONFLICT (server_id) DO UPDATE SET reservation_id = excluded.reservation_id, \
                    host_profile = excluded.host_profile, refused = NULL) \
            SELECT reservation_id FROM changed";
        ASK_AGAIN = "UPDATE outdated_profiles SET refused = NULL \
            WHERE reservation_id = ANY ($1) AND refused IS NOT NULL";
        BEGIN = "INSERT INTO rollouts AS o (reservation_id, servers) \
            SELECT c.reservation_id, (SELECT count(*) FROM outdated_profiles k JOIN servers s USING (server_id) \
                WHERE k.reservation_id = c.reservation_id AND s.current_reservation_id = c.reservation_id) \
            FROM unnest($1::integer[]) AS c (reservation_id) \
            ON CONFLICT (reservation_id) DO UPDATE \
                SET servers = excluded.servers, began_at = clock_timestamp()";
        /// Moves that have not begun and are not needed any more, or belong to a paused rollout.
        WITHDRAW = "WITH moot AS (SELECT m.move_id, EXISTS (SELECT FROM rollouts k \
                    JOIN reservations t USING (reservation_id) WHERE t.reservation = m.target_reservation \
                        AND k.paused_by IS NOT NULL) AS paused, \
                    EXISTS (SELECT FROM outdated_profiles o JOIN servers s USING (server_id) \
                        WHERE o.server_id = m.server_id AND o.refused IS NULL \
                            AND s.current_reservation_id = o.reservation_id) AS needed \
                FROM moves m WHERE m.open AND m.origin = 'reconfigure' AND m.state = 'pending') \
            UPDATE moves m SET state = 'superseded', \
                reason = CASE WHEN moot.needed THEN 'rollout_paused' ELSE 'newer_target' END \
            FROM moot WHERE m.move_id = moot.move_id AND m.state = 'pending' \
                AND (moot.paused OR NOT moot.needed)";
        /// Whether the reservation's profile ever changed.
        HAS_ONE = "SELECT EXISTS (SELECT FROM rollouts w WHERE w.reservation_id = r.reservation_id) \
            FROM reservations r WHERE r.reservation = $1";
        PAUSE = "UPDATE rollouts w SET paused_by = $2, paused_why = $3 FROM reservations r \
            WHERE r.reservation = $1 AND w.reservation_id = r.reservation_id AND w.paused_by IS NULL";
        RESUME = "UPDATE rollouts w SET paused_by = NULL, paused_why = NULL FROM reservations r \
            WHERE r.reservation = $1 AND w.reservation_id = r.reservation_id AND w.paused_by IS NOT NULL";
        /// Moves that were bound ($1); those of $2 set a profile.
        RECORD_PROFILES = "DELETE FROM outdated_profiles o USING moves m WHERE m.move_id = ANY ($1) \
            AND o.server_id = m.server_id AND (NOT m.stays OR m.move_id = ANY ($2))";
        /// The promise changed while the host was being configured for the previous one.
        STILL_OUTDATED = "INSERT INTO outdated_profiles (server_id, reservation_id, host_profile) \
            SELECT s.server_id, r.reservation_id, m.host_profile FROM moves m \
            JOIN servers s USING (server_id) \
            JOIN reservations r ON r.reservation_id = s.current_reservation_id \
            JOIN promises p USING (promise_id) \
            WHERE m.move_id = ANY ($1) AND m.host_profile IS DISTINCT FROM p.host_profile \
            ON CONFLICT (server_id) DO NOTHING";
        REFUSED = "UPDATE outdated_profiles o SET refused = $2 FROM moves m \
            WHERE m.move_id = $1 AND m.origin = 'reconfigure' AND o.server_id = m.server_id";
    }
}

/// The progress of the last change of a host profile.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Rollout {
    /// Servers with another profile when it began.
    pub servers: i64,
    /// Servers that still have it.
    pub outdated: i64,
    /// Of these, servers whose hosts refused.
    pub refused: i64,
    /// The actor and reason of a pause; `None`: it is running.
    pub paused: Option<Stopped>,
}

/// A rollout cannot be paused or resumed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum RolloutError {
    #[error("there is no reservation {reservation:?}")]
    Unknown { reservation: String },
    #[error(
        "reservation {reservation:?}: its host profile never changed, so there is no roll-out; one \
         begins when a request for another host_profile is granted"
    )]
    NeverChanged { reservation: String },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Rollout {
    /// Servers that were reconfigured or left the reservation.
    pub fn done(&self) -> i64 {
        (self.servers - self.outdated).max(0)
    }
}

/// Records the servers of reservations whose host profile is about to change.
pub(crate) async fn begin(
    db: &mut PgConnection,
    reservations: &[&str],
    profiles: &[Option<String>],
) -> Result<(), sqlx::Error> {
    let changed = sqlx::query_scalar(sql::OUTDATE).bind(reservations).bind(profiles);
    let changed: Vec<i32> = changed.fetch_all(&mut *db).await?;
    if changed.is_empty() {
        return Ok(());
    }
    sqlx::query(sql::ASK_AGAIN).bind(&changed).execute(&mut *db).await?;
    sqlx::query(sql::BEGIN).bind(&changed).execute(db).await?;
    Ok(())
}

/// Withdraws moves that are not needed any more or belong to a paused rollout; returns the number.
pub(crate) async fn withdraw(db: &mut PgConnection) -> Result<u64, DbError> {
    let doing = "withdrawing moves to another host profile";
    let withdrawn = sqlx::query(sql::WITHDRAW).execute(db).await.doing(doing)?;
    Ok(withdrawn.rows_affected())
}

/// Records the host profiles that bound moves have set.
pub(crate) async fn record_profiles(
    db: &mut PgConnection,
    bound: &[MoveId],
    configured: &[MoveId],
) -> Result<(), DbError> {
    let doing = "noting host profiles that were set";
    let recorded = sqlx::query(sql::RECORD_PROFILES).bind(bound).bind(configured);
    recorded.execute(&mut *db).await.doing(doing)?;
    if !configured.is_empty() {
        let still = sqlx::query(sql::STILL_OUTDATED).bind(configured);
        still.execute(db).await.doing(doing)?;
    }
    Ok(())
}

/// Records a host's refusal.
pub(crate) async fn refused(db: &mut PgConnection, id: MoveId, said: &str) -> Result<(), DbError> {
    let noted = sqlx::query(sql::REFUSED).bind(id).bind(said).execute(db).await;
    noted.map(|_| ()).doing("noting that a host refused its profile")
}

impl crate::Broker {
    /// Pauses the rollout of a reservation's host profile: no further reconfiguration begins, running ones end.
    /// False: it was paused already.
    ///
    /// # Errors
    /// [`RolloutError`].
    pub async fn pause_rollout(
        &self,
        actor: &str,
        reservation: &str,
        why: &str,
    ) -> Result<bool, RolloutError> {
        let paused = sqlx::query(sql::PAUSE).bind(reservation).bind(actor).bind(why);
        self.switch_rollout(actor, reservation, paused, Event::RolloutPaused { why }).await
    }

    /// Resumes a paused rollout. False: it was not paused.
    ///
    /// # Errors
    /// [`RolloutError`].
    pub async fn resume_rollout(
        &self,
        actor: &str,
        reservation: &str,
    ) -> Result<bool, RolloutError> {
        let resumed = sqlx::query(sql::RESUME).bind(reservation);
        self.switch_rollout(actor, reservation, resumed, Event::RolloutResumed {}).await
    }

    async fn switch_rollout(
        &self,
        actor: &str,
        reservation: &str,
        switch: Query<'_, Postgres, PgArguments>,
        event: Event<'_>,
    ) -> Result<bool, RolloutError> {
        let doing = "pausing or resuming a roll-out";
        let named = || reservation.to_owned();
        if reservation.contains('\0') {
            return Err(RolloutError::Unknown { reservation: named() });
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let switched = switch.execute(change.connection()).await.doing(doing)?;
        if switched.rows_affected() == 1 {
            change.record(reservation, event);
            change.commit().await?;
            return Ok(true);
        }
        let found = sqlx::query_scalar(sql::HAS_ONE).bind(reservation);
        let found: Option<bool> = found.fetch_optional(change.connection()).await.doing(doing)?;
        change.abandon().await?;
        match found {
            Some(true) => Ok(false),
            Some(false) => Err(RolloutError::NeverChanged { reservation: named() }),
            None => Err(RolloutError::Unknown { reservation: named() }),
        }
    }
}
