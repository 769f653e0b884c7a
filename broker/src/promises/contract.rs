//! Churn contracts: the share of a reservation's servers in use that may leave within a time window, and quiet
//! times in which none may.
//!
//! Contracts are stored here and enforced by the mover before a move begins. The window slides and counts open
//! moves and moves bound within it. The database tells the time in a zone.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use crate::promises::contract_terms::{Contract, QuietTime};
use chrono::{DateTime, Utc};
use decisions::admission::ContractView;
use fleet::pace::contract_allowance;
use fleet::{Name, ReservationKind, ReservationName};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::time::Duration;

pub(crate) mod sql {
    crate::statements! {
        /// Locks the reservation, if it exists.
        OF_RESERVATION = "SELECT reservation_id, kind, contract_changes FROM reservations WHERE reservation = $1 \
            FOR NO KEY UPDATE";
        /// Makes the reservation's version change.
        COUNT = "UPDATE reservations SET contract_changes = contract_changes + 1 WHERE reservation_id = $1";
        KNOWS_ZONE = "SELECT EXISTS (SELECT FROM pg_timezone_names WHERE name = $1)";
        SET = "INSERT INTO churn_contracts (reservation_id, in_use_micro, window_seconds, zone, set_by) \
            VALUES ($1, $2, $3, $4, $5) ON CONFLICT (reservation_id) DO UPDATE SET \
                in_use_micro = excluded.in_use_micro, window_seconds = excluded.window_seconds, \
                zone = excluded.zone, set_by = excluded.set_by, set_at = clock_timestamp()";
        CLEAR_QUIET = "DELETE FROM quiet_times WHERE reservation_id = $1";
        SET_QUIET = "INSERT INTO quiet_times (reservation_id, from_minute, until_minute) \
            SELECT DISTINCT $1::integer, * FROM unnest($2::integer[], $3::integer[])";
        REMOVE = "DELETE FROM churn_contracts WHERE reservation_id = $1";
        /// Moves that ended at their source took no server away.
        CONTRACTS = "SELECT r.reservation, c.in_use_micro, c.window_seconds, c.zone, c.set_by, c.set_at, \
                q.from_minutes, q.until_minutes, coalesce(q.quiet, false), r.contract_changes, \
                (SELECT count(*) FROM servers s \
                    WHERE s.current_reservation_id = c.reservation_id AND s.in_use), \
                (SELECT count(*) FROM moves m WHERE m.state = 'bound' AND m.in_use \
                    AND (NOT m.stays OR m.origin = 'reconfigure') \
                    AND m.source_reservation = r.reservation \
                    AND m.state_at > clock_timestamp() - make_interval(secs => c.window_seconds)), \
                (SELECT count(*) FROM moves m WHERE m.open AND m.state <> 'pending' AND m.in_use \
                    AND (NOT m.stays OR m.origin = 'reconfigure') \
                    AND m.source_reservation = r.reservation) \
            FROM churn_contracts c JOIN reservations r USING (reservation_id) \
            LEFT JOIN LATERAL (SELECT array_agg(t.from_minute ORDER BY t.from_minute, t.until_minute) AS from_minutes, \
                    array_agg(t.until_minute ORDER BY t.from_minute, t.until_minute) AS until_minutes, \
                    bool_or(is_quiet(clock_timestamp(), c.zone, t.from_minute, t.until_minute)) AS quiet \
                FROM quiet_times t WHERE t.reservation_id = c.reservation_id) q ON true \
            WHERE $1::text[] IS NULL OR r.reservation = ANY ($1) ORDER BY r.reservation";
    }
}

/// A contract and its present use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContractUse {
    /// The reservation.
    pub reservation: ReservationName,
    /// The contract.
    pub contract: Contract,
    /// The actor that set it.
    pub set_by: String,
    /// The time it was set.
    pub set_at: DateTime<Utc>,
    /// Whether a quiet time is on.
    pub quiet_now: bool,
    /// The reservation's servers in use, those with an open move included.
    pub in_use: u64,
    /// Servers in use that left within the window.
    pub left: u64,
    /// Servers in use with an open move away.
    pub leaving: u64,
    /// Counter of the changes of the reservation's contract.
    changes: i32,
}

/// The answer that is stored with the key of a request that sets a contract.
pub type ContractAnswer<'a> = &'a (dyn Fn(&ContractUse) -> Document + Sync);

impl ContractUse {
    /// The number of servers in use that may leave the reservation within the window.
    pub fn allowed(&self) -> u64 {
        contract_allowance(self.contract.in_use_micro, self.in_use, self.left)
    }

    /// Its version, for `If-Match`.
    pub fn version(&self) -> String {
        self.changes.to_string()
    }

    /// The contract as admission sees it.
    pub fn view(&self) -> ContractView {
        ContractView {
            reservation: self.reservation.clone(),
            in_use_micro: self.contract.in_use_micro,
            quiet_now: self.quiet_now,
            in_use: self.in_use,
            left: self.left,
        }
    }
}

