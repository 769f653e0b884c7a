//! One server: its place, binding and history.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::WindowId;
use crate::infra::state::{self, MaintenanceState};
use crate::infra::words;
use crate::infra::words::{name, optional_name};
use crate::log::trail::TargetVersion;
use crate::views::lists::{EventRow, MoveRow, event, moved};
use chrono::{DateTime, Utc};
use fleet::MoveOrigin;
use fleet::{
    DatacenterName, HardwareTypeName, MsbName, RackName, ReservationName, Scope, ServerName,
};
use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::postgres::PgRow;

pub(crate) mod sql {
    crate::statements! {
        ONE = "SELECT s.server::text, d.datacenter::text, m.msb::text, k.rack::text, h.hardware_type::text, \
                c.reservation, s.target_pending, t.reservation, s.target_version, s.target_origin, \
                l.reservation, s.in_use, s.power_watts, s.generation, s.server_id \
            FROM servers s JOIN racks k USING (rack_id) JOIN msbs m USING (msb_id) \
            JOIN datacenters d USING (datacenter_id) JOIN hardware_types h USING (hardware_type_id) \
            LEFT JOIN reservations c ON c.reservation_id = s.current_reservation_id \
            LEFT JOIN reservations t ON t.reservation_id = s.target_reservation_id \
            LEFT JOIN reservations l ON l.reservation_id = s.loan_reservation_id \
            WHERE s.server = $1";
        /// Events that cover it now or later, in each scope.
        EVENTS = "SELECT u.event_id::text, u.scope, coalesce(s.server, k.rack, m.msb, d.datacenter)::text, \
                u.kind, u.started_at, u.ended_at, u.started_at <= now() \
            FROM (SELECT s.server_id, s.server, s.rack_id FROM servers s WHERE s.server_id = $1) o \
            JOIN racks b ON b.rack_id = o.rack_id JOIN msbs a ON a.msb_id = b.msb_id \
            CROSS JOIN LATERAL (SELECT * FROM unavailability x WHERE x.server_id = o.server_id \
                UNION ALL SELECT * FROM unavailability x WHERE x.rack_id = o.rack_id \
                UNION ALL SELECT * FROM unavailability x WHERE x.msb_id = b.msb_id \
                UNION ALL SELECT * FROM unavailability x WHERE x.datacenter_id = a.datacenter_id) u \
            LEFT JOIN servers s ON s.server_id = u.server_id LEFT JOIN racks k ON k.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            WHERE coalesce(u.ended_at, 'infinity') > now() ORDER BY u.started_at, u.event_id::text";
        MAINTENANCE = "SELECT w.window_id, w.scope, w.state, w.starts_at, w.ends_at FROM maintenance w \
            WHERE w.open AND (w.server_id = $1 OR w.rack_id = (SELECT s.rack_id FROM servers s \
                WHERE s.server_id = $1)) ORDER BY w.starts_at, w.window_id";
        MOVE = "SELECT move_id, server, source_reservation, target_reservation, target_version, state, \
                state_at, opened_at, origin, in_use, reason, detail FROM moves \
            WHERE open AND server_id = $1";
        /// Its targets (by version, through the primary key: an index by server would slow down publications),
        /// moves, events and entries of the trail.
        HISTORY = "SELECT x.at, x.kind, x.key, x.detail FROM ( \
                SELECT v.published_at AS at, 'target'::text AS kind, v.version::text AS key, \
                    jsonb_build_object('version', v.version, 'origin', v.origin, \
                        'reservation', c.target_reservation, 'taken', c.taken) AS detail \
                FROM target_versions v CROSS JOIN LATERAL (SELECT n.target_reservation, n.taken \
                    FROM target_changes n WHERE n.version = v.version AND n.server = $1 OFFSET 0) c \
                UNION ALL SELECT m.opened_at, 'move', m.move_id::text, \
                    jsonb_build_object('move', m.move_id, 'from', m.source_reservation, \
                        'to', m.target_reservation, 'version', m.target_version, 'origin', m.origin, \
                        'state', m.state, 'state_at', m.state_at, 'in_use', m.in_use, \
                        'reason', m.reason, 'detail', m.detail) \
                FROM moves m WHERE m.server_id = (SELECT s.server_id FROM servers s WHERE s.server = $1) \
                UNION ALL SELECT u.started_at, 'event', u.event_id::text, \
                    jsonb_build_object('event', u.event_id, 'kind', u.kind, 'ended_at', u.ended_at) \
                FROM unavailability u \
                WHERE u.server_id = (SELECT s.server_id FROM servers s WHERE s.server = $1) \
                UNION ALL SELECT a.at, 'trail', to_char(a.seq, 'FM00000000000000000000'), \
                    jsonb_build_object('seq', a.seq, 'actor', a.actor, 'action', a.action, \
                        'detail', a.detail) \
                FROM audit_trail a WHERE a.subject = $1 AND a.action IN \
                    ('server_bound', 'move_ended', 'server_replaced', 'replacement_owed', \
                    'server_returns', 'spare_returns')) x \
            WHERE $2::timestamptz IS NULL OR (x.at, x.kind, x.key) < ($2, $3, $4) \
            ORDER BY x.at DESC, x.kind DESC, x.key DESC LIMIT $5";
    }
}

