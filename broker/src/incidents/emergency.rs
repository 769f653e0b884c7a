//! Emergencies: capacity that a reservation needs at once (RAS section 5.4).
//!
//! Any caller with the role may ask. The active mover grants within seconds, as it replaces servers, with or
//! without a solver. A grant raises the promise, so the next solve keeps it and restores its spread and buffer;
//! until then these are a debt.

use crate::incidents::emergency_refusal::EmergencyRefusal;
use crate::incidents::replacement;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::EmergencyId;
use crate::infra::state::{self, EmergencyState, State};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{EmergencyAnswer, Event};
use crate::log::trail::TargetVersion;
use crate::moves::lifecycle;
use crate::moves::mover::{Epoch, MoverError, check_fence_at_head};
use crate::promises::{promise, quota, survives};
use crate::topology::places::Topology;
use chrono::{DateTime, Utc};
use decisions::emergency::{Picks, Stock, StockGroup, exceeds_promise, takable_of_buffer};
use fleet::{ReservationKind, ReservationName, Rru};
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        ASK = "INSERT INTO emergencies (emergency_id, reservation, asked_micro, why, asked_by, state, max_servers, \
                beyond_limits) \
            VALUES ($1, $2, $3, $4, $5, 'asked', $6, $7)";
        ANY = "SELECT EXISTS (SELECT FROM emergencies WHERE state = 'asked')";
        /// The next request: of the most important reservation, then the oldest.
        ASKED = "SELECT e.emergency_id, e.reservation, e.asked_micro, e.max_servers, e.beyond_limits FROM emergencies e \
            LEFT JOIN reservations r ON r.reservation = e.reservation \
            LEFT JOIN promises p ON p.promise_id = r.promise_id WHERE e.state = 'asked' \
            ORDER BY p.priority NULLS LAST, e.asked_at, e.emergency_id LIMIT 1 FOR UPDATE OF e";
        /// Free servers and those of shared buffers, of the types that a waiting reservation can use. $2: the partitions that
        /// it survives.
        STOCK = "SELECT m.msb::text, h.hardware_type::text, s.current_reservation_id IS NOT NULL, \
                CASE WHEN $2::text[] = '{}' THEN '{}'::text[] ELSE domains_of(s.server_id, $2) END, \
                array_agg(s.server::text ORDER BY s.loan_reservation_id IS NOT NULL, s.server) \
            FROM servers s JOIN racks k USING (rack_id) JOIN msbs m USING (msb_id) \
            JOIN hardware_types h USING (hardware_type_id) \
            LEFT JOIN reservations r ON r.reservation_id = s.current_reservation_id \
            WHERE (s.current_reservation_id IS NULL OR r.kind = 'shared_buffer') AND NOT s.target_pending \
                AND h.hardware_type = ANY ($1) \
                AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u = s.server_id) \
                AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = s.server_id) \
                AND NOT EXISTS (SELECT FROM moves o WHERE o.open AND o.server_id = s.server_id) \
                AND NOT EXISTS (SELECT FROM outages o WHERE o.msb_id = k.msb_id AND o.ended_at IS NULL) \
            GROUP BY 1, 2, 3, 4 ORDER BY 1, 2, 3, 4";
        /// Those of the chosen servers that nothing else has taken since they were read.
        TAKE = "UPDATE servers s SET target_pending = true, target_reservation_id = r.reservation_id, \
                target_version = $3, target_origin = 'emergency' \
            FROM reservations r WHERE r.reservation = $1 AND s.server = ANY ($2) AND NOT s.target_pending \
                AND (s.current_reservation_id IS NULL OR EXISTS (SELECT FROM reservations b \
                    WHERE b.reservation_id = s.current_reservation_id AND b.kind = 'shared_buffer')) \
                AND NOT EXISTS (SELECT FROM servers_out_of_use(true) AS u WHERE u = s.server_id) \
                AND NOT EXISTS (SELECT FROM cordoned_servers c WHERE c.server_id = s.server_id) \
                AND NOT EXISTS (SELECT FROM moves o WHERE o.open AND o.server_id = s.server_id) \
            RETURNING s.server::text";
        /// What the emergencies of a reservation were granted and have not given back.
        OPEN = "SELECT coalesce(sum(granted_micro), 0)::bigint FROM emergencies \
            WHERE reservation = $1 AND state = 'granted'";
        OWNED_BY_BUFFERS = "SELECT r.reservation, count(*) FROM servers s \
            JOIN reservations r ON r.reservation_id = s.current_reservation_id \
            WHERE r.kind = 'shared_buffer' GROUP BY 1";
        GRANT = "UPDATE emergencies SET state = 'granted', granted_micro = $2, \
            granted_at = clock_timestamp(), servers = $3, from_shared = $4 WHERE emergency_id = $1";
        REFUSE = "UPDATE emergencies SET state = 'refused', refusal = $2 WHERE emergency_id = $1";
        FIND = "SELECT reservation, state, granted_micro FROM emergencies WHERE emergency_id = $1 FOR UPDATE";
        END = "UPDATE emergencies SET state = $2 WHERE emergency_id = $1";
        LISTED = "SELECT e.emergency_id, e.reservation, e.asked_micro, e.why, e.asked_by::text, e.asked_at, \
                e.state, e.granted_micro, e.granted_at, e.servers, e.from_shared, e.refusal, \
                e.state = 'granted' AND e.granted_at > coalesce((SELECT max(v.started_at) FROM solves v \
                    WHERE v.state = 'published'), '-infinity'), e.max_servers, e.beyond_limits \
            FROM emergencies e WHERE $1::uuid IS NULL OR e.emergency_id = $1 \
            ORDER BY e.asked_at DESC, e.emergency_id DESC LIMIT $2";
    }
}

