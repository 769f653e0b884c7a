//! What maintenance is decided on, read within the transaction that decides.

use super::rules::{Out, Promised, Site, View, check};
use super::{MaintenanceWindow, TooMuch};
use crate::error::{DbError, Doing};
use chrono::{DateTime, Utc};
use fleet::{Name, Rru, Scope};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

pub(crate) mod sql {
    crate::statements! {
        /// Servers of open windows, of maintenance that somebody recorded as an event, and of what is
        /// asked for. The holder is the target of a move under way, else the owner, as everywhere.
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
            SELECT c.part, c.server_id, s.server::text, k.rack::text, b.msb::text, r.reservation, \
                CASE WHEN c.server_id IN (SELECT servers_out_of_use(false)) THEN 0 ELSE coalesce(v.value_micro, 0) END \
            FROM covered c JOIN servers s USING (server_id) JOIN racks k USING (rack_id) \
            JOIN msbs b USING (msb_id) \
            LEFT JOIN reservations r ON r.kind = 'guaranteed' AND r.reservation_id = \
                CASE WHEN s.target_pending THEN s.target_reservation_id ELSE s.current_reservation_id END \
            LEFT JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = s.hardware_type_id";
        EVENT_ENDS = "SELECT event_id::text, coalesce(ended_at, 'infinity'::timestamptz) > $2, ended_at \
            FROM unavailability WHERE event_id = ANY ($1)";
        MSBS = "SELECT b.msb::text, count(*) FROM servers s JOIN racks k USING (rack_id) \
            JOIN msbs b USING (msb_id) WHERE b.msb = ANY ($1) GROUP BY 1";
        PROMISED = "SELECT r.reservation, p.capacity_micro, \
                coalesce(sum(v.value_micro) FILTER (WHERE u IS NULL), 0)::bigint \
            FROM reservations r JOIN promises p USING (promise_id) \
            LEFT JOIN servers s ON r.reservation_id = CASE WHEN s.target_pending \
                THEN s.target_reservation_id ELSE s.current_reservation_id END \
            LEFT JOIN rru_values v ON v.promise_id = r.promise_id AND v.hardware_type_id = s.hardware_type_id \
            LEFT JOIN servers_out_of_use(false) AS u ON u = s.server_id \
            WHERE r.reservation = ANY ($1) GROUP BY 1, 2";
    }
}

/// What there is, and who is out when.
pub(crate) struct Situation {
    view: View,
    /// By window.
    servers: BTreeMap<Uuid, BTreeSet<i32>>,
    /// Maintenance that is no window of ours.
    events: Vec<Out>,
    /// What is asked for.
    pub(crate) asked: BTreeSet<i32>,
}

impl Situation {
    /// Reads it, with everything an additional scope covers.
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
        let asked = parts.remove("").unwrap_or_default();
        let (mut servers, mut events) = (BTreeMap::new(), BTreeMap::new());
        for (part, covered) in parts {
            match Uuid::parse_str(&part) {
                Ok(window) => drop(servers.insert(window, covered)),
                Err(_) => drop(events.insert(part, covered)),
            }
        }
        let events = if events.is_empty() {
            Vec::new()
        } else {
            let names: Vec<&String> = events.keys().collect();
            let ends: Vec<(String, bool, Option<DateTime<Utc>>)> = sqlx::query_as(sql::EVENT_ENDS)
                .bind(names)
                .bind(now)
                .fetch_all(&mut *db)
                .await
                .doing(doing)?;
            let active = ends.into_iter().filter(|(_, active, _)| *active);
            let out = active.filter_map(|(event, _, until)| {
                let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC);
                Some(Out { from: now, until, servers: events.remove(&event)? })
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
        let holders = view.sites.values().filter_map(|site| site.holder.as_ref());
        let holders: BTreeSet<String> = holders.map(ToString::to_string).collect();
        let promised: Vec<(String, i64, i64)> = sqlx::query_as(sql::PROMISED)
            .bind(holders.into_iter().collect::<Vec<_>>())
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        let promised = promised.into_iter().map(|(name, capacity, available)| {
            (name.into(), Promised { capacity: Rru(capacity), available: Rru(available) })
        });
        view.reservations = promised.collect();
        Ok(Situation { view, servers, events, asked })
    }

    /// What a window takes out.
    pub(crate) fn out(&self, window: &MaintenanceWindow) -> Out {
        let servers = self.servers.get(&window.id).cloned().unwrap_or_default();
        Out { from: window.starts_at, until: window.ends_at, servers }
    }

    /// Servers of what is asked for, by rack.
    pub(crate) fn racks(&self) -> BTreeMap<Name, BTreeSet<i32>> {
        let mut racks: BTreeMap<Name, BTreeSet<i32>> = BTreeMap::new();
        for server in &self.asked {
            if let Some(site) = self.view.sites.get(server) {
                racks.entry(site.rack.clone()).or_default().insert(*server);
            }
        }
        racks
    }

    /// The MSB of what is asked for.
    pub(crate) fn msb(&self) -> Option<&Name> {
        Some(&self.view.sites.get(self.asked.first()?)?.msb)
    }

    /// How many servers an MSB has.
    pub(crate) fn servers_of(&self, msb: &Name) -> u64 {
        self.view.msbs.get(msb).copied().unwrap_or_default()
    }

    /// Guaranteed reservations that hold some of these servers: how many, what they are worth now, and
    /// what is promised and there.
    pub(crate) fn holders(&self, servers: &BTreeSet<i32>) -> BTreeMap<Name, (u64, Rru, Promised)> {
        let mut holders = BTreeMap::new();
        for site in servers.iter().filter_map(|server| self.view.sites.get(server)) {
            let Some(holder) = &site.holder else { continue };
            let Some(promised) = self.view.reservations.get(holder) else { continue };
            let (count, worth, _) =
                holders.entry(holder.clone()).or_insert((0_u64, Rru::ZERO, *promised));
            *count += 1;
            *worth += site.value;
        }
        holders
    }

    /// Whether servers may be out beside these windows.
    pub(crate) fn check<'a>(
        &self,
        beside: impl Iterator<Item = &'a MaintenanceWindow>,
        ours: &Out,
        share_micro: u32,
    ) -> Result<(), TooMuch> {
        let windows: Vec<Out> = beside.map(|window| self.out(window)).collect();
        let others: Vec<&Out> = windows.iter().chain(&self.events).collect();
        check(&self.view, &others, ours, share_micro)
    }
}

fn site(row: &PgRow) -> Result<(String, i32, Site), sqlx::Error> {
    let name = |column: usize| row.try_get::<&str, _>(column).map(Name::from);
    let site = Site {
        server: name(2)?,
        rack: name(3)?,
        msb: name(4)?,
        holder: row.try_get::<Option<&str>, _>(5)?.map(Name::from),
        value: Rru(row.try_get(6)?),
    };
    Ok((row.try_get(0)?, row.try_get(1)?, site))
}
