//! The transitions of windows: in the mover's pass, and when an operator ends or cancels one.
//!
//! Nothing is remembered between looks. A window goes as many steps as its times allow, and looking
//! twice does nothing more. What holds one back (a lost MSB, its share of the MSB, a guarantee) is
//! looked at when its drain begins and when its work does; it is paused then, and begins later or, when
//! its end has passed, not at all. Work that has begun is recalled when an MSB is lost (`recall`).

use super::view::Situation;
use super::{MaintenanceError, MaintenanceReason, MaintenanceRefusal, MaintenanceWindow};
use super::{lock, open, outage};
use crate::health::unavailability;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{MaintenanceId, WindowId};
use crate::infra::state::{MaintenanceState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{Event, MaintenanceChange, Unavailable};
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence};
use crate::snapshot::region_read;
use chrono::{DateTime, TimeDelta, Utc};
use decisions::maintenance::capacity::{Out, TooMuch, check_accepting};
use decisions::maintenance::lifecycle::{Obstacle, WindowStep, WindowView, is_checked, next};
use fleet::MoveOrigin;
use fleet::{Name, UnavailabilityKind, UnavailabilityRow};
use sqlx::PgConnection;
use std::collections::BTreeSet;

/// Servers that an entry of the audit trail names; of more, it says the scope.
const NAMED_MAX: usize = 1_000;

pub(crate) mod sql {
    crate::statements! {
        /// Whether any window may go on, and whether any server is drained: asked at every look, and mostly no.
        DUE = "SELECT clock_timestamp(), EXISTS (SELECT FROM maintenance WHERE open AND (CASE state \
                WHEN 'planned' THEN starts_at - make_interval(secs => drain_seconds) <= clock_timestamp() \
                WHEN 'active' THEN ends_at <= clock_timestamp() \
                WHEN 'recalling' THEN ends_at <= clock_timestamp() \
                WHEN 'draining' THEN starts_at <= clock_timestamp() \
                    OR EXISTS (SELECT FROM outages WHERE ended_at IS NULL) \
                ELSE true END OR scope = 'server' AND server_id IS NULL)), \
            EXISTS (SELECT FROM decommissions)";
        KNOWN = "SELECT window_id FROM maintenance WHERE window_id = ANY ($1)";
        GO_ON = "UPDATE maintenance SET state = $3, reason = $4, detail = $5, \
                drained_at = CASE WHEN $3 = 'paused' THEN NULL ELSE drained_at END \
            WHERE window_id = $1 AND state = $2";
        SAY_WHY = "UPDATE maintenance SET reason = $2, detail = $3 WHERE window_id = $1";
        /// Servers with containers of their owner or borrower. A server with an open move is drained by that move.
        TO_DRAIN = "SELECT s.server_id FROM cordoned_servers c JOIN servers s USING (server_id) \
            WHERE c.window_id = $1 AND (s.in_use OR s.loan_reservation_id IS NOT NULL) \
                AND NOT s.target_pending AND NOT EXISTS \
                (SELECT FROM moves m WHERE m.open AND m.server_id = s.server_id) ORDER BY s.server_id";
        DRAINED = "UPDATE maintenance SET drained_at = clock_timestamp() WHERE window_id = $1";
        STILL_DRAINS = "SELECT EXISTS (SELECT FROM cordoned_servers c JOIN moves m USING (server_id) \
            WHERE c.window_id = $1 AND m.open AND m.origin = 'drain')";
        /// Those of no other window: it wants them, too.
        END_DRAINS = "UPDATE moves m SET state = 'superseded', reason = 'maintenance_over' \
            FROM maintenance w JOIN servers s ON CASE w.scope \
                WHEN 'server' THEN s.server_id = w.server_id ELSE s.rack_id = w.rack_id END \
            WHERE w.window_id = $1 AND m.open AND m.origin = 'drain' AND m.server_id = s.server_id \
                AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = s.server_id)";
        END_EVENT = "UPDATE unavailability SET ended_at = $2 WHERE event_id = $1";
        /// Work under way keeps its length when the database's clock is set forward.
        LATER = "UPDATE maintenance SET ends_at = ends_at + make_interval(secs => $1) \
            WHERE state IN ('active', 'recalling') RETURNING window_id, ends_at";
        EVENTS_LATER = "UPDATE unavailability u SET ended_at = ended_at + make_interval(secs => $1) \
            FROM maintenance m WHERE m.state = 'active' AND u.event_id = 'maintenance/' || m.window_id";
        RECALLED_LATER = "UPDATE unavailability u SET ended_at = u.ended_at + make_interval(secs => $1) \
            FROM recalls r JOIN maintenance m USING (window_id) \
            WHERE m.state = 'recalling' AND r.state NOT IN ('returned', 'over') AND u.event_id = r.event_id";
        SERVERS_OF = "SELECT s.server::text FROM maintenance w JOIN servers s ON CASE w.scope \
                WHEN 'server' THEN s.server_id = w.server_id ELSE s.rack_id = w.rack_id END \
            WHERE w.window_id = $1 ORDER BY s.server LIMIT $2";
    }
}