/// A request for emergency capacity.
#[derive(Clone, Debug, PartialEq)]
pub struct Emergency {
    /// Its id.
    pub id: EmergencyId,
    /// Who needs it.
    pub reservation: ReservationName,
    /// The requested additional capacity.
    pub asked: Rru,
    /// The stated reason.
    pub why: String,
    /// The actor that asked.
    pub asked_by: String,
    /// The time of the request.
    pub asked_at: DateTime<Utc>,
    /// The request's state.
    pub state: EmergencyState,
    /// The grant.
    pub granted: Option<Grant>,
    /// The reason why nothing was granted.
    pub refusal: Option<EmergencyRefusal>,
    /// Whether no solve has restored spread and buffer yet.
    pub debt: bool,
    /// The most servers that it may take; `None`: requested before there was such a limit.
    pub max_servers: Option<u32>,
    /// Whether the limits of emergencies and quotas do not apply to it.
    pub beyond_limits: bool,
}

/// A request for emergency capacity to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct EmergencyRequest<'a> {
    /// Its id, which makes retries safe.
    pub id: EmergencyId,
    /// Who needs it.
    pub reservation: &'a str,
    /// The requested additional capacity.
    pub amount: Rru,
    /// The stated reason.
    pub why: &'a str,
    /// The most servers that it may take.
    pub max_servers: u32,
    /// Whether the limits of emergencies and quotas do not apply.
    pub beyond_limits: bool,
}

/// A grant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grant {
    /// The granted capacity.
    pub amount: Rru,
    /// The time of the grant.
    pub at: DateTime<Utc>,
    /// The number of servers.
    pub servers: i32,
    /// The number of these from shared buffers.
    pub from_shared: i32,
}

