//! Promises of reservations: read, compared, and added in new versions, never changed.

use crate::infra::error::{DbError, Doing};
use crate::infra::words;
use crate::moves::rollout;
use crate::topology::places::{Names, Topology};
use fleet::{
    AffinityRow, AllowedDatacenterRow, DatacenterName, HardwareTypeName, Name, OwnerName,
    PartitionName, RegionSnapshot, ReplicaRule, Reservation, ReservationKind, ReservationName,
    ReservationRow, Rru, RruRow, SnapshotParts, SurvivesRow,
};
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        RESERVATIONS = "SELECT r.reservation_id, r.promise_id, r.reservation, r.kind, p.owner, \
            p.capacity_micro, p.msb_buffer, p.priority, p.msb_alpha, p.rack_alpha, \
            p.affinity_theta, p.host_profile, r.made, p.replicas, p.replicas_per_msb \
            FROM reservations r JOIN promises p USING (promise_id)";
        RRU_VALUES = "SELECT v.promise_id, v.hardware_type_id, v.value_micro \
            FROM rru_values v JOIN reservations r USING (promise_id)";
        AFFINITIES = "SELECT a.promise_id, a.datacenter_id, a.share \
            FROM affinities a JOIN reservations r USING (promise_id)";
        ALLOWED_DATACENTERS = "SELECT a.promise_id, a.datacenter_id \
            FROM allowed_datacenters a JOIN reservations r USING (promise_id)";
        SURVIVES = "SELECT v.promise_id, v.partition_id \
            FROM survives v JOIN reservations r USING (promise_id)";
        /// The next version of each promise.
        ADD_PROMISES = "INSERT INTO promises (reservation, version, kind, owner, capacity_micro, \
                msb_buffer, priority, msb_alpha, rack_alpha, affinity_theta, host_profile, \
                replicas, replicas_per_msb) \
            SELECT w.reservation, 1 + coalesce((SELECT max(p.version) FROM promises p \
                WHERE p.reservation = w.reservation), 0), w.kind, w.owner, w.capacity, \
                w.msb_buffer, w.priority, w.msb_alpha, w.rack_alpha, w.theta, w.profile, \
                w.replicas, w.per_msb \
            FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::boolean[], \
                $6::integer[], $7::double precision[], $8::double precision[], \
                $9::double precision[], $10::text[], $11::integer[], $12::integer[]) \
                AS w (reservation, kind, owner, capacity, msb_buffer, priority, msb_alpha, rack_alpha, theta, \
                    profile, replicas, per_msb) \
            RETURNING reservation, promise_id";
        ADD_RRU_VALUES = "INSERT INTO rru_values (promise_id, hardware_type_id, value_micro) \
            SELECT * FROM unnest($1::bigint[], $2::integer[], $3::bigint[])";
        ADD_AFFINITIES = "INSERT INTO affinities (promise_id, datacenter_id, share) \
            SELECT * FROM unnest($1::bigint[], $2::integer[], $3::double precision[])";
        ADD_ALLOWED_DATACENTERS = "INSERT INTO allowed_datacenters (promise_id, datacenter_id) \
            SELECT * FROM unnest($1::bigint[], $2::integer[])";
        ADD_SURVIVES = "INSERT INTO survives (promise_id, partition_id) \
            SELECT * FROM unnest($1::bigint[], $2::integer[])";
        ADD_RESERVATIONS = "INSERT INTO reservations (reservation, kind, promise_id, buffer_type_id, made) \
            SELECT w.reservation, w.kind, w.promise, w.buffer_type, w.made \
            FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::boolean[]) \
                AS w (reservation, kind, promise, buffer_type, made) \
            WHERE NOT EXISTS (SELECT FROM reservations r WHERE r.reservation = w.reservation)";
        POINT_RESERVATIONS = "UPDATE reservations r \
            SET kind = w.kind, promise_id = w.promise, buffer_type_id = w.buffer_type, made = w.made, \
                loan_share = CASE WHEN w.kind = 'elastic' THEN r.loan_share END, \
                ending = r.ending AND w.kind = 'elastic' \
            FROM unnest($1::text[], $2::text[], $3::bigint[], $4::integer[], $5::boolean[]) \
                AS w (reservation, kind, promise, buffer_type, made) \
            WHERE r.reservation = w.reservation AND r.promise_id <> w.promise";
    }
}

/// The promise of one reservation, with names instead of numbers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Promise {
    pub(crate) kind: ReservationKind,
    pub(crate) owner: OwnerName,
    capacity: Rru,
    msb_buffer: bool,
    priority: i32,
    msb_alpha: Option<f64>,
    rack_alpha: Option<f64>,
    affinity_theta: Option<f64>,
    pub(crate) host_profile: Option<Name>,
    /// Ordered by type.
    pub(crate) rru: Vec<(HardwareTypeName, Rru)>,
    /// Ordered by datacenter.
    affinity: Vec<(DatacenterName, f64)>,
    /// In order.
    allowed_datacenters: Vec<DatacenterName>,
    /// Partitions of which it survives the loss of any one domain, in order.
    pub(crate) survives: Vec<PartitionName>,
    replica_rule: Option<ReplicaRule>,
    /// A shared buffer that the region's fraction made, not listed in the snapshot.
    pub(crate) made: bool,
}

