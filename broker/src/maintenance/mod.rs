//! Planned maintenance: windows in which servers are out of use, with a drain before.
//!
//! A window is of one server or one rack. What is asked for an MSB becomes one window for each of its
//! racks, in batches that follow one another, each within the share of the MSB that may be out at once.
//! Nothing is replaced: embedded buffers serve maintenance (RAS section 3.3.1). So a window is refused,
//! with the numbers, if a reservation would fall below what it was promised.
//!
//! `advance` has the transitions of windows, which follow from stored times and the database's clock.

mod advance;
mod instead;
mod preview;
mod recall;
mod recall_end;
mod refusal;
mod view;

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::{MaintenanceId, MaintenancePlanId, WindowId};
use crate::infra::state::{self, MaintenanceState};
use crate::infra::words;
use crate::log::change::Change;
use crate::log::trail::Action;
pub use advance::Due;
pub(crate) use advance::{known, window_of};
use chrono::{DateTime, SubsecRound, TimeDelta, Utc};
pub use decisions::maintenance::capacity::{Left as MaintenanceLeft, SHARE_MICRO};
use decisions::maintenance::capacity::{Out, TooMuch};
pub use decisions::maintenance::lifecycle::MaintenanceReason;
use fleet::{Name, Scope};
pub use instead::MaintenanceInstead;
pub use preview::{MaintenanceHolder, MaintenancePreview, PreviewedWindow};
pub use recall::{OpenRecall, RecallReport, WindowRecall};
pub use refusal::{MaintenanceError, MaintenanceLength, MaintenanceRefusal};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;
use view::Situation;

/// No window and no drain is longer.
pub const MAINTENANCE_MAX: Duration = Duration::from_secs(7 * 86_400);

/// Nothing is planned further ahead.
pub const AHEAD_MAX: Duration = Duration::from_secs(366 * 86_400);