/// An emergency cannot be requested or ended; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum EmergencyError {
    #[error("an emergency needs a reason, for those who wonder later")]
    NoReason,
    #[error("an emergency is for more than 0 and at most 1e9 RRU")]
    Amount,
    #[error("an emergency takes at least 1 and at most 2147483647 servers")]
    MaxServers,
    #[error("there is no emergency {id}")]
    Unknown { id: EmergencyId },
    #[error("emergency {id} is {} already", state.as_str())]
    Over { id: EmergencyId, state: EmergencyState },
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Requests emergency capacity. A mover answers it within seconds; read the answer from
    /// [`Broker::emergency`]. Repeating the call with the same id changes nothing.
    ///
    /// # Errors
    /// [`EmergencyError`].
    pub async fn ask_emergency(
        &self,
        actor: &str,
        request: &EmergencyRequest<'_>,
    ) -> Result<(), EmergencyError> {
        let EmergencyRequest { id, reservation, amount, why, max_servers, beyond_limits } =
            *request;
        if why.trim().is_empty() || why.contains('\0') {
            return Err(EmergencyError::NoReason);
        }
        if amount <= Rru::ZERO || amount.to_f64() > fleet::RRU_MAX {
            return Err(EmergencyError::Amount);
        }
        let most = i32::try_from(max_servers).ok().filter(|most| *most > 0);
        let most = most.ok_or(EmergencyError::MaxServers)?;
        if self.emergency(id).await?.is_some() {
            return Ok(());
        }
        let mut change = AuditedTx::begin(self, actor).await?;
        let asked =
            sqlx::query(sql::ASK).bind(id).bind(reservation).bind(amount.0).bind(why).bind(actor);
        let asked = asked.bind(most).bind(beyond_limits);
        asked.execute(change.connection()).await.doing("asking for capacity at once")?;
        let (emergency, rru) = (id, amount.to_f64());
        change.record(
            reservation,
            Event::EmergencyAsked { emergency, rru, why, max_servers, beyond_limits },
        );
        change.commit().await?;
        Ok(())
    }

    /// Answers waiting requests one by one with a pure function: servers get their targets, and the promise
    /// grows by their worth. Returns the number of answers.
    ///
    /// # Errors
    /// [`MoverError`].
    pub async fn grant_emergencies(
        &self,
        actor: &str,
        epoch: Epoch,
        mut choose: impl FnMut(&Stock) -> Picks,
    ) -> Result<usize, MoverError> {
        let doing = "granting capacity at once";
        let mut answered = 0;
        while sqlx::query_scalar(sql::ANY).fetch_one(&self.pool).await.doing(doing)? {
            let mut change = AuditedTx::begin(self, actor).await?;
            let db = change.connection();
            let head = check_fence_at_head(db, epoch).await?;
            let asked: Option<(EmergencyId, String, i64, Option<i32>, bool)> =
                sqlx::query_as(sql::ASKED).fetch_optional(&mut *db).await.doing(doing)?;
            let Some((id, reservation, amount, most, beyond_limits)) = asked else {
                change.abandon().await?;
                break;
            };
            answered += 1;
            let name = ReservationName::from(reservation.as_str());
            let stock = stock(db, &name, Rru(amount), beyond_limits).await?.map(|stock| Stock {
                most: most.map(|most| u64::from(most.unsigned_abs())),
                ..stock
            });
            let answer = answer(db, stock, head, &mut choose);
            let answer = match answer.await? {
                Ok(taken) => {
                    grant(db, id, &taken).await.doing(doing)?;
                    let Taken { amount, servers, from_shared, exceeds } = taken;
                    let rru = amount.to_f64();
                    EmergencyAnswer::Granted { rru, servers, from_shared, exceeds }
                }
                Err(refusal) => {
                    let refused = sqlx::query(sql::REFUSE).bind(id).bind(refusal.as_str());
                    refused.execute(db).await.doing(doing)?;
                    EmergencyAnswer::Refused { refused: refusal, servers: [] }
                }
            };
            change.record(&reservation, Event::EmergencyGranted { emergency: id, answer });
            change.commit().await?;
        }
        Ok(answered)
    }

    /// Ends an emergency: the promise shrinks by the grant, and the next solve takes the surplus. An unanswered
    /// request is cancelled.
    ///
    /// # Errors
    /// [`EmergencyError`].
    pub async fn end_emergency(&self, actor: &str, id: EmergencyId) -> Result<(), EmergencyError> {
        let doing = "ending an emergency";
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        lifecycle::hold_head(db).await?;
        let found: Option<(String, String, Option<i64>)> =
            sqlx::query_as(sql::FIND).bind(id).fetch_optional(&mut *db).await.doing(doing)?;
        let (reservation, word, granted) = found.ok_or(EmergencyError::Unknown { id })?;
        let state: EmergencyState = state::read(&word).doing(doing)?;
        let next = match state {
            EmergencyState::Asked => EmergencyState::Cancelled,
            EmergencyState::Granted => EmergencyState::Ended,
            over => return Err(EmergencyError::Over { id, state: over }),
        };
        if let Some(granted) = granted {
            raise(db, &(*reservation).into(), Rru(-granted)).await?;
        }
        let ended = sqlx::query(sql::END).bind(id).bind(next.as_str());
        ended.execute(db).await.doing(doing)?;
        change.record(&reservation, Event::EmergencyEnded { emergency: id, state: next });
        change.commit().await?;
        Ok(())
    }

    /// Reads an emergency.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn emergency(&self, id: EmergencyId) -> Result<Option<Emergency>, DbError> {
        Ok(self.list_emergencies(Some(id), 1).await?.pop())
    }

    /// Lists emergencies, newest first.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn emergencies(&self, limit: u32) -> Result<Vec<Emergency>, DbError> {
        self.list_emergencies(None, limit).await
    }

    /// The servers an emergency would be granted from, or the reason for a refusal. Changes nothing. With
    /// `beyond_limits`, the limits of emergencies and quotas do not apply.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn emergency_stock(
        &self,
        reservation: &str,
        asked: Rru,
        beyond_limits: bool,
    ) -> Result<Result<Stock, EmergencyRefusal>, DbError> {
        let doing = "looking what can be granted at once";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let found = stock(&mut tx, &reservation.into(), asked, beyond_limits).await?;
        tx.commit().await.doing(doing)?;
        Ok(found)
    }

    async fn list_emergencies(
        &self,
        id: Option<EmergencyId>,
        limit: u32,
    ) -> Result<Vec<Emergency>, DbError> {
        let rows = sqlx::query(sql::LISTED).bind(id).bind(i64::from(limit));
        let rows = rows.try_map(|row: PgRow| listed(&row)).fetch_all(&self.pool);
        rows.await.doing("listing emergencies")
    }
}

