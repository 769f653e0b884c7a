//! Planned maintenance: windows in which servers are out of use, with a drain before.
//!
//! A window is of one server or one rack. What is asked for an MSB becomes one window for each of its
//! racks, in batches that follow one another, each within the share of the MSB that may be out at once.
//! Nothing is replaced: embedded buffers serve maintenance (RAS section 3.3.1). So a window is refused,
//! with the numbers, if a reservation would fall below what it was promised.
//!
//! `advance` has the transitions of windows, which follow from stored times and the database's clock.

mod advance;
mod error;
mod preview;
mod recall;
mod recall_end;
mod view;

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{MaintenanceId, MaintenancePlanId, WindowId};
use crate::infra::state::{self, MaintenanceState};
use crate::infra::words;
use crate::infra::words::name;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{AcceptShort, Event};
pub use advance::Due;
pub(crate) use advance::{known, window_of};
use chrono::{DateTime, TimeDelta, Utc};
pub use decisions::maintenance::capacity::{Left as MaintenanceLeft, SHARE_MICRO};
pub use decisions::maintenance::lifecycle::MaintenanceReason;
use decisions::maintenance::planning::{self, MaintenancePlan, Planning};
pub use decisions::maintenance::planning::{
    AHEAD_MAX, AcceptedShort, MAINTENANCE_MAX, MaintenanceRequest,
};
pub use decisions::maintenance::preview::{MaintenanceHolder, MaintenancePreview, PreviewedWindow};
pub use decisions::maintenance::refusal::{
    Length as MaintenanceLength, MaintenanceAlternative, MaintenanceRefusal,
};
pub use error::MaintenanceError;
use fleet::{MsbName, Name, Scope};
pub use recall::{OpenRecall, RecallReport, WindowRecall};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;
use view::Situation;

pub(crate) mod sql {
    crate::statements! {
        /// Before the version of the targets, as loads do: both write events.
        LOCK_EVENTS = "LOCK TABLE unavailability IN ROW EXCLUSIVE MODE";
        NOW = "SELECT clock_timestamp()";
        OUTAGE = "SELECT msb FROM outages WHERE ended_at IS NULL ORDER BY began_at, outage_id LIMIT 1";
        PLAN = "INSERT INTO maintenance (window_id, plan_id, asked_for, server_id, rack_id, scope, scope_id, \
                msb, starts_at, ends_at, drain_seconds, share_micro, why, requested_by, recall_minutes, \
                accepted_short, accepted_why, state) \
            SELECT $1, $2, $3, (SELECT server_id FROM servers WHERE $4 = 'server' AND server = $5), \
                (SELECT rack_id FROM racks WHERE $4 = 'rack' AND rack = $5), \
                $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, 'planned'";
        OPEN = "SELECT window_id, plan_id, asked_for, scope, scope_id, msb, starts_at, ends_at, drain_seconds, \
                share_micro, why, requested_by, requested_at, state, state_at, reason, detail, drained_at, \
                scope = 'server' AND server_id IS NULL, 0::bigint, 0::bigint, recall_minutes, \
                0::bigint, 0::bigint, 0::bigint, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz, \
                accepted_short, accepted_why \
            FROM maintenance WHERE open ORDER BY starts_at, window_id";
        LIST = "SELECT m.window_id, m.plan_id, m.asked_for, m.scope, m.scope_id, m.msb, m.starts_at, \
                m.ends_at, m.drain_seconds, m.share_micro, m.why, m.requested_by, m.requested_at, m.state, \
                m.state_at, m.reason, m.detail, m.drained_at, \
                m.scope = 'server' AND m.server_id IS NULL, n.servers, n.in_use, m.recall_minutes, \
                b.servers, b.returned, b.refused, b.ordered_at, b.due_at, b.back_at, \
                m.accepted_short, m.accepted_why \
            FROM maintenance m LEFT JOIN LATERAL (SELECT count(*) AS servers, \
                    count(*) FILTER (WHERE s.in_use OR s.loan_reservation_id IS NOT NULL) AS in_use \
                FROM servers s WHERE m.open AND CASE m.scope \
                    WHEN 'server' THEN s.server_id = m.server_id ELSE s.rack_id = m.rack_id END) n ON true \
            LEFT JOIN LATERAL (SELECT count(*) AS servers, \
                    count(*) FILTER (WHERE r.state = 'returned') AS returned, \
                    count(*) FILTER (WHERE r.state = 'refused') AS refused, \
                    min(r.ordered_at) AS ordered_at, max(r.due_at) AS due_at, \
                    max(r.state_at) FILTER (WHERE r.state = 'returned') AS back_at \
                FROM recalls r WHERE r.window_id = m.window_id) b ON true \
            WHERE (m.open OR $1) AND ($2::uuid IS NULL OR $2 IN (m.window_id, m.plan_id)) \
            ORDER BY NOT m.open, CASE WHEN m.open THEN m.starts_at END, m.starts_at DESC, m.window_id \
            LIMIT $3";
    }
}

