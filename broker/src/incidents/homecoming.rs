//! Repaired servers return to their reservations, and the spares in their place to the shared buffers.
//!
//! A failed server becomes a spare when it works again. If the reservation still has the spare it got instead, and
//! that one is idle, the two change places: the repaired server moves first, the spare leaves once it has arrived,
//! so the reservation has no less in between. Whether it goes is a pure function's choice. Only the active mover
//! ([`Epoch`]) does this.

use crate::incidents::replacement::worth;
use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence, check_fence_at_head};
use crate::promises::survives;
use decisions::replace::{Repaired, SpareContext};
use fleet::{ReservationName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeSet;

pub(crate) mod sql {
    crate::statements! {
        /// Whether a server may return or does; most passes end here. What was replaced longer ago is the solves'.
        ANY_TO_RETURN = "SELECT EXISTS (SELECT FROM replacements p JOIN reservations r USING (reservation) \
            WHERE p.state = 'bound' AND p.returned_at IS NULL AND p.server_id IS NOT NULL AND p.spare_id IS NOT NULL \
                AND (p.returning_since IS NOT NULL OR p.state_at > now() - interval '30 days'))";
        /// Repaired servers in shared buffers whose reservations have idle spares instead; none while a failed
        /// server waits for a spare.
        REPAIRED = "SELECT DISTINCT ON (s.server) s.server::text, sb.msb::text, sh.hardware_type::text, r.reservation, \
                f.server::text, fb.msb::text, fh.hardware_type::text, m.capacity_micro, m.msb_buffer, \
                domains_of(s.server_id, NULL), domains_of(f.server_id, NULL) \
            FROM replacements p JOIN reservations r ON r.reservation = p.reservation AND r.kind = 'guaranteed' \
            JOIN promises m USING (promise_id) \
            JOIN servers s ON s.server_id = p.server_id \
            JOIN reservations b ON b.reservation_id = s.current_reservation_id AND b.kind = 'shared_buffer' \
            JOIN hardware_types sh ON sh.hardware_type_id = s.hardware_type_id \
            JOIN racks sk ON sk.rack_id = s.rack_id JOIN msbs sb ON sb.msb_id = sk.msb_id \
            JOIN servers f ON f.server_id = p.spare_id AND f.current_reservation_id = r.reservation_id \
            JOIN hardware_types fh ON fh.hardware_type_id = f.hardware_type_id \
            JOIN racks fk ON fk.rack_id = f.rack_id JOIN msbs fb ON fb.msb_id = fk.msb_id \
            WHERE p.state = 'bound' AND p.returning_since IS NULL AND p.state_at > now() - interval '30 days' \
                AND NOT EXISTS (SELECT FROM replacements o WHERE o.state = 'owed') \
                AND NOT s.target_pending AND NOT s.in_use AND s.loan_reservation_id IS NULL \
                AND NOT f.target_pending AND NOT f.in_use AND f.loan_reservation_id IS NULL \
                AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u IN (s.server_id, f.server_id)) \
                AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id IN (s.server_id, f.server_id)) \
                AND NOT EXISTS (SELECT FROM moves m WHERE m.open AND m.server_id IN (s.server_id, f.server_id)) \
                AND NOT EXISTS (SELECT FROM outages o WHERE o.msb_id = sk.msb_id AND o.ended_at IS NULL) \
            ORDER BY s.server, p.state_at DESC";
        RETURN = "WITH wanted AS (SELECT DISTINCT ON (s.server_id) s.server_id, s.server, p.replacement_id, r.reservation_id \
                FROM unnest($1::text[], $2::text[], $3::text[]) AS w (server, reservation, spare) \
                JOIN servers s ON s.server = w.server AND NOT s.target_pending \
                JOIN servers f ON f.server = w.spare JOIN reservations r ON r.reservation = w.reservation \
                JOIN replacements p ON p.server_id = s.server_id AND p.spare_id = f.server_id \
                    AND p.reservation = w.reservation AND p.state = 'bound' AND p.returning_since IS NULL \
                ORDER BY s.server_id, p.state_at DESC), \
            returning_servers AS (UPDATE servers s SET target_pending = true, target_reservation_id = w.reservation_id, \
                    target_version = $4, target_origin = 'replacement' \
                FROM wanted w WHERE s.server_id = w.server_id), \
            noted AS (UPDATE replacements p SET returning_since = clock_timestamp() \
                FROM wanted w WHERE p.replacement_id = w.replacement_id) \
            SELECT server FROM wanted";
        /// Servers that got another target on their way: they do not return.
        NOT_RETURNING = "UPDATE replacements p SET returning_since = NULL FROM servers s, reservations r \
            WHERE p.state = 'bound' AND p.returning_since IS NOT NULL AND p.returned_at IS NULL \
                AND s.server_id = p.server_id AND r.reservation = p.reservation \
                AND s.current_reservation_id IS DISTINCT FROM r.reservation_id \
                AND (NOT s.target_pending OR s.target_reservation_id IS DISTINCT FROM r.reservation_id)";
        /// Servers that are back, while their spares have gone elsewhere or are in use: those stay.
        BACK_ALONE = "UPDATE replacements p SET returned_at = clock_timestamp() FROM servers s, reservations r \
            WHERE p.state = 'bound' AND p.returning_since IS NOT NULL AND p.returned_at IS NULL \
                AND s.server_id = p.server_id AND NOT s.target_pending \
                AND r.reservation = p.reservation AND r.reservation_id = s.current_reservation_id \
                AND NOT EXISTS (SELECT FROM servers f WHERE f.server_id = p.spare_id \
                    AND f.current_reservation_id = r.reservation_id AND NOT f.target_pending \
                    AND NOT f.in_use AND f.loan_reservation_id IS NULL)";
        /// Servers that are back, and their idle spares.
        ARRIVED = "SELECT s.server::text, f.server::text, r.reservation FROM replacements p \
            JOIN servers s ON s.server_id = p.server_id AND NOT s.target_pending \
            JOIN reservations r ON r.reservation = p.reservation AND r.reservation_id = s.current_reservation_id \
            JOIN servers f ON f.server_id = p.spare_id AND f.current_reservation_id = r.reservation_id \
                AND NOT f.target_pending AND NOT f.in_use AND f.loan_reservation_id IS NULL \
            WHERE p.state = 'bound' AND p.returning_since IS NOT NULL AND p.returned_at IS NULL ORDER BY 1";
        /// Their spares go to the shared buffer of their type, or become free without one.
        RELEASE = "WITH arrived AS (SELECT s.server_id, f.server_id AS spare_id, r.reservation_id \
                FROM unnest($1::text[], $2::text[], $3::text[]) AS w (server, spare, reservation) \
                JOIN servers s ON s.server = w.server JOIN servers f ON f.server = w.spare \
                JOIN reservations r ON r.reservation = w.reservation), \
            noted AS (UPDATE replacements p SET returned_at = clock_timestamp() FROM arrived a \
                WHERE p.server_id = a.server_id AND p.spare_id = a.spare_id AND p.state = 'bound' \
                    AND p.returning_since IS NOT NULL AND p.returned_at IS NULL) \
            UPDATE servers f SET target_pending = true, target_version = $4, target_origin = 'replacement', \
                target_reservation_id = (SELECT b.reservation_id FROM reservations b \
                    WHERE b.buffer_type_id = f.hardware_type_id) \
            FROM arrived a WHERE f.server_id = a.spare_id AND f.current_reservation_id = a.reservation_id \
                AND NOT f.target_pending AND NOT f.in_use AND f.loan_reservation_id IS NULL \
            RETURNING f.server::text";
    }
}

/// The result of a pass over repaired servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Homecoming {
    /// Repaired servers that begin to move back.
    pub returning: usize,
    /// Repaired servers that are back, and whose spares leave.
    pub returned: usize,
}

