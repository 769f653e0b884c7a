//! Import of a snapshot: compared first; then the differences are written in one transaction.

mod merge;
pub(crate) mod write;

use crate::health::report::is_storable;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::infra::id::WindowId;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{self, Event};
use crate::log::trail::{Seq, TargetVersion};
use crate::maintenance;
use crate::promises::promise::{self, Promise};
use crate::snapshot::import_diff::{Changes, ImportPlan, Missing, Vanishing};
use crate::snapshot::region_read::Stored;
use fleet::{
    Coverage, HardwareTypeName, Name, NameError, NewName, PartitionColumn, RegionSnapshot,
    ReservationName, SHARED_BUFFER_PREFIX, ServerRow, SnapshotParts,
};
pub use merge::MergeError;
use sqlx::PgConnection;
use std::collections::{BTreeMap, BTreeSet};
pub(crate) use write::sql;

/// Options of an import.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ImportOptions {
    /// The treatment of what the snapshot lacks.
    pub missing: Missing,
    /// Accept contradictions to the store.
    pub accept_contradictions: bool,
    /// Accept that more is missing than [`crate::VANISHING_MAX`].
    pub force: bool,
    /// The columns that the snapshot's source knows; stored values of the others stay.
    pub coverage: Coverage,
}

/// A finished import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The changes.
    pub plan: ImportPlan,
    /// The version of the targets after the import.
    pub version: TargetVersion,
    /// The entry in the audit trail; `None`: nothing changed.
    pub seq: Option<Seq>,
}

/// A snapshot cannot be imported; nothing was changed.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LoadError {
    #[error("the database holds region {stored:?}, the snapshot is of {snapshot:?}")]
    OtherRegion { stored: Name, snapshot: Name },
    #[error("the snapshot lacks {missing} of {stored} {what}; more than 5 % must be forced")]
    Vanishing { what: &'static str, missing: usize, stored: usize, plan: Box<ImportPlan> },
    #[error("the snapshot contradicts what is stored in {count} points; they must be accepted")]
    Contradicts { count: usize, plan: Box<ImportPlan> },
    #[error("{name:?}: a name with a zero character cannot be stored")]
    ZeroCharacter { name: String },
    #[error("{what} {name:?}: {error}")]
    NewName { what: &'static str, name: String, error: NameError },
    #[error("the inventory and what is stored contradict each other")]
    Merged(#[source] MergeError),
    #[error(
        "reservation {name:?} is missing in the inventory and {servers} of its servers are in it; ask \
         for none of it first, or keep what is missing"
    )]
    StillHeld { name: ReservationName, servers: usize },
    #[error("unavailability event {event:?}: times are stored in whole microseconds")]
    Time { event: Name },
    #[error(
        "shared buffer {kept:?} is missing in the snapshot and kept, but servers are in {made:?}, another of its type; remove what is missing, or list it"
    )]
    KeptBuffer { kept: ReservationName, made: ReservationName },
    #[error(transparent)]
    Db(#[from] DbError),
}