/// The reason for a transition, with the numbers.
type Why = (MaintenanceReason, Option<String>);

/// What a look finds due, as of one instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// The database's clock.
    pub now: DateTime<Utc>,
    /// Whether a window of maintenance may go on.
    pub maintenance: bool,
    /// Whether servers are drained.
    pub decommissions: bool,
}

impl Broker {
    /// What may go on by itself, in one round trip.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn due(&self) -> Result<Due, DbError> {
        let due = sqlx::query_as(sql::DUE).fetch_one(&self.pool).await;
        let (now, maintenance, decommissions) = due.doing("looking for what is due")?;
        Ok(Due { now, maintenance, decommissions })
    }

    /// Lets windows of maintenance go on whose time has come; gives how many steps were done.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn advance_maintenance(
        &self,
        actor: &str,
        epoch: Epoch,
    ) -> Result<usize, MoverError> {
        if !self.due().await?.maintenance {
            return Ok(0);
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        check_fence(change.connection(), epoch).await?;
        let now = lock(change.connection()).await?;
        let lost = outage(change.connection()).await?;
        let mut windows = open(change.connection()).await?;
        let checked =
            lost.is_none() && windows.iter().any(|window| is_checked(&view(window, false), now));
        let situation = match checked {
            true => Some(Situation::read(change.connection(), now, None).await?),
            false => None,
        };
        let mut steps = 0;
        for index in 0..windows.len() {
            loop {
                let window = &windows[index];
                let drains = still_drains(change.connection(), window).await?;
                let too_much = || too_much(situation.as_ref()?, &windows, window, now);
                let step = next(&view(window, drains), now, lost.as_ref(), too_much);
                let window = &mut windows[index];
                let (state, why) = match step {
                    WindowStep::Stay => break,
                    WindowStep::Drain => {
                        steps += usize::from(drain(&mut change, window).await?);
                        window.drained_at = Some(now);
                        continue;
                    }
                    WindowStep::Explain(obstacle) => {
                        say_why(&mut change, window, why(obstacle)).await?;
                        steps += 1;
                        break;
                    }
                    WindowStep::To(state) => (state, None),
                    WindowStep::Pause(obstacle) => (MaintenanceState::Paused, Some(why(obstacle))),
                    WindowStep::Cancel(reason) => {
                        let missed = reason == MaintenanceReason::Missed;
                        let detail = window.detail.clone().filter(|_| missed);
                        (MaintenanceState::Cancelled, Some((reason, detail)))
                    }
                };
                transition(&mut change, window, state, why, now).await?;
                steps += 1;
            }
        }
        if steps == 0 {
            change.abandon().await?;
        } else {
            change.commit().await?;
        }
        Ok(steps)
    }

    /// Puts off the end of work under way: the database's clock was set forward by so much, and no time
    /// has passed. What is still to come begins by the clock as it is. Gives how many windows it was.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn clock_jumped(
        &self,
        actor: &str,
        epoch: Epoch,
        by: TimeDelta,
    ) -> Result<usize, MoverError> {
        let doing = "putting off the end of maintenance";
        let seconds = by.as_seconds_f64();
        let mut change = AuditedTx::begin(self, actor).await?;
        check_fence(change.connection(), epoch).await?;
        lock(change.connection()).await?;
        let db = change.connection();
        for events in [sql::EVENTS_LATER, sql::RECALLED_LATER] {
            sqlx::query(events).bind(seconds).execute(&mut *db).await.doing(doing)?;
        }
        let windows: Vec<(WindowId, DateTime<Utc>)> =
            sqlx::query_as(sql::LATER).bind(seconds).fetch_all(db).await.doing(doing)?;
        if windows.is_empty() {
            change.abandon().await?;
            return Ok(0);
        }
        for (window, ends_at) in &windows {
            let to = MaintenanceChange::Later {
                ends_at: *ends_at,
                servers: [],
                detail: format!("the clock was set forward by {seconds} s"),
            };
            change.record(&window.to_string(), Event::MaintenanceChanged { window: *window, to });
        }
        change.commit().await?;
        Ok(windows.len())
    }

    /// Ends work that is done before its time: a window, or all of a plan that are under way.
    /// Gives them.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub async fn end_maintenance(
        &self,
        actor: &str,
        id: impl Into<MaintenanceId>,
    ) -> Result<Vec<WindowId>, MaintenanceError> {
        let why = (MaintenanceReason::EndedEarly, None);
        self.stop(actor, id.into(), MaintenanceState::Done, why).await
    }

    /// Cancels a window, or all of a plan that are not over, however far they are: what still ends on
    /// their servers is left alone, and work is over. Gives them.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub async fn cancel_maintenance(
        &self,
        actor: &str,
        id: impl Into<MaintenanceId>,
    ) -> Result<Vec<WindowId>, MaintenanceError> {
        let why = (MaintenanceReason::Asked, Some(format!("by {actor}")));
        self.stop(actor, id.into(), MaintenanceState::Cancelled, why).await
    }

    async fn stop(
        &self,
        actor: &str,
        id: MaintenanceId,
        state: MaintenanceState,
        why: Why,
    ) -> Result<Vec<WindowId>, MaintenanceError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let now = lock(change.connection()).await?;
        let all = super::listed(change.connection(), true, Some(id), i64::MAX).await;
        let all = all.doing("looking maintenance up")?;
        if all.is_empty() {
            return Err(MaintenanceError::Unknown { id });
        }
        let (mut open, mut stopped) = (false, Vec::new());
        for mut window in all {
            open |= !window.state.is_terminal();
            if state.may_follow(Some(window.state)) {
                transition(&mut change, &mut window, state, Some(why.clone()), now).await?;
                stopped.push(window.id);
            }
        }
        if stopped.is_empty() {
            change.abandon().await?;
            return Err(match open {
                true => MaintenanceError::NotActive { id },
                false => MaintenanceError::Over { id },
            });
        }
        change.commit().await?;
        Ok(stopped)
    }
}