impl Broker {
    /// Returns repaired servers, as a pure function chooses, and sends the spares of those that have arrived
    /// back to their shared buffers.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn return_repaired(
        &self,
        actor: &str,
        epoch: Epoch,
        choose: impl for<'a> FnOnce(&'a [Repaired], &SpareContext) -> Vec<&'a Repaired>,
    ) -> Result<Homecoming, MoverError> {
        let doing = "returning repaired servers";
        let any: bool =
            sqlx::query_scalar(sql::ANY_TO_RETURN).fetch_one(&self.pool).await.doing(doing)?;
        if !any {
            return Ok(Homecoming::default());
        }
        let mut tx = self.begin().await.doing(doing)?;
        check_fence(&mut tx, epoch).await?;
        for statement in [sql::NOT_RETURNING, sql::BACK_ALONE] {
            sqlx::query(statement).execute(&mut *tx).await.doing(doing)?;
        }
        tx.commit().await.doing(doing)?;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let head = check_fence_at_head(db, epoch).await?;
        let arrived: Vec<(String, String, String)> =
            sqlx::query_as(sql::ARRIVED).fetch_all(&mut *db).await.doing(doing)?;
        let mut released: Vec<String> = Vec::new();
        if !arrived.is_empty() {
            let spares: Vec<&str> = arrived.iter().map(|row| row.1.as_str()).collect();
            lifecycle::lock_servers(db, &spares).await?;
            released = sqlx::query_scalar(sql::RELEASE)
                .bind(arrived.iter().map(|row| row.0.as_str()).collect::<Vec<_>>())
                .bind(spares)
                .bind(arrived.iter().map(|row| row.2.as_str()).collect::<Vec<_>>())
                .bind(head.0)
                .fetch_all(&mut *db)
                .await
                .doing(doing)?;
        }
        let repaired = repaired(db).await.doing(doing)?;
        let mut going: Vec<&Repaired> = Vec::new();
        if !repaired.is_empty() {
            let holders: BTreeSet<&ReservationName> =
                repaired.iter().map(|of| &of.reservation).collect();
            let context = worth(db, &holders).await.doing(doing)?;
            going = choose(&repaired, &context);
        }
        if !going.is_empty() {
            let text = |of: fn(&Repaired) -> &str| -> Vec<&str> {
                going.iter().map(|repaired| of(repaired)).collect()
            };
            let mut touched = text(|of| &of.server);
            touched.extend(text(|of| &of.spare));
            lifecycle::lock_servers(db, &touched).await?;
            let returning: Vec<String> = sqlx::query_scalar(sql::RETURN)
                .bind(text(|of| &of.server))
                .bind(text(|of| &of.reservation))
                .bind(text(|of| &of.spare))
                .bind(head.0)
                .fetch_all(&mut *db)
                .await
                .doing(doing)?;
            going.retain(|of| returning.iter().any(|server| *server == *of.server));
        }
        for of in &going {
            let Repaired { server, reservation, spare, .. } = of;
            change.record(server, Event::ServerReturns { reservation, spare });
        }
        for (server, spare, reservation) in &arrived {
            if released.contains(spare) {
                change.record(spare, Event::SpareReturns { reservation, server });
            }
        }
        let homecoming = Homecoming { returning: going.len(), returned: released.len() };
        if homecoming == Homecoming::default() {
            change.abandon().await?;
        } else {
            change.commit().await?;
        }
        Ok(homecoming)
    }
}

async fn repaired(db: &mut PgConnection) -> Result<Vec<Repaired>, sqlx::Error> {
    let repaired = |row: PgRow| {
        let name = |column: usize| row.try_get::<&str, _>(column);
        Ok(Repaired {
            server: name(0)?.into(),
            msb: name(1)?.into(),
            hardware_type: name(2)?.into(),
            reservation: name(3)?.into(),
            spare: name(4)?.into(),
            spare_msb: name(5)?.into(),
            spare_hardware_type: name(6)?.into(),
            capacity: Rru(row.try_get(7)?),
            msb_buffer: row.try_get(8)?,
            domains: survives::domains(&row, 9)?,
            spare_domains: survives::domains(&row, 10)?,
        })
    };
    sqlx::query(sql::REPAIRED).try_map(repaired).fetch_all(db).await
}