/// The difference cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The merge of the inventory and the store breaks a rule of the snapshot format.
    #[error("the inventory and what is stored contradict each other")]
    Merged(#[from] MergeError),
    /// Postgres fails.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl Broker {
    /// Computes the changes that an import of this snapshot would make, given the columns that its source
    /// knows.
    ///
    /// # Errors
    /// [`PlanError`].
    pub async fn plan(
        &self,
        snapshot: &RegionSnapshot,
        coverage: Coverage,
    ) -> Result<ImportPlan, PlanError> {
        let (stored, _) = self.stored(None).await?;
        let mut db = self.pool.acquire().await.doing("connecting")?;
        let without = without_planned(&mut db, &stored, snapshot).await?;
        drop(db);
        let snapshot = without.as_ref().unwrap_or(snapshot);
        let merged = merged(&stored, snapshot, coverage)?;
        let snapshot = merged.as_ref().map_or(snapshot, |merged| &merged.snapshot);
        let promises = promise::of_snapshot(snapshot);
        let plan = ImportPlan::between(&stored, snapshot, &snapshot.to_parts(), &promises);
        Ok(plan.with_missing(merged.iter().flat_map(|merged| merged.still_held.keys())))
    }

    /// Imports a snapshot: makes the stored region equal to it, bindings and open moves included, as a new
    /// version of the targets. What the snapshot lacks stays, unless it is to be removed; so do the columns
    /// that its source does not know.
    ///
    /// Concurrent publications and reports wait; readers do not.
    ///
    /// # Errors
    /// [`LoadError`].
    pub async fn load(
        &self,
        actor: &str,
        snapshot: &RegionSnapshot,
        options: ImportOptions,
    ) -> Result<Loaded, LoadError> {
        check_storable(snapshot, &snapshot.to_parts())?;
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        sqlx::query(sql::LOCK).execute(&mut *db).await.doing("locking the region")?;
        let stored = Stored::read(db, None).await?;
        if let Some(region) = stored.region.as_ref().filter(|r| r.name != snapshot.region) {
            let (stored, snapshot) = (region.name.clone(), snapshot.region.clone());
            return Err(LoadError::OtherRegion { stored, snapshot });
        }
        let without = without_planned(db, &stored, snapshot).await?;
        let snapshot = without.as_ref().unwrap_or(snapshot);
        let merged = merged(&stored, snapshot, options.coverage).map_err(LoadError::Merged)?;
        let snapshot = merged.as_ref().map_or(snapshot, |merged| &merged.snapshot);
        let wanted = snapshot.to_parts();
        let mut promises = promise::of_snapshot(snapshot);
        let plan = ImportPlan::between(&stored, snapshot, &wanted, &promises);
        let plan = plan.with_missing(merged.iter().flat_map(|merged| merged.still_held.keys()));
        check_new_names(&stored, &wanted, &plan)?;
        check_allowed(&plan, options)?;
        if options.missing == Missing::Remove
            && let Some((name, servers)) = merged.iter().flat_map(|of| &of.still_held).next()
        {
            return Err(LoadError::StillHeld { name: name.clone(), servers: *servers });
        }
        let removes = options.missing == Missing::Remove && plan.lacks_something();
        if plan.is_empty() && !removes {
            change.abandon().await?;
            return Ok(Loaded { plan, version: stored.version, seq: None });
        }
        if options.missing == Missing::Keep {
            keep_buffers(&stored, &wanted, &mut promises)?;
        }
        let version = TargetVersion(stored.version.0 + 1);
        let added = sqlx::query(sql::ADD_VERSION).bind(stored.version.0);
        added.execute(&mut *db).await.doing("adding a version of the targets")?;
        write::write(db, snapshot, &wanted, &stored, &promises, &plan, version).await?;
        if removes {
            write::remove(db, &plan, &promises).await.doing("removing what is missing")?;
        }
        let made: Vec<&str> =
            promises.iter().filter(|(_, p)| p.made).map(|(name, _)| name.as_ref()).collect();
        let dropped = sqlx::query(sql::REMOVE_MADE).bind(made).execute(&mut *db).await;
        dropped.doing("removing made shared buffers")?;
        change.record(
            &snapshot.region,
            Event::SnapshotLoaded {
                version,
                servers: loaded(&plan.servers, removes),
                reservations: loaded(&plan.reservations, removes),
                unavailability: loaded(&plan.unavailability, removes),
                domains_changed: plan.domains_changed,
                bindings_changed: plan.bindings_changed,
                bindings_freed: plan.bindings_freed,
                contradictions: plan.contradictions.len() + plan.types_missing.len(),
            },
        );
        let seq = change.commit().await?;
        // For good plans of the first queries; autovacuum would come a minute later.
        if let Err(error) = sqlx::query(sql::ANALYZE).execute(&self.pool).await {
            tracing::warn!(%error, "snapshot loaded, but statistics were not gathered");
        }
        tracing::info!(version = version.0, seq = seq.0, "snapshot loaded");
        Ok(Loaded { plan, version, seq: Some(seq) })
    }
}

