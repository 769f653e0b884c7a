//! Reservations whose request follows demand: settings of their owners, and the last decision.
//!
//! The server that takes a reservation decides on it ([`Broker::take_autosize`]); no other does so within some minutes. A
//! decision submits an ordinary request. What is stored here of a decision is for people.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::RequestId;
use crate::infra::state::{self, RequestState};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use chrono::{DateTime, Utc};
use fleet::{OwnerName, ReservationKind, ReservationName, Rru};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        /// Locks the reservation, if it exists.
        OF_RESERVATION = "SELECT reservation_id, kind FROM reservations WHERE reservation = $1 FOR NO KEY UPDATE";
        SET = "INSERT INTO autosizes (reservation_id, metric, quantile_micro, min_micro, max_micro, cooldown_seconds, set_by) \
            VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (reservation_id) DO UPDATE SET \
                metric = excluded.metric, quantile_micro = excluded.quantile_micro, min_micro = excluded.min_micro, \
                max_micro = excluded.max_micro, cooldown_seconds = excluded.cooldown_seconds, \
                set_by = excluded.set_by, set_at = clock_timestamp(), looked_at = NULL";
        REMOVE = "DELETE FROM autosizes a USING reservations r \
            WHERE r.reservation_id = a.reservation_id AND r.reservation = $1";
        FIND = "SELECT r.reservation, a.metric, a.quantile_micro, a.min_micro, a.max_micro, a.cooldown_seconds, \
                a.set_by::text, a.set_at, a.looked_at, a.action, a.to_micro, a.reason, q.request_id, q.state, q.state_at, q.answer \
            FROM autosizes a JOIN reservations r USING (reservation_id) \
                LEFT JOIN capacity_requests q USING (request_id) WHERE r.reservation = $1";
        /// Of several servers one takes it.
        TAKE = "UPDATE autosizes a SET looked_at = clock_timestamp() \
            FROM reservations r JOIN promises p USING (promise_id) \
            WHERE r.reservation_id = a.reservation_id AND a.reservation_id = (SELECT reservation_id FROM autosizes \
                WHERE looked_at IS NULL OR looked_at < clock_timestamp() - make_interval(secs => $1) \
                ORDER BY looked_at NULLS FIRST, reservation_id LIMIT 1 FOR UPDATE SKIP LOCKED) \
            RETURNING r.reservation, a.metric, a.quantile_micro, a.min_micro, a.max_micro, a.cooldown_seconds, \
                p.owner, p.capacity_micro, p.promised_at, a.looked_at, \
                (SELECT q.state_at FROM capacity_requests q WHERE q.request_id = a.request_id AND q.state = 'refused')";
        NOTE = "UPDATE autosizes a SET action = $2, to_micro = $3, reason = $4, request_id = coalesce($5, a.request_id) \
            FROM reservations r WHERE r.reservation_id = a.reservation_id AND r.reservation = $1";
    }
}

/// What a request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutosizeMetric {
    /// RRU of the reservation's servers with running containers.
    UsedRru,
}

impl AutosizeMetric {
    /// Every metric.
    pub const ALL: [AutosizeMetric; 1] = [AutosizeMetric::UsedRru];

    /// Its word in the table and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            AutosizeMetric::UsedRru => "used_rru",
        }
    }
}

/// How a request follows demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Autosize {
    /// The demand.
    pub metric: AutosizeMetric,
    /// Millionths of the hours whose peak of demand the request must cover: 500,000 to 999,900.
    pub quantile_micro: u32,
    /// The request never falls below it.
    pub min: Rru,
    /// The request never rises above it.
    pub max: Rru,
    /// Time after a change before the request may shrink: an hour to 31 days.
    pub cooldown: Duration,
}

/// What a decision does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutosizeAction {
    /// The request stays.
    Keep,
    /// It grows.
    Grow,
    /// It shrinks.
    Shrink,
}

impl AutosizeAction {
    /// Every action.
    pub const ALL: [AutosizeAction; 3] =
        [AutosizeAction::Keep, AutosizeAction::Grow, AutosizeAction::Shrink];