/// A server at one instant.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDetail {
    /// The server.
    pub server: ServerName,
    /// The server's datacenter.
    pub datacenter: DatacenterName,
    /// The server's MSB.
    pub msb: MsbName,
    /// The server's rack.
    pub rack: RackName,
    /// The server's hardware type.
    pub hardware_type: HardwareTypeName,
    /// The owner; `None`: free.
    pub current: Option<ReservationName>,
    /// The pending target, if there is one.
    pub target: Option<ServerTarget>,
    /// The elastic reservation that borrows it.
    pub loaned_to: Option<ReservationName>,
    /// Whether containers run on it.
    pub in_use: bool,
    /// Typical draw under load, in watts.
    pub power_watts: Option<f64>,
    /// The server's generation.
    pub generation: i64,
    /// Events that cover it and have not ended, oldest first.
    pub events: Vec<EventRow>,
    /// Planned and current windows of maintenance.
    pub maintenance: Vec<ServerMaintenance>,
    /// The open move.
    pub moving: Option<MoveRow>,
}

/// A pending target of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTarget {
    /// The next owner; `None`: the server becomes free.
    pub reservation: Option<ReservationName>,
    /// The version of the targets.
    pub version: TargetVersion,
    /// Of what was decided between two solves: for what.
    pub origin: Option<MoveOrigin>,
}

/// A window of maintenance of a server or its rack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerMaintenance {
    /// Its id.
    pub window: WindowId,
    /// A server or a rack.
    pub scope: Scope,
    /// How far it is.
    pub state: MaintenanceState,
    /// When work begins.
    pub starts_at: DateTime<Utc>,
    /// The end of work.
    pub ends_at: DateTime<Utc>,
}

/// What an entry of a server's history is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PastKind {
    /// A target in a version.
    Target,
    /// A move that was opened.
    Move,
    /// An unavailability event that began.
    Event,
    /// An entry of the audit trail.
    Trail,
}

impl PastKind {
    /// Every kind.
    pub const ALL: [PastKind; 4] =
        [PastKind::Target, PastKind::Move, PastKind::Event, PastKind::Trail];

    /// The kind's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            PastKind::Target => "target",
            PastKind::Move => "move",
            PastKind::Event => "event",
            PastKind::Trail => "trail",
        }
    }
}

/// The last entry of a page of a server's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastEnd {
    /// The time.
    pub at: DateTime<Utc>,
    /// What it is about.
    pub kind: PastKind,
    /// The key within its kind.
    pub key: String,
}

