//! Work that is recalled because an MSB is lost (RAS section 3.3.1: "maintenance events are paused and
//! embedded buffers are returned").
//!
//! It begins in one transaction: every server of recallable work under way outside the lost MSBs gets an
//! event of its own in place of the window's, and a row of `recalls` with its place in the order. From
//! there a mover asks hosts one by one; a server whose host says that it is back ends its own event. What
//! is written down is all there is: the next mover continues with the open rows.

use super::recall_end::{self, end_event};
use super::view::Situation;
use super::{MaintenanceReason, lock};
use crate::health::unavailability;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{RecallId, WindowId};
use crate::infra::state::{MaintenanceState, RecallState};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, MaintenanceChange, Unavailable};
use crate::log::trail::TargetVersion;
use crate::moves::mover::{Epoch, MoverError, check_fence};
use crate::moves::unfinished;
use crate::snapshot::region_read;
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
use decisions::maintenance::recall_order::{Work, recall_order};
use fleet::{
    MsbName, Name, ReservationName, Scope, ServerName, UnavailabilityKind, UnavailabilityRow,
};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

/// How much of what a host says is kept.
const SAID_MAX: usize = 2_000;

pub(crate) mod sql {
    crate::statements! {
        LOST = "SELECT msb::text FROM outages WHERE ended_at IS NULL";
        /// Recallable work under way with a server outside the lost MSBs that was not recalled yet.
        DUE = "SELECT EXISTS (SELECT FROM outages WHERE ended_at IS NULL) AND EXISTS ( \
            SELECT FROM unavailability u JOIN unavailable_servers c USING (event_id) \
                JOIN servers s ON s.server_id = c.server_id JOIN racks k ON k.rack_id = s.rack_id \
            WHERE u.kind = 'planned_maintenance' AND u.recall_minutes IS NOT NULL \
                AND NOT EXISTS (SELECT FROM recalls r WHERE r.event_id = u.event_id) \
                AND NOT EXISTS (SELECT FROM outages o WHERE o.msb_id = k.msb_id AND o.ended_at IS NULL))";
        WORK = "SELECT u.event_id::text, c.server_id, s.server::text, u.recall_minutes, u.ended_at, \
                EXISTS (SELECT FROM outages o WHERE o.msb_id = k.msb_id AND o.ended_at IS NULL), m.window_id \
            FROM unavailability u JOIN unavailable_servers c USING (event_id) \
            JOIN servers s ON s.server_id = c.server_id JOIN racks k ON k.rack_id = s.rack_id \
            LEFT JOIN maintenance m ON u.event_id = 'maintenance/' || m.window_id AND m.state = 'active' \
            WHERE u.kind = 'planned_maintenance' AND u.recall_minutes IS NOT NULL \
                AND NOT EXISTS (SELECT FROM recalls r WHERE r.event_id = u.event_id) \
            ORDER BY u.event_id, s.server";
        /// Servers of work under way that cannot be recalled.
        STAYS = "SELECT DISTINCT c.server_id FROM unavailability u JOIN unavailable_servers c USING (event_id) \
            WHERE u.kind = 'planned_maintenance' AND u.recall_minutes IS NULL";
        ORDER = "INSERT INTO recalls (recall_id, window_id, event_id, server_id, server, place, due_at, state) \
            SELECT w.recall, w.of_window, 'recall/' || w.recall, w.server_id, w.server, w.place, w.due, 'ordered' \
            FROM unnest($1::uuid[], $2::uuid[], $3::integer[], $4::text[], $5::integer[], $6::timestamptz[]) \
                AS w (recall, of_window, server_id, server, place, due)";
        RECALLING = "UPDATE maintenance SET state = 'recalling', detail = $2 WHERE window_id = $1 AND state = 'active'";
        UNDER_WAY = "SELECT r.recall_id, r.server::text, o.reservation, p.host_profile, r.state = 'under_way' \
            FROM recalls r JOIN servers s USING (server_id) \
            LEFT JOIN reservations o ON o.reservation_id = s.current_reservation_id \
            LEFT JOIN promises p USING (promise_id) \
            WHERE r.open ORDER BY r.place, r.server, r.recall_id";
        TAKEN = "UPDATE recalls SET state = 'under_way' WHERE recall_id = ANY ($1) AND state = 'ordered'";
        NOTED = "UPDATE recalls SET state = $2, said = $3 WHERE recall_id = $1 AND open \
            RETURNING event_id::text, server, window_id";
        STAYS_OUT = "UPDATE unavailability SET recall_minutes = NULL WHERE event_id = $1";
        ALL_BACK = "SELECT NOT EXISTS (SELECT FROM recalls WHERE window_id = $1 AND server_id IS NOT NULL \
            AND state IN ('ordered', 'under_way', 'refused'))";
    }
}

