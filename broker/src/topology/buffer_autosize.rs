//! Shared buffers that follow failures: settings of operators by hardware type, and the last decision.
//!
//! The server that takes hardware types decides on them ([`Broker::take_buffer_autosizes`]); no other does so within some minutes.
//! A decision sets the shared buffer as an operator does. What is stored here of a decision is for people.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::promises::AutosizeAction;
use crate::topology::edit_error::{EditError, check_seen};
use crate::topology::hardware::hold;
use chrono::{DateTime, Utc};
use fleet::HardwareTypeName;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        SET = "INSERT INTO buffer_autosizes (hardware_type_id, chance_micro, min_servers, max_servers, cooldown_seconds, set_by) \
            SELECT hardware_type_id, $2, $3, $4, $5, $6 FROM hardware_types WHERE hardware_type = $1 \
            ON CONFLICT (hardware_type_id) DO UPDATE SET chance_micro = excluded.chance_micro, \
                min_servers = excluded.min_servers, max_servers = excluded.max_servers, \
                cooldown_seconds = excluded.cooldown_seconds, set_by = excluded.set_by, set_at = clock_timestamp(), looked_at = NULL";
        SET_AT = "SELECT a.set_at FROM buffer_autosizes a JOIN hardware_types h USING (hardware_type_id) \
            WHERE h.hardware_type = $1";
        REMOVE = "DELETE FROM buffer_autosizes a USING hardware_types h \
            WHERE h.hardware_type_id = a.hardware_type_id AND h.hardware_type = $1";
        ALL_SET = "SELECT h.hardware_type::text, a.chance_micro, a.min_servers, a.max_servers, a.cooldown_seconds, \
                a.set_by::text, a.set_at, a.looked_at, a.action, a.to_servers, a.reason \
            FROM buffer_autosizes a JOIN hardware_types h USING (hardware_type_id) ORDER BY 1";
        /// Of several servers one takes each.
        TAKE = "UPDATE buffer_autosizes a SET looked_at = clock_timestamp() FROM hardware_types h \
            WHERE h.hardware_type_id = a.hardware_type_id AND NOT h.removed AND a.hardware_type_id IN \
                (SELECT hardware_type_id FROM buffer_autosizes \
                WHERE looked_at IS NULL OR looked_at < clock_timestamp() - make_interval(secs => $1) FOR UPDATE SKIP LOCKED) \
            RETURNING h.hardware_type::text, a.chance_micro, a.min_servers, a.max_servers, a.cooldown_seconds, a.looked_at, a.set_at, \
                (SELECT p.promised_at FROM reservations r JOIN promises p USING (promise_id) \
                    WHERE r.buffer_type_id = a.hardware_type_id)";
        NOTE = "UPDATE buffer_autosizes a SET action = $2, to_servers = $3, reason = $4 \
            FROM hardware_types h WHERE h.hardware_type_id = a.hardware_type_id AND h.hardware_type = $1 AND a.set_at = $5";
    }
}

/// How the shared buffer of a hardware type follows its failures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferAutosize {
    /// Accepted chance that more servers are down at an instant than the buffer has, in millionths: 100 to 500,000.
    pub chance_micro: u32,
    /// The buffer never falls below it, in servers.
    pub min: u32,
    /// The buffer never rises above it, in servers: at most 1,000,000.
    pub max: u32,
    /// Time after a change before the buffer may shrink: an hour to 31 days.
    pub cooldown: Duration,
}

/// The last decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferDecision {
    /// What it does.
    pub action: AutosizeAction,
    /// The size decided, in servers; `None`: the buffer stays.
    pub to: Option<u32>,
    /// Why.
    pub reason: String,
}

/// The settings of a hardware type, and what came of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferAutosizeState {
    /// The hardware type.
    pub hardware_type: HardwareTypeName,
    /// The settings.
    pub autosize: BufferAutosize,
    /// Who set them.
    pub set_by: String,
    /// When.
    pub set_at: DateTime<Utc>,
    /// When the last decision was begun.
    pub looked_at: Option<DateTime<Utc>>,
    /// The last decision.
    pub decision: Option<BufferDecision>,
}

impl BufferAutosizeState {
    /// The version of the settings, for `If-Match`.
    pub fn version(&self) -> String {
        version(Some(self.set_at))
    }
}

/// The version of settings that were set at a time; of none [`NO_AUTOSIZE`](crate::NO_AUTOSIZE).
fn version(set_at: Option<DateTime<Utc>>) -> String {
    set_at.map_or(0, |at| at.timestamp_micros()).to_string()
}

/// A hardware type that is to be decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferDue {
    /// The hardware type.
    pub hardware_type: HardwareTypeName,
    /// The settings.
    pub autosize: BufferAutosize,
    /// When the settings were set.
    pub set_at: DateTime<Utc>,
    /// When its shared buffer last changed; `None`: it has none.
    pub changed_at: Option<DateTime<Utc>>,
    /// The time of the database.
    pub now: DateTime<Utc>,
}

/// The settings in the columns from 1 to 4.
fn autosize(row: &PgRow) -> Result<BufferAutosize, sqlx::Error> {
    let whole = |column: usize| whole(row, column);
    Ok(BufferAutosize {
        chance_micro: whole(1)?,
        min: whole(2)?,
        max: whole(3)?,
        cooldown: Duration::from_secs(whole(4)?.into()),
    })
}

