//! The read of a whole region within one transaction.

use crate::infra::error::{DbError, Doing};
use crate::infra::read_throttle::{PriorityReaders, ReadThrottle};
use crate::log::trail::{Seq, TargetVersion};
use crate::promises::promise::{self, Promise};
use crate::snapshot::domains;
use crate::topology::places::{Names, Topology};
use chrono::{DateTime, Utc};
use fleet::{
    Name, PartitionColumn, PartitionParts, ReservationName, ServerRow, SnapshotParts,
    UnavailabilityRow, Weights,
};
use futures_util::TryStreamExt;
use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use std::collections::BTreeMap;

pub(crate) mod sql {
    crate::statements! {
        NOW = "SELECT transaction_timestamp()";
        HEAD = "SELECT max(version) FROM target_versions";
        REGION = "SELECT region::text, move_in_use, move_idle, spread_beta, buffer_tau, \
            msb_alpha, rack_alpha, affinity_theta, shared_buffer_fraction FROM region";
        /// In table order: sorting a million names is faster here than in Postgres.
        SERVERS = "SELECT server::text, rack_id, hardware_type_id, current_reservation_id, \
            target_reservation_id, target_pending, in_use, loan_reservation_id, power_watts, \
            generation FROM servers";
        UNAVAILABILITY = "SELECT u.event_id::text, u.scope, \
            coalesce(s.server, r.rack, m.msb, d.datacenter)::text, u.kind, u.started_at, u.ended_at, u.recall_minutes \
            FROM unavailability u LEFT JOIN servers s ON s.server_id = u.server_id \
            LEFT JOIN racks r ON r.rack_id = u.rack_id \
            LEFT JOIN msbs m ON m.msb_id = u.msb_id \
            LEFT JOIN datacenters d ON d.datacenter_id = u.datacenter_id \
            ORDER BY u.event_id";
    }
}

/// The region's name, prices and limits.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Region {
    pub(crate) name: Name,
    pub(crate) weights: Weights,
    pub(crate) shared_buffer_fraction: f64,
}

/// A whole region, ordered by name.
#[derive(Clone)]
pub(crate) struct Stored {
    /// `None`: no region was ever loaded, and the rest is empty.
    pub(crate) region: Option<Region>,
    pub(crate) version: TargetVersion,
    pub(crate) seq: Seq,
    pub(crate) promises: BTreeMap<ReservationName, Promise>,
    pub(crate) servers: Vec<(ServerRow, i64)>,
    pub(crate) unavailability: Vec<UnavailabilityRow>,
    /// Partitions that a server is in or that a reservation survives.
    pub(crate) partitions: Vec<PartitionColumn>,
}

pub(crate) async fn head(db: &mut PgConnection) -> Result<TargetVersion, DbError> {
    let head = sqlx::query_scalar(sql::HEAD).fetch_one(db).await;
    head.map(TargetVersion).doing("reading the version of the targets")
}

impl Stored {
    /// Reads the region. `waiters`: the callers that wait for it; with none waiting, the read is throttled.
    pub(crate) async fn read(
        db: &mut PgConnection,
        waiters: Option<&PriorityReaders>,
    ) -> Result<Stored, DbError> {
        let region = region(db).await.doing("reading the region")?;
        let seq = sqlx::query_scalar(crate::log::trail::sql::LAST_SEQ).fetch_one(&mut *db).await;
        let seq = Seq(seq.doing("reading the clock of the audit trail")?);
        let version = head(db).await?;
        let topology = Topology::read(db).await?;
        let (reservations, promises) = promise::read(db, &topology).await?;
        let pace = ReadThrottle::new(waiters);
        let servers =
            servers(db, &topology, &reservations, pace).await.doing("reading the servers")?;
        let pace = ReadThrottle::new(waiters);
        let domains = domains::read(db, &topology, servers, pace).await;
        let (servers, mut partitions) = domains.doing("reading the fault domains of servers")?;
        let survived = promises.values().flat_map(|promise| &promise.survives);
        domains::add_survived(&mut partitions, survived);
        let unavailability = unavailability(db).await.doing("reading unavailability events")?;
        Ok(Stored { region, version, seq, promises, servers, unavailability, partitions })
    }

