//! Shared buffers: a fixed number of servers of a hardware type, or the region's fraction.

use crate::infra::connection::Broker;
use crate::log::audited_tx::AuditedTx;
use crate::log::event::{BufferSize, Event};
use crate::log::trail::Seq;
use crate::topology::edit_error::{EditError, check_seen};
use crate::topology::editing::Editing;
use crate::topology::hardware::types;
use fleet::HardwareTypeName;
use fleet::edit;

impl Broker {
    /// Sets the shared buffer of a hardware type to a fixed number of servers; `None`: to the region's
    /// fraction. `seen`: only if this is the current version. `why`: the reason, for the audit trail.
    ///
    /// # Errors
    /// [`EditError`], with every invalid field.
    pub async fn set_shared_buffer(
        &self,
        actor: &str,
        hardware_type: &HardwareTypeName,
        servers: Option<f64>,
        seen: Option<&str>,
        why: Option<&str>,
    ) -> Result<Seq, EditError> {
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        let mut editing = Editing::begin(db, true).await?;
        let before = types(db).await?.into_iter().find(|of| of.hardware_type == *hardware_type);
        if let Some(before) = &before {
            check_seen(seen, before.version())?;
        }
        edit::set_shared_buffer(&mut editing.parts, hardware_type, servers, &editing.known)
            .map_err(EditError::Wrong)?;
        editing.write(db).await?;
        let before = before.and_then(|of| of.buffer);
        let before = before.map(|of| BufferSize { servers: of.wanted, listed: of.listed });
        let listed = servers.is_some();
        change.record(hardware_type, Event::SharedBufferSet { before, servers, listed, why });
        Ok(change.commit().await?)
    }
}