/// A server that is being recalled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRecall {
    /// The recall: the key by which a host knows that it was asked before.
    pub id: RecallId,
    /// The server.
    pub server: ServerName,
    /// Who owns it.
    pub owner: Option<ReservationName>,
    /// The host profile of that one.
    pub host_profile: Option<Name>,
    /// The version of the targets.
    pub version: TargetVersion,
    /// Whether its host said that it has begun.
    pub under_way: bool,
}

/// What a host said of a recall.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecallReport {
    /// It has begun.
    UnderWay,
    /// The server is back.
    Returned,
    /// It will not come back before the end of the window, and why.
    Refused(String),
}

/// How far the recall of a window is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRecall {
    /// When it was ordered.
    pub ordered_at: DateTime<Utc>,
    /// When all of it is to be back.
    pub due_at: DateTime<Utc>,
    /// When the last server that is back was; `None`: none is.
    pub back_at: Option<DateTime<Utc>>,
    /// Servers recalled.
    pub servers: u64,
    /// Those of them that are back.
    pub returned: u64,
    /// Those whose hosts refused: they stay out until the window ends.
    pub refused: u64,
}

/// What one event has out of use.
struct Covered {
    window: Option<WindowId>,
    recall_minutes: u32,
    ended_at: Option<DateTime<Utc>>,
    /// Server, name, and whether its MSB is lost.
    servers: Vec<(i32, ServerName, bool)>,
}

impl Broker {
    /// Recalls the work under way that can be recalled, if an MSB is lost: all of it outside the lost
    /// MSBs, in the order that restores most. What was recalled already is left alone. Gives how many
    /// servers are recalled by this.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn begin_recalls(&self, actor: &str, epoch: Epoch) -> Result<usize, MoverError> {
        let doing = "recalling maintenance";
        let due: bool = sqlx::query_scalar(sql::DUE).fetch_one(&self.pool).await.doing(doing)?;
        if !due {
            return Ok(0);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        check_fence(change.connection(), epoch).await?;
        let now = lock(change.connection()).await?.trunc_subsecs(6);
        let db = change.connection();
        let lost: Vec<String> =
            sqlx::query_scalar(sql::LOST).fetch_all(&mut *db).await.doing(doing)?;
        let lost: BTreeSet<MsbName> = lost.into_iter().map(Into::into).collect();
        let mut covered = covered(db).await?;
        let stays: Vec<i32> =
            sqlx::query_scalar(sql::STAYS).fetch_all(&mut *db).await.doing(doing)?;
        let situation = Situation::read(db, now, None).await?;
        let work = covered.iter().filter_map(|(event, of)| {
            let there = of.servers.iter().filter(|(_, _, is_lost)| !is_lost);
            let servers: BTreeSet<i32> = there.map(|(server, _, _)| *server).collect();
            let recall_minutes = of.recall_minutes;
            (!servers.is_empty()).then(|| Work { event: event.clone(), servers, recall_minutes })
        });
        let stays = stays.into_iter().collect();
        let order =
            recall_order(&situation.view, &lost, &situation.priority, &stays, work.collect());
        if order.is_empty() {
            change.abandon().await?;
            return Ok(0);
        }
        let lost: Vec<&str> = lost.iter().map(AsRef::as_ref).collect();
        let mut recalled = 0;
        for (position, of) in order.iter().enumerate() {
            let Some(of) = covered.remove_entry(&of.event) else { continue };
            recalled += recall(&mut change, &of, position, now, &lost.join(", ")).await?;
        }
        change.commit().await?;
        Ok(recalled)
    }