/// A window of planned maintenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceWindow {
    /// Its id, ordered by time.
    pub id: WindowId,
    /// What windows that were asked for together share; of one alone, its own id.
    pub plan: MaintenancePlanId,
    /// What the plan is for.
    pub asked_for: Scope,
    /// A server or a rack.
    pub scope: Scope,
    /// Its name.
    pub name: Name,
    /// Its MSB.
    pub msb: MsbName,
    /// When work begins.
    pub starts_at: DateTime<Utc>,
    /// When it ends.
    pub ends_at: DateTime<Utc>,
    /// For how long before nothing new is put there.
    pub drain: Duration,
    /// Millionths of its MSB that may be under maintenance at once while it is.
    pub share_micro: u32,
    /// How many minutes work takes to give its servers back when it is recalled; `None`: it cannot be.
    pub recall_minutes: Option<u32>,
    /// Why, for people.
    pub why: String,
    /// Who asked for it.
    pub requested_by: String,
    /// When.
    pub requested_at: DateTime<Utc>,
    /// How far it is.
    pub state: MaintenanceState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// Why it is paused, was cancelled or ended before its time.
    pub reason: Option<MaintenanceReason>,
    /// The numbers behind that, for people.
    pub detail: Option<String>,
    /// Its servers now; of one that is over, none.
    pub servers: u64,
    /// Those of them that are in use or lent.
    pub in_use: u64,
    /// How far its recall is; `None`: it was not recalled.
    pub recall: Option<WindowRecall>,
    /// What an operator has accepted for it.
    pub accept_short: Option<AcceptedShort>,
    /// When moves were opened that end what runs there.
    drained_at: Option<DateTime<Utc>>,
    /// Whether its server is gone.
    gone: bool,
}

impl MaintenanceWindow {
    /// When nothing new is put there any more.
    pub fn drains_at(&self) -> DateTime<Utc> {
        self.starts_at - TimeDelta::from_std(self.drain).unwrap_or(TimeDelta::zero())
    }
}

impl Broker {
    /// Plans maintenance, or says why it cannot be. Gives its windows, in order of time.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub async fn plan_maintenance(
        &self,
        actor: &str,
        request: &MaintenanceRequest,
    ) -> Result<Vec<MaintenanceWindow>, MaintenanceError> {
        let MaintenanceRequest { scope, drain, why, .. } = request;
        request.check_scope()?;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let now = lock(db).await?;
        let MaintenancePlan { msb, batches } = decide(db, now, request).await?.plan;
        let share_micro = request.share();
        let windows: Vec<_> = (batches.iter())
            .flat_map(|batch| batch.parts.iter().map(move |part| (part, &batch.out)))
            .collect();
        let plan = MaintenancePlanId::now_v7();
        for ((part, part_name), out) in &windows {
            let id = if windows.len() == 1 { plan.into() } else { WindowId::now_v7() };
            let planned = sqlx::query(sql::PLAN)
                .bind(id)
                .bind(plan)
                .bind(scope.as_str())
                .bind(part.as_str())
                .bind(part_name.as_ref())
                .bind(msb.as_ref())
                .bind(out.from)
                .bind(out.until)
                .bind(i32::try_from(drain.as_secs()).unwrap_or(i32::MAX))
                .bind(i32::try_from(share_micro).unwrap_or(i32::MAX))
                // Text holds no zero character.
                .bind(why.replace('\0', " "))
                .bind(actor)
                .bind(request.recall_minutes.and_then(|minutes| i32::try_from(minutes).ok()))
                .bind(request.accepted().iter().map(ToString::to_string).collect::<Vec<_>>())
                .bind(request.accept_short.as_ref().map(|of| of.why.replace('\0', " ")));
            planned.execute(&mut *db).await.doing("planning maintenance")?;
        }
        for window in
            listed(db, true, Some(plan.into()), i64::MAX).await.doing("planning maintenance")?
        {
            let accept_short = window.accept_short.as_ref();
            let event = Event::MaintenancePlanned {
                plan: window.plan,
                asked_for: *scope,
                scope: window.scope,
                scope_id: &window.name,
                msb: &window.msb,
                starts_at: window.starts_at,
                ends_at: window.ends_at,
                drain_seconds: window.drain.as_secs(),
                share_micro,
                recall_minutes: window.recall_minutes,
                why: &window.why,
                servers: window.servers,
                accept_short: accept_short
                    .map(|AcceptedShort { reservations, why }| AcceptShort { reservations, why }),
            };
            change.record(&window.id.to_string(), event);
        }
        change.commit().await?;
        Ok(self.maintenance(true, Some(plan.into()), u32::MAX).await?)
    }

    /// Windows, those still to come or under way first, in order of time; all of them, or only
    /// those; of one plan or window, where an id is given.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn maintenance(
        &self,
        all: bool,
        of: Option<MaintenanceId>,
        limit: u32,
    ) -> Result<Vec<MaintenanceWindow>, DbError> {
        let doing = "listing maintenance";
        let mut connection = self.pool.acquire().await.doing(doing)?;
        listed(&mut connection, all, of, i64::from(limit)).await.doing(doing)
    }
}