/// An event in a server's history.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerPast {
    /// The time.
    pub at: DateTime<Utc>,
    /// What it is about.
    pub kind: PastKind,
    /// The key within its kind.
    pub key: String,
    /// Further data by kind.
    pub detail: Document,
}

impl ServerPast {
    /// The end of a page with this as its last entry.
    pub fn end(&self) -> PastEnd {
        PastEnd { at: self.at, kind: self.kind, key: self.key.clone() }
    }
}

impl Broker {
    /// Reads a server; `None`: unknown server.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn server(&self, name: &str) -> Result<Option<ServerDetail>, DbError> {
        let doing = "looking a server up";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let found = sqlx::query(sql::ONE).bind(name).try_map(|row: PgRow| detail(&row));
        let Some((id, mut detail)) = found.fetch_optional(&mut *tx).await.doing(doing)? else {
            return Ok(None);
        };
        let events = sqlx::query(sql::EVENTS).bind(id).try_map(|row: PgRow| event(&row));
        detail.events = events.fetch_all(&mut *tx).await.doing(doing)?;
        let windows = sqlx::query(sql::MAINTENANCE).bind(id).try_map(|row: PgRow| {
            Ok(ServerMaintenance {
                window: row.try_get(0)?,
                scope: words::read(
                    "maintenance.scope",
                    Scope::ALL,
                    Scope::as_str,
                    row.try_get(1)?,
                )?,
                state: state::read(row.try_get(2)?)?,
                starts_at: row.try_get(3)?,
                ends_at: row.try_get(4)?,
            })
        });
        detail.maintenance = windows.fetch_all(&mut *tx).await.doing(doing)?;
        let moving = sqlx::query(sql::MOVE).bind(id).try_map(|row: PgRow| moved(&row));
        detail.moving = moving.fetch_optional(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        Ok(Some(detail))
    }

    /// The history of a server, newest first: its targets, moves, events and entries of the audit trail.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn server_history(
        &self,
        name: &str,
        before: Option<&PastEnd>,
        limit: u32,
    ) -> Result<Vec<ServerPast>, DbError> {
        let rows = sqlx::query(sql::HISTORY)
            .bind(name)
            .bind(before.map(|before| before.at))
            .bind(before.map(|before| before.kind.as_str()))
            .bind(before.map(|before| &before.key))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| {
                Ok(ServerPast {
                    at: row.try_get(0)?,
                    kind: words::read(
                        "history.kind",
                        PastKind::ALL,
                        PastKind::as_str,
                        row.try_get(1)?,
                    )?,
                    key: row.try_get(2)?,
                    detail: row.try_get(3)?,
                })
            });
        rows.fetch_all(&self.pool).await.doing("reading a server's history")
    }
}

fn detail(row: &PgRow) -> Result<(i32, ServerDetail), sqlx::Error> {
    let target = if row.try_get(6)? {
        let (reservation, version) = (optional_name(row, 7)?, TargetVersion(row.try_get(8)?));
        let origin: Option<&str> = row.try_get(9)?;
        let known =
            |word| words::read("servers.target_origin", MoveOrigin::ALL, MoveOrigin::as_str, word);
        Some(ServerTarget { reservation, version, origin: origin.map(known).transpose()? })
    } else {
        None
    };
    let detail = ServerDetail {
        server: name(row, 0)?,
        datacenter: name(row, 1)?,
        msb: name(row, 2)?,
        rack: name(row, 3)?,
        hardware_type: name(row, 4)?,
        current: optional_name(row, 5)?,
        target,
        loaned_to: optional_name(row, 10)?,
        in_use: row.try_get(11)?,
        power_watts: row.try_get(12)?,
        generation: row.try_get(13)?,
        events: Vec::new(),
        maintenance: Vec::new(),
        moving: None,
    };
    Ok((row.try_get(14)?, detail))
}
