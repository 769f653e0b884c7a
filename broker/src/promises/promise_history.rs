//! The versions of a reservation's promise.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use chrono::{DateTime, Utc};
use fleet::{DatacenterName, HardwareTypeName, PartitionName, ReplicaRule, ReservationKind, Rru};
use sqlx::Row;
use sqlx::postgres::PgRow;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// By name: promises outlive their reservation.
        VERSIONS = "SELECT p.version, p.kind, p.owner, p.capacity_micro, p.msb_buffer, p.priority, \
                p.msb_alpha, p.rack_alpha, p.affinity_theta, p.host_profile, p.promised_at, \
                coalesce((SELECT jsonb_object_agg(h.hardware_type, v.value_micro) FROM rru_values v \
                    JOIN hardware_types h USING (hardware_type_id) WHERE v.promise_id = p.promise_id), '{}'), \
                coalesce((SELECT jsonb_object_agg(d.datacenter, a.share) FROM affinities a \
                    JOIN datacenters d USING (datacenter_id) WHERE a.promise_id = p.promise_id), '{}'), \
                ARRAY(SELECT d.datacenter::text FROM allowed_datacenters l \
                    JOIN datacenters d USING (datacenter_id) WHERE l.promise_id = p.promise_id), \
                p.replicas, p.replicas_per_msb, \
                ARRAY(SELECT t.partition::text FROM survives v JOIN partitions t USING (partition_id) \
                    WHERE v.promise_id = p.promise_id) \
            FROM promises p WHERE p.reservation = $1 AND p.version < $2 ORDER BY p.version DESC LIMIT $3";
    }
}

/// One version of a promise.
#[derive(Clone, Debug, PartialEq)]
pub struct PromiseVersion {
    /// The version: 1, 2, 3, ...
    pub version: i32,
    /// The kind of the reservation.
    pub kind: ReservationKind,
    /// Who asked.
    pub owner: String,
    /// The capacity.
    pub capacity: Rru,
    /// Whether it must survive the loss of any MSB.
    pub msb_buffer: bool,
    /// The priority; 0 is the most important.
    pub priority: i32,
    /// Its own limit on the share of one MSB.
    pub msb_alpha: Option<f64>,
    /// Its own limit on the share of one rack.
    pub rack_alpha: Option<f64>,
    /// Its own tolerance of affinity.
    pub affinity_theta: Option<f64>,
    /// The host profile.
    pub host_profile: Option<String>,
    /// The time of the promise.
    pub promised_at: DateTime<Utc>,
    /// RRU values by hardware type.
    pub rru: BTreeMap<HardwareTypeName, Rru>,
    /// Wanted share of its capacity by datacenter.
    pub affinity: BTreeMap<DatacenterName, f64>,
    /// The allowed datacenters; empty: all.
    pub allowed_datacenters: BTreeSet<DatacenterName>,
    /// The partitions of which it survives the loss of any one domain.
    pub survives: BTreeSet<PartitionName>,
    /// The replica rule, which limits the share of any one MSB.
    pub replica_rule: Option<ReplicaRule>,
}

impl Broker {
    /// The versions of a reservation's promise, newest first: those before `before`. Empty: the reservation
    /// never existed.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn promise_versions(
        &self,
        reservation: &str,
        before: Option<i32>,
        limit: u32,
    ) -> Result<Vec<PromiseVersion>, DbError> {
        let rows = sqlx::query(sql::VERSIONS)
            .bind(reservation)
            .bind(before.unwrap_or(i32::MAX))
            .bind(i64::from(limit))
            .try_map(|row: PgRow| version(&row));
        rows.fetch_all(&self.pool).await.doing("reading what was promised")
    }
}

fn version(row: &PgRow) -> Result<PromiseVersion, sqlx::Error> {
    let values: sqlx::types::Json<BTreeMap<String, i64>> = row.try_get(11)?;
    let shares: sqlx::types::Json<BTreeMap<String, f64>> = row.try_get(12)?;
    let allowed: Vec<String> = row.try_get(13)?;
    let survives: Vec<String> = row.try_get(16)?;
    Ok(PromiseVersion {
        version: row.try_get(0)?,
        kind: words::reservation_kind("promises.kind", row.try_get(1)?)?,
        owner: row.try_get(2)?,
        capacity: Rru(row.try_get(3)?),
        msb_buffer: row.try_get(4)?,
        priority: row.try_get(5)?,
        msb_alpha: row.try_get(6)?,
        rack_alpha: row.try_get(7)?,
        affinity_theta: row.try_get(8)?,
        host_profile: row.try_get(9)?,
        promised_at: row.try_get(10)?,
        rru: values.0.into_iter().map(|(ty, micro)| (ty.into(), Rru(micro))).collect(),
        affinity: shares.0.into_iter().map(|(dc, share)| (dc.into(), share)).collect(),
        allowed_datacenters: allowed.into_iter().map(Into::into).collect(),
        survives: survives.into_iter().map(Into::into).collect(),
        replica_rule: crate::promises::promise::replica_rule(row.try_get(14)?, row.try_get(15)?),
    })
}