/// The snapshot without the planned windows that an export of this store added: until a window begins, its own
/// row is authoritative. `None`: the snapshot has none of them.
pub(crate) async fn without_planned(
    db: &mut PgConnection,
    stored: &Stored,
    snapshot: &RegionSnapshot,
) -> Result<Option<RegionSnapshot>, DbError> {
    let there =
        |id: &Name| stored.unavailability.binary_search_by(|row| row.event_id.cmp(id)).is_ok();
    let new = snapshot.unavailability.iter().map(|event| &event.id).filter(|id| !there(id));
    let windows: Vec<WindowId> = new.filter_map(|id| maintenance::window_of(id)).collect();
    if windows.is_empty() {
        return Ok(None);
    }
    let known = maintenance::known(db, &windows).await?;
    if known.is_empty() {
        return Ok(None);
    }
    let planned =
        |id: &Name| !there(id) && maintenance::window_of(id).is_some_and(|id| known.contains(&id));
    let mut without = snapshot.clone();
    without.unavailability.retain(|event| !planned(&event.id));
    Ok(Some(without))
}

/// The merge of the snapshot and the store; `None`: the snapshot itself is complete.
pub(crate) fn merged(
    stored: &Stored,
    snapshot: &RegionSnapshot,
    coverage: Coverage,
) -> Result<Option<merge::Merged>, MergeError> {
    if coverage == Coverage::WHOLE || stored.region.is_none() {
        return Ok(None);
    }
    merge::merge(stored, snapshot.to_parts(), &coverage).map(Some)
}

pub(crate) fn check_storable(
    snapshot: &RegionSnapshot,
    wanted: &SnapshotParts,
) -> Result<(), LoadError> {
    let reservations = snapshot.reservations.iter();
    let names =
        (reservations.flat_map(|r| [Some(&*r.id), Some(&*r.owner), r.host_profile.as_deref()]))
            .flatten()
            .chain(snapshot.datacenters.iter().map(|d| &*d.id))
            .chain(snapshot.msbs.iter().map(|m| &*m.id))
            .chain(snapshot.racks.iter().map(|r| &*r.id))
            .chain(snapshot.hardware_types.iter().map(|name| &**name))
            .chain(snapshot.servers.iter().map(|s| &*s.id))
            .chain(snapshot.unavailability.iter().map(|e| &*e.id))
            .chain(snapshot.partitions.iter().flat_map(|of| {
                std::iter::once(&*of.name).chain(of.domains.iter().map(|name| &**name))
            }))
            .chain([&*snapshot.region]);
    for name in names {
        if name.contains('\0') {
            return Err(LoadError::ZeroCharacter { name: name.to_string() });
        }
    }
    for row in &wanted.unavailability {
        if !is_storable(row.started_at) || !row.ended_at.is_none_or(is_storable) {
            return Err(LoadError::Time { event: row.event_id.clone() });
        }
    }
    Ok(())
}

