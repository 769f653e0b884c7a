//! What operators change of a region beside guaranteed reservations, piece by piece.
//!
//! A piece is changed in the rows that a snapshot of the region would have, the rules of the snapshot
//! format judge them, and what differs is written as an import would write it. So a region is the same
//! whether it was made over HTTP or imported. The whole region is read for that, under the lock of an
//! import: such changes are rare (docs/decisions/0026-an-edit-reads-the-region.md has what it costs).
//!
//! The targets keep their version: a solve under way is published, and skips servers whose generation
//! moved.

pub(crate) mod buffer;
pub(crate) mod elastic;

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::change::Change;
use crate::log::trail::{Action, Seq};
use crate::promises::promise;
use crate::snapshot::import_diff::ImportPlan;
use crate::snapshot::load::{self, write};
use crate::snapshot::region_read::{self, Stored};
use crate::topology::decommission;
use chrono::{DateTime, Utc};
use fleet::edit::{self, RegionSettings, ServerEdit, ServerPlan, WrongField};
use fleet::{Name, SnapshotParts};
use serde_json::{Value, json};
use sqlx::PgConnection;
use std::collections::BTreeSet;
use uuid::Uuid;

pub use buffer::{HardwareType, SharedBuffer};
pub use elastic::{Elastic, ElasticEnd};

pub(crate) mod sql {
    crate::statements! {
        /// Servers with a move under way, of whatever origin.
        MOVING = "SELECT s.server::text FROM moves m JOIN servers s USING (server_id) WHERE m.open";
    }
}

/// A region cannot be changed; nothing was.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum EditError {
    #[error("no region is loaded")]
    NothingLoaded,
    #[error("{}", sentence(.0))]
    Wrong(Vec<WrongField>),
    #[error("the region has no hardware type {name:?}")]
    UnknownType { name: Name },
    #[error("there is no elastic reservation {name:?}")]
    UnknownElastic { name: Name },
    #[error("it has changed since it was seen")]
    Stale { current: String },
    #[error("the idempotency key was taken by another request")]
    KeyLost,
    #[error(transparent)]
    Db(#[from] DbError),
}

fn sentence(wrong: &[WrongField]) -> String {
    match wrong {
        [one] => format!("{}: {}", one.field, one.detail),
        many => format!("{} fields are wrong", many.len()),
    }
}

/// The region's prices, limits and buffer fraction, by a version that changes with any of them.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSettings {
    /// The region.
    pub region: Name,
    /// What is set.
    pub settings: RegionSettings,
}

impl StoredSettings {
    /// Changes whenever any of it does.
    pub fn version(&self) -> String {
        version(&json!([self.region, settings_json(&self.settings)]))
    }
}

fn version(of: &Value) -> String {
    Uuid::new_v5(&Uuid::NAMESPACE_OID, of.to_string().as_bytes()).to_string()
}

/// All that is said of prices and limits, by the names of `region.json`.
pub fn settings_json(of: &RegionSettings) -> Value {
    let weights = &of.weights;
    json!({
        "move_in_use": weights.move_in_use, "move_idle": weights.move_idle,
        "spread_beta": weights.spread_beta, "buffer_tau": weights.buffer_tau,
        "msb_alpha": weights.msb_alpha, "rack_alpha": weights.rack_alpha,
        "affinity_theta": weights.affinity_theta,
        "shared_buffer_fraction": of.shared_buffer_fraction,
    })
}

/// The answer of an idempotency key, made of what came of it.
pub type EditAnswer<'a> = (KeyClaim, &'a (dyn Fn(&ServerPlan) -> Value + Sync));

/// A region being edited.
struct Editing {
    stored: Stored,
    parts: SnapshotParts,
    known: BTreeSet<Name>,
}

impl Editing {
    /// Reads the region; `held`: others who would change it wait until the transaction ends.
    async fn begin(db: &mut PgConnection, held: bool) -> Result<Editing, EditError> {
        if held {
            let lock = sqlx::query(load::sql::LOCK).execute(&mut *db).await;
            lock.doing("locking the region")?;
        }
        let now: DateTime<Utc> = sqlx::query_scalar(region_read::sql::NOW)
            .fetch_one(&mut *db)
            .await
            .doing("asking for the time")?;
        let stored = Stored::read(db, None).await?;
        let (parts, _) = stored.clone().into_parts(now).ok_or(EditError::NothingLoaded)?;
        let known = buffer::types(db).await?.into_iter().map(|of| of.hardware_type).collect();
        Ok(Editing { stored, parts, known })
    }

    /// Changes the rows as an edit of servers says.
    fn plan(
        &mut self,
        servers: &ServerEdit,
        moving: &BTreeSet<Name>,
    ) -> Result<ServerPlan, EditError> {
        let plan = |parts: &mut SnapshotParts, servers: &ServerEdit| {
            edit::plan_servers(parts, servers, &self.known, moving).map_err(EditError::Wrong)
        };
        let ServerEdit::Drain(names) = servers else { return plan(&mut self.parts, servers) };
        // The region without any of them must be one; those that are drained stay so long.
        let mut without = self.parts.clone();
        let planned = plan(&mut without, servers)?;
        edit::snapshot(without).map_err(EditError::Wrong)?;
        let gone = names.iter().filter(|name| !planned.draining.contains(*name));
        let gone: Vec<Name> = gone.cloned().collect();
        if !gone.is_empty() {
            plan(&mut self.parts, &ServerEdit::Remove(gone))?;
        }
        Ok(planned)
    }