    /// Its word in the table and in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            AutosizeAction::Keep => "keep",
            AutosizeAction::Grow => "grow",
            AutosizeAction::Shrink => "shrink",
        }
    }
}

/// The last decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutosizeDecision {
    /// What it does.
    pub action: AutosizeAction,
    /// The size decided; `None`: the request stays.
    pub to: Option<Rru>,
    /// Why.
    pub reason: String,
    /// The request that it submits.
    pub request: Option<RequestId>,
}

/// The last request that was submitted to follow demand.
#[derive(Clone, Debug)]
pub struct AutosizeRequest {
    /// The request.
    pub id: RequestId,
    /// Its state.
    pub state: RequestState,
    /// Since when.
    pub state_at: DateTime<Utc>,
    /// The answer, with the reasons of a refusal.
    pub answer: Option<Document>,
}

/// The settings of a reservation, and what came of them.
#[derive(Clone, Debug)]
pub struct AutosizeState {
    /// The reservation.
    pub reservation: ReservationName,
    /// The settings.
    pub autosize: Autosize,
    /// Who set them.
    pub set_by: String,
    /// When.
    pub set_at: DateTime<Utc>,
    /// When the last decision was begun.
    pub looked_at: Option<DateTime<Utc>>,
    /// The last decision.
    pub decision: Option<AutosizeDecision>,
    /// The last request.
    pub request: Option<AutosizeRequest>,
}

/// A reservation that is to be decided on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AutosizeDue {
    /// The reservation.
    pub reservation: ReservationName,
    /// The settings.
    pub autosize: Autosize,
    /// Its owner.
    pub owner: OwnerName,
    /// Its promised capacity.
    pub promised: Rru,
    /// Since when it is promised.
    pub promised_at: DateTime<Utc>,
    /// The time of the database.
    pub now: DateTime<Utc>,
    /// When the last request that followed demand was refused; `None`: it was not.
    pub refused_at: Option<DateTime<Utc>>,
}

/// Settings cannot be set or removed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum AutosizeError {
    #[error("there is no reservation {reservation:?}")]
    UnknownReservation { reservation: ReservationName },
    #[error("reservation {reservation:?} is {}; only guaranteed ones are requested", kind.as_str())]
    NotGuaranteed { reservation: ReservationName, kind: ReservationKind },
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The settings in the columns from 1 to 5.
fn autosize(row: &PgRow) -> Result<Autosize, sqlx::Error> {
    let whole = |column: usize| {
        row.try_get::<i32, _>(column).map(|number| u32::try_from(number).unwrap_or(0))
    };
    let metric = row.try_get(1)?;
    let all = AutosizeMetric::ALL;
    Ok(Autosize {
        metric: words::read("autosizes.metric", all, AutosizeMetric::as_str, metric)?,
        quantile_micro: whole(2)?,
        min: Rru(row.try_get(3)?),
        max: Rru(row.try_get(4)?),
        cooldown: Duration::from_secs(whole(5)?.into()),
    })
}

fn found(row: &PgRow) -> Result<AutosizeState, sqlx::Error> {
    let action = row.try_get::<Option<&str>, _>(9)?.map(|word| {
        words::read("autosizes.action", AutosizeAction::ALL, AutosizeAction::as_str, word)
    });
    let request_id: Option<RequestId> = row.try_get(12)?;
    let decision = match action.transpose()? {
        None => None,
        Some(action) => Some(AutosizeDecision {
            action,
            to: row.try_get::<Option<i64>, _>(10)?.map(Rru),
            reason: row.try_get(11)?,
            request: request_id,
        }),
    };
    let request = match request_id {
        None => None,
        Some(id) => Some(AutosizeRequest {
            id,
            state: state::read(row.try_get(13)?)?,
            state_at: row.try_get(14)?,
            answer: row.try_get(15)?,
        }),
    };
    Ok(AutosizeState {
        reservation: words::name(row, 0)?,
        autosize: autosize(row)?,
        set_by: row.try_get(6)?,
        set_at: row.try_get(7)?,
        looked_at: row.try_get(8)?,
        decision,
        request,
    })
}