/// The rule of names, for names that are not stored yet. What is stored keeps its name.
fn check_new_names(
    stored: &Stored,
    wanted: &SnapshotParts,
    plan: &ImportPlan,
) -> Result<(), LoadError> {
    let check = |what, name: &str| {
        NewName::parse(name).map(|_| ()).map_err(|error| LoadError::NewName {
            what,
            name: name.to_owned(),
            error,
        })
    };
    if stored.region.is_none() {
        check("region", &wanted.region)?;
    }
    for server in &plan.servers.added {
        check("server", server)?;
    }
    let made = |name: &&ReservationName| name.starts_with(SHARED_BUFFER_PREFIX);
    for reservation in plan.reservations.added.iter().filter(|name| !made(name)) {
        check("reservation", reservation)?;
    }
    type Part = fn(&ServerRow) -> &str;
    let parts: [(_, Part); 4] = [
        ("rack", |row| &row.rack),
        ("MSB", |row| &row.msb),
        ("datacenter", |row| &row.datacenter),
        ("hardware type", |row| &row.hardware_type),
    ];
    for (what, part) in parts {
        let known: BTreeSet<&str> = stored.servers.iter().map(|(row, _)| part(row)).collect();
        let wanted: BTreeSet<&str> = wanted.servers.iter().map(part).collect();
        wanted.difference(&known).try_for_each(|name| check(what, name))?;
    }
    let known: BTreeSet<&str> = partition_names(&stored.partitions).collect();
    let new = partition_names(&wanted.crossing.partitions).collect::<BTreeSet<&str>>();
    new.difference(&known).try_for_each(|name| check("partition", name))?;
    let known: BTreeSet<&str> = domain_names(&stored.partitions).collect();
    let new = domain_names(&wanted.crossing.partitions).collect::<BTreeSet<&str>>();
    new.difference(&known).try_for_each(|name| check("fault domain", name))?;
    let owners: BTreeSet<&str> = stored.promises.values().map(|of| &*of.owner).collect();
    let new = wanted.reservations.iter().map(|row| &*row.owner);
    new.filter(|name| !owners.contains(name)).try_for_each(|name| check("owner", name))?;
    let promised = stored.promises.values();
    let profiles: BTreeSet<&str> = promised.filter_map(|of| of.host_profile.as_deref()).collect();
    let new = wanted.reservations.iter().filter_map(|row| row.host_profile.as_deref());
    new.filter(|name| !profiles.contains(name)).try_for_each(|name| check("host profile", name))
}

fn partition_names(columns: &[PartitionColumn]) -> impl Iterator<Item = &str> {
    columns.iter().map(|column| &*column.name)
}

fn domain_names(columns: &[PartitionColumn]) -> impl Iterator<Item = &str> {
    columns.iter().flat_map(|column| column.domains.iter().map(|(_, domain)| &**domain))
}

fn check_allowed(plan: &ImportPlan, options: ImportOptions) -> Result<(), LoadError> {
    if let Some(Vanishing { what, missing, stored }) =
        plan.vanishing(options.missing).filter(|_| !options.force)
    {
        return Err(LoadError::Vanishing { what, missing, stored, plan: Box::new(plan.clone()) });
    }
    if plan.contradicts() && !options.accept_contradictions {
        let count = plan.contradictions.len() + plan.types_missing.len();
        return Err(LoadError::Contradicts { count, plan: Box::new(plan.clone()) });
    }
    Ok(())
}

/// Drops made shared buffers where a listed one of the same type stays; error: servers are in such a made
/// buffer.
fn keep_buffers(
    stored: &Stored,
    wanted: &SnapshotParts,
    promises: &mut BTreeMap<ReservationName, Promise>,
) -> Result<(), LoadError> {
    let unlisted = |name: &ReservationName| promises.get(name).is_none_or(|promise| promise.made);
    let kept: BTreeMap<&HardwareTypeName, &ReservationName> = (stored.promises.iter())
        .filter(|(name, promise)| !promise.made && unlisted(name))
        .filter_map(|(name, promise)| Some((promise.buffer_type()?, name)))
        .collect();
    if kept.is_empty() {
        return Ok(());
    }
    let referred: BTreeSet<&ReservationName> = (wanted.servers.iter())
        .flat_map(|row| [&row.current_reservation, &row.target_reservation])
        .flatten()
        .collect();
    let mut rival = None;
    promises.retain(|name, promise| {
        let kept = promise.buffer_type().filter(|_| promise.made).and_then(|ty| kept.get(ty));
        if let Some(&kept) = kept.filter(|kept| **kept != name && referred.contains(name)) {
            rival = Some((kept.clone(), name.clone()));
        }
        kept.is_none()
    });
    rival.map_or(Ok(()), |(kept, made)| Err(LoadError::KeptBuffer { kept, made }))
}

fn loaded<N>(changes: &Changes<N>, removes: bool) -> event::Loaded {
    event::Loaded {
        added: changes.added.len(),
        changed: changes.changed.len(),
        removed: if removes { changes.missing.len() } else { 0 },
    }
}
