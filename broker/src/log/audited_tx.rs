//! The only way to change the region: a transaction that ends by writing the audit trail.

use crate::infra::connection::Broker;
use crate::infra::document::Document;
use crate::infra::error::{DbError, Doing};
use crate::infra::text::NOT_KEPT;
use crate::log::event::Event;
use crate::log::trail::Seq;
use sqlx::{PgConnection, Postgres, Transaction};

pub(crate) mod sql {
    crate::statements! {
        /// The trigger numbers the entries, in the given order. Only the commit follows this statement: from
        /// here until the commit no other change can end.
        APPEND = "WITH added AS ( \
            INSERT INTO audit_trail (actor, action, subject, detail) \
            SELECT $1, e.action, e.subject, e.detail \
            FROM unnest($2::text[], $3::text[], $4::jsonb[]) WITH ORDINALITY AS e (action, subject, detail, nr) \
            ORDER BY e.nr RETURNING seq) SELECT max(seq) FROM added";
    }
}

/// A transaction that changes the region. It commits together with its entries of the audit trail, or not at
/// all; a dropped change is rolled back.
pub(crate) struct AuditedTx {
    tx: Transaction<'static, Postgres>,
    actor: String,
    actions: Vec<&'static str>,
    subjects: Vec<Option<String>>,
    details: Vec<Document>,
}

impl AuditedTx {
    pub(crate) async fn begin(broker: &Broker, actor: &str) -> Result<AuditedTx, DbError> {
        let tx = broker.begin().await.doing("beginning a transaction")?;
        Ok(AuditedTx {
            tx,
            actor: actor.to_owned(),
            actions: Vec::new(),
            subjects: Vec::new(),
            details: Vec::new(),
        })
    }

    pub(crate) fn connection(&mut self) -> &mut PgConnection {
        &mut self.tx
    }

    /// Adds an entry, which is written at the commit.
    pub(crate) fn record(&mut self, subject: &str, event: Event<'_>) {
        self.note(Some(subject.replace('\0', NOT_KEPT.encode_utf8(&mut [0; 4]))), &event);
    }

    /// Adds an entry without a subject, about many things.
    pub(crate) fn record_all(&mut self, event: Event<'_>) {
        self.note(None, &event);
    }

    fn note(&mut self, subject: Option<String>, event: &Event<'_>) {
        self.actions.push(event.action().as_str());
        self.subjects.push(subject);
        self.details.push(event.detail());
    }

    /// Writes the entries and commits; returns the number of the last entry.
    ///
    /// # Panics
    /// If no entry was recorded: a change without an entry is a bug.
    pub(crate) async fn commit(mut self) -> Result<Seq, DbError> {
        assert!(!self.actions.is_empty(), "every change is recorded");
        let last: i64 = sqlx::query_scalar(sql::APPEND)
            .bind(&self.actor)
            .bind(&self.actions)
            .bind(&self.subjects)
            .bind(&self.details)
            .fetch_one(&mut *self.tx)
            .await
            .doing("writing the audit trail")?;
        self.tx.commit().await.doing("committing")?;
        Ok(Seq(last))
    }

    /// Rolls the transaction back.
    pub(crate) async fn abandon(self) -> Result<(), DbError> {
        self.tx.rollback().await.doing("rolling back")
    }
}