impl Promise {
    pub(crate) fn of(snapshot: &RegionSnapshot, from: &Reservation) -> Promise {
        let rru = from.rru.iter().map(|&(ty, v)| (snapshot.hardware_types[ty.ix()].clone(), v));
        let affinity = (from.affinity.iter())
            .map(|&(dc, share)| (snapshot.datacenters[dc.ix()].id.clone(), share));
        let allowed = from.allowed_datacenters.iter();
        let allowed = allowed.map(|dc| snapshot.datacenters[dc.ix()].id.clone());
        // Partitions of a snapshot are in order of name.
        let survives = from.survives.iter().map(|of| snapshot.partitions[of.ix()].name.clone());
        Promise {
            kind: from.kind,
            owner: from.owner.clone(),
            capacity: from.capacity,
            msb_buffer: from.msb_buffer,
            priority: from.priority,
            msb_alpha: from.msb_alpha,
            rack_alpha: from.rack_alpha,
            affinity_theta: from.affinity_theta,
            host_profile: from.host_profile.clone(),
            rru: rru.collect(),
            affinity: affinity.collect(),
            allowed_datacenters: allowed.collect(),
            survives: survives.collect(),
            replica_rule: from.replica_rule,
            made: from.made,
        }
    }

    /// An unlisted shared buffer of one hardware type, with a promise of zero.
    pub(crate) fn made_buffer(hardware_type: &HardwareTypeName) -> Promise {
        Promise {
            kind: ReservationKind::SharedBuffer,
            owner: "shared-buffer".into(),
            capacity: Rru::ZERO,
            msb_buffer: false,
            priority: 0,
            msb_alpha: None,
            rack_alpha: None,
            affinity_theta: None,
            host_profile: None,
            rru: vec![(hardware_type.clone(), Rru::units(1))],
            affinity: Vec::new(),
            allowed_datacenters: Vec::new(),
            survives: Vec::new(),
            replica_rule: None,
            made: true,
        }
    }

    /// This promise with the capacity changed by `more`, at least zero.
    pub(crate) fn with_more(&self, more: Rru) -> Promise {
        Promise { capacity: (self.capacity + more).or_zero(), ..self.clone() }
    }

    /// The capacity C.
    pub(crate) fn capacity(&self) -> Rru {
        self.capacity
    }

    /// The owner.
    pub(crate) fn owner(&self) -> &OwnerName {
        &self.owner
    }

    /// The hardware type of a shared buffer.
    pub(crate) fn buffer_type(&self) -> Option<&HardwareTypeName> {
        let shared = self.kind == ReservationKind::SharedBuffer;
        self.rru.first().filter(|_| shared).map(|(hardware_type, _)| hardware_type)
    }

    /// This promise as rows of the snapshot format.
    pub(crate) fn rows(&self, id: &ReservationName) -> PromiseRows {
        let reservation = ReservationRow {
            reservation_id: id.clone(),
            owner: self.owner.clone(),
            kind: self.kind.as_str().into(),
            capacity_rru: self.capacity.to_f64(),
            msb_buffer: self.msb_buffer,
            priority: self.priority,
            msb_alpha: self.msb_alpha,
            rack_alpha: self.rack_alpha,
            affinity_theta: self.affinity_theta,
            host_profile: self.host_profile.clone(),
            replicas: self.replica_rule.map(|rule| rule.replicas.cast_signed()),
            replicas_per_msb: self.replica_rule.map(|rule| rule.per_msb.cast_signed()),
        };
        let rru = self.rru.iter().map(|(hardware_type, value)| RruRow {
            reservation_id: id.clone(),
            hardware_type: hardware_type.clone(),
            rru: value.to_f64(),
        });
        let affinity = self.affinity.iter().map(|(datacenter, share)| AffinityRow {
            reservation_id: id.clone(),
            datacenter: datacenter.clone(),
            share: *share,
        });
        let allowed = self.allowed_datacenters.iter().map(|datacenter| AllowedDatacenterRow {
            reservation_id: id.clone(),
            datacenter: datacenter.clone(),
        });
        let survives = self.survives.iter().map(|partition| SurvivesRow {
            reservation_id: id.clone(),
            partition: partition.clone(),
        });
        PromiseRows {
            reservation,
            rru: rru.collect(),
            affinity: affinity.collect(),
            allowed_datacenters: allowed.collect(),
            survives: survives.collect(),
        }
    }
}

