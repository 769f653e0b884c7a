//! What is promised to reservations, as their owners see it: one, or a page of them.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::RequestId;
use crate::infra::state::{self, RequestState};
use crate::infra::words;
use crate::moves::rollout::Rollout;
use crate::promises::contract::Contract;
use crate::promises::terms::Valued;
use crate::requests::request::Labels;
use crate::requests::submit::version;
use chrono::{DateTime, Utc};
use fleet::{Name, ReplicaRule, ReservationKind, Rru};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use std::collections::HashMap;
use std::sync::Arc;

/// The most reservations of one page: a thousand, and one more that says whether there is another.
pub const CARDS_PAGE_MAX: u32 = 1_001;

/// What is promised to reservations that fulfil a condition, without what their promises value.
macro_rules! cards {
    ($where:literal) => {
        concat!(
            "SELECT r.reservation, r.kind, p.owner, p.capacity_micro, p.msb_buffer, p.priority, \
                    p.msb_alpha, p.rack_alpha, p.affinity_theta, p.host_profile, p.version, p.promised_at, \
                    r.labels, r.promise_id, \
                    coalesce((SELECT sum(q.version) FROM capacity_requests q \
                        WHERE q.reservation = r.reservation), 0)::bigint + r.contract_changes, \
                    o.request_id, o.state, f.request_id, f.state, f.asked_micro, f.ends_at, \
                    (SELECT jsonb_build_object('in_use_micro', c.in_use_micro, \
                        'window_seconds', c.window_seconds, 'zone', c.zone, 'quiet', coalesce( \
                            (SELECT jsonb_agg(jsonb_build_array(t.from_minute, t.until_minute) \
                                ORDER BY t.from_minute, t.until_minute) \
                            FROM quiet_times t WHERE t.reservation_id = r.reservation_id), '[]')) \
                        FROM churn_contracts c WHERE c.reservation_id = r.reservation_id), f.change = 'remove', \
                    (SELECT jsonb_build_object('servers', w.servers, \
                        'outdated', (SELECT count(*) FROM outdated_profiles k JOIN servers s USING (server_id) \
                            WHERE k.reservation_id = w.reservation_id \
                                AND s.current_reservation_id = w.reservation_id), \
                        'refused', (SELECT count(*) FROM outdated_profiles k JOIN servers s USING (server_id) \
                            WHERE k.reservation_id = w.reservation_id AND k.refused IS NOT NULL \
                                AND s.current_reservation_id = w.reservation_id), \
                        'paused', CASE WHEN w.paused_by IS NOT NULL THEN \
                            jsonb_build_object('by', w.paused_by, 'why', w.paused_why) END) \
                        FROM rollouts w WHERE w.reservation_id = r.reservation_id), \
                    p.replicas, p.replicas_per_msb \
                FROM reservations r JOIN promises p USING (promise_id) \
                LEFT JOIN capacity_requests o ON o.reservation = r.reservation AND o.open \
                LEFT JOIN capacity_requests f ON f.reservation = r.reservation AND f.in_force ",
            $where,
            " AND ($3::text IS NULL OR p.owner = $3) AND ($4::text IS NULL OR r.kind = $4) \
                AND r.labels @> $5 ORDER BY r.reservation LIMIT $6"
        )
    };
}

use cards;

pub(crate) mod sql {
    crate::statements! {
        /// One, by name: asked for much more often than all else.
        CARD = super::cards!("WHERE r.reservation = $1 AND $2 = ''");
        CARDS = super::cards!("WHERE $1::text IS NULL AND r.reservation > $2");
    }
}

/// What is promised to a reservation, and what is asked about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationCard {
    /// Its name.
    pub reservation: Name,
    /// What it is for.
    pub kind: ReservationKind,
    /// Whose it is.
    pub owner: Name,
    /// C; of a shared buffer, servers.
    pub capacity: Rru,
    /// Whether that must survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// 0 is the most important.
    pub priority: i32,
    /// Own alpha^F.
    pub msb_alpha: Option<f64>,
    /// Own alpha^K.
    pub rack_alpha: Option<f64>,
    /// Own theta.
    pub affinity_theta: Option<f64>,
    /// OS configuration wanted on its servers.
    pub host_profile: Option<Name>,
    /// How much of it one MSB may hold, if that is limited.
    pub replica_rule: Option<ReplicaRule>,
    /// V and A.
    pub valued: Arc<Valued>,
    /// The version of the promise.
    pub promise_version: i32,
    /// When that was made.
    pub promised_at: DateTime<Utc>,
    /// What its owner calls it by.
    pub labels: Labels,
    /// What it agreed to be disturbed.
    pub contract: Option<Contract>,
    /// Changes with everything above that an owner or a decision on what was asked changed.
    pub version: String,
    /// The request that waits for its answer.
    pub open: Option<(RequestId, RequestState)>,
    /// The request it is promised by; `None`: it was loaded from a snapshot.
    pub in_force: Option<InForce>,
    /// The last change of its host profile; `None`: it never changed.
    pub rollout: Option<Rollout>,
}