/// Servers taken for an emergency.
struct Taken {
    amount: Rru,
    servers: Vec<String>,
    from_shared: u64,
    /// The limits of policies that they exceed.
    exceeds: Vec<String>,
}

/// The servers that can be granted.
async fn stock(
    db: &mut PgConnection,
    reservation: &ReservationName,
    asked: Rru,
    beyond_limits: bool,
) -> Result<Result<Stock, EmergencyRefusal>, DbError> {
    let doing = "looking what can be granted at once";
    let topology = Topology::read(db).await?;
    let (_, promises) = promise::read(db, &topology).await?;
    let Some(promise) = promises.get(&**reservation) else {
        return Ok(Err(EmergencyRefusal::NoSuchReservation));
    };
    if promise.kind != ReservationKind::Guaranteed {
        return Ok(Err(EmergencyRefusal::NotGuaranteed));
    }
    let mut shared_most = BTreeMap::new();
    if !beyond_limits {
        let open = sqlx::query_scalar(sql::OPEN).bind(reservation.as_ref()).fetch_one(&mut *db);
        let open = Rru(open.await.doing(doing)?);
        if exceeds_promise((promise.capacity() - open).or_zero(), open, asked) {
            return Ok(Err(EmergencyRefusal::OverPromise));
        }
        let quotas = quota::read(db, Some(promise.owner())).await?;
        if quotas.iter().any(|of| of.would_exceed(reservation, asked)) {
            return Ok(Err(EmergencyRefusal::OverQuota));
        }
        let owned = sqlx::query_as(sql::OWNED_BY_BUFFERS).fetch_all(&mut *db).await.doing(doing)?;
        let owned: BTreeMap<String, i64> = owned.into_iter().collect();
        let buffers = promises.iter().filter_map(|(name, of)| Some((name, of, of.buffer_type()?)));
        shared_most.extend(buffers.map(|(name, of, ty)| {
            let owned = owned.get(name.as_ref()).copied().unwrap_or_default().unsigned_abs();
            (ty.clone(), takable_of_buffer(of.capacity(), owned))
        }));
    }
    let types: Vec<&str> = promise.rru.iter().map(|(ty, _)| ty.as_ref()).collect();
    let worth = replacement::worth(db, &BTreeSet::from([reservation])).await.doing(doing)?;
    let partitions: Vec<String> = worth.partitions().iter().map(ToString::to_string).collect();
    let groups = sqlx::query(sql::STOCK)
        .bind(types)
        .bind(partitions)
        .try_map(|row: PgRow| {
            Ok(StockGroup {
                msb: row.try_get::<&str, _>(0)?.into(),
                hardware_type: row.try_get::<&str, _>(1)?.into(),
                shared: row.try_get(2)?,
                domains: survives::domains(&row, 3)?,
                servers: row.try_get::<Vec<String>, _>(4)?.into_iter().map(Into::into).collect(),
            })
        })
        .fetch_all(&mut *db)
        .await
        .doing(doing)?;
    let reservation = reservation.clone();
    Ok(Ok(Stock { reservation, asked, groups, most: None, shared_most, worth }))
}

