//! Previews of planned maintenance.

use super::{Decided, MaintenanceError, MaintenancePreview, MaintenanceRequest, decide};
use crate::infra::connection::Broker;
use crate::infra::error::Doing;
use decisions::maintenance::preview::preview;

pub(crate) mod sql {
    crate::statements! {
        IN_USE = "SELECT count(*) FROM servers WHERE server_id = ANY ($1) \
            AND (in_use OR loan_reservation_id IS NOT NULL)";
    }
}

impl Broker {
    /// Previews this maintenance: the windows it would get now, or why it would be refused. Nothing is
    /// written or locked, so a later plan may differ.
    ///
    /// # Errors
    /// [`MaintenanceError`].
    pub async fn preview_maintenance(
        &self,
        request: &MaintenanceRequest,
    ) -> Result<MaintenancePreview, MaintenanceError> {
        let doing = "looking what maintenance would take";
        request.check_scope()?;
        let mut tx = self.begin_reading().await.doing(doing)?;
        let now = sqlx::query_scalar(super::sql::NOW).fetch_one(&mut *tx).await.doing(doing)?;
        let decided = decide(&mut tx, now, request).await?;
        let servers: Vec<i32> = decided.situation.requested.iter().copied().collect();
        let in_use: i64 = sqlx::query_scalar(sql::IN_USE)
            .bind(&servers)
            .fetch_one(&mut *tx)
            .await
            .doing(doing)?;
        tx.commit().await.doing(doing)?;
        let Decided { situation, plan } = &decided;
        Ok(preview(&situation.view, plan, request, in_use.unsigned_abs()))
    }
}
