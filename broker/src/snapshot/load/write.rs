//! Writes the differences: staged with `COPY`, then applied set by set.

use crate::health::unavailability;
use crate::infra::copy::Rows;
use crate::infra::error::{DbError, Doing};
use crate::log::trail::TargetVersion;
use crate::promises::promise::{self, Promise};
use crate::snapshot::domains;
use crate::snapshot::import_diff::ImportPlan;
use crate::snapshot::region_read::Stored;
use crate::topology::places::{self, Topology};
use fleet::{Name, RegionSnapshot, ReservationName, ServerRow, SnapshotParts};
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        STAGE_SERVERS = "CREATE TEMPORARY TABLE staged_servers (server text COLLATE \"C\" NOT NULL, \
            rack_id integer NOT NULL, hardware_type_id integer NOT NULL, current_id integer, \
            target_id integer, pending boolean NOT NULL, in_use boolean NOT NULL, loan_id integer, \
            watts double precision, added boolean NOT NULL) ON COMMIT DROP";
        COPY_SERVERS = "COPY staged_servers FROM STDIN";
        ANALYZE_STAGED = "ANALYZE staged_servers";
        /// Readers continue; writers wait.
        LOCK = "SELECT lock_region()";
        ADD_VERSION = "INSERT INTO target_versions (version, parent, origin, publication_id) \
            VALUES ($1 + 1, $1, 'import', gen_random_uuid())";
        SET_REGION = "INSERT INTO region (region, move_in_use, move_idle, spread_beta, buffer_tau, \
                msb_alpha, rack_alpha, affinity_theta, shared_buffer_fraction) \
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (only_row) DO UPDATE SET \
                move_in_use = excluded.move_in_use, move_idle = excluded.move_idle, \
                spread_beta = excluded.spread_beta, buffer_tau = excluded.buffer_tau, \
                msb_alpha = excluded.msb_alpha, rack_alpha = excluded.rack_alpha, \
                affinity_theta = excluded.affinity_theta, \
                shared_buffer_fraction = excluded.shared_buffer_fraction";
        /// Servers stored as the snapshot says need no move any more.
        SUPERSEDE_MOVES = "UPDATE moves m SET state = 'superseded', reason = 'snapshot_loaded' \
            FROM servers s JOIN staged_servers g USING (server) \
            WHERE m.open AND m.server_id = s.server_id AND NOT g.added \
                AND (s.current_reservation_id IS DISTINCT FROM g.current_id \
                    OR s.target_pending <> g.pending \
                    OR s.target_reservation_id IS DISTINCT FROM g.target_id)";
        CHANGE_SERVERS = "UPDATE servers s SET rack_id = g.rack_id, \
                hardware_type_id = g.hardware_type_id, current_reservation_id = g.current_id, \
                target_reservation_id = g.target_id, target_pending = g.pending, \
                target_version = CASE WHEN NOT g.pending THEN NULL \
                    WHEN s.target_pending AND s.target_reservation_id IS NOT DISTINCT FROM g.target_id \
                    THEN s.target_version ELSE $1 END, \
                target_origin = CASE WHEN g.pending AND s.target_pending \
                        AND s.target_reservation_id IS NOT DISTINCT FROM g.target_id \
                    THEN s.target_origin END, \
                in_use = g.in_use, loan_reservation_id = g.loan_id, power_watts = g.watts \
            FROM staged_servers g WHERE s.server = g.server AND NOT g.added";
        ADD_SERVERS = "INSERT INTO servers (server, rack_id, hardware_type_id, \
                current_reservation_id, target_reservation_id, target_pending, target_version, \
                in_use, loan_reservation_id, power_watts) \
            SELECT server, rack_id, hardware_type_id, current_id, target_id, pending, \
                CASE WHEN pending THEN $1::bigint END, in_use, loan_id, watts \
            FROM staged_servers WHERE added";
        BEGIN_FIRST_LOAD = "SELECT begin_first_load()";
        END_FIRST_LOAD = "SELECT end_first_load()::text";
        END_MOVES = "UPDATE moves m SET state = 'superseded', reason = 'server_removed' FROM servers s \
            WHERE m.open AND m.server_id = s.server_id AND s.server = ANY ($1)";
        REMOVE_SERVERS = "DELETE FROM servers WHERE server = ANY ($1)";
        REMOVE_RESERVATIONS = "DELETE FROM reservations WHERE reservation = ANY ($1)";
        /// Made buffers that the fraction no longer requires, unless a server is in them.
        REMOVE_MADE = "DELETE FROM reservations r WHERE r.made AND r.reservation <> ALL ($1) \
            AND NOT EXISTS (SELECT FROM servers s WHERE r.reservation_id \
                IN (s.current_reservation_id, s.target_reservation_id))";
        ANALYZE = "ANALYZE servers, racks, msbs, reservations, server_domains";
    }
}