async fn answer(
    db: &mut PgConnection,
    stock: Result<Stock, EmergencyRefusal>,
    head: TargetVersion,
    choose: &mut impl FnMut(&Stock) -> Picks,
) -> Result<Result<Taken, EmergencyRefusal>, DbError> {
    let doing = "choosing servers at once";
    let stock = match stock {
        Ok(stock) => stock,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let reservation = &stock.reservation;
    let Picks { mut groups, exceeds } = choose(&stock);
    let names: Vec<&str> =
        groups.iter().flat_map(|group| &group.servers).map(|name| name.as_ref()).collect();
    let servers: Vec<String> = sqlx::query_scalar(sql::TAKE)
        .bind(reservation.as_ref())
        .bind(names)
        .bind(head.0)
        .fetch_all(&mut *db)
        .await
        .doing(doing)?;
    if servers.is_empty() {
        return Ok(Err(EmergencyRefusal::NothingFits));
    }
    let taken: BTreeSet<&str> = servers.iter().map(String::as_str).collect();
    groups.iter_mut().for_each(|group| group.servers.retain(|name| taken.contains(&**name)));
    let of = |group: &StockGroup| {
        let key = (reservation.clone(), group.hardware_type.clone());
        stock.worth.values.get(&key).copied().unwrap_or_default().times(group.servers.len())
    };
    let amount: Rru = groups.iter().map(of).sum();
    let shared = groups.iter().filter(|group| group.shared);
    let from_shared = shared.map(|group| group.servers.len() as u64).sum();
    // The promise grows by the requested capacity, not by the worth of whole servers: a solve returns the
    // surplus.
    let amount = amount.min(stock.asked);
    raise(db, reservation, amount).await?;
    Ok(Ok(Taken { amount, servers, from_shared, exceeds }))
}

/// Adds a version of the promise with the capacity changed by `more`.
async fn raise(
    db: &mut PgConnection,
    reservation: &ReservationName,
    more: Rru,
) -> Result<(), DbError> {
    let topology = Topology::read(db).await?;
    let (_, promises) = promise::read(db, &topology).await?;
    // A reservation that is gone has no promise any more.
    let Some(promise) = promises.get(reservation) else { return Ok(()) };
    promise::add(db, &topology, &[(reservation, &promise.with_more(more))]).await
}

async fn grant(db: &mut PgConnection, id: EmergencyId, taken: &Taken) -> Result<(), sqlx::Error> {
    let granted = sqlx::query(sql::GRANT)
        .bind(id)
        .bind(taken.amount.0)
        .bind(i32::try_from(taken.servers.len()).unwrap_or(i32::MAX))
        .bind(i32::try_from(taken.from_shared).unwrap_or(i32::MAX));
    granted.execute(db).await.map(|_| ())
}

fn listed(row: &PgRow) -> Result<Emergency, sqlx::Error> {
    let amount: Option<i64> = row.try_get(7)?;
    let granted = match (amount, row.try_get(8)?, row.try_get(9)?, row.try_get(10)?) {
        (Some(amount), Some(at), Some(servers), Some(from_shared)) => {
            Some(Grant { amount: Rru(amount), at, servers, from_shared })
        }
        _ => None,
    };
    let word: Option<&str> = row.try_get(11)?;
    Ok(Emergency {
        id: row.try_get(0)?,
        reservation: row.try_get::<&str, _>(1)?.into(),
        asked: Rru(row.try_get(2)?),
        why: row.try_get(3)?,
        asked_by: row.try_get(4)?,
        asked_at: row.try_get(5)?,
        state: state::read(row.try_get(6)?)?,
        granted,
        refusal: EmergencyRefusal::ALL.into_iter().find(|refusal| Some(refusal.as_str()) == word),
        debt: row.try_get(12)?,
        max_servers: row.try_get::<Option<i32>, _>(13)?.map(i32::unsigned_abs),
        beyond_limits: row.try_get(14)?,
    })
}