    /// The rows of a snapshot of this instant, and the generation of each server; `None`: no region was ever
    /// loaded.
    pub(crate) fn into_parts(self, taken_at: DateTime<Utc>) -> Option<(SnapshotParts, Vec<i64>)> {
        let region = self.region?;
        let (servers, generations) = self.servers.into_iter().unzip();
        let mut parts = SnapshotParts {
            region: region.name,
            taken_at,
            weights: region.weights,
            shared_buffer_fraction: Some(region.shared_buffer_fraction),
            servers,
            reservations: Vec::new(),
            rru: Vec::new(),
            affinity: Vec::new(),
            allowed_datacenters: Vec::new(),
            unavailability: self.unavailability,
            ahead: fleet::AheadParts::default(),
            crossing: PartitionParts { partitions: self.partitions, survives: Vec::new() },
        };
        for (id, promise) in self.promises.iter().filter(|(_, promise)| !promise.made) {
            promise.rows(id).add_to(&mut parts);
        }
        Some((parts, generations))
    }
}

pub(crate) async fn region(db: &mut PgConnection) -> Result<Option<Region>, sqlx::Error> {
    let row = sqlx::query(sql::REGION).fetch_optional(db).await?;
    let region = row.map(|row| {
        let weights = Weights {
            move_in_use: row.try_get(1)?,
            move_idle: row.try_get(2)?,
            spread_beta: row.try_get(3)?,
            buffer_tau: row.try_get(4)?,
            msb_alpha: row.try_get(5)?,
            rack_alpha: row.try_get(6)?,
            affinity_theta: row.try_get(7)?,
        };
        let name = row.try_get::<&str, _>(0)?.into();
        Ok(Region { name, weights, shared_buffer_fraction: row.try_get(8)? })
    });
    region.transpose()
}

async fn servers(
    db: &mut PgConnection,
    topology: &Topology,
    reservations: &Names<ReservationName>,
    mut pace: ReadThrottle<'_>,
) -> Result<Vec<(ServerRow, i64)>, sqlx::Error> {
    let mut servers = Vec::new();
    let mut rows = sqlx::query(sql::SERVERS).fetch(db);
    while let Some(row) = rows.try_next().await? {
        servers.push(server(&row, topology, reservations)?);
        pace.row().await;
    }
    // Sorting a million names takes a second, so it runs on a blocking thread.
    let sorted = tokio::task::spawn_blocking(move || {
        servers.sort_unstable_by(|a: &(ServerRow, i64), b| a.0.server_id.cmp(&b.0.server_id));
        servers
    });
    Ok(sorted.await.expect("comparing names does not panic"))
}

fn server(
    row: &PgRow,
    topology: &Topology,
    reservations: &Names<ReservationName>,
) -> Result<(ServerRow, i64), sqlx::Error> {
    let place = topology.place(row.try_get(1)?);
    let named = |column: usize| -> Result<Option<ReservationName>, sqlx::Error> {
        let id: Option<i32> = row.try_get(column)?;
        Ok(id.map(|id| reservations.name(id).clone()))
    };
    let server = ServerRow {
        server_id: row.try_get::<&str, _>(0)?.into(),
        datacenter: place.datacenter.clone(),
        msb: place.msb.clone(),
        rack: place.rack.clone(),
        hardware_type: topology.hardware_types.name(row.try_get(2)?).clone(),
        current_reservation: named(3)?,
        target_reservation: named(4)?,
        target_pending: row.try_get(5)?,
        in_use: row.try_get(6)?,
        loaned_to: named(7)?,
        power_watts: row.try_get(8)?,
    };
    Ok((server, row.try_get(9)?))
}

async fn unavailability(db: &mut PgConnection) -> Result<Vec<UnavailabilityRow>, sqlx::Error> {
    let rows = sqlx::query(sql::UNAVAILABILITY).fetch_all(db).await?;
    let event = |row: &PgRow| {
        Ok(UnavailabilityRow {
            event_id: row.try_get::<&str, _>(0)?.into(),
            scope: row.try_get::<&str, _>(1)?.into(),
            scope_id: row.try_get::<&str, _>(2)?.into(),
            kind: row.try_get::<&str, _>(3)?.into(),
            started_at: row.try_get(4)?,
            ended_at: row.try_get(5)?,
            recall_minutes: row.try_get(6)?,
        })
    };
    rows.iter().map(event).collect()
}
