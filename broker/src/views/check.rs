//! Integrity checks for use after a crash, a restore or an upgrade.
//!
//! Constraints and triggers enforce most of these rules. They are checked anyway, because a restore may have
//! run with constraints switched off.

use crate::infra::connection::Broker;
use crate::infra::error::{DbError, Doing};

pub(crate) mod sql {
    crate::statements! {
        /// One row per rule: its text and the number of violations.
        CHECK = "SELECT 'entries of the audit trail are numbered without holes' AS rule, \
                (SELECT abs(count(*) - coalesce(max(seq), 0)) FROM audit_trail) AS broken \
            UNION ALL SELECT 'the clock of the audit trail is its last entry', \
                (SELECT abs(c.seq - (SELECT coalesce(max(seq), 0) FROM audit_trail)) FROM trail_clock c) \
            UNION ALL SELECT 'versions of the targets are numbered without holes', \
                (SELECT abs(max(version) + 1 - count(*)) FROM target_versions) \
            UNION ALL SELECT 'every version but the first has the one before as its parent', \
                (SELECT count(*) FROM target_versions WHERE version > 0 AND parent IS DISTINCT FROM version - 1) \
            UNION ALL SELECT 'every version has its entry in the audit trail', \
                (SELECT count(*) FROM target_versions v WHERE version > 0 AND NOT EXISTS ( \
                    SELECT FROM audit_trail t WHERE t.action = 'targets_published' \
                        AND t.subject = v.version::text \
                    UNION ALL SELECT FROM audit_trail t WHERE t.action = 'snapshot_loaded' \
                        AND (t.detail ->> 'version')::bigint = v.version)) \
            UNION ALL SELECT 'a server has one row, so it has one owner', \
                (SELECT count(*) - count(DISTINCT server) FROM servers) \
            UNION ALL SELECT 'owners, targets and borrowers are there', \
                (SELECT count(*) FROM servers s WHERE EXISTS ( \
                    SELECT FROM unnest(ARRAY[s.current_reservation_id, s.target_reservation_id, \
                        s.loan_reservation_id]) AS r (id) WHERE r.id IS NOT NULL \
                        AND NOT EXISTS (SELECT FROM reservations k WHERE k.reservation_id = r.id))) \
            UNION ALL SELECT 'moves under way are of a version that is there', \
                (SELECT count(*) FROM servers s WHERE s.target_version IS NOT NULL AND NOT EXISTS ( \
                    SELECT FROM target_versions v WHERE v.version = s.target_version)) \
            UNION ALL SELECT 'a solve that was published is a publication of its own', \
                (SELECT count(*) FROM solves s WHERE s.state = 'published' AND NOT EXISTS ( \
                    SELECT FROM target_versions v WHERE v.version = s.version \
                        AND v.origin = 'publication' AND v.parent = s.parent)) \
            UNION ALL SELECT 'at most one solve runs', \
                (SELECT greatest(count(*) - 1, 0) FROM solves WHERE state = 'running') \
            UNION ALL SELECT 'a solve that runs or waits has a job that does', \
                (SELECT count(*) FROM solves s JOIN jobs j ON j.job_id = s.solve_id \
                    WHERE (s.state, j.state) NOT IN (('requested', 'waiting'), ('running', 'running'), \
                        ('published', 'done'), ('stale', 'done'), ('failed', 'failed'), \
                        ('awaiting_approval', 'done'), ('rejected', 'done')))";
    }
}

impl Broker {
    /// Checks all rules on one snapshot; returns the broken ones with the number of violations. Empty: the
    /// store is sound.
    ///
    /// # Errors
    /// If Postgres fails.
    pub async fn check(&self) -> Result<Vec<String>, DbError> {
        let doing = "checking what must hold";
        let mut tx = self.begin_reading().await.doing(doing)?;
        let rules: Vec<(String, i64)> =
            sqlx::query_as(sql::CHECK).fetch_all(&mut *tx).await.doing(doing)?;
        tx.commit().await.doing(doing)?;
        let broken = rules.into_iter().filter(|(_, broken)| *broken != 0);
        Ok(broken.map(|(rule, broken)| format!("{rule}: broken {broken} times")).collect())
    }
}
