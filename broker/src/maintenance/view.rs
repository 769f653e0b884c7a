//! The view of decisions on maintenance, read in the transaction that decides.

use super::MaintenanceWindow;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::WindowId;
use crate::infra::state::MaintenanceState;
use crate::infra::words::name;
use crate::promises::survives;
use chrono::{DateTime, Utc};
use decisions::maintenance::capacity::{Held, Out, Promised, Site, View};
use decisions::maintenance::planning::is_recallable;
use fleet::{RECALL_WITHIN_MINUTES, ReservationName, Rru, Scope};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// Servers of open windows, of maintenance recorded as an event, and of the request. The holder is
        /// the target of an open move, else the owner.
        SITES = "WITH covered AS ( \
                SELECT m.window_id::text AS part, s.server_id FROM maintenance m \
                    JOIN servers s ON s.server_id = m.server_id WHERE m.open \
                UNION ALL SELECT m.window_id::text, s.server_id FROM maintenance m \
                    JOIN servers s ON s.rack_id = m.rack_id WHERE m.open \
                UNION ALL SELECT u.event_id::text, u.server_id FROM unavailable_servers u \
                    WHERE u.kind = 'planned_maintenance' AND NOT EXISTS \
                        (SELECT FROM maintenance m WHERE u.event_id = 'maintenance/' || m.window_id) \
                UNION ALL SELECT '', s.server_id FROM servers s WHERE $1 = 'server' AND s.server = $2 \
                UNION ALL SELECT '', s.server_id FROM servers s JOIN racks k USING (rack_id) \
                    WHERE $1 = 'rack' AND k.rack = $2 \
                UNION ALL SELECT '', s.server_id FROM servers s JOIN racks k USING (rack_id) \
                    JOIN msbs b USING (msb_id) WHERE $1 = 'msb' AND b.msb = $2) \
            SELECT c.part, c.server_id, s.server::text, k.rack::text, b.msb::text, o.reservation, \
                CASE WHEN f THEN 0 ELSE coalesce(w.value_micro, 0) END, r.reservation, \
                CASE WHEN f THEN 0 ELSE coalesce(v.value_micro, 0) END, \
                CASE WHEN EXISTS (SELECT FROM survives JOIN reservations USING (promise_id)) \
                    THEN domains_of(c.server_id, NULL) ELSE '{}'::text[] END \
            FROM covered c JOIN servers s USING (server_id) JOIN racks k USING (rack_id) \
            JOIN msbs b USING (msb_id) \
            CROSS JOIN LATERAL (SELECT c.server_id IN (SELECT servers_out_of_use(false))) AS u (f) \
            LEFT JOIN reservations o ON o.kind = 'guaranteed' AND o.reservation_id = s.current_reservation_id \
            LEFT JOIN rru_values w ON w.promise_id = o.promise_id AND w.hardware_type_id = s.hardware_type_id \
            LEFT JOIN reservations r ON r.kind = 'guaranteed' AND r.reservation_id = \
                CASE WHEN s.target_pending THEN s.target_reservation_id ELSE s.current_reservation_id END \
            LEFT JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = s.hardware_type_id";
        EVENT_ENDS = "SELECT event_id::text, coalesce(ended_at, 'infinity'::timestamptz) > $2, ended_at, \
                coalesce(recall_minutes <= $3, false) \
            FROM unavailability WHERE event_id = ANY ($1)";
        MSBS = "SELECT b.msb::text, count(*) FROM servers s JOIN racks k USING (rack_id) \
            JOIN msbs b USING (msb_id) WHERE b.msb = ANY ($1) GROUP BY 1";
        PROMISED = "SELECT r.reservation, p.capacity_micro, p.msb_buffer, p.priority \
            FROM reservations r JOIN promises p USING (promise_id) WHERE r.reservation = ANY ($1)";
        /// What they own now, and what they hold once moves under way are done, in each MSB.
        HELD = "WITH wanted AS (SELECT reservation_id, promise_id, reservation FROM reservations \
                WHERE reservation = ANY ($1)), \
            held AS (SELECT s.current_reservation_id AS reservation_id, false AS later, s.server_id, \
                    s.rack_id, s.hardware_type_id FROM servers s \
                UNION ALL SELECT CASE WHEN s.target_pending THEN s.target_reservation_id \
                    ELSE s.current_reservation_id END, true, s.server_id, s.rack_id, s.hardware_type_id \
                FROM servers s) \
            SELECT r.reservation, h.later, b.msb::text, sum(v.value_micro)::bigint \
            FROM wanted r JOIN held h USING (reservation_id) \
            JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = h.hardware_type_id \
            JOIN racks k USING (rack_id) JOIN msbs b USING (msb_id) \
            LEFT JOIN servers_out_of_use(false) AS u ON u = h.server_id \
            WHERE u IS NULL GROUP BY 1, 2, 3";
    }
}

/// The view of decisions on maintenance.
pub(crate) struct Situation {
    pub(crate) view: View,
    /// Priority of the reservations; 0 is the most important.
    pub(crate) priority: BTreeMap<ReservationName, i32>,
    /// Servers by window.
    servers: BTreeMap<WindowId, BTreeSet<i32>>,
    /// Maintenance that was recorded as an event.
    events: Vec<Out>,
    /// The servers of the request.
    pub(crate) requested: BTreeSet<i32>,
}