impl Contract {
    /// Checks the ranges of share and window.
    fn check(&self) -> Result<(), ContractError> {
        if self.in_use_micro > 1_000_000 {
            return Err(ContractError::Share);
        }
        if !(60..=2_678_400).contains(&self.window.as_secs()) {
            return Err(ContractError::Window);
        }
        Ok(())
    }
}

/// A churn contract cannot be set or removed; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum ContractError {
    #[error("there is no reservation {reservation:?}")]
    UnknownReservation { reservation: ReservationName },
    #[error("reservation {reservation:?} is {}; guaranteed ones have contracts", kind.as_str())]
    NotGuaranteed { reservation: ReservationName, kind: ReservationKind },
    #[error("a share is at most 100 %")]
    Share,
    #[error("the window of a contract is from a minute to 31 days")]
    Window,
    #[error("Postgres knows no time zone {zone:?}; it knows names such as UTC and Europe/Berlin")]
    UnknownZone { zone: String },
    #[error("reservation {reservation:?} has no contract")]
    NoContract { reservation: ReservationName },
    #[error("the contract has changed since")]
    Stale { current: String },
    #[error("the key of this request has expired")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Sets the contract of a reservation, replacing an existing one. `seen`: only if its version is still this one.
    /// `key`: a claimed idempotency key with its answer, stored in the same transaction.
    ///
    /// # Errors
    /// [`ContractError`].
    pub async fn set_contract(
        &self,
        actor: &str,
        reservation: &str,
        contract: &Contract,
        seen: Option<&str>,
        key: Option<(KeyClaim, ContractAnswer<'_>)>,
    ) -> Result<ContractUse, ContractError> {
        let doing = "setting a churn contract";
        let name = || Name::from(reservation);
        contract.check()?;
        if reservation.contains('\0') {
            return Err(ContractError::UnknownReservation { reservation: name().into() });
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let found = hold(change.connection(), reservation).await.doing(doing)?;
        let held = found
            .ok_or_else(|| ContractError::UnknownReservation { reservation: name().into() })?;
        let kind = held.kind;
        if kind != ReservationKind::Guaranteed {
            return Err(ContractError::NotGuaranteed { reservation: name().into(), kind });
        }
        held.check(seen)?;
        put(&mut change, actor, held.id, reservation, Some(contract)).await?;
        let db = change.connection();
        let only = Some(vec![reservation.to_owned()]);
        let read =
            sqlx::query(sql::CONTRACTS).bind(only).try_map(|row: PgRow| self::contract(&row));
        let set = read.fetch_one(&mut *db).await.doing(doing)?;
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&set)).await?
        {
            return Err(ContractError::KeyLost);
        }
        change.commit().await?;
        Ok(set)
    }

    /// Whether Postgres knows a time zone of this name.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn knows_zone(&self, zone: &str) -> Result<bool, DbError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        knows_zone(&mut db, zone).await
    }

    /// Removes the contract of a reservation, with the conditions of [`Broker::set_contract`].
    ///
    /// # Errors
    /// [`ContractError`].
    pub async fn remove_contract(
        &self,
        actor: &str,
        reservation: &str,
        seen: Option<&str>,
        key: Option<(KeyClaim, &Document)>,
    ) -> Result<Seq, ContractError> {
        let none = || ContractError::NoContract { reservation: reservation.into() };
        if reservation.contains('\0') {
            return Err(none());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let found = hold(change.connection(), reservation).await;
        let held = found.doing("removing a churn contract")?.ok_or_else(none)?;
        held.check(seen)?;
        if !remove(&mut change, held.id, reservation).await? {
            return Err(none());
        }
        if let Some((claim, answer)) = key
            && !idempotency::answer(change.connection(), claim, answer).await?
        {
            return Err(ContractError::KeyLost);
        }
        Ok(change.commit().await?)
    }

    /// The contracts by reservation, with their present use; `of`: only those of these reservations, because
    /// each costs a count of servers.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn contracts(
        &self,
        of: Option<&[ReservationName]>,
    ) -> Result<Vec<ContractUse>, DbError> {
        let of = of.map(|of| of.iter().map(ToString::to_string).collect::<Vec<_>>());
        let rows = sqlx::query(sql::CONTRACTS).bind(of).try_map(|row: PgRow| contract(&row));
        rows.fetch_all(&self.pool).await.doing("reading churn contracts")
    }
}

async fn knows_zone(db: &mut PgConnection, zone: &str) -> Result<bool, DbError> {
    // A name with a zero character cannot be sent.
    if zone.contains('\0') {
        return Ok(false);
    }
    let known = sqlx::query_scalar(sql::KNOWS_ZONE).bind(zone).fetch_one(db).await;
    known.doing("looking for a time zone")
}

/// A locked reservation.
struct Held {
    id: i32,
    kind: ReservationKind,
    /// Counter of the changes of its contract.
    changes: i32,
}

impl Held {
    /// Checks that the version is still this one.
    fn check(&self, seen: Option<&str>) -> Result<(), ContractError> {
        let current = self.changes.to_string();
        if seen.is_none_or(|seen| seen == current) {
            return Ok(());
        }
        Err(ContractError::Stale { current })
    }
}