pub(crate) mod sql {
    crate::statements! {
        /// Before the version of the targets, as loads do: both write events.
        LOCK_EVENTS = "LOCK TABLE unavailability IN ROW EXCLUSIVE MODE";
        NOW = "SELECT clock_timestamp()";
        OUTAGE = "SELECT msb FROM outages WHERE ended_at IS NULL ORDER BY began_at, outage_id LIMIT 1";
        PLAN = "INSERT INTO maintenance (window_id, plan_id, asked_for, server_id, rack_id, scope, scope_id, \
                msb, starts_at, ends_at, drain_seconds, share_micro, why, requested_by, recall_minutes, state) \
            SELECT $1, $2, $3, (SELECT server_id FROM servers WHERE $4 = 'server' AND server = $5), \
                (SELECT rack_id FROM racks WHERE $4 = 'rack' AND rack = $5), \
                $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 'planned'";
        OPEN = "SELECT window_id, plan_id, asked_for, scope, scope_id, msb, starts_at, ends_at, drain_seconds, \
                share_micro, why, requested_by, requested_at, state, state_at, reason, detail, drained_at, \
                scope = 'server' AND server_id IS NULL, 0::bigint, 0::bigint, recall_minutes, \
                0::bigint, 0::bigint, 0::bigint, NULL::timestamptz, NULL::timestamptz, NULL::timestamptz \
            FROM maintenance WHERE open ORDER BY starts_at, window_id";
        LIST = "SELECT m.window_id, m.plan_id, m.asked_for, m.scope, m.scope_id, m.msb, m.starts_at, \
                m.ends_at, m.drain_seconds, m.share_micro, m.why, m.requested_by, m.requested_at, m.state, \
                m.state_at, m.reason, m.detail, m.drained_at, \
                m.scope = 'server' AND m.server_id IS NULL, n.servers, n.in_use, m.recall_minutes, \
                b.servers, b.returned, b.refused, b.ordered_at, b.due_at, b.back_at \
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

/// Maintenance that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaintenanceRequest {
    /// A server, a rack or an MSB.
    pub scope: Scope,
    /// Its name.
    pub name: Name,
    /// When work begins; `None`: as soon as the drain is over.
    pub starts_at: Option<DateTime<Utc>>,
    /// How long work takes; for an MSB, each batch.
    pub length: Duration,
    /// For how long before nothing new is put there.
    pub drain: Duration,
    /// Millionths of the MSB that may be under maintenance at once; `None`: [`SHARE_MICRO`].
    pub share_micro: Option<u32>,
    /// How many minutes work takes to give its servers back when it is recalled because an MSB is lost.
    /// `None`: it cannot be recalled, and its servers count as gone. Not recallable unless said
    /// otherwise: who does not know must not be relied on.
    pub recall_minutes: Option<u32>,
    /// Why, for people.
    pub why: String,
}

impl MaintenanceRequest {
    /// Millionths of the MSB that may be under maintenance at once.
    fn share(&self) -> u32 {
        self.share_micro.unwrap_or(SHARE_MICRO).clamp(1, 1_000_000)
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
    pub msb: Name,
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
        possible(request)?;
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let now = lock(db).await?;
        let Decided { msb, share_micro, batches, .. } = decide(db, now, request).await?;
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
                .bind(request.recall_minutes.and_then(|minutes| i32::try_from(minutes).ok()));
            planned.execute(&mut *db).await.doing("planning maintenance")?;
        }
        for window in
            listed(db, true, Some(plan.into()), i64::MAX).await.doing("planning maintenance")?
        {
            let detail = serde_json::json!({
                "plan": window.plan.to_string(), "asked_for": scope.as_str(),
                "scope": window.scope.as_str(), "scope_id": window.name, "msb": window.msb,
                "starts_at": window.starts_at, "ends_at": window.ends_at,
                "drain_seconds": window.drain.as_secs(), "share_micro": share_micro,
                "recall_minutes": window.recall_minutes, "why": window.why, "servers": window.servers,
            });
            change.record(Action::MaintenancePlanned, &window.id.to_string(), detail);
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

/// Refuses what no region could have.
fn possible(request: &MaintenanceRequest) -> Result<(), MaintenanceRefusal> {
    let MaintenanceRequest { scope, name, .. } = request;
    if *scope == Scope::Datacenter || name.contains('\0') {
        return Err(MaintenanceRefusal::UnknownScope { scope: *scope, name: name.clone() });
    }
    Ok(())
}

/// Windows that begin together.
struct Batch {
    out: Out,
    /// A server or racks, by name.
    parts: Vec<(Scope, Name)>,
}

/// What is asked for, as it would be planned.
struct Decided {
    situation: Situation,
    msb: Name,
    share_micro: u32,
    /// In order of time.
    batches: Vec<Batch>,
}

/// Divides what is asked for into windows, if what there is allows them. Writes nothing.
async fn decide(
    db: &mut PgConnection,
    now: DateTime<Utc>,
    request: &MaintenanceRequest,
) -> Result<Decided, MaintenanceError> {
    let MaintenanceRequest { scope, name, drain, .. } = request;
    let starts_at = begins(request, now)?;
    if starts_at - *drain <= now
        && let Some(msb) = outage(db).await?
    {
        return Err(MaintenanceRefusal::OutageNow { msb }.into());
    }
    let situation = Situation::read(db, now, Some((*scope, name))).await?;
    let unknown = || MaintenanceRefusal::UnknownScope { scope: *scope, name: name.clone() };
    let msb = situation.msb().ok_or_else(unknown)?.clone();
    let open = open(db).await?;
    let share_micro = request.share();
    let fits = |batches: Vec<Batch>| {
        for batch in &batches {
            situation.check(open.iter(), &batch.out, share_micro)?;
        }
        Ok(batches)
    };
    let batches = batches(&situation, &msb, request, starts_at).and_then(fits);
    let batches = batches.map_err(|too_much| {
        let instead = instead::instead(&situation, &open, request, starts_at, now);
        MaintenanceRefusal::of(too_much, instead)
    })?;
    Ok(Decided { situation, msb, share_micro, batches })
}

/// Divides what is asked for into windows: an MSB into batches of racks that follow one another.
fn batches(
    situation: &Situation,
    msb: &Name,
    request: &MaintenanceRequest,
    starts_at: DateTime<Utc>,
) -> Result<Vec<Batch>, TooMuch> {
    let MaintenanceRequest { scope, name, length, .. } = request;
    let recallable = view::recalled_in_time(request.recall_minutes);
    let mut batches = Vec::new();
    if *scope == Scope::Msb {
        let racks = situation.racks();
        let sizes = racks.iter().map(|(rack, servers)| (rack.clone(), servers.len() as u64));
        let mut from = starts_at;
        for batch in
            decisions::maintenance::capacity::batches(msb, &sizes.collect(), request.share())?
        {
            let servers = batch.iter().flat_map(|rack| &racks[rack]).copied().collect();
            let out = Out { from, until: from + *length, servers, recallable };
            from = out.until;
            let parts = batch.into_iter().map(|rack| (Scope::Rack, rack)).collect();
            batches.push(Batch { out, parts });
        }
    } else {
        let servers = situation.asked.clone();
        let out = Out { from: starts_at, until: starts_at + *length, servers, recallable };
        batches.push(Batch { out, parts: vec![(*scope, name.clone())] });
    }
    Ok(batches)
}

/// When it begins, if its times are possible.
fn begins(
    request: &MaintenanceRequest,
    now: DateTime<Utc>,
) -> Result<DateTime<Utc>, MaintenanceRefusal> {
    let recall = Duration::from_secs(60) * request.recall_minutes.unwrap_or(0);
    let lengths = [
        (MaintenanceLength::Window, request.length, Duration::from_secs(1), MAINTENANCE_MAX),
        (MaintenanceLength::Drain, request.drain, Duration::ZERO, MAINTENANCE_MAX),
        (MaintenanceLength::Recall, recall, Duration::ZERO, MAINTENANCE_MAX),
    ];
    for (what, length, least, most) in lengths {
        if !(least..=most).contains(&length) {
            let (seconds, least, most) = (length.as_secs(), least.as_secs(), most.as_secs());
            return Err(MaintenanceRefusal::Length { what, seconds, least, most });
        }
    }
    let starts_at = request.starts_at.unwrap_or(now + request.drain).trunc_subsecs(6);
    let ahead = starts_at - now;
    if ahead < TimeDelta::zero() && request.starts_at.is_some() {
        return Err(MaintenanceRefusal::InThePast { starts_at, now });
    }
    let ahead = ahead.to_std().unwrap_or(Duration::ZERO);
    if ahead > AHEAD_MAX {
        let (what, least, most) = (MaintenanceLength::Ahead, 0, AHEAD_MAX.as_secs());
        return Err(MaintenanceRefusal::Length { what, seconds: ahead.as_secs(), least, most });
    }
    Ok(starts_at)
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
async fn outage(db: &mut PgConnection) -> Result<Option<Name>, DbError> {
    let msb: Option<String> =
        sqlx::query_scalar(sql::OUTAGE).fetch_optional(db).await.doing("looking for outages")?;
    Ok(msb.map(Name::from))
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
    let name = |column: usize| row.try_get::<&str, _>(column).map(Name::from);
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
    let known = |word| {
        words::read("maintenance.reason", MaintenanceReason::ALL, MaintenanceReason::as_str, word)
    };
    Ok(MaintenanceWindow {
        id: row.try_get(0)?,
        plan: row.try_get(1)?,
        asked_for: scope(2)?,
        scope: scope(3)?,
        name: name(4)?,
        msb: name(5)?,
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
