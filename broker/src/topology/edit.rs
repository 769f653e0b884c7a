//! Edits of a region: settings and servers.
//!
//! An edit changes the rows that a snapshot of the region has; the rules of the snapshot format judge them, and
//! the differences are written as an import writes them. So the result does not depend on whether a region was
//! edited or imported. An edit reads the whole region under the lock of an import: edits are rare
//! (docs/decisions/0026-an-edit-reads-the-region.md has the cost).
//!
//! The targets keep their version: a running solve is published, and skips servers whose generation changed.

use crate::access::idempotency::{self, KeyClaim};
use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::Doing;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use crate::snapshot::region_read;
use crate::topology::decommission;
use crate::topology::edit_error::{EditError, check_seen, version};
use crate::topology::editing::Editing;
use fleet::Name;
use fleet::edit::{self, RegionSettings, ServerEdit, ServerPlan};

pub(crate) mod sql {
    crate::statements! {
        /// Servers with an open move of any origin.
        MOVING = "SELECT s.server::text FROM moves m JOIN servers s USING (server_id) WHERE m.open";
    }
}

/// The region's prices, limits and buffer fraction.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredSettings {
    /// The region's name.
    pub region: Name,
    /// The settings.
    pub settings: RegionSettings,
}

impl StoredSettings {
    /// A version that changes with every setting.
    pub fn version(&self) -> String {
        version(&(&self.region, &self.settings))
    }
}

/// An idempotency key with its answer, which is made from the result.
pub type EditAnswer<'a> = (KeyClaim, &'a (dyn Fn(&ServerPlan) -> Document + Sync));

impl Broker {
    /// Reads the region's prices, limits and buffer fraction.
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

    /// Sets prices, limits and the buffer fraction. `seen`: only if this is the current version.
    ///
    /// # Errors
    /// [`EditError`], with every invalid field.
    pub async fn set_region_settings(
        &self,
        actor: &str,
        settings: &RegionSettings,
        seen: Option<&str>,
    ) -> Result<Option<Seq>, EditError> {
        let mut change = AuditedTx::begin(self, actor).await?;
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
        let event = Event::RegionSettingsSet { before: &before.settings, after: settings };
        change.record(&before.region, event);
        Ok(Some(change.commit().await?))
    }

    /// Adds, removes or moves servers: all of them or none. `dry`: only computes the result. `key`: a claimed
    /// idempotency key with its answer.
    ///
    /// # Errors
    /// [`EditError`], with every invalid field of every server.
    pub async fn edit_servers(
        &self,
        actor: &str,
        servers: &ServerEdit,
        dry: bool,
        key: Option<EditAnswer<'_>>,
    ) -> Result<ServerPlan, EditError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, !dry).await?;
        let moving = sqlx::query_scalar(sql::MOVING).fetch_all(&mut *db).await;
        let moving: Vec<String> = moving.doing("looking for moves under way")?;
        let moving = moving.into_iter().map(Into::into).collect();
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
            let servers = plan.draining.iter().map(AsRef::as_ref).collect();
            change.record(&region, Event::DecommissionAsked { servers, again: false });
        }
        let db = change.connection();
        if let Some((claim, answer)) = key
            && !idempotency::answer(db, claim, &answer(&plan)).await?
        {
            return Err(EditError::KeyLost);
        }
        let event = match servers {
            ServerEdit::Add(servers) => Event::ServersRacked { servers },
            ServerEdit::Remove(names) | ServerEdit::Drain(names) => {
                let gone = names.iter().filter(|name| !plan.draining.contains(*name));
                Event::ServersDecommissioned { servers: gone.collect() }
            }
            ServerEdit::Move(servers) => Event::ServersRelocated { servers },
        };
        if plan.draining.len() < plan.servers {
            change.record(&region, event);
        }
        change.commit().await?;
        Ok(plan)
    }
}