/// A promise as rows of the snapshot format.
pub(crate) struct PromiseRows {
    pub(crate) reservation: ReservationRow,
    pub(crate) rru: Vec<RruRow>,
    pub(crate) affinity: Vec<AffinityRow>,
    pub(crate) allowed_datacenters: Vec<AllowedDatacenterRow>,
    pub(crate) survives: Vec<SurvivesRow>,
}

impl PromiseRows {
    /// Appends the rows to a snapshot's.
    pub(crate) fn add_to(self, parts: &mut SnapshotParts) {
        parts.reservations.push(self.reservation);
        parts.rru.extend(self.rru);
        parts.affinity.extend(self.affinity);
        parts.allowed_datacenters.extend(self.allowed_datacenters);
        parts.crossing.survives.extend(self.survives);
    }
}

/// All promises of a snapshot, made shared buffers included.
pub(crate) fn of_snapshot(snapshot: &RegionSnapshot) -> BTreeMap<ReservationName, Promise> {
    snapshot.reservations.iter().map(|r| (r.id.clone(), Promise::of(snapshot, r))).collect()
}

/// Reads all current promises, and the numbers of the reservations.
pub(crate) async fn read(
    db: &mut PgConnection,
    topology: &Topology,
) -> Result<(Names<ReservationName>, BTreeMap<ReservationName, Promise>), DbError> {
    select(db, topology).await.doing("reading the reservations")
}

async fn select(
    db: &mut PgConnection,
    topology: &Topology,
) -> Result<(Names<ReservationName>, BTreeMap<ReservationName, Promise>), sqlx::Error> {
    let mut values: BTreeMap<i64, Vec<(HardwareTypeName, Rru)>> = BTreeMap::new();
    let rows: Vec<(i64, i32, i64)> = sqlx::query_as(sql::RRU_VALUES).fetch_all(&mut *db).await?;
    for (promise, ty, value) in rows {
        let named = topology.hardware_types.name(ty).clone();
        values.entry(promise).or_default().push((named, Rru(value)));
    }
    let mut shares: BTreeMap<i64, Vec<(DatacenterName, f64)>> = BTreeMap::new();
    let rows: Vec<(i64, i32, f64)> = sqlx::query_as(sql::AFFINITIES).fetch_all(&mut *db).await?;
    for (promise, datacenter, share) in rows {
        let named = topology.datacenters.name(datacenter).clone();
        shares.entry(promise).or_default().push((named, share));
    }
    let mut allowed: BTreeMap<i64, Vec<DatacenterName>> = BTreeMap::new();
    let rows: Vec<(i64, i32)> =
        sqlx::query_as(sql::ALLOWED_DATACENTERS).fetch_all(&mut *db).await?;
    for (promise, datacenter) in rows {
        allowed.entry(promise).or_default().push(topology.datacenters.name(datacenter).clone());
    }
    let mut survived: BTreeMap<i64, Vec<PartitionName>> = BTreeMap::new();
    let rows: Vec<(i64, i32)> = sqlx::query_as(sql::SURVIVES).fetch_all(&mut *db).await?;
    for (promise, partition) in rows {
        survived.entry(promise).or_default().push(topology.partitions.name(partition).clone());
    }
    let (mut names, mut promises) = (Names::default(), BTreeMap::new());
    for row in sqlx::query(sql::RESERVATIONS).fetch_all(&mut *db).await? {
        let name: ReservationName = row.try_get::<&str, _>(2)?.into();
        let promise_id: i64 = row.try_get(1)?;
        let kind = words::reservation_kind("reservations.kind", row.try_get(3)?)?;
        let mut rru = values.remove(&promise_id).unwrap_or_default();
        rru.sort_unstable();
        let mut affinity = shares.remove(&promise_id).unwrap_or_default();
        affinity.sort_by(|a, b| a.0.cmp(&b.0));
        let mut allowed_datacenters = allowed.remove(&promise_id).unwrap_or_default();
        allowed_datacenters.sort_unstable();
        let mut survives = survived.remove(&promise_id).unwrap_or_default();
        survives.sort_unstable();
        names.insert(row.try_get(0)?, name.clone());
        let promise = Promise {
            kind,
            owner: row.try_get::<&str, _>(4)?.into(),
            capacity: Rru(row.try_get(5)?),
            msb_buffer: row.try_get(6)?,
            priority: row.try_get(7)?,
            msb_alpha: row.try_get(8)?,
            rack_alpha: row.try_get(9)?,
            affinity_theta: row.try_get(10)?,
            host_profile: row.try_get::<Option<&str>, _>(11)?.map(Into::into),
            rru,
            affinity,
            allowed_datacenters,
            survives,
            replica_rule: replica_rule(row.try_get(13)?, row.try_get(14)?),
            made: row.try_get(12)?,
        };
        promises.insert(name, promise);
    }
    Ok((names, promises))
}

