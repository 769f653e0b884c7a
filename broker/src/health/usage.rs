//! Reports of container schedulers: which servers are in use.
//!
//! A server in use is expensive to move and is not lent; a loan that exists stays.

use crate::health::report::is_name;
use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};
use crate::log::audited_tx::AuditedTx;
use crate::log::event::Event;
use crate::log::trail::Seq;
use crate::moves::lifecycle;
use fleet::ServerName;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) mod sql {
    crate::statements! {
        /// Returns the changed servers.
        USE = "UPDATE servers s SET in_use = w.in_use \
            FROM unnest($1::text[], $2::boolean[]) AS w (server, in_use) \
            WHERE s.server = w.server AND s.in_use <> w.in_use RETURNING s.server::text";
        KNOWN_SERVERS = "SELECT server::text FROM servers WHERE server = ANY ($1)";
    }
}

/// The outcome of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// The server's use changed.
    Changed,
    /// The server's use was known.
    Unchanged,
    /// There is no such server.
    UnknownServer,
}

/// The outcome of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsageOutcome {
    /// One outcome for each row, in order.
    pub rows: Vec<Usage>,
    /// The entry in the audit trail; `None`: nothing changed.
    pub seq: Option<Seq>,
}

impl Broker {
    /// Sets which servers are in use and which are idle. Of two rows about one server the last counts.
    ///
    /// # Errors
    /// If Postgres fails; nothing was changed.
    pub async fn report_usage(
        &self,
        actor: &str,
        servers: &[(ServerName, bool)],
    ) -> Result<UsageOutcome, DbError> {
        let doing = "storing which servers are in use";
        let last: BTreeMap<&str, bool> =
            servers.iter().filter(|of| is_name(&of.0)).map(|of| (&*of.0, of.1)).collect();
        let (names, used): (Vec<&str>, Vec<bool>) = last.iter().map(|of| (*of.0, *of.1)).unzip();
        let mut change = AuditedTx::begin(self, actor).await?;
        let db = change.connection();
        // Publications write rows of servers in their own order.
        sqlx::query(lifecycle::sql::HOLD_HEAD).execute(&mut *db).await.doing(doing)?;
        let known: Vec<String> = sqlx::query_scalar(sql::KNOWN_SERVERS)
            .bind(&names)
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        let changed: Vec<String> = sqlx::query_scalar(sql::USE)
            .bind(&names)
            .bind(used)
            .fetch_all(&mut *db)
            .await
            .doing(doing)?;
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
        let rows = servers.iter().map(|(server, _)| match &**server {
            server if changed.contains(server) => Usage::Changed,
            server if known.contains(server) => Usage::Unchanged,
            _ => Usage::UnknownServer,
        });
        let rows = rows.collect();
        if changed.is_empty() {
            change.abandon().await?;
            return Ok(UsageOutcome { rows, seq: None });
        }
        let (in_use, idle): (Vec<&str>, Vec<&str>) =
            changed.iter().copied().partition(|server| last[server]);
        change.record_all(Event::UsageReported { in_use, idle });
        Ok(UsageOutcome { rows, seq: Some(change.commit().await?) })
    }
}