impl Broker {
    /// Lets the request of a guaranteed reservation follow demand, or changes how. The next decision is due at once.
    ///
    /// # Errors
    /// [`AutosizeError`]; settings out of range are refused by the store.
    pub async fn set_autosize(
        &self,
        actor: &str,
        reservation: &str,
        autosize: &Autosize,
    ) -> Result<(), AutosizeError> {
        let doing = "setting how a request follows demand";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let held = sqlx::query(sql::OF_RESERVATION).bind(reservation).try_map(|row: PgRow| {
            let kind = words::reservation_kind("reservations.kind", row.try_get(1)?)?;
            Ok((row.try_get::<i32, _>(0)?, kind))
        });
        let held = held.fetch_optional(&mut *db).await.doing(doing)?;
        let name = || ReservationName::from(reservation);
        let (id, kind) =
            held.ok_or_else(|| AutosizeError::UnknownReservation { reservation: name() })?;
        if kind != ReservationKind::Guaranteed {
            return Err(AutosizeError::NotGuaranteed { reservation: name(), kind });
        }
        let whole = |number: u64| i32::try_from(number).unwrap_or(i32::MAX);
        let (quantile_micro, cooldown) =
            (whole(autosize.quantile_micro.into()), whole(autosize.cooldown.as_secs()));
        let set = sqlx::query(sql::SET)
            .bind(id)
            .bind(autosize.metric.as_str())
            .bind(quantile_micro)
            .bind(autosize.min.0)
            .bind(autosize.max.0)
            .bind(cooldown)
            .bind(actor);
        set.execute(db).await.doing(doing)?;
        let event = Event::AutosizeSet {
            metric: autosize.metric.as_str(),
            quantile_micro: autosize.quantile_micro,
            min_rru: autosize.min.to_f64(),
            max_rru: autosize.max.to_f64(),
            cooldown_seconds: cooldown,
        };
        change.record(reservation, event);
        change.commit().await?;
        Ok(())
    }

    /// The request of a reservation no longer follows demand, if it did; it stays as it is.
    ///
    /// # Errors
    /// [`AutosizeError`].
    pub async fn remove_autosize(
        &self,
        actor: &str,
        reservation: &str,
    ) -> Result<(), AutosizeError> {
        let doing = "a request no longer follows demand";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let removed = sqlx::query(sql::REMOVE).bind(reservation).execute(db).await.doing(doing)?;
        if removed.rows_affected() > 0 {
            change.record(reservation, Event::AutosizeRemoved {});
            change.commit().await?;
        }
        Ok(())
    }

    /// How the request of a reservation follows demand; `None`: it does not.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn autosize(&self, reservation: &str) -> Result<Option<AutosizeState>, DbError> {
        let row = sqlx::query(sql::FIND).bind(reservation).try_map(|row: PgRow| found(&row));
        row.fetch_optional(&self.pool).await.doing("reading how a request follows demand")
    }

    /// Takes a reservation on which no decision was begun for this time, the longest waiting first; `None`: there is no such
    /// reservation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn take_autosize(&self, every: Duration) -> Result<Option<AutosizeDue>, DbError> {
        let due = |row: PgRow| {
            Ok(AutosizeDue {
                reservation: words::name(&row, 0)?,
                autosize: autosize(&row)?,
                owner: words::name(&row, 6)?,
                promised: Rru(row.try_get(7)?),
                promised_at: row.try_get(8)?,
                now: row.try_get(9)?,
                refused_at: row.try_get(10)?,
            })
        };
        let taken = sqlx::query(sql::TAKE).bind(every.as_secs_f64()).try_map(due);
        taken.fetch_optional(&self.pool).await.doing("taking a request that follows demand")
    }

    /// Notes a decision, for people.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn note_autosize(
        &self,
        reservation: &str,
        decision: &AutosizeDecision,
    ) -> Result<(), DbError> {
        let noted = sqlx::query(sql::NOTE)
            .bind(reservation)
            .bind(decision.action.as_str())
            .bind(decision.to.map(|to| to.0))
            .bind(&decision.reason)
            .bind(decision.request);
        noted.execute(&self.pool).await.map(|_| ()).doing("noting how a request follows demand")
    }
}