impl Situation {
    /// Reads the view, with the servers of a requested scope.
    pub(crate) async fn read(
        db: &mut PgConnection,
        now: DateTime<Utc>,
        asked: Option<(Scope, &str)>,
    ) -> Result<Situation, DbError> {
        let doing = "looking what maintenance would take";
        let rows = sqlx::query(sql::SITES)
            .bind(asked.map(|(scope, _)| scope.as_str()))
            .bind(asked.map(|(_, name)| name))
            .try_map(|row: PgRow| site(&row))
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        let mut parts: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
        let mut view = View::default();
        for (part, server, site) in rows {
            parts.entry(part).or_default().insert(server);
            view.sites.insert(server, site);
        }
        let requested = parts.remove("").unwrap_or_default();
        let (mut servers, mut events) = (BTreeMap::new(), BTreeMap::new());
        for (part, covered) in parts {
            match part.parse::<WindowId>() {
                Ok(window) => drop(servers.insert(window, covered)),
                Err(_) => drop(events.insert(part, covered)),
            }
        }
        let events = if events.is_empty() {
            Vec::new()
        } else {
            let names: Vec<&String> = events.keys().collect();
            let ends: Vec<(String, bool, Option<DateTime<Utc>>, bool)> =
                sqlx::query_as(sql::EVENT_ENDS)
                    .bind(names)
                    .bind(now)
                    .bind(i32::try_from(RECALL_WITHIN_MINUTES).unwrap_or(i32::MAX))
                    .fetch_all(&mut *db)
                    .await
                    .doing(doing)?;
            let active = ends.into_iter().filter(|(_, active, _, _)| *active);
            let out = active.filter_map(|(event, _, until, recallable)| {
                let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC);
                Some(Out { from: now, until, servers: events.remove(&event)?, recallable })
            });
            out.collect()
        };
        let msbs: BTreeSet<String> = view.sites.values().map(|site| site.msb.to_string()).collect();
        let sizes: Vec<(String, i64)> = sqlx::query_as(sql::MSBS)
            .bind(msbs.into_iter().collect::<Vec<_>>())
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        view.msbs = sizes.into_iter().map(|(msb, n)| (msb.into(), n.unsigned_abs())).collect();
        let holders = view.sites.values().flat_map(|site| site.held.iter().flatten());
        let holders: BTreeSet<String> = holders.map(|(name, _)| name.to_string()).collect();
        let holders: Vec<String> = holders.into_iter().collect();
        let promised: Vec<(String, i64, bool, i32)> =
            sqlx::query_as(sql::PROMISED).bind(&holders).fetch_all(&mut *db).await.doing(doing)?;
        let mut priority = BTreeMap::new();
        for (name, capacity, msb_buffer, level) in promised {
            let name = ReservationName::from(name);
            priority.insert(name.clone(), level);
            let promised = Promised { capacity: Rru(capacity), msb_buffer, ..Promised::default() };
            view.reservations.insert(name, promised);
        }
        let held: Vec<(String, bool, String, i64)> =
            sqlx::query_as(sql::HELD).bind(&holders).fetch_all(&mut *db).await.doing(doing)?;
        for (name, later, msb, amount) in held {
            if let Some(promised) = view.reservations.get_mut(&*name) {
                promised.by_msb[usize::from(later)].insert(msb.into(), Rru(amount));
            }
        }
        let names: Vec<&str> = holders.iter().map(String::as_str).collect();
        let survive = survives::read(db, &names).await.doing(doing)?;
        let held = match survive.is_empty() {
            true => Vec::new(),
            false => survives::held(db, &names).await.doing(doing)?,
        };
        for of in held {
            if let Some(promised) = view.reservations.get_mut(&of.reservation) {
                let shares = &mut promised.by_domain[usize::from(of.later)];
                *shares.entry(of.domain).or_default() += of.amount;
            }
        }
        Ok(Situation { view, priority, servers, events, requested })
    }

    /// The servers of a window, and its time.
    pub(crate) fn out(&self, window: &MaintenanceWindow) -> Out {
        let servers = self.servers.get(&window.id).cloned().unwrap_or_default();
        let recallable = is_recallable(window.recall_minutes);
        Out { from: window.starts_at, until: window.ends_at, servers, recallable }
    }

    /// All planned and active maintenance: these windows, and recorded events.
    pub(crate) fn others<'a>(
        &self,
        windows: impl Iterator<Item = &'a MaintenanceWindow>,
    ) -> Vec<Out> {
        // A recalled window has events of its own for the servers that are still out.
        let windows = windows.filter(|window| window.state != MaintenanceState::Recalling);
        windows.map(|window| self.out(window)).chain(self.events.iter().cloned()).collect()
    }
}

fn site(row: &PgRow) -> Result<(String, i32, Site), sqlx::Error> {
    let held = |column: usize| -> Result<Held, sqlx::Error> {
        let reservation: Option<&str> = row.try_get(column)?;
        let value: i64 = row.try_get(column + 1)?;
        Ok(reservation.map(|name| (name.into(), Rru(value))))
    };
    let site = Site {
        server: name(row, 2)?,
        rack: name(row, 3)?,
        msb: name(row, 4)?,
        domains: survives::domains(row, 9)?,
        held: [held(5)?, held(7)?],
    };
    Ok((row.try_get(0)?, row.try_get(1)?, site))
}