/// An accepted request, with what it was decided on.
struct Decided {
    situation: Situation,
    plan: MaintenancePlan,
}

/// Decides on a request. Writes nothing.
async fn decide(
    db: &mut PgConnection,
    now: DateTime<Utc>,
    request: &MaintenanceRequest,
) -> Result<Decided, MaintenanceError> {
    let starts_at = request.begins(now)?;
    if starts_at - request.drain <= now
        && let Some(msb) = outage(db).await?
    {
        return Err(MaintenanceRefusal::OutageNow { msb }.into());
    }
    let situation = Situation::read(db, now, Some((request.scope, &request.name))).await?;
    let others = situation.others(open(db).await?.iter());
    let view = Planning { view: &situation.view, servers: &situation.requested, others: &others };
    let plan = planning::plan(&view, request, starts_at, now)?;
    Ok(Decided { situation, plan })
}

/// Excludes other decisions on maintenance, publications and loads until the transaction ends. Returns the
/// time.
async fn lock(db: &mut PgConnection) -> Result<DateTime<Utc>, DbError> {
    let doing = "locking maintenance";
    sqlx::query(sql::LOCK_EVENTS).execute(&mut *db).await.doing(doing)?;
    sqlx::query(crate::moves::lifecycle::sql::HOLD_HEAD).execute(&mut *db).await.doing(doing)?;
    sqlx::query_scalar(sql::NOW).fetch_one(db).await.doing(doing)
}

/// An MSB that is lost, the first one.
async fn outage(db: &mut PgConnection) -> Result<Option<MsbName>, DbError> {
    let msb: Option<String> =
        sqlx::query_scalar(sql::OUTAGE).fetch_optional(db).await.doing("looking for outages")?;
    Ok(msb.map(Into::into))
}

/// Windows that are still to come or under way, in order of time.
async fn open(db: &mut PgConnection) -> Result<Vec<MaintenanceWindow>, DbError> {
    let rows = sqlx::query(sql::OPEN).try_map(|row: PgRow| window(&row)).fetch_all(db);
    rows.await.doing("reading open maintenance")
}

async fn listed(
    db: &mut PgConnection,
    all: bool,
    of: Option<MaintenanceId>,
    limit: i64,
) -> Result<Vec<MaintenanceWindow>, sqlx::Error> {
    let rows = sqlx::query(sql::LIST).bind(all).bind(of).bind(limit);
    rows.try_map(|row: PgRow| window(&row)).fetch_all(db).await
}

fn window(row: &PgRow) -> Result<MaintenanceWindow, sqlx::Error> {
    let scope = |column: usize| {
        words::read("maintenance.scope", Scope::ALL, Scope::as_str, row.try_get(column)?)
    };
    let whole = |column: usize| row.try_get(column).map(|n: i32| n.unsigned_abs());
    let count = |column: usize| row.try_get(column).map(|n: i64| n.unsigned_abs());
    let reason: Option<&str> = row.try_get(15)?;
    let recall = match count(22)? {
        0 => None,
        servers => Some(WindowRecall {
            servers,
            returned: count(23)?,
            refused: count(24)?,
            ordered_at: row.try_get(25)?,
            due_at: row.try_get(26)?,
            back_at: row.try_get(27)?,
        }),
    };
    let reservations: Vec<String> = row.try_get(28)?;
    let reservations = reservations.into_iter().map(Into::into).collect();
    let accept_short = row.try_get::<Option<String>, _>(29)?;
    let accept_short = accept_short.map(|why| AcceptedShort { reservations, why });
    let known = |word| {
        words::read("maintenance.reason", MaintenanceReason::ALL, MaintenanceReason::as_str, word)
    };
    Ok(MaintenanceWindow {
        id: row.try_get(0)?,
        plan: row.try_get(1)?,
        asked_for: scope(2)?,
        scope: scope(3)?,
        name: name(row, 4)?,
        msb: name(row, 5)?,
        starts_at: row.try_get(6)?,
        ends_at: row.try_get(7)?,
        drain: Duration::from_secs(whole(8)?.into()),
        share_micro: whole(9)?,
        why: row.try_get(10)?,
        requested_by: row.try_get(11)?,
        requested_at: row.try_get(12)?,
        state: state::read(row.try_get(13)?)?,
        state_at: row.try_get(14)?,
        reason: reason.map(known).transpose()?,
        detail: row.try_get(16)?,
        drained_at: row.try_get(17)?,
        gone: row.try_get(18)?,
        servers: count(19)?,
        in_use: count(20)?,
        recall,
        recall_minutes: row.try_get::<Option<i32>, _>(21)?.map(i32::unsigned_abs),
        accept_short,
    })
}

/// The statements of this room, by module and name.
pub(crate) const STATEMENTS: &[crate::Statements] = &[
    sql::ALL,
    view::sql::ALL,
    preview::sql::ALL,
    advance::sql::ALL,
    recall::sql::ALL,
    recall_end::sql::ALL,
];