    /// Servers that are being recalled, those whose return restores most first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn recalls_under_way(&self) -> Result<Vec<OpenRecall>, DbError> {
        let doing = "listing recalls";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let version = region_read::head(&mut tx).await?;
        let rows = sqlx::query(sql::UNDER_WAY).try_map(|row: PgRow| {
            Ok(OpenRecall {
                id: row.try_get(0)?,
                server: row.try_get::<&str, _>(1)?.into(),
                owner: row.try_get::<Option<&str>, _>(2)?.map(Into::into),
                host_profile: row.try_get::<Option<&str>, _>(3)?.map(Into::into),
                version,
                under_way: row.try_get(4)?,
            })
        });
        let rows = rows.fetch_all(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        Ok(rows)
    }

    /// Writes down what hosts said. Saying it again changes nothing; gives how much was news.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn note_recalls(
        &self,
        actor: &str,
        epoch: Epoch,
        reports: &[(RecallId, RecallReport)],
    ) -> Result<usize, MoverError> {
        let doing = "writing down what was recalled";
        let (begun, ended): (Vec<_>, Vec<_>) =
            reports.iter().partition(|(_, report)| *report == RecallReport::UnderWay);
        let mut news = self.recalls_begun(epoch, &begun).await?;
        if ended.is_empty() {
            return Ok(news);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        check_fence(change.connection(), epoch).await?;
        let now = lock(change.connection()).await?.trunc_subsecs(6);
        let (mut windows, mut recorded) = (BTreeSet::new(), false);
        for (id, report) in ended {
            let (state, said) = match report {
                RecallReport::Refused(why) => ("refused", Some(why)),
                RecallReport::UnderWay | RecallReport::Returned => ("returned", None),
            };
            // Text holds no zero character.
            let said =
                said.map(|why| why.replace('\0', " ").chars().take(SAID_MAX).collect::<String>());
            let noted: Option<(String, String, Option<WindowId>)> = sqlx::query_as(sql::NOTED)
                .bind(id)
                .bind(state)
                .bind(&said)
                .fetch_optional(change.connection())
                .await
                .doing(doing)?;
            let Some((event, server, window)) = noted else { continue };
            (news, recorded) = (news + 1, true);
            windows.extend(window);
            match said {
                None => end_event(&mut change, &event, &server, now).await?,
                Some(why) => {
                    let stays = sqlx::query(sql::STAYS_OUT).bind(&event);
                    stays.execute(change.connection()).await.doing(doing)?;
                    let of = Unavailable::StaysOut {
                        scope: Scope::Server,
                        scope_id: &server,
                        recall: RecallState::Refused,
                        why: &why,
                    };
                    change.record(&event, Event::UnavailabilityRecorded { of });
                }
            }
        }
        for id in windows {
            let back = sqlx::query_scalar(sql::ALL_BACK).bind(id).fetch_one(change.connection());
            if back.await.doing(doing)? {
                give_back(&mut change, id, now).await?;
            }
        }
        if recorded {
            change.commit().await?;
        } else {
            change.abandon().await?;
        }
        Ok(news)
    }

    /// Writes down that hosts have begun; no reader of the trail is the wiser for it.
    async fn recalls_begun(
        &self,
        epoch: Epoch,
        begun: &[&(RecallId, RecallReport)],
    ) -> Result<usize, MoverError> {
        let doing = "writing down what is recalled";
        if begun.is_empty() {
            return Ok(0);
        }
        let ids: Vec<RecallId> = begun.iter().map(|(id, _)| *id).collect();
        let mut tx = self.begin().await.doing(doing)?;
        check_fence(&mut tx, epoch).await?;
        let taken = sqlx::query(sql::TAKEN).bind(ids).execute(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        Ok(usize::try_from(taken.rows_affected()).unwrap_or(usize::MAX))
    }
}

/// Cancels a window all of whose servers are back.
async fn give_back(
    change: &mut AuditedTx,
    id: WindowId,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let listed = super::listed(change.connection(), true, Some(id.into()), 1).await;
    let listed = listed.doing("looking a recalled window up")?;
    for mut window in listed.into_iter().filter(|of| of.state == MaintenanceState::Recalling) {
        let why = "its servers are back; plan it again".to_owned();
        let why = Some((MaintenanceReason::Recalled, Some(why)));
        super::advance::transition(change, &mut window, MaintenanceState::Cancelled, why, now)
            .await?;
    }
    Ok(())
}

async fn covered(db: &mut PgConnection) -> Result<BTreeMap<Name, Covered>, DbError> {
    let doing = "reading work under way";
    let rows = sqlx::query(sql::WORK).fetch_all(db).await.doing(doing)?;
    let mut events = BTreeMap::new();
    rows.iter().try_for_each(|row| cover(&mut events, row)).doing(doing)?;
    Ok(events)
}

fn cover(events: &mut BTreeMap<Name, Covered>, row: &PgRow) -> Result<(), sqlx::Error> {
    let covered = Covered {
        window: row.try_get(6)?,
        recall_minutes: row.try_get::<i32, _>(3)?.unsigned_abs(),
        ended_at: row.try_get(4)?,
        servers: Vec::new(),
    };
    let server = (row.try_get(1)?, row.try_get::<&str, _>(2)?.into(), row.try_get(5)?);
    let event = row.try_get::<&str, _>(0)?.into();
    events.entry(event).or_insert(covered).servers.push(server);
    Ok(())
}

/// Recalls one piece of work: its servers get events of their own, and it leaves them. Gives how many are
/// recalled. What it has in a lost MSB is not: nothing would come of it.
async fn recall(
    change: &mut AuditedTx,
    (event, of): &(Name, Covered),
    position: usize,
    now: DateTime<Utc>,
    lost: &str,
) -> Result<usize, DbError> {
    let doing = "recalling maintenance";
    let due = now + TimeDelta::minutes(of.recall_minutes.into());
    let (mut rows, mut ids, mut recalled) = (Vec::new(), Vec::new(), Vec::new());
    for (server, name, is_lost) in &of.servers {
        let id = RecallId::now_v7();
        rows.push(UnavailabilityRow {
            event_id: format!("recall/{id}").into(),
            scope: Scope::Server.as_str().into(),
            scope_id: name.clone().into(),
            kind: UnavailabilityKind::PlannedMaintenance.as_str().into(),
            started_at: now,
            ended_at: of.ended_at,
            recall_minutes: i32::try_from(of.recall_minutes).ok().filter(|_| !is_lost),
        });
        if !is_lost {
            ids.push(id);
            recalled.push((*server, name.as_ref()));
        }
    }
    unavailability::write(change.connection(), &rows.iter().collect::<Vec<_>>()).await?;
    let count = recalled.len();
    let place = i32::try_from(position + 1).unwrap_or(i32::MAX);
    let ordered = sqlx::query(sql::ORDER)
        .bind(&ids)
        .bind(vec![of.window; count])
        .bind(recalled.iter().map(|(server, _)| *server).collect::<Vec<_>>())
        .bind(recalled.iter().map(|(_, name)| *name).collect::<Vec<_>>())
        .bind(vec![place; count])
        .bind(vec![due; count]);
    ordered.execute(change.connection()).await.doing(doing)?;
    for row in &rows {
        let of = Unavailable::Began {
            scope: Scope::Server,
            scope_id: &row.scope_id,
            kind: UnavailabilityKind::PlannedMaintenance,
            started_at: row.started_at,
            ended_at: row.ended_at,
            r#move: None,
            recalled_from: Some(event),
        };
        change.record(&row.event_id, Event::UnavailabilityRecorded { of });
    }
    let ended = sqlx::query(recall_end::sql::END_EVENT).bind(event.as_ref()).bind(now);
    ended.execute(change.connection()).await.doing(doing)?;
    let names: Vec<&ServerName> = of.servers.iter().map(|(_, name, _)| name).collect();
    for name in &names {
        unfinished::record_end_at(change, event, name, Some(now));
    }
    if let Some(window) = of.window {
        let said = format!("MSB {lost} is lost; recalled, back by {}", due.to_rfc3339());
        let went = sqlx::query(sql::RECALLING).bind(window).bind(&said);
        went.execute(change.connection()).await.doing(doing)?;
        let to = MaintenanceChange::Recalled {
            state: MaintenanceState::Recalling,
            detail: &said,
            due_at: due,
            place,
            servers: names,
        };
        change.record(&window.to_string(), Event::MaintenanceChanged { window, to });
    }
    Ok(count)
}