/// A CHECK lets both be there or neither, and within their bounds.
pub(crate) fn replica_rule(replicas: Option<i32>, per_msb: Option<i32>) -> Option<ReplicaRule> {
    let (replicas, per_msb) = replicas.zip(per_msb)?;
    Some(ReplicaRule { replicas: replicas.unsigned_abs(), per_msb: per_msb.unsigned_abs() })
}

/// Adds a version to each of these promises, and lets the reservations point to it.
pub(crate) async fn add(
    db: &mut PgConnection,
    topology: &Topology,
    wanted: &[(&ReservationName, &Promise)],
) -> Result<(), DbError> {
    insert(db, topology, wanted).await.doing("storing reservations")
}

async fn insert(
    db: &mut PgConnection,
    topology: &Topology,
    wanted: &[(&ReservationName, &Promise)],
) -> Result<(), sqlx::Error> {
    fn column<T>(wanted: &[(&ReservationName, &Promise)], of: impl Fn(&Promise) -> T) -> Vec<T> {
        wanted.iter().map(|(_, promise)| of(promise)).collect()
    }
    let type_id =
        |name: &HardwareTypeName| topology.hardware_types.id(name).expect("stored before");
    let names: Vec<&str> = wanted.iter().map(|(name, _)| name.as_ref()).collect();
    let kinds = column(wanted, |p| p.kind.as_str());
    let rows: Vec<(String, i64)> = sqlx::query_as(sql::ADD_PROMISES)
        .bind(&names)
        .bind(&kinds)
        .bind(column(wanted, |p| p.owner.to_string()))
        .bind(column(wanted, |p| p.capacity.0))
        .bind(column(wanted, |p| p.msb_buffer))
        .bind(column(wanted, |p| p.priority))
        .bind(column(wanted, |p| p.msb_alpha))
        .bind(column(wanted, |p| p.rack_alpha))
        .bind(column(wanted, |p| p.affinity_theta))
        .bind(column(wanted, |p| p.host_profile.as_ref().map(ToString::to_string)))
        .bind(column(wanted, |p| p.replica_rule.map(|rule| rule.replicas.cast_signed())))
        .bind(column(wanted, |p| p.replica_rule.map(|rule| rule.per_msb.cast_signed())))
        .fetch_all(&mut *db)
        .await?;
    let ids: BTreeMap<String, i64> = rows.into_iter().collect();
    let ids: Vec<i64> = wanted.iter().map(|(name, _)| ids[name.as_ref()]).collect();

    let (mut of, mut types, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut at, mut datacenters, mut shares) = (Vec::new(), Vec::new(), Vec::new());
    let (mut held, mut allowed) = (Vec::new(), Vec::new());
    let (mut surviving, mut partitions) = (Vec::new(), Vec::new());
    let datacenter_id =
        |name: &DatacenterName| topology.datacenters.id(name).expect("stored before");
    for (&id, (_, promise)) in ids.iter().zip(wanted) {
        for (hardware_type, value) in &promise.rru {
            of.push(id);
            types.push(type_id(hardware_type));
            values.push(value.0);
        }
        for (datacenter, share) in &promise.affinity {
            at.push(id);
            datacenters.push(datacenter_id(datacenter));
            shares.push(*share);
        }
        for datacenter in &promise.allowed_datacenters {
            held.push(id);
            allowed.push(datacenter_id(datacenter));
        }
        for partition in &promise.survives {
            surviving.push(id);
            partitions.push(topology.partitions.id(partition).expect("stored before"));
        }
    }
    let statement = sqlx::query(sql::ADD_RRU_VALUES).bind(of).bind(types).bind(values);
    statement.execute(&mut *db).await?;
    let statement = sqlx::query(sql::ADD_AFFINITIES).bind(at).bind(datacenters).bind(shares);
    statement.execute(&mut *db).await?;
    let statement = sqlx::query(sql::ADD_ALLOWED_DATACENTERS).bind(held).bind(allowed);
    statement.execute(&mut *db).await?;
    let statement = sqlx::query(sql::ADD_SURVIVES).bind(surviving).bind(partitions);
    statement.execute(&mut *db).await?;
    let buffer_types = column(wanted, |p| p.buffer_type().map(type_id));
    let made = column(wanted, |p| p.made);
    let profiles = column(wanted, |p| p.host_profile.as_ref().map(ToString::to_string));
    rollout::begin(db, &names, &profiles).await?;
    // Those there are first: what is added then points to the newest promise already.
    for statement in [sql::POINT_RESERVATIONS, sql::ADD_RESERVATIONS] {
        sqlx::query(statement)
            .bind(&names)
            .bind(&kinds)
            .bind(&ids)
            .bind(&buffer_types)
            .bind(&made)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}