    /// Writes what differs.
    async fn write(self, db: &mut PgConnection) -> Result<(), EditError> {
        let Editing { stored, parts, .. } = self;
        let snapshot = edit::snapshot(parts).map_err(EditError::Wrong)?;
        let wanted = snapshot.to_parts();
        load::check_storable(&snapshot, &wanted).map_err(|error| {
            EditError::Wrong(vec![WrongField::new("servers", "rule", error.to_string())])
        })?;
        let promises = promise::of_snapshot(&snapshot);
        let plan = ImportPlan::between(&stored, &snapshot, &wanted, &promises);
        write::write(db, &snapshot, &wanted, &stored, &promises, &plan, stored.version).await?;
        let doing = "removing what is gone";
        write::remove(db, &plan, &promises).await.doing(doing)?;
        let made: Vec<&str> =
            promises.iter().filter(|(_, p)| p.made).map(|(name, _)| name.as_ref()).collect();
        sqlx::query(load::sql::REMOVE_MADE).bind(made).execute(db).await.doing(doing)?;
        Ok(())
    }
}

fn check_seen(seen: Option<&str>, current: String) -> Result<(), EditError> {
    match seen {
        Some(seen) if seen != current => Err(EditError::Stale { current }),
        _ => Ok(()),
    }
}

impl Broker {
    /// The region's prices, limits and buffer fraction.
    ///
    /// # Errors
    /// [`EditError`].
    pub async fn region_settings(&self) -> Result<StoredSettings, EditError> {
        let mut db = self.pool.acquire().await.doing("connecting")?;
        let found = region_read::region(&mut db).await.doing("reading the region")?;
        let region_read::Region { name, weights, shared_buffer_fraction } =
            found.ok_or(EditError::NothingLoaded)?;
        let settings = RegionSettings { weights, shared_buffer_fraction };
        Ok(StoredSettings { region: name, settings })
    }

    /// Sets prices, limits and the buffer fraction. `seen`: only if they are of this version.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field.
    pub async fn set_region_settings(
        &self,
        actor: &str,
        settings: &RegionSettings,
        seen: Option<&str>,
    ) -> Result<Option<Seq>, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let before = StoredSettings {
            region: editing.parts.region.clone(),
            settings: RegionSettings {
                weights: editing.parts.weights,
                shared_buffer_fraction: editing.parts.shared_buffer_fraction.unwrap_or_default(),
            },
        };
        check_seen(seen, before.version())?;
        edit::set_settings(&mut editing.parts, settings).map_err(EditError::Wrong)?;
        if before.settings == *settings {
            change.abandon().await?;
            return Ok(None);
        }
        editing.write(db).await?;
        let detail = json!({
            "before": settings_json(&before.settings), "after": settings_json(settings),
        });
        change.record(Action::RegionSettingsSet, &before.region, detail);
        Ok(Some(change.commit().await?))
    }

    /// Racks, decommissions or moves servers: all of them or none. `dry`: only says what it would come
    /// to. `key`: a claimed idempotency key and its answer.
    ///
    /// # Errors
    /// [`EditError`], with every wrong field of every server.
    pub async fn edit_servers(
        &self,
        actor: &str,
        servers: &ServerEdit,
        dry: bool,
        key: Option<EditAnswer<'_>>,
    ) -> Result<ServerPlan, EditError> {
        let mut change = Change::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, !dry).await?;
        let moving = sqlx::query_scalar(sql::MOVING).fetch_all(&mut *db).await;
        let moving: Vec<String> = moving.doing("looking for moves under way")?;
        let moving = moving.into_iter().map(Name::from).collect();
        let plan = editing.plan(servers, &moving)?;
        if dry {
            edit::snapshot(editing.parts).map_err(EditError::Wrong)?;
            change.abandon().await?;
            return Ok(plan);
        }
        let region = editing.parts.region.clone();
        editing.write(db).await?;
        if !plan.draining.is_empty() {
            decommission::ask(&mut change, actor, &plan.draining).await?;
            let detail = json!({ "servers": plan.draining });
            change.record(Action::DecommissionAsked, &region, detail);
        }
        let db = change.connection();
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&plan)).await?
        {
            return Err(EditError::KeyLost);
        }
        let (action, detail) = match servers {
            ServerEdit::Add(rows) => (Action::ServersRacked, json!({ "servers": rows })),
            ServerEdit::Remove(names) | ServerEdit::Drain(names) => {
                let gone = names.iter().filter(|name| !plan.draining.contains(*name));
                let gone: Vec<&Name> = gone.collect();
                (Action::ServersDecommissioned, json!({ "servers": gone }))
            }
            ServerEdit::Move(rows) => (Action::ServersRelocated, json!({ "servers": rows })),
        };
        if plan.draining.len() < plan.servers {
            change.record(action, &region, detail);
        }
        change.commit().await?;
        Ok(plan)
    }
}