fn whole(row: &PgRow, column: usize) -> Result<u32, sqlx::Error> {
    row.try_get::<i32, _>(column).map(|number| u32::try_from(number).unwrap_or(0))
}

fn state(row: &PgRow) -> Result<BufferAutosizeState, sqlx::Error> {
    let decision = match row.try_get::<Option<&str>, _>(8)? {
        None => None,
        Some(word) => Some(BufferDecision {
            action: words::read(
                "buffer_autosizes.action",
                AutosizeAction::ALL,
                AutosizeAction::as_str,
                word,
            )?,
            to: row.try_get::<Option<i32>, _>(9)?.and_then(|to| u32::try_from(to).ok()),
            reason: row.try_get(10)?,
        }),
    };
    Ok(BufferAutosizeState {
        hardware_type: words::name(row, 0)?,
        autosize: autosize(row)?,
        set_by: row.try_get(5)?,
        set_at: row.try_get(6)?,
        looked_at: row.try_get(7)?,
        decision,
    })
}

/// Locks the region, and checks that the hardware type exists and its settings have this version.
async fn check(
    db: &mut PgConnection,
    hardware_type: &HardwareTypeName,
    seen: Option<&str>,
    doing: &'static str,
) -> Result<(), EditError> {
    hold(&mut *db, hardware_type).await?;
    let set_at = sqlx::query_scalar(sql::SET_AT).bind(hardware_type.as_ref());
    check_seen(seen, version(set_at.fetch_optional(db).await.doing(doing)?))
}

impl Broker {
    /// Lets the shared buffer of a hardware type follow its failures, or changes how. The next decision is due at once. With a
    /// version only if it is the current one.
    ///
    /// # Errors
    /// [`EditError`]: unknown type, or another version; settings out of range are refused by the store.
    pub async fn set_buffer_autosize(
        &self,
        actor: &str,
        hardware_type: &HardwareTypeName,
        autosize: &BufferAutosize,
        seen: Option<&str>,
    ) -> Result<(), EditError> {
        let doing = "setting how a shared buffer follows failures";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check(db, hardware_type, seen, doing).await?;
        let whole = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        let cooldown = whole(autosize.cooldown.as_secs());
        let set = sqlx::query(sql::SET)
            .bind(hardware_type.as_ref())
            .bind(whole(autosize.chance_micro.into()))
            .bind(whole(autosize.min.into()))
            .bind(whole(autosize.max.into()))
            .bind(cooldown)
            .bind(actor);
        set.execute(db).await.doing(doing)?;
        let event = Event::BufferAutosizeSet {
            chance_micro: autosize.chance_micro,
            min_servers: autosize.min,
            max_servers: autosize.max,
            cooldown_seconds: cooldown,
        };
        change.record(hardware_type, event);
        change.commit().await?;
        Ok(())
    }

    /// The shared buffer of a hardware type no longer follows its failures, if it did; it stays as it is. With a version only if
    /// that is the current one.
    ///
    /// # Errors
    /// As [`Broker::set_buffer_autosize`].
    pub async fn remove_buffer_autosize(
        &self,
        actor: &str,
        hardware_type: &HardwareTypeName,
        seen: Option<&str>,
    ) -> Result<(), EditError> {
        let doing = "a shared buffer no longer follows failures";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        check(db, hardware_type, seen, doing).await?;
        let removed = sqlx::query(sql::REMOVE).bind(hardware_type.as_ref()).execute(db).await;
        if removed.doing(doing)?.rows_affected() == 0 {
            change.abandon().await?;
            return Ok(());
        }
        change.record(hardware_type, Event::BufferAutosizeRemoved {});
        change.commit().await?;
        Ok(())
    }

    /// The hardware types whose shared buffer follows their failures, by name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn buffer_autosizes(&self) -> Result<Vec<BufferAutosizeState>, DbError> {
        let rows = sqlx::query(sql::ALL_SET).try_map(|row: PgRow| state(&row));
        rows.fetch_all(&self.pool).await.doing("reading which shared buffers follow failures")
    }

    /// Takes the hardware types on which no decision was begun for this time.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn take_buffer_autosizes(&self, every: Duration) -> Result<Vec<BufferDue>, DbError> {
        let due = |row: PgRow| {
            Ok(BufferDue {
                hardware_type: words::name(&row, 0)?,
                autosize: autosize(&row)?,
                now: row.try_get(5)?,
                set_at: row.try_get(6)?,
                changed_at: row.try_get(7)?,
            })
        };
        let taken = sqlx::query(sql::TAKE).bind(every.as_secs_f64()).try_map(due);
        taken.fetch_all(&self.pool).await.doing("taking shared buffers that follow failures")
    }

    /// Notes a decision, for people, if the settings are still those of then.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_buffer_autosize(
        &self,
        due: &BufferDue,
        decision: &BufferDecision,
    ) -> Result<(), DbError> {
        let noted = sqlx::query(sql::NOTE)
            .bind(due.hardware_type.as_ref())
            .bind(decision.action.as_str())
            .bind(decision.to.map(|to| i32::try_from(to).unwrap_or(i32::MAX)))
            .bind(&decision.reason)
            .bind(due.set_at);
        noted
            .execute(&self.pool)
            .await
            .map(|_| ())
            .doing("noting how a shared buffer follows failures")
    }
}