/// Makes the store equal to the snapshot; what the snapshot lacks stays.
pub(crate) async fn write(
    db: &mut PgConnection,
    snapshot: &RegionSnapshot,
    wanted: &SnapshotParts,
    stored: &Stored,
    promises: &BTreeMap<ReservationName, Promise>,
    plan: &ImportPlan,
    version: TargetVersion,
) -> Result<(), DbError> {
    let weights = &snapshot.weights;
    sqlx::query(sql::SET_REGION)
        .bind(snapshot.region.as_ref())
        .bind(weights.move_in_use)
        .bind(weights.move_idle)
        .bind(weights.spread_beta)
        .bind(weights.buffer_tau)
        .bind(weights.msb_alpha)
        .bind(weights.rack_alpha)
        .bind(weights.affinity_theta)
        .bind(snapshot.shared_buffer_fraction)
        .execute(&mut *db)
        .await
        .doing("storing the region")?;
    places::write(db, snapshot).await?;
    let topology = Topology::read(db).await?;
    let differing = promises.iter().filter(|(name, promise)| {
        stored.promises.get(name.as_ref()).is_none_or(|held| held != *promise)
    });
    promise::add(db, &topology, &differing.collect::<Vec<_>>()).await?;
    let (reservations, _) = promise::read(db, &topology).await?;
    let rows = differing_servers(wanted, stored);
    let staged = stage(db, &topology, &reservations, rows).await.doing("staging servers")?;
    if staged > 0 {
        let doing = "storing servers";
        let first: bool =
            sqlx::query_scalar(sql::BEGIN_FIRST_LOAD).fetch_one(&mut *db).await.doing(doing)?;
        sqlx::query(sql::SUPERSEDE_MOVES).execute(&mut *db).await.doing(doing)?;
        for statement in [sql::CHANGE_SERVERS, sql::ADD_SERVERS] {
            sqlx::query(statement).bind(version.0).execute(&mut *db).await.doing(doing)?;
        }
        if first {
            sqlx::query(sql::END_FIRST_LOAD).execute(&mut *db).await.doing(doing)?;
        }
    }
    let changes = domains::changes(&stored.partitions, wanted);
    domains::write(db, &topology, &changes).await.doing("storing fault domains of servers")?;
    let changed: BTreeSet<&Name> =
        plan.unavailability.added.iter().chain(&plan.unavailability.changed).collect();
    let events = wanted.unavailability.iter().filter(|row| changed.contains(&row.event_id));
    unavailability::write(db, &events.collect::<Vec<_>>()).await
}

/// The servers whose stored row differs, and whether they are new.
fn differing_servers<'a>(
    wanted: &'a SnapshotParts,
    stored: &'a Stored,
) -> impl Iterator<Item = (&'a ServerRow, bool)> {
    // Both lists are in order of name.
    let mut old = stored.servers.iter().map(|(row, _)| row).peekable();
    wanted.servers.iter().filter_map(move |row| {
        while old.next_if(|old| old.server_id < row.server_id).is_some() {}
        match old.next_if(|old| old.server_id == row.server_id) {
            None => Some((row, true)),
            Some(old) => (old != row).then_some((row, false)),
        }
    })
}

async fn stage(
    db: &mut PgConnection,
    topology: &Topology,
    reservations: &places::Names<ReservationName>,
    rows: impl Iterator<Item = (&ServerRow, bool)>,
) -> Result<u64, sqlx::Error> {
    sqlx::query(sql::STAGE_SERVERS).execute(&mut *db).await?;
    let holder = |name: &Option<ReservationName>| -> Option<i32> {
        name.as_ref().map(|name| reservations.id(name).expect("stored before, or refused"))
    };
    let mut copy = Rows::begin(db, sql::COPY_SERVERS).await?;
    for (row, added) in rows {
        copy.text(&row.server_id);
        copy.value(topology.racks.id(&row.rack));
        copy.value(topology.hardware_types.id(&row.hardware_type));
        copy.value(holder(&row.current_reservation));
        copy.value(holder(&row.target_reservation));
        copy.value(Some(row.target_pending));
        copy.value(Some(row.in_use));
        copy.value(holder(&row.loaned_to));
        copy.value(row.power_watts);
        copy.value(Some(added));
        copy.end_row().await?;
    }
    let staged = copy.finish().await?;
    sqlx::query(sql::ANALYZE_STAGED).execute(db).await?;
    Ok(staged)
}

fn names<N: ToString>(of: &[N]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// Removes what the snapshot lacks.
pub(crate) async fn remove(
    db: &mut PgConnection,
    plan: &ImportPlan,
    promises: &BTreeMap<ReservationName, Promise>,
) -> Result<(), sqlx::Error> {
    let events = names(&plan.unavailability.missing);
    sqlx::query(unavailability::sql::REMOVE).bind(events).execute(&mut *db).await?;
    let servers = names(&plan.servers.missing);
    sqlx::query(sql::END_MOVES).bind(&servers).execute(&mut *db).await?;
    sqlx::query(sql::REMOVE_SERVERS).bind(&servers).execute(&mut *db).await?;
    // A buffer that is no longer listed may still be made by the fraction.
    let mut reservations = names(&plan.reservations.missing);
    reservations.retain(|name| !promises.contains_key(name.as_str()));
    sqlx::query(sql::REMOVE_RESERVATIONS).bind(reservations).execute(db).await?;
    Ok(())
}