/// Locks a reservation.
async fn hold(db: &mut PgConnection, reservation: &str) -> Result<Option<Held>, sqlx::Error> {
    let held = sqlx::query(sql::OF_RESERVATION).bind(reservation).try_map(|row: PgRow| {
        let kind = words::reservation_kind("reservations.kind", row.try_get(1)?)?;
        Ok(Held { id: row.try_get(0)?, kind, changes: row.try_get(2)? })
    });
    held.fetch_optional(db).await
}

/// Removes the contract of a locked reservation; false: it has none.
async fn remove(change: &mut AuditedTx, id: i32, reservation: &str) -> Result<bool, DbError> {
    let doing = "removing a churn contract";
    let db = change.connection();
    let removed = sqlx::query(sql::REMOVE).bind(id).execute(&mut *db).await.doing(doing)?;
    if removed.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query(sql::COUNT).bind(id).execute(db).await.doing(doing)?;
    change.record(reservation, Event::ContractRemoved {});
    Ok(true)
}

/// Sets or removes the contract of a locked reservation, within a change.
pub(crate) async fn put(
    change: &mut AuditedTx,
    actor: &str,
    id: i32,
    reservation: &str,
    contract: Option<&Contract>,
) -> Result<(), ContractError> {
    let doing = "setting a churn contract";
    let Some(contract) = contract else {
        remove(change, id, reservation).await?;
        return Ok(());
    };
    let db = change.connection();
    contract.check()?;
    let Contract { in_use_micro, window, quiet, zone } = contract;
    if !knows_zone(db, zone).await? {
        return Err(ContractError::UnknownZone { zone: zone.clone() });
    }
    let window = i32::try_from(window.as_secs()).unwrap_or(i32::MAX);
    let micro = i32::try_from(*in_use_micro).unwrap_or(i32::MAX);
    let set = sqlx::query(sql::SET).bind(id).bind(micro).bind(window).bind(zone).bind(actor);
    set.execute(&mut *db).await.doing(doing)?;
    sqlx::query(sql::CLEAR_QUIET).bind(id).execute(&mut *db).await.doing(doing)?;
    let minutes = |of: fn(&QuietTime) -> u16| -> Vec<i32> {
        quiet.iter().map(|quiet| i32::from(of(quiet))).collect()
    };
    let times = sqlx::query(sql::SET_QUIET).bind(id);
    let times =
        times.bind(minutes(|quiet| quiet.minutes().0)).bind(minutes(|quiet| quiet.minutes().1));
    times.execute(&mut *db).await.doing(doing)?;
    sqlx::query(sql::COUNT).bind(id).execute(&mut *db).await.doing(doing)?;
    let event = Event::ContractSet {
        in_use_micro: *in_use_micro,
        window_seconds: window,
        zone,
        quiet: quiet.iter().map(ToString::to_string).collect(),
    };
    change.record(reservation, event);
    Ok(())
}

fn contract(row: &PgRow) -> Result<ContractUse, sqlx::Error> {
    let count =
        |column: usize| row.try_get::<i64, _>(column).map(|n| u64::try_from(n).unwrap_or(0));
    let minutes = |column: usize| -> Result<Vec<u16>, sqlx::Error> {
        let minutes: Option<Vec<i32>> = row.try_get(column)?;
        let minutes = minutes.into_iter().flatten().filter_map(|minute| u16::try_from(minute).ok());
        Ok(minutes.collect())
    };
    let whole = |column: usize| {
        row.try_get::<i32, _>(column).map(|number| u32::try_from(number).unwrap_or(0))
    };
    let (from, until) = (minutes(6)?, minutes(7)?);
    Ok(ContractUse {
        reservation: row.try_get::<&str, _>(0)?.into(),
        contract: Contract {
            in_use_micro: whole(1)?,
            window: Duration::from_secs(whole(2)?.into()),
            quiet: from.into_iter().zip(until).filter_map(|(a, b)| QuietTime::new(a, b)).collect(),
            zone: row.try_get(3)?,
        },
        set_by: row.try_get(4)?,
        set_at: row.try_get(5)?,
        quiet_now: row.try_get(8)?,
        changes: row.try_get(9)?,
        in_use: count(10)?,
        left: count(11)?,
        leaving: count(12)?,
    })
}

#[cfg(test)]
mod tests {
    use super::QuietTime;

    #[test]
    fn quiet_times_are_parsed_and_shown() {
        let shown = |from, until| QuietTime::new(from, until).map(|quiet| quiet.to_string());
        assert_eq!(shown(480, 1_080).as_deref(), Some("08:00-18:00"));
        assert_eq!(shown(1_320, 360).as_deref(), Some("22:00-06:00"));
        assert_eq!(shown(1_320, 0).as_deref(), Some("22:00-24:00"));
        assert_eq!(shown(0, 1_440).as_deref(), Some("00:00-24:00"));
        assert_eq!(shown(480, 480), None);
        assert_eq!(shown(480, 1_441), None);
    }
}
