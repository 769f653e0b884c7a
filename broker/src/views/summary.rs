//! Summaries of reservations: the promise, the open request and the request in force.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::RequestId;
use crate::infra::state::{self, RequestState};
use crate::infra::words;
use crate::moves::rollout::Rollout;
use crate::promises::contract_terms::Contract;
use crate::promises::terms::PromiseTerms;
use crate::requests::request::Labels;
use crate::requests::submit::version;
use chrono::{DateTime, Utc};
use fleet::{Name, OwnerName, ReplicaRule, ReservationKind, ReservationName, Rru};
use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;
use std::collections::HashMap;
use std::sync::Arc;

/// The most reservations per page: a thousand, and one more that shows whether there is a next page.
pub const SUMMARIES_PAGE_MAX: u32 = 1_001;

/// Summaries that match a condition, without the terms of their promises.
macro_rules! summaries {
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

use summaries;

pub(crate) mod sql {
    crate::statements! {
        /// One reservation by name: by far the most frequent read.
        SUMMARY = super::summaries!("WHERE r.reservation = $1 AND $2 = ''");
        SUMMARIES = super::summaries!("WHERE $1::text IS NULL AND r.reservation > $2");
    }
}

/// A reservation's promise, and the requests about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReservationSummary {
    /// The reservation's name.
    pub reservation: ReservationName,
    /// The reservation's kind.
    pub kind: ReservationKind,
    /// The reservation's owner.
    pub owner: OwnerName,
    /// The capacity C; of a shared buffer, in servers.
    pub capacity: Rru,
    /// Whether the capacity must survive the loss of any one MSB.
    pub msb_buffer: bool,
    /// The priority; 0 is the most important.
    pub priority: i32,
    /// The reservation's own alpha^F.
    pub msb_alpha: Option<f64>,
    /// The reservation's own alpha^K.
    pub rack_alpha: Option<f64>,
    /// The reservation's own theta.
    pub affinity_theta: Option<f64>,
    /// The host profile of its servers.
    pub host_profile: Option<Name>,
    /// The replica rule, which limits the share of any one MSB.
    pub replica_rule: Option<ReplicaRule>,
    /// RRU values, affinities and allowed datacenters.
    pub terms: Arc<PromiseTerms>,
    /// The version of the promise.
    pub promise_version: i32,
    /// The time of that version.
    pub promised_at: DateTime<Utc>,
    /// The owner's labels.
    pub labels: Labels,
    /// The churn contract.
    pub contract: Option<Contract>,
    /// A version that changes with every change by the owner and every decision about a request.
    pub version: String,
    /// The request that waits for its answer.
    pub open: Option<OpenRequest>,
    /// The request it is promised by; `None`: it was loaded from a snapshot.
    pub in_force: Option<InForce>,
    /// The rollout of its last host profile; `None`: the profile never changed.
    pub rollout: Option<Rollout>,
}

/// A request that waits for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// Its id.
    pub request: RequestId,
    /// Its state.
    pub state: RequestState,
}

/// A request that a promise rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Its id.
    pub request: RequestId,
    /// How the reservation stands, as it was noted last.
    pub state: RequestState,
    /// The requested capacity, if the request names one.
    pub asked: Option<Rru>,
    /// The end of the reservation; `None`: no end is set.
    pub ends_at: Option<DateTime<Utc>>,
    /// Whether the request removes the reservation.
    pub removes: bool,
}

/// A filter of reservations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SummaryFilter {
    /// Only of this owner.
    pub owner: Option<String>,
    /// Only of this kind.
    pub kind: Option<ReservationKind>,
    /// Only with all of these labels.
    pub labels: Labels,
}

impl Broker {
    /// Reads the summary of one reservation.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_summary(
        &self,
        name: &str,
    ) -> Result<Option<ReservationSummary>, DbError> {
        if name.contains('\0') {
            return Ok(None);
        }
        Ok(self.summaries(Some(name), &SummaryFilter::default(), "", 1).await?.pop())
    }

    /// Lists summaries by name: those after `after`, at most `limit` and at most [`SUMMARIES_PAGE_MAX`].
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn reservation_summaries(
        &self,
        filter: &SummaryFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ReservationSummary>, DbError> {
        self.summaries(None, filter, after, limit).await
    }

    async fn summaries(
        &self,
        name: Option<&str>,
        filter: &SummaryFilter,
        after: &str,
        limit: u32,
    ) -> Result<Vec<ReservationSummary>, DbError> {
        let doing = "reading what is promised";
        let rows = sqlx::query(if name.is_some() { sql::SUMMARY } else { sql::SUMMARIES })
            .bind(name)
            .bind(after)
            .bind(&filter.owner)
            .bind(filter.kind.map(ReservationKind::as_str))
            .bind(Json(&filter.labels))
            .bind(i64::from(limit.min(SUMMARIES_PAGE_MAX)))
            .fetch_all(&self.pool);
        let rows = rows.await.doing(doing)?;
        let promises: Result<Vec<i64>, _> = rows.iter().map(|row| row.try_get(13)).collect();
        let terms = self.terms.of(&self.pool, &promises.doing(doing)?).await.doing(doing)?;
        rows.iter().map(|row| summary(row, &terms)).collect::<Result<_, _>>().doing(doing)
    }
}

fn summary(
    row: &PgRow,
    all: &HashMap<i64, Arc<PromiseTerms>>,
) -> Result<ReservationSummary, sqlx::Error> {
    let kind = words::reservation_kind("reservations.kind", row.try_get(1)?)?;
    let promise_version: i32 = row.try_get(10)?;
    let Json(labels) = row.try_get(12)?;
    let terms = all.get(&row.try_get(13)?).cloned().unwrap_or_default();
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
    Ok(ReservationSummary {
        reservation: row.try_get::<&str, _>(0)?.into(),
        kind,
        owner: row.try_get::<&str, _>(2)?.into(),
        capacity: Rru(row.try_get(3)?),
        msb_buffer: row.try_get(4)?,
        priority: row.try_get(5)?,
        msb_alpha: row.try_get(6)?,
        rack_alpha: row.try_get(7)?,
        affinity_theta: row.try_get(8)?,
        host_profile: row.try_get::<Option<&str>, _>(9)?.map(Into::into),
        replica_rule: crate::promises::promise::replica_rule(row.try_get(24)?, row.try_get(25)?),
        terms,
        promise_version,
        promised_at: row.try_get(11)?,
        labels,
        contract: row.try_get::<Option<Json<Contract>>, _>(21)?.map(|Json(contract)| contract),
        version: version(Some(promise_version), row.try_get(14)?),
        open: Option::zip(row.try_get(15)?, state(16)?)
            .map(|(request, state)| OpenRequest { request, state }),
        in_force,
        rollout: row.try_get::<Option<Json<Rollout>>, _>(23)?.map(|Json(rollout)| rollout),
    })
}