/// The request that a reservation is promised by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Its id.
    pub request: RequestId,
    /// How the reservation stands, as it was noted last.
    pub state: RequestState,
    /// The capacity that was asked for, if it was named.
    pub asked: Option<Rru>,
    /// When the reservation ends; `None`: when somebody says so.
    pub ends_at: Option<DateTime<Utc>>,
    /// Whether it is on its way out.
    pub removes: bool,
}

/// Which reservations are listed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CardFilter {
    /// Of one owner.
    pub owner: Option<String>,
    /// Of one kind.
    pub kind: Option<ReservationKind>,
    /// With all of these labels.
    pub labels: Labels,
}

impl Broker {
    /// What is promised to one reservation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_card(&self, name: &str) -> Result<Option<ReservationCard>, DbError> {
        if name.contains('\0') {
            return Ok(None);
        }
        Ok(self.cards(Some(name), &CardFilter::default(), "", 1).await?.pop())
    }

    /// What is promised to reservations, by name: those after `after`, at most `limit` and at most
    /// [`CARDS_PAGE_MAX`].
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_cards(
        &self,
        filter: &CardFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ReservationCard>, DbError> {
        self.cards(None, filter, after, limit).await
    }

    async fn cards(
        &self,
        name: Option<&str>,
        filter: &CardFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ReservationCard>, DbError> {
        let doing = "reading what is promised";
        let rows = sqlx::query(if name.is_some() { sql::CARD } else { sql::CARDS })
            .bind(name)
            .bind(after)
            .bind(&filter.owner)
            .bind(filter.kind.map(ReservationKind::as_str))
            .bind(Json(&filter.labels))
            .bind(i64::from(limit.min(CARDS_PAGE_MAX)))
            .fetch_all(&self.pool);
        let rows = rows.await.doing(doing)?;
        let promises: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(13)).collect();
        let valued = self.valued.of(&self.pool, &promises.doing(doing)?).await.doing(doing)?;
        rows.iter().map(|row| card(row, &valued)).collect::<Result<_, _>>().doing(doing)
    }
}

fn card(row: &PgRow, all: &HashMap<i64, Arc<Valued>>) -> Result<ReservationCard, sqlx::Error> {
    let kind = words::reservation_kind("reservations.kind", row.try_get(1)?)?;
    let promise_version: i32 = row.try_get(10)?;
    let Json(labels) = row.try_get(12)?;
    let valued = all.get(&row.try_get(13)?).cloned().unwrap_or_default();
    let state = |column: usize| -> Result<Option<RequestState>, sqlx::Error> {
        row.try_get::<Option<&str>, _>(column)?.map(state::read).transpose()
    };
    let in_force = match (row.try_get(17)?, state(18)?) {
        (Some(request), Some(state)) => Some(InForce {
            request,
            state,
            asked: row.try_get::<Option<i64>, _>(19)?.map(Rru),
            ends_at: row.try_get(20)?,
            removes: row.try_get(22)?,
        }),
        _ => None,
    };
    Ok(ReservationCard {
        reservation: row.try_get::<&str, _>(0)?.into(),
        kind,
        owner: row.try_get::<&str, _>(2)?.into(),
        capacity: Rru(row.try_get(3)?),
        msb_buffer: row.try_get(4)?,
        priority: row.try_get(5)?,
        msb_alpha: row.try_get(6)?,
        rack_alpha: row.try_get(7)?,
        affinity_theta: row.try_get(8)?,
        host_profile: row.try_get::<Option<&str>, _>(9)?.map(Name::from),
        replica_rule: crate::promises::promise::replica_rule(row.try_get(24)?, row.try_get(25)?),
        valued,
        promise_version,
        promised_at: row.try_get(11)?,
        labels,
        contract: row.try_get::<Option<Json<Contract>>, _>(21)?.map(|Json(contract)| contract),
        version: version(Some(promise_version), row.try_get(14)?),
        open: Option::zip(row.try_get(15)?, state(16)?),
        in_force,
        rollout: row.try_get::<Option<Json<Rollout>>, _>(23)?.map(|Json(rollout)| rollout),
    })
}
