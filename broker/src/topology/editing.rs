//! A region under edit: read as snapshot rows, judged by the rules of the snapshot format, written as an
//! import writes what differs.

use crate::infra::error::Doing;
use crate::promises::promise;
use crate::snapshot::import_diff::ImportPlan;
use crate::snapshot::load::{self, write};
use crate::snapshot::region_read::{self, Stored};
use crate::topology::edit_error::EditError;
use crate::topology::hardware;
use chrono::{DateTime, Utc};
use fleet::edit::{self, ServerEdit, ServerPlan, WrongField};
use fleet::{HardwareTypeName, ServerName, SnapshotParts};
use sqlx::PgConnection;
use std::collections::BTreeSet;

/// A region under edit.
pub(crate) struct Editing {
    stored: Stored,
    /// The rows that a snapshot of the region has.
    pub(crate) parts: SnapshotParts,
    /// Hardware types, by name.
    pub(crate) known: BTreeSet<HardwareTypeName>,
}

impl Editing {
    /// Reads the region. `held`: blocks other changes until the end of the transaction.
    pub(crate) async fn begin(db: &mut PgConnection, held: bool) -> Result<Editing, EditError> {
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
        let known = hardware::types(db).await?.into_iter().map(|of| of.hardware_type).collect();
        Ok(Editing { stored, parts, known })
    }

    /// Applies an edit of servers to the rows.
    pub(crate) fn plan(
        &mut self,
        servers: &ServerEdit,
        moving: &BTreeSet<ServerName>,
    ) -> Result<ServerPlan, EditError> {
        let plan = |parts: &mut SnapshotParts, servers: &ServerEdit| {
            edit::plan_servers(parts, servers, &self.known, moving).map_err(EditError::Wrong)
        };
        let ServerEdit::Drain(names) = servers else { return plan(&mut self.parts, servers) };
        // The region must stay valid without all of these servers; draining ones stay in it for now.
        let mut without = self.parts.clone();
        let planned = plan(&mut without, servers)?;
        edit::snapshot(without).map_err(EditError::Wrong)?;
        let gone = names.iter().filter(|name| !planned.draining.contains(*name));
        let gone: Vec<ServerName> = gone.cloned().collect();
        if !gone.is_empty() {
            plan(&mut self.parts, &ServerEdit::Remove(gone))?;
        }
        Ok(planned)
    }

    /// Writes the differences.
    pub(crate) async fn write(self, db: &mut PgConnection) -> Result<(), EditError> {
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