/// The view of the decision about the next step of a window.
fn view(window: &MaintenanceWindow, still_drains: bool) -> WindowView {
    WindowView {
        state: window.state,
        reason: window.reason,
        drains_at: window.drains_at(),
        starts_at: window.starts_at,
        ends_at: window.ends_at,
        drained_at: window.drained_at,
        still_drains,
        gone: window.gone,
    }
}

/// The reason and the numbers of an obstacle, as they are stored.
fn why(obstacle: Obstacle) -> Why {
    let reason = obstacle.reason();
    let refusal = match obstacle {
        Obstacle::Outage(msb) => MaintenanceRefusal::OutageNow { msb },
        Obstacle::TooMuch(too_much) => MaintenanceRefusal::of(too_much, Vec::new()),
    };
    (reason, Some(refusal.to_string()))
}

/// The limit that a window would exceed beside those that have begun.
fn too_much(
    situation: &Situation,
    windows: &[MaintenanceWindow],
    window: &MaintenanceWindow,
    now: DateTime<Utc>,
) -> Option<TooMuch> {
    let begun = windows.iter().filter(|other| {
        let begun = matches!(other.state, MaintenanceState::Draining | MaintenanceState::Active);
        begun && other.id != window.id
    });
    let out = situation.out(window);
    let ours = Out { from: out.from.max(now), ..out };
    let others = situation.others(begun);
    let others: Vec<&Out> = others.iter().collect();
    let accepted = window.accept_short.as_ref().map(|of| of.reservations.clone());
    let accepted = accepted.unwrap_or_default();
    check_accepting(&situation.view, &others, &ours, window.share_micro, &accepted).err()
}

/// Whether anything that a drain is to end still runs.
async fn still_drains(db: &mut PgConnection, window: &MaintenanceWindow) -> Result<bool, DbError> {
    if window.state != MaintenanceState::Draining || window.drained_at.is_none() {
        return Ok(false);
    }
    let drains = sqlx::query_scalar(sql::STILL_DRAINS).bind(window.id).fetch_one(db).await;
    drains.doing("looking whether servers are drained")
}

/// Opens moves that end what still runs on a window's servers; gives whether there are any.
async fn drain(change: &mut AuditedTx, window: &MaintenanceWindow) -> Result<bool, DbError> {
    let doing = "draining servers for maintenance";
    let db = change.connection();
    let servers: Vec<i32> =
        sqlx::query_scalar(sql::TO_DRAIN).bind(window.id).fetch_all(&mut *db).await.doing(doing)?;
    sqlx::query(sql::DRAINED).bind(window.id).execute(&mut *db).await.doing(doing)?;
    let opened = lifecycle::open(&mut *db, &servers, Some(MoveOrigin::Drain)).await?;
    if opened > 0 {
        let version = region_read::head(db).await?;
        let maintenance = Some(window.id);
        change.record(
            &version.to_string(),
            Event::MovesOpened { opened, superseded: 0, maintenance },
        );
    }
    Ok(opened > 0)
}

