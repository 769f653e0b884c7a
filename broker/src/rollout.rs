//! A changed host profile reaches the servers that are bound.
//!
//! When a promise gets another host profile, its servers are noted as outdated with the profile they
//! were last configured with. Each is reconfigured by a move that keeps its owner
//! ([`crate::MoveOrigin::Reconfigure`]), under the limits and contracts of all moves. Setting the old
//! profile again is the way back: servers that still have it are not outdated any more.

use crate::error::{DbError, Doing};
use crate::moves;
use crate::state::MoveState;
use crate::state::State;
use fleet::Name;
use sqlx::PgConnection;
use std::collections::BTreeMap;
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        /// Before the reservations point to their new promises ($2: the profiles of these). Gives the
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
        /// Moves that have not begun and are not needed any more.
        WITHDRAW = "UPDATE moves m SET state = 'superseded', reason = 'newer_target' \
            WHERE m.open AND m.origin = 'reconfigure' AND m.state = 'pending' AND NOT EXISTS \
                (SELECT FROM outdated_profiles o JOIN servers s USING (server_id) \
                    WHERE o.server_id = m.server_id AND o.refused IS NULL \
                        AND s.current_reservation_id = o.reservation_id) \
            RETURNING m.server_id";
        /// Servers that are lent, cordoned or out of use wait until they are back.
        WANTED = "SELECT o.server_id FROM outdated_profiles o JOIN servers s USING (server_id) \
            WHERE o.refused IS NULL AND s.current_reservation_id = o.reservation_id \
                AND NOT s.target_pending AND s.loan_reservation_id IS NULL \
                AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u = o.server_id) \
                AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = o.server_id) \
                AND NOT EXISTS (SELECT FROM moves m WHERE m.open AND m.server_id = o.server_id) \
            ORDER BY o.server_id";
        /// What hosts were told that are being reconfigured.
        ORDERED = "SELECT move_id, host_profile FROM moves WHERE move_id = ANY ($1)";
        CONFIGURED = "SELECT move_id FROM moves WHERE move_id = ANY ($1) AND open AND state = $2";
        /// Of moves that were bound ($1), of which these ($2) set a profile.
        SETTLE = "DELETE FROM outdated_profiles o USING moves m WHERE m.move_id = ANY ($1) \
            AND o.server_id = m.server_id AND (NOT m.stays OR m.move_id = ANY ($2))";
        /// The promise changed while a host was told of the one before.
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

/// How far the last change of a host profile is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
pub struct Rollout {
    /// Servers that had another profile when it began.
    pub servers: i64,
    /// Those that have it still.
    pub outdated: i64,
    /// Those of them whose hosts refused to be reconfigured.
    pub refused: i64,
}

impl Rollout {
    /// Servers that it has reached, or that have left the reservation.
    pub fn done(&self) -> i64 {
        (self.servers - self.outdated).max(0)
    }
}

/// Notes the servers of reservations whose host profile is about to change.
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

/// Withdraws moves that are not needed any more, and opens those that are; gives how many of each.
pub(crate) async fn open(db: &mut PgConnection) -> Result<(u64, u64), DbError> {
    let doing = "opening moves to another host profile";
    let withdrawn: Vec<i32> =
        sqlx::query_scalar(sql::WITHDRAW).fetch_all(&mut *db).await.doing(doing)?;
    let wanted: Vec<i32> =
        sqlx::query_scalar(sql::WANTED).fetch_all(&mut *db).await.doing(doing)?;
    let opened = moves::open(db, &wanted, Some(moves::MoveOrigin::Reconfigure)).await?;
    Ok((opened, withdrawn.len() as u64))
}

/// Of moves that are about to be bound, those that set a host profile.
pub(crate) async fn configured(db: &mut PgConnection, ids: &[Uuid]) -> Result<Vec<Uuid>, DbError> {
    let found =
        sqlx::query_scalar(sql::CONFIGURED).bind(ids).bind(MoveState::Reconfiguring.as_str());
    found.fetch_all(db).await.doing("looking for host profiles that were set")
}

/// Notes what hosts have been configured with by moves that were bound.
pub(crate) async fn settle(
    db: &mut PgConnection,
    bound: &[Uuid],
    configured: &[Uuid],
) -> Result<(), DbError> {
    let doing = "noting host profiles that were set";
    let configured: Vec<Uuid> =
        configured.iter().copied().filter(|id| bound.contains(id)).collect();
    let settled = sqlx::query(sql::SETTLE).bind(bound).bind(&configured);
    settled.execute(&mut *db).await.doing(doing)?;
    if !configured.is_empty() {
        let still = sqlx::query(sql::STILL_OUTDATED).bind(&configured);
        still.execute(db).await.doing(doing)?;
    }
    Ok(())
}

/// Notes that a host refused.
pub(crate) async fn refused(db: &mut PgConnection, id: Uuid, said: &str) -> Result<(), DbError> {
    let noted = sqlx::query(sql::REFUSED).bind(id).bind(said).execute(db).await;
    noted.map(|_| ()).doing("noting that a host refused its profile")
}

impl crate::Broker {
    /// The host profile that each of these moves has told its host, or will.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn ordered_profiles(
        &self,
        ids: &[Uuid],
    ) -> Result<BTreeMap<Uuid, Option<Name>>, DbError> {
        let rows: Vec<(Uuid, Option<String>)> = sqlx::query_as(sql::ORDERED)
            .bind(ids)
            .fetch_all(&self.pool)
            .await
            .doing("reading host profiles that are set")?;
        Ok(rows.into_iter().map(|(id, profile)| (id, profile.map(Name::from))).collect())
    }
}