/// Takes a window to a state, with all that follows from it.
pub(super) async fn transition(
    change: &mut AuditedTx,
    window: &mut MaintenanceWindow,
    state: MaintenanceState,
    why: Option<Why>,
    now: DateTime<Utc>,
) -> Result<(), DbError> {
    let doing = "taking maintenance further";
    let before = window.state;
    let (reason, detail) = why.map_or((None, None), |(reason, detail)| (Some(reason), detail));
    let db = change.connection();
    let went = sqlx::query(sql::GO_ON)
        .bind(window.id)
        .bind(before.as_str())
        .bind(state.as_str())
        .bind(reason.map(MaintenanceReason::as_str))
        .bind(&detail);
    went.execute(&mut *db).await.doing(doing)?;
    (window.state, window.reason, window.detail) = (state, reason, detail);
    if state == MaintenanceState::Paused {
        window.drained_at = None;
    }
    let cordons = |state| matches!(state, MaintenanceState::Draining | MaintenanceState::Active);
    if cordons(before) && !cordons(state) {
        sqlx::query(sql::END_DRAINS).bind(window.id).execute(&mut *db).await.doing(doing)?;
    }
    if state == MaintenanceState::Active {
        begin_event(change, window, now).await?;
    } else if before == MaintenanceState::Active {
        end_event(change, window, window.ends_at.min(now)).await?;
    } else if before == MaintenanceState::Recalling {
        super::recall_end::end_all(change, window, window.ends_at.min(now)).await?;
    }
    window.state_at = now;
    record(change, window).await
}

fn event(window: &MaintenanceWindow) -> Name {
    format!("maintenance/{}", window.id).into()
}

/// The window that an event is of, by its id.
pub(crate) fn window_of(event: &str) -> Option<WindowId> {
    event.strip_prefix("maintenance/")?.parse().ok()
}

/// Which of these windows were planned here.
pub(crate) async fn known(
    db: &mut PgConnection,
    windows: &[WindowId],
) -> Result<BTreeSet<WindowId>, DbError> {
    let known = sqlx::query_scalar(sql::KNOWN).bind(windows).fetch_all(db).await;
    Ok(known.doing("looking for windows of maintenance")?.into_iter().collect())
}

/// Records that servers are out of use. The event knows its end, so it ends without a mover, too.
async fn begin_event(
    change: &mut AuditedTx,
    window: &MaintenanceWindow,
    started_at: DateTime<Utc>,
) -> Result<(), DbError> {
    let row = UnavailabilityRow {
        event_id: event(window),
        scope: window.scope.as_str().into(),
        scope_id: window.name.clone(),
        kind: UnavailabilityKind::PlannedMaintenance.as_str().into(),
        started_at,
        ended_at: Some(window.ends_at),
        recall_minutes: window.recall_minutes.and_then(|minutes| i32::try_from(minutes).ok()),
    };
    unavailability::write(change.connection(), &[&row]).await?;
    let of = Unavailable::Began {
        scope: window.scope,
        scope_id: &window.name,
        kind: UnavailabilityKind::PlannedMaintenance,
        started_at,
        ended_at: row.ended_at,
        r#move: None,
        recalled_from: None,
    };
    change.record(&row.event_id, Event::UnavailabilityRecorded { of });
    Ok(())
}

async fn end_event(
    change: &mut AuditedTx,
    window: &MaintenanceWindow,
    ended_at: DateTime<Utc>,
) -> Result<(), DbError> {
    let event = event(window);
    let ended = sqlx::query(sql::END_EVENT).bind(&*event).bind(ended_at);
    ended.execute(change.connection()).await.doing("ending the event of maintenance")?;
    let (scope, scope_id, ended_at) = (window.scope, &*window.name, Some(ended_at));
    let (kind, started_at) = (None, None);
    change.record(
        &event,
        Event::UnavailabilityCleared { scope, scope_id, kind, started_at, ended_at },
    );
    Ok(())
}

async fn say_why(
    change: &mut AuditedTx,
    window: &mut MaintenanceWindow,
    (reason, detail): Why,
) -> Result<(), DbError> {
    let said = sqlx::query(sql::SAY_WHY).bind(window.id).bind(reason.as_str()).bind(&detail);
    said.execute(change.connection()).await.doing("saying why maintenance is paused")?;
    (window.reason, window.detail) = (Some(reason), detail);
    record(change, window).await
}

async fn record(change: &mut AuditedTx, window: &MaintenanceWindow) -> Result<(), DbError> {
    let servers: Vec<String> = sqlx::query_scalar(sql::SERVERS_OF)
        .bind(window.id)
        .bind(i64::try_from(NAMED_MAX).unwrap_or(i64::MAX).saturating_add(1))
        .fetch_all(change.connection())
        .await
        .doing("listing servers of maintenance")?;
    let to = MaintenanceChange::State {
        state: window.state,
        reason: window.reason,
        detail: window.detail.as_deref(),
        scope: window.scope,
        scope_id: &window.name,
        servers: Some(servers).filter(|servers| servers.len() <= NAMED_MAX),
    };
    change.record(&window.id.to_string(), Event::MaintenanceChanged { window: window.id, to });
    Ok(())
}
